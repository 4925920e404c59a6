"""Decomposable Gaussian graphs by score: greedy steps of one edge, or a Markov chain over graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.learned_graph import EdgeMove, LearnedGraph
from markovfield.learning.core.penalties import what_stopped
from markovfield.learning.gaussian.goodness import log_determinant
from markovfield.learning.gaussian.hyper_wishart import hyper_inverse_wishart, log_constant, members_of, prior_scale
from markovfield.learning.gaussian.learned import learned_graph
from markovfield.learning.gaussian.moments import GaussianMoments, guard_dense, not_definite, read_moments

__all__ = ["DecomposableSearch"]

# A step must gain more than rounding.
LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class DecomposableSearch:
    """A decomposable graph of real-valued variables by its marginal likelihood, integrated in closed form.

    Edges come and go one by one, where the graph stays chordal; a step needs four determinants of small matrices, which
    are remembered (Giudici and Green 1999). Greedy steps end in a graph that no single edge betters. With ``samples`` a
    Metropolis chain over graphs goes on from there, and an edge's share of the graphs it visits estimates the edge's
    posterior probability. The field of the answer is the posterior mean of the precision on the graph.

    Parameters
    ----------
    score
        ``"marginal_likelihood"`` under a hyper-inverse-Wishart prior, or ``"bic"``.
    degrees, scale
        Of the prior, as for `hyper_inverse_wishart`.
    edge_probability
        The prior probability of each edge by itself, before the graph is known to be chordal.
    max_order
        No clique has more variables; None: as many as there are.
    samples, burn_in
        Proposals of the chain, and how many of its first are not counted; with samples ``details`` is
        ``{"frequencies": float64[n, n], "accepted": share}``, and edges are those of the best graph all the same.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x = np.random.default_rng(0).standard_normal((500, 5))
    >>> for v in range(1, 5):
    ...     x[:, v] += 0.5 * x[:, v - 1]
    >>> rows = dict(zip("abcde", x.T))
    >>> mf.learn_structure(rows, method="decomposable_search").edges
    (('a', 'b'), ('b', 'c'), ('c', 'd'), ('d', 'e'))
    """

    name: ClassVar[str] = "decomposable_search"
    form: ClassVar[str] = "GaussianMoments"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    score: Literal["marginal_likelihood", "bic"] = "marginal_likelihood"
    degrees: float = 3.0
    scale: npt.ArrayLike | None = None
    edge_probability: float = 0.5
    max_order: int | None = None
    samples: int = 0
    burn_in: int = 1000

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_order": 1, "samples": 0, "burn_in": 0},
            above={"degrees": 0, "edge_probability": 0},
            below={"edge_probability": 1},
            choices={"score": ("marginal_likelihood", "bic")},
        )

    def learn(self, data: Any, *, weights: Any, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Climb, then walk."""
        moments = read_moments(data, weights=weights, what=self.name)
        guard_dense(moments.n_variables, "DecomposableSearch", 3)
        search = _Search(moments, self)
        history, stop, details = [], None, None
        try:
            while (move := search.best(running)) is not None:
                a, b, gain = move
                kind = "delete" if search.near[a] >> b & 1 else "add"
                history.append(EdgeMove(kind, moments.variables[a], moments.variables[b], gain))
                search.flip(a, b)
        except STOPS as caught:
            stop = caught
        near = list(search.near)
        if self.samples and stop is None:
            try:
                details = search.walk(self.samples, self.burn_in, rng, running)
            except STOPS as caught:
                stop = caught
            near = search.top
        names, n = moments.variables, moments.n_variables
        pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if near[a] >> b & 1]
        edges = [(names[a], names[b]) for a, b in pairs]
        posterior = hyper_inverse_wishart(edges, moments, degrees=self.degrees, scale=self.scale)
        precision = posterior.mean_precision()
        value = posterior.log_marginal_likelihood if self.score == "marginal_likelihood" else search.total(near)
        roots = np.sqrt(np.diag(precision))
        return learned_graph(
            moments,
            precision,
            edges,
            [float(-precision[a, b] / roots[a] / roots[b]) for a, b in pairs],
            method=self.name,
            score=value + len(edges) * search.odds,
            score_name="log_marginal_likelihood" if self.score == "marginal_likelihood" else "bic",
            history=tuple(history),
            iterations=len(history),
            converged=stop is None,
            stopped=what_stopped(stop),
            details=details,
        )


class _Search:
    """A chordal graph as bits of neighbours, and what its neighbours would gain."""

    def __init__(self, moments: GaussianMoments, method: DecomposableSearch) -> None:
        self.moments, self.n = moments, moments.n_variables
        self.near = [0] * self.n
        self.most = method.max_order or self.n
        self.odds = math.log(method.edge_probability) - math.log1p(-method.edge_probability)
        self.bayes, self.degrees = method.score == "marginal_likelihood", method.degrees
        if self.bayes:
            self.prior = prior_scale(moments, method.degrees, method.scale)
            self.after = self.prior + moments.n_rows * moments.covariance
        self._sets: dict[int, float] = {0: 0.0}
        self.top, self._value, self._best = list(self.near), 0.0, 0.0

    def _of(self, mask: int) -> float:
        """What a clique adds to the score, or a separator takes off."""
        if mask not in self._sets:
            members = members_of(mask)
            at = np.ix_(members, members)
            k, rows = len(members), self.moments.n_rows
            if self.bayes:
                before = log_constant(self.degrees, log_determinant(self.prior[at]), k)
                after = log_constant(self.degrees + rows - 1, log_determinant(self.after[at]), k)
                found = before - after
            else:
                log_det = log_determinant(self.moments.covariance[at])
                if log_det == -math.inf:
                    names = [self.moments.variables[v] for v in members]
                    raise ModelError(
                        not_definite(self.moments.covariance[at], names, "the covariance of a clique")
                        + ": give max_order, or take score='marginal_likelihood'"
                    )
                found = -0.5 * rows * (log_det + k * (1 + math.log(2 * math.pi)))
                found -= 0.5 * math.log(rows) * k * (k + 3) / 2
            self._sets[mask] = found
        return self._sets[mask]

    def total(self, near: list[int]) -> float:
        """The score of a chordal graph, less the prior of its edges."""
        import networkx as nx

        from markovfield.graphs.decomposable import perfect_sequence

        graph = nx.Graph()
        graph.add_nodes_from(range(self.n))
        graph.add_edges_from((a, b) for a in range(self.n) for b in members_of(near[a]) if a < b)
        return sum(
            self._of(sum(1 << v for v in s.clique)) - self._of(sum(1 << v for v in s.separator))
            for s in perfect_sequence(graph)
        )

    def gain(self, a: int, b: int) -> float | None:
        """Of adding or deleting an edge; None where the graph would not stay chordal, or a clique be too large."""
        common = self.near[a] & self.near[b]
        one, two = 1 << a, 1 << b
        if self.near[a] >> b & 1:
            if any(common & ~(1 << v) & ~self.near[v] for v in members_of(common)):
                return None
            sign = -1.0
        else:
            if common.bit_count() + 2 > self.most or not self._separates(a, b, common):
                return None
            sign = 1.0
        return sign * (
            self._of(common | one | two)
            + self._of(common)
            - self._of(common | one)
            - self._of(common | two)
            + self.odds
        )

    def _separates(self, a: int, b: int, mask: int) -> bool:
        """Whether every path from a to b passes the set."""
        reached = border = 1 << a
        while border:
            v = border.bit_length() - 1
            border &= ~(1 << v)
            new = self.near[v] & ~reached & ~mask
            if new >> b & 1:
                return False
            reached |= new
            border |= new
        return True

    def flip(self, a: int, b: int) -> None:
        """Add the edge, or take it away."""
        self.near[a] ^= 1 << b
        self.near[b] ^= 1 << a

    def best(self, running: Running) -> tuple[int, int, float] | None:
        """The step of the largest gain."""
        found, most = None, LEAST_GAIN
        for a in range(self.n):
            running.check()
            for b in range(a + 1, self.n):
                gain = self.gain(a, b)
                if gain is not None and gain > most:
                    found, most = (a, b, gain), gain
        return found

    def walk(self, samples: int, burn_in: int, rng: np.random.Generator, running: Running) -> dict[str, Any]:
        """Metropolis steps over chordal graphs: propose a pair, flip it if the graph stays chordal."""
        counts: FloatArray = np.zeros((self.n, self.n))
        since = np.zeros((self.n, self.n), np.int64)
        self.top, accepted = list(self.near), 0
        value = best = 0.0
        pairs = self.n > 1
        for turn in range(samples + burn_in):
            if turn % 1000 == 0:
                running.check()
            if not pairs:
                break
            a, b = sorted(rng.choice(self.n, 2, replace=False).tolist())
            gain = self.gain(a, b)
            if gain is None or math.log(rng.random()) >= gain:
                continue
            if self.near[a] >> b & 1:
                counts[a, b] += max(turn - max(int(since[a, b]), burn_in), 0)
            since[a, b] = turn
            self.flip(a, b)
            accepted += 1
            value += gain
            if value > best + LEAST_GAIN:
                best, self.top = value, list(self.near)
        for a in range(self.n):
            for b in members_of(self.near[a] >> (a + 1) << (a + 1)):
                counts[a, b] += samples + burn_in - max(int(since[a, b]), burn_in)
        share = counts / max(samples, 1)
        return {"frequencies": share + share.T, "accepted": accepted / (samples + burn_in)}
