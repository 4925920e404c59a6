"""Structured factors: kinds whose meaning is far smaller than their table, and each of them in plain tables.

Exact methods run on the graph of tables. A kind's parameters live in the common pool, and rewriting leaves them where
they are, so expected counts of the parameters come out in the original cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_kinds import (
    CLAUSE,
    DISTANCE,
    KIND_NAMES,
    NOISY_MAX,
    TABLE,
    caps,
    holds,
    literals,
    offset_of_count,
)
from markovfield.factors.lattice import inherit_lattice
from markovfield.factors.structure import Structure
from markovfield.names import Names

__all__ = ["merge_repeated_axes", "noisy_max_counts", "noisy_max_scores", "noisy_max_table", "tables_of_structure"]


def tables_of_structure(
    structure: Structure,
) -> tuple[Structure, np.ndarray[Any, np.dtype[np.float64]], npt.NDArray[np.int64]]:
    """Replace every structured factor by small tables; also return what to append to the pool.

    A clause of k literals becomes a linear chain of auxiliary binary variables "one of the first i literals is true":
    k - 1 constant tables over (previous, variable, next), then the clause's own two cells as a table on the last. Any
    arity costs O(k) cells, and adds at most two to the width.

    A parity is such a chain of "an odd number of the first i", and a cardinality potential of cap c one of counters of
    c + 1 states: k tables of O(c^2) cells (one constant, shared), and its own c + 1 cells on the last counter. A
    distance potential becomes a plain table of copies of its cells, one for all factors with the same ones; the third
    result says which of the model's cells each appended cell is a copy of (-1: none, it is a constant).

    A noisy-max of k parents and K states becomes k + 1 auxiliary contributions, whose conditional tables are the
    factor's own blocks, and a chain of k constant tables "the largest so far", the last of which is the child: 2k
    auxiliary variables of K states, one constant of K^3 cells. Where the factor is marked as the distribution of its
    child, each new table is marked too, so that the graph of tables stays directed.
    """
    structure, copies = _distances_as_tables(structure)
    constants = np.zeros(len(copies))
    if structure.is_plain:
        return structure, constants, copies
    builder = _Builder(structure)
    cap, done = caps(structure), 0
    for f in np.flatnonzero(structure.kind != TABLE).tolist():
        builder.add_plain(done, f)
        if structure.kind[f] == NOISY_MAX:
            builder.add_noisy_max(f)
        else:
            builder.add_counter(f, int(structure.kind[f]), int(cap[f]))
        done = f + 1
    builder.add_plain(done, structure.n_factors)
    as_tables, more = builder.finish()
    return as_tables, np.concatenate([constants, more]), np.concatenate([copies, np.full(len(more), -1)])


def _distances_as_tables(s: Structure) -> tuple[Structure, npt.NDArray[np.int64]]:
    """Distance potentials as plain tables, and which cells those copy: pairs stay pairs, as approximations need."""
    factors = np.flatnonzero(s.kind == DISTANCE)
    if not len(factors):
        return s, np.zeros(0, np.int64)
    axis = s.scope_offsets[factors]
    first, second = (s.cardinalities[s.scopes[axis + i]].astype(np.int64) for i in range(2))
    cap = np.minimum(s.table_strides[axis], np.maximum(first, second) - 1)
    # One table for all with the same cells, shape and cap; numbers of each in turn, so that none grows too large.
    which = np.zeros(len(factors), np.int64)
    for key in (s.table_offsets[factors], first, second, cap):
        values, number = np.unique(key, return_inverse=True)
        _, at, which = np.unique(which * len(values) + number.reshape(-1), return_index=True, return_inverse=True)
    cells = [
        base + np.minimum(np.abs(np.arange(rows)[:, None] - np.arange(columns)), most).ravel()
        for base, rows, columns, most in np.stack([s.table_offsets[factors], first, second, cap])[:, at].T.tolist()
    ]
    starts = s.n_cells + np.cumsum([0, *(len(copies) for copies in cells)])
    offsets, strides = s.table_offsets.copy(), s.table_strides.copy()
    offsets[factors] = starts[which.reshape(-1)]
    strides[axis], strides[axis + 1] = second, 1
    child, kind = s.child.copy(), s.kind.copy()
    child[factors], kind[factors] = -1, TABLE
    plain = Structure.from_arrays(
        s.cardinalities, s.scope_offsets, s.scopes, offsets, strides,
        n_cells=int(starts[-1]), child=child, kind=kind, names=s.names,
    )  # fmt: skip
    return inherit_lattice(plain, s), np.concatenate(cells)


class _Builder:
    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.cardinalities = structure.cardinalities.tolist()
        self.offsets = [0]
        self.scopes: list[int] = []
        self.strides: list[int] = []
        self.bases: list[int] = []
        self.children: list[int] = []
        self.constants: list[np.ndarray[Any, Any]] = []
        self.n_cells = structure.n_cells
        self.shared: dict[Any, int] = {}

    def add(self, scope: list[int], strides: list[int], base: int, child: int = -1) -> None:
        self.scopes += scope
        self.strides += strides
        self.offsets.append(len(self.scopes))
        self.bases.append(base)
        self.children.append(child)

    def add_plain(self, first: int, last: int) -> None:
        """Factors that are plain tables already, from one to another."""
        s = self.structure
        a, b = int(s.scope_offsets[first]), int(s.scope_offsets[last])
        self.offsets += (s.scope_offsets[first + 1 : last + 1] + (len(self.scopes) - a)).tolist()
        self.scopes += s.scopes[a:b].tolist()
        self.strides += s.table_strides[a:b].tolist()
        self.bases += s.table_offsets[first:last].tolist()
        self.children += s.child[first:last].tolist()

    def share(self, key: Any, allowed: np.ndarray[Any, Any]) -> None:
        """Keep a 0/-inf table under ``key``."""
        self.shared[key] = self.n_cells
        self.constants.append(np.where(allowed, 0.0, -np.inf).ravel())
        self.n_cells += allowed.size

    def add_shared(self, scope: list[int], key: Any, child: int = -1) -> None:
        """A factor that reads the constant kept under ``key``."""
        strides = [1] * len(scope)
        for i in range(len(scope) - 2, -1, -1):
            strides[i] = strides[i + 1] * self.cardinalities[scope[i + 1]]
        self.add(scope, strides, self.shared[key], child)

    def auxiliary(self, cardinality: int = 2) -> int:
        self.cardinalities.append(cardinality)
        return len(self.cardinalities) - 1

    def add_counter(self, f: int, kind: int, cap: int) -> None:
        """A clause, a parity or a cardinality potential: a linear chain of "how many of the first i literals hold"."""
        base = int(self.structure.table_offsets[f])
        scope, strides = self.structure.scope(f).tolist(), self.structure.strides(f).tolist()
        if not scope:
            self.add([], [], base)
            return
        last = -1
        cap = min(cap, len(scope))
        counts = np.arange(cap + 1)
        for v, literal in zip(scope, literals(kind, np.array(strides)).tolist(), strict=True):
            card = self.cardinalities[v]
            fresh = self.auxiliary(cap + 1)
            before, given = ([], counts[:1]) if last < 0 else ([last], counts)
            key = (kind if kind != CLAUSE else "capped", cap, len(before), card, literal)
            if key not in self.shared:
                true = holds(literal, np.arange(card)).astype(np.int64)
                after = offset_of_count(kind, cap, given[:, None] + true)[:, :, None] == counts
                self.share(key, after)
            self.add_shared([*before, v, fresh], key)
            last = fresh
        self.add([last], [1], base)

    def add_noisy_max(self, f: int) -> None:
        base = int(self.structure.table_offsets[f])
        scope, starts = self.structure.scope(f).tolist(), self.structure.strides(f).tolist()
        child, parents = scope[-1], scope[:-1]
        k = self.cardinalities[child]
        # Tables that need not sum to one (a factor without a child) give none that do.
        directed = int(self.structure.child[f]) >= 0

        def contribution(given: list[int], start: int, variable: int) -> None:
            self.add([*given, variable], [k, 1][-1 - len(given) :], base + start, variable if directed else -1)

        if not parents:
            contribution([], starts[-1], child)
            return
        largest = self.auxiliary(k)
        contribution([], starts[-1], largest)
        states, key = np.arange(k), ("max", k)
        if key not in self.shared:
            self.share(key, np.maximum(states[:, None], states)[:, :, None] == states)
        for p, start in zip(parents, starts[:-1], strict=True):
            own = self.auxiliary(k)
            contribution([p], start, own)
            after = child if p == parents[-1] else self.auxiliary(k)
            self.add_shared([largest, own, after], key, after if directed else -1)
            largest = after

    def finish(self) -> tuple[Structure, FloatArray]:
        s = self.structure
        extra = len(self.cardinalities) - s.n_variables
        taken = set(s.names.variables)
        prefix = "auxiliary"
        while any(isinstance(v, str) and v.startswith(prefix) for v in taken):
            prefix = "_" + prefix
        names = Names([*s.names.variables, *(f"{prefix} {i}" for i in range(extra))], s.names.states)
        as_tables = Structure.from_arrays(
            self.cardinalities,
            self.offsets,
            self.scopes,
            self.bases,
            self.strides,
            n_cells=self.n_cells,
            child=self.children,
            kind=np.full(len(self.bases), TABLE),
            names=names,
        )
        return as_tables, np.concatenate([np.zeros(0), *self.constants])


def _larger(first: FloatArray, second: FloatArray) -> FloatArray:
    """Log-distribution (last axis) of the larger of two independent states, without a cancelling difference."""
    up_to_first = np.logaddexp.accumulate(first, axis=-1)
    up_to_second = np.logaddexp.accumulate(second, axis=-1)
    both = first + up_to_second
    both[..., 1:] = np.logaddexp(both[..., 1:], up_to_first[..., :-1] + second[..., 1:])
    return both


def noisy_max_table(blocks: Sequence[FloatArray], leak: FloatArray) -> FloatArray:
    """Log-table of a noisy-max: ``[configurations of the parents, K]``, the last parent fastest.

    ``blocks`` are log-probabilities ``[states, K]`` of the parents' contributions, ``leak`` ``[K]`` those of the leak.

    Examples
    --------
    >>> on = np.log([[1.0, 1e-300], [0.5, 0.5]])
    >>> np.exp(noisy_max_table([on, on], np.log([1.0, 1e-300]))).round(3).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.25, 0.75]]
    """
    k = len(leak)
    table = leak.reshape(1, k)
    for block in blocks:
        table = _larger(table[:, None, :], block[None, :, :]).reshape(-1, k)
    return table


def noisy_max_scores(
    blocks: Sequence[FloatArray], leak: FloatArray, states: npt.NDArray[np.integer[Any]]
) -> FloatArray:
    """Log-potentials of rows of states ``int[rows, parents + 1]``, the child last; time linear in the parents."""
    table = np.broadcast_to(leak, (len(states), len(leak)))
    for i, block in enumerate(blocks):
        table = _larger(table, block[states[:, i]])
    return np.asarray(table[np.arange(len(states)), states[:, -1]])


def noisy_max_counts(
    blocks: Sequence[FloatArray], leak: FloatArray, weights: FloatArray
) -> tuple[list[FloatArray], FloatArray]:
    """Expected counts of the cells of a noisy-max, given those of its table's cells.

    ``weights`` is ``[configurations of the parents, K]``. In a configuration with child k, parent i contributed j < k
    if the largest of the others is k, and contributed k if the others are at most k.
    """
    k = len(leak)
    forward = [leak.reshape(1, k)]
    for block in blocks:
        forward.append(_larger(forward[-1][:, None, :], block[None, :, :]).reshape(-1, k))
    nothing = np.full((1, k), -np.inf)
    nothing[0, 0] = 0.0
    behind = [nothing]
    for block in reversed(blocks):
        behind.append(_larger(block[:, None, :], behind[-1][None, :, :]).reshape(-1, k))
    behind.reverse()
    table = forward[-1]
    share = np.where(weights > 0, weights, 0.0)
    per = np.where(weights > 0, table, 0.0)

    def counts(block: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
        others = _larger(before[:, None, :], after[None, :, :])[:, None]  # [before, 1, after, K]
        shape = (len(before), len(block), len(after), k)
        w, t = share.reshape(shape), per.reshape(shape)
        up_to = np.logaddexp.accumulate(others, axis=-1)
        out = np.zeros(block.shape)
        for j in range(k):
            own = block[None, :, None, j]
            out[:, j] = (w[..., j] * np.exp(own + up_to[..., j] - t[..., j])).sum(axis=(0, 2))
            for larger in range(j + 1, k):
                ratio = np.exp(own + others[..., larger] - t[..., larger])
                out[:, j] += (w[..., larger] * ratio).sum(axis=(0, 2))
        return out

    found = [counts(block, forward[i], behind[i + 1]) for i, block in enumerate(blocks)]
    return found, counts(leak.reshape(1, k), nothing, behind[0])[0]


def merge_repeated_axes(
    offsets: Any, scopes: Any, strides: Any, bases: Any, kinds: Any, repeated: set[int]
) -> tuple[Any, Any, Any, Any, Any]:
    """A variable that occurs twice in a table's scope walks its diagonal: one axis, the strides added.

    In a clause, equal literals merge; opposite ones make it a tautology, which is a constant read at ``base + 1``. A
    variable is at no distance from itself. ``repeated`` are the factors in which that happens.
    """
    m = len(bases)
    new_offsets, new_scopes, new_strides = [0], [], []
    bases, kinds = bases.copy(), kinds.copy()
    for f in range(m):
        scope, stride = (
            scopes[offsets[f] : offsets[f + 1]].tolist(),
            strides[offsets[f] : offsets[f + 1]].tolist(),
        )
        if f in repeated and kinds[f] == TABLE:
            merged: dict[int, int] = {}
            for v, s in zip(scope, stride, strict=True):
                merged[v] = merged.get(v, 0) + s
            scope, stride = list(merged), list(merged.values())
        elif f in repeated and kinds[f] == DISTANCE and len(scope) == 2:
            scope, stride = [], []
            kinds[f] = TABLE
        elif f in repeated and kinds[f] != CLAUSE:
            kind = KIND_NAMES[kinds[f]] if 0 <= kinds[f] < len(KIND_NAMES) else "factor of an unknown kind"
            raise ModelError(f"factor {f} is a {kind}, in which a variable may occur only once")
        elif f in repeated:
            scope, stride, tautology = _merge_literals(scope, stride, f)
            if tautology:
                bases[f] += 1
                kinds[f] = TABLE
        new_scopes += scope
        new_strides += stride
        new_offsets.append(len(new_scopes))
    return np.array(new_offsets), np.array(new_scopes), np.array(new_strides, np.int64), bases, kinds


def _merge_literals(scope: list[int], literals: list[int], clause: int) -> tuple[list[int], list[int], bool]:
    """One literal per variable, and whether the clause always holds (then its scope is empty).

    "x is not s" absorbs "x is t"; with "x is s", or with "x is not t", it always holds.
    """
    merged: dict[int, int] = {}
    for v, literal in zip(scope, literals, strict=True):
        other = merged.setdefault(v, literal)
        if other == literal:
            continue
        low, high = sorted((other, literal))
        if low >= 0 or low == -high - 1:
            return [], [], True
        if high < 0:
            raise ModelError(f"clause {clause} asks for two different states of one variable; write it as a table")
        merged[v] = high
    return list(merged), list(merged.values()), False
