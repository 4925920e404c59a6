"""A Bayesian network as a factor graph: one factor for each variable, marked as its conditional distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE
from markovfield.factors.structure import Structure
from markovfield.models._conditionals import NoisyMax
from markovfield.names import Names

__all__ = ["assemble"]


def _sealed(values: Sequence[int], dtype: Any) -> npt.NDArray[Any]:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def assemble(
    names: Names,
    cardinalities: Sequence[int],
    parents: Mapping[int, Sequence[int]],
    local: Mapping[int, npt.NDArray[np.float64] | NoisyMax],
) -> FactorGraph:
    """Lay out the distributions of all variables in one pool, in the order of the variables.

    What a network holds was checked when it was written, so the structure is put together without checking it
    again: that is most of the time it takes for a small network.
    """
    n = len(cardinalities)
    offsets, scopes, strides, bases, kinds = [0], [], [], [], []
    pieces: list[npt.NDArray[np.float64]] = [np.zeros(0)]
    cells = 0
    for v in range(n):
        scope = [*parents[v], v]
        own = local[v]
        bases.append(cells)
        if isinstance(own, NoisyMax):
            kinds.append(NOISY_MAX)
            at = 0
            for block in own.blocks:
                strides.append(at)
                at += block.size
                pieces.append(block.ravel())
            strides.append(at)
            pieces.append(own.leak)
        else:
            kinds.append(TABLE)
            steps, step = [], 1
            for p in reversed(scope):
                steps.append(step)
                step *= cardinalities[p]
            strides += reversed(steps)
            pieces.append(own.ravel())
        scopes += scope
        offsets.append(len(scopes))
        cells += own.size
    structure = Structure(
        _sealed(cardinalities, np.int32),
        _sealed(offsets, np.int64),
        _sealed(scopes, np.int32),
        _sealed(bases, np.int64),
        _sealed(strides, np.int64),
        cells,
        _sealed(range(n), np.int32),
        _sealed(kinds, np.int8),
        names,
    )
    pool = np.concatenate(pieces)
    with np.errstate(divide="ignore"):
        np.log(pool, out=pool)
    pool.flags.writeable = False
    return FactorGraph(structure, pool, marks_hold=True)
