"""Random models, each with the description the oracle needs; drawn by hypothesis or by a seeded generator.

A `Spec` is a recipe: cardinalities and a list of operations. It builds the markovfield model and, separately,
the oracle, so that a failing example prints as something one can type in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st

import markovfield as mf
from tests.oracle import Oracle, literal_table

MAX_JOINT_STATES = 20_000
MAX_VARIABLES = 12


@dataclass(frozen=True)
class Table:
    """One table on one or more scopes; several scopes share it."""

    scopes: tuple[tuple[int, ...], ...]
    log_table: np.ndarray


@dataclass(frozen=True)
class Clause:
    """A clause: (variable, state, whether the state satisfies it), on distinct variables, with a weight."""

    literals: tuple[tuple[int, int, bool], ...]
    weight: float


@dataclass(frozen=True)
class Counted:
    """A potential of how many literals hold; ``what`` is the builder's method, without its ``add_``.

    ``numbers`` are a weight, for "exactly" then k, or the log-potentials of a "cardinality".
    """

    what: str
    literals: tuple[tuple[int, int, bool], ...]
    numbers: tuple[float, ...]

    def pool(self) -> list[float]:
        """Its cells, in the order in which the model keeps them."""
        n = len(self.literals)
        if self.what == "cardinality":
            return list(self.numbers)
        yes, no = (0.0, -np.inf) if self.numbers[0] == np.inf else (self.numbers[0], 0.0)
        if self.what == "exactly":
            few = min(int(self.numbers[1]), n - int(self.numbers[1]))
            return [yes if c == few else no for c in range(few + 2)][: n + 1]
        return {"parity": [no, yes], "and": [yes, no], "at_most_one": [yes, yes, no][: n + 1]}[self.what]

    def cell(self, true: int) -> int:
        """The cell read when so many literals hold."""
        n = len(self.literals)
        if self.what == "parity":
            return true % 2
        if self.what == "and":
            return int(true < n)
        if self.what == "exactly" and self.numbers[1] > n - self.numbers[1]:
            true = n - true
        return min(true, len(self.pool()) - 1)

    def build(self, net: Any, name: Sequence[str | int]) -> None:
        positive = {name[v]: s for v, s, sign in self.literals if sign}
        negative = {name[v]: s for v, s, sign in self.literals if not sign}
        if self.what == "cardinality":
            net.add_cardinality(self.numbers, positive, negative)
        elif self.what == "exactly":
            net.add_exactly(int(self.numbers[1]), positive, negative, weight=self.numbers[0])
        else:
            getattr(net, f"add_{self.what}")(positive, negative, weight=self.numbers[0])


@dataclass(frozen=True)
class Apart:
    """A potential of the distance of two states, on one or more pairs: (equal, different), or a truncated one.

    ``numbers`` are the two log-potentials of a Potts factor, or a weight, a truncation and a power.
    """

    scopes: tuple[tuple[int, int], ...]
    numbers: tuple[float, ...]

    def pool(self, cards: Sequence[int]) -> list[float]:
        if len(self.numbers) == 2:
            return list(self.numbers)
        weight, truncation, power = self.numbers
        cells = [
            -weight * min(float(d**power), truncation) for d in range(max(2, *(cards[v] for v in sum(self.scopes, ()))))
        ]
        first = next((d for d in range(len(cells)) if d**power >= truncation), len(cells) - 1)
        return cells[: first + 1]

    def build(self, net: Any, name: Sequence[str | int]) -> None:
        scopes = [[name[v] for v in scope] for scope in self.scopes]
        if len(self.numbers) == 2:
            net.add_potts(scopes, *self.numbers)
        else:
            net.add_truncated(scopes, *self.numbers[:2], power=int(self.numbers[2]))


@dataclass(frozen=True)
class Cpt:
    """A conditional probability table, parents first, child last."""

    child: int
    parents: tuple[int, ...]
    table: np.ndarray


Operation = Table | Clause | Counted | Apart | Cpt


@dataclass(frozen=True, eq=False)
class Spec:
    """A model as a recipe: what each variable's states are and what was added, in order."""

    cardinalities: tuple[int, ...]
    operations: tuple[Operation, ...]
    labels: tuple[str | int, ...]

    @property
    def n_variables(self) -> int:
        return len(self.cardinalities)

    def build(self) -> Any:
        """The model as a user would write it."""
        variables = dict(zip(self.labels, self.cardinalities, strict=True))
        name = self.labels
        if any(isinstance(op, Cpt) for op in self.operations):
            network = mf.BayesianNetwork(variables)
            for op in self.operations:
                assert isinstance(op, Cpt)
                network.add_cpt(name[op.child], [name[p] for p in op.parents], op.table)
            return network
        net = mf.MarkovNetwork(variables)
        for op in self.operations:
            if isinstance(op, (Counted, Apart)):
                op.build(net, name)
            elif isinstance(op, Clause):
                positive = {name[v]: s for v, s, sign in op.literals if sign}
                negative = {name[v]: s for v, s, sign in op.literals if not sign}
                net.add_clause(positive, negative, weight=op.weight)
            elif len(op.scopes) == 1:
                net.add_factor([name[v] for v in op.scopes[0]], log_table=op.log_table)
            else:
                net.add_factors([[name[v] for v in scope] for scope in op.scopes], log_table=op.log_table)
        return net

    def _placed(self) -> list[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
        """Scope, dense log-table and pool cell of every entry, for each factor in the model's order."""
        placed = []
        pool = 0
        # A Bayesian network compiles its tables in the order of its variables.
        operations = sorted(self.operations, key=lambda op: op.child if isinstance(op, Cpt) else 0)
        for op in operations:
            if isinstance(op, Clause):
                scope = tuple(v for v, _, _ in op.literals)
                axes = [(i, s, sign) for i, (_, s, sign) in enumerate(op.literals)]
                true = literal_table([self.cardinalities[v] for v in scope], axes)
                cells = [-np.inf, 0.0] if op.weight == np.inf else [0.0, op.weight]
                placed.append((scope, np.where(true, cells[1], cells[0]), pool + true))
                pool += 2
            elif isinstance(op, Counted):
                scope = tuple(v for v, _, _ in op.literals)
                where = np.empty([self.cardinalities[v] for v in scope], np.int64)
                for states in np.ndindex(*where.shape):
                    true = sum((x == s) == sign for x, (_, s, sign) in zip(states, op.literals, strict=True))
                    where[states] = op.cell(true)
                placed.append((scope, np.array(op.pool())[where], pool + where))
                pool += len(op.pool())
            elif isinstance(op, Apart):
                cells = np.array(op.pool(self.cardinalities))
                for scope in op.scopes:
                    x, y = (np.arange(self.cardinalities[v]) for v in scope)
                    where = np.minimum(abs(x[:, None] - y), len(cells) - 1)
                    placed.append((scope, cells[where], pool + where))
                pool += len(cells)
            elif isinstance(op, Cpt):
                with np.errstate(divide="ignore"):
                    log_table = np.log(op.table / op.table.sum(axis=-1, keepdims=True))
                where = pool + np.arange(log_table.size).reshape(log_table.shape)
                placed.append(((*op.parents, op.child), log_table, where))
                pool += log_table.size
            else:
                where = pool + np.arange(op.log_table.size).reshape(op.log_table.shape)
                placed += [(scope, op.log_table, where) for scope in op.scopes]
                pool += op.log_table.size
        return placed

    @property
    def factors(self) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """Scope and dense log-table of each factor."""
        return [(scope, table) for scope, table, _ in self._placed()]

    @property
    def n_cells(self) -> int:
        """Length of the pool of log-potentials the model compiles to."""
        sizes = {
            Clause: lambda op: 2,
            Counted: lambda op: len(op.pool()),
            Apart: lambda op: len(op.pool(self.cardinalities)),
            Cpt: lambda op: op.table.size,
            Table: lambda op: op.log_table.size,
        }
        return sum(sizes[type(op)](op) for op in self.operations)

    def oracle(self, evidence: Mapping[int, Any] | None = None) -> Oracle:
        """Brute force over this model given evidence by position."""
        return Oracle(self.cardinalities, self.factors, evidence)

    def pool_counts(self, oracle: Oracle) -> np.ndarray:
        """Expected number of times each pool cell is read."""
        counts = np.zeros(self.n_cells)
        for f, (_, _, where) in enumerate(self._placed()):
            np.add.at(counts, where, oracle.counts(f))
        return counts

    def from_pool(self, pool: np.ndarray) -> list[np.ndarray]:
        """A vector over pool cells as one dense table per factor."""
        return [pool[where] for _, _, where in self._placed()]

    def named(self, by_position: Mapping[int, Any]) -> dict[str | int, Any]:
        """Evidence or an event by position, by name."""
        return {self.labels[v]: given for v, given in by_position.items()}

    def states(self, assignment: Mapping[Any, Any]) -> list[int]:
        """An assignment by name as states by position."""
        return [int(assignment[label]) for label in self.labels]

    def permuted(self, order: Sequence[int]) -> Spec:
        """The same model with its variables declared in another order; names travel with the variables.

        Position i of the result is variable ``order[i]`` here. Operations come in reverse.
        """
        new = {old: i for i, old in enumerate(order)}

        def move(op: Operation) -> Operation:
            if isinstance(op, Clause):
                return Clause(tuple((new[v], s, sign) for v, s, sign in op.literals), op.weight)
            if isinstance(op, Counted):
                return Counted(op.what, tuple((new[v], s, sign) for v, s, sign in op.literals), op.numbers)
            if isinstance(op, Apart):
                return Apart(tuple((new[a], new[b]) for a, b in op.scopes), op.numbers)
            if isinstance(op, Cpt):
                return Cpt(new[op.child], tuple(new[p] for p in op.parents), op.table)
            return Table(tuple(tuple(new[v] for v in scope) for scope in op.scopes), op.log_table)

        return Spec(
            tuple(self.cardinalities[v] for v in order),
            tuple(move(op) for op in reversed(self.operations)),
            tuple(self.labels[v] for v in order),
        )

    def __repr__(self) -> str:
        with np.printoptions(threshold=10_000, floatmode="unique"):
            lines = [f"Spec(cardinalities={self.cardinalities}, labels={self.labels}, operations=("]
            lines += [f"  {op!r}," for op in self.operations]
        return "\n".join([*lines, "))"])


class Chooser(Protocol):
    """Where random choices come from; smaller numbers are simpler."""

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""


@dataclass
class Seeded:
    """Choices from a NumPy generator."""

    rng: np.random.Generator

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))


@dataclass
class Drawn:
    """Choices from hypothesis, which shrinks them."""

    draw: Any

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))


def _cardinalities(choose: Chooser, largest: int = 5, most: int = MAX_VARIABLES) -> tuple[int, ...]:
    wanted = choose.integer(1, most)
    cards: list[int] = []
    joint = 1
    for _ in range(wanted):
        # Mostly binary, so that models of many variables fit under the cap on joint states.
        card = (2, 2, 3, 1, 2, 4, 5)[choose.integer(0, 6)]
        card = min(card, largest)
        if joint * card > MAX_JOINT_STATES:
            break
        cards.append(card)
        joint *= card
    return tuple(cards)


def _labels(choose: Chooser, n: int) -> tuple[str | int, ...]:
    if choose.integer(0, 3) == 3:
        return tuple(range(10, 10 + n))
    return tuple(f"x{i}" for i in range(n))


def _log_table(choose: Chooser, shape: tuple[int, ...], scale: float, hard: bool = True) -> np.ndarray:
    """Log-potentials from one seed: 0 is all zeros; some tables have ties, some have hard zeros."""
    seed = choose.integer(0, 2**16)
    if seed == 0:
        return np.zeros(shape)
    rng = np.random.default_rng(seed)
    flavour = choose.integer(0, 3)
    if flavour == 1:
        values = scale * rng.integers(-2, 3, shape)  # ties
    else:
        values = scale * rng.normal(size=shape)
    values = np.round(np.asarray(values, np.float64), 3)
    if hard and flavour >= 2:
        values = np.where(rng.random(shape) < (0.15 if flavour == 2 else 0.5), -np.inf, values)
    return values


def _scope(choose: Chooser, cards: Sequence[int], arity: int, distinct: bool = False) -> tuple[int, ...]:
    scope: list[int] = []
    size = 1
    for _ in range(arity):
        v = choose.integer(0, len(cards) - 1)
        if distinct and v in scope:
            continue
        size *= cards[v]
        if size > 700:
            break
        scope.append(v)
    return tuple(scope)


WEIGHTS = (1.25, np.inf, -0.75, 2.0)


def _structured(choose: Chooser, cards: Sequence[int], scope: tuple[int, ...], hard: bool) -> Operation:
    """A structured factor on distinct variables; on two of them it may be a Potts or a truncated factor."""
    weight = WEIGHTS[choose.integer(0, 3)]
    weight = weight if hard or weight < np.inf else 3.0
    what = ("clause", "parity", "at_most_one", "exactly", "cardinality", "and", "apart", "apart")[choose.integer(0, 7)]
    if what == "apart" and len(scope) == 2:
        first, second = scope
        if choose.integer(0, 1):
            return Apart(((first, second),), (weight, -0.5) if weight < np.inf else (0.0, -np.inf))
        truncation = (1.5, 2.0, 3.0, np.inf)[choose.integer(0, 3)]
        numbers = (weight if weight < np.inf else 0.5, truncation, float(choose.integer(1, 2)))
        return Apart(((first, second), (second, first))[: choose.integer(1, 2)], numbers)
    literals = tuple((v, choose.integer(0, cards[v] - 1), choose.integer(0, 1) == 1) for v in scope)
    if what in ("clause", "apart"):
        return Clause(literals, weight)
    if what == "exactly":
        return Counted(what, literals, (weight, float(choose.integer(0, len(literals)))))
    if what == "cardinality":
        size = choose.integer(min(2, len(scope) + 1), len(scope) + 1)
        return Counted(what, literals, tuple(_log_table(choose, (size,), 1.5, hard).tolist()))
    return Counted(what, literals, (weight,))


def build_graph(choose: Chooser, *, scale: float = 1.5, clauses: bool = True, hard: bool = True) -> Spec:
    """A random Markov network: any arity to four, repeats, ties, hard zeros, isolated variables, structured factors."""
    cards = _cardinalities(choose)
    operations: list[Operation] = []
    for _ in range(choose.integer(0, 10)):
        what = choose.integer(0, 10)
        if what >= 9 and clauses:
            scope = _scope(choose, cards, (2, 3, 4, 2, 1, 0)[choose.integer(0, 5)], distinct=True)
            operations.append(_structured(choose, cards, scope, hard))
            continue
        if what == 8 and operations and isinstance(operations[-1], Table):
            scope = operations[-1].scopes[0]  # the same scope again
        else:
            scope = _scope(choose, cards, (2, 1, 2, 3, 2, 4, 0)[choose.integer(0, 6)])
        scopes = [scope]
        if what == 7:  # tied: other scopes of the same shape
            for _ in range(choose.integer(1, 3)):
                other = tuple(
                    [v for v in range(len(cards)) if cards[v] == cards[u]][
                        choose.integer(0, sum(c == cards[u] for c in cards) - 1)
                    ]
                    for u in scope
                )
                scopes.append(other)
        shape = tuple(cards[v] for v in scope)
        operations.append(Table(tuple(scopes), _log_table(choose, shape, scale, hard)))
    return Spec(cards, tuple(operations), _labels(choose, len(cards)))


def build_forest(choose: Chooser, *, scale: float = 1.5, clauses: bool = False, hard: bool = True) -> Spec:
    """A random model whose factor graph is a forest, up to three variables a factor; ``clauses``: structured ones."""
    cards = _cardinalities(choose)
    operations: list[Operation] = []
    v = 1
    while v < len(cards):
        new = [v]
        if choose.integer(0, 4) == 4 and v + 1 < len(cards):
            new.append(v + 1)
        if choose.integer(0, 6) < 6:  # otherwise a new tree starts here
            scope = [*new, choose.integer(0, v - 1)]
            turn = choose.integer(0, len(scope) - 1)
            scope = scope[turn:] + scope[:turn]
            shape = tuple(cards[u] for u in scope)
            if clauses and choose.integer(0, 2) > 0:
                made = _structured(choose, cards, tuple(scope), hard)
                # The same pair the other way round would close a cycle.
                operations.append(Apart(made.scopes[:1], made.numbers) if isinstance(made, Apart) else made)
            else:
                operations.append(Table((tuple(scope),), _log_table(choose, shape, scale, hard)))
        v += len(new)
    for _ in range(choose.integer(0, 4)):
        u = choose.integer(0, len(cards) - 1)
        operations.append(Table(((u,),), _log_table(choose, (cards[u],), scale, hard)))
    return Spec(cards, tuple(operations), _labels(choose, len(cards)))


def build_bayesian_network(choose: Chooser) -> Spec:
    """A random Bayesian network of up to three parents each; some rows are deterministic."""
    cards = _cardinalities(choose)
    operations = []
    for child in range(len(cards)):
        parents = _scope(choose, cards[:child], choose.integer(0, 3), distinct=True) if child else ()
        shape = (*(cards[p] for p in parents), cards[child])
        seed = choose.integer(0, 2**16)
        table = np.full(shape, 1.0 / cards[child])
        if seed:
            rng = np.random.default_rng(seed)
            table = rng.dirichlet(np.ones(cards[child]), size=shape[:-1])
            sure = rng.random(shape[:-1]) < (0.0, 0.3, 1.0)[choose.integer(0, 2)]
            one_hot = np.eye(cards[child])[rng.integers(0, cards[child], shape[:-1])]
            table = np.where(sure[..., None], one_hot, table)
        operations.append(Cpt(child, parents, table))
    # Arcs need not follow the order of declaration.
    turn = choose.integer(0, len(cards) - 1)
    order = [*range(turn, len(cards)), *range(turn)]
    return Spec(cards, tuple(operations), _labels(choose, len(cards))).permuted(order)


def build_evidence(choose: Chooser, spec: Spec, *, virtual: bool = True) -> dict[int, Any]:
    """Hard evidence on some variables and likelihoods on others; it may be impossible."""
    evidence: dict[int, Any] = {}
    for v in range(spec.n_variables):
        what = choose.integer(0, 5)
        card = spec.cardinalities[v]
        if what == 4:
            evidence[v] = choose.integer(0, card - 1)
        elif what == 5 and virtual:
            grid = (0.5, 1.0, 0.0, 2.5, 0.01)
            likelihood = np.array([grid[choose.integer(0, 4)] for _ in range(card)])
            if not likelihood.any():
                likelihood[0] = 1.0
            evidence[v] = likelihood
    return evidence


_BUILDERS = {"graph": build_graph, "forest": build_forest, "bayesian": build_bayesian_network}


@st.composite
def specs(draw: Any, kind: str = "graph", **settings: Any) -> Spec:
    """A random model of a kind: "graph", "forest" or "bayesian"."""
    return _BUILDERS[kind](Drawn(draw), **settings)


@st.composite
def specs_with_evidence(
    draw: Any, kind: str = "graph", virtual: bool = True, **settings: Any
) -> tuple[Spec, dict[int, Any]]:
    """A random model and random evidence by position."""
    choose = Drawn(draw)
    spec = _BUILDERS[kind](choose, **settings)
    return spec, build_evidence(choose, spec, virtual=virtual)


def random_spec(seed: int, kind: str = "graph", **settings: Any) -> Spec:
    """The same models from a seed, without hypothesis."""
    return _BUILDERS[kind](Seeded(np.random.default_rng(seed)), **settings)


def random_evidence(seed: int, spec: Spec, *, virtual: bool = True) -> dict[int, Any]:
    """Evidence from a seed, without hypothesis."""
    return build_evidence(Seeded(np.random.default_rng(seed)), spec, virtual=virtual)
