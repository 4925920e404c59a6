"""Enumeration: the joint table of all free variables, in NumPy alone, so small models never wait for a compiler."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import DISTANCE, NOISY_MAX, TABLE, caps, holds, literals, offset_of_count
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.factors.to_tables import noisy_max_counts, noisy_max_table
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.running import Running

__all__ = ["Enumeration", "joint_states"]


def joint_states(graph: FactorGraph, evidence: Evidence) -> float:
    """log2 of the number of assignments consistent with the evidence."""
    if evidence is no_evidence(graph.structure):
        return all_bits(graph)
    return float(_bits(graph.structure)[0][evidence.states < 0].sum())


def all_bits(graph: FactorGraph) -> float:
    """log2 of the number of assignments without evidence."""
    return _bits(graph.structure)[1]


@remembered
def _bits(structure: Structure) -> tuple[FloatArray, float]:
    """log2 of the states of each variable, and their sum."""
    bits = np.log2(structure.cardinalities)
    return bits, float(bits.sum())


@dataclass(frozen=True)
class Enumeration:
    """Exact answers from the joint table; for models of at most ``max_states`` joint states (after evidence).

    Time and memory grow with the joint states times the factors.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> float(mf.marginals(net, method="enumeration").joint(["A", "B"])[0, 0])
    0.375
    """

    max_states: int = 2**22

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"n_best", "marginal_map"})

    def __post_init__(self) -> None:
        check_method(self, least={"max_states": 1})

    def _joint(self, graph: FactorGraph, evidence: Evidence) -> _Joint:
        limit = math.log2(self.max_states) + 1e-9
        size = all_bits(graph)
        if size > limit:
            size = joint_states(graph, evidence)
        if size > limit:
            raise MemoryLimitError(
                f"the model has 2^{size:.1f} joint states, more than enumeration's max_states of {self.max_states}: "
                "take junction_tree, or raise max_states"
            )
        return _Joint(graph, evidence)

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log of the joint table's sum."""
        joint = self._joint(graph, evidence)
        return LogPartition(log_partition=joint.log_partition, method=self.name, seconds=running.seconds)

    def count(self, graph: FactorGraph, evidence: Evidence, *, running: Running | None = None) -> int:
        """How many assignments are possible."""
        return int(np.count_nonzero(self._joint(graph, evidence).scores > -np.inf))

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Marginals:
        """All single marginals."""
        joint = self._joint(graph, evidence)
        value = joint.log_partition
        values = joint.marginals()
        return Marginals(
            graph=graph,
            values=values,
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=running.seconds,
            _joint=joint.joint,
            _max_marginals=joint.max_marginals,
            _counts=joint.counts,
        )

    def tilted(
        self, graph: FactorGraph, evidence: Evidence, losses: FloatArray, offsets: IntArray, *, running: Running
    ) -> FloatArray:
        """Expected counts of each example of a union tilted by a loss (see `TiltingMethod`)."""
        joint = self._joint(graph, evidence)
        for first, last in itertools.pairwise(offsets.tolist()):
            joint.tilt(losses, range(first, last))
        return joint.counts()

    def joint(
        self, graph: FactorGraph, evidence: Evidence, variables: Sequence[int], *, running: Running
    ) -> FloatArray:
        """Joint posterior of a few variables."""
        return self._joint(graph, evidence).joint(tuple(variables))

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """The best cells of the joint table, or of its marginal over ``variables``."""
        joint = self._joint(graph, evidence)
        return decoding_of_states(
            graph,
            joint.best(n_best, variables),
            variables,
            method=self.name,
            seconds=running.seconds,
        )

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Independent samples by inverting the joint table's cumulative sum."""
        joint = self._joint(graph, evidence)
        cumulative = np.cumsum(joint.probabilities.ravel())
        picks = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        states = joint.states_of(np.minimum(picks, len(cumulative) - 1))
        return Samples(graph=graph, states=states, method=self.name, seconds=running.seconds)


@remembered
def _walks(structure: Structure) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Kind, base and (variable, stride) pairs of every factor, in bytes: the structure as plain Python numbers."""
    pairs = list(zip(structure.scopes.tolist(), (8 * structure.table_strides).tolist(), strict=True))
    ends = structure.scope_offsets.tolist()
    bases, kinds = (8 * structure.table_offsets).tolist(), structure.kind.tolist()
    return [(kinds[f], bases[f], pairs[ends[f] : ends[f + 1]]) for f in range(structure.n_factors)]


class _Joint:
    """The joint table over free variables: ``scores`` has one axis per free variable of more than one state."""

    def __init__(self, graph: FactorGraph, evidence: Evidence) -> None:
        self.graph, self.evidence = graph, evidence
        s = graph.structure
        self.fixed = np.maximum(evidence.states, 0)
        fixed = self.fixed.tolist()
        cards = s.cardinalities.tolist()
        self.free = [v for v, x in enumerate(evidence.states.tolist()) if x < 0 and cards[v] > 1]
        self.axis = {v: i for i, v in enumerate(self.free)}
        self.shape = tuple([cards[v] for v in self.free])
        scores = np.zeros(self.shape)
        self.steps: list[tuple[int, list[int]] | None] = []
        n_axes = len(self.free)
        tables, shape, axes = graph.log_tables, self.shape, self.axis
        for f, (kind, base, walks) in enumerate(_walks(s)):
            if kind != TABLE:
                self.steps.append(None)
                scores += self._noisy_max(f) if kind == NOISY_MAX else tables[self._cells(f)]
                continue
            step = [0] * n_axes
            for v, stride in walks:
                if v in axes:
                    step[axes[v]] = stride
                else:
                    base += stride * fixed[v]
            self.steps.append((base // 8, step))
            scores += np.ndarray(shape, np.float64, tables, base, step)
        for v, vector in evidence.likelihoods:
            axis = self.axis.get(v)
            along = [-1 if a == axis else 1 for a in range(n_axes)]
            scores += vector[fixed[v]] if axis is None else vector.reshape(along)
        self.scores = scores
        flat = scores.reshape(-1)
        top = float(np.maximum.reduce(flat))
        if top == -np.inf:
            raise evidence.impossible(s)
        if not top < np.inf:
            raise ModelError(
                "the log-potentials are so large that their sums are no numbers: divide them by a constant"
            )
        weights = np.exp(flat - top)
        total = float(np.add.reduce(weights))
        self.log_partition = top + math.log(total)
        weights /= total
        self.probabilities = weights.reshape(self.shape)

    def _states(self, v: int) -> Any:
        """The states of a variable along its own axis of the joint table, or the one it is fixed to."""
        axis = self.axis.get(v)
        if axis is None:
            return self.fixed[v]
        along = [-1 if a == axis else 1 for a in range(len(self.free))]
        return np.arange(self.shape[axis]).reshape(along)

    def _cells(self, f: int) -> Any:
        """Pool cells a structured factor reads, over the joint axes."""
        s = self.graph.structure
        scope, strides, kind = s.scope(f).tolist(), s.strides(f), int(s.kind[f])
        if kind == DISTANCE:
            read: Any = np.minimum(np.abs(self._states(scope[0]) - self._states(scope[1])), strides[0])
        else:
            count: Any = np.zeros((1,) * len(self.free), np.int64)
            for v, literal in zip(scope, literals(kind, strides).tolist(), strict=True):
                count = count + holds(literal, self._states(v))
            read = offset_of_count(kind, int(caps(s)[f]), count)
        return np.broadcast_to(int(s.table_offsets[f]) + read, self.shape)

    def _blocks(self, f: int) -> tuple[list[FloatArray], FloatArray, list[int]]:
        """What is left of a noisy-max's blocks by the evidence, its leak, and its free variables in scope order."""
        scope = self.graph.structure.scope(f).tolist()
        blocks, leak = self.graph.noisy_max(f)
        rows = [slice(None) if v in self.axis else slice(self.fixed[v], self.fixed[v] + 1) for v in scope[:-1]]
        return [b[r] for b, r in zip(blocks, rows, strict=True)], leak, [v for v in scope if v in self.axis]

    def _noisy_max(self, f: int) -> FloatArray:
        """Log-table of a noisy-max, over the joint axes."""
        blocks, leak, free = self._blocks(f)
        child = int(self.graph.structure.scope(f)[-1])
        table = noisy_max_table(blocks, leak)
        if child not in self.axis:
            table = table[:, self.fixed[child]]
        table = table.reshape([self.shape[self.axis[v]] for v in free])
        order = sorted(range(len(free)), key=lambda i: self.axis[free[i]])
        return table.transpose(order).reshape(
            [c if v in free else 1 for v, c in zip(self.free, self.shape, strict=True)]
        )

    def _count_noisy_max(self, f: int, out: FloatArray) -> None:
        """Add a noisy-max's expected counts to those of the pool."""
        s = self.graph.structure
        blocks, leak, free = self._blocks(f)
        scope, k = s.scope(f).tolist(), len(leak)
        joint = self.joint(tuple(free))
        if scope[-1] in self.axis:
            weights = joint.reshape(-1, k)
        else:
            weights = np.zeros((joint.size, k))
            weights[:, self.fixed[scope[-1]]] = joint.ravel()
        found, base = noisy_max_counts(blocks, leak, weights)
        starts = (s.table_offsets[f] + s.strides(f)).tolist()
        for v, start, counts in zip(scope[:-1], starts[:-1], found, strict=True):
            first = start + (0 if v in self.axis else int(self.fixed[v]) * k)
            out[first : first + counts.size] += counts.ravel()
        out[starts[-1] : starts[-1] + k] += base

    def _fill(self, reduce: Any, table: FloatArray, absent: float, alone: float) -> FloatArray:
        """A vector over all variables' states from one reduction per free axis."""
        s = self.graph.structure
        offsets = s.value_offsets
        out = np.full(int(offsets[-1]), absent) if absent else np.zeros(int(offsets[-1]))
        if len(self.free) < len(self.fixed):
            out[offsets[:-1] + self.fixed] = alone
        # From the first axis to the last: reduce the axes behind it for its answer, then do away with the axis itself.
        starts = offsets.tolist()
        last = self.free[-1] if self.free else -1
        for v in self.free:
            if v == last:
                out[starts[v] : starts[v + 1]] = table
            else:
                out[starts[v] : starts[v + 1]] = reduce(table.reshape(len(table), -1), 1)
                table = reduce(table, 0)
        return out

    def marginals(self) -> FloatArray:
        return self._fill(np.add.reduce, self.probabilities, 0.0, 1.0)

    def max_marginals(self) -> FloatArray:
        return self._fill(np.maximum.reduce, self.scores, -np.inf, float(self.scores.max()))

    def joint(self, positions: tuple[int, ...]) -> FloatArray:
        cards = self.graph.structure.cardinalities
        kept = [v for v in self.free if v in positions]
        table = self.probabilities.sum(axis=tuple(a for v, a in self.axis.items() if v not in positions))
        asked = [v for v in positions if v in self.axis]
        table = table.transpose([kept.index(v) for v in asked])
        out = np.zeros([int(cards[v]) for v in positions])
        out[tuple(slice(None) if v in self.axis else int(self.fixed[v]) for v in positions)] = table
        return out

    def tilt(self, losses: FloatArray, variables: Iterable[int]) -> None:
        """Multiply the probabilities by a loss of these variables, unless that is zero, and let them sum to one."""
        offsets = self.graph.structure.value_offsets
        loss: Any = 0.0
        for v in variables:
            loss = loss + losses[offsets[v] + self._states(v)]
        weights = self.probabilities * loss
        total = float(weights.sum())
        if total > 0.0:
            self.probabilities = weights / total

    def counts(self) -> FloatArray:
        out = np.zeros(self.graph.structure.n_cells)
        for f, step in enumerate(self.steps):
            if step is None:
                if self.graph.structure.kind[f] == NOISY_MAX:
                    self._count_noisy_max(f, out)
                    continue
                cells = self._cells(f)
            else:
                cells = np.array(step[0])
                for card, stride in zip(self.shape, step[1], strict=True):
                    cells = cells[..., None] + stride // 8 * np.arange(card)
            np.add.at(out, cells.ravel(), self.probabilities.ravel())
        return out

    def states_of(self, flat: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Full state rows of flat cells of the joint table."""
        states = np.tile(self.fixed.astype(np.int32), (len(flat), 1))
        if self.free:
            states[:, self.free] = np.stack(np.unravel_index(flat, self.shape), axis=1)
        return states

    def best(self, n_best: int, variables: Sequence[int] | None) -> list[tuple[npt.NDArray[np.int32], float]]:
        if variables is None:
            scores, shape = self.scores, self.shape
            kept = self.free
        else:
            kept = [v for v in self.free if v in set(variables)]
            axes = tuple(a for v, a in self.axis.items() if v not in set(kept))
            top = self.scores.max(axis=axes, keepdims=True)
            safe = np.where(top == -np.inf, 0.0, top)
            with np.errstate(divide="ignore"):
                scores = np.log(np.exp(self.scores - safe).sum(axis=axes)) + safe.reshape(
                    [self.shape[self.axis[v]] for v in kept]
                )
            shape = tuple(self.shape[self.axis[v]] for v in kept)
        flat = scores.ravel()
        order = np.argsort(-flat, kind="stable")[:n_best]
        order = order[flat[order] > -np.inf]
        solutions = []
        for cell in order.tolist():
            states = self.fixed.astype(np.int32)
            if kept:
                states[kept] = np.unravel_index(cell, shape)
            solutions.append((states, float(flat[cell])))
        return solutions
