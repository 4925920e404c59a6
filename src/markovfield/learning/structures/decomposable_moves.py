"""Neighbours of decomposable models: edges whose deletion or addition leaves the graph chordal, in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markovfield.inference.core.running import Running
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable
from markovfield.learning.structures.chow_liu import information_of
from markovfield.learning.structures.neighbours import Neighbour

__all__ = ["DecomposableModels"]


class DecomposableModels:
    """A chordal graph and those that differ from it by an edge.

    Deleting or adding an edge a - b changes the log-likelihood by the total weight times the mutual information of a
    and b given their common neighbours S, and nothing else has to be fitted. The edge may go when S is complete, and
    may come when S separates a from b (Lauritzen 1996; Giudici and Green 1999).
    """

    def __init__(self, table: DataTable, edges: Iterable[tuple[int, int]], max_order: int, running: Running) -> None:
        self.table, self.running, self.max_order = table.distinct(), running, max_order
        self.total = table.total_weight
        n = table.n_variables
        self.cards = [int(c) for c in table.cardinalities]
        self.near = [0] * n
        self._gains: dict[tuple[int, int, int], float] = {}
        for a, b in edges:
            self.near[a] |= 1 << b
            self.near[b] |= 1 << a
        self.log_likelihood = self._fitted()

    def _fitted(self) -> float:
        """Log-likelihood: entropies of cliques less those of separators."""
        from scipy.special import xlogy

        total = self.total
        pieces = self._perfect_sequence()
        sets = [c for c, _ in pieces] + [s for _, s in pieces if s]
        value = 0.0
        counted = family_counts(self.table, [self._members(m) for m in sets], running=self.running)
        for i, counts in enumerate(counted):
            entropy = float(xlogy(counts, counts / total).sum())
            value += entropy if i < len(pieces) else -entropy
        return value

    def _members(self, mask: int) -> list[int]:
        return [v for v in range(len(self.cards)) if mask >> v & 1]

    def _perfect_sequence(self) -> list[tuple[int, int]]:
        """Maximal cliques with their separators, by maximum cardinality search."""
        left = set(range(len(self.cards)))
        found, cliques, clique, separator = 0, [], 0, 0
        while left:
            v = max(left, key=lambda u: ((self.near[u] & found).bit_count(), -u))
            around = self.near[v] & found
            if clique and around != clique:
                cliques.append((clique, separator))
            if around != clique:
                separator = around
            clique = around | 1 << v
            found |= 1 << v
            left.remove(v)
        return [*cliques, (clique, separator)] if clique else cliques

    def neighbours(self, delete: bool, add: bool) -> list[Neighbour]:
        """Chordal graphs with one edge less or more."""
        wanted: list[tuple[int, int, int, bool]] = []
        free = [v for v, card in enumerate(self.cards) if card > 1]
        for i, a in enumerate(free):
            for b in free[i + 1 :]:
                common = self.near[a] & self.near[b]
                there = bool(self.near[a] >> b & 1)
                if there and delete and self._complete(common):
                    wanted.append((a, b, common, True))
                elif not there and add and common.bit_count() + 2 <= self.max_order and self._separates(a, b, common):
                    wanted.append((a, b, common, False))
        self._count([(a, b, s) for a, b, s, _ in wanted])
        found = []
        for a, b, s, deleted in wanted:
            gain = self._gains[a, b, s]
            freedom = math.prod(self.cards[v] for v in self._members(s)) * (self.cards[a] - 1) * (self.cards[b] - 1)
            sign = -1 if deleted else 1
            found.append(Neighbour("delete" if deleted else "add", (a, b), sign * gain, sign * freedom))
        return found

    def _complete(self, mask: int) -> bool:
        return all(mask & ~(1 << v) & ~self.near[v] == 0 for v in self._members(mask))

    def _separates(self, a: int, b: int, mask: int) -> bool:
        """Whether every path from a to b passes the set."""
        reached, border = 1 << a, 1 << a
        while border:
            v = border.bit_length() - 1
            border &= ~(1 << v)
            new = self.near[v] & ~reached & ~mask
            if new >> b & 1:
                return False
            reached |= new
            border |= new
        return True

    def _count(self, wanted: Sequence[tuple[int, int, int]]) -> None:
        """Total weight times mutual information, of what is not known yet."""
        new = [key for key in wanted if key not in self._gains]
        families = [[*self._members(s), a, b] for a, b, s in new]
        for start in range(0, len(new), 256):
            self.running.check(self.log_likelihood)
            counted = family_counts(self.table, families[start : start + 256], running=self.running)
            for key, counts in zip(new[start : start + 256], counted, strict=True):
                self._gains[key] = self.total * information_of(counts.reshape(-1, *counts.shape[-2:]))

    def make(self, move: Neighbour) -> None:
        """Go to a neighbour."""
        a, b = move.members
        self.near[a] ^= 1 << b
        self.near[b] ^= 1 << a
        self.log_likelihood += move.log_likelihood_gain

    @property
    def generators(self) -> list[tuple[int, ...]]:
        """The maximal cliques."""
        return sorted(tuple(self._members(c)) for c, _ in self._perfect_sequence())
