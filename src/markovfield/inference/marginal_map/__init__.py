"""marginal_map."""
