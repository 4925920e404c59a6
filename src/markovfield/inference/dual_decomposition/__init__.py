"""dual_decomposition."""
