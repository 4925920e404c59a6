"""The command line: infer, explain, sample, demo."""

from markovfield.cli._entry import main

__all__ = ["main"]
