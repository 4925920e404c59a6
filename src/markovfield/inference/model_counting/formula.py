"""A reduced problem as clauses and weights: what a model counter searches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.junction_tree.plan import Tree, grow_tree
from markovfield.inference.model_counting.state_kernel import Formula
from markovfield.inference.model_counting.tables_kernel import copy_cells, nogoods
from markovfield.inference.problem.problem import Problem

__all__ = ["Encoding", "encode"]

# How much the place in a clique tree counts beside activity (Korhonen and Jaervisalo 2021): the more, the narrower.
TREE_MERIT, MOST_MERIT = 100.0, 1e7


@dataclass(frozen=True, eq=False)
class Encoding:
    """A formula, clauses of a single literal, the log of what was taken out of it as a factor, and the tree's width."""

    formula: Formula
    units: npt.NDArray[np.int32]
    log_scale: float
    width: int


class _Tables:
    """Clauses, weights of single literals and tables of a problem, factor by factor."""

    def __init__(self, problem: Problem) -> None:
        s = problem.structure
        self.structure = s
        free = np.flatnonzero(s.cardinalities > 1)
        sizes = np.where(s.cardinalities[free] == 2, 1, s.cardinalities[free])
        self.group_offsets = offsets_of(sizes)
        self.group = np.full(s.n_variables, -1, np.int64)
        self.group[free] = np.arange(len(free))
        self.variables = free
        self.log_scale = 0.0
        self.clauses: dict[tuple[int, ...], None] = {}
        self.log_weights = np.zeros(int(s.value_offsets[-1]))
        self.soft: list[tuple[list[int], list[int], FloatArray]] = []
        self._known: dict[Any, list[list[int]]] = {}
        for g, v in enumerate(free.tolist()):
            self._exactly_one(g, int(s.cardinalities[v]))
        for f in range(s.n_factors):
            self._factor(problem, f)
        if len(problem.likelihood):
            self.log_weights += problem.likelihood
        fixed = s.cardinalities == 1
        self.log_scale += float(self.log_weights[s.value_offsets[:-1][fixed]].sum())

    def literal(self, group: int, state: int, holds: bool) -> int:
        """The literal that says whether a group is in a state."""
        first = int(self.group_offsets[group])
        if self.group_offsets[group + 1] - first == 1:
            return 2 * first + int(holds != (state == 1))
        return 2 * (first + state) + int(not holds)

    def _exactly_one(self, group: int, size: int) -> None:
        if size == 2:
            return
        first = int(self.group_offsets[group])
        self.clauses[tuple(2 * (first + i) for i in range(size))] = None
        for i in range(size):
            for j in range(i):
                self.clauses[2 * (first + j) + 1, 2 * (first + i) + 1] = None

    def _factor(self, problem: Problem, f: int) -> None:
        s = self.structure
        scope = s.scope(f).tolist()
        strides = s.strides(f)
        kept = [a for a, v in enumerate(scope) if s.cardinalities[v] > 1]
        base = int(s.table_offsets[f])
        sizes = np.array([s.cardinalities[scope[a]] for a in kept], np.int64)
        cells = np.empty(math.prod(sizes.tolist()))
        copy_cells(base, sizes, np.ascontiguousarray(strides[kept]), problem.potentials.log_tables, cells)
        finite = cells[cells > -np.inf]
        top = float(finite.max()) if len(finite) else 0.0
        groups = [int(self.group[scope[a]]) for a in kept]
        if len(finite) < len(cells):
            for axes in self._nogoods(cells, sizes):
                clause = sorted(self.literal(g, i, holds=False) for g, i in zip(groups, axes, strict=True) if i >= 0)
                self.clauses[tuple(clause)] = None
        self.log_scale += top
        if not len(finite) or float(finite.min()) == top:
            return
        if len(kept) == 1:
            v = scope[kept[0]]
            at = int(s.value_offsets[v])
            # States of weight zero are barred by clauses.
            self.log_weights[at : at + len(cells)] += np.where(cells > -np.inf, cells - top, 0.0)
            return
        self.soft.append((groups, sizes.tolist(), cells - top))

    def _nogoods(self, cells: FloatArray, sizes: npt.NDArray[np.int64]) -> list[list[int]]:
        zeros = np.where(cells > -np.inf, 0.0, -np.inf)
        key = (sizes.tobytes(), np.packbits(zeros == 0.0).tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = nogoods(zeros, sizes).tolist()  # type: ignore[attr-defined]
        return found


def encode(problem: Problem) -> Encoding:
    """The formula of a problem; each factor's cells are looked at once."""
    tables = _Tables(problem)
    n = int(tables.group_offsets[-1])
    units = np.array([c[0] for c in tables.clauses if len(c) == 1], np.int32)
    pairs = np.array([c for c in tables.clauses if len(c) == 2], np.int32).reshape(-1, 2)
    long = [c for c in tables.clauses if len(c) > 2]
    clause_offsets = offsets_of([len(c) for c in long])
    literals = np.array([x for c in long for x in c], np.int32)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    pair_offsets, by_literal = _by(both[:, 0], 2 * n)
    held_offsets, by_variable = _by(literals >> 1, n)
    clause_of = np.repeat(np.arange(len(long), dtype=np.int32), np.diff(clause_offsets))
    group_of = np.repeat(np.arange(len(tables.variables), dtype=np.int64), np.diff(tables.group_offsets))
    mantissas, exponents, log2_totals, scale = _weights(tables, n)
    width, merit = _merit(problem, tables, group_of)
    formula = Formula(
        clause_offsets=clause_offsets,
        clause_literals=literals,
        pair_offsets=pair_offsets,
        pair_literals=np.ascontiguousarray(both[by_literal, 1]),
        held_offsets=held_offsets,
        held=clause_of[by_variable],
        **_soft(tables, n),
        group_offsets=tables.group_offsets,
        group_of=group_of,
        mantissas=mantissas,
        exponents=exponents,
        log2_totals=log2_totals,
        merit=merit,
        prefers=_prefers(n, clause_offsets, literals, both),
    )
    return Encoding(formula, units, tables.log_scale + scale, width)


def _by(keys: npt.NDArray[Any], n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets by key, and the entries in the order of their keys."""
    offsets = offsets_of(np.bincount(keys, minlength=n))
    return offsets, np.argsort(keys, kind="stable")


def _pairs_of(logs: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Mantissas in [0.5, 1) and exponents of exp(logs); zero where that is -inf."""
    log2 = logs / math.log(2.0)
    whole = np.where(np.isfinite(log2), np.floor(log2), 0.0)
    mantissas, exponents = np.frexp(np.exp2(log2 - whole))
    return mantissas, np.where(mantissas > 0.0, exponents + whole, 0.0).astype(np.int64)


def _weights(tables: _Tables, n: int) -> tuple[FloatArray, npt.NDArray[np.int64], FloatArray, float]:
    """Weights of the literals, the largest of each variable one; log2 of their sums; the log of what was divided by."""
    s = tables.structure
    logs, totals, scale = np.zeros(2 * n), np.zeros(n), 0.0
    for g, v in enumerate(tables.variables.tolist()):
        first, end = tables.group_offsets[g : g + 2].tolist()
        unary = tables.log_weights[s.value_offsets[v] : s.value_offsets[v + 1]]
        top = float(unary.max())
        scale += top
        if end - first == 1:
            logs[2 * first], logs[2 * first + 1] = unary[1] - top, unary[0] - top
            totals[first] = np.logaddexp(unary[0] - top, unary[1] - top) / math.log(2.0)
        else:
            logs[2 * first : 2 * end : 2] = unary - top
            totals[first:end] = (unary - top) / math.log(2.0)
    return *_pairs_of(logs), totals, scale


def _soft(tables: _Tables, n: int) -> dict[str, Any]:
    """The arrays of the tables."""
    soft = tables.soft
    scope_offsets = offsets_of([len(groups) for groups, _, _ in soft])
    bases = offsets_of([len(cells) for _, _, cells in soft])
    strides = [math.prod(sizes[a + 1 :]) for _, sizes, _ in soft for a in range(len(sizes))]
    cells = np.concatenate([c for _, _, c in soft]) if soft else np.zeros(0)
    mantissas, exponents = _pairs_of(cells)
    reads = [
        (v, t)
        for t, (groups, _, _) in enumerate(soft)
        for g in groups
        for v in range(int(tables.group_offsets[g]), int(tables.group_offsets[g + 1]))
    ]
    by_variable = np.array(reads, np.int32).reshape(-1, 2)
    read_offsets, order = _by(by_variable[:, 0], n)
    return {
        "scope_offsets": scope_offsets,
        "scopes": np.array([g for groups, _, _ in soft for g in groups], np.int64),
        "strides": np.array(strides, np.int64),
        "bases": bases[:-1].copy(),
        "cell_mantissas": mantissas,
        "cell_exponents": exponents,
        "read_offsets": read_offsets,
        "read": np.ascontiguousarray(by_variable[order, 1]),
    }


def _prefers(
    n: int, offsets: npt.NDArray[np.int64], literals: npt.NDArray[np.int32], pairs: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """For each variable the literal whose clauses are more and shorter: it leaves more models (Jeroslow and Wang)."""
    lengths = np.diff(offsets)
    score = np.bincount(literals, weights=np.repeat(0.5**lengths, lengths), minlength=2 * n)
    score = score + 0.25 * np.bincount(pairs[:, 0], minlength=2 * n)
    return 2 * np.arange(n) + (score[1::2] > score[::2])


def _merit(problem: Problem, tables: _Tables, group_of: npt.NDArray[np.int64]) -> tuple[int, FloatArray]:
    """How near the root of a clique tree, hung from its middle, each variable comes first; and the tree's width."""
    try:
        tree = grow_tree(problem.structure, search=0.0)
    except MemoryLimitError:
        return -1, np.zeros(len(group_of))
    depth = _depths(tree, problem.structure.n_variables)[tables.variables]
    deepest = max(int(depth.max(initial=0)), 1)
    n, width = len(tables.variables), tree.width
    share = math.exp(min(n / (width + 1), 50.0)) / max(n, 1)
    return width, (min(TREE_MERIT * share, MOST_MERIT) * (1.0 - depth / deepest))[group_of]


def _depths(tree: Tree, n_variables: int) -> npt.NDArray[np.int64]:
    """For each variable the depth of its highest clique, every tree hung from the clique that halves it best."""
    n = len(tree.parent)
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for c, p in enumerate(tree.parent.tolist()):
        if p >= 0:
            neighbours[c].append(p)
            neighbours[p].append(c)
    sizes = np.diff(tree.offsets)
    depths = np.full(n_variables, np.iinfo(np.int64).max)
    depths_of = [-1] * n
    for root in np.flatnonzero(tree.parent < 0).tolist():
        centre = _centre(neighbours, sizes, root)
        depths_of[centre] = 0
        order = [centre]
        for c in order:
            at = tree.members[tree.offsets[c] : tree.offsets[c + 1]]
            depths[at] = np.minimum(depths[at], depths_of[c])
            for other in neighbours[c]:
                if depths_of[other] < 0:
                    depths_of[other] = depths_of[c] + 1
                    order.append(other)
    depths[depths == np.iinfo(np.int64).max] = 0
    return depths


def _centre(neighbours: list[list[int]], sizes: npt.NDArray[np.int64], root: int) -> int:
    """The clique whose removal leaves the smallest largest rest, in members."""
    above = {root: -1}
    order = [root]
    for c in order:
        for other in neighbours[c]:
            if other not in above:
                above[other] = c
                order.append(other)
    below = {c: int(sizes[c]) for c in order}
    for c in reversed(order):
        if above[c] >= 0:
            below[above[c]] += below[c]
    total = below[root]
    at = root
    while True:
        heavy = [c for c in neighbours[at] if c != above[at] and 2 * below[c] > total]
        if not heavy:
            return at
        at = heavy[0]
