"""generalized_bp."""
