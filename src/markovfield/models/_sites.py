"""Sites of a lattice or of any graph, the pairs that join them, and numbers given for either."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray, IntArray, sealed
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.kinds_kernel import DISTANCE, TABLE
from markovfield.factors.lattice import tell_lattice
from markovfield.factors.structure import Structure
from markovfield.names import Names, VariableName, check_name

__all__ = [
    "SameStates",
    "Sites",
    "edge_values",
    "given_numbers",
    "over_temperature",
    "pair_graph",
    "sigmoid",
    "site_values",
    "sites_of",
    "softplus_sum",
]

MOST_AXES = 3


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), accurate at both ends and free of overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def softplus_sum(x: FloatArray) -> FloatArray:
    """Sum over the last axis of log(1 + exp(x)), with one logarithm for a thousand terms.

    Examples
    --------
    >>> softplus_sum(np.array([[0.0, 0.0], [800.0, -800.0]])).tolist()
    [1.3862943611198906, 800.0]
    """
    total = np.maximum(x, 0.0).sum(axis=-1)
    small = np.exp(-np.abs(x))
    small += 1.0  # from 1 to 2: a thousand of them multiply to no more than 2^1000
    for first in range(0, x.shape[-1], 1000):
        total += np.log(small[..., first : first + 1000].prod(axis=-1))
    return np.asarray(total)


class SameStates(Mapping[int, tuple[Any, ...]]):
    """One tuple of state names for each of the first ``n`` positions, kept once however many there are.

    Examples
    --------
    >>> states = SameStates(1_000_000, (-1, 1))
    >>> states[999_999], 1_000_000 in states
    ((-1, 1), False)
    """

    def __init__(self, n: int, names: tuple[Any, ...]) -> None:
        self._n, self._names = n, names

    def __getitem__(self, position: int) -> tuple[Any, ...]:
        if 0 <= position < self._n:
            return self._names
        raise KeyError(position)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._n))

    def __len__(self) -> int:
        return self._n


@dataclass(frozen=True, eq=False)
class Sites:
    """Where the variables of a field are.

    Attributes
    ----------
    variables
        Names in position order: on a lattice 0, 1, ... in row order (last axis fastest).
    shape, periodic
        Of a lattice; None and ``()`` for any other graph.
    edges
        ``int64[m, 2]`` positions. On a lattice those along the first axis come first; along an axis they are in row
        order of their first ends, and a periodic axis has one from its last site to its first.
    per_axis
        Edges along each axis of a lattice.
    """

    variables: Sequence[VariableName]
    shape: tuple[int, ...] | None
    periodic: tuple[bool, ...]
    edges: IntArray
    per_axis: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Number of sites."""
        return len(self.variables)

    @cached_property
    def names(self) -> Names:
        """The variables by name; kept, since a lookup table is behind it."""
        return Names(self.variables)

    @property
    def array_shape(self) -> tuple[int, ...]:
        """Shape of an array with one entry for each site."""
        return self.shape if self.shape is not None else (self.n,)

    def edge_shape(self, axis: int) -> tuple[int, ...]:
        """Shape of an array with one entry for each edge along an axis of a lattice."""
        assert self.shape is not None
        wrap = self.periodic[axis]
        return tuple(length - (a == axis and not wrap) for a, length in enumerate(self.shape))

    def position(self, site: Any, model: str) -> int:
        """Position of a site by its name or, on a lattice, by its indices."""
        if self.shape is not None and isinstance(site, tuple):
            inside = len(site) == len(self.shape) and all(
                isinstance(i, (int, np.integer)) and 0 <= i < length
                for i, length in zip(site, self.shape, strict=False)
            )
            if not inside:
                raise ModelError(f"{model} has no site {site!r}: its shape is {self.shape}")
            return int(np.ravel_multi_index(site, self.shape))
        return self.names.position(site)

    def rows(self, values: npt.ArrayLike, what: str) -> tuple[npt.NDArray[Any], tuple[int, ...], tuple[int, ...]]:
        """Values for all sites as ``[rows, n]``, with the shape before the sites and that of the sites as given."""
        array = np.asarray(values)
        k = len(self.array_shape)
        if array.ndim >= k and array.shape[array.ndim - k :] == self.array_shape:
            before, last = array.shape[: array.ndim - k], self.array_shape
        elif array.shape[-1:] == (self.n,):
            before, last = array.shape[:-1], (self.n,)
        else:
            flat = "" if len(self.array_shape) == 1 else f" or of {self.n} numbers"
            whole = f"{self.array_shape}{flat}"
            raise ModelError(f"{what} needs arrays of shape {whole} for the sites, got shape {array.shape}")
        return array.reshape(math.prod(before), self.n), before, last


def sites_of(where: Any, periodic: Any, model: str) -> Sites:
    """Sites from a lattice's shape, a networkx graph or a list of pairs."""
    if isinstance(where, (int, np.integer)) and not isinstance(where, bool):
        where = (where,)
    if hasattr(where, "edges") and hasattr(where, "nodes"):
        _no_periods(periodic, model)
        return _from_networkx(where, model)
    if isinstance(where, (tuple, list)) and where and all(isinstance(x, (int, np.integer)) for x in where):
        return _lattice(tuple(int(x) for x in where), periodic, model)
    if isinstance(where, (tuple, list, np.ndarray)):
        _no_periods(periodic, model)
        return _from_pairs(where, model)
    raise ModelError(
        f"{model} needs the shape of a lattice, a networkx graph or a list of pairs, got {type(where).__name__}"
    )


def _no_periods(periodic: Any, model: str) -> None:
    if np.any(periodic):
        raise ModelError(f"{model}(periodic=...) speaks of a lattice's axes; add the edges to the graph instead")


def _lattice(shape: tuple[int, ...], periodic: Any, model: str) -> Sites:
    if len(shape) > MOST_AXES or min(shape) < 1:
        raise ModelError(f"{model} needs a shape of one to {MOST_AXES} positive lengths, got {shape}")
    wraps = [periodic] * len(shape) if isinstance(periodic, (bool, np.bool_)) else []
    if isinstance(periodic, (list, tuple, np.ndarray)):
        wraps = list(periodic)
    if len(wraps) != len(shape) or not all(isinstance(w, (bool, np.bool_)) for w in wraps):
        raise ModelError(f"{model}(periodic=...) must be a bool or one for each axis of {shape}, got {periodic!r}")
    for length, wrap in zip(shape, wraps, strict=True):
        if wrap and length < 3:
            raise ModelError(
                f"{model} cannot be periodic along an axis of length {length}: the ends of fewer than three sites are "
                "neighbours already; leave that axis free, or give the pairs themselves"
            )
    grid = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    parts, per_axis = [], []
    for axis, wrap in enumerate(wraps):
        first, second = grid, np.roll(grid, -1, axis)
        if not wrap:
            keep = tuple(slice(None, -1 if a == axis else None) for a in range(len(shape)))
            first, second = first[keep], second[keep]
        parts.append(np.stack([first.ravel(), second.ravel()], axis=1))
        per_axis.append(first.size)
    return Sites(range(grid.size), shape, tuple(bool(w) for w in wraps), np.concatenate(parts), tuple(per_axis))


def _from_networkx(graph: Any, model: str) -> Sites:
    if graph.is_directed() or graph.is_multigraph():
        raise ModelError(f"{model} needs an undirected graph with at most one edge between two nodes")
    names = [check_name(v) for v in graph.nodes]
    position = {v: i for i, v in enumerate(names)}
    edges = np.array([(position[u], position[v]) for u, v in graph.edges], np.int64).reshape(-1, 2)
    return _checked(Sites(names, None, (), edges), model)


def _from_pairs(pairs: Any, model: str) -> Sites:
    if isinstance(pairs, np.ndarray) and np.issubdtype(pairs.dtype, np.integer) and pairs.size and pairs.min() >= 0:
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ModelError(f"{model} needs pairs of sites, got an array of shape {pairs.shape}")
        return _checked(Sites(range(int(pairs.max()) + 1), None, (), pairs.astype(np.int64)), model)
    listed = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
    for pair in listed:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ModelError(f"{model} needs pairs of sites, got {pair!r}")
    flat = [check_name(v) for pair in listed for v in pair]
    if not flat:
        raise ModelError(f"{model} needs at least one pair; a lattice is given by its shape")
    names: Sequence[VariableName]
    if all(isinstance(v, int) and v >= 0 for v in flat):
        numbers = np.array(flat, np.int64)
        names = range(int(numbers.max()) + 1)
    else:
        names = list(dict.fromkeys(flat))
        position = {v: i for i, v in enumerate(names)}
        numbers = np.array([position[v] for v in flat], np.int64)
    return _checked(Sites(names, None, (), numbers.reshape(-1, 2)), model)


def _checked(sites: Sites, model: str) -> Sites:
    """The same sites, once no edge joins a site to itself and none occurs twice."""
    low, high = sites.edges.min(axis=1, initial=sites.n), sites.edges.max(axis=1, initial=-1)
    same = np.flatnonzero(low == high)
    if len(same):
        raise ModelError(f"{model} has an edge from {sites.variables[int(low[same[0]])]!r} to itself")
    keys, first = np.unique(low * sites.n + high, return_index=True)
    if len(keys) < len(low):
        twice = int(np.setdiff1d(np.arange(len(low)), first)[0])
        a, b = (sites.variables[int(v)] for v in sites.edges[twice])
        raise ModelError(f"{model} has the edge {a!r} - {b!r} twice: add up its couplings")
    return sites


def given_numbers(given: Any, what: str) -> FloatArray:
    """An argument as finite float64 numbers."""
    if given is None:
        raise ModelError(f"{what} must be numbers, got None")
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} must be numbers: {error}") from error
    if not np.isfinite(values).all():
        raise ModelError(f"{what} must be finite numbers, got {values[~np.isfinite(values)].flat[0]}")
    return values


def edge_values(sites: Sites, coupling: Any, where: Any, model: str) -> tuple[Any, FloatArray]:
    """The coupling as it is kept (a number, one for each axis, or one for each edge), and ``float64[m]``."""
    what, m = f"{model}(coupling=...)", len(sites.edges)
    if isinstance(coupling, str):
        coupling = _attributes(where, coupling, what)
    if isinstance(coupling, Mapping):
        by_edge = _by_edge(sites, given_pairs(sites, coupling, what, model), what)
        return by_edge, by_edge
    if sites.shape is not None and isinstance(coupling, (list, tuple)) and any(np.ndim(c) > 0 for c in coupling):
        parts = [given_numbers(c, what) for c in coupling]
        shapes = [sites.edge_shape(axis) for axis in range(len(sites.shape))]
        if [p.shape for p in parts] != shapes:
            raise ModelError(
                f"{what} with an array for each axis needs the shapes {shapes}, got {[p.shape for p in parts]}"
            )
        by_edge = sealed(np.concatenate([p.ravel() for p in parts]))
        return by_edge, by_edge
    values = given_numbers(coupling, what)
    if values.ndim == 0:
        return float(values), sealed(np.full(m, float(values)))
    if sites.shape is not None and values.shape == (len(sites.shape),):
        return tuple(values.tolist()), sealed(np.repeat(values, sites.per_axis))
    if values.shape == (m,):
        by_edge = sealed(values)
        return by_edge, by_edge
    axes = "" if sites.shape is None else f"one for each of {len(sites.shape)} axes, "
    raise ModelError(f"{what} must be one number, {axes}or one for each of {m} edges, got shape {values.shape}")


def over_temperature(values: Any, temperature: Any, model: str) -> Any:
    """Couplings or fields as they are kept (a number, a tuple or an array), divided by a temperature."""
    what = f"{model}(temperature=...)"
    if number(temperature, what, above=0) == 1:
        return values
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = np.asarray(values) / temperature
    if not np.isfinite(scaled).all():
        raise ModelError(f"{what} of {temperature!r} makes couplings or fields infinite")
    if isinstance(values, np.ndarray):
        return sealed(scaled)
    return tuple(scaled.tolist()) if isinstance(values, tuple) else float(scaled)


def _attributes(where: Any, name: str, what: str) -> dict[Any, Any]:
    """The edges of a networkx graph with an attribute of theirs."""
    if not hasattr(where, "edges"):
        raise ModelError(f"{what} names the edge attribute {name!r}, but there is no networkx graph to read it from")
    found = {}
    for u, v, value in where.edges(data=name):
        if value is None:
            raise ModelError(f"{what}: the edge {u!r} - {v!r} has no attribute {name!r}")
        found[u, v] = value
    return found


def given_pairs(sites: Sites, coupling: Mapping[Any, Any], what: str, model: str) -> dict[tuple[int, int], Any]:
    """A mapping of pairs of sites to numbers, the pairs by position, lower first."""
    found: dict[tuple[int, int], Any] = {}
    for pair, value in coupling.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ModelError(f"{what} as a mapping needs pairs of sites as keys, got {pair!r}")
        a, b = sorted(sites.position(v, model) for v in pair)
        if (a, b) in found:
            raise ModelError(f"{what} has the edge {pair!r} twice")
        found[a, b] = value
    return found


def _by_edge(sites: Sites, found: dict[tuple[int, int], Any], what: str) -> FloatArray:
    """One number for each edge, from a mapping that must have them all and no others."""
    rest = dict(found)
    values = []
    for u, v in sites.edges.tolist():
        key = (min(u, v), max(u, v))
        if key not in found:
            raise ModelError(f"{what} says nothing of the edge {sites.variables[u]!r} - {sites.variables[v]!r}")
        values.append(rest.pop(key))
    if rest:
        a, b = next(iter(rest))
        raise ModelError(f"{what}: there is no edge {sites.variables[a]!r} - {sites.variables[b]!r}")
    return sealed(given_numbers(values, what))


def site_values(sites: Sites, field: Any, where: Any, model: str, default: Any, last: tuple[int, ...] = ()) -> Any:
    """The field as it is kept: what one site has, for all, or an array of the sites' shape, then of ``last``."""
    what = f"{model}(field=...)"
    if isinstance(field, str):
        if not hasattr(where, "nodes"):
            raise ModelError(f"{what} names the node attribute {field!r}, but there is no networkx graph")
        field = {v: value for v, value in where.nodes(data=field) if value is not None}
    if isinstance(field, Mapping):
        values = np.broadcast_to(np.asarray(default, np.float64), (sites.n, *last)).copy()
        for site, value in field.items():
            numbers = given_numbers(value, what)
            if numbers.shape != last:
                raise ModelError(f"{what} needs shape {last} for the site {site!r}, got {numbers.shape}")
            values[sites.position(site, model)] = numbers
        return sealed(values.reshape(*sites.array_shape, *last))
    values = given_numbers(field, what)
    if values.shape == last:
        return float(values) if last == () else sealed(values)
    if values.shape == (sites.n, *last):
        values = values.reshape(*sites.array_shape, *last)
    if values.shape != (*sites.array_shape, *last):
        raise ModelError(f"{what} needs shape {last} or {(*sites.array_shape, *last)}, got {values.shape}")
    return sealed(values)


def pair_graph(
    sites: Sites,
    n_states: int,
    names: Names,
    pairs: tuple[FloatArray, IntArray],
    unary: tuple[FloatArray, IntArray] | None,
    *,
    distance: bool = False,
) -> FactorGraph:
    """A graph of one factor for each edge, then one unary factor for each site.

    ``pairs`` are the distinct tables ``[d, cells]`` and the one each edge reads; ``unary`` the same for sites, or None.
    With ``distance``, a pair's cells are its log-potentials by how far apart the states are. Pairs come first in the
    pool too, so that other potentials of sites are another end of it.
    """
    m, n = len(sites.edges), sites.n
    tables, which = pairs
    size = tables.shape[1]
    offsets = [np.arange(0, 2 * m + 1, 2, dtype=np.int64)]
    scopes, bases = [sites.edges.ravel()], [which * size]
    strides = [np.tile(np.array([size - 1] * 2 if distance else [n_states, 1], np.int64), m)]
    cells = [tables.ravel()]
    n_unary = 0
    if unary is not None:
        n_unary = n
        offsets.append(np.arange(2 * m + 1, 2 * m + n + 1, dtype=np.int64))
        scopes.append(np.arange(n))
        bases.append(tables.size + unary[1] * n_states)
        strides.append(np.ones(n, np.int64))
        cells.append(unary[0].ravel())
    kind = np.full(m + n_unary, TABLE, np.int8)
    if distance:
        kind[:m] = DISTANCE
    pool = np.concatenate(cells)
    structure = Structure.from_arrays(
        np.full(n, n_states, np.int32),
        np.concatenate(offsets),
        np.concatenate(scopes).astype(np.int32),
        np.concatenate(bases),
        np.concatenate(strides),
        n_cells=len(pool),
        kind=kind,
        names=names,
    )
    if sites.shape is not None:
        tell_lattice(structure, sites.shape, sites.periodic)
    return FactorGraph(structure, pool)
