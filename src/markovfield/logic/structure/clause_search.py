"""Structure learning of Markov logic: clauses by beam search of pseudo-likelihood (Kok and Domingos 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.report import FitReport
from markovfield.learning.undirected.differences import cell_changes
from markovfield.logic.language.program import Predicate
from markovfield.logic.language.syntax import Atom, Variable
from markovfield.logic.learning import by_rule, grounded, listed, side_by_side
from markovfield.logic.structure.clauses import Conjunction, clause_formula
from markovfield.logic.structure.counts import Counts
from markovfield.logic.structure.objective import Cases
from markovfield.logic.structure.search import Limits, Search

if TYPE_CHECKING:
    from markovfield.logic.markov_logic import MarkovLogic

__all__ = ["ClauseSearch", "ClauseStep", "ClauseSteps"]


@dataclass(frozen=True)
class ClauseStep:
    """One step of a search of clauses.

    Attributes
    ----------
    kind
        ``"add"`` or ``"remove"``.
    clause
        The clause as text.
    n_literals
        How many literals it has.
    gain
        What the penalised pseudo-likelihood gained with all weights fitted again.
    log_pseudo_likelihood
        After this step, without the penalty on weights.
    """

    kind: str
    clause: str
    n_literals: int
    gain: float
    log_pseudo_likelihood: float


@dataclass(frozen=True, eq=False)
class ClauseSteps(Tabular):
    """How a program grew, step by step.

    Attributes
    ----------
    steps
        What was added and removed.
    start
        Log-pseudo-likelihood of the program that was given with clauses of single atoms, its weights fitted.
    tried, skipped
        How many different clauses were looked at, and how many of them had too many groundings to be counted.
    n_queries
        How often the database was asked.
    """

    steps: tuple[ClauseStep, ...]
    start: float
    tried: int
    skipped: int
    n_queries: int

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = ("kind", "clause", "n_literals", "gain", "log_pseudo_likelihood")
        return {name: [getattr(step, name) for step in self.steps[:limit]] for name in names}

    def __repr__(self) -> str:
        lines = [f"ClauseSteps: {len(self.steps)} steps, {self.tried:,} clauses tried, from {self.start:.6g}"]
        lines += [f"  {s.kind:6} {s.gain:+10.4f}  {s.clause}" for s in self.steps]
        return "\n".join(lines)


@dataclass(frozen=True)
class ClauseSearch:
    """Clauses of a Markov logic program by beam search: those that make each query atom most likely given all others.

    A clause for every single atom of the query comes first. Then, again and again, a beam of clauses grows literal by
    literal, and the clause of the largest gain is added; the search ends where none gains more than its literals cost.
    The gain is that of the log-pseudo-likelihood (Murphy 19.49) less ``(l2/2) |w|^2`` with the weights of *all* rules
    fitted again, from where they were; at each length the clauses of most promise, by one Newton step, are fitted. At
    the end clauses go that others have made worth less than they cost.

    Counting is the database's: for every atom of the query, what it changes in the number of true groundings, by a join
    over atoms that are true. An evaluation costs the different rows of such changes, not the ground clauses.

    Parameters
    ----------
    max_length, max_variables
        Literals and variables of a clause.
    beam_width
        How many clauses grow at each length.
    penalty
        What a literal costs, in natural-log units: 4 is about the log of the number of literals to choose from.
    l2
        Of the weights, as for `PseudoLikelihood`.
    weighted
        Whether every predicate of the query counts the same, as in Kok and Domingos (2005), the weights of atoms adding
        up to their number; otherwise every atom does. Predicates of two arguments have far more than those of one.
    max_clauses
        At most so many are added.
    predicates
        Which may occur in clauses; all where None.
    constants
        Types whose constants may stand in clauses, in the place of variables.
    refits
        How many clauses of each length have all weights fitted; three times the beam's width where None.
    max_groundings
        A clause whose join may have more rows is left out.

    Examples
    --------
    >>> import markovfield as mf
    >>> kb = mf.MarkovLogic("Smokes(person)\\nCancer(person)")
    >>> ill = " ".join(f"Smokes(A{i}) Cancer(A{i})" for i in range(20))
    >>> well = " ".join(f"!Smokes(B{i})" for i in range(20))
    >>> learned = mf.learn_structure(kb, databases=ill + " " + well, query=["Cancer"])
    >>> [str(rule.formula) for rule in learned.rules]
    ['Cancer(x)', 'Cancer(x) => Smokes(x)']
    """

    max_length: int = 3
    max_variables: int = 3
    beam_width: int = 8
    penalty: float = 4.0
    l2: float = 0.1
    weighted: bool = False
    max_clauses: int = 50
    predicates: Sequence[str] | None = None
    constants: Sequence[str] = ()
    refits: int | None = None
    max_groundings: float = 2e7

    name: ClassVar[str] = "clause_search"
    form: ClassVar[str] = "MarkovLogic"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_length": 1, "max_variables": 1, "beam_width": 1, "penalty": 0, "max_clauses": 0},
            above={"l2": 0, "max_groundings": 0},
        )
        for name in ("predicates", "constants"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ModelError(f"{name} of ClauseSearch must be a list of names, got {value!r}")
        if self.refits is not None and self.refits < 1:
            raise ModelError(f"refits of ClauseSearch must be at least 1, got {self.refits}")

    def learn(
        self, program: MarkovLogic, databases: Any, query: str | Sequence[str] | None, *, running: Running
    ) -> MarkovLogic:
        """A new program: the rules given, a rule for each atom of the query, and the clauses that were found."""
        asked = self._asked(program, query)
        self._check_names(program)
        worlds = [facts for one in listed(databases) for facts in program.worlds(one)]
        if not worlds:
            raise ModelError("learning clauses needs at least one database")
        base = with_units(program, asked)
        grounds, rows = grounded(base, worlds, asked, set(), None, None)
        joined = side_by_side(base, grounds, np.concatenate(rows))
        counts = Counts(program.predicates, grounds, worlds, asked, self.max_groundings)
        try:
            cases = self._cases(joined, counts)
            predicates = program.predicates
            usable = [p for p in predicates.values() if self.predicates is None or p.name in self.predicates]
            constants = {kind: list(counts.codes.get(kind, ())) for kind in self.constants}
            limits = Limits(
                self.max_length, self.max_variables, self.beam_width, self.penalty, self.l2,
                3 * self.beam_width if self.refits is None else self.refits,
            )  # fmt: skip
            search = Search(counts, cases, joined.model.parameters, predicates, usable, constants, limits, running)
            started = search.fit
            steps, message, converged = self._searched(search, running)
            about = ClauseSteps(
                tuple(steps), started.log_pseudo_likelihood, search.tried, search.skipped, counts.n_queries
            )
            made = _with_clauses(base, joined.keys, search)
        finally:
            counts.close()
        made.fit_report = self._report(search, about, joined, message, converged, running)
        return made

    def _asked(self, program: MarkovLogic, query: str | Sequence[str] | None) -> list[str]:
        # Of a predicate with arguments that others determine, each atom is certain given all others.
        free = [name for name, one in program.predicates.items() if not one.determined]
        names = free if query is None else [query] if isinstance(query, str) else list(query)
        for name in names:
            if name not in program.predicates:
                raise ModelError(f"query of learn_structure must name predicates of the program, got {name!r}")
            if name not in free:
                raise ModelError(
                    f"learn_structure finds no clauses about {program.predicates[name]}, of which one atom is true: "
                    "ask for other predicates, and write its formulas by hand"
                )
        if not names:
            raise ModelError("learn_structure needs a predicate to learn clauses of: the program declares none")
        return list(dict.fromkeys(names))

    def _check_names(self, program: MarkovLogic) -> None:
        for name in self.predicates or ():
            if name not in program.predicates:
                raise ModelError(f"predicates of ClauseSearch names {name!r}, which is no predicate of the program")
        kinds = {kind for p in program.predicates.values() for kind in p.types}
        for kind in self.constants:
            if kind not in kinds:
                raise ModelError(f"constants of ClauseSearch names {kind!r}, which is no type of the program")

    def _cases(self, joined: Any, counts: Counts) -> Cases:
        """Log-odds by the rules of the program, which may be any formulas: by their ground network."""
        if (joined.row < 0).any():
            raise ModelError(
                "learn_structure needs rules without quantifiers inside, whose auxiliary atoms nobody sees"
            )
        structure = joined.model.base_graph.structure
        change, fixed = cell_changes(structure, joined.row.astype(np.int64), joined.model.base_graph.log_tables)
        features = np.asarray((change @ joined.model.operator).todense(), np.float64)
        asked = counts.predicate >= 0
        free = asked & np.isfinite(fixed)
        if np.isnan(fixed[asked]).any() or (fixed == np.where(counts.truth, -np.inf, np.inf))[asked].any():
            raise ModelError("the databases violate a hard formula of the program")
        if not free.any():
            raise ModelError("no atom of the query is left open: hard formulas decide them all, or there are none")
        fixed = np.where(asked, fixed, np.inf)
        weights = np.ones(len(fixed))
        if self.weighted:
            sizes = np.bincount(counts.predicate[free], minlength=len(counts.query))
            used = max(int((sizes > 0).sum()), 1)
            weights = (int(free.sum()) / (used * np.maximum(sizes, 1)))[counts.predicate]
        return Cases.of_rows(features, fixed, counts.truth, weights)

    def _searched(self, search: Search, running: Running) -> tuple[list[ClauseStep], str, bool]:
        steps: list[ClauseStep] = []

        def note(kind: str, parts: Conjunction, gain: float) -> None:
            text = str(clause_formula(parts))
            steps.append(ClauseStep(kind, text, len(parts), gain, search.fit.log_pseudo_likelihood))

        try:
            while len(search.found) < self.max_clauses:
                best = search.best()
                if best is None:
                    break
                search.add(best)
                note("add", best.parts, best.gain)
                running.check(search.fit.value)
            full = len(search.found) >= self.max_clauses
            while True:
                dropped = search.drop()
                if dropped is None:
                    break
                note("remove", *dropped)
        except STOPS as stop:
            return steps, str(stop) or "stopped by the keyboard", False
        if full:
            return steps, f"max_clauses: {self.max_clauses} clauses were added", False
        return steps, "no clause gains more than its literals cost", True

    def _report(
        self, search: Search, about: ClauseSteps, joined: Any, message: str, converged: bool, running: Running
    ) -> FitReport:
        notes = [f"{about.tried:,} different clauses were tried with {about.n_queries:,} queries"]
        if about.skipped:
            notes.append(
                f"{about.skipped:,} clauses may have more than {self.max_groundings:g} groundings, and were left out"
            )
        return FitReport(
            method=self.name,
            log_likelihood=float("nan"),
            n_rows=1,
            total_weight=1.0,
            n_parameters=len(search.fit.weights),
            converged=converged,
            iterations=len(about.steps),
            message=message,
            history=tuple(step.log_pseudo_likelihood for step in about.steps),
            seconds=running.seconds,
            objective=-search.fit.value,
            objective_name="minus the log-pseudo-likelihood, with the penalty on weights",
            guarantee="approximate",
            notes=tuple(notes),
            details=about,
        )


def with_units(program: MarkovLogic, names: Sequence[str]) -> MarkovLogic:
    """The program with a rule for every single atom of some predicates, where it has none."""
    made = program.with_weights({})
    for name in names:
        if not any(_is_unit(rule.formula, name) for rule in program.rules if not rule.hard):
            made.add_rule(unit(program.predicates[name]))
    return made


def unit(predicate: Predicate) -> Atom:
    """The atom of a predicate and as many variables."""
    letters = "xyzuvw"
    names = letters if len(predicate.types) <= len(letters) else [f"x{i}" for i in range(len(predicate.types))]
    return Atom(predicate.name, tuple(Variable(v) for v in names[: len(predicate.types)]))


def _is_unit(formula: Any, name: str) -> bool:
    return (
        isinstance(formula, Atom)
        and formula.predicate == name
        and all(isinstance(t, Variable) for t in formula.args)
        and len(set(formula.args)) == len(formula.args)
    )


def _with_clauses(program: MarkovLogic, keys: Sequence[tuple[int, tuple[str, ...]]], search: Search) -> MarkovLogic:
    """The program with fitted weights, and the clauses that were found."""
    weights: npt.NDArray[np.float64] = search.fit.weights
    made = program.with_weights(by_rule(keys, weights[: len(keys)]))
    for parts, weight in zip(search.found, weights[len(keys) :].tolist(), strict=True):
        made.add_rule(clause_formula(parts), weight)
    return made
