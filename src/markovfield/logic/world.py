"""A ground network: a program and its evidence as a factor graph, which all verbs and methods take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Drawn
from markovfield.logic.grounding.asked import matching
from markovfield.logic.grounding.assemble import Assembled
from markovfield.logic.grounding.atoms import AtomNames
from markovfield.logic.grounding.ground import Tally
from markovfield.models.log_linear import LogLinear
from markovfield.names import Names, VariableName

if TYPE_CHECKING:
    from markovfield.inference.explain import Explanation
    from markovfield.logic.explanations import GroundExplanation
    from markovfield.logic.markov_logic import MarkovLogic

__all__ = ["GroundNetwork"]


@dataclass(eq=False, repr=False)
class GroundNetwork(Drawn):
    """The ground Markov network of a `MarkovLogic` program (Murphy 19.4.5, figure 19.12).

    Its variables are ground atoms, with states False and True. ``log_partition`` sums over these atoms the exponential
    of the weights of ground formulas that the evidence leaves open; `log_constant` is what the others add.

    Attributes
    ----------
    program
        The program.
    weights, weight_keys
        ``float64[k]``: the weights of its rules, in their order; a rule with ``+`` variables has several. The number of
        each one's rule, and the constants it is for.
    tallies
        For each rule, what became of its groundings.
    predicates
        Predicate to whether it is closed here: what the evidence does not name is false.
    satisfied, settled
        How many groundings of each weight the evidence satisfies (nan where a rule of weight zero was left out), and
        the log-probability of soft evidence on atoms that are known all the same.
    seconds
        How long grounding took.
    """

    program: MarkovLogic
    assembled: Assembled
    weights: npt.NDArray[np.float64]
    weight_keys: Sequence[tuple[int, tuple[str, ...]]]
    tallies: dict[int, Tally]
    predicates: dict[str, bool]
    satisfied: npt.NDArray[np.float64]
    settled: float
    seconds: float
    query: tuple[str, ...] = ()
    _graph: FactorGraph | None = field(default=None, init=False)

    answered_by: ClassVar[str] = "markovfield.logic.world_verbs"

    def compile(self) -> FactorGraph:
        """The factor graph, made once."""
        if self._graph is None:
            tables = self.assembled.base + self.assembled.operator @ self.weights
            self._graph = FactorGraph(self.assembled.structure, tables, marks_hold=True)
        return self._graph

    def log_linear(self) -> LogLinear:
        """The same as a log-linear model, whose parameters are the weights."""
        base = FactorGraph(self.assembled.structure, self.assembled.base, marks_hold=True)
        names = [self.program.weight_name(key) for key in self.weight_keys]
        return LogLinear.from_arrays(base, self.assembled.operator, self.weights, names)

    def with_weights(self, weights: npt.ArrayLike) -> GroundNetwork:
        """The same ground formulas with other weights; nothing is grounded again."""
        new = np.array(weights, np.float64)
        if new.shape != self.weights.shape or not np.isfinite(new).all():
            raise ModelError(f"weights must be {len(self.weights)} finite numbers, got an array of shape {new.shape}")
        left_out = np.flatnonzero(np.isnan(self.satisfied) & (new != 0.0))
        if len(left_out):
            name = self.program.weight_name(self.weight_keys[int(left_out[0])])
            raise ModelError(f"{name} had weight zero and was not grounded: ground(keep_all=True) keeps all formulas")
        return GroundNetwork(
            self.program, self.assembled, new, self.weight_keys, self.tallies, self.predicates,
            self.satisfied, self.settled, self.seconds, self.query,
        )  # fmt: skip

    @property
    def log_constant(self) -> float:
        """What groundings that the evidence satisfies add to the score of every assignment."""
        return float(np.nansum(self.weights * self.satisfied)) + self.settled

    @property
    def atoms(self) -> AtomNames:
        """Names of the variables, made when they are asked for."""
        names = self.assembled.structure.names.variables
        assert isinstance(names, AtomNames)
        return names

    @property
    def variables(self) -> Sequence[VariableName]:
        """Names of the ground atoms that are variables."""
        return self.atoms

    @property
    def asked(self) -> npt.NDArray[np.bool_]:
        """``bool[n]``: the atoms asked for; without a query, all but those that stand for parts of formulas."""
        names = self.atoms
        if not self.query:
            asked = np.ones(len(names.numbers), np.bool_)
            for relation in names.relations:
                if relation.hidden:
                    last = relation.base + relation.n_atoms
                    asked &= (names.numbers < relation.base) | (names.numbers >= last)
            return asked
        found = [matching(names.by_name, names.codes, text) for text in self.query]
        return np.isin(names.numbers, np.concatenate(found))

    def _count_states(self, position: int) -> int:
        return 2

    def _current_names(self) -> Names:
        return self.assembled.structure.names

    @cached_property
    def n_components(self) -> int:
        """Number of connected components."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        s = self.assembled.structure
        if not s.n_variables:
            return 0
        size = np.diff(s.scope_offsets)
        first = np.repeat(s.scopes[s.scope_offsets[:-1][size > 0]], size[size > 0])
        shape = (s.n_variables, s.n_variables)
        graph = csr_array((np.ones(len(first), np.int8), (first, s.scopes)), shape=shape)
        return int(connected_components(graph, False)[0])

    @property
    def n_bytes(self) -> int:
        """Memory of the structure, without the names, which are made when asked for."""
        s = self.assembled.structure
        arrays = (s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, s.child, s.kind, s.cardinalities)
        return sum(a.nbytes for a in arrays)

    def explained(self, found: Explanation) -> GroundExplanation:
        """An explanation of the factor graph, with what the evidence left of the program."""
        from markovfield.logic.explanations import GroundExplanation, Sizes, n_atoms_of

        s = self.assembled.structure
        total = sum(t.total for t in self.tallies.values())
        atoms = n_atoms_of(self.atoms.relations, self.program._program.functions)
        left = Sizes(atoms, float(s.n_variables), total, s.n_factors, float(self.n_bytes))
        return GroundExplanation.of(found, left, self.n_components)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rules = list(enumerate(self.program.rules))[:limit]
        found = [self.tallies.get(i, Tally()) for i, _ in rules]
        return {
            "rule": [str(rule) for _, rule in rules],
            "groundings": [t.total for t in found],
            "satisfied by evidence": [t.satisfied for t in found],
            "violated by evidence": [t.violated for t in found],
            "open": [t.open for t in found],
            "factors": [t.factors for t in found],
        }

    def __repr__(self) -> str:
        s = self.assembled.structure
        total = sum(t.total for t in self.tallies.values())
        closed = [name for name, is_closed in self.predicates.items() if is_closed]
        opened = [name for name, is_closed in self.predicates.items() if not is_closed]
        lines = [
            f"GroundNetwork: {s.n_variables:,} ground atoms, {s.n_factors:,} ground formulas of {total:,.0f}, "
            f"{self.n_bytes / 1e6:.3g} MB, {self.seconds:.3g} s",
            f"  open: {', '.join(opened) or 'none'}; closed (false where the evidence is silent): "
            f"{', '.join(closed) or 'none'}",
        ]
        return "\n".join(lines)
