"""perfect_sampling."""
