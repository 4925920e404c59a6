"""Orders of elimination for mini-buckets, and how the functions of one bucket are cut."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_graph import Structure
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.plan import find_order

__all__ = ["LOOK", "Fill", "fill_bucket", "find_fill", "order_by_mini_buckets"]

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
