"""The Potts model on a lattice or on any graph (Murphy 19.4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.models._pairwise_log_linear import (
    Tied,
    as_given,
    pairwise_log_linear,
    split_parameters,
    tied_couplings,
    tied_fields,
)
from markovfield.models._site_model import SiteModel
from markovfield.models._sites import edge_values, over_temperature, pair_graph, site_values, sites_of
from markovfield.names import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markovfield.models.log_linear import LogLinear

__all__ = ["Potts"]

# Up to here a pair is a plain table, on which messages converge soonest (they may run variable by variable); above, it
# is a distance potential of two cells, whose messages take O(K).
MOST_STATES, MOST_CELLS = 16, 2**22


class Potts(SiteModel):
    """Sites with one of K states, which neighbours want to share, or not to (Murphy 19.22).

        log p(y) = sum over edges of ``coupling[s, t] * [y_s = y_t]`` + sum over sites of ``field[s, y_s]`` - log Z

    With two states and no field it is the Ising model of half the coupling. On an infinite square lattice the model
    changes from small to large regions at a coupling of log(1 + sqrt(K)). Edges of equal coupling share one table;
    with many states, or very many different couplings, they are distance potentials of two cells, equal and different.

    Parameters
    ----------
    shape_or_graph, coupling, periodic, temperature
        As for `Ising`.
    n_states
        States of every site, at least two; their names are 0, 1, ...
    field
        Log-potentials of the states of single sites: ``[n_states]`` for all, ``[*shape, n_states]`` for each, a dict of
        sites to ``[n_states]`` (others have none), the name of a node attribute, or None.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.models.potts import Potts
    >>> model = Potts((2, 3), 3, coupling=1.2)
    >>> model
    Potts(2 x 3 sites, 7 edges, 3 states)
    >>> mf.marginals(model, {model.site(0, 0): 2})[model.site(1, 2)].round(4).tolist()
    [0.2427, 0.2427, 0.5147]
    >>> model.full_conditional([[0, 0, 1], [0, 1, 1]])[0, 1].round(4).tolist()
    [0.2164, 0.7184, 0.0652]
    """

    def __init__(
        self,
        shape_or_graph: Any,
        n_states: int,
        coupling: Any = 1.0,
        field: Any = None,
        *,
        periodic: bool | Sequence[bool] = False,
        temperature: float = 1.0,
    ) -> None:
        self._n_states = whole_number(n_states, "Potts(n_states=...)", 2)
        self._sites = sites_of(shape_or_graph, periodic, "Potts")
        couplings = edge_values(self._sites, coupling, shape_or_graph, "Potts")
        self.coupling, self.edge_couplings = (over_temperature(x, temperature, "Potts") for x in couplings)
        zero = np.zeros(self._n_states)
        if field is not None:
            field = site_values(self._sites, field, shape_or_graph, "Potts", zero, zero.shape)
            field = over_temperature(field, temperature, "Potts")
        self.field = field
        self._compiled = None

    def __repr__(self) -> str:
        return f"Potts({self._told()}, {self._n_states} states)"

    @property
    def n_states(self) -> int:
        """Number of states of each site."""
        return self._n_states

    def _unary(self) -> FloatArray:
        """Unary log-potentials: those of the states of each site, ``float64[n, n_states]``."""
        unary = np.zeros(self.n_states) if self.field is None else self.field.reshape(-1, self.n_states)
        return np.broadcast_to(unary, (self.n_variables, self.n_states))

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`: a factor for each edge, then, where there is a field, one for each site."""
        if self._compiled is None:
            values, which = np.unique(self.edge_couplings, return_inverse=True)
            k = self.n_states
            distance = self._by_distance
            cells = (
                np.stack([values, np.zeros(len(values))], axis=1) if distance else values[:, None] * np.eye(k).ravel()
            )
            pairs = (cells, which.reshape(-1))
            unary = None
            if self.field is not None:
                tables = self.field.reshape(-1, self.n_states)
                n = self.n_variables
                unary = (tables, np.arange(n) if len(tables) == n else np.zeros(n, np.int64))
            names = Names(self.variables)
            self._compiled = pair_graph(self._sites, self.n_states, names, pairs, unary, distance=distance)
        return self._compiled

    @property
    def _by_distance(self) -> bool:
        """Whether pairs are distance potentials of two cells."""
        return self.n_states > MOST_STATES or self.n_states**2 * len(np.unique(self.edge_couplings)) > MOST_CELLS

    def _tied(self) -> tuple[Tied, Tied | None]:
        """Couplings and fields as parameters: as many as were given."""
        cells = np.array([1.0, 0.0]) if self._by_distance else np.eye(self.n_states).ravel()
        pairs = tied_couplings(self._sites, self.coupling, self.edge_couplings, cells)
        if self.field is None:
            return pairs, None
        return pairs, tied_fields(self._sites, self.field.reshape(-1, self.n_states), np.eye(self.n_states))

    def log_linear(self) -> LogLinear:
        """The log-linear form: a parameter for each coupling and log-potential of a state, as they were given."""
        names = self._current_names()
        return pairwise_log_linear(self._sites, self.n_states, names, *self._tied(), distance=self._by_distance)

    def with_parameters(self, parameters: npt.ArrayLike) -> Potts:
        """The same model with other couplings and fields, those of `log_linear`."""
        pairs, fields = self._tied()
        couplings, field = split_parameters(parameters, pairs, fields)
        made = object.__new__(Potts)
        made._n_states, made._sites, made._compiled = self._n_states, self._sites, None
        made.edge_couplings = couplings.ravel()[pairs.which]
        made.coupling = as_given(self.coupling, couplings.ravel())
        made.field = None if fields is None else as_given(self.field, field.ravel())
        return made

    # ---- states ---------------------------------------------------------------------------------------------

    def _rows(self, states: Any, what: str) -> tuple[IntArray, tuple[int, ...], tuple[int, ...]]:
        """States as ``int64[rows, n]``, with the shapes before the sites and of the sites."""
        rows, before, last = self._sites.rows(getattr(states, "states", states), what)
        if not np.issubdtype(rows.dtype, np.number) and rows.dtype != np.bool_:
            raise ModelError(f"{what} needs states 0 to {self.n_states - 1}, got {rows.flat[0]!r}")
        whole = rows.astype(np.int64)
        strange = (whole != rows) | (whole < 0) | (whole >= self.n_states)
        if strange.any():
            raise ModelError(f"{what} needs states 0 to {self.n_states - 1}, got {rows[strange].flat[0]}")
        return whole, before, last

    def to_states(self, answer: Any) -> npt.NDArray[np.int32]:
        """States in the shape of the lattice, ``int32[..., *shape]``, from samples, a decoding or an array."""
        rows, before, _ = self._rows(answer, "to_states(answer)")
        return rows.reshape(*before, *self._sites.array_shape).astype(np.int32)

    def full_conditional(self, states: npt.ArrayLike) -> FloatArray:
        """For each site, the probabilities of its states given all others, ``float64[..., n_states]``.

        The terms of log p with y_s = k in them are the couplings to neighbours in state k and field[s, k]; everything
        else cancels, so the conditional is their softmax over k.
        """
        rows, before, last = self._rows(states, "full_conditional(states)")
        i, j = self.edges[:, 0], self.edges[:, 1]
        n, k, w = self.n_variables, self.n_states, self.edge_couplings
        out = np.empty((len(rows), n, k))
        for r, row in enumerate(rows):
            pull = np.bincount(i * k + row[j], w, n * k) + np.bincount(j * k + row[i], w, n * k)
            scores = self._unary() + pull.reshape(n, k)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[r] = weights / weights.sum(axis=1, keepdims=True)
        return out.reshape(*before, *last, k)

    def energy(self, states: npt.ArrayLike) -> Any:
        """Minus the sum of log-potentials of each configuration: low energy is high probability."""
        rows, before, _ = self._rows(states, "energy(states)")
        i, j = self.edges[:, 0], self.edges[:, 1]
        unary, site = self._unary(), np.arange(self.n_variables)
        total = [-float(self.edge_couplings @ (row[i] == row[j]) + unary[site, row].sum()) for row in rows]
        return np.array(total, np.float64).reshape(before)[()]
