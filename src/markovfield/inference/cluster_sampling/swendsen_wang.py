"""Swendsen-Wang: Markov chains that move whole clusters of Ising and Potts models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, States, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.cluster_sampling.cluster_moves_kernel import ClusterGraph, swendsen_wang
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.problem.spins import potts_model, spin_model
from markovfield.inference.sampling.chain_method import LEAST, ChainMethod
from markovfield.inference.sampling.markov_chains import Begun

__all__ = ["ClusterMethod", "ClusterModel", "ClusterTransition", "SwendsenWang"]

Stream = npt.NDArray[np.uint64]
# Nanoseconds for each pair and each state of a variable in a sweep, roughly: they only set how often the clock is seen.
PAIR_COST, STATE_COST = 10, 10
STEP = 5e7
_NO_ROWS, _NO_SUMS = np.zeros((0, 0), np.int32), np.zeros(0)


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """A problem that is an Ising or a Potts model, as the arrays that cluster moves work on.

    ``strength`` is what each pair adds to the score where it is satisfied, ``float64[m]``.
    """

    problem: Problem
    graph: ClusterGraph
    strength: FloatArray

    @classmethod
    def of(cls, graph: FactorGraph, evidence: Evidence, method: str) -> ClusterModel:
        """Read a graph as an Ising or a Potts model, or say why ``method`` cannot take it.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
        >>> _ = net.add_factor(["A", "B"], [[1.0, 3.0], [3.0, 1.0]])
        >>> graph = net.compile()
        >>> model = ClusterModel.of(graph, Evidence.parse(graph.structure, None), "swendsen_wang")
        >>> model.graph.crossed.tolist(), model.has_fields
        ([1], False)
        """
        problem = prepare(graph, evidence)
        spins = spin_model(problem)
        if spins is not None:
            unary = np.stack([-spins.field, spins.field], axis=1)
            strength = 2 * np.abs(spins.coupling)
            return cls(problem, _arrays(spins, 2, np.signbit(spins.coupling), strength, unary), strength)
        potts = potts_model(problem)
        if potts is None:
            # With the states that are ruled out left in their domains, all variables may still have equally many.
            problem = prepare(graph, evidence, propagate_zeros=False)
            potts = potts_model(problem)
        if potts is None:
            raise ModelError(
                f"{method} takes Ising models (two states, finite potentials of pairs) and Potts models (pairs that "
                "only ask whether two states are the same), and this model is neither: use gibbs"
            )
        if np.isneginf(potts.constant) or np.isneginf(potts.unary).all(axis=1).any():
            raise problem.impossible()
        if (potts.coupling < 0).any():
            e = int(np.argmin(potts.coupling))
            i, j = (problem.as_tables.names.variables[int(potts.variables[x[e]])] for x in (potts.first, potts.second))
            raise ModelError(
                f"{method} takes Potts models whose couplings are at least zero, and that of {i!r} and {j!r} is "
                f"{potts.coupling[e]:.4g}: use gibbs"
            )
        crossed = np.zeros(len(potts.first), np.bool_)
        return cls(problem, _arrays(potts, potts.n_states, crossed, potts.coupling, potts.unary), potts.coupling)

    @property
    def has_fields(self) -> bool:
        """Whether a variable prefers some of its states by itself."""
        return len(self.graph.unary) > 0

    def starts(self, n: int, rng: np.random.Generator) -> States:
        """``int32[n, variables]``: every state that is not ruled out is as likely as any other."""
        g = self.graph
        states = np.zeros((n, self.problem.structure.n_variables), np.int32)
        for row in states:
            liking = rng.random((len(g.columns), g.q))
            if self.has_fields:
                liking[np.isneginf(g.unary)] = -1.0
            row[g.columns] = np.argmax(liking, axis=1)
        return states

    def sweeps_at_once(self, local: int) -> int:
        """How many sweeps last about 50 ms."""
        cost = PAIR_COST * len(self.graph.first) + STATE_COST * self.graph.q * len(self.graph.columns)
        return max(1, int(STEP / max(100, cost * (1 + 2 * local))))


def _arrays(model: Any, q: int, crossed: Any, strength: FloatArray, unary: FloatArray) -> ClusterGraph:
    """The model's pairs, and each of them from both ends."""
    first, second, n = model.first.astype(np.int32), model.second.astype(np.int32), len(model.variables)
    crossed = crossed.astype(np.int8)
    # A pair that is all but certain to be bonded keeps the 2^-53 it has to lose.
    thresholds = np.ldexp(np.minimum(-np.expm1(-strength), 1 - 2.0**-53), 64).astype(np.uint64)
    ends = np.concatenate([first, second])
    order = np.argsort(ends, kind="stable")
    offsets = offsets_of(np.bincount(ends, minlength=n))
    pair = order % max(1, len(first))
    # States that all add the same are no field, even if that is not zero.
    fields = (unary != unary[:, :1]).any()
    return ClusterGraph(
        q=q,
        first=first,
        second=second,
        crossed=crossed,
        thresholds=thresholds,
        offsets=offsets,
        half_other=np.concatenate([second, first])[order],
        half_crossed=crossed[pair],
        half_strength=np.ascontiguousarray(strength[pair]),
        half_thresholds=thresholds[pair],
        unary=np.ascontiguousarray(unary) if fields else np.zeros((0, q)),
        columns=np.ascontiguousarray(model.variables, np.int64),
        places=np.ascontiguousarray(model.problem.structure.value_offsets[model.variables], np.int64),
    )


@dataclass(frozen=True, eq=False)
class ClusterTransition:
    """Cluster moves as a transition of Markov chains; ``move(sweeps, states, stream, rows, sums)`` is the kernel.

    ``even`` says that averages are of probabilities that are equal by symmetry.
    """

    model: ClusterModel
    move: Callable[[int, States, Stream, States, FloatArray], Any]
    sweeps_at_once: int
    even: bool = False

    def _moved(self, states: States, stream: Stream, sweeps: int, rows: States, sums: FloatArray) -> None:
        columns = self.model.graph.columns
        if len(columns):
            free = states[columns]
            self.move(sweeps, free, stream, rows, sums)
            states[columns] = free

    def advance(self, states: States, stream: Stream, sweeps: int) -> None:
        """Move ``states`` on in place."""
        self._moved(states, stream, sweeps, _NO_ROWS, _NO_SUMS)

    def fill(self, states: States, stream: Stream, thinning: int, rows: States) -> None:
        """Move on by ``thinning`` sweeps for each row, and write the states there."""
        rows[:] = 0
        if len(rows):
            self._moved(states, stream, thinning, rows, _NO_SUMS)

    def accumulate(self, states: States, stream: Stream, sweeps: int, sums: FloatArray) -> None:
        """Move on and add what each sweep says of the states' probabilities."""
        self._moved(states, stream, sweeps, _NO_ROWS, sums)


class ClusterMethod(ChainMethod):
    """What the methods that move clusters share: the model behind the graph, its sweeps and starts."""

    resumes_averages: ClassVar[bool] = False
    needs: ClassVar[str] = "potts"

    @abstractmethod
    def transition(self, model: ClusterModel) -> ClusterTransition:
        """A sweep as a transition of Markov chains."""

    def starts(self, model: ClusterModel, rng: np.random.Generator, running: Running) -> States:
        """First states of the Markov chains: random ones."""
        return model.starts(self.n_chains, rng)

    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """Random starts of an Ising or Potts model."""
        model = ClusterModel.of(graph, evidence, self.name)
        start = None if init is not None else self.starts(model, rng, running)
        return Begun(model.problem, self.transition(model), start, self.burn_in)


@dataclass(frozen=True)
class SwendsenWang(ClusterMethod):
    """Markov chains of Swendsen and Wang (1987) for Ising and Potts models on any graph.

    A sweep bonds each satisfied pair with probability 1 - exp(-strength), and moves every cluster of bonded variables
    at once, to a state drawn by what its members' unary potentials add up to: exact for any fields, -inf included. It
    takes every model of two-state variables with finite potentials of pairs (which may want to differ), and Potts
    models whose pairs want to agree. Near the critical coupling its chains forget within a few sweeps what moves of
    single variables remember for thousands. On frustrated models, and under strong fields of both signs, clusters grow
    across what should change by itself, and the single-variable sweeps that are mixed in do the work.

    A sweep costs some nanoseconds for each pair, whatever the couplings; memory is linear in the graph. Marginals
    average, over the sweeps, the probabilities given the clusters rather than the states themselves, which is
    never worse; without fields they are equal by symmetry, and said to be so without an error.

    Parameters
    ----------
    n_chains
        Chains that run side by side from different starts.
    burn_in
        Sweeps of each chain thrown away at the start; None is half as many as are kept, at least 100.
    thinning
        Sweeps from one sample to the next.
    sweeps
        Sweeps of each chain that marginals average over.
    local_sweeps
        Heat-bath sweeps over single variables after each sweep of clusters. None is one where the model has fields
        (evidence acts as one), since a large cluster seldom follows the fields of its members, otherwise none.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.exp(np.eye(3)))
    >>> answer = mf.marginals(net, {"A": 0}, method=SwendsenWang(), rng=0)
    >>> bool(np.abs(answer["B"] - mf.marginals(net, {"A": 0})["B"]).max() < 0.02)
    True
    """

    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 5000
    local_sweeps: int | None = None

    name: ClassVar[str] = "swendsen_wang"

    def __post_init__(self) -> None:
        check_method(self, least=LEAST | {"local_sweeps": 0})

    def transition(self, model: ClusterModel) -> ClusterTransition:
        """A sweep as a transition of Markov chains."""
        local = int(model.has_fields) if self.local_sweeps is None else self.local_sweeps

        def move(sweeps: int, states: States, stream: Stream, rows: States, sums: FloatArray) -> None:
            swendsen_wang(model.graph, local, sweeps, states, stream, rows, sums)

        return ClusterTransition(model, move, model.sweeps_at_once(local), even=not model.has_fields)
