"""Kinds of random models for the oracle suite, each from a seed; a failure that a hostile user found is behind each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.models import Case, noisy_max
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
    """Factors of any arity whose log-potentials are small integers: optimality can be judged exactly."""
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
