"""Structures with their own dynamic programs."""
