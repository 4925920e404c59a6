"""Checks of arguments, each of which raises one sentence that names the argument and what was given."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from markovfield.exceptions import ModelError

__all__ = ["check_method", "generator_of", "number", "whole_number"]


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not math.isnan(value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def whole_number(value: Any, what: str, least: int | None = None, most: int | None = None) -> int:
    """The value as an int; ``what`` names it, as in ``"size"`` or ``"Hopfield(shape)"``.

    Examples
    --------
    >>> whole_number(np.int64(3), "size", 0)
    3
    >>> whole_number(2.5, "size", 0)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: size must be an integer of at least 0, got 2.5
    """
    if _is_whole(value) and (least is None or value >= least) and (most is None or value <= most):
        return int(value)
    limits = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"
    raise ModelError(f"{what} must be an integer{limits}, got {value!r}")


def number(value: Any, what: str, *, least: float | None = None, above: float | None = None) -> float:
    """The value as a float that is not nan, at least ``least`` or greater than ``above``.

    Examples
    --------
    >>> number("x", "time_limit", above=0)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: time_limit must be a number greater than 0, got 'x'
    """
    if _is_number(value) and (least is None or value >= least) and (above is None or value > above):
        return float(value)
    limits = f" of at least {least:g}" if least is not None else f" greater than {above:g}" if above is not None else ""
    raise ModelError(f"{what} must be a number{limits}, got {value!r}")


def generator_of(rng: Any, what: str = "rng") -> np.random.Generator:
    """The generator behind a seed, a NumPy generator (old or new), bit generator or seed sequence, or None.

    Examples
    --------
    >>> generator_of(1.5)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: rng must be a seed of at least 0, a NumPy generator or None, got 1.5
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (_is_whole(rng) and rng >= 0):
        return np.random.default_rng(rng)
    if isinstance(rng, (np.random.BitGenerator, np.random.SeedSequence)):
        return np.random.default_rng(rng)
    if isinstance(rng, np.random.RandomState):
        return np.random.Generator(rng._bit_generator)
    if isinstance(rng, (list, tuple, np.ndarray)) and len(rng) and all(_is_whole(x) and x >= 0 for x in rng):
        return np.random.default_rng(rng)
    raise ModelError(f"{what} must be a seed of at least 0, a NumPy generator or None, got {rng!r}")


# What the annotation of a setting promises. A setting of any other type is its method's own to check.
_TYPES = {
    "int": (_is_whole, "an integer"),
    "float": (_is_number, "a number"),
    "bool": (_is_bool, "True or False"),
    "str": (lambda value: isinstance(value, str), "a string"),
    "None": (lambda value: value is None, "None"),
}


@cache
def _declared(cls: Hashable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The settings of a method's class whose types can be checked here, with the names of those types."""
    found = []
    for field in dataclasses.fields(cast("type[Any]", cls)):
        names = tuple(part.strip() for part in str(field.type).split("|"))
        if all(name in _TYPES for name in names):
            found.append((field.name, names))
    return tuple(found)


def check_method(
    method: Any,
    *,
    least: Mapping[str, float] | None = None,
    above: Mapping[str, float] | None = None,
    below: Mapping[str, float] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise where a setting of a method object, a dataclass, is not of its declared type, or not allowed.

    ``least``, ``above`` and ``below`` give the least value of a setting, and what it must exceed or stay below;
    ``choices`` the words that it may be. None is always allowed where the declared type has it.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Method:
    ...     sweeps: int | None = None
    ...     def __post_init__(self):
    ...         check_method(self, least={"sweeps": 1})
    >>> Method(sweeps=2.5)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: sweeps of Method must be an integer or None, got 2.5
    >>> Method(sweeps=0)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: sweeps of Method must be at least 1, got 0
    """
    name = type(method).__name__
    for setting, types in _declared(cast("Hashable", type(method))):
        value = getattr(method, setting)
        if not any(_TYPES[each][0](value) for each in types):
            wanted = " or ".join(_TYPES[each][1] for each in types)
            raise ModelError(f"{setting} of {name} must be {wanted}, got {value!r}")
    for setting, limit in (least or {}).items():
        value = getattr(method, setting)
        if value is not None and not value >= limit:
            raise ModelError(f"{setting} of {name} must be at least {limit:g}, got {value!r}")
    for setting, limit in (above or {}).items():
        value = getattr(method, setting)
        if value is not None and not value > limit:
            much = "positive" if limit == 0 else f"above {limit:g}"
            raise ModelError(f"{setting} of {name} must be {much}, got {value!r}")
    for setting, limit in (below or {}).items():
        value = getattr(method, setting)
        if value is not None and not value < limit:
            much = "finite" if limit == math.inf else f"below {limit:g}"
            raise ModelError(f"{setting} of {name} must be {much}, got {value!r}")
    for setting, words in (choices or {}).items():
        value = getattr(method, setting)
        if value is not None and value not in words:
            *most, last = map(repr, words)
            raise ModelError(f"{setting} of {name} must be {', '.join(most)} or {last}, got {value!r}")
