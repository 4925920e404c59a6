"""Files with something wrong in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from markovfield import FormatError

__all__ = ["damaged", "format_error"]


@st.composite
def damaged(draw, data: bytes) -> bytes:
    """The bytes with a few flipped, deleted, doubled or replaced pieces."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(result) - 1, 0)))
        action = draw(st.integers(0, 3))
        if action == 0 and result:
            result[at] ^= 1 << draw(st.integers(0, 7))
        elif action == 1:
            del result[at : at + draw(st.integers(1, 20))]
        elif action == 2:
            result[at:at] = result[at : at + draw(st.integers(1, 20))]
        else:
            result[at : at + 1] = draw(st.sampled_from([b"9" * 30, b"-1", b" ", b"nan", b"\x00", b"{", b")", b'"']))
    return bytes(result)


def format_error(read: Callable[..., Any], *arguments: Any) -> str | None:
    """What a reader objects to, or None; any other exception passes through."""
    try:
        read(*arguments)
    except FormatError as error:
        return str(error)
    return None
