"""Sequences: chain CRFs, hidden Markov models, segments."""
