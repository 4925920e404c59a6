"""Models whose heat-bath Markov chains keep their order: spins that pull alike, bonds of the random-cluster model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.cluster_sampling.swendsen_wang import ClusterModel
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.perfect_sampling.monotone_kernel import SpinGraph, signed_sets
from markovfield.inference.perfect_sampling.random_cluster_kernel import BondGraph
from markovfield.inference.problem.problem import Problem

__all__ = ["MonotoneModel"]

# Potentials of a variable's states that differ by less than this, relative to the largest, count as equal.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class MonotoneModel:
    """A problem as Markov chains that keep their order.

    What the chains answer, 0 to q - 1, is added to ``flips`` or ``favoured`` (modulo q) to give states.

    Attributes
    ----------
    columns
        ``int64[n]``: the free variables.
    spins, flips
        Chains of spins, and which variables were flipped, ``int32[n]``; the graph is empty where q is not 2.
    bonds, favoured
        Chains of bonds, and the state that the fields around each variable favour; no bonds where fields disagree.
    loose
        ``float64[n, q]``: unary potentials of variables without pairs, whose states are drawn by them; no rows where
        the chains take care of them.
    """

    problem: Problem
    columns: IntArray
    q: int
    spins: SpinGraph
    flips: npt.NDArray[np.int32]
    bonds: BondGraph
    favoured: npt.NDArray[np.int32]
    loose: FloatArray

    @classmethod
    def of(cls, graph: FactorGraph, evidence: Evidence, method: str) -> MonotoneModel:
        """Read a graph, or say why ``method`` cannot take it.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
        >>> _ = net.add_factor(["A", "B"], [[1.0, 3.0], [3.0, 1.0]])
        >>> graph = net.compile()
        >>> monotone = MonotoneModel.of(graph, Evidence.parse(graph.structure, None), "coupling_from_the_past")
        >>> monotone.flips.tolist(), monotone.has_spins, monotone.has_bonds
        ([0, 1], True, True)
        """
        model = ClusterModel.of(graph, evidence, method)
        g = model.graph
        n, q = len(g.columns), g.q
        unary = g.unary if model.has_fields else np.zeros((n, q))
        sets = signed_sets(n, g.first, g.second, g.crossed != 0)
        frustrated = np.flatnonzero(sets[:n] == sets[n:])
        if len(frustrated):
            name = model.problem.as_tables.names.variables[int(g.columns[frustrated[0]])]
            raise ModelError(
                f"{method} needs a monotone model, whose couplings are all at least zero once some variables are "
                f"flipped, and a cycle that {name!r} is joined to has an odd number of negative ones: use "
                "junction_tree for exact samples, or gibbs"
            )
        flips = (sets[:n] > sets[n:]).astype(np.int32)
        component = np.minimum(sets[:n], sets[n:])
        loose = np.zeros((0, q))
        if q > 2:
            alone = np.diff(g.offsets) == 0
            loose = np.where(alone[:, None], unary, -np.inf)
            unary = np.where(alone[:, None], 0.0, unary)
        favoured, fields = _favoured(unary, flips, component)
        if fields is None and q > 2:
            raise ModelError(
                f"{method} takes Potts models of more than two states where all fields and evidence within a connected "
                "component favour the same state, and these do not: use junction_tree for exact samples, or "
                "swendsen_wang"
            )
        bonds = _bonds(model, np.zeros(n) if fields is None else fields)
        if fields is None:
            bonds = bonds._replace(first=bonds.first[:0])
        spins = _spins(model, unary, flips) if q == 2 else SpinGraph(np.zeros(0), g.offsets, g.half_other, np.zeros(0))
        return cls(model.problem, g.columns, q, spins, flips, bonds, favoured, loose)

    @property
    def n(self) -> int:
        """Free variables."""
        return len(self.columns)

    @property
    def has_spins(self) -> bool:
        """Whether Markov chains of spins are possible."""
        return self.q == 2

    @property
    def has_bonds(self) -> bool:
        """Whether Markov chains of bonds are possible."""
        return len(self.bonds.first) > 0

    def n_chained(self, by_bonds: bool) -> int:
        """Entries of a Markov chain's state."""
        return len(self.bonds.first) if by_bonds else self.n

    def graphs(self, by_bonds: bool) -> tuple[SpinGraph, BondGraph]:
        """Both graphs for the kernel, which takes the bonds where there are any; with room of their own to search."""
        b = self.bonds
        ends = len(b.offsets) - 1
        first = b.first if by_bonds else b.first[:0]
        room = {"seen": np.zeros(ends + 1, np.int64), "queue": np.zeros((2, max(1, ends)), np.int32)}
        return self.spins, b._replace(first=first, **room)

    def states(self, drawn: npt.NDArray[np.int32], by_bonds: bool, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """What the Markov chains answered (rows), as states of the user's variables."""
        reduced = np.zeros((len(drawn), self.problem.structure.n_variables), np.int64)
        free = (drawn + (self.favoured if by_bonds else self.flips)) % self.q
        alone = np.flatnonzero(np.isfinite(self.loose).any(axis=1))
        if len(alone):
            # By the largest of logs with Gumbel noise.
            logs = self.loose[alone][None, :, :] + rng.gumbel(size=(len(drawn), len(alone), self.q))
            free[:, alone] = logs.argmax(axis=2)
        reduced[:, self.columns] = free
        return self.problem.states(reduced)


def _favoured(
    unary: FloatArray, flips: npt.NDArray[np.int32], component: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], FloatArray | None]:
    """The state that fields favour in each variable's connected component, and by how much each does itself.

    In the second place None where some component has no such state. States of flipped variables count the other way.
    """
    n, q = unary.shape
    turned = unary if q > 2 else np.where(flips[:, None] == 1, unary[:, ::-1], unary)
    best = turned.argmax(axis=1)
    rows = np.arange(n)
    rest = np.where(np.arange(q) == best[:, None], -np.inf, turned).max(axis=1, initial=-np.inf)
    least = np.where(np.arange(q) == best[:, None], np.inf, turned).min(axis=1, initial=np.inf)
    with np.errstate(invalid="ignore"):
        fields = turned[rows, best] - rest
        room = SAME * np.maximum(1.0, np.abs(turned[rows, best]))
        # All states but the best are equal, be it at -inf.
        even = (rest - least <= room) | (rest == least)
    fields[fields <= room] = 0.0
    one = np.zeros(n, np.int64)
    has = fields > 0
    one[component[has]] = best[has]
    common = one[component]
    agreed = bool((~has | (best == common)).all() and even.all())
    favoured = ((common + flips) % q if q == 2 else common).astype(np.int32)
    return favoured, fields if agreed else None


def _spins(model: ClusterModel, unary: FloatArray, flips: npt.NDArray[np.int32]) -> SpinGraph:
    """Two-state variables with those flipped that should be, as spins."""
    g = model.graph
    field = unary[:, 1] - unary[:, 0]
    # A satisfied pair adds ``strength``, and equal spins satisfy every pair now. With spins 0 and 1, the log-odds are
    # the field less the strengths around, plus twice the strength of each neighbour at 1.
    ends = np.repeat(np.arange(len(flips)), np.diff(g.offsets))
    odds = np.where(flips == 1, -field, field) - np.bincount(ends, g.half_strength, len(flips))
    return SpinGraph(odds, g.offsets, g.half_other, 2 * g.half_strength)


def _bonds(model: ClusterModel, fields: FloatArray) -> BondGraph:
    """The pairs as bonds, and one from each variable with a field to a ghost that has the favoured state."""
    g = model.graph
    n = len(g.columns)
    held = np.flatnonzero(fields > 0)
    first = np.concatenate([g.first, held.astype(np.int32)])
    second = np.concatenate([g.second, np.full(len(held), n, np.int32)])
    closed = np.exp(-np.concatenate([model.strength, fields[held]]))
    n_ends = n + (len(held) > 0)
    ends = np.concatenate([first, second])
    order = np.argsort(ends, kind="stable")
    offsets = offsets_of(np.bincount(ends, minlength=n_ends))
    return BondGraph(
        q=g.q,
        first=first,
        second=second,
        joined=1 - closed,
        apart=(1 - closed) / (1 - closed + g.q * closed),
        offsets=offsets,
        other=np.concatenate([second, first])[order],
        bond=(order % max(1, len(first))).astype(np.int32),
        seen=np.zeros(0, np.int64),
        queue=np.zeros((2, 1), np.int32),
    )
