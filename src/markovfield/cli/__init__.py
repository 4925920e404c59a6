"""The command line: infer, explain, sample, demo."""

from markovfield.cli.app import main

__all__ = ["main"]
