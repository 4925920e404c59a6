"""mean_field."""
