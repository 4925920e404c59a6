"""Markov logic networks: formulas of first-order logic with weights (Murphy 19.4.5)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.files import atomic_writer, write_archive
from markovfield.frames import Tabular
from markovfield.learning.core.report import FitReport
from markovfield.logic.grounding.network import Opened, ground_network, opened
from markovfield.logic.language.evidence import Facts, facts_of, read_facts
from markovfield.logic.language.program import Predicate, Program, Rule
from markovfield.logic.language.reader import formula_of, read_file, read_program
from markovfield.logic.language.syntax import Constant, Formula, substitute
from markovfield.logic.language.typing import check_rule
from markovfield.logic.program_files import described, restored, spelled_out
from markovfield.logic.world import GroundNetwork
from markovfield.text_files import read_source

if TYPE_CHECKING:
    from markovfield.logic.lazy_network import LazyNetwork

__all__ = ["MarkovLogic", "read"]

MAX_CLAUSES = 50_000_000
IntArray = npt.NDArray[np.int64]
Evidence = str | os.PathLike[str] | Mapping[Any, Any] | Iterable[str] | Facts | None


class MarkovLogic(Tabular):
    """A Markov logic network: weighted formulas, a template for Markov networks over the atoms of any world.

    Parameters
    ----------
    text
        The program: types and constants, declarations of predicates, formulas with weights (a period behind a formula
        makes it hard). Names in small letters are variables of formulas, unless variables are written ``?x``. See
        :doc:`/markov_logic` for the language.

    Examples
    --------
    >>> import markovfield as mf
    >>> kb = mf.MarkovLogic('''
    ...     person = {Anna, Bob}
    ...     Friends(person, person)
    ...     Smokes(person)
    ...     1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))
    ... ''')
    >>> world = kb.ground({"Friends(Anna, Bob)": True, "Smokes(Anna)": True}, query=["Smokes"])
    >>> round(float(mf.marginals(world)["Smokes(Bob)"][1]), 4)
    0.7503
    """

    fits_databases: ClassVar[bool] = True

    def __init__(self, text: str = "") -> None:
        self._program = read_program(text)
        self._learned: dict[tuple[int, tuple[str, ...]], float] = {}
        self.fit_report: FitReport | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> MarkovLogic:
        """Read a program from a file; what it includes is looked for beside it."""
        made = cls()
        made._program = read_file(Path(path))
        return made

    @property
    def domains(self) -> dict[str, tuple[str, ...]]:
        """Type to the constants that the program names."""
        return {kind: tuple(names) for kind, names in self._program.domains.items()}

    @property
    def predicates(self) -> dict[str, Predicate]:
        """Predicates by name."""
        return dict(self._program.predicates)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Formulas with their weights, in order."""
        return tuple(self._program.rules)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read otherwise than it may have been meant."""
        return tuple(self._program.notes)

    def fit(
        self, databases: Any, query: str | Sequence[str] | None = None, method: Any = "auto", **asked: Any
    ) -> MarkovLogic:
        """The program with weights learned from databases, as `markovfield.fit` has it.

        See `markovfield.logic.learning.fit_weights` for what may be asked.

        Examples
        --------
        >>> import markovfield as mf
        >>> kb = mf.MarkovLogic("Smokes(person)\\nCancer(person)\\nSmokes(x) => Cancer(x)\\nSmokes(x)")
        >>> data = "Smokes(A) Cancer(A) Smokes(B) Cancer(B) Smokes(C) !Smokes(D)"
        >>> fitted = mf.fit(kb, data, query=["Cancer"])
        >>> [round(rule.weight, 4) for rule in fitted.rules]
        [0.6931, 0.0]
        """
        from markovfield.logic.learning import fit_weights

        return fit_weights(self, databases, query, method, **asked)

    def learn_structure(
        self, databases: Any, query: str | Sequence[str] | None = None, method: Any = "auto", **asked: Any
    ) -> MarkovLogic:
        """The program with clauses that databases show, and weights, as `markovfield.learn_structure` has it."""
        from markovfield.learning.structure import learn_structure

        made: MarkovLogic = learn_structure(self, method, databases=databases, query=query, **asked)
        return made

    def to_text(self) -> str:
        """The program as text, in the syntax of Alchemy; reading it gives the same model.

        A weight that was learned for single constants (``+`` variables) becomes a formula with these constants, which
        every world has from then on.
        """
        return str(spelled_out(self._program, self._learned))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a file, in the syntax of Alchemy."""
        with atomic_writer(path) as stream:
            stream.write(self.to_text().encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the program and its weights to an archive that `markovfield.load` reads back as it is."""
        write_archive(path, 1, *described(self._program, self._learned))

    @classmethod
    def from_archive(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> MarkovLogic:
        """The program that an archive describes."""
        made = cls()
        made._program, made._learned = restored(about, arrays)
        return made

    def compile(self) -> FactorGraph:
        """The ground network of a world of which nothing is known: of the program's own constants.

        Examples
        --------
        >>> import markovfield as mf
        >>> kb = mf.MarkovLogic("person = {Anna, Bob}\\nSmokes(person)\\n0.7 Smokes(x)")
        >>> mf.marginals(kb)["Smokes(Anna)"].round(3)
        array([0.332, 0.668])
        """
        if not any(self._program.domains.values()):
            raise ModelError("the program names no constants: ground(evidence) gives the network of a world")
        return self.ground().compile()

    def add_domain(self, kind: str, constants: Iterable[str]) -> MarkovLogic:
        """Name constants of a type."""
        for name in constants:
            self._program.add_constant(kind, str(name))
        self._program.domains.setdefault(kind, {})
        return self

    def add_predicate(self, name: str, types: Sequence[str], *, closed: bool | None = None) -> MarkovLogic:
        """Declare a predicate; a type that ends in ``!`` is of an argument that the others determine."""
        if name in self._program.predicates or name in self._program.functions:
            raise ModelError(f"predicate {name} is declared twice")
        determined = tuple(i for i, kind in enumerate(types) if kind.endswith(("!", "?")))
        soft = any(kind.endswith("?") for kind in types)
        plain = tuple(kind.rstrip("!?") for kind in types)
        for kind in plain:
            self._program.domains.setdefault(kind, {})
        self._program.predicates[name] = Predicate(name, plain, closed, determined, soft)
        return self

    def add_rule(
        self, formula: str | Formula, weight: float | None = None, *, hard: bool = False, each: Sequence[str] = ()
    ) -> MarkovLogic:
        """Add a formula, as text or built of `markovfield.logic` (``Atom``, ``&``, ``|``, ``~``, ``>>``)."""
        if isinstance(formula, str):
            formula, marked = formula_of(formula)
            each = (*each, *(name for name in marked if name not in each))
        if hard and weight is not None:
            raise ModelError("a formula has a weight, or is hard, not both")
        if weight is not None and not np.isfinite(weight):
            raise ModelError(f"a weight must be a finite number, got {weight!r}; hard=True makes a formula hard")
        self._program.rules.append(check_rule(self._program, Rule(formula, weight, hard, tuple(each))))
        return self

    def add_conditional(
        self, child: str, given: str, probability: float | Mapping[tuple[str, ...], float]
    ) -> MarkovLogic:
        """Say how probable an atom is where a formula holds: plates of Bayesian networks, with tied tables.

        Parameters
        ----------
        child, given
            Of the atom that is the child, and of what it depends on (``""``: nothing). Where all cases of its parents
            are given, each in a call of its own, the ground network is a Bayesian network, and its log Z is zero.
        probability
            That the child is true; or, with ``+`` variables, a probability for each combination of their constants, in
            the order in which ``given`` and then ``child`` name them. Those of the child alone (an argument declared
            with ``!``) sum to one.

        Examples
        --------
        >>> import markovfield as mf
        >>> kb = mf.MarkovLogic("*Next(t, t)\\nRain(t)\\nWet(t)")
        >>> _ = kb.add_conditional("Wet(x)", "Rain(x)", 0.9).add_conditional("Wet(x)", "!Rain(x)", 0.2)
        >>> _ = kb.add_conditional("Rain(y)", "Next(x, y) ^ Rain(x)", 0.7)
        >>> _ = kb.add_conditional("Rain(y)", "Next(x, y) ^ !Rain(x)", 0.3).add_conditional("Rain(0)", "", 0.5)
        >>> world = kb.ground("Next(0, 1) Next(1, 2) Wet(2)")
        >>> round(mf.log_partition(world).log_partition, 4), mf.marginals(world)["Rain(2)"].round(4).tolist()
        (-0.5978, [0.1818, 0.8182])
        """
        from markovfield.logic.conditionals import conditional_rules

        found = [(check_rule(self._program, rule), own) for rule, own in conditional_rules(child, given, probability)]
        for rule, weights in found:
            self._learned.update({(len(self.rules), key): weight for key, weight in weights.items()})
            self._program.rules.append(rule)
        return self

    def with_weights(self, weights: Mapping[int, Any] | Sequence[float]) -> MarkovLogic:
        """The same program with other weights: one for each rule that is not hard, in order, or ``{rule: weight}``.

        Of a rule with ``+`` variables the weight may be ``{constants: weight}``.
        """
        soft = [i for i, rule in enumerate(self.rules) if not rule.hard]
        if not isinstance(weights, Mapping):
            if len(weights) != len(soft):
                raise ModelError(f"the program has {len(soft)} soft formulas, got {len(weights)} weights")
            weights = dict(zip(soft, weights, strict=True))
        made = self._copy()
        for i, weight in weights.items():
            if i not in soft:
                raise ModelError(f"rule {i} is not one of the soft formulas")
            if isinstance(weight, Mapping):
                made._learned.update({(i, tuple(key)): float(value) for key, value in weight.items()})
            else:
                made._program.rules[i] = replace(made._program.rules[i], weight=float(weight))
                made._learned = {key: value for key, value in made._learned.items() if key[0] != i}
        return made

    def _copy(self) -> MarkovLogic:
        made = MarkovLogic()
        old = self._program
        domains = {kind: dict(names) for kind, names in old.domains.items()}
        made._program = Program(domains, dict(old.predicates), dict(old.functions), list(old.rules), list(old.notes))
        made._learned = dict(self._learned)
        return made

    def facts(self, evidence: Evidence) -> Facts:
        """Evidence as ground atoms: from a file, a text, a dict or a list of atoms."""
        worlds = self.worlds(evidence)
        if len(worlds) != 1:
            raise ModelError(f"the evidence has {len(worlds)} worlds, separated by ---; one is grounded at a time")
        return worlds[0]

    def worlds(self, evidence: Evidence) -> list[Facts]:
        """All worlds of a database (``---`` stands between them)."""
        if evidence is None:
            return [Facts()]
        if isinstance(evidence, Facts):
            return [evidence]
        if isinstance(evidence, os.PathLike) or (
            isinstance(evidence, str) and "\n" not in evidence and "(" not in evidence and evidence.strip()
        ):
            return read_facts(read_source(evidence).text(), self._program, os.fspath(evidence))
        if isinstance(evidence, str):
            return read_facts(evidence, self._program)
        return [facts_of(evidence, self._program)]

    def ground(
        self,
        evidence: Evidence = None,
        query: str | Sequence[str] | None = None,
        *,
        closed: Iterable[str] | None = None,
        split: bool = False,
        keep_all: bool = False,
        max_clauses: int = MAX_CLAUSES,
        memory_limit: str | None = None,
    ) -> GroundNetwork:
        """The ground network of a world.

        Parameters
        ----------
        evidence
            A file, a text, a dict from atoms to truth values (or probabilities), or a list of atoms that are true.
        query
            Predicates, or atoms such as ``"advisedBy(x, Person3)"``: only what these depend on is kept. Everything
            where None.
        closed
            Predicates whose atoms are false where the evidence is silent. By default those that the program declares
            so (``*Name``); where it says so of none, those that have evidence and are not asked for.
        split
            Formulas become clauses that divide their weight, as in Alchemy; else each grounding is one factor.
        keep_all
            Keep formulas of weight zero (learning needs them).
        max_clauses
            More ground formulas than this are refused.
        memory_limit
            Of the database, such as ``"4GB"``; beyond it, it goes to disk.
        """
        started = time.perf_counter()
        opened = self._opened(evidence, query, closed, memory_limit)
        try:
            found = ground_network(opened, split=split, keep_all=keep_all, max_clauses=max_clauses)
        finally:
            opened.store.close()
        return GroundNetwork(
            self, found.assembled, opened.weights, opened.keys, found.tallies, opened.closed, found.satisfied,
            found.settled, time.perf_counter() - started, opened.asked or (),
        )  # fmt: skip

    def lazy(
        self,
        evidence: Evidence = None,
        query: str | Sequence[str] | None = None,
        *,
        closed: Iterable[str] | None = None,
        split: bool = False,
        max_clauses: int = MAX_CLAUSES,
        memory_limit: str | None = None,
    ) -> LazyNetwork:
        """The network of a world without grounding it: for decoding by cutting planes, and for `markovfield.explain`.

        What is asked is as for `ground`. The score of a decoding is what ground formulas that the evidence leaves open
        lose: less the weights of those that are false, plus those of negative weight that are true.

        Examples
        --------
        >>> import markovfield as mf
        >>> kb = mf.MarkovLogic("Smokes(person)\\nCancer(person)\\n2 Smokes(x) => Cancer(x)\\n-1 Cancer(x)")
        >>> answer = mf.decode(kb.lazy("Smokes(Anna)", query=["Cancer"]))
        >>> answer.assignment, answer.score
        ({'Cancer(Anna)': True}, -1.0)
        """
        from markovfield.logic.lazy_network import LazyNetwork

        asked = (query,) if isinstance(query, str) else None if query is None else tuple(query)
        names = None if closed is None else tuple(closed)
        return LazyNetwork(self, self.facts(evidence), asked, names, split, max_clauses, memory_limit)

    def _opened(
        self,
        evidence: Evidence,
        query: str | Sequence[str] | None,
        closed: Iterable[str] | None,
        memory_limit: str | None,
    ) -> Opened:
        """The program and its evidence in a database; who asks closes it."""
        asked = (query,) if isinstance(query, str) else None if query is None else tuple(query)
        return opened(self._program, self._learned, self.facts(evidence), asked, closed, memory_limit)

    def weight_name(self, key: tuple[int, tuple[str, ...]]) -> str:
        """A weight in words: the formula, with the constants that it is for."""
        rule, values = self.rules[key[0]], key[1]
        given = {name: Constant(value) for name, value in zip(rule.each, values, strict=True)} if values else {}
        return str(substitute(rule.formula, dict(given)))

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rules = self.rules[:limit]
        return {
            "weight": ["hard" if rule.hard else rule.weight for rule in rules],
            "formula": [str(rule.formula) for rule in rules],
            "each": [", ".join(rule.each) for rule in rules],
            "where": [rule.where for rule in rules],
        }

    def __repr__(self) -> str:
        p, r = len(self._program.predicates), len(self._program.rules)
        return f"MarkovLogic({p} predicate{'s' * (p != 1)}, {r} rule{'s' * (r != 1)})"

    def __len__(self) -> int:
        return len(self.rules)


def read(path: str | os.PathLike[str]) -> MarkovLogic:
    """Read a Markov logic program from a file (``.mln``).

    Examples
    --------
    >>> import markovfield as mf
    >>> mf.logic.read("no_such_file.mln")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file.mln'
    """
    return MarkovLogic.read(path)
