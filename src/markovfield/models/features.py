"""Features of log-linear models: what parameters multiply, in one place or tied across many (Murphy 19.37)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.names import Names, VariableName

__all__ = ["Feature", "Resolved"]


class Feature:
    """Numbers of the joint states of some variables that one or more parameters multiply.

    Parameters
    ----------
    scope
        The variables, in the order of the axes of ``values``; or a dict of variables to states: an indicator, one where
        all have these states and zero elsewhere.
    values
        None: one parameter for every joint state (a table). An array in the shape of the variables' states: one
        parameter, which multiplies it; with one more axis, a parameter for each entry of that. A function of the state
        names, asked once for each joint state, that gives a number or a vector.
    places
        Further scopes that share the parameters: the same feature in other places. Variables of a place have the
        numbers of states of those in ``scope``.
    name
        Shown with the parameters; made from the variables when empty.

    Examples
    --------
    >>> import markovfield as mf
    >>> mf.Feature(["A", "B"])
    Feature(A B, a table)
    >>> mf.Feature({"A": 1, "B": "high"})
    Feature(A=1 B=high)
    >>> mf.Feature(["A", "B"], lambda a, b: float(a == b), places=[["B", "C"]], name="agree")
    Feature(agree, 2 places)
    """

    def __init__(
        self,
        scope: Sequence[VariableName] | Mapping[VariableName, Any],
        values: npt.ArrayLike | Callable[..., Any] | None = None,
        *,
        places: Sequence[Sequence[VariableName]] = (),
        name: str = "",
    ) -> None:
        if isinstance(scope, str | int) or not isinstance(scope, Sequence | Mapping):
            raise ModelError(f"a feature needs a sequence of variables, or a dict of states, got {scope!r}")
        if isinstance(places, str) or any(isinstance(p, str | int) for p in places):
            raise ModelError("places of a feature are sequences of variables: write [['A', 'B'], ['B', 'C']]")
        self.indicated = dict(scope) if isinstance(scope, Mapping) else None
        if self.indicated is not None and values is not None:
            raise ModelError("a feature of states is an indicator and takes no values")
        self.scopes = (tuple(scope), *(tuple(p) for p in places))
        if any(len(s) != len(self.scopes[0]) for s in self.scopes):
            raise ModelError(f"places of a feature need {len(self.scopes[0])} variables each")
        twice = next((s for s in self.scopes if len(set(s)) < len(s)), None)
        if twice is not None:
            raise ModelError(f"a feature names a variable twice: {list(twice)!r}")
        self.values = values
        self.name = name or " ".join(
            str(v) if self.indicated is None else f"{v}={self.indicated[v]}" for v in self.scopes[0]
        )

    def __repr__(self) -> str:
        table = ", a table" if self.values is None and self.indicated is None else ""
        n = len(self.scopes)
        return f"Feature({self.name}{table}{f', {n} places' if n > 1 else ''})"

    def resolve(self, names: Names, cards: Sequence[int]) -> Resolved:
        """Positions and numbers, once the variables and their states are known."""
        scopes = [[names.position(v) for v in scope] for scope in self.scopes]
        shape = tuple(cards[v] for v in scopes[0])
        for scope, given in zip(scopes, self.scopes, strict=True):
            if tuple(cards[v] for v in scope) != shape:
                raise ModelError(
                    f"the feature {self.name!r} has {shape} states in its first place and "
                    f"{tuple(cards[v] for v in scope)} in {list(given)!r}: one parameter cannot serve both"
                )
        states = [names.state_names(v, cards[v]) for v in scopes[0]]
        if self.indicated is not None:
            table = np.zeros((*shape, 1))
            table[
                tuple(names.state(v, s, cards[v]) for v, s in zip(scopes[0], self.indicated.values(), strict=True))
            ] = 1
            return Resolved(scopes, table, [self.name])
        if self.values is None:
            size = int(np.prod(shape))
            labels = [
                " ".join(f"{v}={s}" for v, s in zip(self.scopes[0], joint, strict=True)) for joint in product(*states)
            ]
            return Resolved(scopes, np.eye(size).reshape(*shape, size), labels)
        table = self._numbers(states, shape)
        k = table.shape[-1]
        return Resolved(scopes, table, [self.name] if k == 1 else [f"{self.name}[{i}]" for i in range(k)])

    def _numbers(self, states: list[Sequence[Any]], shape: tuple[int, ...]) -> FloatArray:
        """``float64[*shape, k]``."""
        given: Any = self.values
        if callable(given):
            given = [given(*joint) for joint in product(*states)]
        try:
            table = np.array(given, np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"the feature {self.name!r} needs numbers, vectors of equal length: {error}") from None
        if callable(self.values):
            table = table.reshape(*shape, *table.shape[1:])
        if table.shape == shape:
            table = table[..., None]
        if table.shape[:-1] != shape or table.ndim != len(shape) + 1:
            raise ModelError(
                f"the feature {self.name!r} needs values of shape {shape}, or with one more axis for several "
                f"parameters, got {table.shape}"
            )
        if not np.isfinite(table).all():
            raise ModelError(f"the feature {self.name!r} has a value that is not a finite number")
        return table


class Resolved:
    """A feature by position: its places, ``values[*states, parameter]``, and the parameters' names."""

    def __init__(self, scopes: list[list[int]], values: FloatArray, labels: list[str]) -> None:
        self.scopes, self.values, self.labels = scopes, values, labels
