"""linear_programming."""
