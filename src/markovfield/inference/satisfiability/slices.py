"""A prepared problem as the constraints that slices are made of, and the Markov chain that moves by them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, States
from markovfield.factors.structure import Structure
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.problem import Problem
from markovfield.inference.satisfiability.slice_kernel import Slice, advance_slices, classify, fill_slices
from markovfield.inference.satisfiability.solutions_kernel import (
    BASE,
    BEGIN,
    CARD,
    END,
    EPOCHS,
    FACTOR,
    FIRST,
    FIXED,
    KIND,
    LITERAL,
    LOOSE,
    MET,
    OWNER,
    STATE,
    STRIDE,
    SUPPORTED,
    TABLE,
    VARIABLE,
    WHERE,
)

__all__ = ["Slices", "slice_of"]

# Work of one call of a kernel: about a tenth of a second.
GRAIN = 2**20
_NOTHING = np.zeros(0)


def _starts(counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _unary(
    s: Structure, pool: FloatArray, likelihood: FloatArray, factors: IntArray, axes: npt.NDArray[np.int64]
) -> FloatArray:
    """What is said of single variables: likelihoods, and factors with one free axis, which is at ``axes``."""
    unary = np.array(likelihood) if len(likelihood) else np.zeros(int(s.value_offsets[-1]))
    variable = s.scopes[axes]
    cards = s.cardinalities[variable].astype(np.int64)
    each = np.repeat(np.arange(len(factors)), cards)
    state = np.arange(len(each)) - np.repeat(_starts(cards)[:-1], cards)
    cells = s.table_offsets[factors][each] + s.table_strides[axes][each] * state
    np.add.at(unary, s.value_offsets[variable[each]] + state, pool[cells])
    return unary


def slice_of(s: Structure, pool: FloatArray, likelihood: FloatArray = _NOTHING) -> Slice:
    """The factors of a structure of plain tables that join variables of several states, with room for scratch.

    ``pool`` is the pool that it reads, ``likelihood`` more that is said of single variables, for each of their states.
    """
    n, m = s.n_variables, s.n_factors
    factor = np.repeat(np.arange(m), np.diff(s.scope_offsets))
    free = s.cardinalities[s.scopes] > 1
    width = np.bincount(factor[free], minlength=m)
    axes = np.flatnonzero(free)
    alone = axes[width[factor[axes]] == 1]
    unary = _unary(s, pool, likelihood, factor[alone], alone)
    kept = np.flatnonzero(width > 1)
    axes = axes[width[factor[axes]] > 1]
    scope_offsets, scopes = _starts(width[kept]), np.ascontiguousarray(s.scopes[axes])
    for array in (scope_offsets, scopes):
        array.flags.writeable = False
    entry_offsets, entry_factor = factors_of_variables(n, scope_offsets, scopes)
    # Of each kind as many columns as have names.
    variables, factors = np.zeros((n, FIXED + 1), np.int64), np.zeros((len(kept), MET + 1), np.int64)
    of_axes, entries = np.zeros((len(scopes), STATE + 1), np.int64), np.zeros((len(scopes), LITERAL + 1), np.int64)
    variables[:, FIRST], variables[:, CARD] = s.value_offsets[:-1], s.cardinalities
    variables[:, BEGIN], variables[:, END] = entry_offsets[:-1], entry_offsets[1:]
    factors[:, BEGIN], factors[:, END], factors[:, BASE] = scope_offsets[:-1], scope_offsets[1:], s.table_offsets[kept]
    of_axes[:, VARIABLE], of_axes[:, STRIDE] = scopes, s.table_strides[axes]
    heights, log_tables = np.zeros((len(kept), LOOSE + 1)), np.array(pool)
    if len(kept):
        classify(variables, factors, of_axes, heights, log_tables, int(width.max()))
    # The state of each factor's axis, in the order in which variables list their factors.
    order = np.argsort(scopes, kind="stable")
    owner = np.repeat(np.arange(len(kept)), np.diff(scope_offsets))
    entries[:, FACTOR] = entry_factor
    entries[:, LITERAL] = np.where(factors[owner[order], KIND] == TABLE, -1, of_axes[order, STATE])
    places = np.ones((int(s.value_offsets[-1]), OWNER + 1), np.int64)
    places[:, OWNER] = np.repeat(np.arange(n), s.cardinalities)
    states_of_axes = _starts(s.cardinalities[scopes])
    longest = int((states_of_axes[scope_offsets[1:]] - states_of_axes[scope_offsets[:-1]]).max(initial=0))
    return Slice(
        variables,
        factors,
        of_axes,
        entries,
        places,
        heights,
        unary,
        log_tables,
        np.zeros(len(places) + len(kept) + 1, np.int64),
        np.zeros(len(kept) + 1, np.int64),
        np.zeros((WHERE + 1, n + 1), np.int64),
        np.zeros((SUPPORTED + 1, max(len(kept), longest)), np.int64),
        np.zeros(EPOCHS + 1, np.int64),
    )


@dataclass(eq=False)
class Slices:
    """Sweeps of slices over a problem: a transition of Markov chains."""

    slice: Slice
    leaves: int

    def __post_init__(self) -> None:
        self._own = threading.local()

    @classmethod
    def of(cls, problem: Problem, leaves: int) -> Slices:
        """Lay a problem out."""
        return cls(slice_of(problem.structure, problem.potentials.log_tables, problem.likelihood), leaves)

    def _slice(self) -> Slice:
        """The slice of this thread: what never changes is shared."""
        found = getattr(self._own, "slice", None)
        if found is None:
            shared = {"axes", "entries", "unary", "log_tables"}
            own = {name: array.copy() for name, array in self.slice._asdict().items() if name not in shared}
            found = self._own.slice = self.slice._replace(**own)
        return found

    @property
    def sweeps_at_once(self) -> int:
        """As many as look at about so many axes."""
        return max(1, GRAIN // max(1, len(self.slice.axes) + len(self.slice.places)))

    def advance(self, states: States, stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        self.accumulate(states, stream, sweeps, _NOTHING)

    def accumulate(self, states: States, stream: Any, sweeps: int, sums: FloatArray) -> None:
        """Add up the states of every sweep."""
        advance_slices(self._slice(), self.leaves, stream, states, sweeps, sums)

    def fill(self, states: States, stream: Any, thinning: int, rows: States) -> None:
        """Write the states after every so many sweeps."""
        fill_slices(self._slice(), self.leaves, stream, states, thinning, rows)
