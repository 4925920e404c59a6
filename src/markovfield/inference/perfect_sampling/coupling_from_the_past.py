"""Coupling from the past: samples that are exact, of models that are monotone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method, whole_number
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.perfect_sampling.monotone import MonotoneModel
from markovfield.inference.perfect_sampling.monotone_kernel import DONE, MORE, NOT_MET, Past, perfect
from markovfield.kernels.random import streams

__all__ = ["CouplingFromThePast"]

MOVES = ("auto", "spins", "bonds")
# Samples that a task draws, one after the other, and tasks that are begun at once; neither depends on the threads.
SAMPLES_IN_A_TASK, TASKS_AT_ONCE = 64, 64
# Pairs looked at between two looks at the clock, about 50 ms; the pilot begins with fewer.
BUDGET, PILOT_BUDGET = 2**23, 2**16
MOST_DOUBLINGS = 60
# From so many samples on, one more is drawn first to see what they will cost; and the most sweeps they may take in all.
# Lattices take some hundred for each sample; where they are many more, a barrier holds the chains apart.
PILOT_FROM, MOST_SWEEPS = 8, 2.0**28


@dataclass(frozen=True)
class CouplingFromThePast:
    """Exact, independent samples by monotone coupling from the past (Propp and Wilson 1996).

    Two heat-bath Markov chains with the same random numbers start from the highest and the lowest state, 2^k sweeps in
    the past. Every other chain stays between them, so where they meet by time zero, the state there is that of a chain
    which has run for ever: a draw from the model itself, with no burn-in to guess. Where they have not met, they start
    twice as far back, and the later sweeps use the same random numbers again.

    The chains are of *spins*, for models of two-state variables with finite potentials of pairs and any fields, whose
    couplings are all at least zero once some variables are flipped: ferromagnets, and antiferromagnets without
    frustrated cycles, such as on a grid. Or they are of the *bonds* of the random-cluster model, from which states
    follow: for the same models and for Potts models of any number of states, where all fields within a
    connected component favour the same state (of flipped variables, the flipped one), or there are none.

    A sweep of spins takes some nanoseconds for each pair. On a grid a few dozen are enough well below the critical
    coupling, but above it exponentially many unless a field decides. A sweep of bonds searches for
    detours around them, and takes ten to a hundred times as long, but few are needed on either side of the
    critical coupling. How long a sample takes depends on what it is, so to stop early would bias those at hand: past
    the time limit nothing is answered. Strong couplings under fields that disagree leave only spins, which may then
    take for ever, even three of them: a pilot run, the same for every seed, finds that out, and there is an error
    where its chains do not meet or the samples asked for would take more than 2^28 sweeps.

    Parameters
    ----------
    moves
        ``"spins"``, ``"bonds"`` or ``"auto"``: what a pilot run, the same for every seed, finds to be done first.
    max_doublings
        How often the start may be moved back, from one sweep on.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> drawn = mf.sample(net, 1000, {"A": 1}, method=CouplingFromThePast(), rng=0)
    >>> drawn.guarantee, bool(abs(drawn["B"].mean() - mf.marginals(net, {"A": 1})["B"][1]) < 0.06)
    ('exact', True)
    """

    moves: str = "auto"
    max_doublings: int = 20

    name: ClassVar[str] = "coupling_from_the_past"
    exact: ClassVar[bool] = True
    needs: ClassVar[str] = "monotone"
    verbs: ClassVar[frozenset[str]] = frozenset({"sample"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, choices={"moves": MOVES})
        whole_number(self.max_doublings, "max_doublings of CouplingFromThePast", 0, MOST_DOUBLINGS)

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Independent exact samples; what stops the work early is raised."""
        monotone = MonotoneModel.of(graph, evidence, self.name)
        by_bonds = monotone.n > 0 and self._by_bonds(monotone, size, running)
        drawn = np.zeros((size, monotone.n), np.int32)
        sweeps = self._draw(monotone, by_bonds, drawn, streams(rng, size), running) if monotone.n else 0
        states = monotone.states(drawn, by_bonds, rng)
        states.flags.writeable = False
        return Samples(
            graph=graph,
            states=states,
            method=self.name,
            iterations=sweeps,
            seconds=running.seconds,
        )

    def _by_bonds(self, monotone: MonotoneModel, size: int, running: Running) -> bool:
        """Whether to run Markov chains of bonds; the choice must not depend on how the samples themselves go."""
        if self.moves == "spins" and not monotone.has_spins:
            raise ModelError(f"{self.name} moves spins of two-state variables only: use moves='bonds'")
        if self.moves == "bonds" and not monotone.has_bonds:
            raise ModelError(
                f"{self.name} moves bonds where there are pairs and the fields within each connected component favour "
                "the same state: use moves='spins'"
            )
        both = self.moves == "auto" and monotone.has_bonds and monotone.has_spins
        only = self.moves == "bonds" or not monotone.has_spins
        if not both and size < PILOT_FROM:
            return only
        pasts = [_past(monotone.n_chained(by_bonds), self.max_doublings + 1) for by_bonds in (False, True)]
        states, own = np.zeros((1, monotone.n), np.int32), streams(np.random.default_rng(0), 1)
        pilots = [partial(perfect, *monotone.graphs(k)) for k in (False, True)]
        budget, left = PILOT_BUDGET, [0, 1] if both else [int(only)]
        while left:
            for k in tuple(left):
                running.check()
                # The streams are used up to the seeds that are kept with the past, so both may begin with the same.
                status = pilots[k](budget, own.copy(), pasts[k], states)
                if status == DONE:
                    self._check_sweeps(size, pasts[k].sweeps)
                    return k == 1
                if status == NOT_MET:
                    left.remove(k)
            budget = min(2 * budget, BUDGET)
        raise self._not_met()

    def _check_sweeps(self, size: int, one: int) -> None:
        """Refuse what would take very long, by the sweeps that one sample took."""
        if size * one > MOST_SWEEPS:
            raise ModelError(
                f"{size} samples of {self.name} would take about {size * one:.1e} sweeps, since one takes {one}: draw "
                "fewer, or use junction_tree or swendsen_wang"
            )

    def _not_met(self) -> ModelError:
        return ModelError(
            f"the chains have not met within 2^{self.max_doublings} sweeps, so no exact sample can be drawn: raise "
            "max_doublings, or use junction_tree or swendsen_wang"
        )

    def _draw(
        self,
        monotone: MonotoneModel,
        by_bonds: bool,
        states: npt.NDArray[np.int32],
        own: npt.NDArray[np.uint64],
        running: Running,
    ) -> int:
        """Fill the rows of ``states``, each by a stream of its own; answers how many sweeps that took in all."""
        size = len(states)
        statuses: dict[int, int] = {}
        total = 0
        starts = list(range(0, size, SAMPLES_IN_A_TASK))
        while starts:
            now, starts = starts[:TASKS_AT_ONCE], starts[TASKS_AT_ONCE:]
            held = {
                k: (monotone.graphs(by_bonds), _past(monotone.n_chained(by_bonds), self.max_doublings + 1)) for k in now
            }

            def task(start: int, held: dict[int, Any] = held) -> int:
                part = slice(start, min(start + SAMPLES_IN_A_TASK, size))
                (spins, bonds), past = held[start]
                statuses[start] = perfect(spins, bonds, BUDGET, own[part], past, states[part])
                return 0

            while now:
                running.side_by_side([partial(task, start) for start in now])
                if any(statuses[start] == NOT_MET for start in now):
                    raise self._not_met()
                now = [start for start in now if statuses[start] == MORE]
            total += sum(past.sweeps for _, past in held.values())
        return total


def _past(n: int, levels: int) -> Past:
    chains = np.zeros((2, n), np.int8)
    return Past(np.zeros(9, np.int64), np.zeros((levels, 4), np.uint64), np.zeros(4, np.uint64), chains[0], chains[1])
