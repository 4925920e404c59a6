"""Weights from databases: worlds as one log-linear model whose parameters are the weights of the rules.

Each world is a row of data for its own ground network; side by side they are one network with one row, and every
method of `markovfield.fit` for undirected models applies (likelihood, pseudo-likelihood, contrastive divergence, ...).
With a query the other predicates are given: the conditional likelihood of the query atoms, discriminative training.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import CARDINALITY, cell_reader
from markovfield.factors.structure import Structure, frozen
from markovfield.inference.core.running import Running
from markovfield.learning.fit import fit
from markovfield.learning.registry import resolve
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.fitting import fits_exactly
from markovfield.learning.undirected.pseudo_likelihood import PseudoLikelihood
from markovfield.logic.language.evidence import Facts
from markovfield.logic.pseudo_likelihood import AtomPseudoLikelihood
from markovfield.logic.world import GroundNetwork
from markovfield.models.log_linear import LogLinear
from markovfield.names import Names

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from markovfield.logic.markov_logic import MarkovLogic

__all__ = ["by_rule", "constants_of", "fit_weights", "grounded", "listed", "side_by_side"]

IntRow = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Joined:
    """Worlds side by side: a log-linear model, its single row, and where each weight goes in the program."""

    model: LogLinear
    row: npt.NDArray[np.int16]
    keys: list[tuple[int, tuple[str, ...]]]


def fit_weights(
    program: MarkovLogic,
    databases: Any,
    query: str | Sequence[str] | None = None,
    method: Any = "auto",
    *,
    hidden: Iterable[str] = (),
    closed: Iterable[str] | None = None,
    init: MarkovLogic | None = None,
    max_clauses: int | None = None,
    **asked: Any,
) -> MarkovLogic:
    """The program with weights learned from one or several databases, and a ``fit_report``.

    Parameters
    ----------
    databases
        One database (see `MarkovLogic.ground`) or a list of them, each a world of its own. What they do not name is
        false.
    method
        A method of `markovfield.fit` for undirected models. Its ``l1`` and ``l2`` are of all weights.
    query
        Predicates to predict; all others are given. None: the joint likelihood of everything.
    hidden
        Predicates whose truth nobody knows: summed out, by expectation-maximisation or the gradient.
    closed
        Which of the predicates that are given are false where a database is silent: all where None. What is unknown of
        the others is summed out. Without a query these are the predicates that are given.
    init
        An earlier answer for the same formulas: learning begins with its weights.
    max_clauses
        More ground formulas in one world than this are refused.
    asked
        ``rng``, ``n_jobs``, ``time_limit``, ``callback``, ``progress``: as for `markovfield.fit`.
    """
    program = _started_from(program, init)
    worlds = [facts for one in listed(databases) for facts in program.worlds(one)]
    if not worlds:
        raise ModelError("learning weights needs at least one database")
    asked_for = None if query is None else [query] if isinstance(query, str) else list(query)
    unseen, closed = set(hidden), None if closed is None else list(closed)
    for name in (*unseen, *(asked_for or ())):
        if name.partition("(")[0].strip() not in program.predicates:
            raise ModelError(f"learning names {name!r}, which is no predicate of the program")
    _check_roles(program, asked_for, unseen, closed)
    grounds, rows = grounded(program, worlds, asked_for, unseen, closed, max_clauses)
    both = side_by_side(program, grounds, np.concatenate(rows))
    if not both.keys:
        raise ModelError("the program has no weight to learn: its formulas are hard or fixed")
    _check_hard(program, worlds, grounds, rows)
    meant = [both.model.variables[int(v)] for v in np.flatnonzero(both.row < 0)]
    chosen = _of_sites(_of_all_weights(method, len(both.keys)), both, grounds)
    made = fit(both.model, both.row[None, :], chosen, hidden=meant, **asked)
    fitted = program.with_weights(by_rule(both.keys, made.parameters))
    report = made.fit_report
    unused = np.flatnonzero(np.diff(both.model.operator.tocsc().indptr) == 0)
    note = f"{len(unused)} of {len(both.keys)} weights have no ground formula that depends on the query"
    # One row is all there is of a world: that atoms do not change in it says nothing.
    notes = tuple(text for text in report.notes if "never change in the data" not in text)
    fitted.fit_report = replace(report, notes=(*notes, note) if len(unused) else notes)
    return fitted


def _started_from(program: MarkovLogic, init: MarkovLogic | None) -> MarkovLogic:
    """The program with the weights of another one of the same formulas as a start; fixed ones stay."""
    if init is None:
        return program
    own, other = ([(str(rule.formula), rule.hard, rule.each) for rule in p.rules] for p in (program, init))
    if own != other:
        raise ModelError("init of fit must be a program of the same formulas as the one to fit")
    weights: dict[int, Any] = {}
    free = [i for i, rule in enumerate(program.rules) if not rule.hard and not rule.fixed]
    started = program.with_weights({i: init.rules[i].weight or 0.0 for i in free})
    for (i, values), weight in init._learned.items():
        if i in free:
            weights.setdefault(i, {})[values] = weight
    return started.with_weights(weights)


def _check_roles(program: MarkovLogic, query: list[str] | None, hidden: set[str], closed: Sequence[str] | None) -> None:
    """Refuse predicates that are asked for and hidden, or hidden and closed."""
    asked = {name.partition("(")[0].strip() for name in query or ()}
    for name in sorted(hidden):
        if name in asked:
            raise ModelError(f"{name} is asked for and hidden: nothing would be learned from it")
        if name in (closed or ()):
            raise ModelError(f"{name} is closed and hidden: it is false where a database is silent, or unknown")
    if query is None and not set(program.predicates) - hidden - set(closed or ()):
        raise ModelError("all predicates are hidden or given: there is nothing to learn from")


def _check_hard(
    program: MarkovLogic, worlds: Sequence[Facts], grounds: Sequence[GroundNetwork], rows: Sequence[IntRow]
) -> None:
    """Raise where a database violates a hard formula, by the formula and its constants."""
    for facts, world, row in zip(worlds, grounds, rows, strict=True):
        s = world.assembled.structure
        hard = world.assembled.base == -np.inf
        if not hard.any():
            continue
        known = row >= 0
        factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
        whole = np.ones(s.n_factors, np.bool_)
        whole[factor[~known[s.scopes]]] = False
        cells = cell_reader(s)(np.maximum(row, 0).astype(np.int64))
        wrong = np.flatnonzero(whole & hard[cells])
        if not len(wrong):
            continue
        names = world.atoms
        closed = [name for name in program.predicates if name not in _unknown(world, row)]
        program.ground(Facts(facts.atoms, {}, facts.values, facts.constants), closed=closed)  # names the formula
        told = ", ".join(f"{'' if row[v] else '!'}{names[v]}" for v in s.scope(int(wrong[0])).tolist())
        raise ImpossibleEvidenceError(f"a database violates what is certain: {told}")


def _unknown(world: GroundNetwork, row: IntRow) -> set[str]:
    """Predicates of which a database does not say everything."""
    names = world.atoms
    at = names.numbers[row < 0]
    return {r.predicate.name for r in names.relations if ((at >= r.base) & (at < r.base + r.n_atoms)).any()}


def _of_sites(method: Any, both: Joined, grounds: Sequence[GroundNetwork]) -> Any:
    """Pseudo-likelihood by blocks and with what follows from atoms summed out, where there are such."""
    auxiliary = np.concatenate([_auxiliary(world) for world in grounds])
    structure = both.model.base_graph.structure
    if (both.row[~auxiliary] < 0).any() or not (auxiliary.any() or (structure.kind == CARDINALITY).any()):
        return method
    chosen = method
    if method == "auto":
        chosen = "maximum_likelihood" if fits_exactly(both.model.base_graph, Running()) else "pseudo_likelihood"
    chosen = resolve(chosen, "fit", "LogLinear")
    return AtomPseudoLikelihood(chosen, auxiliary) if isinstance(chosen, PseudoLikelihood) else chosen


def _auxiliary(world: GroundNetwork) -> npt.NDArray[np.bool_]:
    """Which atoms stand for parts of formulas."""
    names = world.atoms
    found = np.zeros(len(names.numbers), np.bool_)
    for relation in names.relations:
        if relation.hidden:
            found |= (names.numbers >= relation.base) & (names.numbers < relation.base + relation.n_atoms)
    return found


def _of_all_weights(method: Any, n: int) -> Any:
    """A method whose l1 is of all weights: elsewhere it leaves out those of single variables, which are intercepts."""
    if method == "auto":
        return method
    chosen = resolve(method, "fit", "LogLinear")
    names = {one.name for one in fields(chosen)} if is_dataclass(chosen) else set()
    if not {"l1", "l2", "penalty"} <= names or not chosen.l1 or chosen.penalty is not None:
        return chosen
    return replace(chosen, l1=0.0, l2=0.0, penalty=Penalty(l2=np.full(n, chosen.l2), l1=np.full(n, chosen.l1)))


def listed(databases: Any) -> list[Any]:
    """Databases as a list; a list of single atoms is one database."""
    if isinstance(databases, (list, tuple)) and not (
        databases and all(isinstance(one, str) and one.count("(") == 1 and "\n" not in one for one in databases)
    ):
        return list(databases)
    return [databases]


def by_rule(keys: Sequence[tuple[int, tuple[str, ...]]], weights: npt.NDArray[np.float64]) -> dict[int, Any]:
    """Weights as `MarkovLogic.with_weights` takes them."""
    found: dict[int, Any] = {}
    for (rule, values), weight in zip(keys, weights.tolist(), strict=True):
        if values:
            found.setdefault(rule, {})[values] = weight
        else:
            found[rule] = weight
    return found


def grounded(
    program: MarkovLogic,
    worlds: Sequence[Facts],
    query: list[str] | None,
    hidden: set[str],
    closed: Iterable[str] | None,
    max_clauses: int | None,
) -> tuple[list[GroundNetwork], list[npt.NDArray[np.int16]]]:
    """Every world with its query atoms open, and the truth of its atoms."""
    if query is None:
        open_names = set(program.predicates) - set(closed or ())
    else:
        open_names = {q.partition("(")[0].strip() for q in query} | hidden
    limits: dict[str, Any] = {} if max_clauses is None else {"max_clauses": max_clauses}
    given = sorted(set(program.predicates) - open_names) if closed is None else closed
    grounds, rows = [], []
    for facts in worlds:
        _check_certain(facts)
        constants = constants_of(program, facts)
        known = {name: atoms for name, atoms in facts.atoms.items() if name not in open_names}
        world = program.ground(
            Facts(known, {}, facts.values, constants), query, closed=given, keep_all=True, **limits
        )  # fmt: skip
        grounds.append(world)
        unknown = set(program.predicates) - open_names - set(given)
        rows.append(_row(world, facts, hidden, unknown))
    return grounds, rows


def _check_certain(facts: Facts) -> None:
    """Refuse probabilities: which world they are of, nobody knows."""
    for name, atoms in facts.probabilities.items():
        for args in atoms:
            raise ModelError(
                f"a database gives {name}({', '.join(args)}) a probability: learning takes what is true or false; what "
                "is unknown is summed out where its predicate is hidden, or given and not closed"
            )


def constants_of(program: MarkovLogic, facts: Facts) -> dict[str, dict[str, None]]:
    """All constants that a database names, those of atoms that are left out of the evidence too."""
    found = {kind: dict(names) for kind, names in facts.constants.items()}
    for name, atoms in facts.atoms.items():
        for args in atoms:
            for kind, value in zip(program.predicates[name].types, args, strict=True):
                found.setdefault(kind, {})[value] = None
    return found


def _row(world: GroundNetwork, facts: Facts, hidden: set[str], unknown: set[str]) -> npt.NDArray[np.int16]:
    """The truth of every atom of a ground network; -1 where it is hidden, or open and not named."""
    names = world.atoms
    row = np.zeros(len(names), np.int16)
    for relation in names.relations:
        inside = (names.numbers >= relation.base) & (names.numbers < relation.base + relation.n_atoms)
        if relation.hidden or relation.predicate.name in hidden | unknown:
            row[inside] = -1
    for name, atoms in facts.atoms.items():
        if name in hidden:
            continue
        for args, truth in atoms.items():
            at = names.position_of(name, args)
            if at is not None:
                row[at] = int(truth)
    return row


def side_by_side(program: MarkovLogic, grounds: Sequence[GroundNetwork], row: npt.NDArray[np.int16]) -> Joined:
    """The networks of several worlds as one log-linear model with one row of data."""
    fixed = {i for i, rule in enumerate(program.rules) if rule.fixed}
    keys = list(dict.fromkeys(key for world in grounds for key in world.weight_keys if key[0] not in fixed))
    column = {key: i for i, key in enumerate(keys)}
    operators, bases, parts = [], [], []
    start = np.zeros(len(keys))
    for world in grounds:
        chosen = np.array([column.get(key, -1) for key in world.weight_keys], np.int64)
        base = world.assembled.base + world.assembled.operator @ np.where(chosen < 0, world.weights, 0.0)
        start[chosen[chosen >= 0]] = world.weights[chosen >= 0]
        operators.append(_columns(world.assembled.operator, chosen, len(keys)))
        bases.append(base)
        parts.append(world.assembled.structure)
    from scipy.sparse import vstack

    structure = parts[0] if len(parts) == 1 else _union(parts)
    base_graph = FactorGraph(structure, np.concatenate(bases), marks_hold=True)
    names = [program.weight_name(key) for key in keys]
    model = LogLinear.from_arrays(base_graph, vstack(operators, format="csr"), start, names)
    return Joined(model, row, keys)


def _columns(operator: csr_array, chosen: npt.NDArray[np.int64], n: int) -> csr_array:
    """Columns of an operator at their places among those of all worlds; those that are fixed go."""
    from scipy.sparse import csr_array as csr

    entries = operator.tocoo()
    keep = chosen[entries.coords[1]] >= 0
    at = (entries.coords[0][keep], chosen[entries.coords[1][keep]])
    return csr((entries.data[keep], at), shape=(operator.shape[0], n))


def _union(parts: Sequence[Structure]) -> Structure:
    """Disjoint union of structures whose variables are numbered one world after the other."""
    n = np.cumsum([0, *(s.n_variables for s in parts)])
    cells = np.cumsum([0, *(s.n_cells for s in parts)])
    axes = np.cumsum([0, *(len(s.scopes) for s in parts)])

    def join(arrays: Sequence[Any], dtype: Any) -> Any:
        return frozen(np.concatenate(arrays), dtype)

    return Structure(
        join([s.cardinalities for s in parts], np.int32),
        join([np.zeros(1, np.int64), *(s.scope_offsets[1:] + axes[i] for i, s in enumerate(parts))], np.int64),
        join([s.scopes + n[i] for i, s in enumerate(parts)], np.int32),
        join([s.table_offsets + cells[i] for i, s in enumerate(parts)], np.int64),
        join([s.table_strides for s in parts], np.int64),
        int(cells[-1]),
        join([s.child for s in parts], np.int32),
        join([s.kind for s in parts], np.int8),
        Names(range(int(n[-1]))),
    )
