"""Random models for the oracle suite, each from one integer seed: small enough to visit every assignment.

A `Case` is what `tests.strategies.Spec` describes, or two of them joined, or one with other numbers in its pool, with
evidence by position. Kinds of models are the functions in `KINDS`; each has a failure that a hostile user found behind
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import markovfield as mf
from tests.fuzz.strips import Strip
from tests.oracle import Oracle
from tests.strategies import (
    Apart,
    Clause,
    Counted,
    Cpt,
    Operation,
    Seeded,
    Spec,
    Table,
    build_bayesian_network,
    build_evidence,
    build_forest,
    build_graph,
)

MAX_STATES = 3_000
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


def joint_states(spec: Spec) -> int:
    return int(np.prod([1.0, *spec.cardinalities]))


def _small(build: Callable[[Seeded], Spec], rng: np.random.Generator, states: int = MAX_STATES) -> Spec:
    """The first spec drawn that is small enough."""
    while True:
        spec = build(Seeded(rng))
        if joint_states(spec) <= states:
            return spec


def _names(rng: np.random.Generator, n: int) -> tuple[str | int, ...]:
    return tuple(range(10, 10 + n)) if rng.random() < 0.25 else tuple(f"x{i}" for i in range(n))


def _cards(rng: np.random.Generator, states: int = MAX_STATES, of: Sequence[int] = (2, 2, 3, 2, 4, 1)) -> list[int]:
    cards: list[int] = []
    for _ in range(int(rng.integers(1, 11))):
        card = int(rng.choice(of))
        if np.prod([*cards, card], dtype=float) > states:
            break
        cards.append(card)
    return cards or [2]


def _pairs(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    """Random pairs: a sparse graph, a dense one, or a lattice."""
    what = rng.integers(0, 3)
    if what == 2:
        width = int(rng.integers(1, 4))
        found = [(i, i + 1) for i in range(n - 1) if (i + 1) % width] + [(i, i + width) for i in range(n - width)]
    else:
        share = 0.3 if what else 0.7
        found = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < share]
    return [(b, a) if rng.random() < 0.2 else (a, b) for a, b in found]


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], style: str) -> np.ndarray:
    """Log-potentials of one style."""
    if style == "integer":
        return rng.integers(-3, 4, shape).astype(float)
    if style == "tiny":
        return 1e-12 * np.round(rng.normal(size=shape), 3)
    if style == "extreme":
        return np.round(rng.uniform(-690, 690, shape), 2)
    if style == "strong":
        return np.round(8 * rng.normal(size=shape), 3)
    return np.round(rng.normal(size=shape), 3)


STYLES = ("integer", "real", "real", "tiny", "extreme", "strong")


# ---- kinds of models --------------------------------------------------------------------------------------------


def graph(rng: np.random.Generator) -> Spec:
    return _small(build_graph, rng)


def wide_graph(rng: np.random.Generator) -> Spec:
    """The same with potentials from e^-1000 on."""
    return _small(lambda c: build_graph(c, scale=300.0), rng)


def forest(rng: np.random.Generator) -> Spec:
    clauses = bool(rng.random() < 0.3)
    return _small(lambda c: build_forest(c, clauses=clauses), rng)


def bayesian(rng: np.random.Generator) -> Spec:
    return _small(build_bayesian_network, rng)


def noisy(rng: np.random.Generator) -> Spec:
    """A Bayesian network some of whose variables are noisy-max of their parents."""
    spec = bayesian(rng)
    operations = []
    for op in spec.operations:
        assert isinstance(op, Cpt)
        if op.parents and rng.random() < 0.6:
            card = spec.cardinalities[op.child]
            own = [rng.dirichlet(np.ones(card), spec.cardinalities[p]) for p in op.parents]
            own = [np.where(rng.random((len(c), 1)) < 0.3, np.eye(card)[0], c) for c in own]
            leak = np.eye(card)[0] if rng.random() < 0.4 else rng.dirichlet(np.ones(card))
            operations.append(noisy_max(op.child, op.parents, own, leak))
        else:
            operations.append(op)
    return Spec(spec.cardinalities, tuple(operations), spec.labels)


def pairwise(rng: np.random.Generator) -> Spec:
    """Pairs and unaries, sometimes several factors on one pair, of any style; mostly of equal cardinality."""
    card = int(rng.integers(2, 5))
    of = (card,) if rng.random() < 0.7 else (1, 2, 3)
    cards = _cards(rng, of=of)
    style = STYLES[rng.integers(0, len(STYLES))]
    operations: list[Operation] = []
    for a, b in _pairs(rng, len(cards)):
        for _ in range(1 + int(rng.random() < 0.15)):
            table = _numbers(rng, (cards[a], cards[b]), style)
            if rng.random() < 0.1:
                table = np.where(rng.random(table.shape) < 0.2, -np.inf, table)
            operations.append(Table(((a, b),), table))
    for v, card in enumerate(cards):
        if rng.random() < 0.7:
            operations.append(Table(((v,),), _numbers(rng, (card,), style)))
    return Spec(tuple(cards), tuple(operations), _names(rng, len(cards)))


def tied(rng: np.random.Generator) -> Spec:
    """One table on many pairs of variables with equally many states; some hard zeros."""
    card = int(rng.integers(2, 5))
    cards = _cards(rng, of=(card,))
    pairs = _pairs(rng, len(cards))
    operations: list[Operation] = []
    for _ in range(int(rng.integers(1, 3))):
        table = _numbers(rng, (card, card), STYLES[rng.integers(0, 3)])
        if rng.random() < 0.2:
            table = np.where(rng.random(table.shape) < 0.2, -np.inf, table)
        if pairs:
            operations.append(Table(tuple(pairs), table))
    if rng.random() < 0.5:
        operations.append(Table(tuple((v,) for v in range(len(cards))), _numbers(rng, (card,), "real")))
    return Spec(tuple(cards), tuple(operations), _names(rng, len(cards)))


def lattice(rng: np.random.Generator) -> Spec:
    """A small Ising or Potts lattice, open or periodic, of one coupling or of many, with or without fields."""
    card = 2 if rng.random() < 0.6 else 3
    rows, columns = ((2, 2), (2, 3), (3, 3), (1, 6), (2, 4))[int(rng.integers(0, 5 if card == 2 else 2))]
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(int(a), int(b)) for a, b in zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True)]
    pairs += [(int(a), int(b)) for a, b in zip(at[:-1].ravel(), at[1:].ravel(), strict=True)]
    if rows > 2 and columns > 2 and rng.random() < 0.3:
        pairs += [(int(r[-1]), int(r[0])) for r in at] + [(int(c[-1]), int(c[0])) for c in at.T]
    style = STYLES[rng.integers(0, len(STYLES))]
    sign = 1.0 if rng.random() < 0.4 else -1.0
    operations: list[Operation] = []
    if rng.random() < 0.4:
        weight = float(abs(_numbers(rng, (1,), style)[0])) * sign
        operations.append(Apart(tuple(pairs), (weight, 0.0)))
    else:
        for pair in pairs:
            weight = float(_numbers(rng, (1,), style)[0])
            weight = abs(weight) if sign > 0 else weight
            operations.append(Table((pair,), weight * (2 * np.eye(card) - 1)))
    if rng.random() < 0.6:
        operations += [Table(((v,),), _numbers(rng, (card,), style)) for v in range(rows * columns)]
    return Spec((card,) * (rows * columns), tuple(operations), _names(rng, rows * columns))


def logic(rng: np.random.Generator) -> Spec:
    """Clauses, parities, counts and other hard and soft rules over few states: hard zeros everywhere."""
    cards = _cards(rng, of=(2, 2, 2, 3))
    operations: list[Operation] = []
    for _ in range(int(rng.integers(1, 9))):
        many = min(len(cards), int(rng.integers(1, 5)))
        scope = rng.permutation(len(cards))[:many].tolist()
        literals = tuple((v, int(rng.integers(0, cards[v])), bool(rng.random() < 0.5)) for v in scope)
        weight = float(rng.choice([np.inf, np.inf, 1.0, 2.0, -1.0, 0.75]))
        what = str(rng.choice(["clause", "clause", "parity", "at_most_one", "exactly", "and", "cardinality"]))
        if what == "clause":
            operations.append(Clause(literals, weight))
        elif what == "exactly":
            operations.append(Counted(what, literals, (weight, float(rng.integers(0, many + 1)))))
        elif what == "cardinality":
            numbers = _numbers(rng, (int(rng.integers(2, many + 2)),), "integer")
            operations.append(Counted(what, literals, tuple(numbers.tolist())))
        else:
            operations.append(Counted(what, literals, (weight,)))
    for v, card in enumerate(cards):
        if rng.random() < 0.4:
            operations.append(Table(((v,),), _numbers(rng, (card,), "integer")))
    return Spec(tuple(cards), tuple(operations), _names(rng, len(cards)))


def whole_numbers(rng: np.random.Generator) -> Spec:
    """Factors of any arity whose log-potentials are small whole numbers: optimality can be judged exactly."""
    spec = graph(rng)
    operations = []
    for op in spec.operations:
        if isinstance(op, Table):
            operations.append(Table(op.scopes, np.round(op.log_table)))
    return Spec(spec.cardinalities, tuple(operations), spec.labels)


def tiny(rng: np.random.Generator) -> Spec:
    """One or two variables, or none; of one state or two; with constants."""
    n = int(rng.integers(0, 3))
    cards = [int(rng.integers(1, 3)) for _ in range(n)]
    operations: list[Operation] = []
    for _ in range(int(rng.integers(0, 3))):
        scope = tuple(int(v) for v in rng.integers(0, n, int(rng.integers(0, 3)))) if n else ()
        shape = tuple(cards[v] for v in scope)
        operations.append(Table((scope,), _numbers(rng, shape, STYLES[rng.integers(0, len(STYLES))])))
    return Spec(tuple(cards), tuple(operations), _names(rng, n))


def two_modes(rng: np.random.Generator) -> Spec:
    """Variables that all agree or all disagree, held together strongly, one of the two being likelier."""
    n, card = int(rng.integers(2, 7)), 2
    weight = float(rng.choice([3.0, 8.0, 30.0]))
    operations: list[Operation] = [Table(((i, i + 1),), weight * np.eye(card)) for i in range(n - 1)]
    operations += [Table(((v,),), _numbers(rng, (card,), "real")) for v in range(n)]
    return Spec((card,) * n, tuple(operations), _names(rng, n))


def frustrated(rng: np.random.Generator) -> Spec:
    """All pairs of few variables, with couplings that cannot all have their way: relaxations leave a gap."""
    card = 2 if rng.random() < 0.7 else 3
    n = int(rng.integers(4, 10 if card == 2 else 7))
    share = float(rng.choice([0.6, 1.0]))
    style = str(rng.choice(["integer", "real", "strong"]))
    operations: list[Operation] = []
    for a in range(n):
        for b in range(a + 1, n):
            if rng.random() < share:
                table = _numbers(rng, (card, card), style)
                ising = card == 2 and rng.random() < 0.5
                operations.append(Table(((a, b),), table[0, 0] * (2 * np.eye(2) - 1) if ising else table))
    if rng.random() < 0.5:
        operations += [Table(((v,),), _numbers(rng, (card,), style)) for v in range(n)]
    return Spec((card,) * n, tuple(operations), _names(rng, n))


KINDS: dict[str, Callable[[np.random.Generator], Spec]] = {
    f.__name__: f
    for f in (
        graph, wide_graph, forest, bayesian, noisy, pairwise, tied, lattice, logic, whole_numbers, tiny, two_modes,
        frustrated,
    )
}  # fmt: skip
WEIGHTS = {"graph": 2.0, "pairwise": 2.0, "tied": 1.5, "frustrated": 1.5, "tiny": 0.5, "two_modes": 0.5}
LARGE = 1e9
# The share of strips among all models.
STRIPS = 0.03


def _constants(rng: np.random.Generator, spec: Spec) -> Spec:
    """A constant of 1e9 on one table or on every table of one variable."""
    where = [i for i, op in enumerate(spec.operations) if isinstance(op, Table) and len(op.scopes[0]) == 1]
    if not where:
        own = Table(((0,),), np.zeros(spec.cardinalities[0]))
        spec, where = Spec(spec.cardinalities, (*spec.operations, own), spec.labels), [len(spec.operations)]
    chosen = where if rng.random() < 0.5 else where[:1]
    operations = list(spec.operations)
    sign = 1.0 if rng.random() < 0.7 else -1.0
    for i in chosen:
        op = operations[i]
        assert isinstance(op, Table)
        operations[i] = Table(op.scopes, op.log_table + sign * LARGE)
    return Spec(spec.cardinalities, tuple(operations), spec.labels)


def evidence_of(rng: np.random.Generator, spec: Spec | Case) -> dict[int, Any]:
    """None, a little or much; states, likelihoods, and likelihoods that are zero somewhere."""
    what = rng.random()
    if what < 0.4:
        return {}
    if what < 0.6:
        return build_evidence(Seeded(rng), spec)  # type: ignore[arg-type]
    evidence: dict[int, Any] = {}
    for v, card in enumerate(spec.cardinalities):
        if rng.random() > 0.2:
            continue
        if rng.random() < 0.4:
            evidence[v] = int(rng.integers(0, card))
        else:
            likelihood = np.where(rng.random(card) < 0.4, 0.0, rng.choice([1.0, 0.5, 2.0], card))
            likelihood[rng.integers(0, card)] = 1.0
            evidence[v] = likelihood
    return evidence


def strip(rng: np.random.Generator) -> Case:
    """A lattice or a ladder of tens of variables, open at its ends; forests and chains where it has one row."""
    card = 2 if rng.random() < 0.7 else 3
    rows = int(rng.integers(1, 4 if card == 2 else 3))
    columns = int(rng.integers(5, 30))
    n = rows * columns
    at = np.arange(n).reshape(rows, columns)
    pairs = [(int(a), int(b)) for a, b in zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True)]
    pairs += [(int(a), int(b)) for a, b in zip(at[:-1].ravel(), at[1:].ravel(), strict=True)]
    style = STYLES[rng.integers(0, len(STYLES))]
    operations: list[Operation] = []
    what = rng.random()
    if what < 0.3:
        operations.append(Apart(tuple(pairs), (float(_numbers(rng, (1,), style)[0]), 0.0)))
    elif what < 0.5:
        operations.append(Table(tuple(pairs), _numbers(rng, (card, card), style)))
    else:
        operations += [Table((pair,), _numbers(rng, (card, card), style)) for pair in pairs]
    if what > 0.9:
        hard = np.where(rng.random((card, card)) < 0.2, -np.inf, 0.0)
        operations.append(Table(tuple(pairs[:: int(rng.integers(1, 4))]), hard))
    if rng.random() < 0.8:
        operations += [Table(((v,),), _numbers(rng, (card,), style)) for v in range(n)]
    spec = Spec((card,) * n, tuple(operations), _names(rng, n))
    if rng.random() < 0.12:
        spec = _constants(rng, spec)
    form = "builder" if rng.random() < 0.5 else "graph"
    own = tuple(tuple(int(v) for v in column) for column in at.T)
    return Case((spec,), evidence_of(rng, spec), form, kind="strip", columns=own)


def case_of(seed: int) -> Case:
    """The model of a seed, with its evidence."""
    rng = np.random.default_rng([seed, 12])
    if np.random.default_rng([seed, 14]).random() < STRIPS:
        return strip(rng)
    weights = np.array([WEIGHTS.get(name, 1.0) for name in KINDS])
    kind = str(rng.choice(list(KINDS), p=weights / weights.sum()))
    spec = KINDS[kind](rng)
    if spec.n_variables and kind not in ("bayesian", "noisy") and rng.random() < 0.12:
        spec, kind = _constants(rng, spec), f"{kind} + constants"
    if rng.random() < 0.06:
        other = _small(build_graph, rng, max(1, MAX_STATES // max(1, joint_states(spec))))
        joined = Case((spec, other), {}, "graph", kind=f"union of {kind}")
        whole = Spec(joined.cardinalities, (), joined.labels)
        return replace(joined, evidence=evidence_of(rng, whole))
    case = Case((spec,), evidence_of(rng, spec), "builder" if rng.random() < 0.5 else "graph", kind=kind)
    if not case.noisy and rng.random() < (0.3 if case.directed else 0.05):
        numbers = _numbers(rng, (spec.n_cells,), STYLES[rng.integers(0, 3)])
        numbers = np.zeros(spec.n_cells) if rng.random() < 0.25 else numbers
        numbers = np.where(rng.random(spec.n_cells) < (0.1 if rng.random() < 0.3 else 0.0), -np.inf, numbers)
        used = bool(rng.random() < 0.5)
        case = replace(case, form="tables", tables=numbers, used=used, kind=f"{kind} with other tables")
    return case
