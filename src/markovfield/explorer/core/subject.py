"""What is explored: a model, or a file that holds one and may change, and what was computed about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeVar

from markovfield.exceptions import ModelError
from markovfield.explorer.core.opening import opened

__all__ = ["Subject", "is_a"]

T = TypeVar("T")


class Subject:
    """A model with its name, and a memory for plans and layouts that is emptied when the model changes.

    Attributes
    ----------
    model
        What was given, or what the file holds.
    path
        The file, or None.
    version
        Counts how often the model was read.
    """

    def __init__(self, model: Any) -> None:
        self.path = Path(model) if isinstance(model, str | os.PathLike) else None
        self.version = 1
        self._reading = RLock()
        self._memory: dict[Any, tuple[Lock, list[Any]]] = {}
        self._stamp = self._current_stamp()
        self.model: Any = model if self.path is None else opened(self.path)

    @property
    def name(self) -> str:
        """What the page calls the model."""
        if self.path is not None:
            return self.path.name
        return str(getattr(self.model, "name", None) or type(self.model).__name__)

    def _current_stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    @property
    def changed(self) -> bool:
        """Whether the file is another one than was read."""
        stamp = self._current_stamp()
        return stamp is not None and stamp != self._stamp

    def reload(self) -> None:
        """Read the file again; a file that cannot be read leaves the model as it was."""
        if self.path is None:
            raise ModelError("this model was given by a program, not by a file: there is nothing to read again")
        with self._reading:
            stamp = self._current_stamp()
            # A file that is broken now is tried again only when it changes again.
            self._stamp = stamp
            self.model = opened(self.path)
            self._memory = {}
            self.version += 1

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for each key and version, however many threads ask."""
        with self._reading:
            lock, found = self._memory.setdefault(key, (Lock(), []))
        with lock:
            if not found:
                found.append(make())
            result: T = found[0]
            return result


def is_a(model: Any, *names: str) -> bool:
    """Whether a model is of a class of ours, by name: no module is loaded to find out."""
    return any(c.__name__ in names and c.__module__.startswith("markovfield.") for c in type(model).__mro__)
