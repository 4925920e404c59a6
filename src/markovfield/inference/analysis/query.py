"""Queries: the posterior of a few variables, computed on the part of the model it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular, fresh_name
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.automatic import ENUMERATION_BITS, choose
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike, taken
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.verbs import Callback, form_of, graph_of
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["Distribution", "query"]

SHOWN_ROWS = 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Frozen, Tabular):
    """Probabilities of some variables, jointly, perhaps given others.

    Attributes
    ----------
    variables
        The variables the probabilities are of.
    given
        The variables they are conditional on, beyond the evidence.
    values
        ``float64``: axes of ``given`` first, then of ``variables``; sums to one over the latter. A configuration of
        ``given`` that is impossible has nan.
    """

    graph: FactorGraph
    variables: tuple[VariableName, ...]
    given: tuple[VariableName, ...]
    values: FloatArray
    guarantee: Guarantee = "exact"
    method: str
    seconds: float = 0.0

    def states(self, variable: VariableName) -> Sequence[Any]:
        """State names of a variable."""
        s = self.graph.structure
        position = s.names.position(variable)
        return s.names.state_names(position, int(s.cardinalities[position]))

    def probability(self, states: Mapping[VariableName, Any]) -> float:
        """Probability of one configuration: a state for every variable, and for every given one."""
        s = self.graph.structure
        axes = (*self.given, *self.variables)
        if set(states) != set(axes):
            raise ModelError(f"probability needs a state for each of {list(axes)!r}, got {list(states)!r}")
        at = []
        for name in axes:
            position = s.names.position(name)
            at.append(s.names.state(position, states[name], int(s.cardinalities[position])))
        return float(self.values[tuple(at)])

    @property
    def mode(self) -> dict[VariableName, Any]:
        """The likeliest configuration of the variables; with given ones, of all together as they are listed."""
        if self.given:
            raise ModelError("the mode of a conditional distribution depends on what is given: observe it instead")
        at = np.unravel_index(int(np.argmax(self.values)), self.values.shape)
        return {name: self.states(name)[int(i)] for name, i in zip(self.variables, at, strict=True)}

    @property
    def entropy(self) -> float:
        """Entropy in nats."""
        if self.given:
            raise ModelError("the entropy of a conditional distribution depends on what is given: observe it instead")
        p = self.values[self.values > 0]
        return float(-(p * np.log(p)).sum())

    def items(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Pairs of a configuration (states of ``given``, then of ``variables``) and its probability."""
        names = [self.states(v) for v in (*self.given, *self.variables)]
        return zip(product(*names), self.values.ravel().tolist(), strict=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype)

    def _headline(self) -> str:
        given = f" | {', '.join(map(str, self.given))}" if self.given else ""
        return f"P({', '.join(map(str, self.variables))}{given}), {self.guarantee}, {self.method}, {self.seconds:.3g} s"

    def _rows(self) -> list[tuple[tuple[str, ...], str]]:
        rows = []
        for states, p in self.items():
            rows.append((tuple(map(str, states)), f"{p:.6g}"))
            if len(rows) == SHOWN_ROWS:
                break
        return rows

    def __repr__(self) -> str:
        head = tuple(map(str, (*self.given, *self.variables)))
        rows = [(head, "probability"), *self._rows()]
        wide = [max(len(r[0][i]) for r in rows) for i in range(len(head))]
        lines = [
            "  ".join([*(f"{word:<{w}}" for word, w in zip(words, wide, strict=True)), p]).rstrip() for words, p in rows
        ]
        more = self.values.size - len(rows) + 1
        return "\n".join([self._headline(), *lines, *([f"... and {more} more"] if more else [])])

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows, axes = list(islice(self.items(), limit)), (*self.given, *self.variables)
        columns: dict[Any, Any] = {name: [states[i] for states, _ in rows] for i, name in enumerate(axes)}
        return columns | {fresh_name("probability", axes): [p for _, p in rows]}


@shows_progress
def query(
    model: Any,
    targets: VariableName | Sequence[VariableName],
    evidence: Mapping[Any, Any] | None = None,
    *,
    given: VariableName | Sequence[VariableName] = (),
    method: MethodLike = "auto",
    noise: Any = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Distribution:
    """The posterior distribution of a few variables, jointly.

    Only what the answer depends on is computed with: in a directed model, barren variables go first and then everything
    that the evidence d-separates from the targets (in any model, separates). Use `marginals` for all variables at once.

    Parameters
    ----------
    targets
        A variable, or several for their joint distribution.
    evidence
        Variable name to a state, or to a vector of likelihoods of its states (virtual evidence).
    given
        Variables to condition on without saying their state: the answer has a distribution for each configuration.
    method
        As for `marginals`; ``"auto"`` is exact.
    noise
        As for `marginals`, of Gaussian fields.

    Returns
    -------
    Distribution
        An array with names; ``answer.values`` has the axes of ``given``, then of ``targets``. Of a Gaussian field a
        `GaussianDistribution`: the means of the targets, as linear functions of ``given``, and their covariance.

    Notes
    -----
    Evidence that is impossible is an error where the part of the model that was kept shows it.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    >>> mf.query(net, "rain", evidence={"wet": "yes"}).probability({"rain": "yes"}).__round__(4)
    0.6667
    >>> mf.query(net, "rain", given="wet").values.round(3).tolist()
    [[0.947, 0.053], [0.333, 0.667]]
    """
    running = Running(n_jobs, time_limit, callback)
    form = form_of(model)
    if isinstance(form, GaussianField):
        from markovfield.inference.gaussian.queries import query as query_field

        found: Any = query_field(form, targets, evidence, noise, given, method, running)
        return cast("Distribution", found)
    graph = graph_of(form)
    known = Evidence.parse(graph.structure, evidence)
    wanted, conditions = _listed(graph, targets), _listed(graph, given)
    if not wanted:
        raise ModelError("query(model, targets) needs at least one target")
    positions = graph.names.positions([*conditions, *wanted])
    chosen = choose(method, "marginals", graph, known)
    guarantee: Guarantee = "exact"
    if method == "auto" and isinstance(chosen, JunctionTree):
        chosen, values = _on_what_is_left(chosen, graph, known, positions, running)
    elif hasattr(chosen, "joint"):
        values = chosen.joint(graph, known, positions, running=running)
    else:
        answer = chosen.marginals(graph, known, running=running, **taken(chosen, targets=[positions]))
        values, guarantee = answer.joint([*conditions, *wanted]), answer.guarantee
    if conditions:
        total = values.sum(axis=tuple(range(len(conditions), values.ndim)), keepdims=True)
        values = np.where(total > 0, values / np.where(total > 0, total, 1.0), np.nan)
    values.flags.writeable = False
    return Distribution(
        graph=graph,
        variables=tuple(wanted),
        given=tuple(conditions),
        values=values,
        guarantee=guarantee,
        method=chosen.name,
        seconds=running.seconds,
    )


def _on_what_is_left(
    engine: JunctionTree, graph: FactorGraph, known: Evidence, positions: Sequence[int], running: Running
) -> tuple[Any, FloatArray]:
    """Prune; then enumerate when little is left, which spares the planning. The method, and the joint table."""
    problem = engine.prepare_query(graph, known, positions)
    small = float(np.log2(problem.structure.cardinalities).sum()) <= ENUMERATION_BITS
    if not small or known.likelihoods:
        return engine, engine.joint_of(problem, positions, running=running)
    left = FactorGraph(problem.structure, problem.potentials.log_tables, marks_hold=True)
    method = resolve("enumeration", "marginals")
    table = method.joint(left, Evidence.parse(left.structure, None), positions, running=running)
    return method, problem.expand_joint(table, positions)


def _listed(graph: FactorGraph, names: Any) -> list[VariableName]:
    """One name or several, as a list."""
    if isinstance(names, (str, int, np.integer)):
        return [names]  # type: ignore[list-item]
    return list(names)
