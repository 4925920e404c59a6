"""One deterministic automaton that sees every occurrence of all patterns.

A state is the set of patterns' beginnings that the symbols read so far end with, as bits of one integer; reading a
symbol shifts them all at once (Baeza-Yates and Gonnet 1992). Characters that no pattern tells apart share a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError
from markovfield.learning.feature_induction.patterns import Alphabet, Pattern

__all__ = ["Automaton", "automaton_of"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Automaton:
    """States from 0, which a word begins in.

    Attributes
    ----------
    members
        Characters of each column.
    following, seen
        Entry [s, k]: the state after a character of column k in state s, and the set of patterns that it completes.
    seen_at_end
        The set of patterns that the end of the word completes in each state.
    sets
        Patterns of each set; the first set is empty.
    """

    members: tuple[IntArray, ...]
    following: IntArray
    seen: IntArray
    seen_at_end: IntArray
    sets: tuple[tuple[int, ...], ...]


def automaton_of(alphabet: Alphabet, patterns: Sequence[Pattern], max_states: int) -> Automaton:
    """The automaton of some patterns; refused where it would have more states than allowed."""
    masks = [0] * alphabet.n_symbols
    first = last = place = 0
    ends: dict[int, int] = {}
    for i, pattern in enumerate(patterns):
        first |= 1 << place
        for atom in pattern.atoms:
            for s in range(alphabet.n_symbols):
                masks[s] |= (atom.members >> s & 1) << place
            place += 1
        last |= 1 << (place - 1)
        ends[place - 1] = i
    columns: dict[int, list[int]] = {}
    for s in range(len(alphabet.characters)):
        columns.setdefault(masks[s], []).append(s)
    kept = ~last
    start = first & masks[alphabet.begin] & kept
    states, order = {start: 0}, [start]
    sets = {0: 0}
    following, seen, at_end = [], [], []
    column_masks = list(columns)
    for state in order:  # grows
        base = state << 1 | first
        for mask in column_masks:
            read = base & mask
            key = read & kept
            number = states.get(key)
            if number is None:
                number = states[key] = len(order)
                order.append(key)
            following.append(number)
            done = read & last
            seen.append(sets.setdefault(done, len(sets)) if done else 0)
        at_end.append(sets.setdefault(base & masks[alphabet.end] & last, len(sets)))
        if len(order) > max_states:
            raise MemoryLimitError(
                f"the automaton of {len(patterns)} patterns would have more than {max_states} states"
            )
    shape = (len(order), len(column_masks))
    return Automaton(
        tuple(np.array(columns[mask]) for mask in column_masks),
        np.array(following).reshape(shape),
        np.array(seen).reshape(shape),
        np.array(at_end),
        tuple(tuple(i for bit, i in ends.items() if done >> bit & 1) for done in sets),
    )
