"""What `decode` answers: an assignment, its score, and how far from the best it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import Frozen
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Answer, Guarantee
from markovfield.names import VariableName

__all__ = ["Decoding", "Solution", "decoding_of_states", "named_states"]


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Frozen):
    """One assignment and its score.

    Attributes
    ----------
    assignment
        State name of each decoded variable. Made when it is first asked for: naming a million states takes longer than
        finding some of them.
    states
        ``int32[n]`` state indices by position; -1 for variables summed out.
    variables
        Positions of the decoded variables, in the order asked for.
    """

    graph: FactorGraph = field(repr=False)
    states: npt.NDArray[np.int32]
    score: float
    variables: Sequence[int] = field(repr=False)

    @cached_property
    def assignment(self) -> dict[VariableName, Any]:
        return named_states(self.graph, self.states, self.variables)

    def __repr__(self) -> str:
        few = named_states(self.graph, self.states, self.variables[:6])
        shown = ", ".join(f"{name}={state!r}" for name, state in few.items())
        return f"Solution(score {self.score:.6g}: {shown}{', ...' if len(self.variables) > 6 else ''})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Decoding(Answer):
    """The most likely outcome, its score, and how far from the best it can be.

    Attributes
    ----------
    assignment
        State name of each decoded variable.
    states
        ``int32[n]`` state indices by position; -1 for variables summed out (marginal MAP).
    score
        Sum of log-potentials of the assignment (of the marginal, for marginal MAP); scores are maximised.
    gap
        Upper bound less score; infinite where nothing bounds the score.
    tolerance
        How much of a gap still counts as none: what rounding may make of the sums that were compared.
    n_best
        The best assignments in falling order of score, this one first.
    expected_loss
        The posterior expected loss of the assignment, where ``decode(loss=...)`` asked for the least; otherwise None.
        Such an answer is `optimal` where its marginals are exact; it is no maximiser of the score, which is there for
        information, without a bound.
    guarantee
        ``"exact"`` where the assignment is proven to be the best (`optimal`), otherwise ``"lower"``: the best is no
        less. Of the least expected loss, ``"exact"`` or ``"approximate"`` as its marginals are.
    score_guarantee
        ``"exact"``: `score` is that of the assignment. ``"lower"``, of marginal MAP alone: the sum over the other
        variables was too large, and `score` is proven to be no more than it.
    persistent
        ``bool[n]`` or None: variables proven to have, all at once, the state of `states` in some best assignment, where
        the method can tell (all of them where `optimal`).
    """

    graph: FactorGraph
    states: npt.NDArray[np.int32]
    score: float
    gap: float = 0.0
    tolerance: float = 0.0
    n_best: tuple[Solution, ...]
    score_guarantee: Guarantee = "exact"
    width: int = -1
    expected_loss: float | None = None
    persistent: npt.NDArray[np.bool_] | None = None
    _state: Any = field(default=None, repr=False)

    def changed(self, **fields: Any) -> Decoding:
        """A copy with other fields: what ``dataclasses.replace`` gives, in a third of its time."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **fields)
        return other

    @property
    def assignment(self) -> dict[VariableName, Any]:
        """State name of each decoded variable."""
        return self.n_best[0].assignment

    @property
    def upper_bound(self) -> float:
        """Proven bound on the best score there is; infinite where nothing is proven."""
        return np.inf if self.gap == np.inf else self.score + self.gap

    @property
    def objective(self) -> str:
        """What was asked for: the largest ``"score"``, or the least ``"expected_loss"``."""
        return "score" if self.expected_loss is None else "expected_loss"

    @property
    def optimal(self) -> bool:
        """Whether the assignment is proven to be the best by what was asked for (see `objective`).

        For the score: whether it is proven to be within `tolerance` of the best. For the expected loss: whether it was
        minimised under exact marginals.
        """
        if self.expected_loss is not None:
            return self.guarantee == "exact"
        return self.gap <= self.tolerance < np.inf

    def __getitem__(self, variable: VariableName) -> Any:
        return self.assignment[variable]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns: dict[Any, Any] = {"rank": [], "score": [], "variable": [], "state": []}
        for rank, solution in enumerate(self.n_best, 1):
            named = named_states(self.graph, solution.states, solution.variables[:limit])
            columns["rank"] += [rank] * len(named)
            columns["score"] += [solution.score] * len(named)
            columns["variable"] += named.keys()
            columns["state"] += named.values()
            if limit is not None and len(columns["rank"]) >= limit:
                break
        return columns

    def _html_columns(self, limit: int) -> dict[Any, Any]:
        found = self._columns(limit)
        return found if len(self.n_best) > 1 else {name: found[name] for name in ("variable", "state")}

    def __repr__(self) -> str:
        if self.expected_loss is not None:
            proof = "the least" if self.optimal else "least by approximate marginals"
            found = f"expected loss {self.expected_loss:.6g} ({proof}), score {self.score:.6g}"
        else:
            proof = "optimal" if self.optimal else f"within {self.gap:.4g} of the best"
            found = f"score {self.score:.6g} ({proof})"
        lines = [f"Decoding: {found}, {self.method}, {self.seconds:.3g} s"]
        variables = self.n_best[0].variables
        shown = named_states(self.graph, self.states, variables[:20])
        lines += [f"  {name}: {state}" for name, state in shown.items()]
        if len(variables) > 20:
            lines.append(f"  ... and {len(variables) - 20} more")
        return "\n".join(lines)


def named_states(
    graph: FactorGraph, states: npt.NDArray[np.int32], variables: Sequence[int]
) -> dict[VariableName, Any]:
    """State names of some variables, by variable name."""
    names = graph.structure.names
    if isinstance(variables, range) and variables == range(len(states)):
        labels, chosen = names.variables, states.tolist()
    else:
        labels, chosen = [names.variables[v] for v in variables], states[np.asarray(variables, np.int64)].tolist()
    named = dict(zip(labels, chosen, strict=True))
    if names.states:
        for label, v in zip(labels, variables, strict=True):
            own = names.states.get(v)
            if own is not None:
                named[label] = own[named[label]]
    return named


def decoding_of_states(
    graph: FactorGraph,
    solutions: Sequence[tuple[npt.NDArray[np.int32], float]],
    variables: Sequence[int] | None = None,
    **details: Any,
) -> Decoding:
    """Dress proven best assignments (state indices and scores, best first) as the user's answer."""
    shown = range(graph.n_variables) if variables is None else variables
    hidden = np.zeros(graph.n_variables, np.bool_)
    if variables is not None:
        hidden[:] = True
        hidden[list(variables)] = False
    found = []
    for states, score in solutions:
        own = states.copy()
        own[hidden] = -1
        own.flags.writeable = False
        found.append(Solution(graph, own, float(score), shown))
    return Decoding(
        graph=graph,
        states=found[0].states,
        score=found[0].score,
        n_best=tuple(found),
        **details,
    )
