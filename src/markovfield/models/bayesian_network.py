"""A Bayesian network: each variable with a table of its distribution given its parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factor_graph import FactorGraph, Structure
from markovfield.names import Names, VariableName, check_name, normalise_states

__all__ = ["BayesianNetwork"]


class BayesianNetwork:
    """Variables and conditional probability tables, mutable while being written.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    >>> answer = mf.marginals(net, evidence={"wet": "yes"})
    >>> round(float(answer["rain"][1]), 4)
    0.6667
    """

    def __init__(self, variables: Mapping[Any, int | Sequence[Any]] | None = None) -> None:
        self._position: dict[VariableName, int] = {}
        self._cardinalities: list[int] = []
        self._states: dict[int, tuple[Any, ...]] = {}
        self._parents: dict[int, list[int]] = {}
        self._cpts: dict[int, npt.NDArray[np.float64]] = {}
        self._compiled: FactorGraph | None = None
        for name, states in (variables or {}).items():
            self.add_variable(name, states)

    def __repr__(self) -> str:
        n, arcs = len(self._cardinalities), sum(len(p) for p in self._parents.values())
        return f"BayesianNetwork({n} variable{'s' * (n != 1)}, {arcs} arc{'s' * (arcs != 1)})"

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names in the order they were added."""
        return tuple(self._position)

    def add_variable(self, name: VariableName, states: int | Sequence[Any]) -> None:
        """Add a variable with a number of states or with state names."""
        name = check_name(name)
        if name in self._position:
            raise ModelError(f"there is already a variable {name!r}")
        cardinality, state_names = normalise_states(name, states)
        position = self._position[name] = len(self._cardinalities)
        self._cardinalities.append(cardinality)
        if state_names is not None:
            self._states[position] = state_names
        self._compiled = None

    def parents(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Parents of a variable, in the axis order of its table."""
        names = self.variables
        return tuple(names[p] for p in self._parents.get(self._find(variable), []))

    def _find(self, variable: VariableName) -> int:
        # The dict first: building Names for every lookup would make reading a large network quadratic.
        try:
            return self._position[variable]
        except (KeyError, TypeError):
            return Names(self.variables).position(variable)

    def add_cpt(
        self,
        variable: VariableName,
        parents: Sequence[VariableName],
        table: npt.ArrayLike,
        *,
        tolerance: float = 1e-2,
    ) -> None:
        """Give a variable its distribution: parents' axes first, the variable's own axis last.

        Rows are rescaled to sum to one exactly; a row further than ``tolerance`` from one is an error.
        """
        if isinstance(parents, str):
            raise ModelError(f"the parents of {variable!r} are a sequence of variable names; write [{parents!r}]")
        child = self._find(variable)
        above = [self._find(p) for p in parents]
        if len(set(above)) != len(above):
            raise ModelError(f"a variable is named twice in {list(parents)!r}")
        if child in above:
            raise ModelError(f"variable {variable!r} cannot be its own parent")
        shape = tuple(self._cardinalities[v] for v in [*above, child])
        try:
            values = np.array(table, np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"the table of {variable!r} needs numbers in rows of equal length: {error}") from error
        if values.shape != shape:
            raise ModelError(
                f"the table of {variable!r} given {list(parents)!r} needs shape {shape}, got {values.shape}"
            )
        if not (values >= 0).all():
            raise ModelError(f"the table of {variable!r} has a negative probability or one that is not a number")
        total = values.sum(axis=-1, keepdims=True)
        if (np.abs(total - 1) > tolerance).any():
            worst = total.ravel()[np.argmax(np.abs(total - 1))]
            raise ModelError(f"a row of the table of {variable!r} sums to {worst:.6g}, not to one")
        self._parents[child] = above
        self._cpts[child] = values / total
        self._compiled = None

    def cpt(self, variable: VariableName) -> npt.NDArray[np.float64]:
        """The table of a variable: parents' axes first, its own last."""
        position = self._find(variable)
        if position not in self._cpts:
            raise ModelError(f"variable {variable!r} has no conditional probability table")
        return self._cpts[position].copy()

    @classmethod
    def from_factor_graph(cls, graph: FactorGraph) -> BayesianNetwork:
        """Read a network back from a factor graph with one conditional distribution for every variable."""
        s = graph.structure
        if sorted(s.child.tolist()) != list(range(s.n_variables)) or s.kind.any():
            raise ModelError("a Bayesian network needs exactly one conditional table for each variable")
        states = s.names.states
        net = cls({v: states.get(i, int(s.cardinalities[i])) for i, v in enumerate(s.names.variables)})
        for f, child in enumerate(s.child.tolist()):
            scope = s.scope(f).tolist()
            if child not in scope:
                raise ModelError(f"factor {f} is marked as a distribution of a variable outside its scope")
            with np.errstate(over="ignore"):  # add_cpt refuses what is no probability
                table = np.moveaxis(np.exp(graph.table(f)), scope.index(child), -1)
            net.add_cpt(s.names.variables[child], [s.names.variables[v] for v in scope if v != child], table)
        net._check_acyclic()
        if np.array_equal(s.child, np.arange(s.n_variables)):
            net._compiled = graph  # so that going there and back changes no bit of the log-potentials
        return net

    def _check_acyclic(self) -> None:
        # Iterative depth-first search, so that long chains do not meet the recursion limit.
        colour = [0] * len(self._cardinalities)
        for start in range(len(colour)):
            path, stack = [], [(start, iter(self._parents.get(start, ())))]
            if colour[start]:
                continue
            colour[start] = 1
            path.append(start)
            while stack:
                node, above = stack[-1]
                for p in above:
                    if colour[p] == 1:
                        names = self.variables
                        cycle = [*path[path.index(p) :], p]
                        shown = " -> ".join(repr(names[v]) for v in reversed(cycle))
                        raise ModelError(f"the network has a directed cycle: {shown}")
                    if not colour[p]:
                        colour[p] = 1
                        path.append(p)
                        stack.append((p, iter(self._parents.get(p, ()))))
                        break
                else:
                    colour[node] = 2
                    path.pop()
                    stack.pop()

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph` whose factors are marked as conditional distributions of their child."""
        if self._compiled is None:
            names = Names(tuple(self._position), dict(self._states))
            missing = [names.variables[v] for v in range(len(self._cardinalities)) if v not in self._cpts]
            if missing:
                raise ModelError(f"variable {missing[0]!r} has no conditional probability table")
            self._check_acyclic()
            scopes, offsets, bases, cells = [], [0], [], 0
            for v in range(len(self._cardinalities)):
                scopes += [*self._parents[v], v]
                offsets.append(len(scopes))
                bases.append(cells)
                cells += self._cpts[v].size
            structure = Structure.from_arrays(
                self._cardinalities,
                offsets,
                scopes,
                bases,
                n_cells=cells,
                child=np.arange(len(self._cardinalities)),
                names=names,
            )
            with np.errstate(divide="ignore"):
                tables = [np.log(self._cpts[v]).ravel() for v in range(len(self._cardinalities))]
            self._compiled = FactorGraph(structure, np.concatenate([np.zeros(0), *tables]))
        return self._compiled
