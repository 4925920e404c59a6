"""Exact inference: junction trees, Bayesian networks, first calls by file format."""
