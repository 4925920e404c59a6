"""lattice."""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
