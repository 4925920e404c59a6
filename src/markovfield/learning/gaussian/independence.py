"""Which real-valued variables are independent, by data: correlations and partial correlations with Fisher's z.

A zero of the precision is a pair that is independent given all others (Murphy 19.28), a zero of the covariance one that
is independent by itself (Murphy 19.4.4.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, drawing
from markovfield.graphs.mixed_graph import MixedGraph
from markovfield.learning.gaussian.goodness import log_determinant
from markovfield.learning.gaussian.moments import GaussianMoments, not_definite, read_moments
from markovfield.names import VariableName

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GaussianTest", "PairTests", "correlation_tests", "gaussian_independence"]


@dataclass(frozen=True, kw_only=True)
class GaussianTest(Tabular):
    """Fisher's z test that two variables are independent given others.

    Attributes
    ----------
    correlation
        The partial correlation.
    statistic
        ``sqrt(rows - given - 3) atanh(correlation)``, a standard normal variate where they are independent.
    p_value
        Probability of a larger one, of either sign.
    low, high
        The 95 % interval of the correlation.
    """

    correlation: float
    statistic: float
    p_value: float
    low: float
    high: float

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: [getattr(self, name)] for name in ("correlation", "statistic", "p_value", "low", "high")}


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTests(Tabular):
    """Fisher's z of every pair of variables, given all others or given nothing.

    Attributes
    ----------
    given
        ``"rest"`` or ``"nothing"``.
    correlations, statistics, p_values
        ``float64[n, n]``, symmetric: entry [i, j] is of variables i and j; 1, inf and 0 on the diagonal.
    """

    variables: tuple[VariableName, ...]
    given: str
    n_rows: float
    correlations: FloatArray = field(repr=False)
    statistics: FloatArray = field(repr=False)
    p_values: FloatArray = field(repr=False)

    def rejected(self, level: float = 0.05, correction: Literal["holm", "none"] = "holm") -> list[tuple[int, int]]:
        """Positions of the pairs whose independence is rejected.

        By Holm's procedure the probability of rejecting any true one is at most ``level``; with ``"none"`` that of
        each.
        """
        number(level, "level", above=0)
        if correction not in ("holm", "none"):
            raise ModelError(f"correction of tests is 'holm' or 'none', got {correction!r}")
        i, j = np.triu_indices(len(self.variables), 1)
        p = self.p_values[i, j]
        if correction == "none":
            taken = p <= level
        else:
            order = np.argsort(p, kind="stable")
            passed = p[order] <= level / (len(p) - np.arange(len(p)))
            first = len(p) if passed.all() else int(np.argmin(passed))
            taken = np.zeros(len(p), np.bool_)
            taken[order[:first]] = True
        return list(zip(i[taken].tolist(), j[taken].tolist(), strict=True))

    def graph(self, level: float = 0.05, correction: Literal["holm", "none"] = "holm") -> nx.Graph | MixedGraph:
        """The pairs that are not independent, as a graph that `markovfield.graphs` reads.

        Given the rest it is undirected: separation is independence (the pairwise Markov property). Given nothing it is
        a `MixedGraph` of bidirected edges, the covariance graph, whose m-separations are independences.
        """
        import networkx as nx

        names = self.variables
        edges = [(names[a], names[b]) for a, b in self.rejected(level, correction)]
        if self.given == "nothing":
            return MixedGraph(names, bidirected=edges)
        graph = nx.Graph()
        graph.add_nodes_from(names)
        for (a, b), e in zip(self.rejected(level, correction), edges, strict=True):
            graph.add_edge(*e, weight=float(self.correlations[a, b]))
        return graph

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        i, j = (axis[:limit] for axis in np.triu_indices(len(self.variables), 1))
        names = self.variables
        return {
            "first": [names[a] for a in i.tolist()],
            "second": [names[b] for b in j.tolist()],
            "correlation": self.correlations[i, j],
            "statistic": self.statistics[i, j],
            "p_value": self.p_values[i, j],
        }

    def _picture(self) -> str:
        return drawing(self.graph(), len(self.variables))

    def __repr__(self) -> str:
        return f"PairTests({len(self.variables)} variables given {self.given}, {len(self.rejected())} pairs dependent)"


def _freedom(moments: GaussianMoments, given: int) -> float:
    left = moments.n_rows - given - 3
    if left <= 0:
        raise ModelError(f"Fisher's z given {given} variables needs more than {given + 3} rows, got {moments.n_rows:g}")
    return left


def _two_sided(z: Any) -> Any:
    from scipy.special import ndtr

    return 2 * ndtr(-np.abs(z))


def correlation_tests(data: Any, given: Literal["rest", "nothing"] = "rest", *, weights: Any = None) -> PairTests:
    """Test every pair of real-valued variables for independence, given all others or given nothing.

    Parameters
    ----------
    data
        Columns of numbers, rows of an array, or `GaussianMoments`.
    given
        ``"rest"``: partial correlations, of which zeros are those of the precision (Murphy 19.28); the graph of the
        others is the undirected one. ``"nothing"``: correlations; their graph is the covariance graph.
    weights
        Of rows; the tests take their sum for the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> noise = np.random.default_rng(0).standard_normal((3, 400))
    >>> rows = {"a": noise[0], "b": noise[0] + noise[1], "c": noise[0] + noise[1] + noise[2]}
    >>> tests = mf.learning.correlation_tests(rows)
    >>> sorted(tests.graph().edges)
    [('a', 'b'), ('b', 'c')]
    >>> mf.learning.correlation_tests(rows, "nothing").graph()
    MixedGraph(a <-> b, a <-> c, b <-> c)
    """
    if given not in ("rest", "nothing"):
        raise ModelError(f"given of correlation_tests is 'rest' or 'nothing', got {given!r}")
    moments = read_moments(data, weights=weights, what="correlation_tests")
    r = moments.correlation
    n = len(r)
    left = _freedom(moments, n - 2 if given == "rest" else 0)
    if given == "rest":
        if log_determinant(r) == -math.inf:
            raise ModelError(not_definite(r, moments.variables, "the correlation matrix"))
        x = np.linalg.inv(r)
        scale = np.sqrt(np.diag(x))
        r = -x / (scale[:, None] * scale)
        r = (r + r.T) / 2
        np.fill_diagonal(r, 1.0)
    with np.errstate(divide="ignore"):
        z = math.sqrt(left) * np.arctanh(np.clip(r, -1.0, 1.0))
    return PairTests(
        variables=moments.variables,
        given=given,
        n_rows=moments.n_rows,
        correlations=r,
        statistics=z,
        p_values=np.asarray(_two_sided(z)),
    )


def gaussian_independence(
    data: Any,
    a: VariableName,
    b: VariableName,
    given: Iterable[VariableName] = (),
    *,
    weights: Any = None,
) -> GaussianTest:
    """Test whether two real-valued variables are independent given some others, by Fisher's z.

    Examples
    --------
    >>> import markovfield as mf
    >>> s = [[1.0, 0.6, 0.36], [0.6, 1.0, 0.6], [0.36, 0.6, 1.0]]
    >>> moments = mf.learning.GaussianMoments(s, 103, variables="abc")
    >>> test = mf.learning.gaussian_independence(moments, "a", "c", ["b"])
    >>> round(test.correlation, 6), round(test.p_value, 6)
    (0.0, 1.0)
    >>> round(mf.learning.gaussian_independence(moments, "a", "c").statistic, 3)
    3.769
    """
    moments = read_moments(data, weights=weights, what="gaussian_independence")
    known = [given] if isinstance(given, (str, int)) else list(given)
    asked = [a, b, *known]
    if len(set(asked)) != len(asked):
        raise ModelError(f"gaussian_independence needs different variables, got {asked!r}")
    part = moments.among(asked)
    s = part.correlation
    left = _freedom(part, len(known))
    if known:
        if log_determinant(s[2:, 2:]) == -math.inf:
            raise ModelError(not_definite(s[2:, 2:], known, "the correlation matrix of what is given"))
        s = s[:2, :2] - s[:2, 2:] @ np.linalg.solve(s[2:, 2:], s[2:, :2])
    r = float(np.clip(s[0, 1] / math.sqrt(s[0, 0] * s[1, 1]), -1.0, 1.0)) if min(s[0, 0], s[1, 1]) > 0 else 0.0
    angle = math.atanh(r) if abs(r) < 1 else math.copysign(math.inf, r)
    half = 1.959963984540054 / math.sqrt(left)
    return GaussianTest(
        correlation=r,
        statistic=math.sqrt(left) * angle,
        p_value=float(_two_sided(math.sqrt(left) * angle)),
        low=math.tanh(angle - half),
        high=math.tanh(angle + half),
    )
