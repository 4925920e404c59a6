"""Dependency networks: every full conditional by itself, whether or not one distribution has them all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method, generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_graph import LearnedGraph, undirected_graph
from markovfield.learning.core.penalties import halvings
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.penalty_path import follow, tables_of
from markovfield.learning.structures.regressions import Regressions, one_blas_thread
from markovfield.names import Names, VariableName

__all__ = ["DependencyNetwork", "FullConditionals", "fit_conditionals", "joined"]

MOST_STATES = 2**12
"""Joint states up to which the distribution of ordered Gibbs sampling is computed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FullConditionals(Tabular):
    """The distribution of each variable given all others, each fitted by itself (Murphy 26.2.2).

    Variable v has log-potentials ``fields[v] + sum over u of couplings[v, u][:, state of u]``. Nothing makes
    ``couplings[v, u]`` the transpose of ``couplings[u, v]``; unless it is, for every pair, no distribution has these
    conditionals (Besag 1974), and what Gibbs sampling by them draws from depends on the order of the variables.

    Attributes
    ----------
    fields
        ``float64[K]`` of each variable; -inf for states never seen.
    couplings
        ``float64[K, L]`` of ordered pairs of variables, where they are not zero.
    penalty
        The l1 penalty of each regression, see `NodewiseLogistic`.
    """

    variables: tuple[VariableName, ...]
    states: tuple[tuple[Any, ...], ...]
    fields: Mapping[VariableName, FloatArray] = field(repr=False)
    couplings: Mapping[tuple[VariableName, VariableName], FloatArray] = field(repr=False)
    penalty: float

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        pairs = list(self.couplings)[:limit]
        sizes = [float(np.abs(self.couplings[pair]).max(initial=0.0)) for pair in pairs]
        return {"variable": [v for v, _ in pairs], "given": [u for _, u in pairs], "largest_coupling": sizes}

    @cached_property
    def _names(self) -> Names:
        return Names(self.variables, dict(enumerate(self.states)))

    @cached_property
    def _read(self) -> dict[VariableName, list[tuple[int, FloatArray]]]:
        """Of each variable, positions and tables of those it depends on."""
        place = {v: i for i, v in enumerate(self.variables)}
        found: dict[VariableName, list[tuple[int, FloatArray]]] = {v: [] for v in self.variables}
        for (v, u), table in self.couplings.items():
            found[v].append((place[u], table))
        return found

    def _log_potentials(self, v: VariableName, codes: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """``float64[K, rows]`` given the states of all variables, ``int[n, rows]``."""
        total = np.repeat(self.fields[v][:, None], codes.shape[1], axis=1)
        for u, table in self._read[v]:
            total += table[:, codes[u]]
        return total

    def conditional(self, variable: VariableName, given: Mapping[VariableName, Any] | None = None) -> FloatArray:
        """Probabilities of a variable's states given those of the others; only its neighbours have to be given.

        Examples
        --------
        >>> import markovfield as mf
        >>> data = {"A": [0, 0, 0, 1, 1, 1] * 50, "B": [0, 0, 1, 1, 1, 0] * 50}
        >>> learned = mf.learn_structure(data, method=mf.methods.DependencyNetwork(penalty=1))
        >>> learned.details.conditional("A", {"B": 1}).round(2).tolist()
        [0.34, 0.66]
        """
        s = self._names.position(variable)
        codes = np.zeros((len(self.variables), 1), np.int64)
        known = {}
        for name, state in (given or {}).items():
            u = self._names.position(name)
            known[u] = codes[u, 0] = self._names.state(u, state, len(self.states[u]))
        name = self.variables[s]
        lacking = [self.variables[u] for u, _ in self._read[name] if u not in known]
        if lacking:
            raise ModelError(f"the conditional of {name!r} depends on {lacking[0]!r}, whose state is not given")
        return _normalised(self._log_potentials(name, codes))[:, 0]

    def _order(self, order: Sequence[VariableName] | None) -> list[int]:
        found = [self._names.position(v) for v in (self.variables if order is None else order)]
        if sorted(found) != list(range(len(self.variables))):
            raise ModelError("order must name every variable once")
        return found

    def sample(
        self,
        size: int,
        *,
        order: Sequence[VariableName] | None = None,
        sweeps: int = 100,
        rng: int | np.random.Generator | None = None,
    ) -> DataTable:
        """Draw rows by ordered pseudo-Gibbs sampling: one chain for each row, `sweeps` times through the variables.

        Where `inconsistency` is not zero, the distribution that the rows come from belongs to the order, and the
        conditionals of the rows are not exactly those that were fitted.
        """
        whole_number(size, "size", 0)
        whole_number(sweeps, "sweeps", 1)
        chosen, generator = self._order(order), generator_of(rng)
        codes = np.empty((len(self.variables), size), np.int16)
        for v, name in enumerate(self.variables):
            codes[v] = generator.choice(np.flatnonzero(np.isfinite(self.fields[name])), size)
        for _ in range(sweeps):
            for v in chosen:
                below = np.cumsum(_normalised(self._log_potentials(self.variables[v], codes)), axis=0)
                codes[v] = np.minimum((generator.random(size) > below).sum(axis=0), len(below) - 1)
        return DataTable(self.variables, self.states, codes)

    def stationary(self, order: Sequence[VariableName] | None = None) -> FloatArray:
        """The joint distribution that ordered Gibbs sampling comes to rest in, after whole sweeps.

        Returns
        -------
        ndarray
            An axis for each variable. Takes the square of the joint states, of which there may be 4096.
        """
        chosen = self._order(order)
        shape = tuple(len(s) for s in self.states)
        if math.prod(shape) > MOST_STATES:
            raise ModelError(f"{math.prod(shape)} joint states are more than the {MOST_STATES} that are enumerated")
        codes = np.indices(shape).reshape(len(shape), -1)
        updates = {v: _normalised(self._log_potentials(self.variables[v], codes)).T.reshape(*shape, -1) for v in chosen}
        seen = np.array([np.isfinite(self.fields[v][codes[i]]) for i, v in enumerate(self.variables)]).all(axis=0)
        p = (seen / seen.sum()).reshape(shape)
        for _ in range(10_000):
            before = p
            for v in chosen:
                # The other variables keep their states, and v is drawn anew.
                others = np.take(updates[v], 0, axis=v)
                p = np.moveaxis(others * p.sum(axis=v)[..., None], -1, v)
            if np.abs(p - before).max() <= 1e-15:
                break
        return p

    def inconsistency(self) -> float:
        """How far the conditionals are from being those of one distribution: zero if and only if they are.

        The root mean square, over all cells of all pairs, of the difference between the two tables of a pair, by that
        of the tables themselves.
        """
        apart = size = 0.0
        for (v, u), table in self.couplings.items():
            back = self.couplings.get((u, v))
            other = np.zeros_like(table) if back is None else back.T
            # A pair with tables both ways comes by twice.
            apart += float(np.sum((table - other) ** 2)) * (1.0 if back is not None else 2.0)
            size += float(np.sum(table**2)) * 2.0
        return math.sqrt(apart / size) if size else 0.0


def _normalised(log_potentials: FloatArray) -> FloatArray:
    p = np.exp(log_potentials - log_potentials.max(axis=0))
    found: FloatArray = p / p.sum(axis=0)
    return found


def fit_conditionals(
    table: DataTable, what: str, penalty: float | None, scale: float, running: Running, **settings: Any
) -> tuple[CodedRows, Regressions, FullConditionals]:
    """Every variable regressed on all others; the default penalty is ``scale * sqrt(rows * log(variables))``."""
    rows = CodedRows.of(table, what)
    with small(CELL * rows.features.size * 50), one_blas_thread():
        fit = Regressions(rows, tied=False, running=running, **settings)
        if penalty is None:
            penalty = scale * math.sqrt(fit.total * math.log(max(len(rows.kept), 2)))
        steps, stop = follow(fit, halvings(fit.largest_penalty, penalty))
        if stop is not None:
            raise stop
    fields, couplings = tables_of(rows, steps[-1].own, steps[-1].coupling, steps[-1].pairs)
    found = FullConditionals(
        variables=table.variables, states=table.states, fields=fields, couplings=couplings, penalty=penalty
    )
    return rows, fit, found


def joined(rows: CodedRows, fit: Regressions, details: FullConditionals, rule: str, method: str) -> LearnedGraph:
    """The undirected graph of regressions; an edge's weight is the mean of its two strengths, signed for two states."""
    table = rows.table
    there = fit.norms > 0
    edges = np.argwhere(np.triu(there & there.T if rule == "and" else there | there.T))
    kept = np.array(rows.kept, np.intp)
    weights = []
    for s, t in edges.tolist():
        if rows.widths[s] == rows.widths[t] == 1:
            a, b = rows.offsets[s], rows.offsets[t]
            weights.append(float(fit.coupling[a, b] + fit.coupling[b, a]) / 4)
        else:
            weights.append(float(fit.norms[s, t] + fit.norms[t, s]) / 2)
    constant = [table.variables[v] for v in range(table.n_variables) if v not in rows.kept]
    notes = [f"{', '.join(map(repr, constant[:6]))} never change{'s' * (len(constant) == 1)}: no edges"]
    return LearnedGraph(
        variables=table.variables,
        states=table.states,
        graph=undirected_graph(table, kept[edges].tolist(), weights),
        method=method,
        score=-fit.penalised,
        score_name="minus the objective",
        iterations=fit.iterations,
        converged=fit.converged,
        stopped=None if fit.converged else "max_iterations",
        notes=tuple(notes) if constant else (),
        details=details,
    )


@dataclass(frozen=True)
class DependencyNetwork:
    """Every variable regressed on all others, and the regressions kept as they are (Heckerman et al. 2000).

    The same conditionals as pseudo-likelihood has, but no numbers shared between the two conditionals of a pair (Murphy
    19.5.4): quick, each is fitted alone, and as good for prediction of one variable from the others. They need not be
    conditionals of any one distribution; ``details``, a `FullConditionals`, measures how far from it they are, and
    samples by them in a given order.

    Parameters
    ----------
    penalty, scale, l2, tolerance, max_iterations
        As for `NodewiseLogistic`.

    Examples
    --------
    >>> import markovfield as mf
    >>> ring = mf.Ising([(i, (i + 1) % 6) for i in range(6)], coupling=0.3)
    >>> learned = mf.learn_structure(mf.sample(ring, 2000, rng=0), method="dependency_network")
    >>> learned.graph.number_of_edges(), round(learned.details.inconsistency(), 3)
    (6, 0.036)
    """

    name: ClassVar[str] = "dependency_network"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    scale: float = 2.0
    l2: float = 0.0
    tolerance: float = 1e-7
    max_iterations: int = 100

    def __post_init__(self) -> None:
        check_method(self, least={"l2": 0, "max_iterations": 1}, above={"penalty": 0, "scale": 0, "tolerance": 0})

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Fit all conditionals; an edge where either depends on the other."""
        settings = {"l2": self.l2, "tolerance": self.tolerance, "max_iterations": self.max_iterations}
        return joined(
            *fit_conditionals(table, self.name, self.penalty, self.scale, running, **settings), "or", self.name
        )
