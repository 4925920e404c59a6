"""mini_bucket."""
