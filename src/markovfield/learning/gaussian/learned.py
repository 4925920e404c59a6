"""Answers of Gaussian structure learning: a graph, and the field that goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.gaussian.moments import GaussianMoments
from markovfield.names import Names, VariableName

__all__ = ["field_of", "learned_graph", "on_scale"]


def on_scale(precision: Any, deviations: FloatArray) -> Any:
    """The precision of variables with these standard deviations, from that of standardised ones (sparse)."""
    from scipy import sparse

    back = sparse.diags_array(1 / deviations)
    return sparse.csc_array(back @ precision @ back)


def field_of(moments: GaussianMoments, precision: Any) -> GaussianField:
    """The field with the mean of the data and a precision, sparse or dense, known to be positive definite."""
    from scipy import sparse

    matrix = sparse.csc_array(precision)
    return GaussianField.trusted(matrix, np.asarray(matrix @ moments.mean), Names(moments.variables))


def learned_graph(
    moments: GaussianMoments,
    precision: Any,
    edges: Iterable[tuple[VariableName, VariableName]],
    weights: Sequence[float],
    **settings: Any,
) -> LearnedGraph:
    """The answer with a graph of these edges, and a field with this precision unless it is None."""
    import networkx as nx

    place = {v: i for i, v in enumerate(moments.variables)}
    graph = nx.Graph()
    graph.add_nodes_from(moments.variables)
    for (a, b), w in sorted(zip(edges, weights, strict=True), key=lambda e: (place[e[0][0]], place[e[0][1]])):
        graph.add_edge(a, b, weight=w)
    return LearnedGraph(
        variables=moments.variables,
        states=(),
        graph=graph,
        gaussian=None if precision is None else field_of(moments, precision),
        **settings,
    )
