"""The structural plan of exact inference: order, clique tree, layout. Made once, run for any tables and evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_kinds import cells_reached
from markovfield.factors.structure import Structure
from markovfield.graphs.elimination.orders_kernel import eliminate, search_order, search_order_balanced
from markovfield.inference.core.limits import format_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.clique_tree_kernel import build_clique_tree
from markovfield.inference.junction_tree.layout_kernel import FACTOR, Layout, lay_out
from markovfield.inference.junction_tree.schedule_kernel import split_tree, summarise
from markovfield.kernels.interpreter import small

__all__ = ["Plan", "Tree", "grow_tree", "lay_out_tree", "make_plan", "search_ceiling"]


SIMPLICIAL, ALMOST_SIMPLICIAL = 1, 2
# Cost of one clique state in both passes, the share of the run that searching for a better order may take, from how
# many states (log2) on it is worth a look at all, and what it may take at most, in nanoseconds.
NANOSECONDS_PER_STATE = 3.0
SEARCH_SHARE = 0.25
SEARCH_FROM = 22.0
SEARCH_CEILING = 2e9
# From so many states (log2) on no search would make a tree that could be run; and of a time limit, the share that
# searching may take.
SEARCH_UNTIL = 64.0
PLANNING_SHARE = 0.2
# Plans below this run as one kernel call; above, subtrees run side by side and long stretches are cut into steps.
PARALLEL_OPERATIONS = 1e7
STEP_OPERATIONS = 2e8
# Cliques beyond 2**MAX_LOG2 states are not even laid out.
MAX_LOG2 = 50.0


# Subtrees that may run side by side, and the top of the trees in pieces.
Parts = tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class Plan:
    """A clique tree laid out flat, with what it will cost, known before anything of table size is allocated.

    Attributes
    ----------
    width
        Variables in the largest clique, less one.
    log2_states
        log2 of the number of states of all cliques together: time grows as these times the inputs per clique.
    log2_largest
        log2 of the states of the largest clique.
    bytes
        Memory of a run: messages in both directions, index blocks, marginals. Cliques themselves are never stored.
    operations
        Multiply-adds of an upward and a downward pass.
    falling, rising, roots
        All cliques in the order of a downward and of an upward pass; the roots of the trees.
    fixed_values
        Where the state of each variable that has but one stands among all states.
    homeless
        Factors that no free variable is left in.
    """

    structure: Structure
    layout: Layout
    value_offsets: npt.NDArray[np.int64]
    width: int
    n_cliques: int
    log2_states: float
    log2_largest: float
    bytes: float
    operations: float
    falling: npt.NDArray[np.int64] = field(repr=False)
    rising: npt.NDArray[np.int64] = field(repr=False)
    roots: npt.NDArray[np.int64] = field(repr=False)
    fixed_values: npt.NDArray[np.int64] = field(repr=False)
    homeless: npt.NDArray[np.int64] = field(repr=False)

    def cliques(self) -> list[tuple[int, ...]]:
        """Variables of each clique by position, in axis order: residual first, then separator."""
        lay = self.layout
        return [
            tuple(lay.axis_variable[a:b].tolist())
            for a, b in zip(lay.axis_offsets[:-1].tolist(), lay.axis_offsets[1:].tolist(), strict=True)
        ]

    def parts(self, upward: bool) -> Parts:
        """Whole subtrees that may run side by side, and the top of the trees in pieces, in the order of a pass.

        Small plans are one piece. Parts depend on the plan alone, never on the number of threads.
        """
        return self._both_parts[upward]

    @cached_property
    def _both_parts(self) -> tuple[Parts, Parts]:
        if self.operations < PARALLEL_OPERATIONS:
            return ([], [self.falling]), ([], [self.rising])
        tasks, top = self._cut()
        return (tasks, top), ([t[::-1].copy() for t in tasks], [t[::-1].copy() for t in reversed(top)])

    @cached_property
    def parts_read_apart(self) -> bool:
        """Whether no two of the subtrees that may run side by side read the same cell, or cells between its first and
        last."""
        owner = np.full(self.n_cliques + 1, -1, np.int64)
        for i, task in enumerate(self.parts(upward=False)[0]):
            owner[task] = i
        part = owner[self.layout.home]  # factors without a home find the last entry
        inside = np.flatnonzero(part >= 0)
        low, high = (reach[inside] for reach in cells_reached(self.structure))
        order = np.argsort(low, kind="stable")
        part, low, reach = part[inside][order], low[order], np.maximum.accumulate(high[order])
        # Stretches of cells that factors cover, each with gaps around it: one part must have all of its factors.
        stretch = offsets_of(low[1:] > reach[:-1])[: len(part)]
        return bool(((stretch[1:] != stretch[:-1]) | (part[1:] == part[:-1])).all())

    def _cut(self) -> Parts:
        everything = self.falling
        inputs = np.diff(self.layout.input_offsets)
        cost = self.layout.size.astype(np.float64) * (inputs + 1.0)
        part, _ = split_tree(self.layout.parent, cost, float(cost.sum()) / 8)
        top = np.flatnonzero(part == 0)
        # Gather small parts into tasks of about a sixteenth of the work, and cut the top where it grows long.
        sums = np.bincount(part, weights=cost)
        task = np.cumsum(sums[1:]) // (cost.sum() / 16)
        tasks = [everything[(part > 0)][task[part[part > 0] - 1] == t] for t in np.unique(task)]
        piece = np.cumsum(cost[top]) // STEP_OPERATIONS
        return tasks, [top[piece == p] for p in np.unique(piece)]

    def moved_to(self, structure: Structure) -> Plan:
        """The same plan for a structure that differs in table offsets only (other evidence, same pattern)."""
        lay = self.layout
        base = lay.input_base.copy()
        at = lay.input_kind == FACTOR
        factor = lay.input_ref[at]
        base[at] += structure.table_offsets[factor] - self.structure.table_offsets[factor]
        return replace(self, structure=structure, layout=lay._replace(input_base=base))

    def describe(self) -> str:
        """The plan in one line."""
        return (
            f"{self.n_cliques} cliques, width {self.width}, 2^{self.log2_states:.1f} clique states, "
            f"{format_bytes(np.log2(max(self.bytes, 1)))}"
        )


class Tree(NamedTuple):
    """A clique tree before it is laid out: enough to know what it will cost."""

    parent: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]
    log2_sizes: FloatArray
    log2_separators: FloatArray
    home: npt.NDArray[np.int64]
    unit: npt.NDArray[np.bool_]
    log2_states: float

    @property
    def width(self) -> int:
        """Variables in the largest clique, less one."""
        return int(np.diff(self.offsets).max()) - 1 if len(self.parent) else 0

    @property
    def log2_largest(self) -> float:
        """log2 of the states of the largest clique."""
        return float(self.log2_sizes.max()) if len(self.parent) else 0.0

    def log2_bytes(self, structure: Structure) -> float:
        """log2 of the memory of a run: messages both ways, the pool, index blocks."""
        # About three inputs a clique have index blocks of four bytes a state.
        blocks = 12.0 * float((2.0 ** np.minimum(self.log2_sizes, 11.0)).sum())
        fixed = blocks + 8.0 * structure.n_cells + 200.0 * len(self.parent) + 1.0
        joined = self.log2_separators[self.parent >= 0] + 4.0
        return float(np.logaddexp2(np.log2(fixed), np.logaddexp2.reduce(joined) if len(joined) else -np.inf))

    def log2_operations(self) -> float:
        """log2 of the multiply-adds of both passes: clique states times inputs."""
        n = len(self.parent)
        if not n:
            return 0.0
        inputs = 2.0 + np.bincount(self.home[self.home >= 0], minlength=n)
        inputs += np.bincount(self.parent[self.parent >= 0], minlength=n)
        return float(np.logaddexp2.reduce(self.log2_sizes + np.log2(inputs))) + 1.0


def _with_scopes(structure: Structure, extra: Iterable[Sequence[int]]) -> tuple[Any, Any]:
    """The structure's scopes and some more sets of variables to be kept together."""
    sets = [np.asarray(s, np.int32) for s in extra]
    if not sets:
        return structure.scope_offsets, structure.scopes
    ends = structure.scope_offsets[-1] + np.cumsum([len(s) for s in sets])
    offsets = np.concatenate([structure.scope_offsets, ends]).astype(np.int64)
    scopes = np.concatenate([structure.scopes, *sets]).astype(np.int32)
    offsets.flags.writeable = scopes.flags.writeable = False
    return offsets, scopes


def find_order(
    structure: Structure,
    *,
    stage: npt.NDArray[np.int8],
    together: Iterable[Sequence[int]] = (),
    order: Sequence[int] | None = None,
    search: float | None = None,
    seed: int = 0,
    rules: int = SIMPLICIAL | ALMOST_SIMPLICIAL,
    ceiling: float = SEARCH_CEILING,
    running: Running | None = None,
) -> tuple[Any, Any, Any, float]:
    """An elimination order and its fill: a fixed portfolio, then more search where the run itself would be long.

    ``search`` scales how long (1 is the default, 0 none beyond the portfolio), up to ``ceiling`` nanoseconds. A given
    order is kept within each stage: variables of a later stage (queried, or maximised after sums) come after all
    others, whatever it says.
    """
    offsets, scopes = _with_scopes(structure, together)
    cards = structure.cardinalities
    if order is not None:
        given = np.asarray(order, np.int32)
        given = given[np.argsort(stage[given], kind="stable")]
        # An array that can be written, like those that are searched for: kernels are compiled for either kind.
        given = np.ascontiguousarray(given[cards[given] > 1])
        higher_offsets, higher, log2_states = eliminate(cards, offsets, scopes, given)
        return given, higher_offsets, higher, log2_states
    with small(_planning(offsets, len(cards))):
        found = search_order(cards, offsets, scopes, stage, 0.0, seed, rules)
    ratio = SEARCH_SHARE * NANOSECONDS_PER_STATE * (1.0 if search is None else search)
    check = None if running is None else running.check
    if SEARCH_FROM < found[3] <= SEARCH_UNTIL and ratio > 0.0:
        found = search_order_balanced(cards, offsets, scopes, stage, ceiling, ratio, np.inf, seed, rules, check=check)
    return found


def _planning(scope_offsets: npt.NDArray[np.int64], n: int) -> float:
    """Steps that planning takes, roughly."""
    pairs = np.diff(scope_offsets)
    return 1000.0 * (n + float(pairs @ pairs))


def grow_tree(
    structure: Structure,
    *,
    stage: npt.NDArray[np.int8] | None = None,
    together: Iterable[Sequence[int]] = (),
    order: Sequence[int] | None = None,
    search: float | None = None,
    seed: int = 0,
    rules: int = SIMPLICIAL | ALMOST_SIMPLICIAL,
    merge: bool = True,
    ceiling: float = SEARCH_CEILING,
    running: Running | None = None,
) -> Tree:
    """Find an order and build its clique tree, for plain tables.

    Parameters
    ----------
    stage
        ``int8[n]``: variables of a lower stage are eliminated first, and cliques never mix stages. Without it the
        tree may be hung from the clique that makes the passes cheapest.
    together
        Sets of variables that must share a clique.
    order, search, seed, rules
        A given order; or how long to search, the search's seed, and the graph reductions before it.
    merge
        Combine factors of large cliques in small tables first.
    ceiling
        Nanoseconds that the search may take, by its own count of work: see `search_ceiling`.
    running
        What may end it before that.
    """
    s = structure
    stages = np.zeros(s.n_variables, np.int8) if stage is None else np.asarray(stage, np.int8)
    chosen, higher_offsets, higher, log2_states = find_order(
        s,
        stage=stages,
        together=together,
        order=order,
        search=search,
        seed=seed,
        rules=rules,
        ceiling=ceiling,
        running=running,
    )
    if log2_states == np.inf:
        raise MemoryLimitError(
            f"the graph of {s.n_variables} variables is far too wide for exact inference: its cliques have more than "
            "2^27 members together; fix more variables by evidence"
        )
    with small(_planning(s.scope_offsets, s.n_variables)):
        arrays: Any = build_clique_tree(
            s.cardinalities, s.scope_offsets, s.scopes, s.child, stages,
            chosen, higher_offsets, higher, stage is None, merge,
        )  # fmt: skip
    return Tree._make((*arrays, log2_states))


def search_ceiling(running: Running | None) -> float:
    """What searching for an order may take, in nanoseconds: less where time is short. It does not look at the clock."""
    if running is None or running.time_limit is None:
        return SEARCH_CEILING
    # A power of two, so that plans made under nearly the same limit are found again.
    return min(SEARCH_CEILING, float(2.0 ** np.floor(np.log2(PLANNING_SHARE * 1e9 * running.time_limit))))


def make_plan(structure: Structure, *, memory_limit: float = np.inf, **settings: Any) -> Plan:
    """Grow a tree (settings as for `grow_tree`) and lay it out."""
    return lay_out_tree(structure, grow_tree(structure, **settings), memory_limit)


def lay_out_tree(structure: Structure, tree: Tree, memory_limit: float = np.inf) -> Plan:
    """The plan of a tree; one that needs more bytes than ``memory_limit`` raises `MemoryLimitError` before anything of
    that size is allocated."""
    s = structure
    n = len(tree.parent)
    largest = tree.log2_largest
    # Small trees need no closer look: all their states together are within the limit.
    fits = largest < MAX_LOG2 and n * 2.0 ** (largest + 8.0) < memory_limit
    if not fits and (largest > MAX_LOG2 or tree.log2_bytes(s) > np.log2(memory_limit) + 1.0):
        raise too_large(tree.width, tree.log2_bytes(s), memory_limit)
    values_at = s.value_offsets
    with small(2.0 ** min(tree.log2_states, MAX_LOG2) + _planning(s.scope_offsets, s.n_variables)):
        arrays: Any = lay_out(
            s.cardinalities, values_at, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides,
            tree.parent, tree.offsets, tree.members, tree.home, tree.unit,
        )  # fmt: skip
        layout = Layout._make((tree.parent, tree.unit, tree.offsets, *arrays[:-1], tree.home, arrays[-1]))
        falling, rising, roots, fixed, homeless, width, operations = summarise(layout, s.cardinalities, values_at)
    needed = 16.0 * int(layout.message_offset[-1]) + 4.0 * len(layout.index) + 8.0 * s.n_cells + 200.0 * n
    if needed > memory_limit:
        raise too_large(tree.width, float(np.log2(needed)), memory_limit)
    return Plan(
        structure=s,
        layout=layout,
        value_offsets=values_at,
        width=max(width, 0),
        n_cliques=n,
        log2_states=tree.log2_states,
        log2_largest=largest,
        bytes=needed,
        operations=operations,
        falling=falling,
        rising=rising,
        roots=roots,
        fixed_values=fixed,
        homeless=homeless,
    )


def too_long(width: int, log2_states: float, limit: float) -> MemoryLimitError:
    """The refusal of a run that would take too long."""
    return MemoryLimitError(
        f"exact inference needs a clique tree of width {width} with 2^{log2_states:.1f} states in all, while "
        f"work_limit is 2^{np.log2(limit):.1f}: raise work_limit or fix more variables by evidence"
    )


def too_large(width: int, log2_bytes: float, limit: float) -> MemoryLimitError:
    """The refusal: how wide, how much memory, what to try instead."""
    allowed = (
        "a clique too large to index" if not np.isfinite(limit) else f"memory_limit is {format_bytes(np.log2(limit))}"
    )
    return MemoryLimitError(
        f"exact inference needs a clique tree of width {width} and about {format_bytes(log2_bytes)}, while {allowed}: "
        "raise memory_limit or fix more variables by evidence"
    )
