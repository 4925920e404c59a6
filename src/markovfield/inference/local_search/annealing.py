"""Simulated annealing: heat-bath sweeps at a falling temperature, then a climb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search import (
    CHUNK,
    LocalSearch,
    searched,
)
from markovfield.inference.local_search.local_search_kernel import (
    anneal,
)
from markovfield.kernels.random import streams

__all__ = ["SimulatedAnnealing"]


@dataclass(frozen=True)
class SimulatedAnnealing:
    """Simulated annealing: heat-bath sweeps at a falling temperature, then a climb (Kirkpatrick et al. 1983).

    A sweep costs as much as one of Gibbs sampling. A broken hard constraint costs ``penalty`` times the largest spread
    of a table.

    Parameters
    ----------
    sweeps
        Sweeps over all variables in one run.
    start, end
        First and last temperature; None sets them from the potentials: a tenth of all changes refused, nearly all.
    runs
        Independent runs; the best end is the answer.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> round(mf.decode(model, method=mf.methods.SimulatedAnnealing(sweeps=200), rng=0).score, 6)
    60.0
    """

    sweeps: int = 500
    start: float | None = None
    end: float | None = None
    runs: int = 1
    penalty: float = 2.0

    name: ClassVar[str] = "simulated_annealing"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        scales = ("start", "end", "penalty")
        above, below = dict.fromkeys(scales, 0.0), dict.fromkeys(scales, np.inf)
        check_method(self, least={"sweeps": 1, "runs": 1}, above=above, below=below)

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Cool down, as often as ``runs`` says."""

        def search(found: LocalSearch) -> int:
            s = graph.structure
            everyone = np.arange(s.n_variables)
            first, last = self._temperatures(found)
            cooling = (last / first) ** (1.0 / max(1, self.sweeps - 1))
            at_once = max(1, CHUNK // max(1, int(s.value_offsets[-1])))
            # What a broken constraint costs: more than keeping it can lose in any one factor.
            finite = graph.log_tables
            finite = finite[np.isfinite(finite)]
            penalty = self.penalty * max(1.0, float(np.ptp(finite)) if len(finite) else 1.0)
            for run in range(self.runs):
                stream = streams(rng, 1)[0]
                if run:
                    found.move_to((rng.random(s.n_variables) * s.cardinalities).astype(np.int64))
                temperature, left = first, self.sweeps
                while left:
                    now = min(left, at_once)
                    temperature = anneal(found.factors, temperature, penalty, now, cooling, stream, *found.gains)
                    left -= now
                    found.renew()
                    running.check(found.best_score)
                found.climb(everyone, running)
            return self.sweeps * self.runs

        return searched(self, graph, evidence, running, init, rng, search)

    def _temperatures(self, found: LocalSearch) -> tuple[float, float]:
        """From a temperature at which an average change is taken to one at which the smallest hardly is."""
        s = found.graph.structure
        owner = np.repeat(np.arange(s.n_variables), s.cardinalities)
        tops = np.maximum.reduceat(found.soft, s.value_offsets[:-1]) if s.n_variables else np.zeros(0)
        losses = tops[owner] - found.soft
        losses = losses[losses > 1e-12]
        if not len(losses):
            return self.start or 1.0, self.end or 1e-2
        start = self.start or float(np.quantile(losses, 0.9)) / 2
        end = self.end or max(float(np.quantile(losses, 0.05)) / 10, 1e-6 * start)
        return start, min(end, start)
