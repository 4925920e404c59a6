"""Block-coordinate Frank-Wolfe with a kernel of inputs: coefficients of tokens and labels in place of weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.mass_steps_kernel import mass_steps
from markovfield.learning.max_margin.multiclass import GramBlocks
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Planes, Watch

__all__ = ["KernelFrankWolfe", "KernelPlaces"]

# Steps on a block at each visit, and the share of a shard's first gap below which other shards have more to give.
STEPS, LITTLE = 50, 0.1
# Sweeps over the planes that a shard has, which end where one gains less than this share of its gap, if it is the only
# shard; of n shards there are n times fewer, as the others move the optimum of each.
SWEEPS, LEAST_SWEEPS, WORTH, MOST_WORTH = 1000, 10, 1e-4, 0.01


@dataclass(frozen=True, eq=False)
class KernelPlaces:
    """Which weights of a problem are scores of tokens and labels; all others stay weights.

    Attributes
    ----------
    nodes
        ``int64[n_tokens, n_labels]``: places in the vector of weights.
    offsets
        ``int64[n_blocks + 1]``: the tokens of each block.
    """

    nodes: IntArray
    offsets: IntArray

    def parts(self, shards: list[IntArray]) -> list[slice]:
        """The tokens of each shard."""
        return [slice(int(self.offsets[shard[0]]), int(self.offsets[shard[-1] + 1])) for shard in shards]


@dataclass(frozen=True)
class KernelFrankWolfe:
    """Ascent of the dual with a kernel of inputs, a shard of examples at a time.

    Scores of tokens are ``K @ coefficients``, a coefficient for each token of the training data and each label; tables
    of neighbours keep weights. A shard is asked of the oracle as that of a linear model is, whose weights of tokens are
    their scores; the mass of each example then moves among its planes, with an exact line search.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all examples.
    visits
        At most so many calls of the oracle for an example while the inner products of its shard are at hand.
    check_every
        Passes from one at fixed weights, which tells the primal, to the next.
    keep
        Planes without mass are forgotten after so many visits.
    memory_limit
        Bytes (or like ``"4GiB"``) of inner products that are kept from pass to pass; others are worked out again.

    Notes
    -----
    A pass costs ``n_tokens^2`` times labels, and as many inner products where they are not kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [np.array([[0.0], [1.0], [2.0], [3.0]])], [["a", "b", "b", "a"]]
    >>> svm = mf.ChainSSVM(100.0, kernel="rbf", solver=KernelFrankWolfe(gap=1e-4), rng=0).fit(X, y)
    >>> svm.predict(X), svm.report_.converged
    ([['a', 'b', 'b', 'a']], True)
    """

    gap: float = 1e-3
    max_passes: int = 500
    visits: int = 5
    check_every: int = 5
    keep: int = 10
    memory_limit: float | str = "1GiB"

    name: ClassVar[str] = "kernel_frank_wolfe"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "visits": 1, "check_every": 1, "keep": 1, "gap": 0.0})
        memory_limit_bytes(self.memory_limit)

    def run_kernel(
        self, problem: HingeProblem, gram: GramBlocks, places: KernelPlaces, *, rng: np.random.Generator,
        running: Running,
    ) -> MarginMinimum:  # fmt: skip
        """Minimise; weights of tokens come as coefficients. Blocks of ``gram`` are the tokens of shards."""
        if problem.restraint is not None:
            raise ModelError("a kernel takes no l1 and no weights that must not be negative")
        watch, kept = Watch(problem, running), _Coefficients(problem, gram, places, self.keep)
        gaps, message = np.full(len(problem.shards), np.inf), "as many passes as were allowed"
        try:
            for step in range(self.max_passes + 1):
                if step % self.check_every == 0 or step == self.max_passes or gaps.sum() <= self.gap * kept.dual:
                    primal = kept.primal(watch)
                    if primal < watch.primal:
                        watch.primal, watch.weights = primal, kept.a.copy()
                    watch.note(primal, kept.dual)
                    if watch.closed(kept.dual, self.gap):
                        break
                else:
                    watch.note(np.nan, kept.dual)
                if step < self.max_passes:
                    for shard in rng.permutation(len(gaps)).tolist():
                        gaps[shard] = kept.visit(watch, shard, self.visits, rng)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        return watch.ended(kept.dual, self.gap, message, n_planes=sum(len(one.losses) - 1 for one in kept.blocks))


@dataclass(eq=False)
class _Block:
    """The planes of an example, the first of them that of the truth."""

    tokens: slice
    masses: FloatArray
    nodes: FloatArray
    losses: FloatArray = field(default_factory=lambda: np.zeros(1))
    gram: FloatArray = field(default_factory=lambda: np.zeros((1, 1)))
    idle: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))
    others: list[tuple[IntArray, FloatArray]] = field(default_factory=lambda: [(np.zeros(0, np.int64), np.zeros(0))])

    def heights(self, scores: FloatArray, w: FloatArray) -> FloatArray:
        """``loss - <w, features>`` of each plane, by the scores of the example's tokens."""
        linear = np.array([float(w[columns] @ values) for columns, values in self.others])
        return np.asarray(self.losses - self.nodes @ scores.ravel() - linear)

    def add(self, nodes: FloatArray, other: tuple[IntArray, FloatArray], loss: float, own: FloatArray,
            scratch: FloatArray) -> None:  # fmt: skip
        """One more plane, with its inner products with all there are."""
        t = own.shape[0]
        image = (own @ nodes.reshape(t, -1)).ravel()
        scratch[other[0]] = other[1]
        row = self.nodes @ image + [float(scratch[columns] @ values) for columns, values in self.others]
        corner = float(nodes @ image) + float(other[1] @ other[1])
        scratch[other[0]] = 0.0
        self.gram = np.block([[self.gram, row[:, None]], [row[None, :], np.array([[corner]])]])
        self.nodes, self.losses = np.vstack([self.nodes, nodes]), np.append(self.losses, loss)
        self.masses, self.idle = np.append(self.masses, 0.0), np.append(self.idle, 0)
        self.others.append(other)

    def forget(self, most: int) -> None:
        """Drop planes that have had no mass for so many visits."""
        self.idle = np.where(self.masses > 0.0, 0, self.idle + 1)
        left = self.idle <= most
        left[0] = True
        if left.all():
            return
        self.gram = np.ascontiguousarray(self.gram[np.ix_(left, left)])
        self.nodes, self.losses, self.masses = self.nodes[left], self.losses[left], self.masses[left]
        self.idle, self.others = self.idle[left], [one for one, stays in zip(self.others, left, strict=True) if stays]


class _Coefficients:
    """Planes of all examples, and the coefficients and weights that their masses make.

    ``a`` has coefficients where ``w`` has scores of tokens, which are those of the shard visited last; elsewhere both
    are the same weights. ``dual`` never falls.
    """

    def __init__(self, problem: HingeProblem, gram: GramBlocks, places: KernelPlaces, keep: int) -> None:
        self.problem, self.gram, self.places, self.keep = problem, gram, places, keep
        n_labels = places.nodes.shape[1]
        self.a, self.w, self.scratch = (np.zeros(problem.n_weights) for _ in range(3))
        self.alpha = np.zeros(places.nodes.shape)
        # The token and label of each place, and -1 for weights of other things.
        self._cell = np.full(problem.n_weights, -1, np.int64)
        self._cell[places.nodes.ravel()] = np.arange(places.nodes.size)
        self.dual = 0.0
        self.blocks = [
            _Block(slice(first, last), np.array([cost]), np.zeros((1, (last - first) * n_labels)))
            for (first, last), cost in zip(pairwise(places.offsets.tolist()), problem.costs.tolist(), strict=True)
        ]

    def primal(self, watch: Watch) -> float:
        """The objective at the weights as they are; the dual is worked out anew, without what rounding added up to."""
        square, hinges = 0.0, 0.0
        for number, part in enumerate(self.gram.parts):
            scores = self._placed(number, self.gram.block(number))
            square += float((self.alpha[part] * scores).sum())
            planes = watch.planes(self.w, number)
            hinges += float(self.problem.costs[planes.blocks] @ np.maximum(planes.heights(self.w), 0.0))
        self.a[self.places.nodes] = self.alpha
        linear = self.w[self._cell < 0]
        square += float(linear @ linear)
        self.a[self._cell < 0] = linear
        self.dual = sum(float(one.masses @ one.losses) for one in self.blocks) - 0.5 * square
        return 0.5 * square + hinges

    def _placed(self, number: int, rows: FloatArray) -> FloatArray:
        """The scores of a shard's tokens, put where the oracle reads them."""
        scores = np.ascontiguousarray(rows @ self.alpha)
        self.w[self.places.nodes[self.gram.parts[number]]] = scores
        return scores

    def visit(self, watch: Watch, number: int, visits: int, rng: np.random.Generator) -> float:
        """Planes for the examples of a shard, and steps; its gap at first."""
        part, rows = self.gram.parts[number], self.gram.block(number)
        own, scores = np.ascontiguousarray(rows[:, part]), self._placed(number, rows)
        first, which, n = np.inf, self.problem.shards[number], len(self.problem.shards)
        for visit in range(visits):
            if visit:
                self.w[self.places.nodes[part]] = scores
            planes = watch.planes(self.w, number)
            gap = self._added(planes, own, scores, part.start)
            first = gap if visit == 0 else first
            if gap <= LITTLE * first and visit:
                break
            for _ in range(max(LEAST_SWEEPS, SWEEPS // n)):
                rise = sum(self._steps(self.blocks[i], own, scores, part.start) for i in rng.permutation(which))
                if rise <= min(MOST_WORTH, n * WORTH) * gap:
                    break
        for i in which.tolist():
            self.blocks[i].forget(self.keep)
        return float(first)

    def _added(self, planes: Planes, own: FloatArray, scores: FloatArray, start: int) -> float:
        """Keep planes that are higher than what their example has; the gap of the shard."""
        gap, n_labels = 0.0, scores.shape[1]
        heights = planes.heights(self.w)
        for k, i in enumerate(planes.blocks.tolist()):
            one, cut = self.blocks[i], slice(int(planes.offsets[k]), int(planes.offsets[k + 1]))
            here = slice(one.tokens.start - start, one.tokens.stop - start)
            known = one.heights(scores[here], self.w)
            gap += self.problem.costs[i] * max(float(heights[k]), 0.0) - float(one.masses @ known)
            if not heights[k] > known.max() + 1e-12:
                continue
            columns, values = planes.columns[cut], planes.values[cut]
            cell = self._cell[columns]
            nodes = np.zeros(one.nodes.shape[1])
            np.add.at(nodes, cell[cell >= 0] - one.tokens.start * n_labels, values[cell >= 0])
            other = (columns[cell < 0], values[cell < 0])
            one.add(nodes, other, float(planes.losses[k]), own[here, here], self.scratch)
        return gap

    def _steps(self, one: _Block, own: FloatArray, scores: FloatArray, start: int) -> float:
        """Mass moves among the planes of an example."""
        if len(one.losses) == 1:
            return 0.0
        here = slice(one.tokens.start - start, one.tokens.stop - start)
        before = one.masses.copy()
        rise = float(mass_steps(one.gram, one.heights(scores[here], self.w), one.masses, STEPS, 1e-14))
        moved = one.masses - before
        if not moved.any():
            return 0.0
        change = (moved @ one.nodes).reshape(-1, scores.shape[1])
        self.alpha[one.tokens] += change
        scores += own[:, here] @ change
        for mass, (columns, values) in zip(moved.tolist(), one.others, strict=True):
            # A column comes once in a plane.
            self.w[columns] += mass * values
        self.dual += rise
        return rise
