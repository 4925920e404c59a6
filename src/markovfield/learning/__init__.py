"""Learning: data, counts, parameters with and without missing values, and structure."""
