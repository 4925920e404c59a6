"""What every writer of Bayesian networks needs: names as text, and rows that are read back to the same bits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.models import BayesianNetwork
from markovfield.models._conditionals import NoisyMax

__all__ = ["WrittenNetwork", "as_text", "numbers_text", "written"]


_MOST_EXPANDED_CELLS = 2**20
_MOST_NUDGES = 200


@dataclass(frozen=True)
class WrittenNetwork:
    """A network whose variables and states are text, in the order of its variables.

    ``rows(v)`` is ``float64[configurations of the parents of v in C order, states of v]``.
    """

    net: BayesianNetwork
    variables: list[str]
    states: list[list[str]]
    parents: list[list[int]]

    def properties(self, v: int | None) -> tuple[str, ...]:
        """The texts kept for a variable, or for the network itself."""
        return tuple(map(str, self.net.properties.get(None if v is None else self.net.variables[v], ())))

    def rows(self, v: int) -> FloatArray:
        """The table of a variable as rows that readers, who rescale, turn into exactly that table."""
        name = self.net.variables[v]
        if isinstance(self.net._local[v], NoisyMax):
            cells = prod(len(self.states[u]) for u in [*self.parents[v], v])
            if cells > _MOST_EXPANDED_CELLS:
                raise ModelError(
                    f"the noisy-max of {name!r} would be written as a table of {cells} cells, more than "
                    f"{_MOST_EXPANDED_CELLS}; markovfield.io.save keeps it as it is"
                )
        return _nudged(self.net.cpt(name).reshape(-1, len(self.states[v])))


def written(net: BayesianNetwork, writer: str) -> WrittenNetwork:
    """Check that a network can be written, and name everything in it by text.

    Raises
    ------
    ModelError
        When it is no complete network without cycles, or two names are the same as text.
    """
    if not isinstance(net, BayesianNetwork):
        raise ModelError(f"{writer}() takes a BayesianNetwork, got {type(net).__name__}")
    net.compile()  # refuses cycles and variables without a distribution
    position = {name: i for i, name in enumerate(net.variables)}
    return WrittenNetwork(
        net,
        as_text(net.variables, "variables"),
        [as_text(net.states(v), f"states of {v!r}") for v in net.variables],
        [[position[p] for p in net.parents(v)] for v in net.variables],
    )


def as_text(names: Iterable[Any], what: str) -> list[str]:
    """Names as distinct texts; ``what`` they are is for the errors."""
    given: dict[str, Any] = {}
    for name in names:
        text = str(name)
        if text in given:
            raise ModelError(f"the {what} {given[text]!r} and {name!r} would both be written as {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ModelError(f"of the {what}, {name!r} is not text that can be written as UTF-8") from None
        given[text] = name
    return list(given)


def numbers_text(row: FloatArray, separator: str) -> str:
    """Numbers with as many digits as it takes to read back the same bits."""
    return separator.join(map(repr, row.tolist()))


def _nudged(rows: FloatArray) -> FloatArray:
    """Rows q with q / sum(q) equal to the given ones to the last bit.

    Rounding may make a row that was divided by its sum add up to one plus or minus an ulp, and dividing again would
    change it. Scaling it by a few ulps first, by trial, gives one that is a fixed point; where none is found (not
    seen so far) the row is written as it is, and is read back with an error of one ulp or two.
    """
    result = rows.copy()
    bad = _changed_by_rescaling(rows, rows)
    for k in range(1, _MOST_NUDGES):
        for scale in (1 - k * 2.0**-53, 1 + k * 2.0**-52):
            if not bad.size:
                return result
            tried = rows[bad] * scale
            left = _changed_by_rescaling(tried, rows[bad])
            done = np.ones(len(bad), bool)
            done[left] = False
            result[bad[done]] = tried[done]
            bad = bad[left]
    return result


def _changed_by_rescaling(rows: FloatArray, wanted: FloatArray) -> npt.NDArray[np.intp]:
    return np.flatnonzero((rows / rows.sum(axis=1, keepdims=True) != wanted).any(axis=1))
