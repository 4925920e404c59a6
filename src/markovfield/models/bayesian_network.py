"""A Bayesian network: each variable with its distribution given its parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE
from markovfield.frames import Drawn
from markovfield.models._assembly import assemble
from markovfield.models._conditionals import (
    MOST_CELLS,
    NoisyMax,
    check_noisy_max,
    check_noisy_or,
    check_table,
    numbers,
    tabulate,
)
from markovfield.models._cycles import find_cycle
from markovfield.models._networkx import states_of_node
from markovfield.models.markov_network import MarkovNetwork
from markovfield.names import Names, VariableName, check_name, normalise_states

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["BayesianNetwork"]


class BayesianNetwork(Drawn):
    """Variables and their conditional distributions, mutable while being written.

    Parameters
    ----------
    variables
        Name to number of states, or to the sequence of state names.

    Attributes
    ----------
    name
        Name of the network, or None.
    properties
        Free texts by variable, those of the network itself under None (the properties of BIF files).
    fit_report
        How the numbers were learnt, on a network that `fit` returned; None otherwise.

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
        self.name: str | None = None
        self.properties: dict[VariableName | None, tuple[str, ...]] = {}
        self.fit_report: Any = None
        self._position: dict[VariableName, int] = {}
        self._cardinalities: list[int] = []
        self._states: dict[int, tuple[Any, ...]] = {}
        self._parents: dict[int, list[int]] = {}
        self._local: dict[int, FloatArray | NoisyMax] = {}
        self._compiled: FactorGraph | None = None
        self._names: Names | None = None
        if variables is not None and not isinstance(variables, Mapping):
            raise ModelError(f"variables are a dict from name to states, got {type(variables).__name__}")
        for name, states in (variables or {}).items():
            self.add_variable(name, states)

    @classmethod
    def _from_tables(
        cls,
        states: Mapping[VariableName, tuple[Any, ...] | int],
        parents: Sequence[Sequence[int]],
        tables: Sequence[FloatArray | NoisyMax],
        *,
        name: str | None = None,
        properties: Mapping[VariableName | None, tuple[str, ...]] | None = None,
    ) -> BayesianNetwork:
        """A network from parts that were checked before: only cycles are looked for.

        ``parents[v]`` are positions and ``tables[v]`` has their axes first and the variable's own last, each row
        summing to one; the arrays are kept, not copied.
        """
        net = cls()
        net.name = name
        if properties:
            net.properties = dict(properties)
        for i, (variable, given) in enumerate(states.items()):
            net._position[variable] = i
            if isinstance(given, int):
                net._cardinalities.append(given)
            else:
                net._cardinalities.append(len(given))
                net._states[i] = given
        net._parents = {v: list(above) for v, above in enumerate(parents)}
        net._local = dict(enumerate(tables))
        net._check_acyclic()
        return net

    def __repr__(self) -> str:
        n, arcs = len(self._cardinalities), sum(len(p) for p in self._parents.values())
        return f"BayesianNetwork({n} variable{'s' * (n != 1)}, {arcs} arc{'s' * (arcs != 1)})"

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names in the order they were added."""
        return tuple(self._position)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._cardinalities)

    @property
    def arcs(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs of a parent and its child, in the order of the children."""
        names = list(self._position)
        return tuple((names[p], names[v]) for v in range(len(names)) for p in self._parents.get(v, ()))

    def cardinality(self, variable: VariableName) -> int:
        """Number of states of a variable."""
        return self._cardinalities[self._find(variable)]

    def states(self, variable: VariableName) -> tuple[Any, ...]:
        """State names of a variable; 0, 1, ... where it has none."""
        v = self._find(variable)
        return self._states.get(v) or tuple(range(self._cardinalities[v]))

    def parents(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Parents of a variable, in the axis order of its table."""
        above = self._parents.get(self._find(variable))
        names = self._current_names().variables
        return tuple(names[p] for p in above) if above else ()

    def children(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Children of a variable, in the order they were added."""
        v = self._find(variable)
        names = self._current_names().variables
        return tuple(name for c, name in enumerate(names) if v in self._parents.get(c, ()))

    def has_cpt(self, variable: VariableName) -> bool:
        """Whether a variable has its numbers yet."""
        return self._find(variable) in self._local

    def cpt(self, variable: VariableName) -> FloatArray:
        """The table of a variable: parents' axes first, its own last (a copy). A noisy-max is expanded."""
        position = self._find(variable)
        local = self._local.get(position)
        if local is None:
            raise ModelError(f"variable {variable!r} has no conditional probability table")
        if not isinstance(local, NoisyMax):
            return local.copy()
        if local.table_size > MOST_CELLS:
            raise ModelError(
                f"the table of the noisy-max {variable!r} has {local.table_size} cells, more than {MOST_CELLS}; "
                "inference does without it"
            )
        return local.table()

    def _count_states(self, position: int) -> int:
        return self._cardinalities[position]

    def _current_names(self) -> Names:
        # Kept between calls: building it for every lookup would make writing a large network quadratic.
        if self._names is None:
            self._names = Names(tuple(self._position), dict(self._states))
        return self._names

    def _find(self, variable: VariableName) -> int:
        try:
            return self._position[variable]
        except (KeyError, TypeError):
            return self._current_names().position(variable)

    # ---- writing --------------------------------------------------------------------------------------------------

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
        self._compiled = self._names = None

    def _scope(self, variable: VariableName, parents: Sequence[VariableName]) -> list[int]:
        """Positions of the parents, then of the variable itself."""
        if isinstance(parents, str) or not hasattr(parents, "__iter__"):
            raise ModelError(f"the parents of {variable!r} are a sequence of variable names; write [{parents!r}]")
        child = self._find(variable)
        scope = [self._find(p) for p in parents]
        if len(set(scope)) != len(scope):
            raise ModelError(f"a variable is named twice in {list(parents)!r}")
        if child in scope:
            raise ModelError(f"variable {variable!r} cannot be its own parent")
        return [*scope, child]

    def _give(self, scope: list[int], local: FloatArray | NoisyMax) -> None:
        self._parents[scope[-1]] = scope[:-1]
        self._local[scope[-1]] = local
        self._compiled = None

    def set_parents(self, variable: VariableName, parents: Sequence[VariableName]) -> None:
        """Say what a variable depends on, without numbers: `add_cpt` or `fit` gives them later.

        A table the variable had is forgotten.
        """
        scope = self._scope(variable, parents)
        self._parents[scope[-1]] = scope[:-1]
        self._local.pop(scope[-1], None)
        self._compiled = None

    def add_cpt(
        self,
        variable: VariableName,
        parents: Sequence[VariableName],
        table: npt.ArrayLike,
        *,
        tolerance: float = 1e-2,
    ) -> None:
        """Give a variable its distribution: parents' axes first, the variable's own axis last.

        Replaces the one it had. Rows are rescaled to sum to one exactly; a row further than ``tolerance`` from one is
        an error.
        """
        scope = self._scope(variable, parents)
        what = f"the table of {variable!r}"
        values = numbers(table, what)
        shape = tuple(self._cardinalities[v] for v in scope)
        if values.shape != shape:
            raise ModelError(f"{what} given {list(parents)!r} needs shape {shape}, got {values.shape}")
        self._give(scope, check_table(values, self._current_names(), scope, self._cardinalities, what, tolerance))

    def add_deterministic(
        self, variable: VariableName, parents: Sequence[VariableName], function: Callable[..., Any]
    ) -> None:
        """Make a variable a function of its parents: called with a state of each, it answers the variable's state.

        It is called once for every configuration of the parents, now; the table may have up to 2^24 cells.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"a": 2, "b": 2, "sum": 3})
        >>> net.add_deterministic("sum", ["a", "b"], lambda a, b: a + b)
        >>> net.cpt("sum")[1, 1].tolist()
        [0.0, 0.0, 1.0]
        """
        scope = self._scope(variable, parents)
        if not callable(function):
            raise ModelError(f"the function of {variable!r} must be callable, got {type(function).__name__}")
        self._give(scope, tabulate(self._current_names(), scope, self._cardinalities, function))

    def add_noisy_or(
        self,
        variable: VariableName,
        parents: Sequence[VariableName],
        probabilities: Sequence[float] | Mapping[VariableName, float],
        leak: float = 0.0,
    ) -> None:
        """Make a binary variable the noisy-or of binary parents; the last state of each is "on".

        Parameters
        ----------
        probabilities
            For each parent, or by its name: the probability that it turns the variable on when it alone is on and
            nothing leaks.
        leak
            The probability that the variable is on with every parent off.

        Notes
        -----
        P(off | parents) = (1 - leak) * product over the parents that are on of (1 - probability). One number per parent
        is stored, whatever their number, and inference needs time linear in it.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"flu": 2, "cold": 2, "cough": 2})
        >>> net.add_cpt("flu", [], [0.9, 0.1])
        >>> net.add_cpt("cold", [], [0.8, 0.2])
        >>> net.add_noisy_or("cough", ["flu", "cold"], [0.9, 0.5], leak=0.02)
        >>> round(mf.probability(net, {"cough": 1}, {"flu": 1, "cold": 1}), 6)
        0.951
        """
        scope = self._scope(variable, parents)
        self._give(scope, check_noisy_or(self._current_names(), scope, self._cardinalities, probabilities, leak))

    def add_noisy_max(
        self,
        variable: VariableName,
        parents: Sequence[VariableName],
        tables: Sequence[npt.ArrayLike] | Mapping[VariableName, npt.ArrayLike],
        leak: npt.ArrayLike | None = None,
    ) -> None:
        """Make a variable the largest of independent contributions, one from each parent and a leak.

        Parameters
        ----------
        tables
            For each parent, or by its name, ``[states of the parent, states of the variable]``: entry [x, k] is the
            probability that a parent in state x contributes state k. States are ordered as they were declared.
        leak
            Probabilities of the contribution that needs no parent; the first state for certain when None.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"a": 2, "b": 2, "worst": ["low", "mid", "high"]})
        >>> one = [[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]]
        >>> net.add_noisy_max("worst", ["a", "b"], [one, one])
        >>> net.cpt("worst")[1, 1].round(4).tolist()
        [0.25, 0.39, 0.36]
        """
        scope = self._scope(variable, parents)
        self._give(scope, check_noisy_max(self._current_names(), scope, self._cardinalities, tables, leak))

    # ---- compiling ------------------------------------------------------------------------------------------------

    def _check_acyclic(self) -> None:
        cycle = find_cycle(self._parents, len(self._cardinalities))
        if cycle is not None:
            names = self.variables
            shown = " -> ".join(repr(names[v]) for v in cycle)
            raise ModelError(f"the network has a directed cycle: {shown}")

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph` whose factors are marked as conditional distributions of their child."""
        if self._compiled is None:
            if len(self._local) < len(self._cardinalities):
                missing = next(v for i, v in enumerate(self._position) if i not in self._local)
                raise ModelError(f"variable {missing!r} has no conditional probability table")
            self._check_acyclic()
            self._compiled = assemble(self._current_names(), self._cardinalities, self._parents, self._local)
        return self._compiled

    # ---- other networks -------------------------------------------------------------------------------------------

    def copy(self) -> BayesianNetwork:
        """A network of its own with the same variables, parents and numbers."""
        other = type(self)()
        other.name, other.properties, other.fit_report = self.name, dict(self.properties), self.fit_report
        other._position, other._states = dict(self._position), dict(self._states)
        other._cardinalities = list(self._cardinalities)
        other._parents = {v: list(above) for v, above in self._parents.items()}
        other._local = dict(self._local)  # arrays are replaced, never written to
        other._compiled, other._names = self._compiled, self._names
        return other

    def do(self, interventions: Mapping[VariableName, Any]) -> BayesianNetwork:
        """The network after interventions: each named variable loses its parents and takes what it is given.

        Parameters
        ----------
        interventions
            Variable to the state it is set to, or to the probabilities it is drawn with (a list or an array).

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
        >>> net.add_cpt("rain", [], [0.8, 0.2])
        >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
        >>> round(mf.probability(net.do({"wet": "yes"}), {"rain": "yes"}), 4)
        0.2
        """
        if not isinstance(interventions, Mapping):
            raise ModelError(f"do() takes a dict from variable to state, got {type(interventions).__name__}")
        other = self.copy()
        other.fit_report = None
        names = self._current_names()
        for variable, value in interventions.items():
            v = self._find(variable)
            card = self._cardinalities[v]
            if isinstance(value, np.ndarray) and not value.ndim:
                value = value[()]
            is_state = isinstance(value, tuple) and value in names.states.get(v, ())
            if isinstance(value, (list, tuple, np.ndarray)) and not is_state:
                other.add_cpt(variable, [], value)
            else:
                other._give([v], np.eye(card)[names.state(v, value, card)])
        return other

    def to_markov_network(self) -> MarkovNetwork:
        """The same distribution as a Markov network: a factor for each family, which moralises the graph."""
        return MarkovNetwork.from_factor_graph(self.compile())

    def to_factor_graph(self) -> FactorGraph:
        """The factor graph it compiles to; same as `compile`."""
        return self.compile()

    @classmethod
    def from_factor_graph(cls, graph: FactorGraph) -> BayesianNetwork:
        """Read a network back from a factor graph with one conditional distribution for every variable.

        Rows that sum to one only nearly, as those of files with few digits, are rescaled as by `add_cpt`.
        """
        s = graph.structure.declared
        plain = np.isin(s.kind, (TABLE, NOISY_MAX)).all()
        if not plain or sorted(s.child.tolist()) != list(range(s.n_variables)):
            raise ModelError("a Bayesian network needs exactly one conditional table for each variable")
        names, states = s.names.variables, s.names.states
        net = cls({v: states.get(i, int(s.cardinalities[i])) for i, v in enumerate(names)})
        for f, child in enumerate(s.child.tolist()):
            scope = s.scope(f).tolist()
            parents = [names[v] for v in scope if v != child]
            with np.errstate(over="ignore"):  # what is no probability is refused
                if s.kind[f] == NOISY_MAX:
                    blocks, leak = graph.noisy_max(f)
                    net.add_noisy_max(names[child], parents, [np.exp(b) for b in blocks], np.exp(leak))
                else:
                    table = np.moveaxis(np.exp(graph.table(f)), scope.index(child), -1)
                    net.add_cpt(names[child], parents, table)
        net._check_acyclic()
        own = sum(local.size for local in net._local.values())
        # No cell has two readers, and nothing was rescaled.
        if np.array_equal(graph.structure.child, np.arange(s.n_variables)) and own <= s.n_cells:
            net._compiled = graph  # so that going there and back changes no bit of the log-potentials
        return net

    def to_networkx(self) -> nx.DiGraph:
        """The directed graph: an arc from each parent to its child; nodes carry ``states``."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from((v, {"states": list(self.states(v))}) for v in self._position)
        graph.add_edges_from(self.arcs)
        return graph

    @classmethod
    def from_networkx(
        cls, dag: nx.DiGraph, states: Mapping[VariableName, int | Sequence[Any]] | None = None
    ) -> BayesianNetwork:
        """A network with the nodes and arcs of a directed graph and no numbers yet.

        ``states`` gives each variable a count or names; otherwise the node's ``states`` do; otherwise it has two.
        """
        if not hasattr(dag, "is_directed") or not dag.is_directed():
            raise ModelError(f"BayesianNetwork.from_networkx needs a networkx.DiGraph, got {type(dag).__name__}")
        given = {} if states is None else states
        strange = next((v for v in given if v not in dag), None)
        if strange is not None:
            raise ModelError(f"states of from_networkx name {strange!r}, which is no node of the graph")
        nodes = {v: given[v] if v in given else states_of_node(data) for v, data in dag.nodes(data=True)}
        net = cls(nodes)
        for v in dag.nodes:
            net.set_parents(v, list(dag.predecessors(v)))
        net._check_acyclic()
        return net
