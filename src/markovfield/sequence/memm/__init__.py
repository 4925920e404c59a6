"""memm."""
