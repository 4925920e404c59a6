"""Text files as they are read everywhere: plain, gzipped or xz-compressed, with places for errors to name."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from dataclasses import dataclass

from markovfield.exceptions import FormatError
from markovfield.files import PathLike

__all__ = ["Source", "read_source"]

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
