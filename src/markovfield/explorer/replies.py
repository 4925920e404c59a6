"""JSON in and out, and every failure as one sentence."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

import numpy as np

from markovfield.exceptions import FormatError, ImpossibleEvidenceError, MemoryLimitError, ModelError, StoppedError

__all__ = ["explained", "parsed", "to_json"]

DEEPEST = 12

log = logging.getLogger("markovfield.explorer")


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers that are none become None, what has no form of its own its text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
        return _plain(value)
    if isinstance(value, int):
        # Browsers keep integers as doubles: beyond 2^53 the text is right and the number is not.
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        # Thousands of probabilities with every click: none of them has to be looked at alone.
        plain = value.dtype == np.float64 and bool(np.isfinite(value).all())
        return value.tolist() if plain else _plain(value.tolist())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value)


def to_json(value: Any) -> str:
    """A value as JSON; an infinity or nan becomes null. ASCII: names may hold half of a pair, which UTF-8 cannot."""
    return json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))


def parsed(data: bytes | str) -> dict[str, Any]:
    """A JSON object from the browser, of numbers that are numbers and nested no deeper than any page needs."""
    try:
        found = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ModelError("the request must be a JSON object, and this is no JSON") from None
    if not isinstance(found, dict):
        raise ModelError(f"the request must be a JSON object, got {type(found).__name__}")
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [x for part in level for x in (part.values() if isinstance(part, dict) else part)]
        level = [x for x in level if isinstance(x, dict | list)]
        if not level:
            return found
    raise ModelError(f"a request may be nested {DEEPEST} deep, this one is deeper")


def _no_number(text: str) -> None:
    """NaN and infinities, which Python reads and JSON does not have."""
    raise ValueError(text)


def explained(error: BaseException) -> tuple[str, int]:
    """The sentence of a failure and the status of the reply: 400 for what the user can act on, else 500."""
    if isinstance(
        error, ModelError | FormatError | ImpossibleEvidenceError | MemoryLimitError | StoppedError | TimeoutError
    ):
        return " ".join(str(error).split()), 400
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        return f"cannot open {error.filename}: {reason}" if error.filename else reason, 400
    if isinstance(error, MemoryError):
        return "the computation ran out of memory", 400
    if isinstance(error, ImportError) and "pip install" in str(error):
        return str(error), 400
    log.error("the explorer failed", exc_info=error)
    return f"the explorer failed with {type(error).__name__}: {' '.join(str(error).split())}", 500
