"""A Markov logic program and a world: its ground network, probabilities of atoms, and which formulas push an atom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.explorer.core.stopping import nobody_waits
from markovfield.explorer.works.code import lines_of
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.verbs import decode, marginals
from markovfield.logic.markov_logic import MarkovLogic
from markovfield.logic.world import GroundNetwork
from markovfield.plot._sketch import LINE, place

__all__ = ["LogicWork"]

MOST_EVIDENCE, MOST_CLAUSES = 200_000, 200_000
# Atoms that a page lists, and that it draws with their links.
MOST_LISTED, MOST_DRAWN = 400, 80
# Formulas that are left out one at a time, and axes of a ground formula that is looked into.
MOST_LEFT_OUT, MOST_AXES = 40, 12
LIMITS: dict[str, Any] = {"time_limit": 20.0, "callback": nobody_waits}
# Weights whose ground formulas are counted in the likeliest world.
MOST_COUNTED = 500


class LogicWork:
    """A program, grounded with evidence, and what follows when atoms are set by hand.

    Examples
    --------
    >>> kb = MarkovLogic("person = {Anna, Bob}  Friends(person, person)  Smokes(person)\\n"
    ...     "1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))")
    >>> work = LogicWork(kb)
    >>> told = work.ground("Friends(Anna, Bob)", "Smokes")
    >>> [atom["name"] for atom in told["atoms"]]
    ['Smokes(Anna)', 'Smokes(Bob)']
    >>> found = work.ask({"Smokes(Anna)": True})
    >>> round(found["probabilities"]["Smokes(Bob)"], 4)
    0.7503
    """

    def __init__(self, program: MarkovLogic) -> None:
        self.program = program
        self._world: GroundNetwork | None = None
        self._factors: dict[int, list[int]] | None = None

    def about(self) -> dict[str, Any]:
        """The program: its formulas and predicates."""
        return {
            "rules": [
                {"text": str(rule), "hard": rule.hard, "weight": None if rule.hard else rule.weight or 0.0}
                for rule in self.program.rules
            ],
            "predicates": [
                {"name": p.name, "types": list(p.types), "closed": bool(p.closed)}
                for p in self.program.predicates.values()
            ],
            "domains": {kind: list(names[:50]) for kind, names in self.program.domains.items()},
        }

    def ground(self, evidence: Any = "", query: Any = "") -> dict[str, Any]:
        """Ground the program.

        Parameters
        ----------
        evidence
            Ground atoms as in a database file.
        query
            Predicates or atoms, separated by blanks or semicolons; everything that is open where empty.
        """
        if not isinstance(evidence, str) or len(evidence) > MOST_EVIDENCE:
            raise ModelError(f"evidence must be a text of at most {MOST_EVIDENCE:,} characters")
        if not isinstance(query, str) or len(query) > 2000:
            raise ModelError("a query must be a text of at most 2,000 characters")
        # With a line break it can never be taken for the name of a file.
        facts = self.program.facts(evidence + "\n") if evidence.strip() else None
        asked = _asked(query)
        self._world = self.program.ground(facts, asked or None, max_clauses=MOST_CLAUSES)
        self._factors = None
        world, graph = self._world, self._world.compile()
        names = list(world.atoms[:MOST_LISTED])
        return {
            "atoms": [
                {"name": name, "predicate": name.partition("(")[0], "links": len(self._of(i))}
                for i, name in enumerate(names)
            ],
            "n_atoms": len(world.atoms),
            "n_formulas": graph.n_factors,
            "rules": {name: list(map(_plain, column)) for name, column in world._columns().items()},
            "closed": [name for name, closed in world.predicates.items() if closed],
            "drawing": self._drawing(graph) if 0 < len(world.atoms) <= MOST_DRAWN else None,
        }

    def ask(self, truths: Any = None) -> dict[str, Any]:
        """Probabilities of the atoms, given truth values of some of them."""
        world, known = self._known(truths)
        with without_warnings():
            answer = marginals(world.compile(), known, **LIMITS)
        names = world.atoms[:MOST_LISTED]
        errors = None if answer.monte_carlo is None else answer.monte_carlo.standard_errors
        return {
            "probabilities": {name: float(answer[name][1]) for name in names},
            "truths": known,
            "method": answer.method,
            "guarantee": answer.guarantee,
            "converged": bool(answer.converged),
            "error": None if errors is None else _finite(float(np.max(errors, initial=0.0))),
            "seconds": float(answer.seconds),
            "log_partition": _finite(float(answer.log_partition) + world.log_constant),
            "bounds": [_finite(float(bound) + world.log_constant) for bound in answer.log_partition_bounds],
        }

    def best(self, truths: Any = None) -> dict[str, Any]:
        """The likeliest world, given truth values of some atoms, and how often it violates each formula.

        Returns
        -------
        dict
            ``true``: the atoms that hold, ``n_true``; ``score``, ``gap``, ``optimal`` and ``method``; for each rule
            ``holds``: how many of its ground formulas are satisfied, and ``violated``: how many are not, None where
            that is not known (of formulas that do not bear on a query nobody counts).
        """
        world, known = self._known(truths)
        graph = world.compile()
        with without_warnings():
            found = decode(graph, known, **LIMITS)
        states = np.asarray(found.states, np.int64)
        gap, holds = float(found.gap), self._holds(world, states)
        names = [str(world.atoms[i]) for i in np.flatnonzero(states)[:MOST_LISTED].tolist()]
        return {
            "true": names,
            "n_true": int(states.sum()),
            "score": _finite(float(found.score) + world.log_constant),
            "gap": gap if math.isfinite(gap) else None,
            "optimal": bool(found.optimal),
            "method": found.method,
            "seconds": float(found.seconds),
            "holds": holds,
            "violated": [
                None if count is None or world.query else int(world.tallies[i].total) - count
                for i, count in enumerate(holds)
            ],
            "truths": known,
        }

    def _holds(self, world: GroundNetwork, states: Any) -> list[int | None]:
        """For each rule, how many of its ground formulas a world satisfies, those that the evidence settles too."""
        rules = self.program.rules
        tallies = [world.tallies.get(i) for i in range(len(rules))]
        known: list[int | None] = [
            # A world that is possible satisfies every hard formula that the evidence leaves open.
            int(t.total - t.violated) if rule.hard and t is not None else None
            for rule, t in zip(rules, tallies, strict=True)
        ]
        if len(world.weights) > MOST_COUNTED:
            return known
        for k, (rule, _) in enumerate(world.weight_keys):
            if not math.isfinite(world.satisfied[k]):
                continue
            alone = np.zeros(len(world.weights))
            alone[k] = 1.0
            # With this weight alone the score counts.
            count = float(world.with_weights(alone).compile().score(states)) + float(world.satisfied[k])
            if math.isfinite(count):
                known[rule] = (known[rule] or 0) + round(count)
        return known

    def code(self, path: Path | None, evidence: str, query: str, truths: Any = None) -> str:
        """Lines of Python that ground and ask the same."""
        _, known = self._known(truths)
        given = [repr(evidence + "\n") if evidence.strip() else "None"]
        if asked := _asked(query):
            given.append(repr(asked))
        return lines_of(
            path,
            f"world = model.ground({', '.join(given)})",
            f"answer = mf.marginals(world, {known!r})",
            "print(answer)",
            f"best = mf.decode(world, {known!r})",
        )

    def push(self, atom: Any, truths: Any = None) -> dict[str, Any]:
        """What each formula does to an atom.

        Returns
        -------
        dict
            ``log_odds`` of the atom; ``rules``: its log-odds without each soft formula, which are worked out anew;
            ``ground``: each ground formula with the atom, and by how much it favours truth, averaged over its other
            atoms as though they were independent.
        """
        world, known = self._known(truths)
        at = world.atoms.find(atom)
        if at is None:
            raise ModelError(f"the ground network has no atom {atom!r:.80}")
        name = world.atoms[at]
        if name in known:
            raise ModelError(f"{name} was set by hand: clear it to see which formulas push it")
        with without_warnings():
            answer = marginals(world.compile(), known, **LIMITS)
        log_odds = _log_odds(answer[name])
        return {
            "atom": name,
            "probability": float(answer[name][1]),
            "log_odds": log_odds,
            "rules": self._without_each(world, known, name, log_odds),
            "ground": self._ground_pushes(world, answer, at),
            "guarantee": answer.guarantee,
        }

    # ---- parts ------------------------------------------------------------------------------------------------

    def _known(self, truths: Any) -> tuple[GroundNetwork, dict[str, bool]]:
        if self._world is None:
            raise ModelError("the program is not grounded yet")
        given = {} if truths is None else truths
        if not isinstance(given, Mapping) or not all(isinstance(v, bool) for v in given.values()):
            raise ModelError("truth values must be given as atoms with true or false")
        known = {}
        for atom, truth in given.items():
            at = self._world.atoms.find(atom)
            if at is None:
                raise ModelError(f"the ground network has no atom {atom!r:.80}")
            known[self._world.atoms[at]] = truth
        return self._world, known

    def _of(self, atom: int) -> list[int]:
        """The factors of an atom."""
        assert self._world is not None
        if self._factors is None:
            s = self._world.compile().structure
            owners = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
            self._factors = {}
            for variable, factor in zip(s.scopes.tolist(), owners.tolist(), strict=True):
                own = self._factors.setdefault(variable, [])
                if not own or own[-1] != factor:
                    own.append(factor)
        return self._factors.get(atom, [])

    @staticmethod
    def _drawing(graph: FactorGraph) -> dict[str, Any]:
        """Places of atoms and the pairs that share a ground formula."""
        s = graph.structure
        pairs: set[tuple[int, int]] = set()
        for f in range(s.n_factors):
            scope = sorted(set(s.scope(f).tolist()))
            pairs |= {(a, b) for i, a in enumerate(scope) for b in scope[i + 1 :]}
        edges = sorted(pairs)
        sizes = [(7.0 * len(str(name)) + 16.0, 26.0) for name in graph.variables]
        placed = place(sizes, edges, [LINE] * len(edges), "auto")
        return {
            "nodes": [
                {"name": str(name), "x": x, "y": y, "width": size[0]}
                for name, (x, y), size in zip(graph.variables, placed.centres, sizes, strict=True)
            ],
            "edges": edges,
            "width": placed.width,
            "height": placed.height,
        }

    def _without_each(
        self, world: GroundNetwork, known: dict[str, bool], name: str, log_odds: float | None
    ) -> list[dict[str, Any]]:
        found = []
        used = [k for k, weight in enumerate(world.weights.tolist()) if weight != 0.0]
        for k in used[:MOST_LEFT_OUT]:
            weights = world.weights.copy()
            weights[k] = 0.0
            with without_warnings():
                answer = marginals(world.with_weights(weights).compile(), known, **LIMITS)
            other = _log_odds(answer[name])
            push = None if log_odds is None or other is None else log_odds - other
            text = self.program.weight_name(world.weight_keys[k])
            found.append({"formula": text, "weight": float(world.weights[k]), "without": other, "push": push})
        return sorted(found, key=lambda one: -abs(one["push"] or 0.0))

    def _ground_pushes(self, world: GroundNetwork, answer: Any, atom: int) -> list[dict[str, Any]]:
        graph, operator, found = world.compile(), world.assembled.operator.tocsr(), []
        for f in self._of(atom)[:MOST_LISTED]:
            scope = graph.structure.scope(f).tolist()
            columns: Any = np.unique(operator[graph.cells(f).ravel()].indices) if len(scope) <= MOST_AXES else []
            names = [self.program.weight_name(world.weight_keys[k]) for k in columns] or ["a hard formula"]
            push = _push(graph.table(f), scope, atom, answer, graph) if len(scope) <= MOST_AXES else None
            found.append({"formula": "; ".join(names), "atoms": [str(graph.variables[v]) for v in scope], "push": push})
        return sorted(found, key=lambda one: -abs(one["push"] or 0.0))


def _push(table: Any, scope: list[int], atom: int, answer: Any, graph: FactorGraph) -> float | None:
    """Mean difference of a log-table between the atom true and false; None where that is infinite."""
    axes: dict[int, int] = {}
    values = np.asarray(table, np.float64)
    letters = [axes.setdefault(v, len(axes)) for v in scope]
    # An atom that stands in a formula twice has one truth value.
    operands: Any = (values, letters, sorted(axes.values()))
    values = np.einsum(*operands)
    order = list(axes)
    values = np.moveaxis(values, order.index(atom), 0)
    others = [v for v in order if v != atom]
    weight = np.ones(())
    for v in others:
        weight = np.multiply.outer(weight, np.asarray(answer[graph.variables[v]], np.float64))
    with np.errstate(invalid="ignore"):
        difference = np.where(weight > 0, values[1] - values[0], 0.0)
        total = float((weight * difference).sum())
    return _finite(total)


def _log_odds(shares: Any) -> float | None:
    no, yes = float(shares[0]), float(shares[1])
    return math.log(yes / no) if yes > 0 and no > 0 else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _asked(query: str) -> list[str]:
    """Predicates and atoms of a query: blanks separate them, but not within brackets."""
    found, depth, word = [], 0, ""
    for character in query + " ":
        depth += (character == "(") - (character == ")")
        if (character.isspace() or character in ",;") and depth <= 0:
            found += [word] if word else []
            word = ""
        else:
            word += character
    return found
