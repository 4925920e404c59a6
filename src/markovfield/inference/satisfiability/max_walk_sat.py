"""MaxWalkSAT: decoding by repairing one factor that is not satisfied after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.constants.scale import score_scale
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search import LocalSearch, searched
from markovfield.inference.satisfiability.walk_kernel import (
    Lists,
    Parts,
    fill_tops,
    label_components,
    unsatisfied,
    walk,
)
from markovfield.kernels.random import streams

__all__ = ["MaxWalkSAT", "parts_of"]

# Factors looked at in one call of a kernel, about a tenth of a second; and how many shards components are cut into.
CHUNK, SHARDS = 2**20, 16
# Steps for each variable, and for a component however small.
STEPS_EACH, LEAST_STEPS, MOST_STEPS = 200, 50, 10**7


@dataclass(frozen=True)
class MaxWalkSAT:
    """A random walk that repairs unsatisfied factors (Kautz, Selman and Jiang 1997), in each connected component apart.

    A factor is satisfied where it reads its largest log-potential: a clause of positive weight where a literal of it
    holds, one of negative weight where none does, any other formula or table likewise. A step takes one that is not, at
    random and broken constraints first, and changes one of its variables: the one that gains most, among those that
    have not moved of late, or, with the probability ``noise``, any. Gains are kept at hand, so that a step costs the
    factors of one variable times what they hold, however many factors there are. Components are searched apart, each
    in proportion to its size: the best of a whole is the best of each part, which one walk over all of them never has
    at the same time (Niu and others 2011). They run on threads.

    Where most factors cannot be satisfied at once, as in ground networks of learned weights, a walk stays far from its
    best. So half of the steps are shakes: a few neighbouring variables around an unsatisfied factor are changed at
    random, the rest climbs, and what was no better is undone.

    Assignments are compared by the constraints that they break first, and by their score second. The gap is to the sum
    of the largest log-potentials: where all factors are satisfied at once, the answer is proven to be the best.

    Parameters
    ----------
    steps
        Changes in all, over all components and restarts; None is 200 for each variable and at most 10^7.
    noise
        The probability of a change at random.
    tenure
        For how many steps a variable that moved stays, unless that gives the best assignment so far.
    restarts
        After the first walk, which begins where climbing ends, so many begin at random; steps are shared out evenly.
    shaken
        Variables that one shake changes; 0 for walks alone.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_clause({"A": 1, "B": 1}, weight=2.0)
    >>> _ = net.add_clause({"C": 1}, {"B": 1}, weight=1.0)
    >>> answer = mf.decode(net, method=mf.methods.MaxWalkSAT(), rng=0)
    >>> answer.score, answer.optimal
    (3.0, True)
    """

    steps: int | None = None
    noise: float = 0.2
    tenure: int = 5
    restarts: int = 1
    shaken: int = 8

    name: ClassVar[str] = "max_walk_sat"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(
            self, least={"steps": 1, "noise": 0, "tenure": 0, "restarts": 0, "shaken": 0}, below={"noise": 1 + 1e-9}
        )

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Climb, walk, then shake what is not satisfied."""
        tops: list[npt.NDArray[np.float64]] = []

        def search(found: LocalSearch) -> int:
            n = graph.n_variables
            parts = parts_of(found)
            tops.append(parts.top)
            found.climb(np.arange(n), running)
            steps = self.steps if self.steps is not None else min(MOST_STEPS, STEPS_EACH * n)
            own = _Walk(found, parts, rng)
            shakes = steps // 2 if self.shaken else 0
            own.run(self, max(1, steps - shakes), running)
            found.shake(shakes, self.shaken, rng, running, own.starts)
            return steps

        def bound(found: LocalSearch) -> tuple[float, float]:
            if not tops:
                return np.inf, 0.0
            likely = sum(float(vector.max()) for _, vector in evidence.likelihoods)
            scale = score_scale(graph, evidence)
            return float(tops[0].sum()) + likely, scale.slack

        return searched(self, graph, evidence, running, init, rng, search, bound)


def _grouped(label: npt.NDArray[np.int64], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What has each label, in order, and where each label's begins; entries of -1 are left out."""
    kept = np.flatnonzero(label >= 0)
    order = kept[np.argsort(label[kept], kind="stable")]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(label[kept], minlength=count), out=offsets[1:])
    return order, offsets


def parts_of(found: LocalSearch) -> Parts:
    """The connected components of what evidence leaves free, and what satisfies each factor."""
    s, at = found.graph.structure, found.factors
    component = np.empty(s.n_variables, np.int64)
    count = label_components(at, component)
    owner = np.full(s.n_factors, -1, np.int64)
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    of_axis = component[s.scopes]
    owner[factor[of_axis >= 0]] = of_axis[of_axis >= 0]
    variables, variable_offsets = _grouped(component, count)
    factors, factor_offsets = _grouped(owner, count)
    top = np.empty(s.n_factors)
    fill_tops(at, found.states.copy(), top)
    return Parts(variable_offsets, variables, factor_offsets, factors, top)


class _Walk:
    """The lists of a search, and its shards: components one after the other, cut where the work is about the same."""

    def __init__(self, found: LocalSearch, parts: Parts, rng: np.random.Generator) -> None:
        self.found, self.parts = found, parts
        s, count = found.graph.structure, len(parts.variable_offsets) - 1
        self.lists = Lists(
            np.full(s.n_factors, -1, np.int64),
            np.empty(len(parts.factors), np.int64),
            np.zeros((count, 2), np.int64),
            np.zeros((count, 4)),
            found.states.copy(),
            np.empty(len(parts.variables), np.int64),
            np.zeros(count, np.int64),
            np.zeros(s.n_variables, np.int64),
        )
        shares = np.linspace(0, len(parts.variables), min(SHARDS, count) + 1)[1:-1]
        cuts = np.searchsorted(parts.variable_offsets, shares)
        self.cuts = np.unique(np.concatenate([[0], cuts, [count]])).astype(np.int64)
        self.streams = streams(rng, max(1, len(self.cuts) - 1))

    def run(self, method: MaxWalkSAT, steps: int, running: Running) -> None:
        """All walks, of about so many steps together; the best of each component is kept."""
        parts, found = self.parts, self.found
        sizes = np.diff(parts.variable_offsets)
        if not len(sizes):
            return
        share = steps / (method.restarts + 1)
        each = np.maximum(np.ceil(share * sizes / sizes.sum()), min(LEAST_STEPS, share)).astype(np.int64)
        for attempt in range(method.restarts + 1):
            if not found.best_broken and found.best_score >= parts.top.sum():
                break
            self.lists.best[:] = found.states
            try:
                self._round(-np.maximum(each, 1), attempt > 0, method, running)
            finally:
                found.move_to(self.lists.best)
        found.climb(np.arange(len(found.states)), running)

    def starts(self) -> npt.NDArray[np.int64]:
        """Variables of factors that are not satisfied now."""
        out = np.empty(len(self.parts.factors), np.int64)
        return out[: unsatisfied(self.found.factors, self.parts, self.streams[0], self.found.totals, out)]

    def _round(self, left: npt.NDArray[np.int64], renew: bool, method: MaxWalkSAT, running: Running) -> None:
        """One walk in every component, ``left`` says how long; those that are satisfied as they are stay."""
        found, parts, lists = self.found, self.parts, self.lists
        lists.places[:] = -1
        for zeros in (lists.sizes, lists.record, lists.n_moved):
            zeros[:] = 0

        def shard(k: int) -> int:
            a, b = int(self.cuts[k]), int(self.cuts[k + 1])
            begin = a + int(np.flatnonzero(left[a:b])[0])
            walk(
                found.factors, parts, lists, begin, b, left, np.bool_(renew), method.noise, method.tenure, CHUNK,
                self.streams[k], *found.gains,
            )  # fmt: skip
            return 0

        while True:
            waiting = [k for k in range(len(self.cuts) - 1) if left[self.cuts[k] : self.cuts[k + 1]].any()]
            if not waiting:
                return
            running.side_by_side([partial(shard, k) for k in waiting])
            better = lists.record[:, :2].sum(axis=0)
            running.check(found.best_score + float(better[1]))
