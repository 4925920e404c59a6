"""The Ising model on a lattice or on any graph (Murphy 19.4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
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
from markovfield.models._sites import (
    SameStates,
    edge_values,
    over_temperature,
    pair_graph,
    sigmoid,
    site_values,
    sites_of,
)
from markovfield.names import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markovfield.models.log_linear import LogLinear

__all__ = ["Ising"]

SPINS: dict[str, tuple[int, int]] = {"-1/+1": (-1, 1), "0/1": (0, 1)}
# log-potentials of a pair of states for a coupling of one, and of a state for a field of one.
PAIR = {"-1/+1": np.array([1.0, -1.0, -1.0, 1.0]), "0/1": np.array([0.0, 0.0, 0.0, 1.0])}
UNARY = {"-1/+1": np.array([-1.0, 1.0]), "0/1": np.array([0.0, 1.0])}


class Ising(SiteModel):
    """Spins that want to be like their neighbours, or unlike them.

    The convention, here and everywhere in the library (Murphy 19.17; the minus in his 19.18 and 19.19 contradicts it):

        log p(y) = sum over edges of ``coupling[s, t] * y_s * y_t`` + sum over sites of ``field[s] * y_s`` - log Z

    So a positive coupling makes neighbours alike (a ferromagnet), a negative one unlike. A spin y is -1 or +1 by
    default; with ``spins="0/1"`` it is 0 or 1 in the same formula, which is another parametrisation of the same family
    (`with_spins` goes from one to the other).

    Compiling 1000 x 1000 sites takes about a second; all edges of equal coupling share one table, and so do sites of
    equal field.

    Parameters
    ----------
    shape_or_graph
        Lengths of a lattice of one to three axes, whose sites are named 0, 1, ... in row order (`site` gives the name
        for indices); or a networkx graph; or pairs of sites. Pairs of ints make the sites 0 to the largest of them.
    coupling
        A number; one for each axis; one for each edge in the order of `edges`; an array for each axis, as long as the
        lattice less one along that axis (as long as the lattice where it is periodic); a dict of pairs of sites; or the
        name of an edge attribute of the graph. As many numbers as axes are always read as one for each axis.
    field
        A number, an array of the shape of the lattice, a dict of sites (others have none), or a node attribute's name.
    periodic
        Whether the ends of an axis are neighbours: one bool, or one for each axis, which then needs three sites.
    spins
        ``"-1/+1"`` or ``"0/1"``: also the names of the states.
    temperature
        What couplings and fields are divided by, for those who think in temperatures (Boltzmann's constant being one):
        ``Ising(shape, temperature=2.5)`` has a coupling of 0.4. The model keeps the quotients only.

    Attributes
    ----------
    shape, periodic
        Of the lattice; None and ``()`` for other graphs.
    coupling, field
        As they were given, over the temperature: a number, a tuple with one for each axis, or an array.
    edges, edge_couplings
        ``int64[m, 2]`` positions of sites and ``float64[m]``.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.models.ising import Ising
    >>> model = Ising((3, 4), coupling=0.5, field=0.1, periodic=(False, True))
    >>> model
    Ising(3 x 4 sites, 20 edges)
    >>> round(mf.marginals(model).probability_of(model.site(1, 2), +1), 4)
    0.842
    >>> state = model.to_spins(mf.decode(model))
    >>> state[0].tolist(), float(model.magnetisation(state))
    ([1, 1, 1, 1], 1.0)
    """

    def __init__(
        self,
        shape_or_graph: Any,
        coupling: Any = 1.0,
        field: Any = 0.0,
        *,
        periodic: bool | Sequence[bool] = False,
        spins: str = "-1/+1",
        temperature: float = 1.0,
    ) -> None:
        if not isinstance(spins, str) or spins not in SPINS:
            raise ModelError(f"Ising(spins=...) must be '-1/+1' or '0/1', got {spins!r}")
        self.spins = spins
        self._sites = sites_of(shape_or_graph, periodic, "Ising")
        couplings = edge_values(self._sites, coupling, shape_or_graph, "Ising")
        given = (*couplings, site_values(self._sites, field, shape_or_graph, "Ising", 0.0))
        self.coupling, self.edge_couplings, self.field = (over_temperature(x, temperature, "Ising") for x in given)
        self._compiled = None

    def __repr__(self) -> str:
        return f"Ising({self._told()})"

    @property
    def n_states(self) -> int:
        """Two: a spin is down or up."""
        return 2

    def _current_names(self) -> Names:
        states = SameStates(self.n_variables, (-1, 1)) if self.spins == "-1/+1" else {}
        return Names(self.variables, states)

    def _fields(self) -> FloatArray:
        """The field of each site, ``float64[n]``."""
        return np.broadcast_to(np.asarray(self.field).ravel(), (self.n_variables,))

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`: a factor for each edge, then, unless the field is 0.0, one for each site."""
        if self._compiled is None:
            values, which = np.unique(self.edge_couplings, return_inverse=True)
            pairs = (values[:, None] * PAIR[self.spins], which.reshape(-1))
            unary = None
            if not (isinstance(self.field, float) and self.field == 0.0):
                fields, read = np.unique(self._fields(), return_inverse=True)
                unary = (fields[:, None] * UNARY[self.spins], read.reshape(-1))
            self._compiled = pair_graph(self._sites, 2, self._current_names(), pairs, unary)
        return self._compiled

    def _tied(self) -> tuple[Tied, Tied | None]:
        """Couplings and fields as parameters: as many as were given, and no field where it is 0.0."""
        pairs = tied_couplings(self._sites, self.coupling, self.edge_couplings, PAIR[self.spins])
        if isinstance(self.field, float) and self.field == 0.0:
            return pairs, None
        fields = np.asarray(self.field, np.float64).reshape(-1, 1)
        return pairs, tied_fields(self._sites, fields, UNARY[self.spins].reshape(2, 1))

    def log_linear(self) -> LogLinear:
        """The log-linear form: a parameter for each coupling and field as they were given.

        One number stays one parameter that all edges share, an array is one for each edge; a field of 0.0 stays none.
        """
        return pairwise_log_linear(self._sites, 2, self._current_names(), *self._tied())

    def with_parameters(self, parameters: npt.ArrayLike) -> Ising:
        """The same model with other couplings and fields, those of `log_linear`."""
        pairs, fields = self._tied()
        couplings, field = split_parameters(parameters, pairs, fields)
        made = object.__new__(Ising)
        made.spins, made._sites, made._compiled = self.spins, self._sites, None
        made.edge_couplings = couplings.ravel()[pairs.which]
        made.coupling = as_given(self.coupling, couplings.ravel())
        made.field = 0.0 if fields is None else as_given(self.field, field.ravel())
        return made

    # ---- spins ----------------------------------------------------------------------------------------------

    def _rows(self, states: Any, what: str) -> tuple[FloatArray, tuple[int, ...], tuple[int, ...]]:
        """Spins as ``float64[rows, n]``, with the shapes before the sites and of the sites; of answers their spins."""
        if hasattr(states, "states"):
            states = self.to_spins(states)
        rows, before, last = self._sites.rows(states, what)
        low, high = SPINS[self.spins]
        strange = (rows != low) & (rows != high)
        if strange.any():
            raise ModelError(
                f"{what} needs spins {low} and {high}, got {rows[strange].flat[0]}; "
                "to_spins makes them from samples, decodings and state indices"
            )
        return rows.astype(np.float64), before, last

    def to_spins(self, answer: Any) -> npt.NDArray[np.int8]:
        """Spins from an answer, ``int8[..., *shape]``: of a decoding one configuration, of samples one for each.

        An array of state indices (0 for down, 1 for up) of shape ``[..., n]`` or ``[..., *shape]`` is taken as well.
        """
        states = np.asarray(getattr(answer, "states", answer))
        rows, before, _ = self._sites.rows(states, "to_spins(answer)")
        if rows.size and (rows.min() < 0 or rows.max() > 1):
            raise ModelError(f"to_spins(answer) needs state indices 0 and 1, got {rows[(rows < 0) | (rows > 1)][0]}")
        low, high = SPINS[self.spins]
        return np.where(rows == 1, np.int8(high), np.int8(low)).reshape(*before, *self._sites.array_shape)

    def _pull(self, row: FloatArray) -> FloatArray:
        """For each site its field plus the couplings times the neighbouring spins."""
        i, j = self.edges[:, 0], self.edges[:, 1]
        w, n = self.edge_couplings, self.n_variables
        return np.asarray(self._fields() + np.bincount(i, w * row[j], n) + np.bincount(j, w * row[i], n))

    def full_conditional(self, states: npt.ArrayLike) -> FloatArray:
        """For each site, p(y_s = +1 | all other spins), in the shape of ``states`` (Murphy 19.21, exercise 19.5).

        The terms of log p with y_s in them are y_s times a_s = sum over neighbours of w_st y_t + b_s. Everything else
        cancels between y_s up and down, so the log-odds are a_s times the difference of the two values of y_s: with
        sigm(x) = 1 / (1 + exp(-x)),

        * sigm(a_s) for spins 0 and 1,
        * sigm(2 a_s) for spins -1 and +1.

        Examples
        --------
        >>> from markovfield.models.ising import Ising
        >>> Ising(3, coupling=1.0).full_conditional([1, -1, 1]).round(3).tolist()
        [0.119, 0.982, 0.119]
        """
        rows, before, last = self._rows(states, "full_conditional(states)")
        low, high = SPINS[self.spins]
        odds = np.stack([(high - low) * self._pull(row) for row in rows]) if len(rows) else rows
        return sigmoid(odds).reshape(before + last)

    def energy(self, states: npt.ArrayLike) -> Any:
        """Minus the sum of log-potentials of each configuration: low energy is high probability."""
        rows, before, _ = self._rows(states, "energy(states)")
        i, j = self.edges[:, 0], self.edges[:, 1]
        total = [-float(self.edge_couplings @ (row[i] * row[j]) + self._fields() @ row) for row in rows]
        return np.array(total, np.float64).reshape(before)[()]

    def magnetisation(self, states: npt.ArrayLike) -> Any:
        """Mean spin of each configuration."""
        rows, before, _ = self._rows(states, "magnetisation(states)")
        return rows.mean(axis=1).reshape(before)[()]

    def with_spins(self, spins: str) -> Ising:
        """The same distribution over down and up in the other convention; scores differ by a constant.

        With y = (1 + s) / 2 for s in -1, +1: w y_s y_t = w/4 (1 + s_s + s_t + s_s s_t). So couplings are divided by
        four and fields are b/2 + (sum of w over neighbours)/4; and the other way round.

        Examples
        --------
        >>> from markovfield.models.ising import Ising
        >>> other = Ising(3, coupling=1.0, field=0.5).with_spins("0/1")
        >>> other.edge_couplings.tolist(), other.field.tolist()
        ([4.0, 4.0], [-1.0, -3.0, -1.0])
        """
        if spins not in SPINS:
            raise ModelError(f"with_spins(...) must be '-1/+1' or '0/1', got {spins!r}")
        made = object.__new__(Ising)
        made.spins, made._sites, made._compiled = spins, self._sites, None
        around = np.bincount(self.edges.ravel(), np.repeat(self.edge_couplings, 2), self.n_variables)
        if spins == self.spins:
            scale, fields = 1.0, self._fields().copy()
        elif spins == "0/1":
            scale, fields = 4.0, 2 * self._fields() - 2 * around
        else:
            scale, fields = 0.25, self._fields() / 2 + around / 4
        made.edge_couplings = scale * self.edge_couplings
        if isinstance(self.coupling, tuple):
            made.coupling = tuple(scale * c for c in self.coupling)
        else:
            made.coupling = scale * self.coupling if isinstance(self.coupling, float) else made.edge_couplings
        made.field = fields.reshape(self._sites.array_shape)
        made.edge_couplings.flags.writeable = made.field.flags.writeable = False
        return made
