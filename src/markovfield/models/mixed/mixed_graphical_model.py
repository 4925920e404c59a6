"""The pairwise undirected model of discrete and real-valued variables (Lee and Hastie 2013)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Drawn
from markovfield.gaussian.mixed_field import CanonicalFactor, MixedField
from markovfield.names import Names, VariableName, check_name, normalise_states

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MixedGraphicalModel"]


class MixedGraphicalModel(Drawn):
    """``log p`` is ``-x.B.x/2 + (a + sum_j R_j(y_j)).x + sum_j f_j(y_j) + sum_{j<r} F_jr(y_j, y_r)`` plus a constant.

    Given the discrete variables y the others are Gaussian with precision B, whatever y is; given all others a discrete
    variable is a multinomial logistic regression and a real-valued one a linear regression. An edge is an entry of B, a
    vector ``R_j[s]`` or a table ``F_jr`` that is not zero. The verbs take it; exact answers cost as those of a
    `ConditionalGaussianNetwork` do.

    Parameters
    ----------
    variables
        Names to states (a number or a list), None for real-valued ones.
    precision, linear
        B ``float64[p, p]``, positive definite, and a ``float64[p]``, in the order of the real-valued variables.
    shifts
        ``float64[states, p]`` for each discrete variable: ``R_j[state]``.
    fields
        ``float64[states]`` for each discrete variable: ``f_j``; zero where left out.
    couplings
        ``float64[states, states]`` for pairs of discrete variables: ``F_jr``; zero where left out.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.learning.MixedGraphicalModel(
    ...     {"sick": ["no", "yes"], "fever": None, "pulse": None},
    ...     precision=[[1.0, -0.4], [-0.4, 1.0]],
    ...     shifts={"sick": [[0.0, 0.0], [2.0, 0.0]]},
    ... )
    >>> sorted(model.edges)
    [('fever', 'pulse'), ('sick', 'fever')]
    >>> mf.marginals(model, {"fever": 2.0})["sick"].round(3).tolist()
    [0.018, 0.982]
    """

    def __init__(
        self,
        variables: Mapping[VariableName, int | Sequence[Any] | None],
        *,
        precision: npt.ArrayLike = (),
        linear: npt.ArrayLike | None = None,
        shifts: Mapping[VariableName, npt.ArrayLike] | None = None,
        fields: Mapping[VariableName, npt.ArrayLike] | None = None,
        couplings: Mapping[tuple[VariableName, VariableName], npt.ArrayLike] | None = None,
    ) -> None:
        self._states: dict[VariableName, tuple[Any, ...] | None] = {}
        for name, states in variables.items():
            count, named = (0, None) if states is None else normalise_states(name, states)
            self._states[check_name(name)] = None if states is None else named or tuple(range(count))
        p = len(self.continuous)
        self.precision = _numbers(precision if p else np.zeros((0, 0)), (p, p), "precision")
        self.linear = _numbers(np.zeros(p) if linear is None else linear, (p,), "linear")
        if not np.allclose(self.precision, self.precision.T, rtol=0, atol=1e-9 * np.abs(self.precision).max(initial=1)):
            raise ModelError("MixedGraphicalModel(precision=...) must be symmetric")
        sizes = {v: len(self.states(v)) for v in self.discrete}
        given: dict[str, Mapping[Any, Any]] = {"shifts": shifts or {}, "fields": fields or {}}
        for what, arrays in given.items():
            for v in arrays:
                if v not in sizes:
                    raise ModelError(f"MixedGraphicalModel({what}=...) names {v!r}, which is no discrete variable")
        self.shifts = {
            v: _numbers(given["shifts"].get(v, np.zeros((n, p))), (n, p), f"shifts of {v!r}") for v, n in sizes.items()
        }
        self.fields = {
            v: _numbers(given["fields"].get(v, np.zeros(n)), (n,), f"fields of {v!r}") for v, n in sizes.items()
        }
        self.couplings: dict[tuple[VariableName, VariableName], FloatArray] = {}
        for pair, values in (couplings or {}).items():
            a, b = pair
            if a not in sizes or b not in sizes or a == b or (b, a) in self.couplings:
                raise ModelError(f"MixedGraphicalModel(couplings=...) joins pairs of discrete variables, got {pair!r}")
            self.couplings[pair] = _numbers(values, (sizes[a], sizes[b]), f"couplings of {pair!r}")
        self._compiled: MixedField | None = None

    def __repr__(self) -> str:
        d, n = len(self.discrete), len(self.edges)
        return f"MixedGraphicalModel({d} discrete, {len(self._states) - d} real-valued, {n} edge{'s' * (n != 1)})"

    def _current_names(self) -> Names:
        names = tuple(self._states)
        return Names(names, {i: s for i, s in enumerate(self._states.values()) if s and s != tuple(range(len(s)))})

    def _count_states(self, position: int) -> int:
        return len(list(self._states.values())[position] or ())

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names."""
        return tuple(self._states)

    @property
    def discrete(self) -> tuple[VariableName, ...]:
        """Variables with states."""
        return tuple(v for v, s in self._states.items() if s is not None)

    @property
    def continuous(self) -> tuple[VariableName, ...]:
        """Real-valued variables, in the order of `precision`."""
        return tuple(v for v, s in self._states.items() if s is None)

    def states(self, variable: VariableName) -> tuple[Any, ...]:
        """State names; none of a real-valued variable."""
        return self._states[self.variables[self._current_names().position(variable)]] or ()

    @property
    def edges(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs that interact, in the order of the variables."""
        at = {v: i for i, v in enumerate(self.variables)}
        real = self.continuous
        found = [(real[i], real[j]) for i, j in np.argwhere(np.triu(self.precision, 1)).tolist()]
        found += [
            (v, real[s]) for v, table in self.shifts.items() for s in np.flatnonzero(np.ptp(table, axis=0)).tolist()
        ]
        found += [pair for pair, table in self.couplings.items() if _interacts(table)]
        ordered = [(a, b) if at[a] < at[b] else (b, a) for a, b in found]
        return tuple(sorted(ordered, key=lambda e: (at[e[0]], at[e[1]])))

    def to_networkx(self) -> nx.Graph:
        """The undirected graph; nodes carry ``states``, None for real-valued ones."""
        import networkx as nx

        graph = nx.Graph()
        for v, states in self._states.items():
            graph.add_node(v, states=None if states is None else list(states))
        graph.add_edges_from(self.edges)
        return graph

    def compile(self) -> MixedField:
        """Factors of single variables and of pairs; refused where the precision is not positive definite."""
        if self._compiled is None:
            p = len(self.continuous)
            least = float(np.linalg.eigvalsh(self.precision)[0]) if p else 1.0
            if least <= 0:
                raise ModelError(
                    f"the precision of {', '.join(map(repr, self.continuous[:6]))} is not positive definite (smallest "
                    f"eigenvalue {least:.3g}), so there is no joint distribution: conditionals alone are well defined"
                )
            cards = np.array([len(s or ()) for s in self._states.values()], np.int64)
            cards.flags.writeable = False
            self._compiled = MixedField(self._current_names(), cards, tuple(self._factors()))
        return self._compiled

    def _factors(self) -> list[CanonicalFactor]:
        at = {v: i for i, v in enumerate(self.variables)}
        real = [at[v] for v in self.continuous]
        found = []
        for s, v in enumerate(real):
            own = self.precision[s, s].reshape(1, 1)
            found.append(CanonicalFactor((), (v,), np.zeros(()), self.linear[s : s + 1], own))
            for t in (np.flatnonzero(self.precision[s, s + 1 :]) + s + 1).tolist():
                pair = np.array([[0.0, 1.0], [1.0, 0.0]]) * self.precision[s, t]
                found.append(CanonicalFactor((), (v, real[t]), np.zeros(()), np.zeros(2), pair))
        for d, table in self.shifts.items():
            n = len(table)
            found.append(_table((at[d],), self.fields[d]))
            for s in np.flatnonzero(table.any(axis=0)).tolist():
                found.append(
                    CanonicalFactor((at[d],), (real[s],), np.zeros(n), table[:, s : s + 1], np.zeros((n, 1, 1)))
                )
        return found + [_table((at[a], at[b]), table) for (a, b), table in self.couplings.items()]

    def conditional(self, variable: VariableName, data: Mapping[VariableName, npt.ArrayLike]) -> Any:
        """What the other variables say of one, row by row.

        Returns ``float64[rows, states]`` of probabilities for a discrete variable, and for a real-valued one a pair:
        its means ``float64[rows]`` and their common variance. Needs no joint distribution.
        """
        codes, numbers, rows = self._read(variable, data)
        name = self.variables[self._current_names().position(variable)]
        x = np.column_stack([numbers.get(v, np.zeros(rows)) for v in self.continuous] or [np.zeros((rows, 0))])
        if self._states[name] is None:
            s = self.continuous.index(name)
            own = self.precision[s, s]
            mean = self.linear[s] - x @ self.precision[s] + own * x[:, s]
            for d, table in self.shifts.items():
                mean = mean + table[codes[d], s]
            return mean / own, float(1.0 / own)
        scores = self.fields[name] + x @ self.shifts[name].T
        for (a, b), table in self.couplings.items():
            if name in (a, b):
                scores = scores + (table[:, codes[b]].T if a == name else table[codes[a]])
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def _read(
        self, variable: VariableName, data: Mapping[VariableName, npt.ArrayLike]
    ) -> tuple[dict[VariableName, IntArray], dict[VariableName, FloatArray], int]:
        names = self._current_names()
        at = {v: i for i, v in enumerate(self.variables)}
        codes: dict[VariableName, IntArray] = {}
        numbers: dict[VariableName, FloatArray] = {}
        rows = 0
        for v in self.variables:
            if v == variable:
                continue
            try:
                column = data[v]
            except (KeyError, IndexError, TypeError):
                raise ModelError(f"conditional({variable!r}, data) needs a column for {v!r}") from None
            if self._states[v] is None:
                numbers[v] = np.asarray(column, np.float64)
            else:
                listed = list(np.asarray(column, object))
                codes[v] = np.array([names.state(at[v], x, len(self.states(v))) for x in listed], np.int64)
            rows = len(numbers[v] if v in numbers else codes[v])
        return codes, numbers, rows


def _table(scope: tuple[int, ...], table: FloatArray) -> CanonicalFactor:
    return CanonicalFactor(scope, (), table, np.zeros((*table.shape, 0)), np.zeros((*table.shape, 0, 0)))


def _interacts(table: FloatArray) -> bool:
    """Whether a table is more than a sum of one over rows and one over columns."""
    centred = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return bool(np.abs(centred).max() > 1e-12 * max(1.0, float(np.abs(table).max())))


def _numbers(values: npt.ArrayLike, shape: tuple[int, ...], what: str) -> FloatArray:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"MixedGraphicalModel: {what} must be numbers") from None
    if found.shape != shape or not np.isfinite(found).all():
        raise ModelError(f"MixedGraphicalModel: {what} needs finite numbers of shape {shape}, got shape {found.shape}")
    found.flags.writeable = False
    return found
