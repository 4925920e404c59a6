"""Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013) with planes that are kept (Shah et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, MarginPass, Watch
from markovfield.learning.max_margin.working_set import WorkingSet
from markovfield.learning.solvers.checkpoint import Checkpoint, Keeper, State, check_same

__all__ = ["BlockFrankWolfe"]

# Sweeps over planes that are kept go on while one raises the dual by more than this part of what the pass before did:
# what a sweep costs of a pass, about.
WORTH = 0.3
# Steps on a block at each visit.
VISIT = 20


@dataclass(frozen=True)
class BlockFrankWolfe:
    """Ascent of the dual, a shard of blocks at a time.

    The oracle is asked of the blocks of a shard, and the mass of each moves to its new plane, and among those it has,
    with an exact line search. After every pass, planes that are kept are gone through without the oracle, as long as
    that pays. Now and then, and before it ends, a pass is made at fixed weights, which tells the true primal.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all blocks.
    steps
        ``"pairwise"``: mass moves from the worst plane that has some to the best. ``"away"``: from all to the best, or
        from the worst to all, whichever gains more. ``"toward"``: from all to the best, the plain algorithm.
    sampling
        ``"permuted"``: a pass goes over all shards in some order. ``"gap"``: it draws as many, those with large gaps
        more often (Osokin et al. 2016).
    sweeps
        At most so many sweeps over planes that are kept after each pass; 0 is the algorithm without a cache.
    averaged
        Whether the weights are the average over all shards seen, later ones counting for more (weights t); of use
        without sweeps, where the last weights are noisy.
    check_every
        Passes from one at fixed weights to the next.
    keep
        Planes without mass are forgotten after so many passes.
    checkpoint
        None, or a `Checkpoint`: a file with all planes and masses, written now and then and where training is stopped,
        and gone on from when it is there.

    Notes
    -----
    A pass costs a call of the oracle for each block, and a sweep as much as the features of planes that are kept. The
    dual rises at every step; it is within e of the optimum after O(1 / e) passes, and sooner with ``"pairwise"`` or
    ``"away"``, whose rate is linear (Lacoste-Julien and Jaggi 2015).

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=BlockFrankWolfe(gap=1e-4), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    gap: float = 1e-3
    max_passes: int = 500
    steps: Literal["pairwise", "away", "toward"] = "pairwise"
    sampling: Literal["permuted", "gap"] = "permuted"
    sweeps: int = 10
    averaged: bool = False
    check_every: int = 5
    keep: int = 2
    checkpoint: Checkpoint | None = None

    name: ClassVar[str] = "block_frank_wolfe"

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_passes": 1, "sweeps": 0, "check_every": 1, "keep": 1, "gap": 0.0},
            choices={"steps": ("pairwise", "away", "toward"), "sampling": ("permuted", "gap")},
        )

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch = Watch(problem, running)
        kept = WorkingSet(problem.costs, problem.n_weights, self.steps, problem.restraint)
        mean, seen = np.zeros(problem.n_weights), 0
        gaps = np.full(len(problem.shards), np.inf)
        message = "as many passes as were allowed"
        keeper, first = Keeper(self.checkpoint, self.name), 0
        state = keeper.read(problem.n_weights)
        if state is not None:
            first, seen, mean = int(state["step"]), int(state["seen"]), state["mean"].copy()
            kept.restore(state)
            _restore(watch, state)

        def now(step: int) -> State:
            return {"step": step, "seen": seen, "mean": mean, **_state(watch), **kept.state()}

        step = first
        try:
            if state is not None:
                known = watch.primal
                check_same(watch.everywhere(watch.weights)[1], [known])
            for step in range(first, self.max_passes):
                if step > first:
                    keeper.offer(partial(now, step))
                before = kept.dual
                if step % self.check_every == 0 or gaps.sum() <= self.gap * kept.dual:
                    kept.refresh()
                    before = kept.dual
                    found, primal = watch.everywhere(mean if self.averaged else kept.w)
                    watch.note(primal, kept.dual)
                    if watch.closed(kept.dual, self.gap):
                        break
                    order = range(len(found))
                else:
                    found, order = [], self._order(gaps, rng).tolist()
                for shard in order:
                    planes = found[shard] if found else watch.planes(kept.w, shard)
                    gaps[shard] = float(kept.add(planes, VISIT)[0].sum())
                    if self.averaged:
                        seen += 1
                        mean += 2.0 / (seen + 1.0) * (kept.w - mean)
                if not found:
                    watch.note(np.nan, kept.dual)
                if self.sweeps:
                    kept.settle(rng, WORTH * (kept.dual - before), self.sweeps)
                kept.forget(self.keep)
            else:
                step = max(first, self.max_passes)
                watch.everywhere(mean if self.averaged else kept.w)
        except STOPS as stop:
            message = watch.stopped(stop, kept.w)
        if watch.history:
            keeper.offer(partial(now, step), now=True)
        return watch.ended(kept.dual, self.gap, message, n_planes=kept.n_planes)

    def _order(self, gaps: FloatArray, rng: np.random.Generator) -> IntArray:
        """The shards of a pass."""
        n, total = len(gaps), float(gaps.sum())
        if self.sampling == "permuted" or not np.isfinite(total) or not total > 0.0:
            return rng.permutation(n)
        # Estimates are of other weights: a tenth of the draws is of all shards alike.
        found: IntArray = rng.choice(n, n, p=0.9 * gaps / total + 0.1 / n)
        return found


def _state(watch: Watch) -> State:
    """What was seen so far."""
    history = np.array([[one.oracle_calls, one.seconds, one.primal, one.dual] for one in watch.history])
    return {
        "weights": watch.weights, "primal": watch.primal, "calls": watch.calls, "history": history,
        "oracle_seconds": watch.oracle_seconds,
    }  # fmt: skip


def _restore(watch: Watch, state: State) -> None:
    watch.weights, watch.primal, watch.calls = state["weights"].copy(), float(state["primal"]), int(state["calls"])
    watch.oracle_seconds = float(state["oracle_seconds"])
    for calls, seconds, primal, dual in state["history"].reshape(-1, 4).tolist():
        watch.history.append(MarginPass(int(calls), seconds, primal, dual))
