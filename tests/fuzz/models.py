"""Random models for the oracle suite, each from one integer seed: small enough to visit every assignment.

A `Case` is what `tests.strategies.Spec` describes, or two of them joined, or one with other numbers in its pool, with
evidence by position. `tests.fuzz.kinds` draws them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import markovfield as mf
from tests.fuzz.strips import Strip
from tests.oracle import Oracle
from tests.strategies import Cpt, Spec

Placed = list[tuple[tuple[int, ...], np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Noisy(Cpt):
    """A noisy-max: the largest of one contribution for each parent and a leak; ``table`` is its expanded table."""

    contributions: tuple[np.ndarray, ...] = ()
    leak: np.ndarray = field(default_factory=lambda: np.ones(1))


def noisy_max(child: int, parents: tuple[int, ...], contributions: Sequence[np.ndarray], leak: np.ndarray) -> Noisy:
    """The operation, with its table from cumulative probabilities: P(max <= k) is a product."""
    shape = tuple(len(c) for c in contributions)
    table = np.empty((*shape, len(leak)))
    for states in np.ndindex(*shape):
        below = np.cumsum(leak)
        for x, own in zip(states, contributions, strict=True):
            below = below * np.cumsum(own[x])
        table[states] = np.diff(below, prepend=0.0)
    return Noisy(child, parents, np.maximum(table, 0.0), tuple(contributions), leak)


@dataclass(frozen=True, eq=False)
class Case:
    """A model with evidence, in the form in which it is put to the library.

    Attributes
    ----------
    parts
        One spec, or several whose graphs are joined by `FactorGraph.union`.
    form
        ``"builder"``: as a user writes it. ``"graph"``: compiled. ``"tables"``: compiled, with ``tables`` as its pool.
    used
        Whether the graph was asked something before it got other tables, so that plans are kept with its structure.
    columns
        For a strip, which has too many assignments to visit: the variables of each column.
    """

    parts: tuple[Spec, ...]
    evidence: Mapping[int, Any]
    form: str = "builder"
    tables: np.ndarray | None = None
    used: bool = False
    kind: str = ""
    columns: tuple[tuple[int, ...], ...] = ()

    def given(self, evidence: Mapping[int, Any] | None) -> Case:
        """The same model given something else; itself given nothing new."""
        return self if evidence is None else replace(self, evidence=evidence)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        return sum((p.cardinalities for p in self.parts), ())

    @cached_property
    def labels(self) -> tuple[str | int, ...]:
        if len(self.parts) == 1:
            return self.parts[0].labels
        return tuple(f"{i}/{label}" for i, p in enumerate(self.parts) for label in p.labels)

    @property
    def n_variables(self) -> int:
        return len(self.cardinalities)

    @cached_property
    def noisy(self) -> bool:
        """Whether there is a noisy-max, whose cells are contributions and not entries of a table."""
        return any(isinstance(op, Noisy) for p in self.parts for op in p.operations)

    @cached_property
    def directed(self) -> bool:
        return all(isinstance(op, Cpt) for p in self.parts for op in p.operations) and any(
            p.operations for p in self.parts
        )

    @cached_property
    def pairs_of_two(self) -> bool:
        """Whether variables have two states at most and factors join two at most: what many special methods take."""
        return max(self.cardinalities, default=1) <= 2 and all(len(scope) <= 2 for scope, _, _ in self.placed)

    def build(self) -> Any:
        """A fresh model."""
        if len(self.parts) > 1:
            return mf.FactorGraph.union([_built(p).compile() for p in self.parts])
        model = _built(self.parts[0])
        if self.form == "builder":
            return model
        graph = model.compile()
        if self.form == "graph":
            return graph
        if self.used:
            use(graph)
        return graph.with_tables(self.tables)

    @cached_property
    def placed(self) -> Placed:
        """Scope, dense log-table and pool cells of each factor in the model's order."""
        placed: Placed = []
        at = cells = 0
        for p in self.parts:
            for scope, table, where in p._placed():
                placed.append((tuple(v + at for v in scope), table, where + cells))
            at, cells = at + p.n_variables, cells + _n_cells(p)
        if self.form == "tables":
            assert self.tables is not None
            placed = [(scope, self.tables[where], where) for scope, _, where in placed]
        return placed

    @property
    def n_cells(self) -> int:
        return sum(_n_cells(p) for p in self.parts)

    @cached_property
    def oracle(self) -> Any:
        return self.oracle_given(self.evidence)

    def oracle_given(self, evidence: Mapping[int, Any]) -> Any:
        if self.columns:
            factors = [(scope, table) for scope, table, _ in self.placed]
            return Strip(self.cardinalities, factors, evidence, self.columns)
        return Oracle(self.cardinalities, [(scope, table) for scope, table, _ in self.placed], evidence)

    def pool_counts(self) -> np.ndarray:
        """Expected number of times each pool cell is read."""
        counts = np.zeros(self.n_cells)
        for f, (_, _, where) in enumerate(self.placed):
            np.add.at(counts, where, self.oracle.counts(f))
        return counts

    def from_pool(self, pool: np.ndarray) -> list[np.ndarray]:
        """A vector over pool cells as one dense table for each factor."""
        return [pool[where] for _, _, where in self.placed]

    def named(self, by_position: Mapping[int, Any]) -> dict[str | int, Any]:
        return {self.labels[v]: given for v, given in by_position.items()}

    @cached_property
    def finite_tables(self) -> list[np.ndarray]:
        """The finite log-potentials of every factor, likelihoods included."""
        with np.errstate(divide="ignore"):
            soft = [np.log(np.asarray(e, float)) for e in self.evidence.values() if np.ndim(e)]
        return [t[np.isfinite(t)] for t in [*(np.ravel(t) for _, t, _ in self.placed), *soft]]

    @cached_property
    def integer(self) -> bool:
        return all((t == np.round(t)).all() and np.abs(t).max(initial=0.0) < 2**50 for t in self.finite_tables)

    @cached_property
    def spread(self) -> float:
        """What the factors could differ by, all together: constants do not count."""
        return float(sum(np.ptp(t) for t in self.finite_tables if len(t)))

    @cached_property
    def magnitude(self) -> float:
        """What the factors could add up to in size."""
        return float(sum(np.abs(t).max(initial=0.0) for t in self.finite_tables))

    @cached_property
    def unit(self) -> float:
        """What scores are compared in: one, or the largest log-potential where all are smaller."""
        largest = max((float(np.abs(t).max(initial=0.0)) for t in self.finite_tables), default=0.0)
        return min(1.0, largest) if largest > 0 else 1.0

    @property
    def rounding(self) -> float:
        """What adding log-potentials up, in any order, may do to a sum: a few units in the last place of each step."""
        return 2.0**-50 * self.magnitude * (len(self.finite_tables) + 2)


USES = (("marginals", "junction_tree"), ("decode", "junction_tree"), ("log_partition", "variable_elimination"))


def use(graph: mf.FactorGraph) -> None:
    """Ask a graph a few things, for what they leave with its structure."""
    for verb, method in USES:
        # Nothing may be possible with the numbers that are about to be replaced.
        with contextlib.suppress(mf.ImpossibleEvidenceError):
            getattr(mf, verb)(graph, method=method)


def _n_cells(spec: Spec) -> int:
    """Cells of the pool, a noisy-max counted by its expanded table."""
    plain = [Cpt(op.child, op.parents, op.table) if isinstance(op, Noisy) else op for op in spec.operations]
    return Spec(spec.cardinalities, tuple(plain), spec.labels).n_cells


def _built(spec: Spec) -> Any:
    """The model of a spec; what a spec knows as a table is added as the noisy-max it is."""
    if not any(isinstance(op, Noisy) for op in spec.operations):
        return spec.build()
    name = spec.labels
    network = mf.BayesianNetwork(dict(zip(name, spec.cardinalities, strict=True)))
    for op in spec.operations:
        assert isinstance(op, Cpt)
        parents = [name[p] for p in op.parents]
        if isinstance(op, Noisy):
            network.add_noisy_max(name[op.child], parents, op.contributions, op.leak)
        else:
            network.add_cpt(name[op.child], parents, op.table)
    return network
