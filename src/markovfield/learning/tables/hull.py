"""The hull of a log-linear model: a tree of cliques in which every margin lies, and the walk that fits them all.

Everything that depends on the scopes alone is planned once into flat arrays; a sweep then plans nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError
from markovfield.factors.structure import Structure, frozen
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.junction_tree.plan import grow_tree
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.tables.projection_kernel import project_pairs
from markovfield.learning.tables.scaling_kernel import BLOCK, MESSAGE

__all__ = ["Hull", "plan_hull"]

Ints = npt.NDArray[np.int64]

# A clique up to this size is fitted in place; of a larger one, margins are fitted in blocks of about this power of it.
IN_PLACE = 64
BLOCK_POWER = 0.65


@dataclass(frozen=True, eq=False)
class Hull:
    """A tree of cliques and a walk along it.

    Attributes
    ----------
    cliques
        Positions of the variables of each clique, rising: the axes of its table.
    generators
        The same for each generator; variables of one state are left out.
    parents, home
        ``int64[cliques]``, the parent of each or -1; ``int64[generators]``, the clique that each lies in (-1: it has no
        variable of two states).
    decomposable
        Whether every clique is a generator, so that one sweep fits all.
    set_at
        ``int64[sets + 1]``: where the tables of cliques, separators, blocks and generators begin.
    """

    cardinalities: npt.NDArray[np.int32]
    cliques: tuple[tuple[int, ...], ...]
    generators: tuple[tuple[int, ...], ...]
    parents: Ints
    home: Ints
    decomposable: bool
    set_at: Ints
    separators: Ints
    up: Ints
    down: Ints
    program: Ints
    fits: Ints
    projections: Ints
    index: npt.NDArray[np.int32]
    factor_at: Ints
    starts: Ints

    @property
    def work(self) -> float:
        """Cells that a sweep looks at."""
        return float(self.program[:, 6].sum())

    @property
    def roots(self) -> Ints:
        """``int64[cliques]``: the root of each clique's tree."""
        found = np.arange(len(self.parents))
        for k, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                found[k] = found[parent]
        return found

    def separator(self, k: int) -> tuple[int, ...]:
        """What clique k shares with its parent; nothing for a root."""
        parent = int(self.parents[k])
        return tuple(v for v in self.cliques[k] if v in self.cliques[parent]) if parent >= 0 else ()


class _Sets:
    """Sets of variables and the projections between them, numbered as they come."""

    def __init__(self) -> None:
        self.members: list[tuple[int, ...]] = []
        self.pairs: list[tuple[int, int]] = []

    def add(self, members: tuple[int, ...]) -> int:
        self.members.append(members)
        return len(self.members) - 1

    def onto(self, larger: int, smaller: int) -> int:
        self.pairs.append((larger, smaller))
        return len(self.pairs) - 1


def plan_hull(
    cardinalities: npt.ArrayLike, scopes: Sequence[Sequence[int]], fitted: Sequence[bool] | None = None
) -> Hull:
    """Find a tree of cliques that holds all scopes, and lay out the walk.

    Parameters
    ----------
    cardinalities
        ``int[n]``.
    scopes
        Positions of the variables of each generator.
    fitted
        Which generators have a margin to be fitted; all of them where it is not given. The others only lie in the tree.

    Examples
    --------
    >>> hull = plan_hull([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    >>> len(hull.cliques), hull.decomposable
    (2, False)
    """
    cards = frozen(cardinalities, np.int32)
    sizes: list[int] = cards.tolist()
    wanted = [True] * len(scopes) if fitted is None else list(fitted)
    generators = tuple(tuple(sorted(v for v in s if sizes[v] > 1)) for s in scopes)
    cliques, parents, home = _tree(cards, generators)
    states = [math.prod(sizes[v] for v in c) for c in cliques]
    needed, limit = 24 * sum(states), memory_limit_bytes(None)
    if needed > limit:
        raise MemoryLimitError(
            f"the cliques of the model's hull need {format_bytes(math.log2(needed))}, more than the limit of "
            f"{format_bytes(math.log2(limit))}; fit it by pseudo-likelihood"
        )
    sets = _Sets()
    for c in cliques:
        sets.add(c)
    inside: list[list[int]] = [[] for _ in cliques]
    for g, k in enumerate(home):
        if wanted[g] and k >= 0:
            inside[k].append(g)
    factor_at = np.cumsum([0, *(math.prod(sizes[v] for v in s) for s in generators)], dtype=np.int64)
    number = [sets.add(s) for s in generators]
    starts = np.array([sets.onto(max(k, 0), number[g]) for g, k in enumerate(home)], np.int64)
    n = len(cliques)
    separators, up, down = (np.full(n, -1, np.int64) for _ in range(3))
    for k, parent in enumerate(parents):
        if parent >= 0:
            above = set(cliques[parent])
            separators[k] = sets.add(tuple(v for v in cliques[k] if v in above))
            up[k] = sets.onto(k, int(separators[k]))
            down[k] = sets.onto(parent, int(separators[k]))
    program, fits = _Walk(sets, sizes, cliques, parents, inside, generators, number, factor_at).written(
        separators, up, down
    )
    offsets = np.cumsum([0, *map(len, sets.members)], dtype=np.int64)
    members = np.array([v for s in sets.members for v in s], np.int32)
    lengths = [math.prod(sizes[v] for v in s) for s in sets.members]
    pairs = np.array(sets.pairs, np.int64).reshape(-1, 2)
    with small(CELL * float(sum(lengths[larger] for larger, _ in sets.pairs))):
        found: Any = project_pairs(cards, offsets, members, pairs)
    complete = {generators[g] for g in range(len(scopes)) if wanted[g]}
    return Hull(
        cards,
        cliques,
        generators,
        np.array(parents, np.int64),
        np.array(home, np.int64),
        all(wanted) and all(c in complete for c in cliques),
        np.cumsum([0, *lengths], dtype=np.int64),
        separators,
        up,
        down,
        np.array(program, np.int64).reshape(-1, 7),
        np.array(fits, np.int64).reshape(-1, 4),
        found[0],
        found[1],
        factor_at,
        starts,
    )


def _tree(
    cards: npt.NDArray[np.int32], generators: Sequence[tuple[int, ...]]
) -> tuple[tuple[tuple[int, ...], ...], list[int], list[int]]:
    """Cliques with rising members, their parents, and the clique that each generator lies in."""
    used = sorted({v for s in generators for v in s})
    rows = [s for s in generators if s]
    if any(len(s) == len(used) for s in rows):
        # One generator holds everything: the tree of one clique needs no search.
        return (tuple(used),), [-1], [0 if s else -1 for s in generators]
    offsets = np.cumsum([0, *map(len, generators)], dtype=np.int64)
    scopes = np.array([v for s in generators for v in s], np.int32)
    bases = np.zeros(len(generators), np.int64)
    strides = np.zeros(len(scopes), np.int64)
    structure = Structure.from_arrays(cards, offsets, scopes, bases, strides, n_cells=1)
    tree = grow_tree(structure, merge=False)
    ends, flat = tree.offsets.tolist(), tree.members.tolist()
    cliques = [tuple(sorted(flat[a:b])) for a, b in pairwise(ends)]
    # Variables that no generator names have cliques of their own, in which nothing is fitted.
    named = set(used)
    kept = [k for k, c in enumerate(cliques) if named.intersection(c)]
    order = {k: i for i, k in enumerate(kept)}
    parents = tree.parent.tolist()
    homes = tree.home.tolist()
    return (
        tuple(cliques[k] for k in kept),
        [order.get(parents[k], -1) for k in kept],
        [order.get(k, -1) for k in homes],
    )


class _Walk:
    """Writes the program of a sweep: along every edge to each child and back, fitting what lies in each clique."""

    def __init__(
        self,
        sets: _Sets,
        sizes: list[int],
        cliques: Sequence[tuple[int, ...]],
        parents: list[int],
        inside: list[list[int]],
        generators: Sequence[tuple[int, ...]],
        number: list[int],
        factor_at: Ints,
    ) -> None:
        self.sets, self.sizes, self.cliques, self.parents = sets, sizes, cliques, parents
        self.inside, self.generators, self.number = inside, generators, number
        self.factor_at = factor_at.tolist()
        self.fits: list[tuple[int, int, int, int]] = []

    def written(self, separators: Ints, up: Ints, down: Ints) -> tuple[list[Any], list[Any]]:
        """The program and the fits."""
        n = len(self.cliques)
        blocks = [self._blocks(k) for k in range(n)]
        children: list[list[int]] = [[] for _ in range(n)]
        needed = [bool(b) for b in blocks]
        for k in range(n - 1, 0, -1):
            parent = self.parents[k]
            if parent >= 0 and needed[k]:
                needed[parent] = True
                children[parent].append(k)
        program: list[tuple[int, ...]] = []
        sep, rise, fall = separators.tolist(), up.tolist(), down.tolist()

        def cross(source: int, target: int, edge: int, first: int, second: int) -> None:
            cost = self._states(self.cliques[source]) + self._states(self.cliques[target]) + 20
            program.append((MESSAGE, source, target, sep[edge], first, second, cost))

        for root in range(n):
            if self.parents[root] >= 0 or not needed[root]:
                continue
            program += blocks[root]
            path = [(root, iter(reversed(children[root])))]
            while path:
                k, rest = path[-1]
                child = next(rest, None)
                if child is None:
                    path.pop()
                    # On the way back margins are fitted again: the messages have been passed anyway.
                    if children[k]:
                        program += blocks[k]
                    if path:
                        cross(k, path[-1][0], k, rise[k], fall[k])
                else:
                    cross(k, child, child, fall[child], rise[child])
                    program += blocks[child]
                    path.append((child, iter(reversed(children[child]))))
        return program, self.fits

    def _states(self, members: Sequence[int]) -> int:
        return math.prod(self.sizes[v] for v in members)

    def _blocks(self, k: int) -> list[tuple[int, ...]]:
        """Steps that fit the margins of a clique: in place, or in blocks of a few variables each."""
        held, clique = self.inside[k], self.cliques[k]
        if not held:
            return []
        states = self._states(clique)
        if states <= IN_PLACE or any(self.generators[g] == clique for g in held):
            return [self._block(k, k, -1, held)]
        limit = max(IN_PLACE, int(states**BLOCK_POWER))
        unions: list[set[int]] = []
        members: list[list[int]] = []
        for g in held:
            scope = set(self.generators[g])
            for union, there in zip(unions, members, strict=True):
                if scope <= union or self._states(tuple(union | scope)) <= limit:
                    union |= scope
                    there.append(g)
                    break
            else:
                unions.append(scope)
                members.append([g])
        made = []
        for union, there in zip(unions, members, strict=True):
            block = self.sets.add(tuple(sorted(union)))
            made.append(self._block(k, block, self.sets.onto(k, block), there))
        return made

    def _block(self, k: int, block: int, projection: int, held: list[int]) -> tuple[int, ...]:
        first = len(self.fits)
        for g in held:
            self.fits.append((self.number[g], self.sets.onto(block, self.number[g]), g, self.factor_at[g]))
        inner = self._states(self.sets.members[block])
        cost = 2 * inner * len(held) + (2 * self._states(self.cliques[k]) if projection >= 0 else 0) + 20
        return (BLOCK, k, block, projection, first, len(self.fits), cost)
