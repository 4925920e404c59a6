"""Maximum likelihood of a Gaussian with structural zeros in its precision (Dempster's covariance selection), on arrays.

The maximum is unique where there is one: its covariance agrees with the data's on the edges and the diagonal, its
precision is zero elsewhere. Four ways to it, which share no step: closed form on chordal graphs (Murphy 19.62), Newton
steps, iterative proportional fitting of clique margins (Murphy 19.5.7.3; Speed and Kiiveri 1986), and regressions of
each variable on its neighbours (Hastie, Tibshirani and Friedman 2009, algorithm 17.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.goodness import log_determinant
from markovfield.learning.gaussian.moments import GaussianMoments, not_definite
from markovfield.learning.gaussian.newton_on_graph import maximise

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["ALGORITHMS", "GraphMaximum", "cliques_of", "maximum_on_graph", "positions_of"]


class GraphMaximum(NamedTuple):
    """A precision, dense, and how it was found; ``history`` has the log-likelihoods of one row, less a constant."""

    precision: FloatArray
    algorithm: str
    iterations: int
    converged: bool
    history: tuple[float, ...]


def positions_of(graph: nx.Graph, variables: Sequence[Any]) -> nx.Graph:
    """A graph on the same variables by their numbers in the data."""
    import networkx as nx

    place = {v: i for i, v in enumerate(variables)}
    made = nx.Graph()
    made.add_nodes_from(range(len(variables)))
    made.add_edges_from((place[a], place[b]) for a, b in graph.edges() if a != b)
    return made


def cliques_of(graph: nx.Graph) -> list[list[int]]:
    """Maximal cliques, sorted."""
    import networkx as nx

    return sorted(sorted(c) for c in nx.find_cliques(graph))


def maximum_on_graph(
    moments: GaussianMoments,
    graph: nx.Graph,
    *,
    algorithm: str = "auto",
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
    running: Running | None = None,
) -> GraphMaximum:
    """The maximum on a graph of positions; an error says which variables have too few rows for one."""
    from markovfield.graphs.triangulation import is_chordal

    if algorithm == "auto":
        algorithm = "closed_form" if is_chordal(graph) else "newton"
    cliques = cliques_of(graph)
    for clique in cliques:
        _invertible(moments, clique)
    deviations = moments.deviations
    history: list[float] = []
    s = moments.correlation
    if algorithm == "closed_form":
        x, iterations, converged = _closed_form(s, graph), 1, True
    else:
        x, iterations, converged, history = ALGORITHMS[algorithm](s, graph, tolerance, max_iterations, running)
    x = x / deviations[:, None] / deviations
    return GraphMaximum(x, algorithm, iterations, converged, tuple(history))


def _invertible(moments: GaussianMoments, clique: Sequence[int]) -> None:
    block = moments.covariance[np.ix_(clique, clique)]
    if log_determinant(block) == -np.inf:
        names = [moments.variables[v] for v in clique]
        few = moments.n_rows <= len(clique)
        rows = (
            f" (a clique of {len(clique)} variables needs more rows than the {moments.n_rows:g} given)" if few else ""
        )
        raise ModelError(
            f"{not_definite(block, names, 'the covariance of a clique')}{rows}: take fewer edges, or give shrinkage"
        )


def _closed_form(s: FloatArray, graph: nx.Graph) -> FloatArray:
    """Inverses of the cliques' covariances less those of the separators' (Murphy 19.62; Lauritzen 1996)."""
    from markovfield.graphs.decomposable import perfect_sequence
    from markovfield.graphs.triangulation import is_chordal

    if not is_chordal(graph):
        raise ModelError("the closed form needs a decomposable (chordal) graph: take algorithm='newton'")
    x = np.zeros_like(s)
    for step in perfect_sequence(graph):
        for members, sign in ((sorted(step.clique), 1.0), (sorted(step.separator), -1.0)):
            at = np.ix_(members, members)
            x[at] += sign * np.linalg.inv(s[at])
    return (x + x.T) / 2


def _newton(
    s: FloatArray, graph: nx.Graph, tolerance: float, most: int, running: Running | None
) -> tuple[FloatArray, int, bool, list[float]]:
    """The decrement is linear in the distance from the maximum, what the likelihood lacks quadratic."""
    x, iterations, converged, history = maximise(s, graph, max(tolerance**2, 1e-20), most, running)
    return x, iterations, converged, history


def _proportional(
    s: FloatArray, graph: nx.Graph, tolerance: float, most: int, running: Running | None
) -> tuple[FloatArray, int, bool, list[float]]:
    """Clique by clique, give the model the data's covariance there and leave the rest given the clique as it is."""
    cliques = cliques_of(graph)
    inverses = [np.linalg.inv(s[np.ix_(c, c)]) for c in cliques]
    x = np.eye(len(s))
    history = []
    for turn in range(1, most + 1):
        sigma = np.linalg.inv(x)
        sigma = (sigma + sigma.T) / 2
        history.append(_fit(s, x))
        worst = 0.0
        for clique, inverse in zip(cliques, inverses, strict=True):
            at = np.ix_(clique, clique)
            now = sigma[at]
            worst = max(worst, float(np.abs(now - s[at]).max()))
            back = np.linalg.inv(now)
            x[at] += inverse - back
            slopes = sigma[:, clique] @ back
            sigma += slopes @ (s[at] - now) @ slopes.T
        if running is not None:
            running.check(history[-1])
        if worst <= tolerance:
            return (x + x.T) / 2, turn, True, history
    return (x + x.T) / 2, most, False, history


def _regressions(
    s: FloatArray, graph: nx.Graph, tolerance: float, most: int, running: Running | None
) -> tuple[FloatArray, int, bool, list[float]]:
    """Each variable on its neighbours, with the model's own covariance of these: one column of it at a time."""
    n = len(s)
    near = [sorted(graph.adj[v]) for v in range(n)]
    sigma = s.copy()
    history = []
    for _ in range(most):
        worst = 0.0
        for j in range(n):
            column = sigma[:, near[j]] @ _slopes(sigma, s, near[j], j) if near[j] else np.zeros(n)
            column[j] = s[j, j]
            worst = max(worst, float(np.abs(column - sigma[:, j]).max()))
            sigma[:, j] = sigma[j] = column
        x = _precision_of(sigma, s, near)
        history.append(_fit(s, x))
        if running is not None:
            running.check(history[-1])
        if worst <= tolerance:
            return x, len(history), True, history
    return x, most, False, history


def _slopes(sigma: FloatArray, s: FloatArray, near: list[int], j: int) -> FloatArray:
    return np.asarray(np.linalg.solve(sigma[np.ix_(near, near)], s[near, j]))


def _precision_of(sigma: FloatArray, s: FloatArray, near: list[list[int]]) -> FloatArray:
    """The precision with its zeros, from the regressions of a covariance that has converged."""
    n = len(s)
    x = np.zeros((n, n))
    for j in range(n):
        slopes = _slopes(sigma, s, near[j], j) if near[j] else np.zeros(0)
        x[j, j] = 1 / (s[j, j] - s[near[j], j] @ slopes)
        x[near[j], j] = -slopes * x[j, j]
    return (x + x.T) / 2


def _fit(s: FloatArray, x: FloatArray) -> float:
    return 0.5 * (log_determinant(x) - float((s * x).sum()))


ALGORITHMS: dict[str, Callable[..., tuple[FloatArray, int, bool, list[float]]]] = {
    "newton": _newton,
    "ipf": _proportional,
    "regression": _regressions,
}
