"""The structural plan of mini-bucket elimination: the cut of each bucket, tables laid out flat.

Orders of elimination for mini-buckets, and how the functions of one bucket are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import offsets_of
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.structure import Structure
from markovfield.inference.core.limits import format_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.plan import find_order
from markovfield.inference.mini_bucket.layout_kernel import factor_strides, message_strides, moved_strides
from markovfield.inference.mini_bucket.mini_bucket_kernel import BucketLayout

__all__ = ["LOOK", "BucketPlan", "Fill", "fill_bucket", "find_fill", "order_by_mini_buckets", "plan_buckets"]


Ints = npt.NDArray[np.int64]
# Mini-buckets of one bucket that are still looked at for room: a bucket of very many functions stays linear.
OPEN = 64
# Variables between two looks at the clock: some milliseconds.
LOOK = 16


class Fill(NamedTuple):
    """An order of elimination, and the variables that each one meets when nothing is cut.

    ``cliques`` is None where those were too many to write down.
    """

    order: Ints
    offsets: Ints
    cliques: Ints | None


def find_fill(structure: Structure, order: Sequence[int] | None, search: float, seed: int) -> Fill:
    """The order that exact methods would take, or a given one."""
    s = structure
    stage = np.zeros(s.n_variables, np.int8)
    found, offsets, higher, log2_states = find_order(s, stage=stage, order=order, search=search, seed=seed)
    if log2_states == np.inf and not len(found):
        # Too wide even to write the fill down: variables of few factors first.
        degree = np.bincount(s.scopes, minlength=s.n_variables)
        free = np.flatnonzero(s.cardinalities > 1)
        return Fill(free[np.argsort(degree[free], kind="stable")].astype(np.int64), np.zeros(1, np.int64), None)
    return Fill(np.asarray(found, np.int64), np.asarray(offsets, np.int64), np.asarray(higher, np.int64))


def order_by_mini_buckets(structure: Structure, i_bound: int, max_states: float, running: Running) -> Ints:
    """An order made while eliminating with cuts: always the variable whose bucket has the fewest states.

    Cut buckets send small messages, so what an exact elimination would fill in does not count here.
    """
    s = structure
    cards, scopes, bounds = s.cardinalities.tolist(), s.scopes.tolist(), s.scope_offsets.tolist()
    bits = np.log2(np.maximum(s.cardinalities, 1)).tolist()
    most_bits = float(np.log2(max_states)) + 1e-9
    functions: list[frozenset[int]] = []
    of_variable: list[set[int]] = [set() for _ in cards]

    def add(scope: frozenset[int]) -> None:
        for v in scope:
            of_variable[v].add(len(functions))
        functions.append(scope)

    def cost(v: int) -> float:
        met: set[int] = set()
        for f in of_variable[v]:
            met |= functions[f]
        return sum([bits[u] for u in met])

    for f in range(s.n_factors):
        add(frozenset([v for v in scopes[bounds[f] : bounds[f + 1]] if cards[v] > 1]))
    costs = [cost(v) if cards[v] > 1 else 0.0 for v in range(len(cards))]
    heap = [(costs[v], v) for v in range(len(cards)) if cards[v] > 1]
    heapify(heap)
    order: list[int] = []
    done = [False] * len(cards)
    while heap:
        price, v = heappop(heap)
        if done[v] or price != costs[v]:
            continue
        done[v] = True
        order.append(v)
        if len(order) % LOOK == 0:
            running.check()
        bucket = sorted([(functions[f], f) for f in of_variable[v]], key=lambda item: (-len(item[0]), item[1]))
        touched: set[int] = set()
        for scope, f in bucket:
            touched |= scope
            for u in scope:
                of_variable[u].discard(f)
        for members, _ in fill_bucket(bucket, v, bits, i_bound + 1, most_bits):
            add(frozenset(members - {v}))
        for u in sorted(touched - {v}):
            price = cost(u)
            if price != costs[u]:
                costs[u] = price
                heappush(heap, (price, u))
    return np.array(order, np.int64)


def fill_bucket(
    functions: list[tuple[frozenset[int], int]], b: int, bits: list[float], most_variables: int, most_bits: float
) -> list[tuple[set[int], list[int]]]:
    """The mini-buckets of variable ``b``: their variables, and the numbers of the functions in each.

    Functions, largest scope first, go each to the mini-bucket where the fewest states are added, as long as that has at
    most ``most_variables`` variables and ``2**most_bits`` states; a function larger than that is alone.

    Examples
    --------
    >>> functions = [(frozenset({0, 1, 2}), 7), (frozenset({0, 3}), 8), (frozenset({0, 2}), 9)]
    >>> fill_bucket(functions, 0, [1.0, 1.0, 1.0, 1.0], 3, 10.0)
    [({0, 1, 2}, [7, 9]), ({0, 3}, [8])]
    """
    if not functions:
        return [({b}, [])]
    filled: list[tuple[set[int], list[int]]] = []
    size: list[float] = []
    for scope, f in functions:
        best, least = -1, np.inf
        for i in range(max(0, len(filled) - OPEN), len(filled)):
            new = scope - filled[i][0]
            if not new:
                best, least = i, 0.0
                break
            grown = sum(bits[v] for v in new)
            fits = len(filled[i][0]) + len(new) <= most_variables and size[i] + grown <= most_bits
            if fits and grown < least:
                best, least = i, grown
        if best < 0:
            filled.append((set(scope), [f]))
            size.append(sum(bits[v] for v in scope))
        else:
            filled[best][0].update(scope)
            filled[best][1].append(f)
            size[best] += least
    return filled


# Cells formed in one kernel call: about a tenth of a second, so that Ctrl-C and time limits are heard.
GRAIN = 2.0**23


@dataclass(frozen=True, eq=False)
class BucketPlan:
    """Mini-buckets laid out flat, known before anything of table size is allocated.

    Attributes
    ----------
    order
        Variables of more than one state in the order of elimination; mini-buckets speak of places in it.
    factors
        The factor behind each factor of the layout; those from ``n_factors`` on are the likelihoods of variables.
    constants
        Factors that no free variable is left in.
    width
        Variables in the largest mini-bucket, less one.
    n_split
        Variables whose bucket was cut; where there are none the bounds meet.
    log2_bytes
        log2 of the memory of a run.
    pieces
        Stretches of whole buckets, as mini-buckets, of about `GRAIN` cells.
    """

    layout: BucketLayout
    order: Ints
    factors: Ints
    constants: Ints
    width: int
    n_split: int
    log2_bytes: float
    pieces: tuple[tuple[int, int], ...]

    @property
    def key(self) -> bytes:
        """What makes shifts and weights of one plan fit another."""
        lay = self.layout
        return b"".join(a.tobytes() for a in (self.order, lay.axis_offsets, lay.axis_variable, lay.axis_card))


def plan_buckets(
    structure: Structure,
    active: npt.NDArray[np.bool_],
    order: Ints,
    *,
    i_bound: int,
    max_states: float,
    memory_limit: float,
    running: Running,
) -> BucketPlan:
    """Cut every bucket of an order and lay the mini-buckets out; refuse what would not fit in memory.

    ``active`` says which variables have likelihoods of their own.
    """
    s = structure
    n = len(order)
    place = np.full(s.n_variables, -1, np.int64)
    place[order] = np.arange(n)
    cards = s.cardinalities[order].astype(np.int64)
    likelihoods = np.flatnonzero(active & (place >= 0))
    scope_offsets = np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 1 + np.arange(len(likelihoods))])
    scopes = np.concatenate([s.scopes, likelihoods]).astype(np.int64)
    members, bucket_offsets, parent, holder = _cut(place[scopes], scope_offsets, cards, i_bound, max_states, running)
    lengths = np.array([len(m) for m in members], np.int64)
    axis_offsets = offsets_of(lengths)
    axis_variable = np.array([v for m in members for v in m], np.int64)
    axis_card = cards[axis_variable]
    bits = np.add.reduceat(np.log2(axis_card), axis_offsets[:-1]) if n else np.zeros(0)
    needed = _log2_bytes(bits, np.log2(cards[axis_variable[axis_offsets[:-1]]]), s.n_cells)
    width = int(lengths.max(initial=1)) - 1
    if needed > np.log2(memory_limit):
        raise MemoryLimitError(
            f"mini-buckets of at most {width + 1} variables need about {format_bytes(needed)}, while memory_limit is "
            f"{format_bytes(np.log2(memory_limit))}: raise memory_limit or lower i_bound"
        )
    sizes = np.rint(2.0**bits).astype(np.int64)
    senders = sizes // cards[axis_variable[axis_offsets[:-1]]]
    stride_offsets, parent_strides = message_strides(axis_offsets, axis_variable, axis_card, parent)
    shift_offsets, shift_strides = moved_strides(bucket_offsets, axis_offsets, axis_variable, axis_card, n)
    strides = np.concatenate([s.table_strides, np.ones(len(likelihoods), np.int64)])
    factor_offsets, factors, factor_stride_offsets, pool_strides = factor_strides(
        axis_offsets, axis_variable, place, holder, scope_offsets, scopes, strides
    )
    child_offsets, children = _grouped(parent, len(members))
    layout = BucketLayout(
        bucket_offsets=bucket_offsets,
        axis_offsets=axis_offsets,
        axis_variable=axis_variable,
        axis_card=axis_card,
        table_offsets=offsets_of(sizes),
        message_offsets=offsets_of(senders),
        shift_offsets=shift_offsets,
        shift_strides=shift_strides,
        child_offsets=child_offsets,
        children=children,
        stride_offsets=stride_offsets,
        parent_strides=parent_strides,
        factor_offsets=factor_offsets,
        factor_base=np.zeros(0, np.int64),
        factor_stride_offsets=factor_stride_offsets,
        factor_strides=pool_strides,
    )
    return BucketPlan(
        layout=layout,
        order=order,
        factors=_named(s, factors, likelihoods),
        constants=np.flatnonzero(holder[: s.n_factors] < 0),
        width=width,
        n_split=int((np.diff(bucket_offsets) > 1).sum()),
        log2_bytes=needed,
        pieces=_pieces(bucket_offsets, sizes),
    )


def _named(s: Structure, factors: Ints, likelihoods: Ints) -> Ints:
    """Factors by number; the likelihood of variable v is ``n_factors + v``."""
    m = s.n_factors
    if not len(likelihoods):
        return factors
    variable = likelihoods[np.maximum(factors - m, 0)]
    return np.where(factors < m, factors, m + variable)


def _cut(
    places: Ints, scope_offsets: Ints, cards: Ints, i_bound: int, max_states: float, running: Running
) -> tuple[list[list[int]], Ints, Ints, Ints]:
    """Eliminate scopes only: members of every mini-bucket, buckets, who takes whose message, who holds each factor.

    The functions of a bucket, largest scope first, go each to the mini-bucket where the fewest states are added, as
    long as that has at most ``i_bound + 1`` variables and ``max_states`` states; a function larger than that is alone.
    """
    n, m = len(cards), len(scope_offsets) - 1
    bits = np.log2(cards).tolist()
    most = float(np.log2(max_states)) + 1e-9
    waiting: list[list[tuple[frozenset[int], int]]] = [[] for _ in range(n)]
    everywhere, bounds = places.tolist(), scope_offsets.tolist()
    for f in range(m):
        # Variables of a single state have no place and are no axis.
        scope = frozenset(p for p in everywhere[bounds[f] : bounds[f + 1]] if p >= 0)
        if scope:
            waiting[min(scope)].append((scope, f))
    members: list[list[int]] = []
    bucket_offsets = np.zeros(n + 1, np.int64)
    holder = np.full(m, -1, np.int64)
    parent: list[int] = []
    for b in range(n):
        if b % LOOK == LOOK - 1:
            running.check()
        functions = sorted(waiting[b], key=lambda item: (-len(item[0]), item[1]))
        waiting[b] = []
        first = len(members)
        for variables, contents in fill_bucket(functions, b, bits, i_bound + 1, most):
            k = len(members)
            members.append(sorted(variables))
            parent.append(-1)
            for f in contents:
                if f < m:
                    holder[f] = k
                else:
                    parent[f - m] = k
            if len(variables) > 1:
                waiting[members[k][1]].append((frozenset(members[k][1:]), m + k))
        bucket_offsets[b + 1] = len(members)
        assert bucket_offsets[b + 1] > first
    return members, bucket_offsets, np.array(parent, np.int64), holder


def _log2_bytes(bits: npt.NDArray[np.float64], own: npt.NDArray[np.float64], n_cells: int) -> float:
    """log2 of the memory of a run: tables twice, messages and beliefs, moments and shifts several times."""
    fixed = np.log2(8.0 * n_cells + 400.0 * len(bits) + 1.0)
    if not len(bits):
        return float(fixed)
    return float(np.logaddexp2(fixed, np.logaddexp2.reduce(np.concatenate([bits + 4.0, bits - own + 6.0]))))


def _grouped(owner: Ints, n: int) -> tuple[Ints, Ints]:
    """For each of ``n`` owners, the positions that name it, in order."""
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner[owner >= 0], minlength=n)
    return offsets_of(counts), order[len(owner) - int(counts.sum()) :].astype(np.int64)


def _pieces(bucket_offsets: Ints, sizes: Ints) -> tuple[tuple[int, int], ...]:
    """Stretches of whole buckets of about `GRAIN` cells."""
    done = np.concatenate([np.zeros(1), np.cumsum(sizes + 50.0)])[bucket_offsets]
    if len(done) < 2:
        return ()
    ends = np.searchsorted(done, np.arange(GRAIN, done[-1], GRAIN), side="right")
    borders = np.unique(np.concatenate([[0], bucket_offsets[np.minimum(ends, len(done) - 1)], [bucket_offsets[-1]]]))
    return tuple(pairwise(borders.tolist()))
