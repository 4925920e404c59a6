"""Fix some variables and solve for the others exactly: lower bounds that hard zeros do not spoil."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.mini_bucket.plan import Fill
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["Cutset"]

# What fixing a variable costs beyond the log of its belief, so that a sure one is not free.
LEAST_LOSS = 0.05
# Reductions tried to find values that hard zeros allow, and how much wider than asked a clique may turn out.
ATTEMPTS = 200
SLACK = 2.0


class Cutset:
    """Variables fixed at given values, so that exact inference on the others has cliques no larger than asked.

    Without these variables every clique has at most ``i_bound + 1`` variables and ``max_states`` states. Variables
    whose value is nearly sure, by ``beliefs`` (of the user's states), are taken first. ``evidence`` is None where hard
    zeros allow none of the values tried, or no such set was found.
    """

    def __init__(
        self,
        problem: Problem,
        fill: Fill,
        states: npt.NDArray[np.int32],
        beliefs: FloatArray,
        *,
        i_bound: int,
        max_states: float,
        memory_limit: str | int | None,
        running: Running,
    ) -> None:
        self.problem, self.fill, self.running = problem, fill, running
        self.memory_limit, self.most_bits = memory_limit, float(np.log2(max_states))
        self.evidence: Evidence | None = None
        sure = beliefs[problem.graph.structure.value_offsets[:-1] + states]
        chosen = _cutset(fill, problem, np.log(np.maximum(sure, 1e-12)), i_bound + 1, self.most_bits)
        if chosen is not None:
            # Surest first: what they exclude is seldom needed.
            chosen = chosen[np.argsort(-sure[chosen], kind="stable")]
            self.evidence = _possible(problem, chosen, states, beliefs, running)

    def _engine(self, drop_barren: bool) -> JunctionTree | None:
        """A junction tree whose cliques are small enough."""
        assert self.evidence is not None
        graph = self.problem.graph
        engine = JunctionTree(memory_limit=self.memory_limit, search=0.0)
        prepared = engine.prepare(graph, self.evidence, drop_barren=drop_barren)
        if engine.tree(prepared).log2_largest <= self.most_bits + SLACK:
            return engine
        if self.problem.as_tables is not graph:
            return None
        # The order that the set was chosen for has no larger cliques; variables it does not name have one state.
        rest = np.setdiff1d(np.arange(graph.n_variables), self.fill.order)
        order = tuple(graph.variables[v] for v in [*self.fill.order.tolist(), *rest.tolist()])
        return JunctionTree(memory_limit=self.memory_limit, search=0.0, order=order)

    def bound(self) -> float:
        """log of the sum over all assignments with these values: a lower bound on log Z."""
        try:
            engine = None if self.evidence is None else self._engine(drop_barren=True)
            if engine is None or self.evidence is None:
                return -np.inf
            return float(engine.log_partition(self.problem.graph, self.evidence, running=self.running))
        except (ImpossibleEvidenceError, MemoryLimitError):
            return -np.inf

    def decode(self) -> tuple[npt.NDArray[np.int32], float] | None:
        """The best assignment with these values, and its score."""
        try:
            engine = None if self.evidence is None else self._engine(drop_barren=False)
            if engine is None or self.evidence is None:
                return None
            best = engine.decode(self.problem.graph, self.evidence, running=self.running)
        except (ImpossibleEvidenceError, MemoryLimitError):
            return None
        return best.states, best.score


def _cutset(
    fill: Fill, problem: Problem, log_beliefs: FloatArray, most: int, most_bits: float
) -> npt.NDArray[np.int64] | None:
    """Variables of the user's without which all cliques of the order are small; None where there are none such.

    Each time the variable in the most large cliques, for what fixing it loses, is taken.
    """
    n = len(fill.order)
    n_user = problem.graph.n_variables
    if fill.cliques is None:
        return None
    owner = np.concatenate([np.arange(n), np.repeat(np.arange(n), np.diff(fill.offsets))])
    member = np.concatenate([fill.order, fill.cliques])
    bits = np.log2(problem.structure.cardinalities[member])
    price = np.full(problem.structure.n_variables, np.inf)
    price[:n_user] = LEAST_LOSS - log_beliefs
    taken: list[int] = []
    while True:
        size, width = np.bincount(owner, bits, n), np.bincount(owner, minlength=n)
        large = (width > most) | (size > most_bits + 1e-9)
        if not large.any():
            return np.array(taken, np.int64)
        keep = large[owner]
        owner, member, bits = owner[keep], member[keep], bits[keep]
        worth = np.bincount(member, minlength=len(price)) / price
        # A few at a time where there is much to do.
        count = 1 + int(large.sum()) // 200
        best = np.argsort(-worth, kind="stable")[:count]
        best = best[worth[best] > 0.0]
        if not len(best):
            return None
        taken += best.tolist()
        keep = ~np.isin(member, best)
        owner, member, bits = owner[keep], member[keep], bits[keep]


def _possible(
    problem: Problem,
    chosen: npt.NDArray[np.int64],
    states: npt.NDArray[np.int32],
    beliefs: FloatArray,
    running: Running,
) -> Evidence | None:
    """Evidence that fixes the chosen variables, at the given states where hard zeros are seen to allow that.

    Runs of variables are fixed together; one that cannot be is halved, and a single variable takes its next best state.
    """
    graph, s = problem.graph, problem.graph.structure
    known = problem.evidence
    runs = [chosen] if len(chosen) else []
    attempts = 0
    while runs:
        run = runs.pop()
        options = [states[run]]
        if len(run) == 1:
            v = int(run[0])
            belief = beliefs[s.value_offsets[v] : s.value_offsets[v + 1]]
            ranked = np.argsort(-belief, kind="stable")
            options += [ranked[[i]].astype(np.int32) for i in range(len(ranked)) if ranked[i] != states[v]]
        found = None
        for option in options:
            attempts += 1
            if attempts > ATTEMPTS:
                return None
            running.check()
            trial = _with(known, run, option)
            try:
                prepare(graph, trial)
            except ImpossibleEvidenceError:
                continue
            found = trial
            break
        if found is not None:
            known = found
        elif len(run) == 1:
            return None
        else:
            runs += [run[len(run) // 2 :], run[: len(run) // 2]]
    return known


def _with(evidence: Evidence, variables: npt.NDArray[np.int64], values: npt.NDArray[np.int32]) -> Evidence:
    states = evidence.states.copy()
    free = states[variables] < 0
    states[variables[free]] = values[free]
    states.setflags(write=False)
    return Evidence(states, evidence.likelihoods)
