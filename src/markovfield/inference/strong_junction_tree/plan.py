"""The order in which variables are eliminated, and what that costs: real-valued ones first, then discrete ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import MemoryLimitError
from markovfield.graphs.elimination.orders_kernel import search_order
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.kernels.interpreter import small

__all__ = ["Plan", "make_plan"]

FIRST, TARGET, SUMMED, MAXIMISED = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Plan:
    """Variables in the order of their elimination.

    Attributes
    ----------
    order
        Positions of variables.
    separators
        For each of them, those that share its clique and are eliminated later, in the order of their elimination; the
        first one's clique is the parent.
    log2_numbers, log2_largest, log2_bytes
        log2 of the numbers in all cliques, in the largest one, and of the memory that a run takes.
    """

    order: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]
    log2_numbers: float
    log2_largest: float
    log2_bytes: float

    @property
    def width(self) -> int:
        """Variables in the largest clique, less one."""
        return max(map(len, self.separators), default=0)

    def holds(self, variables: Iterable[int]) -> int | None:
        """The number of a clique that holds some variables; None where there is none."""
        wanted = set(variables)
        for i, v in enumerate(self.order):
            if v in wanted:
                # The first of them to be eliminated: no later clique holds it.
                return i if wanted <= {v, *self.separators[i]} else None
        return None


def make_plan(
    cardinalities: IntArray,
    scopes: Sequence[Sequence[int]],
    stages: Mapping[int, int],
    *,
    rows: int = 1,
    memory_limit: str | int | None = None,
) -> Plan:
    """An elimination order by stages: variables of a lower one go first.

    Parameters
    ----------
    cardinalities
        ``int64[n]``, 0 for real-valued variables.
    scopes
        Sets of variables that share a factor, or shall share a clique.
    stages
        Stage of each variable that is to be eliminated.
    rows
        Of the batch.
    """
    free = sorted(stages)
    at = {v: i for i, v in enumerate(free)}
    kept = [[at[v] for v in scope if v in at] for scope in scopes]
    kept = [scope for scope in kept if scope]
    # A variable of one state would be left out of the order; a real-valued one costs about as much as a binary one.
    cards = np.array([max(int(cardinalities[v]), 2) for v in free], np.int32)
    offsets = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    flat = np.array([v for scope in kept for v in scope], np.int32)
    levels = np.array([stages[v] for v in free], np.int8)
    if free:
        with small(50.0 * float(len(free) * (len(flat) + len(free)))):
            order, starts, higher, _ = search_order(cards, offsets, flat, levels, 0.0, 0, 3)
    else:
        order, starts, higher = np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32)
    names = [free[i] for i in order.tolist()]
    around = [tuple(free[i] for i in higher[starts[k] : starts[k + 1]].tolist()) for k in range(len(names))]
    sizes = []
    for v, near in zip(names, around, strict=True):
        real = sum(not cardinalities[u] for u in (v, *near))
        states = sum(np.log2(cardinalities[u]) for u in (v, *near) if cardinalities[u])
        sizes.append(states + np.log2((1.0 + real) ** 2))
    total = float(np.logaddexp2.reduce(sizes)) if sizes else 0.0
    # Numbers of eight bytes; potentials, messages and moments, and what is made on the way.
    needed = total + np.log2(8.0 * 4.0 * rows)
    if needed > np.log2(memory_limit_bytes(memory_limit)):
        widest = int(np.argmax(sizes))
        raise MemoryLimitError(
            f"strong_junction_tree needs {format_bytes(needed)}, above the memory limit: its largest clique has "
            f"{len(around[widest]) + 1} variables, since all discrete variables next to real-valued ones that depend "
            "on each other meet there"
        )
    return Plan(tuple(names), tuple(around), total, float(max(sizes, default=0.0)), float(needed))
