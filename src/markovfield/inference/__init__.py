"""Inference: one file per algorithm, the answers, the method registry, explain."""
