"""The errors a user of the library can act on, each one sentence long."""

from __future__ import annotations

__all__ = [
    "FormatError",
    "ImpossibleEvidenceError",
    "MemoryLimitError",
    "MissingDataWarning",
    "ModelError",
    "StoppedError",
]


class ModelError(ValueError):
    """A model, a table or an argument that does not fit the rules of what it describes."""


class FormatError(ValueError):
    """A file that does not follow its format; the message starts with ``file:line:column``."""


class ImpossibleEvidenceError(ValueError):
    """Evidence to which the model gives probability zero."""


class MemoryLimitError(MemoryError):
    """An exact computation that would need more memory than allowed; raised before allocating."""


class MissingDataWarning(UserWarning):
    """Data that lack what a model has a place for, in a way that looks like a mistake in reading them."""


class StoppedError(RuntimeError):
    """Work that a callback asked to stop."""
