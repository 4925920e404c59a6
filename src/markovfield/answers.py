"""What comes back: the classes of answers and of their parts, for type hints and documentation."""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
