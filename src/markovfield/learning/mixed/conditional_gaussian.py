"""Maximum likelihood for conditional Gaussian networks: counts and regressions, or EM where values are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method, generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.strong_junction_tree.passes import collect, distribute
from markovfield.inference.strong_junction_tree.plan import FIRST, SUMMED, make_plan
from markovfield.inference.strong_junction_tree.potential import Moments, absorbed
from markovfield.learning.core.report import FitReport
from markovfield.learning.mixed.columns import MixedTable, patterns
from markovfield.learning.mixed.family_moments import FamilyMoments, give
from markovfield.models.mixed.conditional_gaussian import ConditionalGaussianNetwork
from markovfield.names import VariableName

__all__ = ["ConditionalGaussianEM", "ConditionalGaussianML", "conditional_log_likelihood"]

# Rows that EM runs through the tree at once.
BATCH = 4096


@dataclass(frozen=True)
class ConditionalGaussianML:
    """Maximum likelihood from complete data, in closed form: shares of states, and a regression for each configuration.

    A method of `markovfield.fit` for `ConditionalGaussianNetwork`. Configurations of parents that no row has get a
    uniform distribution, or the regression of all rows, and the report says so.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.ConditionalGaussianNetwork({"kind": ["a", "b"], "x": None})
    >>> net.set_parents("kind", [])
    >>> net.set_parents("x", ["kind"])
    >>> fitted = mf.fit(net, {"kind": ["a", "a", "b", "b"], "x": [0.0, 2.0, 5.0, 6.0]})
    >>> fitted.cpd("x").bias.tolist(), fitted.cpd("x").variance.tolist()
    ([1.0, 5.5], [1.0, 0.25])
    """

    name: ClassVar[str] = "conditional_gaussian_ml"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def fit(
        self,
        network: ConditionalGaussianNetwork,
        data: Any,
        *,
        weights: Any = None,
        rng: Any = None,
        running: Running | None = None,
    ) -> ConditionalGaussianNetwork:
        """A new network with numbers and a report."""
        running = running or Running()
        table = _table(network, data, weights)
        table.check_complete("conditional_gaussian_ml")
        fitted, notes = _given(network, table, 0.0)
        log_likelihood, _ = _expected(fitted, table, running, moments=False)
        return _reported(fitted, table, self.name, log_likelihood, running, notes=tuple(notes))


@dataclass(frozen=True)
class ConditionalGaussianEM:
    """Maximum likelihood where values are missing or variables hidden, by expectation maximisation.

    A method of `markovfield.fit` for `ConditionalGaussianNetwork`. Rows with the same values missing run through the
    strong junction tree as one batch. The likelihood never falls.

    Parameters
    ----------
    tolerance
        Converged when an iteration gains less than this, relative to the log-likelihood.
    max_iterations
        Of each run.
    restarts
        Runs from different random completions of the data (the first from the network's numbers, where it has them).
    least_variance
        The smallest variance there may be, as a share of that of the variable's column: a component that closes in on
        one row would have a likelihood without bound. 0 lets it happen, and refuses what vanishes.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> net = mf.ConditionalGaussianNetwork({"kind": 2, "x": None})
    >>> net.set_parents("kind", [])
    >>> net.set_parents("x", ["kind"])
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-3, 1, 300), rng.normal(3, 1, 300)])
    >>> fitted = mf.fit(net, {"x": x}, hidden=["kind"], rng=0)
    >>> sorted(fitted.cpd("x").bias.round().tolist())
    [-3.0, 3.0]
    """

    name: ClassVar[str] = "conditional_gaussian_em"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True

    tolerance: float = 1e-7
    max_iterations: int = 500
    restarts: int = 1
    least_variance: float = 1e-4

    def __post_init__(self) -> None:
        check_method(self, least={"tolerance": 0, "max_iterations": 1, "restarts": 1, "least_variance": 0})

    def fit(
        self,
        network: ConditionalGaussianNetwork,
        data: Any,
        *,
        weights: Any = None,
        rng: Any = None,
        running: Running | None = None,
    ) -> ConditionalGaussianNetwork:
        """A new network with numbers and a report."""
        running, generator = running or Running(), generator_of(rng)
        table = _table(network, data, weights)
        best: tuple[float, Any] | None = None
        ends = []
        for attempt in range(self.restarts):
            run = self._run(self._start(network, table, generator, attempt), table, running)
            ends.append(run[1][-1])
            if best is None or run[1][-1] > best[0]:
                best = run[1][-1], run
            if run[3]:
                break
        assert best is not None
        fitted, history, notes, stopped = best[1]
        gained = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = not stopped and gained <= self.tolerance * max(1.0, abs(history[-1]))
        message = stopped or ("" if converged else f"{self.max_iterations} iterations did not converge")
        settings = {"history": tuple(history), "restarts": tuple(ends), "converged": converged, "message": message}
        return _reported(fitted, table, self.name, history[-1], running, notes=tuple(notes), **settings)

    def _start(
        self, network: ConditionalGaussianNetwork, table: MixedTable, rng: np.random.Generator, attempt: int
    ) -> ConditionalGaussianNetwork:
        if attempt == 0 and all(_has_numbers(network, v) for v in network.variables):
            return network.copy()
        codes, numbers = dict(table.codes), dict(table.numbers)
        for v in network.variables:
            if v in codes:
                gone = codes[v] < 0
                seen = codes[v][~gone]
                drawn = rng.choice(seen, len(gone)) if len(seen) else _nearest(table, network.cardinality(v), rng)
                codes[v] = np.where(gone, drawn, codes[v])
            else:
                gone = np.isnan(numbers[v])
                middle, width = _column_moments(numbers[v])
                numbers[v] = np.where(gone, middle + width * rng.standard_normal(len(gone)), numbers[v])
        made = MixedTable(table.variables, table.states, codes, numbers, table.weights)
        return _given(network, made, self._least(table))[0]

    def _least(self, table: MixedTable) -> dict[VariableName, float]:
        return {v: self.least_variance * _column_moments(x)[1] ** 2 for v, x in table.numbers.items()}

    def _run(
        self, network: ConditionalGaussianNetwork, table: MixedTable, running: Running
    ) -> tuple[ConditionalGaussianNetwork, list[float], list[str], str]:
        history: list[float] = []
        notes: list[str] = []
        least = self._least(table)
        stopped = ""
        while True:
            try:
                value, moments = _expected(network, table, running, moments=True)
            except STOPS as caught:
                if not history:
                    raise
                stopped = f"stopped: {caught or type(caught).__name__}"
                break
            history.append(value)
            gained = history[-1] - history[-2] if len(history) > 1 else np.inf
            if gained <= self.tolerance * max(1.0, abs(value)) or len(history) > self.max_iterations:
                break
            made = network.copy()
            notes = [note for v in network.variables for note in give(made, v, moments[v], least.get(v, 0.0))]
            network = made
        return network, history, notes, stopped


def _has_numbers(network: ConditionalGaussianNetwork, variable: VariableName) -> bool:
    return variable in (network._tables if network.cardinality(variable) else network._cpds)


def _column_moments(column: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of what is there; zero and one where nothing is."""
    seen = column[~np.isnan(column)]
    width = float(seen.std()) if len(seen) else 1.0
    return (float(seen.mean()) if len(seen) else 0.0), width if width > 0 else 1.0


def _nearest(table: MixedTable, card: int, rng: np.random.Generator) -> Any:
    """States of a hidden variable to start from: the nearest of as many random rows, in standardised numbers.

    States drawn row by row would all look alike, and EM would stay where they do.
    """
    if not table.numbers:
        return rng.integers(card, size=table.n_rows)
    scaled = [(x - _column_moments(x)[0]) / _column_moments(x)[1] for x in table.numbers.values()]
    points = np.nan_to_num(np.column_stack(scaled))
    seeds = points[rng.choice(len(points), card, replace=len(points) < card)]
    return np.argmin(((points[:, None] - seeds) ** 2).sum(axis=-1), axis=1)


def _table(network: ConditionalGaussianNetwork, data: Any, weights: Any) -> MixedTable:
    network.order()
    known = {v: network.states(v) if network.cardinality(v) else None for v in network.variables}
    return MixedTable.of(data, "fit(model, data)", weights, known)


def _family(network: ConditionalGaussianNetwork, v: VariableName) -> tuple[list[VariableName], list[VariableName]]:
    """Discrete variables in the order of the axes, real-valued ones with the variable itself first."""
    scope = [*network.parents(v), v]
    real = [u for u in scope if not network.cardinality(u)]
    if not network.cardinality(v):
        real = [v, *real[:-1]]
    return [u for u in scope if network.cardinality(u)], real


def _empty(network: ConditionalGaussianNetwork, table: MixedTable) -> dict[VariableName, FamilyMoments]:
    found = {}
    for v in network.variables:
        discrete, real = _family(network, v)
        centre = np.array([_column_moments(table.numbers[u])[0] for u in real])
        found[v] = FamilyMoments.empty(tuple(network.cardinality(u) for u in discrete), centre)
    return found


def _given(
    network: ConditionalGaussianNetwork, table: MixedTable, least: Any
) -> tuple[ConditionalGaussianNetwork, list[str]]:
    """The network that fits complete data best."""
    made, notes = network.copy(), []
    for v, found in _empty(network, table).items():
        discrete, real = _family(network, v)
        n, c = table.n_rows, len(real)
        shape = found.weight.shape
        cell = np.ravel_multi_index([table.codes[u] for u in discrete], shape) if discrete else np.zeros(n, np.int64)
        x = np.column_stack([table.numbers[u] for u in real]) - found.centre if c else np.zeros((n, 0))
        size = int(np.prod(shape))
        found.weight[...] = np.bincount(cell, table.weights, size).reshape(shape)
        total, square = np.zeros((size, c)), np.zeros((size, c, c))
        for i in range(c):
            total[:, i] = np.bincount(cell, table.weights * x[:, i], size)
            for j in range(i + 1):
                square[:, i, j] = square[:, j, i] = np.bincount(cell, table.weights * x[:, i] * x[:, j], size)
        found.total[...], found.square[...] = total.reshape(*shape, c), square.reshape(*shape, c, c)
        notes += give(made, v, found, least if isinstance(least, float) else least.get(v, 0.0))
    return made, notes


def _expected(
    network: ConditionalGaussianNetwork, table: MixedTable, running: Running, *, moments: bool
) -> tuple[float, dict[VariableName, FamilyMoments]]:
    """Log-likelihood, and expected moments of every family: rows with the same values missing at once."""
    field = network.compile()
    cards = field.cardinalities
    at = {v: i for i, v in enumerate(network.variables)}
    found = _empty(network, table) if moments else {}
    present = [table.codes[v] >= 0 if v in table.codes else ~np.isnan(table.numbers[v]) for v in network.variables]
    total = 0.0
    for pattern, rows in patterns(present):
        seen = [v for v, there in zip(network.variables, pattern.tolist(), strict=True) if there]
        free = {at[v] for v in network.variables if v not in seen}
        families = [[i for i in map(at.__getitem__, (*network.parents(v), v)) if i in free] for v in network.variables]
        scopes = [[i for i in f.scope if i in free] for f in field.factors] + families
        plan = make_plan(cards, scopes, {i: SUMMED if cards[i] else FIRST for i in free}, rows=min(len(rows), BATCH))
        for start in range(0, len(rows), BATCH):
            running.check()
            some = rows[start : start + BATCH]
            states = {at[v]: table.codes[v][some] for v in seen if v in table.codes}
            numbers = {at[v]: table.numbers[v][some] for v in seen if v in table.numbers}
            parts = [absorbed(factor, states, numbers) for factor in field.factors]
            collected = collect(plan, parts, cards, rows=len(some))
            if not np.isfinite(collected.log_partition).all():
                row = int(some[int(np.argmin(np.isfinite(collected.log_partition)))])
                raise ModelError(f"row {row} of the data has probability zero under the network that EM starts from")
            total += float(table.weights[some] @ collected.log_partition)
            if moments:
                cliques = distribute(collected, cards)
                for v in network.variables:
                    own = _completed(network, v, at, cliques, plan.order, states, numbers, len(some))
                    found[v].add(own, table.weights[some])
    return total, found


def _completed(
    network: ConditionalGaussianNetwork,
    v: VariableName,
    at: dict[VariableName, int],
    cliques: dict[int, Moments],
    order: tuple[int, ...],
    states: dict[int, Any],
    numbers: dict[int, Any],
    rows: int,
) -> Moments:
    """Moments of a family with what was observed put back: one at the state that was seen, no variance of a number."""
    discrete, real = ([at[u] for u in kind] for kind in _family(network, v))
    hidden = [i for i in (*discrete, *real) if i not in states and i not in numbers]
    if hidden:
        clique = next(i for i in order if i in hidden)
        own = cliques[clique].on([i for i in discrete if i in hidden], [i for i in real if i in hidden])
        # A row's probabilities add up to one but for rounding.
        axes = tuple(range(1, own.probability.ndim))
        p = own.probability / own.probability.sum(axis=axes, keepdims=True)
        p, inner, spread = (np.broadcast_to(a, (rows, *a.shape[1:])) for a in (p, own.mean, own.covariance))
    else:
        p, inner, spread = np.ones(rows), np.zeros((rows, 0)), np.zeros((rows, 0, 0))
    for axis, i in enumerate(discrete):
        if i in states:
            card = network.cardinality(network.variables[i])
            one = np.eye(card)[states[i]].reshape(rows, *[card if k == axis else 1 for k in range(p.ndim)])
            p = np.expand_dims(p, 1 + axis) * one
            inner = np.repeat(np.expand_dims(inner, 1 + axis), card, axis=1 + axis)
            spread = np.repeat(np.expand_dims(spread, 1 + axis), card, axis=1 + axis)
    c = len(real)
    mean, covariance = np.zeros((*p.shape, c)), np.zeros((*p.shape, c, c))
    kept = [k for k, i in enumerate(real) if i in hidden]
    for k, i in enumerate(real):
        if i in numbers:
            mean[..., k] = numbers[i].reshape(rows, *[1] * (p.ndim - 1))
    mean[..., kept] = inner
    covariance[..., np.array(kept, np.int64)[:, None], kept] = spread
    return Moments(tuple(discrete), tuple(real), p, mean, covariance)


def _reported(
    fitted: ConditionalGaussianNetwork,
    table: MixedTable,
    method: str,
    log_likelihood: float,
    running: Running,
    **settings: Any,
) -> ConditionalGaussianNetwork:
    gone = {v: int((c < 0).sum()) for v, c in table.codes.items()} | {
        v: int(np.isnan(c).sum()) for v, c in table.numbers.items()
    }
    count = 0
    for v in fitted.variables:
        if fitted.cardinality(v):
            count += fitted.cpt(v).size // fitted.cardinality(v) * (fitted.cardinality(v) - 1)
        else:
            cpd = fitted.cpd(v)
            count += cpd.weights.size + 2 * cpd.bias.size
    fitted.fit_report = FitReport(
        method=method,
        log_likelihood=log_likelihood,
        n_rows=table.n_rows,
        total_weight=float(table.weights.sum()),
        n_parameters=count,
        missing={v: n for v, n in gone.items() if n},
        iterations=max(len(settings.get("history", ())) - 1, 1),
        seconds=running.seconds,
        **settings,
    )
    return fitted


def conditional_log_likelihood(network: ConditionalGaussianNetwork, data: Any, *, weights: Any = None) -> float:
    """Log-density of data under a network with both kinds of variables; what is missing is summed or integrated.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.ConditionalGaussianNetwork({"x": None})
    >>> net.add_cpd("x", [])
    >>> round(conditional_log_likelihood(net, {"x": [0.0, None]}), 4)
    -0.9189
    """
    return _expected(network, _table(network, data, weights), Running(), moments=False)[0]
