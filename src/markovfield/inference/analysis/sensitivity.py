"""Sensitivity analysis: how a query answers to changes of single entries of a network's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.frames import Tabular
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback, expected_counts, graph_of
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["Sensitivity", "SensitivityCurve", "TableEntry", "sensitivity"]

ALMOST_ZERO = 1e-60


class TableEntry(NamedTuple):
    """One entry of a conditional probability table, and the derivative of the query by it."""

    variable: VariableName
    state: Any
    given: dict[VariableName, Any]
    value: float
    derivative: float


@dataclass(frozen=True, repr=False)
class SensitivityCurve(Tabular):
    """The query as a function of one entry: a ratio of two straight lines, (a t + b) / (c t + d).

    Calling it with a value of the entry gives the query's probability; the row's other entries keep their proportions.
    """

    value: float
    numerator: tuple[float, float]
    denominator: tuple[float, float]

    def __repr__(self) -> str:
        return f"SensitivityCurve(an entry of {self.value:.3g} gives {self(self.value):.3g})"

    def __call__(self, entry: npt.ArrayLike) -> Any:
        t = np.asarray(entry, np.float64)
        if ((t < 0) | (t > 1)).any():
            raise ModelError(f"an entry of a table is a probability from 0 to 1, got {entry!r}")
        (a, b), (c, d) = self.numerator, self.denominator
        return ((a * t + b) / (c * t + d))[()]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        entries = np.linspace(0.0, 1.0, 51)
        (_, b), (_, d) = self.numerator, self.denominator
        known = entries[(entries > 0) | (d != 0) | (b != 0)][:limit]
        return {"entry": known, "probability": self(known)}


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Tabular):
    """How P(event | evidence) changes with every entry of every table.

    Attributes
    ----------
    probability
        P(event | evidence).
    derivatives
        By variable, an array like its table (parents' axes first): the derivative of the probability by each entry,
        when the other entries of its row give way in proportion. A noisy-or or noisy-max has no table and is left out.
    """

    graph: FactorGraph
    probability: float
    derivatives: dict[VariableName, FloatArray]
    _tables: dict[VariableName, FloatArray]
    _cells: tuple[FloatArray, FloatArray, float, float]

    def top(self, count: int = 10) -> list[TableEntry]:
        """The entries that the query answers to most, by the size of the derivative."""
        found = []
        for name, slopes in self.derivatives.items():
            flat = np.abs(slopes).ravel()
            few = np.argpartition(-flat, count)[:count] if flat.size > count else np.arange(flat.size)
            found += [(float(flat[i]), name, int(i)) for i in few]
        found.sort(key=lambda item: -item[0])
        return [self._entry(name, i) for _, name, i in found[:count]]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        entries = self.top(sum(slopes.size for slopes in self.derivatives.values()) if limit is None else limit)
        given = [", ".join(f"{name}={state}" for name, state in entry.given.items()) for entry in entries]
        columns = {name: [getattr(e, name) for e in entries] for name in ("variable", "state", "value", "derivative")}
        return {"variable": columns.pop("variable"), "state": columns.pop("state"), "given": given, **columns}

    def __repr__(self) -> str:
        lines = [f"Sensitivity of a probability of {self.probability:.6g}: derivatives by entries of tables"]
        for e in self.top(10):
            given = f" | {', '.join(f'{name}={state}' for name, state in e.given.items())}" if e.given else ""
            lines.append(f"  {e.derivative:+.4g}  P({e.variable}={e.state}{given}) = {e.value:.4g}")
        more = sum(slopes.size for slopes in self.derivatives.values()) - 10
        return "\n".join([*lines, *([f"  ... and {more} more"] if more > 0 else [])])

    def _entry(self, name: VariableName, cell: int) -> TableEntry:
        s = self.graph.structure
        table = self._tables[name]
        at = np.unravel_index(cell, table.shape)
        scope = [*self._parents(name), s.names.position(name)]
        named = {
            s.names.variables[v]: s.names.state_names(v, int(s.cardinalities[v]))[int(i)]
            for v, i in zip(scope, at, strict=True)
        }
        state = named.pop(name)
        return TableEntry(name, state, named, float(table[at]), float(self.derivatives[name][at]))

    def _parents(self, name: VariableName) -> list[int]:
        s = self.graph.structure
        v = s.names.position(name)
        f = int(np.flatnonzero(s.child == v)[0])
        return [u for u in s.scope(f).tolist() if u != v]

    def curve(
        self, variable: VariableName, state: Any, given: Mapping[VariableName, Any] | None = None
    ) -> SensitivityCurve:
        """The query as a function of one entry: a state of a variable, given a state of each of its parents.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"ill": 2, "test": 2})
        >>> net.add_cpt("ill", [], [0.9, 0.1])
        >>> net.add_cpt("test", ["ill"], [[0.95, 0.05], [0.1, 0.9]])
        >>> curve = mf.analysis.sensitivity(net, {"ill": 1}, {"test": 1}).curve("test", 1, {"ill": 0})
        >>> round(float(curve(0.05)), 4), round(float(curve(0.01)), 4)
        (0.6667, 0.9091)
        """
        s = self.graph.structure
        v = s.names.position(variable)
        if variable not in self._tables:
            raise ModelError(f"variable {variable!r} has no table of entries: it is a noisy-or or a noisy-max")
        parents = self._parents(variable)
        wanted = [s.names.variables[p] for p in parents]
        named = dict(given or {})
        if set(named) != set(wanted):
            raise ModelError(
                f"curve of {variable!r} needs a state for each of its parents {wanted!r}, got {list(named)!r}"
            )
        row = tuple(s.names.state(p, named[s.names.variables[p]], int(s.cardinalities[p])) for p in parents)
        own = s.names.state(v, state, int(s.cardinalities[v]))
        f = int(np.flatnonzero(s.child == v)[0])
        cells = np.moveaxis(self.graph.cells(f), s.scope(f).tolist().index(v), -1)[row]
        table = self._tables[variable][row]
        with_event, without, p_event, p_evidence = self._cells
        return SensitivityCurve(
            float(table[own]),
            _line(table, own, with_event[cells], p_event),
            _line(table, own, without[cells], p_evidence),
        )


def _line(row: FloatArray, own: int, slopes: FloatArray, total: float) -> tuple[float, float]:
    """(slope, intercept) of a probability as its row's entry ``own`` varies; ``slopes`` are its partial derivatives."""
    rest = 1.0 - row[own]
    others = np.arange(len(row)) != own
    share = np.where(others, row / rest, 0.0) if rest > 0 else np.where(others, 1.0 / max(len(row) - 1, 1), 0.0)
    slope = float(slopes[own] - np.dot(share, slopes))
    return slope, total - slope * float(row[own])


@shows_progress
def sensitivity(
    model: Any,
    event: Mapping[VariableName, Any],
    evidence: Mapping[VariableName, Any] | None = None,
    *,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Sensitivity:
    """How the probability of an event, given evidence, answers to every entry of a Bayesian network's tables.

    Both P(event, evidence) and P(evidence) are linear in each entry, with slopes that are expected counts over the
    entry: two passes of the junction tree give all derivatives of all tables.

    Parameters
    ----------
    event, evidence
        A state for each named variable.
    n_jobs, time_limit, callback, progress
        As for `markovfield.marginals`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"ill": 2, "test": 2})
    >>> net.add_cpt("ill", [], [0.9, 0.1])
    >>> net.add_cpt("test", ["ill"], [[0.95, 0.05], [0.1, 0.9]])
    >>> found = mf.analysis.sensitivity(net, {"ill": 1}, {"test": 1})
    >>> round(found.probability, 4)
    0.6667
    >>> most = found.top(1)[0]
    >>> most.variable, most.given, abs(round(most.derivative, 2))
    ('test', {'ill': 0}, 4.44)
    """
    running = Running(n_jobs, time_limit, callback)
    graph = graph_of(model)
    s = graph.structure
    if sorted(s.child.tolist()) != list(range(s.n_variables)):
        raise ModelError("sensitivity needs a Bayesian network: one conditional distribution for each variable")
    if not isinstance(event, Mapping) or not isinstance(evidence or {}, Mapping):
        raise ModelError("event and evidence of sensitivity are dicts from variable to state")
    if not event:
        raise ModelError("sensitivity(model, event) needs an event: a state for at least one variable")
    clamps = np.full(s.n_variables, -1, np.int32)
    for name, state in (evidence or {}).items():
        v = s.names.position(name)
        clamps[v] = s.names.state(v, state, int(s.cardinalities[v]))
    both = clamps.copy()
    for name, state in event.items():
        v = s.names.position(name)
        if clamps[v] >= 0:
            raise ModelError(f"variable {name!r} is in the event and in the evidence")
        both[v] = s.names.state(v, state, int(s.cardinalities[v]))
    value, _ = _counts(graph, graph.log_tables, clamps, running)
    below = _slopes(graph, clamps, value, running)
    try:
        above_value, _ = _counts(graph, graph.log_tables, both, running)
    except ImpossibleEvidenceError:
        above_value = -np.inf
    above = _slopes(graph, both, value, running)
    probability = min(1.0, float(np.exp(above_value - value)))
    derivatives, tables = {}, {}
    for f, v in enumerate(s.child.tolist()):
        if s.kind[f] != TABLE:
            continue
        cells = np.moveaxis(graph.cells(f), s.scope(f).tolist().index(v), -1)
        name = s.names.variables[v]
        tables[name] = np.exp(graph.log_tables[cells])
        derivatives[name] = _with_row(tables[name], above[cells]) - probability * _with_row(tables[name], below[cells])
    return Sensitivity(graph, probability, derivatives, tables, (above, below, probability, 1.0))


def _counts(
    graph: FactorGraph, log_tables: FloatArray, clamps: npt.NDArray[np.int32], running: Running
) -> tuple[float, FloatArray]:
    limit = running.seconds_left
    found = expected_counts(
        graph.structure, log_tables, clamps, n_jobs=running.n_jobs, time_limit=limit, callback=running.callback
    )
    return found.log_partition, found.counts


def _slopes(graph: FactorGraph, clamps: npt.NDArray[np.int32], reference: float, running: Running) -> FloatArray:
    """Partial derivatives of P(clamps) by every entry, over P(evidence), whose log is ``reference``.

    P is linear in each entry t, so its slope is the expected count times P / t. Zero entries stand in as `ALMOST_ZERO`:
    what that adds to the other slopes is of that order.
    """
    stand_in = np.where(graph.log_tables == -np.inf, np.log(ALMOST_ZERO), graph.log_tables)
    value, counts = _counts(graph, stand_in, clamps, running)
    with np.errstate(divide="ignore"):
        return np.exp(np.log(counts) + value - reference - stand_in)


def _with_row(table: FloatArray, slopes: FloatArray) -> FloatArray:
    """Total derivatives by each entry, the others of its row (last axis) giving way in proportion.

    Where an entry is one, the others have no proportions: they grow alike.
    """
    rest = 1.0 - table
    others = (table * slopes).sum(axis=-1, keepdims=True) - table * slopes
    alike = (slopes.sum(axis=-1, keepdims=True) - slopes) / max(table.shape[-1] - 1, 1)
    return slopes - np.where(rest > 0, others / np.where(rest > 0, rest, 1.0), alike)
