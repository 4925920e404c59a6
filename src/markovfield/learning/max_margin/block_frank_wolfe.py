"""Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013) with planes that are kept (Shah et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch
from markovfield.learning.max_margin.working_set import WorkingSet

__all__ = ["BlockFrankWolfe"]


@dataclass(frozen=True)
class BlockFrankWolfe:
    """Ascent of the dual, a shard of blocks at a time.

    The oracle is asked of the blocks of a shard, and the mass of each moves to its new plane by pairwise steps with
    an exact line search. After every pass, planes that are kept are gone through without the oracle, as long as that
    pays. Now and then, and before it ends, a pass is made at fixed weights, which tells the true primal.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all blocks.
    sweeps
        At most so many sweeps over planes that are kept after each pass; 0 is the plain algorithm.
    check_every
        Passes from one at fixed weights to the next.
    keep
        Planes without mass are forgotten after so many passes.
    """

    gap: float = 1e-3
    max_passes: int = 500
    sweeps: int = 10
    check_every: int = 5
    keep: int = 5

    name: ClassVar[str] = "block_frank_wolfe"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "sweeps": 0, "check_every": 1, "keep": 1, "gap": 0.0})

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch, kept = Watch(problem, running), WorkingSet(problem.costs, problem.n_weights)
        message, estimate = "as many passes as were allowed", np.inf
        try:
            for step in range(self.max_passes):
                fixed = step % self.check_every == 0 or estimate <= self.gap * kept.dual
                if fixed:
                    found, primal = watch.everywhere(kept.w)
                    watch.note(primal, kept.dual)
                    if watch.primal - kept.dual <= self.gap * abs(watch.primal):
                        break
                    for planes in found:
                        kept.add(planes)
                        kept.ascend(planes.blocks)
                    estimate = np.inf
                else:
                    estimate = 0.0
                    for shard in rng.permutation(len(problem.shards)).tolist():
                        planes = watch.planes(kept.w, shard)
                        estimate += float(kept.add(planes).sum())
                        kept.ascend(planes.blocks)
                    watch.note(np.nan, kept.dual)
                if self.sweeps:
                    kept.settle(rng, 0.1, self.sweeps)
                kept.forget(self.keep)
            else:
                watch.everywhere(kept.w)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
            if not len(watch.weights):
                watch.weights = kept.w.copy()
        return watch.ended(kept.dual, self.gap, message, n_planes=kept.n_planes)
