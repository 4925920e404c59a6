"""factors."""
