"""What is worth observing next: mutual information with a target, and the value of information for a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular
from markovfield.inference.automatic import choose
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback, graph_of
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["Ranking", "mutual_information", "value_of_information"]


@dataclass(frozen=True, eq=False)
class Ranking(Tabular):
    """Variables with a number each, largest first.

    ``ranking["X"]`` is X's number; iterating gives pairs in falling order.
    """

    quantity: str
    values: dict[VariableName, float]

    def __getitem__(self, variable: VariableName) -> float:
        try:
            return self.values[variable]
        except (KeyError, TypeError):
            raise ModelError(
                f"variable {variable!r} is not in the ranking: it is observed, a target or unknown"
            ) from None

    def __iter__(self) -> Any:
        return iter(self.values.items())

    def __len__(self) -> int:
        return len(self.values)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows = list(self.values.items())[:limit]
        return {"variable": [name for name, _ in rows], "value": [value for _, value in rows]}

    def top(self, count: int = 10) -> list[tuple[VariableName, float]]:
        """The first pairs."""
        return list(self.values.items())[:count]

    def __repr__(self) -> str:
        rows = self.top(20)
        wide = max((len(str(v)) for v, _ in rows), default=0)
        lines = [f"Ranking by {self.quantity}", *(f"  {v!s:<{wide}}  {x:.6g}" for v, x in rows)]
        return "\n".join([*lines, *([f"  ... and {len(self) - 20} more"] if len(self) > 20 else [])])


def _rank(quantity: str, names: Sequence[VariableName], values: Sequence[float]) -> Ranking:
    order = sorted(range(len(names)), key=lambda i: -values[i])
    return Ranking(quantity, {names[i]: float(values[i]) for i in order})


def _posteriors(
    graph: FactorGraph, known: Evidence, target: int, method: MethodLike, running: Running
) -> tuple[FloatArray, list[FloatArray | None]]:
    """P(target), and for each of its states the marginals of all variables given that state (None when impossible).

    One run of all marginals per state of the target, whatever the number of variables.
    """
    offsets = graph.structure.value_offsets

    def run(evidence: Evidence) -> FloatArray:
        chosen = choose(method, "marginals", graph, evidence)
        values: FloatArray = chosen.marginals(graph, evidence, running=running).values
        return values

    prior = run(known)[offsets[target] : offsets[target + 1]]
    given: list[FloatArray | None] = []
    for state, p in enumerate(prior.tolist()):
        if p <= 0:
            given.append(None)
            continue
        states = known.states.copy()
        states[target] = state
        states.flags.writeable = False
        # What is known of the target only says how likely its states are, which is in its marginal already.
        rest = tuple((v, vector) for v, vector in known.likelihoods if v != target)
        try:
            given.append(run(Evidence(states, rest)))
        except ImpossibleEvidenceError:
            given.append(None)
    return prior, given


def _joint_with(
    graph: FactorGraph,
    target: VariableName,
    variables: Sequence[VariableName] | None,
    evidence: Mapping[Any, Any] | None,
    method: MethodLike,
    running: Running,
) -> tuple[list[VariableName], list[FloatArray]]:
    """Names of the candidates, and the joint table ``[states of target, states of candidate]`` of each."""
    s = graph.structure
    known = Evidence.parse(s, evidence)
    t = s.names.position(target)
    if known.states[t] >= 0:
        raise ModelError(f"the target {target!r} is observed: nothing can tell more about it")
    if variables is None:
        candidates = [v for v in range(s.n_variables) if v != t and known.states[v] < 0]
    else:
        candidates = s.names.positions(variables)
        if t in candidates:
            raise ModelError(f"the target {target!r} is among the variables to rank")
    prior, given = _posteriors(graph, known, t, method, running)
    offsets = s.value_offsets
    tables = []
    for v in candidates:
        blank = np.zeros(int(s.cardinalities[v]))
        rows = [blank if g is None else p * g[offsets[v] : offsets[v + 1]] for p, g in zip(prior, given, strict=True)]
        tables.append(np.array(rows))
    return [s.names.variables[v] for v in candidates], tables


def _information(joint: FloatArray) -> float:
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return max(0.0, float((joint[seen] * np.log(joint[seen] / outer[seen])).sum()))


@shows_progress
def mutual_information(
    model: Any,
    target: VariableName,
    variables: Sequence[VariableName] | None = None,
    evidence: Mapping[Any, Any] | None = None,
    *,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Ranking:
    """How much each unobserved variable tells about a target, given the evidence, in nats; the most telling first.

    I(T; X | e) = sum of p(t, x | e) log [p(t, x | e) / (p(t | e) p(x | e))]: the fall of the target's entropy that
    observing X brings on average. All variables together cost one run of all marginals for each state of the target.

    Parameters
    ----------
    variables
        The candidates; all unobserved ones when None.
    n_jobs, time_limit, callback, progress
        As for `markovfield.marginals`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"ill": 2, "test": 2, "coin": 2})
    >>> net.add_cpt("ill", [], [0.9, 0.1])
    >>> net.add_cpt("test", ["ill"], [[0.95, 0.05], [0.1, 0.9]])
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> [(name, round(value, 4)) for name, value in mf.analysis.mutual_information(net, "ill")]
    [('test', 0.1846), ('coin', 0.0)]
    """
    running = Running(n_jobs, time_limit, callback)
    graph = graph_of(model)
    names, tables = _joint_with(graph, target, variables, evidence, method, running)
    return _rank(f"mutual information with {target} (nats)", names, [_information(t) for t in tables])


@shows_progress
def value_of_information(
    model: Any,
    target: VariableName,
    utility: npt.ArrayLike,
    variables: Sequence[VariableName] | None = None,
    evidence: Mapping[Any, Any] | None = None,
    *,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Ranking:
    """How much observing each variable would raise the expected utility of deciding about a target.

    With ``utility[action, state]``, deciding now is worth max over actions of E[utility]; observing X first is worth
    the expectation over X of the same maximum under its posterior. Their difference is never negative.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"ill": 2, "test": 2})
    >>> net.add_cpt("ill", [], [0.9, 0.1])
    >>> net.add_cpt("test", ["ill"], [[0.95, 0.05], [0.1, 0.9]])
    >>> leave, treat = [0.0, -100.0], [-10.0, -20.0]
    >>> round(mf.analysis.value_of_information(net, "ill", [leave, treat])["test"], 4)
    6.75
    """
    running = Running(n_jobs, time_limit, callback)
    graph = graph_of(model)
    s = graph.structure
    card = int(s.cardinalities[s.names.position(target)])
    try:
        gains = np.asarray(utility, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"utility must be numbers [actions, {card}], got {utility!r}") from None
    if gains.ndim != 2 or gains.shape[1] != card or not len(gains) or not np.isfinite(gains).all():
        raise ModelError(
            f"utility must be finite numbers [actions, {card}], one column for each state of {target!r}, "
            f"got shape {gains.shape}"
        )
    names, tables = _joint_with(graph, target, variables, evidence, method, running)
    values = []
    for joint in tables:
        now = float((gains @ joint.sum(axis=1)).max())
        later = float((gains @ joint).max(axis=0).sum())
        values.append(max(0.0, later - now))
    return _rank(f"value of information for {target}", names, values)
