"""Pseudo-likelihood of ground networks with atoms that others determine.

Where exactly one atom of a block is true (``type!``), each atom given all others is certain, and says nothing of any
weight: such a block is one variable, whose value is given all the rest. An auxiliary atom, which stands for a
quantified part of a formula, follows from other atoms: it is summed out with the atom that it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_kinds import CARDINALITY
from markovfield.factors.structure import Structure
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.discriminative.truth import rows_of
from markovfield.learning.undirected.composite_likelihood import BlockObjective
from markovfield.learning.undirected.differences import cell_changes
from markovfield.learning.undirected.fitting import minimise, reported
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

if TYPE_CHECKING:
    from markovfield.learning.undirected.pseudo_likelihood import PseudoLikelihood

__all__ = ["AtomPseudoLikelihood", "Sites", "sites_of"]


@dataclass(frozen=True)
class Sites:
    """What is given all the rest, atom by atom or block by block.

    Attributes
    ----------
    blocks
        Positions of the atoms of each site, ragged by ``offsets``: one atom, or those of which one is true.
    offsets
        Where each site begins.
    summed
        For sites with auxiliary atoms that depend on them, the positions of these.
    apart
        ``bool[sites]``: whether a site needs an inference of its own, as its atoms share a formula or others depend on
        them.
    """

    blocks: IntArray
    offsets: IntArray
    summed: dict[int, IntArray]
    apart: npt.NDArray[np.bool_]


def sites_of(s: Structure, base: FloatArray, auxiliary: npt.NDArray[np.bool_]) -> Sites:
    """The sites of a ground network; base: its log-potentials without weights."""
    n = s.n_variables
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    group = np.arange(n)
    within = s.kind[factor] == CARDINALITY
    first = s.scopes[s.scope_offsets[:-1]] if s.n_factors else np.zeros(0, np.int64)
    group[s.scopes[within]] = first[factor[within]]
    real = np.flatnonzero(~auxiliary)
    order = real[np.argsort(group[real], kind="stable")]
    bounds = np.append(np.flatnonzero(np.r_[True, np.diff(group[order]) != 0]), len(order)) if len(order) else [0]
    offsets = np.asarray(bounds, np.int64)
    site = np.full(n, -1, np.int64)
    site[order] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    apart = np.zeros(len(offsets) - 1, np.bool_)
    # Formulas that hold two atoms of one block.
    axes = np.flatnonzero(~within & (site[s.scopes] >= 0) & (np.diff(offsets)[site[s.scopes]] > 1))
    pairs, counts = np.unique(np.column_stack([factor[axes], site[s.scopes[axes]]]), axis=0, return_counts=True)
    apart[pairs[counts > 1, 1]] = True
    summed = _dependants(s, base, auxiliary, site, factor) if auxiliary.any() else {}
    apart[list(summed)] = True
    return Sites(order, offsets, summed, apart)


def _dependants(
    s: Structure, base: FloatArray, auxiliary: npt.NDArray[np.bool_], site: IntArray, factor: IntArray
) -> dict[int, IntArray]:
    """For each site the auxiliary atoms that hard factors tie to it, directly or by others of them."""
    starts, ends = s.table_offsets, np.append(np.unique(s.table_offsets)[1:], s.n_cells)
    end = ends[np.searchsorted(np.unique(starts), starts)]
    hard_cells = np.concatenate([[0], np.cumsum(base == -np.inf)])
    hard = (hard_cells[end] > hard_cells[starts])[factor]
    n = s.n_variables
    axes = np.flatnonzero(hard & auxiliary[s.scopes])
    head = np.full(s.n_factors, -1, np.int64)
    head[factor[axes[::-1]]] = s.scopes[axes[::-1]]
    edges = csr_array((np.ones(len(axes), np.int8), (head[factor[axes]], s.scopes[axes])), shape=(n, n))
    cluster = connected_components(edges, False)[1]
    members: dict[int, list[int]] = {}
    for v in np.flatnonzero(auxiliary).tolist():
        members.setdefault(int(cluster[v]), []).append(v)
    axes = np.flatnonzero(hard & (site[s.scopes] >= 0) & (head[factor] >= 0))
    pairs = np.unique(np.column_stack([site[s.scopes[axes]], cluster[head[factor[axes]]]]), axis=0)
    found: dict[int, list[int]] = {}
    for own, other in pairs.tolist():
        found.setdefault(own, []).extend(members[other])
    return {own: np.unique(atoms) for own, atoms in found.items()}


@dataclass(frozen=True)
class AtomPseudoLikelihood:
    """`PseudoLikelihood` of a ground network's sites; ``given`` has the settings."""

    given: PseudoLikelihood
    auxiliary: npt.NDArray[np.bool_]

    name: ClassVar[str] = "pseudo_likelihood"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated weights."""
        problem = Problem(LogLinear.of(model), table, running)
        rows = rows_of(problem, self.name)
        full = DataTable(problem.table.variables, problem.table.states, rows.states.T.astype(np.int16), rows.weights)
        whole = Problem(problem.model, full, running)
        base = whole.model.base_graph.log_tables
        sites = sites_of(whole.structure, base, self.auxiliary)
        objective = _Objective(whole, sites, rows.states[0])
        planning = running.seconds
        found = minimise(self.given, whole, objective, np.array(whole.model.parameters), rng)
        n_blocks = int((np.diff(sites.offsets) > 1).sum())
        notes = [
            "not the maximum of the likelihood, but an estimate that converges to the same where the model is right"
        ]
        if n_blocks:
            notes.append(f"{n_blocks} blocks of atoms of which one is true are variables of their own")
        if sites.apart.any():
            notes.append(f"{int(sites.apart.sum())} sites are summed by themselves, which takes longer")
        return reported(
            self, model, whole, found,
            log_likelihood=float("nan"),
            objective_name="minus the log-pseudo-likelihood, with penalties",
            guarantee="approximate",
            planning_seconds=planning,
            notes=tuple(notes),
        )  # fmt: skip


class _Objective:
    """Minus the sum over sites of the log-probability of what is true of a site given the rest, and its gradient."""

    def __init__(self, problem: Problem, sites: Sites, row: IntArray) -> None:
        model, s = problem.model, problem.structure
        base = np.array(model.base_graph.log_tables)
        blocks = [
            np.union1d(sites.blocks[sites.offsets[i] : sites.offsets[i + 1]], sites.summed.get(i, np.zeros(0, int)))
            for i in np.flatnonzero(sites.apart).tolist()
        ]
        self._others = BlockObjective(problem, [block.tolist() for block in blocks]) if blocks else None
        # What blocks allow is said by the sum over their atoms.
        counting = np.unique(s.table_offsets[s.kind == CARDINALITY])
        # Whether all atoms of a site may be false: a single one, or a block that allows that.
        none = np.ones(s.n_variables, np.bool_)
        for f in np.flatnonzero(s.kind == CARDINALITY).tolist():
            none[s.scope(f)] = base[s.table_offsets[f]] > -np.inf
        for start in counting.tolist():
            base[start : start + 3] = 0.0
        change, fixed = cell_changes(s, row, base)
        size = np.diff(sites.offsets)
        site = np.repeat(np.arange(len(size)), size)
        here = ~sites.apart[site]
        atoms, site = sites.blocks[here], site[here]
        truth, own = row[atoms] == 1, fixed[atoms]
        if np.isnan(own).any() or (own[truth] == -np.inf).any():
            raise ModelError("the model gives probability zero to the data: a hard formula is violated")
        silent = none[atoms]
        forced = np.zeros(len(size), np.bool_)
        forced[site[own == np.inf]] = True
        keep = np.isfinite(own) & ~forced[site]
        atoms, truth, own, site, silent = atoms[keep], truth[keep], own[keep], site[keep], silent[keep]
        starts = np.flatnonzero(np.r_[True, np.diff(site) != 0]) if len(site) else np.zeros(0, np.int64)
        self._starts, self._of = starts, np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(site))))
        self._features = csr_array((change @ model.operator)[atoms])
        self._fixed, self._truth = own, truth.astype(np.float64)
        self._silent = np.where(silent[starts], 0.0, -np.inf)  # the score of that
        self._seen = np.asarray(self._features.T @ self._truth)

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        scores = self._features @ parameters + self._fixed
        value, gradient = 0.0, np.zeros(len(parameters))
        if len(scores):
            top = np.maximum(np.maximum.reduceat(scores, self._starts), self._silent)
            odds = np.exp(scores - top[self._of])
            total = np.add.reduceat(odds, self._starts) + np.exp(self._silent - top)
            value = float((top + np.log(total)).sum() - scores @ self._truth)
            gradient = np.asarray(self._features.T @ (odds / total[self._of])) - self._seen
        if self._others is not None:
            more, slope = self._others(parameters)
            value, gradient = value + more, gradient + slope
        return value, gradient
