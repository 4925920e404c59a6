"""Markov logic: grounding, and weights learned on the departments of UW-CSE."""
