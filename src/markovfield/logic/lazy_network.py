"""A ground network that is not written down: counted, decoded as it is needed, or grounded after all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular
from markovfield.logic.grounding.network import Opened
from markovfield.logic.language.evidence import Facts, facts_of

if TYPE_CHECKING:
    from markovfield.logic.explanations import GroundExplanation, Sizes
    from markovfield.logic.markov_logic import MarkovLogic
    from markovfield.logic.world import GroundNetwork

__all__ = ["LazyNetwork"]


@dataclass(eq=False, repr=False)
class LazyNetwork(Tabular):
    """A program and the evidence of one world, of which nothing is grounded yet (`MarkovLogic.lazy` makes it).

    `markovfield.decode` grounds only what it needs (`CuttingPlaneInference`), `markovfield.explain` counts, and for
    all else the network is grounded.

    Attributes
    ----------
    query
        What is asked for; None where it is everything.
    """

    program: MarkovLogic
    facts: Facts
    query: tuple[str, ...] | None
    closed: tuple[str, ...] | None
    split: bool
    max_clauses: int
    memory_limit: str | None
    _ground: GroundNetwork | None = field(default=None, init=False)

    answered_by: ClassVar[str] = "markovfield.logic.lazy_verbs"

    def opened(self) -> Opened:
        """The program and its evidence in a database; who asks closes it."""
        return self.program._opened(self.facts, self.query, self.closed, self.memory_limit)

    def ground(self) -> GroundNetwork:
        """The ground network, made once."""
        if self._ground is None:
            self._ground = self.program.ground(
                self.facts, self.query, closed=self.closed, split=self.split, max_clauses=self.max_clauses,
                memory_limit=self.memory_limit,
            )  # fmt: skip
        return self._ground

    def compile(self) -> FactorGraph:
        """The factor graph of the ground network."""
        return self.ground().compile()

    def given(self, evidence: Any) -> LazyNetwork:
        """The same with more evidence: truth values of ground atoms."""
        if not evidence:
            return self
        more = facts_of(evidence, self.program._program)
        if more.probabilities:
            raise ModelError("probabilities are evidence of kb.lazy(evidence); a verb takes true and false")
        facts = Facts(
            {name: dict(atoms) for name, atoms in self.facts.atoms.items()},
            self.facts.probabilities, self.facts.values, self.facts.constants, self.facts.unknown,
        )  # fmt: skip
        for name, atoms in more.atoms.items():
            for args, truth in atoms.items():
                facts.say(name, args, truth, "evidence")
        # What is closed is decided by the program's own evidence, as for a network that is grounded.
        opened = self.opened()
        opened.store.close()
        closed = tuple(name for name, is_closed in opened.closed.items() if is_closed)
        left = self.facts.left_open
        for name, atoms in more.atoms.items():
            if name in closed and not set(atoms) <= left.get(name, set()):
                raise ModelError(f"{name} is closed: its atoms are true in the evidence, or false")
            kinds = self.program.predicates[name].types
            for args in atoms:
                for arg, kind in zip(args, kinds, strict=True):
                    if arg not in opened.store.index[kind]:
                        raise ModelError(
                            f"the evidence on {name}({', '.join(args)}) names the constant {arg!r}, which there is not "
                            f"among type {kind}: new ones are evidence of kb.lazy"
                        )
        return replace(self, facts=facts, closed=closed)

    def sizes(self) -> Sizes:
        """How much there is to ground: counted by the database, nothing is written down."""
        from markovfield.logic.explanations import sizes

        given = self.opened()
        try:
            return sizes(given, split=self.split)
        finally:
            given.store.close()

    def explain(self, verb: str, evidence: Any, method: Any, **asked: Any) -> GroundExplanation:
        """What `markovfield.explain` says: it counts, and grounds where that is within ``max_clauses``."""
        from markovfield.inference.explain import Explanation, explain
        from markovfield.logic.explanations import GroundExplanation

        given = self.given(evidence)
        found = given.sizes()
        lazily = verb == "decode" and method in ("auto", "cutting_plane_inference", "cutting_planes", "cpi")
        if found.n_ground_formulas <= self.max_clauses and not lazily:
            told = explain(given.ground(), verb, None, method, **asked)
            assert isinstance(told, GroundExplanation)
            return told
        reason = "grounds only what good worlds violate"
        if not lazily:
            reason = (
                f"refused: {found.n_ground_formulas:,} ground formulas are more than max_clauses={self.max_clauses:,}; "
                "name some atoms in the query, close predicates, or decode, which grounds what it needs"
            )
        name = "cutting_plane_inference" if lazily else "none"
        bits, n = float(np.log2(max(found.n_bytes, 1.0))), int(found.n_open_atoms)
        plain = Explanation(
            verb=verb, method=name, reason=reason, structure="not grounded", n_variables=n, n_free=n,
            n_factors=found.n_ground_formulas, width=-1, log2_largest=np.inf, log2_states=np.inf, log2_bytes=bits,
            log2_operations=np.inf, guarantee="exact" if lazily else "none", fits=lazily,
        )  # fmt: skip
        return GroundExplanation.of(plain, found, -1)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return self.ground()._columns(limit)

    def __repr__(self) -> str:
        asked = "everything" if self.query is None else ", ".join(self.query)
        n = sum(map(len, self.facts.atoms.values())) + sum(map(len, self.facts.probabilities.values()))
        return f"LazyNetwork: {self.program!r} given {n:,} atoms, asked for {asked}; not grounded"
