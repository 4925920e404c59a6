"""Ising and Potts models on lattices as the arrays that lattice kernels read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError

__all__ = ["LatticeModel", "lattice_model", "suited_method"]

MOST_STATES = 255
# Which of layers, rows and columns an axis is, by the number of axes.
BOX_AXES = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}
# Sites up to which clusters are moved by default: such a sweep takes some fifty times as long as one of packed bits.
CLUSTER_SITES = 2**22
# From where on: in two dimensions by how near the self-dual point is, which (exp J1 - 1) (exp J2 - 1) = K defines; else
# by the mean probability of a bond, 0.36 at the critical coupling of the cubic Ising model and more for Potts models.
NEAR_SELF_DUAL, MANY_BONDS = 0.7, {1: 0.7, 3: 0.3}


@dataclass(frozen=True, eq=False)
class LatticeModel:
    """A Potts model on a lattice; an Ising model is one of two states and twice the coupling.

        score = ``offset`` + sum over edges of ``couplings * [x_s = x_t]`` + sum over sites of ``field[x_s]``

    Attributes
    ----------
    shape, periodic
        One to three axes.
    couplings
        ``float64[3, 1]`` for each of layers, rows and columns, or ``float64[3, n]`` from each site to the next along
        it, zero where there is none.
    field
        ``float64[1, n_states]``, or ``float64[n, n_states]``.
    spins
        For Ising models, the spins that states 0 and 1 are; None for Potts models.

    Examples
    --------
    >>> import numpy as np
    >>> lattice = LatticeModel((4, 6), (True, False), np.full((3, 1), 0.88), np.zeros((1, 2)), 0.0, (-1, 1))
    >>> lattice.box, lattice.ring.tolist(), lattice.edges(0), lattice.edges(2)
    ((4, 1, 6), [True, False, False], 24, 20)
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    couplings: FloatArray
    field: FloatArray
    offset: float
    spins: tuple[int, int] | None = None

    @property
    def n_states(self) -> int:
        """Number of states of a site."""
        return self.field.shape[1]

    @property
    def n_sites(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)

    @property
    def box(self) -> tuple[int, int, int]:
        """Layers, rows and columns, one where there is no such axis; layers are what threads share out."""
        sides = [1, 1, 1]
        for axis, length in zip(BOX_AXES[len(self.shape)], self.shape, strict=True):
            sides[axis] = length
        return (sides[0], sides[1], sides[2])

    @property
    def ring(self) -> npt.NDArray[np.bool_]:
        """Whether layers, rows and columns are periodic, ``bool[3]``."""
        ring = np.zeros(3, np.bool_)
        ring[list(BOX_AXES[len(self.shape)])] = self.periodic
        return ring

    def edges(self, axis: int) -> int:
        """Number of edges along layers, rows or columns."""
        length = self.box[axis]
        return self.n_sites // length * (length if self.ring[axis] else length - 1)

    @property
    def uniform(self) -> bool:
        """Whether couplings differ by axis only, and the field not at all between sites."""
        return self.couplings.shape[1] == 1 and self.field.shape[0] == 1

    def each_coupling(self) -> FloatArray:
        """Couplings of all sites, ``float64[3, n]``, also where they are kept once."""
        if self.couplings.shape[1] > 1:
            return self.couplings
        full = np.empty((3, *self.box))
        for axis in range(3):
            full[axis] = self.couplings[axis, 0]
            if not self.ring[axis]:
                np.moveaxis(full[axis], axis, 0)[-1] = 0.0
        return full.reshape(3, -1)


def lattice_model(model: Any) -> LatticeModel:
    """Read an Ising or Potts model that was given by the shape of a lattice."""
    name = type(model).__name__
    if not all(hasattr(model, a) for a in ("shape", "periodic", "coupling", "edge_couplings", "field", "n_states")):
        raise ModelError(f"a lattice simulation takes an Ising or a Potts model, got {name}")
    if model.shape is None:
        raise ModelError(
            f"a lattice simulation needs a model given by a lattice's shape, got {name} on a graph; "
            "mf.sample takes models on any graph"
        )
    if model.n_states > MOST_STATES:
        raise ModelError(f"a lattice simulation takes at most {MOST_STATES} states, got {model.n_states}")
    shape, periodic = tuple(model.shape), tuple(model.periodic)
    is_ising = hasattr(model, "spins")
    spins: tuple[int, int] | None = None
    constant = 0.0
    if is_ising:
        spins = (-1, 1) if model.spins == "-1/+1" else (0, 1)
        if spins == (0, 1):
            own = np.broadcast_to(np.asarray(model.field, np.float64), shape)
            constant = float(model.edge_couplings.sum()) / 4 + float(own.sum()) / 2
            model = model.with_spins("-1/+1")
    couplings = _couplings(model, shape, periodic)
    if is_ising:
        own = _common(np.asarray(model.field, np.float64).reshape(-1))
        constant -= float(model.edge_couplings.sum())
        return LatticeModel(shape, periodic, 2 * couplings, np.stack([-own, own], axis=1), constant, spins)
    field = np.zeros((1, model.n_states)) if model.field is None else model.field.reshape(-1, model.n_states)
    return LatticeModel(shape, periodic, couplings, _common(np.array(field, np.float64)), constant)


def _common(field: FloatArray) -> FloatArray:
    """One entry for all sites where they agree."""
    return np.ascontiguousarray(field[:1] if (field == field[:1]).all() else field)


def _couplings(model: Any, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> FloatArray:
    box_axes = BOX_AXES[len(shape)]
    if isinstance(model.coupling, (float, tuple)):
        once = np.zeros((3, 1))
        once[list(box_axes), 0] = model.coupling
        return once
    each, first = np.zeros((3, *shape)), 0
    for axis, place in enumerate(box_axes):
        sides = tuple(n - (a == axis and not periodic[a]) for a, n in enumerate(shape))
        count = math.prod(sides)
        part = model.edge_couplings[first : first + count].reshape(sides)
        each[place][tuple(slice(0, n) for n in sides)] = part
        first += count
    return each.reshape(3, -1)


def suited_method(lattice: LatticeModel) -> str:
    """``"swendsen_wang"`` or ``"gibbs"``, whichever forgets its start in less time.

    Clusters are moved from near the critical coupling on, and where an odd period leaves no checkerboard; not where
    couplings have both signs, or sites fields of their own, since clusters then grow regardless of what they meet.
    Below, the correlation length is short and single sites do as well for a small part of the time.

    Examples
    --------
    >>> from markovfield.models.ising import Ising
    >>> [suited_method(lattice_model(Ising((64, 64), coupling))) for coupling in (0.3, 0.44, 0.6)]
    ['gibbs', 'swendsen_wang', 'swendsen_wang']
    """
    couplings, used = lattice.couplings, [axis for axis in range(3) if lattice.edges(axis)]
    mixed = bool((couplings < 0).any() and ((couplings > 0).any() or lattice.n_states > 2))
    if mixed or lattice.field.shape[0] > 1 or lattice.n_sites > CLUSTER_SITES:
        return "gibbs"
    if any(periodic and length % 2 for periodic, length in zip(lattice.periodic, lattice.shape, strict=True)):
        return "swendsen_wang"
    mean = np.abs(couplings[used]).sum(axis=1) / [1 if lattice.uniform else lattice.edges(axis) for axis in used]
    bonds = -np.expm1(-mean)
    if len(used) == 2:
        near = bool((bonds / (1 - bonds)).prod() > NEAR_SELF_DUAL * lattice.n_states)
    else:
        near = bool(used) and bool(bonds.mean() > MANY_BONDS[len(used)])
    return "swendsen_wang" if near else "gibbs"
