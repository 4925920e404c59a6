"""Text files as they are read everywhere: plain, gzipped or xz-compressed, with places for errors to name."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError
from markovfield.files import PathLike, atomic_writer

__all__ = ["Source", "Tokens", "read_source", "write_text"]

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_CHUNK = 1 << 20
_EXPANSION_FLOOR = 1 << 28
_EXPANSION_RATIO = 100


@dataclass(frozen=True)
class Source:
    """The bytes of a file (decompressed) and the name that errors call it by."""

    name: str
    data: bytes

    def error(self, offset: int, message: str) -> FormatError:
        """A `FormatError` that points at a byte as ``file:line:column``, both counted from one."""
        before = self.data[:offset]
        line = before.count(b"\n") + 1
        start = before.rfind(b"\n") + 1
        column = len(before[start:].decode("utf-8-sig", "replace")) + 1
        return FormatError(f"{self.name}:{line}:{column}: {message}")

    def text(self) -> str:
        """The whole file as UTF-8 (a byte order mark is dropped)."""
        try:
            return self.data.decode().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise self.error(error.start, "this byte is not UTF-8 text") from None


def read_source(path: PathLike) -> Source:
    """Read a file whole, undoing gzip or xz when its first bytes (not its name) say so.

    A compressed file may expand to 256 MiB or to a hundred times its size, whichever is more; beyond that it
    is taken for a bomb and refused.
    """
    name = os.fspath(path)
    with open(name, "rb", buffering=0) as stream:  # a buffer would double the time of a small file
        raw = stream.read()
    if not raw.startswith((_GZIP, _XZ)):
        return Source(name, raw)
    limit = max(_EXPANSION_FLOOR, _EXPANSION_RATIO * len(raw))
    opener = gzip.open if raw.startswith(_GZIP) else lzma.open
    parts, total = [], 0
    try:
        with opener(name, "rb") as unpacked:
            while chunk := unpacked.read(_CHUNK):
                total += len(chunk)
                if total > limit:
                    raise FormatError(
                        f"{name}:1:1: {len(raw)} compressed bytes expand to more than the {limit} allowed; "
                        "decompress the file yourself if you trust it"
                    )
                parts.append(chunk)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FormatError(f"{name}:1:1: the compressed data is damaged or cut short ({error})") from None
    return Source(name, b"".join(parts))


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
