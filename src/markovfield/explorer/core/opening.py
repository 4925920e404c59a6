"""Reading what is explored: a model by its format, a picture as the bytes that a browser will open."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import markovfield as mf
from markovfield.exceptions import FormatError

__all__ = ["PictureFile", "opened"]

MOST_BYTES = 16 * 2**20
# How files of pictures begin, and what a browser calls them. Never SVG, which may hold more than a picture.
BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
GRAMMAR = ".pcfg"


@dataclass(frozen=True)
class PictureFile:
    """A file with a picture, which only the browser looks into.

    Attributes
    ----------
    name
        Of the file.
    kind
        Its media type, told by how it begins.
    content
        Its bytes.
    """

    name: str
    kind: str
    content: bytes = field(repr=False)


def _kind(start: bytes) -> str | None:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in BEGINNINGS if start.startswith(beginning)), None)


def opened(path: Path) -> Any:
    """What a file holds: a picture as `PictureFile`, a grammar of a ``.pcfg`` file, else what `read` makes of it."""
    with open(path, "rb") as stream:
        kind = _kind(stream.read(16))
        if kind is not None:
            stream.seek(0)
            content = stream.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise FormatError(f"{path}:1:1: a picture may have {MOST_BYTES:,} bytes, this one has more")
            return PictureFile(path.name, kind, content)
    return mf.PCFG.from_text(path) if path.suffix.lower() == GRAMMAR else mf.read(path)
