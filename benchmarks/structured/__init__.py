"""Structured prediction on graphs, trees, charts and matchings."""
