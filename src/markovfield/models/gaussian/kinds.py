"""The kinds of Gaussian priors on lattices and graphs, by name, and what each takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.models._sites import Sites
from markovfield.models.gaussian import precisions
from markovfield.models.gaussian.precisions import KINDS, Prior

__all__ = ["edge_weights", "prior_of"]

# What each kind takes beside the graph.
_TAKES = {
    "matern": ("range", "variance", "alpha", "kappa", "tau"),
    "rw1": ("precision",),
    "rw2": ("precision",),
    "icar": ("precision",),
    "car": ("precision", "rho"),
}


def prior_of(sites: Sites, kind: str, weights: FloatArray, parameters: dict[str, Any]) -> Prior:
    """The prior of a kind on sites and weighted edges."""
    if kind not in KINDS:
        raise ModelError(f"GaussianMarkovField(kind=...) is one of {', '.join(KINDS)}, got {kind!r}")
    unknown = [p for p in parameters if p not in _TAKES[kind]]
    if unknown:
        raise ModelError(f"kind={kind!r} takes {', '.join(_TAKES[kind])}, not {unknown[0]!r}")
    n = sites.n
    if kind == "matern":
        alpha = parameters.pop("alpha", 2)
        dimension = None if sites.shape is None else sum(length > 1 for length in sites.shape) or 1
        given = [parameters.get(word) for word in ("range", "variance", "kappa", "tau")]
        if isinstance(alpha, bool) or alpha not in (1, 2, 3, 4):
            raise ModelError(f"kind='matern' has alpha 1, 2, 3 or 4, got {alpha!r}")
        return precisions.matern(n, sites.edges, weights, alpha, *precisions.matern_numbers(dimension, alpha, *given))
    precision = number(parameters.get("precision", 1.0), "precision", above=0)
    if kind == "car":
        rho = number(parameters.get("rho", 0.99), "rho")
        return precisions.car(n, sites.edges, weights, precision, rho, sites.variables)
    if kind == "rw2" and sites.shape is not None:
        return precisions.lattice_second_order(sites.shape, sites.periodic, precision)
    if kind == "rw2":
        return precisions.graph_second_order(n, sites.edges, weights, precision)
    return precisions.first_order_walk(n, sites.edges, weights, precision, kind)


def edge_weights(graph: Any, weights: Any, sites: Sites) -> FloatArray:
    """``float64[edges]``: as given, by the name of an attribute of edges, or one."""
    m = len(sites.edges)
    if weights is None:
        return np.ones(m)
    if isinstance(weights, str):
        if not hasattr(graph, "edges"):
            raise ModelError(f"weights={weights!r} names an attribute of edges, which only a networkx graph has")
        weights = [data.get(weights, np.nan) for _, _, data in graph.edges(data=True)]
    values = np.asarray(weights, np.float64)
    if values.shape != (m,) or not (np.isfinite(values) & (values > 0)).all():
        raise ModelError(f"weights needs a number above zero for each of the {m} edges, got shape {values.shape}")
    return values
