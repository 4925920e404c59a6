"""The three inner algebras of the passes, how a pass can end, and where linear space ends.

Invariant: the numbers, which plans and kernels share. `SAFE` and `TINY` may change together: they only decide when a
run falls back to log space.
"""

__all__ = ["DONE", "IMPOSSIBLE", "LINEAR", "LOG_MAX", "LOG_SUM", "SAFE", "TINY", "UNDERFLOW"]

LINEAR, LOG_SUM, LOG_MAX = 0, 1, 2
"""Sums of products in linear space (messages rescaled by powers of two); the same in log space; maxima in log space."""

DONE, IMPOSSIBLE, UNDERFLOW = 0, 1, 2

SAFE = -900.0
"""A product whose factors could together fall below 2**SAFE is checked cell by cell."""
TINY = 1e-290
"""What a product of positive factors must not reach in linear space."""
