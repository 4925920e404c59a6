"""Names as they are shown: what would hide, reorder or break a text is made visible."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["shown"]

# Control characters; those that turn the direction of what follows; halves of surrogate pairs and what is no character.
_UNSEEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\ufffe\\uffff]"
)


def shown(name: Any) -> str:
    """A variable's or state's name as text of one line; the browser sends numbers back, so nothing is lost.

    Examples
    --------
    >>> shown("two\\nlines"), shown(7)
    ('two\u240alines', '7')
    """
    return _UNSEEN.sub(lambda found: _picture(found[0]), str(name))


def _picture(character: str) -> str:
    """Unicode has pictures of the oldest control characters."""
    return chr(0x2400 + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"
