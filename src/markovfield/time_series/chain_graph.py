"""Graphs of vector autoregressions: arrows across time, edges within, as masks of weights and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.graphs.mixed_graph import MixedGraph, as_mixed_graph
from markovfield.names import VariableName

__all__ = ["dynamic_graph", "masks_of", "series_graph", "step_name"]

Mask = npt.NDArray[np.bool_]


def step_name(variable: VariableName, step: int) -> str:
    """The name of a series at a time step, as a variable of an unrolled field.

    Examples
    --------
    >>> step_name("gdp", 3)
    'gdp[3]'
    """
    return f"{variable}[{step}]"


def masks_of(graph: Any, variables: Sequence[VariableName], order: int) -> tuple[Mask, Mask]:
    """Which weights ``bool[order, k, k]`` (lag, to, from) and which entries of the noise's precision a graph allows.

    An arrow from a to b is for all lags, and every series has its own past. Where arrows start from pairs
    ``(variable, lag)``, exactly those weights are free, those of a series' own past as well.
    """
    mixed = as_mixed_graph(graph, "VectorAutoregression(graph=...)")
    k, at = len(variables), {v: i for i, v in enumerate(variables)}
    lags = np.zeros((order, k, k), np.bool_)
    joined = np.eye(k, dtype=np.bool_)
    if mixed.bidirected.number_of_edges():
        a, b = next(iter(mixed.bidirected.edges()))
        raise ModelError(f"VectorAutoregression(graph=...) has arrows and undirected edges, got {a!r} <-> {b!r}")
    by_lag = any(isinstance(node, tuple) for node in mixed)

    def place(node: Any) -> int:
        if node not in at:
            raise ModelError(f"VectorAutoregression(graph=...) has a node {node!r}, which is no series of the data")
        return at[node]

    for a, b in mixed.directed.edges():
        if isinstance(a, tuple):
            if len(a) != 2 or not isinstance(a[1], int) or not 1 <= a[1] <= order:
                raise ModelError(
                    f"VectorAutoregression(graph=...) has an arrow from {a!r}, expected (series, lag) with a lag from "
                    f"1 to {order}"
                )
            lags[a[1] - 1, place(b), place(a[0])] = True
        elif by_lag:
            raise ModelError(
                f"VectorAutoregression(graph=...) has lags at some arrows and none at {a!r} -> {b!r}: give all or none"
            )
        else:
            lags[:, place(b), place(a)] = True
    for node in mixed:
        if not isinstance(node, tuple):
            place(node)
    if not by_lag:
        lags[:, np.arange(k), np.arange(k)] = True
    for a, b in mixed.undirected.edges():
        joined[place(a), place(b)] = joined[place(b), place(a)] = True
    return lags, joined


def series_graph(variables: Sequence[VariableName], arrows: Mask, joined: Mask) -> MixedGraph:
    """An arrow for each entry (to, from) off the diagonal, an edge for each pair of series whose noise is joined."""
    to, source = np.nonzero(arrows & ~np.eye(len(arrows), dtype=bool))
    a, b = np.nonzero(np.triu(joined, 1))
    return MixedGraph(
        variables,
        directed=[(variables[j], variables[i]) for i, j in zip(to.tolist(), source.tolist(), strict=True)],
        undirected=[(variables[i], variables[j]) for i, j in zip(a.tolist(), b.tolist(), strict=True)],
    )


def dynamic_graph(variables: Sequence[VariableName], coefficients: FloatArray, joined: Mask) -> MixedGraph:
    """The chain graph of as many time steps as there are lags, and one more: what the last step depends on.

    The first steps are what is given: edges among them are left out.
    """
    order = len(coefficients)
    nodes = [step_name(v, t) for t in range(order + 1) for v in variables]
    arrows = [
        (step_name(variables[j], order - 1 - lag), step_name(variables[i], order))
        for lag in range(order)
        for i, j in zip(*(axis.tolist() for axis in np.nonzero(coefficients[lag])), strict=True)
    ]
    a, b = np.nonzero(np.triu(joined, 1))
    edges = [
        (step_name(variables[i], order), step_name(variables[j], order))
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]
    return MixedGraph(nodes, directed=arrows, undirected=edges)
