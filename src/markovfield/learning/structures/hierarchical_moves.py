"""Neighbours of hierarchical log-linear models: one interaction less, or one more."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable
from markovfield.learning.structures.hierarchical_kernel import fit_model, fit_neighbours
from markovfield.learning.structures.neighbours import Neighbour
from markovfield.learning.tables.fitting import fit_margins
from markovfield.models.generators import maximal_sets

__all__ = ["HierarchicalModels", "mask_of", "members_of"]

# Entries of the table of all sets by all cells that are kept; beyond it, models are fitted on trees of cliques.
MOST_ENTRIES = 2**24
# Pearson's statistic that a margin may still lack, and most sweeps of a fit.
TOLERANCE, SWEEPS = 1e-7, 1000
# Cells looked at between two looks at the clock.
CHUNK = 3e7


def mask_of(members: Sequence[int]) -> int:
    """A set of positions as a number."""
    return sum(1 << v for v in members)


def members_of(mask: int) -> tuple[int, ...]:
    """The positions in a set, rising."""
    return tuple(v for v in range(mask.bit_length()) if mask >> v & 1)


class HierarchicalModels:
    """A hierarchical model and its neighbours, scored by maximum likelihood.

    Parameters
    ----------
    table
        The data.
    generators
        Sets of positions to begin with.
    max_order
        Most variables of a term that is added.
    """

    def __init__(self, table: DataTable, generators: Sequence[Sequence[int]], max_order: int, running: Running) -> None:
        self.table, self.running, self.max_order = table, running, max_order
        self.cards = [int(c) for c in table.cardinalities]
        self.total = table.total_weight
        n = len(self.cards)
        self.masks = [mask_of(g) for g in maximal_sets([*generators, *([v] for v in range(n))])]
        cells = math.prod(self.cards)
        self.dense = n < 30 and cells << n <= MOST_ENTRIES
        self._cache: dict[frozenset[int], float] = {}
        if self.dense:
            self.counts = family_counts(table, [list(range(n))], running=running)[0].ravel()
            sizes = [1]
            for c in self.cards:
                sizes = [*sizes, *(s * c for s in sizes)]
            margin_at = np.cumsum([0, *sizes], dtype=np.int64)
            self._kept = (
                np.array(self.cards, np.int64),
                self.counts,
                np.zeros(2**n, np.bool_),
                np.empty((2**n, cells), np.int32),
                margin_at,
                np.zeros(int(margin_at[-1])),
                TOLERANCE,
                SWEEPS,
            )
        self._settle()

    def _settle(self) -> None:
        """Fit the model itself."""
        if not self.dense:
            self.log_likelihood = self._on_tree(self.masks)
            return
        self.fitted = np.full(len(self.counts), self.total / len(self.counts))
        generators = np.array(self.masks, np.int64)
        with small(CELL * 40.0 * len(self.counts) * len(generators)):
            fit_model(generators, len(generators), *self._kept, np.empty(len(self.counts)), self.fitted)
        seen = self.counts > 0
        self.log_likelihood = float(self.counts[seen] @ np.log(self.fitted[seen] / self.total))

    def neighbours(self, delete: bool, add: bool) -> list[Neighbour]:
        """Models with one generator less (its faces stay), or with one term more whose faces are all there."""
        terms = [(m, True) for m in self.masks if delete and m.bit_count() > 1]
        if add:
            terms += [(m, False) for m in self._addable()]
        if not terms:
            return []
        values = self._dense_values(terms) if self.dense else self._tree_values(terms)
        found = []
        for (mask, deleted), value in zip(terms, values, strict=True):
            freedom = math.prod(self.cards[v] - 1 for v in members_of(mask))
            kind = "delete" if deleted else "add"
            found.append(
                Neighbour(kind, members_of(mask), float(value) - self.log_likelihood, -freedom if deleted else freedom)
            )
        return found

    def _addable(self) -> list[int]:
        """Sets that are not in the model while all their faces are."""
        found: set[int] = set()
        inside = self._inside(self.masks)
        for base in inside:
            if base.bit_count() >= self.max_order:
                continue
            for v, card in enumerate(self.cards):
                mask = base | (1 << v if card > 1 else 0)
                new = mask not in inside and mask not in found
                if new and all(mask & ~(1 << u) in inside for u in members_of(mask)):
                    found.add(mask)
        return sorted(found)

    def _inside(self, masks: Sequence[int]) -> set[int]:
        """All sets of at most one variable less than `max_order` allows that are in the model."""
        found: set[int] = set()
        for m in masks:
            subset = m
            while subset:
                if subset.bit_count() <= self.max_order:
                    found.add(subset)
                subset = (subset - 1) & m
        return found

    def _dense_values(self, terms: list[tuple[int, bool]]) -> FloatArray:
        masks = np.array([m for m, _ in terms], np.int64)
        deleted = np.array([d for _, d in terms], np.bool_)
        generators = np.array(self.masks, np.int64)
        values = np.empty(len(terms))
        work = 40.0 * len(self.counts) * (len(generators) + 4)
        step = max(1, int(CHUNK / work))
        for a in range(0, len(terms), step):
            self.running.check(self.log_likelihood)
            with small(CELL * work * len(terms)):
                fit_neighbours(
                    generators, len(generators), masks[a : a + step], deleted[a : a + step], *self._kept, self.fitted,
                    values[a : a + step],
                )  # fmt: skip
        return values

    def _tree_values(self, terms: list[tuple[int, bool]]) -> list[float]:
        values = []
        for mask, deleted in terms:
            self.running.check(self.log_likelihood)
            values.append(self._on_tree(self._changed(mask, deleted)))
        return values

    def _on_tree(self, masks: Sequence[int]) -> float:
        """Log-likelihood of a model too large for its joint table."""
        key = frozenset(masks)
        if key not in self._cache:
            scopes = [members_of(m) for m in masks]
            margins = family_counts(self.table, scopes, running=self.running)
            fit = fit_margins(self.cards, scopes, margins, tolerance=1e-7, max_iterations=SWEEPS)
            value = 0.0
            for margin, log_factor in zip(margins, fit.log_factors, strict=True):
                assert log_factor is not None
                seen = margin > 0
                value += float(margin[seen] @ log_factor[seen])
            self._cache[key] = value
        return self._cache[key]

    def _changed(self, mask: int, deleted: bool) -> list[int]:
        """Generators of a neighbour."""
        kept = [m for m in self.masks if m != mask] if deleted else [*self.masks, mask]
        faces = [mask & ~(1 << v) for v in members_of(mask)] if deleted else []
        return [mask_of(s) for s in maximal_sets(members_of(m) for m in [*kept, *(f for f in faces if f)])]

    def make(self, move: Neighbour) -> None:
        """Go to a neighbour."""
        self.masks = self._changed(mask_of(move.members), move.kind == "delete")
        self._settle()

    @property
    def generators(self) -> list[tuple[int, ...]]:
        """Positions of each generator."""
        return sorted(members_of(m) for m in self.masks)
