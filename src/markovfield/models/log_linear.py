"""Log-linear models: log-potentials that are linear in the parameters (Murphy 19.37; maximum entropy models).

    log p(y) = b(y) + theta' phi(y) - log Z,         log_tables = b + A theta

A takes parameters to the cells of the pool; its transpose takes counts of cells to moments of features. Every
undirected model is one of these, and all are learned as one (`LogLinear.of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE
from markovfield.frames import Drawn
from markovfield.models.features import Feature
from markovfield.models.markov_network import MarkovNetwork
from markovfield.names import Names, VariableName

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["LogLinear", "sparse_operator", "with_parameters"]


class LogLinear(Drawn):
    """A model whose log-potentials are linear in its parameters; `markovfield.fit` finds them.

    Parameters
    ----------
    variables
        Name to number of states, or to the sequence of state names.
    features
        `Feature` objects; a plain sequence of variables is a table of theirs.
    parameters
        One number for each parameter; zeros when None.
    base
        A `MarkovNetwork` or `FactorGraph` on the same variables whose log-potentials are added and stay as they are:
        a base measure, or hard constraints.

    Attributes
    ----------
    parameters, parameter_names
        ``float64[k]`` and their names.
    base_graph, operator
        The model with all parameters zero (b), and A: a sparse array ``[cells, k]``.

    Examples
    --------
    >>> import markovfield as mf
    >>> agree = mf.Feature(["A", "B"], lambda a, b: float(a == b), places=[["B", "C"]], name="agree")
    >>> model = mf.LogLinear({"A": 2, "B": 2, "C": 2}, [agree, ["A"]], parameters=[1.0, 0.0, 0.5])
    >>> model
    LogLinear(3 variables, 3 parameters)
    >>> model.parameter_names
    ('agree', 'A=0', 'A=1')
    >>> mf.marginals(model)["C"].round(4).tolist()
    [0.4738, 0.5262]
    """

    def __init__(
        self,
        variables: Mapping[Any, int | Sequence[Any]],
        features: Sequence[Feature | Sequence[VariableName]] = (),
        parameters: npt.ArrayLike | None = None,
        *,
        base: Any = None,
    ) -> None:
        if isinstance(features, Feature):
            raise ModelError("features of LogLinear are a list: write [feature]")
        net = MarkovNetwork(variables)
        names = net._current_names()
        cards = [net._count_states(v) for v in range(len(names.variables))]
        if base is not None:
            net = MarkovNetwork.from_factor_graph(_base(base, names, cards))
        at, rows, columns, values = net._n_cells, [], [], []
        labels: list[str] = []
        tables: dict[tuple[Any, ...], int] = {}
        for given in features:
            found = (given if isinstance(given, Feature) else Feature(given)).resolve(names, cards)
            key = tuple(map(tuple, found.scopes))
            size = int(np.prod(found.values.shape[:-1]))
            if key not in tables:
                # Features of the same variables in the same places share a table.
                tables[key] = at
                scopes = [[names.variables[v] for v in scope] for scope in found.scopes]
                net.add_factors(scopes, log_table=np.zeros(found.values.shape[:-1]))
                at += size
            cell, which = np.nonzero(found.values.reshape(size, -1))
            rows.append(tables[key] + cell)
            columns.append(len(labels) + which)
            values.append(found.values.reshape(size, -1)[cell, which])
            labels += found.labels
        self._set(net.compile(), sparse_operator(rows, columns, values, (at, len(labels))), parameters, tuple(labels))

    def _set(self, graph: FactorGraph, operator: csr_array, parameters: Any, names: Sequence[str] | None) -> None:
        k = operator.shape[1]
        theta = np.zeros(k) if parameters is None else np.array(parameters, np.float64)
        if theta.shape != (k,):
            raise ModelError(f"this log-linear model has {k} parameters, got an array of shape {theta.shape}")
        if not np.isfinite(theta).all():
            raise ModelError("parameters of a log-linear model must be finite numbers")
        theta.flags.writeable = False
        self.base_graph, self.operator, self.parameters = graph, operator, theta
        self._labels = names
        self._compiled: FactorGraph | None = None

    @classmethod
    def of(cls, model: Any) -> LogLinear:
        """The log-linear form of an undirected model: a network's free parameters are the finite cells of its tables.

        Examples
        --------
        >>> import markovfield as mf
        >>> mf.LogLinear.of(mf.Ising((3, 3), coupling=0.5))
        LogLinear(9 variables, 1 parameter)
        """
        if isinstance(model, FactorGraph | MarkovNetwork):
            return cls._from_graph(model.compile())
        if not hasattr(model, "log_linear"):
            raise ModelError(f"{type(model).__name__} has no log-linear form")
        made: LogLinear = model.log_linear()
        return made

    @classmethod
    def _from_graph(cls, graph: FactorGraph) -> LogLinear:
        s = graph.structure
        if (s.kind == NOISY_MAX).any():
            raise ModelError("a noisy-max is no log-linear factor: its parameters are probabilities")
        graph.check_finite()
        free = np.flatnonzero(graph.log_tables > -np.inf)
        base = np.where(graph.log_tables > -np.inf, 0.0, -np.inf)
        operator = sparse_operator([free], [np.arange(len(free))], [np.ones(len(free))], (s.n_cells, len(free)))
        # A factor that was a conditional distribution need not stay one.
        plain = MarkovNetwork.from_factor_graph(graph).compile() if s.is_marked else graph
        return cls.from_arrays(plain.with_tables(base), operator, graph.log_tables[free])

    @classmethod
    def from_arrays(
        cls, base: FactorGraph, operator: csr_array, parameters: FloatArray, names: Sequence[str] | None = None
    ) -> LogLinear:
        """A model from b, A and theta themselves."""
        made = cls.__new__(cls)
        made._set(base, operator, parameters, names)
        return made

    def __repr__(self) -> str:
        n, k = len(self), len(self.parameters)
        return f"LogLinear({n} variable{'s' * (n != 1)}, {k} parameter{'s' * (k != 1)})"

    def _count_states(self, position: int) -> int:
        return int(self.base_graph.structure.cardinalities[position])

    def _current_names(self) -> Names:
        return self.base_graph.names

    @property
    def variables(self) -> Sequence[VariableName]:
        """Variable names in position order."""
        return self.base_graph.variables

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """One for each parameter: of a cell of a table, the states it is for."""
        if self._labels is None:
            self._labels = _cell_labels(self.base_graph, self.operator)
        return tuple(self._labels)

    def log_tables(self, parameters: FloatArray) -> FloatArray:
        """The pool at other parameters: b + A theta."""
        return np.asarray(self.base_graph.log_tables + self.operator @ parameters)

    def moments(self, counts: FloatArray) -> FloatArray:
        """What counts of cells are in terms of features: A' counts."""
        return np.asarray(self._transposed @ counts)

    @cached_property
    def _transposed(self) -> csr_array:
        return self.operator.T.tocsr()

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`, once."""
        if self._compiled is None:
            self._compiled = self.base_graph.with_tables(self.log_tables(self.parameters))
        return self._compiled

    def log_linear(self) -> LogLinear:
        """Itself."""
        return self

    def with_parameters(self, parameters: npt.ArrayLike) -> LogLinear:
        """The same model with other parameters; O(parameters)."""
        return type(self).from_arrays(self.base_graph, self.operator, np.asarray(parameters), self._labels)


def _cell_labels(graph: FactorGraph, operator: csr_array) -> tuple[str, ...]:
    """States of the first factor that reads a parameter's cell, where it has one cell and that is of a table."""
    labels = [f"theta[{i}]" for i in range(operator.shape[1])]
    single = np.bincount(operator.indices, minlength=operator.shape[1]) == 1
    column = np.full(graph.structure.n_cells, -1, np.int64)
    rows = np.repeat(np.arange(operator.shape[0]), np.diff(operator.indptr))
    column[rows] = np.where(single[operator.indices], operator.indices, -1)
    names, cards = graph.names, graph.structure.cardinalities
    for f in np.flatnonzero(graph.structure.kind == TABLE)[::-1].tolist():
        scope = graph.structure.scope(f).tolist()
        states = [names.state_names(v, int(cards[v])) for v in scope]
        for cell, joint in zip(graph.cells(f).ravel().tolist(), product(*states), strict=True):
            if column[cell] >= 0:
                pairs = zip(scope, joint, strict=True)
                labels[column[cell]] = " ".join(f"{names.variables[v]}={s}" for v, s in pairs)
    return tuple(labels)


def _base(base: Any, names: Names, cards: list[int]) -> FactorGraph:
    graph: FactorGraph = base.compile()
    if tuple(graph.variables) != tuple(names.variables) or graph.structure.cardinalities.tolist() != cards:
        raise ModelError("the base of LogLinear must have the same variables and numbers of states, in the same order")
    return graph


def with_parameters(model: Any, parameters: FloatArray) -> Any:
    """An undirected model with other parameters, those of its log-linear form; of a graph, a network."""
    if not isinstance(model, FactorGraph | MarkovNetwork):
        return model.with_parameters(parameters)
    graph = model.compile()
    tables = graph.log_tables.copy()
    tables[tables > -np.inf] = parameters
    return MarkovNetwork.from_factor_graph(graph.with_tables(tables))


def sparse_operator(rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> csr_array:
    """A from lists of arrays of its entries."""
    from scipy.sparse import csr_array

    def join(parts: Any, dtype: Any) -> Any:
        return np.concatenate([np.zeros(0, dtype), *parts])

    at = (join(rows, np.int64), join(columns, np.int64))
    return csr_array((join(values, np.float64), at), shape=shape)
