"""Log-linear forms of models of sites and pairs: a parameter for each different coupling and field."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.models._sites import Sites, pair_graph
from markovfield.models.log_linear import LogLinear, sparse_operator
from markovfield.names import Names

__all__ = ["Tied", "as_given", "pairwise_log_linear", "split_parameters", "tied_couplings", "tied_fields"]


# Names are made for models of no more parameters than this.
MOST_LABELS = 10_000


class Tied(NamedTuple):
    """Numbers of places that share parameters.

    Attributes
    ----------
    values
        ``float64[groups, k]``: the parameters of each group of places.
    which
        ``int64[places]``: the group of each.
    cells
        ``float64[cells, k]``: what the parameters multiply in the cells of a place's table.
    """

    values: FloatArray
    which: IntArray
    cells: FloatArray


def tied_couplings(sites: Sites, coupling: Any, edge_couplings: FloatArray, cells: npt.ArrayLike) -> Tied:
    """One parameter where the coupling is one number, one for each axis or for each edge otherwise."""
    shape = np.asarray(cells, np.float64).reshape(-1, 1)
    m = len(sites.edges)
    if isinstance(coupling, float):
        return Tied(np.array([[coupling]]), np.zeros(m, np.int64), shape)
    if isinstance(coupling, tuple):
        axes = np.arange(len(coupling), dtype=np.int64)
        return Tied(np.array(coupling, np.float64)[:, None], np.repeat(axes, sites.per_axis), shape)
    return Tied(edge_couplings[:, None], np.arange(m, dtype=np.int64), shape)


def tied_fields(sites: Sites, values: FloatArray, cells: npt.ArrayLike) -> Tied:
    """``values[1 or n, k]``: fields that all sites share, or one for each site."""
    shared = len(values) == 1 and sites.n != 1
    which = np.zeros(sites.n, np.int64) if shared else np.arange(sites.n, dtype=np.int64)
    return Tied(values, which, np.asarray(cells, np.float64))


def pairwise_log_linear(
    sites: Sites, n_states: int, names: Names, pairs: Tied, unary: Tied | None, *, distance: bool = False
) -> LogLinear:
    """Tables of pairs, then of sites, each the product of its cells' numbers and its group's parameters."""
    parts = [pairs] if unary is None else [pairs, unary]
    zeros = [np.zeros((len(part.values), len(part.cells))) for part in parts]
    given = None if unary is None else (zeros[1], unary.which)
    graph = pair_graph(sites, n_states, names, (zeros[0], pairs.which), given, distance=distance)
    rows, columns, numbers = [], [], []
    cell_at = parameter_at = 0
    for part in parts:
        groups, k = part.values.shape
        size = len(part.cells)
        cell, which = np.nonzero(part.cells)
        group = np.repeat(np.arange(groups), len(cell))
        rows.append(cell_at + group * size + np.tile(cell, groups))
        columns.append(parameter_at + group * k + np.tile(which, groups))
        numbers.append(np.tile(part.cells[cell, which], groups))
        cell_at, parameter_at = cell_at + groups * size, parameter_at + groups * k
    theta = np.concatenate([part.values.ravel() for part in parts])
    labels = None
    if len(theta) <= MOST_LABELS:
        labels = [*_labels("coupling", pairs), *(() if unary is None else _labels("field", unary))]
    operator = sparse_operator(rows, columns, numbers, (cell_at, parameter_at))
    return LogLinear.from_arrays(graph, operator, theta, labels)


def _labels(what: str, part: Tied) -> list[str]:
    groups, k = part.values.shape
    if groups == k == 1:
        return [what]
    at = [f"{what}[{i}]" if groups > 1 else what for i in range(groups)]
    return at if k == 1 else [f"{name}[{j}]" for name in at for j in range(k)]


def split_parameters(theta: npt.ArrayLike, *parts: Tied | None) -> list[FloatArray]:
    """The parameters of each part, ``[groups, k]``."""
    values = np.array(theta, np.float64)
    wanted = sum(part.values.size for part in parts if part is not None)
    if values.shape != (wanted,):
        raise ModelError(f"this model has {wanted} parameters, got an array of shape {values.shape}")
    made: list[FloatArray] = []
    at = 0
    for part in parts:
        if part is None:
            made.append(np.zeros((0, 0)))
            continue
        made.append(values[at : at + part.values.size].reshape(part.values.shape))
        at += part.values.size
    return made


def as_given(old: Any, values: FloatArray) -> Any:
    """Numbers in the kind of what they take the place of: a number, a tuple, or an array of that shape."""
    if isinstance(old, float):
        return float(values[0])
    if isinstance(old, tuple):
        return tuple(values.tolist())
    made = values.reshape(old.shape)
    made.flags.writeable = False
    return made
