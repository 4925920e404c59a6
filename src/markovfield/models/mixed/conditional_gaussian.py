"""Networks of discrete variables, and of real-valued ones that are linear-Gaussian given them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Drawn
from markovfield.gaussian.mixed_field import CanonicalFactor, MixedField
from markovfield.models._conditionals import check_table, numbers
from markovfield.models._cycles import find_cycle
from markovfield.names import Names, VariableName, check_name, normalise_states

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["ConditionalGaussian", "ConditionalGaussianNetwork"]


@dataclass(frozen=True, eq=False)
class ConditionalGaussian:
    """``x ~ N(bias[d] + weights[d] . parents, variance[d])`` for each configuration d of the discrete parents.

    Attributes
    ----------
    discrete, continuous
        Parents, in the order of the axes and of the weights.
    weights, bias, variance
        ``float64[cards, c]``, ``float64[cards]``, ``float64[cards]``.
    """

    discrete: tuple[VariableName, ...]
    continuous: tuple[VariableName, ...]
    weights: FloatArray
    bias: FloatArray
    variance: FloatArray


class ConditionalGaussianNetwork(Drawn):
    """Discrete variables with tables, real-valued ones with a regression for each configuration of discrete parents.

    A discrete variable has discrete parents only: then the joint distribution is a mixture of Gaussians, one for each
    configuration of all discrete variables, and questions have exact answers.

    Parameters
    ----------
    variables
        Names to their states (a number or a list), or to None where a variable is real-valued.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.ConditionalGaussianNetwork({"burner": ["off", "on"], "heat": None, "pressure": None})
    >>> net.add_cpt("burner", [], [0.7, 0.3])
    >>> net.add_cpd("heat", ["burner"], bias=[20.0, 80.0], variance=[4.0, 9.0])
    >>> net.add_cpd("pressure", ["heat"], [0.5], variance=1.0)
    >>> answer = mf.marginals(net, {"pressure": 38.0})
    >>> answer["burner"].round(3).tolist()
    [0.0, 1.0]
    >>> heat = mf.marginals(net)["heat"]
    >>> round(heat.mean, 6), round(heat.variance, 6), heat.mixture
    (38.0, 761.5, True)
    """

    def __init__(self, variables: Mapping[VariableName, int | Sequence[Any] | None] | None = None) -> None:
        # 0 states: real-valued.
        self._cards: dict[VariableName, int] = {}
        self._states: dict[VariableName, tuple[Any, ...]] = {}
        self._parents: dict[VariableName, tuple[VariableName, ...]] = {}
        self._names: Names | None = None
        self._tables: dict[VariableName, FloatArray] = {}
        self._cpds: dict[VariableName, ConditionalGaussian] = {}
        self._compiled: MixedField | None = None
        self.fit_report: Any = None
        """What `mf.fit` says of how it found the numbers; None for a network written by hand."""
        if variables is not None and not isinstance(variables, Mapping):
            raise ModelError(
                "ConditionalGaussianNetwork(variables) is a dict from name to states, None for real-valued ones, got "
                f"{type(variables).__name__}"
            )
        for name, states in (variables or {}).items():
            self.add_variable(name, states)

    def __repr__(self) -> str:
        discrete = sum(map(bool, self._cards.values()))
        n = len(self.arcs)
        rest = len(self._cards) - discrete
        return f"ConditionalGaussianNetwork({discrete} discrete, {rest} real-valued, {n} arc{'s' * (n != 1)})"

    # ---- writing --------------------------------------------------------------------------------------------------

    def add_variable(self, name: VariableName, states: int | Sequence[Any] | None = None) -> None:
        """Add a variable: with states, or real-valued where they are None."""
        name = check_name(name)
        if name in self._cards:
            raise ModelError(f"there is already a variable {name!r}")
        count, named = (0, None) if states is None else normalise_states(name, states)
        self._cards[name] = count
        if named is not None:
            self._states[name] = named
        self._compiled = None

    def set_parents(self, variable: VariableName, parents: Sequence[VariableName]) -> None:
        """Give a variable its parents only; `markovfield.fit` finds the numbers."""
        variable = self._known(variable)
        self._parents[variable] = self._checked_parents(variable, parents)
        self._tables.pop(variable, None)
        self._cpds.pop(variable, None)
        self._compiled = None

    def add_cpt(self, variable: VariableName, parents: Sequence[VariableName], table: npt.ArrayLike) -> None:
        """Give a discrete variable its distribution: parents' axes first, its own axis last."""
        variable = self._known(variable)
        if not self._cards[variable]:
            raise ModelError(f"variable {variable!r} is real-valued: add_cpd gives it a regression")
        above = self._checked_parents(variable, parents)
        what = f"the table of {variable!r}"
        values = numbers(table, what)
        shape = tuple(self._cards[v] for v in (*above, variable))
        if values.shape != shape:
            raise ModelError(f"{what} given {list(above)!r} needs shape {shape}, got {values.shape}")
        at = {v: i for i, v in enumerate(self._cards)}
        scope, cards = [at[v] for v in (*above, variable)], list(self._cards.values())
        self._tables[variable] = check_table(values, self._current_names(), scope, cards, what, 1e-2)
        self._parents[variable] = above
        self._compiled = None

    def add_cpd(
        self,
        variable: VariableName,
        parents: Sequence[VariableName] = (),
        weights: npt.ArrayLike = (),
        *,
        bias: npt.ArrayLike = 0.0,
        variance: npt.ArrayLike = 1.0,
    ) -> None:
        """Give a real-valued variable its distribution given its parents.

        Parameters
        ----------
        parents
            Discrete and real-valued ones, in any order.
        weights
            ``[cards of the discrete parents, number of real-valued parents]``, in the order of the parents of each
            kind; what is the same for all configurations may be given once.
        bias, variance
            ``[cards]``, or a number for all; variances are positive.
        """
        variable = self._known(variable)
        if self._cards[variable]:
            raise ModelError(f"variable {variable!r} is discrete: add_cpt gives it a table")
        above = self._checked_parents(variable, parents)
        discrete = tuple(p for p in above if self._cards[p])
        continuous = tuple(p for p in above if not self._cards[p])
        shape = tuple(self._cards[p] for p in discrete)
        found = []
        for what, given, wanted in (
            ("weights", weights, (*shape, len(continuous))),
            ("bias", bias, shape),
            ("variance", variance, shape),
        ):
            try:
                array = np.array(np.broadcast_to(np.asarray(given, np.float64), wanted))
            except (TypeError, ValueError):
                raise ModelError(
                    f"the {what} of {variable!r} given {list(above)!r} need shape {wanted}, got {np.shape(given)}"
                ) from None
            if not np.isfinite(array).all():
                raise ModelError(f"the {what} of {variable!r} must be finite numbers")
            array.flags.writeable = False
            found.append(array)
        if not (found[2] > 0).all():
            raise ModelError(f"the variance of {variable!r} must be positive, got {found[2].min():g}")
        self._cpds[variable] = ConditionalGaussian(discrete, continuous, *found)
        self._parents[variable] = above
        self._compiled = None

    def _known(self, variable: VariableName) -> VariableName:
        names = self._current_names()
        return names.variables[names.position(variable)]

    def _checked_parents(self, variable: VariableName, parents: Sequence[VariableName]) -> tuple[VariableName, ...]:
        if isinstance(parents, str):
            raise ModelError(f"the parents of {variable!r} are a sequence of variable names; write [{parents!r}]")
        above = tuple(self._known(p) for p in parents)
        if len(set(above)) != len(above):
            raise ModelError(f"a variable is named twice in {list(parents)!r}")
        if variable in above:
            raise ModelError(f"variable {variable!r} cannot be its own parent")
        if self._cards[variable]:
            for p in above:
                if not self._cards[p]:
                    raise ModelError(
                        f"variable {variable!r} is discrete and {p!r} real-valued: a discrete child of a real-valued "
                        "parent has no exact answer here, so turn the arc round or cut the parent into states"
                    )
        return above

    def _current_names(self) -> Names:
        # Variables are added, and never changed.
        if self._names is None or len(self._names.variables) != len(self._cards):
            positions = {v: i for i, v in enumerate(self._cards)}
            self._names = Names(tuple(self._cards), {positions[v]: s for v, s in self._states.items()})
        return self._names

    def _count_states(self, position: int) -> int:
        return self._cards[self._current_names().variables[position]]

    def copy(self) -> ConditionalGaussianNetwork:
        """A network that can be written on without changing this one."""
        twin = ConditionalGaussianNetwork()
        for name in ("_cards", "_states", "_parents", "_tables", "_cpds"):
            setattr(twin, name, dict(getattr(self, name)))
        twin.fit_report = self.fit_report
        return twin

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names in the order they were added."""
        return tuple(self._cards)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._cards)

    @property
    def discrete(self) -> tuple[VariableName, ...]:
        """Variables with states."""
        return tuple(v for v, c in self._cards.items() if c)

    @property
    def continuous(self) -> tuple[VariableName, ...]:
        """Real-valued variables."""
        return tuple(v for v, c in self._cards.items() if not c)

    @property
    def arcs(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs of a parent and its child."""
        return tuple((p, v) for v in self._cards for p in self._parents.get(v, ()))

    def states(self, variable: VariableName) -> tuple[Any, ...]:
        """State names; none of a real-valued variable."""
        variable = self._known(variable)
        return self._states.get(variable, tuple(range(self._cards[variable])))

    def cardinality(self, variable: VariableName) -> int:
        """Number of states, 0 of a real-valued variable."""
        return self._cards[self._known(variable)]

    def parents(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Parents of a variable."""
        return self._parents.get(self._known(variable), ())

    def cpt(self, variable: VariableName) -> FloatArray:
        """The table of a discrete variable."""
        variable = self._known(variable)
        if variable not in self._tables:
            kind = "is real-valued" if not self._cards[variable] else "has no distribution: add_cpt gives it one"
            raise ModelError(f"variable {variable!r} {kind}")
        return self._tables[variable]

    def cpd(self, variable: VariableName) -> ConditionalGaussian:
        """The regressions of a real-valued variable."""
        variable = self._known(variable)
        if variable not in self._cpds:
            kind = "is discrete" if self._cards[variable] else "has no distribution: add_cpd gives it one"
            raise ModelError(f"variable {variable!r} {kind}")
        return self._cpds[variable]

    def order(self) -> list[VariableName]:
        """The variables with every parent before its children."""
        names = list(self._cards)
        at = {v: i for i, v in enumerate(names)}
        above = [[at[p] for p in self._parents.get(v, ())] for v in names]
        cycle = find_cycle(above, len(names))
        if cycle:
            raise ModelError(f"the network has a directed cycle: {' -> '.join(repr(names[i]) for i in cycle)}")
        done: dict[int, None] = {}
        while len(done) < len(names):
            done |= {i: None for i in range(len(names)) if i not in done and all(p in done for p in above[i])}
        return [names[i] for i in done]

    def to_networkx(self) -> nx.DiGraph:
        """The directed graph; nodes carry ``states``, None for real-valued ones."""
        import networkx as nx

        graph = nx.DiGraph()
        for v in self._cards:
            graph.add_node(v, states=list(self.states(v)) or None)
        graph.add_edges_from(self.arcs)
        return graph

    # ---- compiling ------------------------------------------------------------------------------------------------

    def compile(self) -> MixedField:
        """Each distribution as a factor in canonical form."""
        if self._compiled is None:
            self.order()
            at = {v: i for i, v in enumerate(self._cards)}
            factors = tuple(self._table(v, at) if self._cards[v] else self._regression(v, at) for v in self._cards)
            cards = np.array(list(self._cards.values()), np.int64)
            cards.flags.writeable = False
            self._compiled = MixedField(self._current_names(), cards, factors)
        return self._compiled

    def _table(self, variable: VariableName, at: Mapping[VariableName, int]) -> CanonicalFactor:
        with np.errstate(divide="ignore"):
            table = np.log(self.cpt(variable))
        scope = tuple(at[v] for v in (*self.parents(variable), variable))
        return CanonicalFactor(
            scope, (), table, np.zeros((*table.shape, 0)), np.zeros((*table.shape, 0, 0)), at[variable]
        )

    def _regression(self, variable: VariableName, at: Mapping[VariableName, int]) -> CanonicalFactor:
        cpd = self.cpd(variable)
        # Of the residual: x less the weighted sum of parents.
        slopes = np.concatenate([np.ones((*cpd.bias.shape, 1)), -cpd.weights], axis=-1)
        constant = -0.5 * (cpd.bias**2 / cpd.variance + np.log(2 * np.pi * cpd.variance))
        return CanonicalFactor(
            tuple(at[v] for v in cpd.discrete),
            tuple(at[v] for v in (variable, *cpd.continuous)),
            constant,
            slopes * (cpd.bias / cpd.variance)[..., None],
            slopes[..., :, None] * slopes[..., None, :] / cpd.variance[..., None, None],
            at[variable],
        )
