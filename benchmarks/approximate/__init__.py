"""Approximate inference: messages, sampling, lattices of spins."""
