"""Text files, plain, gzipped or xz-compressed; a position is worked out only when an error needs it."""

from __future__ import annotations

import gzip
import lzma
import os
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError
from markovfield.files import PathLike, atomic_writer
from markovfield.text_files import Source, read_source

__all__ = ["Source", "Tokens", "read_source", "write_text"]


class Tokens:
    """The whitespace-separated words of a file, with a cursor.

    Splitting and conversion to numbers run at C speed over whole slices; only a failure looks for the word at
    fault.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.items = source.data.split()
        self.at = 0

    def __len__(self) -> int:
        return len(self.items)

    @property
    def left(self) -> int:
        """How many words lie beyond the cursor."""
        return len(self.items) - self.at

    def error(self, index: int, message: str) -> FormatError:
        """A `FormatError` at word ``index`` (at the end of the file when there is no such word)."""
        if index >= len(self.items):
            return self.source.error(len(self.source.data.rstrip()), message)
        # For bytes, \S knows the same six spaces as bytes.split().
        match = next(islice(re.finditer(rb"\S+", self.source.data), index, None))
        return self.source.error(match.start(), message)

    def show(self, index: int) -> str:
        """Word ``index`` as it may be quoted in an error: never long, never unprintable."""
        word = self.items[index]
        return repr(word[:30].decode("ascii", "replace") + ("..." if len(word) > 30 else ""))

    def require(self, count: int, what: str) -> None:
        """Raise unless ``count`` more words follow."""
        if count > self.left:
            raise self.error(
                len(self.items),
                f"the file ends too early: expected {what}, {count} more words, found {self.left}",
            )

    def integer(self, what: str, *, low: int = 0, high: int | None = None) -> int:
        """The next word as an integer of at least ``low`` and at most ``high``."""
        self.require(1, what)
        value = self.integers(1, what)[0]
        if value < low or (high is not None and value > high):
            rule = f"at least {low}" if high is None else f"from {low} to {high}"
            raise self.error(self.at - 1, f"{what} must be {rule}, got {self.show(self.at - 1)}")
        return value

    def integers(self, count: int, what: str) -> list[int]:
        """The next ``count`` words as integers."""
        self.require(count, what)
        start, self.at = self.at, self.at + count
        try:
            return list(map(int, self.items[start : self.at]))
        except ValueError:
            self._blame(start, self.at, int, f"{what}: expected an integer")

    def floats(self, count: int, what: str) -> npt.NDArray[np.float64]:
        """The next ``count`` words as floating-point numbers."""
        self.require(count, what)
        start, self.at = self.at, self.at + count
        try:
            # Python's float() reads 1_0 as ten; a data file that holds it is more likely damaged.
            if b"_" not in self.source.data:
                return np.fromiter(map(float, self.items[start : self.at]), np.float64, count)
        except ValueError:
            pass
        self._blame(start, self.at, _strict_float, f"{what}: expected a number")

    def end(self, what: str) -> None:
        """Raise unless every word has been read."""
        if self.left:
            raise self.error(self.at, f"unexpected {self.show(self.at)} after {what}")

    def _blame(self, start: int, stop: int, convert: Callable[[bytes], object], message: str) -> NoReturn:
        for i in range(start, stop):
            try:
                convert(self.items[i])
            except ValueError:
                raise self.error(i, f"{message}, got {self.show(i)}") from None
        raise self.error(start, message)


def _strict_float(word: bytes) -> float:
    if b"_" in word:
        raise ValueError(word)
    return float(word)


def write_text(path: PathLike, pieces: Iterable[str]) -> None:
    """Write text atomically, compressed when the name ends in ``.gz`` or ``.xz``."""
    name = os.fspath(path)
    with atomic_writer(path) as stream:
        if name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                for piece in pieces:
                    packed.write(piece.encode())
        elif name.endswith(".xz"):
            with lzma.LZMAFile(stream, "wb") as packed_xz:
                for piece in pieces:
                    packed_xz.write(piece.encode())
        else:
            for piece in pieces:
                stream.write(piece.encode())
