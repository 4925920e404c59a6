"""The engine of two-dimensional Ising models of uniform coupling: 64 spins to a word."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.gibbs.single_site_kernel import WILLING
from markovfield.kernels.random import streams
from markovfield.lattice.bits_kernel import (
    AXES,
    COUNTS,
    FIVE,
    THREE,
    WORDS,
    advance_bits,
    pack_bits,
    unpack_bits,
)
from markovfield.lattice.engines import States, advance_layers
from markovfield.lattice.lattice_model import LatticeModel

__all__ = ["BitEngine"]

# Threads are used where there are at least this many sites.
THREADED_SITES = 2**18
SMALLEST_SIDE = 3
VECTOR_WORDS = 8


def _threshold(probability: float, rest: float) -> int:
    """A probability, or one less a small rest, times 2^64, as far as 64 bits go."""
    exact = int(probability * 2**64) if probability <= 0.5 else 2**64 - int(rest * 2**64)
    return min(exact, 2**64 - 1)


class BitEngine:
    """Checkerboard heat-bath or Metropolis on packed spins.

    Takes two states on two axes of at least three sites, periodic ones even; couplings that differ by axis at most; a
    uniform field or none. With a field, and for Metropolis (which takes no field), both axes need one coupling. Any
    width will do: half a row's sites are packed into words of 64 bits and these padded to a multiple of eight, the
    length of a vector, so widths just below a multiple of 1024 are the fastest.
    """

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator, *, metropolis: bool) -> None:
        self.lattice = lattice
        height, width = lattice.shape
        half = (width + 1) // 2
        self._n = VECTOR_WORDS * -(-half // (64 * VECTOR_WORDS))
        self._starts = _layers(height, max(1, WORDS // self._n), lattice.periodic[0])
        layers = len(self._starts) - 1
        longest = int(np.diff(self._starts).max()) * self._n
        segments = -(-longest // WORDS)
        self._streams = rng.integers(0, 2**64, size=layers * segments * 4 * WORDS, dtype=np.uint64)
        self._singles = streams(rng, layers)
        kinds = self._prepare(metropolis)
        self._how = np.array([*kinds, metropolis, self._n, width, *lattice.periodic], np.int64)
        self._masks = _masks(width, self._n, longest // self._n, lattice.periodic[1])
        self._planes = np.zeros(2 * (height + 2) * self._n, np.uint64)
        pack_bits(np.ascontiguousarray(states.reshape(height, width)), self._planes, self._n)
        if lattice.periodic[0]:
            rows = self._planes.reshape(2, height + 2, self._n)
            rows[:, 0], rows[:, -1] = rows[:, -2], rows[:, 1]

    @staticmethod
    def takes(lattice: LatticeModel, *, metropolis: bool) -> bool:
        """Whether a model is one that can be packed."""
        if (
            len(lattice.shape) != 2
            or lattice.n_states != 2
            or not lattice.uniform
            or min(lattice.shape) < SMALLEST_SIDE
        ):
            return False
        alike = lattice.couplings[0, 0] == lattice.couplings[2, 0]
        fieldless = lattice.field[0, 0] == lattice.field[0, 1]
        return bool(alike and fieldless) if metropolis else bool(alike or fieldless)

    def _prepare(self, metropolis: bool) -> tuple[int, int]:
        """Thresholds by sums of neighbours and by class; answers the classes inside and at free ends of columns."""
        down, across = self.lattice.couplings[0, 0] / 2, self.lattice.couplings[2, 0] / 2
        field = (self.lattice.field[0, 1] - self.lattice.field[0, 0]) / 2

        def probability(v: float, h: float) -> int:
            """Of being up, or of flipping by sums times the spin itself, for sums along columns and rows."""
            pull = down * v + across * h + field
            if metropolis:
                accepted = WILLING * math.exp(min(0.0, -2 * pull))
                return _threshold(accepted, 1 - accepted)
            small = 1 / (1 + math.exp(min(2 * abs(pull), 700.0)))
            return _threshold(small, 1 - small) if pull < 0 else _threshold(1 - small, small)

        sums = range(-2, 3)
        self._table = np.array([[probability(v, h) for h in sums] for v in sums], np.uint64)
        inside, at_end = [0] * 5, [0] * 5
        # By the number of neighbours that are up, or unlike the site: the axes pull alike, so the sum is all on one.
        counted = [probability((4 - 2 * c) * (1 if metropolis else -1), 0) for c in range(5)]
        short = [probability((3 - 2 * c) * (1 if metropolis else -1), 0) for c in range(5)]
        # Of going against the pull of the column, to which the row adds, adds nothing, or is opposed; against that
        # of the row where the column has none; against nothing.
        axes = [probability(*s) for s in ((-2, -2), (-2, 0), (-2, 2), (0, -2), (0, 0))]
        short_axes = [probability(*s) for s in ((-1, -2), (-1, 0), (-1, 2), (0, -2), (0, 0))]
        if metropolis or field:
            kinds, inside, at_end = (FIVE, FIVE), counted, short
        elif down == across:
            strengths = [probability(s, 0) for s in (-4, -2, 0)]
            kinds, inside, at_end = (THREE, AXES), [*strengths, 0, 0], short_axes
        else:
            kinds, inside, at_end = (AXES, AXES), axes, short_axes
        self._thresholds = np.array([inside, at_end], np.uint64)
        return kinds

    def advance(self, sweeps: int, every: int, done: int, jobs: int) -> tuple[FloatArray, IntArray]:
        lattice, layers, measured = self.lattice, len(self._starts) - 1, (done + sweeps) // every
        counts = np.zeros((measured, layers, COUNTS), np.int64)

        def call(span: IntArray) -> None:
            advance_bits(
                self._planes, self._starts, self._streams, self._singles, self._table, self._thresholds,
                self._masks, self._how, span, every, counts,
            )  # fmt: skip

        advance_layers(call, layers, jobs if lattice.n_sites >= THREADED_SITES else 1, sweeps, done)
        total = counts.sum(axis=1)
        tallies = np.stack([lattice.n_sites - total[:, 0], total[:, 0]], axis=1)
        like = [lattice.edges(axis) - total[:, place] for axis, place in ((0, 1), (2, 2))]
        scores = lattice.couplings[0, 0] * like[0] + lattice.couplings[2, 0] * like[1] + tallies @ lattice.field[0]
        return np.asarray(scores, np.float64), tallies

    def states(self) -> States:
        spins = np.empty(self.lattice.shape, np.uint8)
        unpack_bits(self._planes, self._n, spins)
        return spins.ravel()


def _layers(height: int, rows: int, periodic: bool) -> IntArray:
    """The first row of each layer, and the height: layers of some rows; the first and last row alone where free."""
    if periodic:
        return np.array([*range(0, height, rows), height], np.int64)
    return np.array([0, *range(1, height - 1, rows), height - 1, height], np.int64)


def _masks(width: int, n: int, rows: int, periodic: bool) -> npt.NDArray[np.uint64]:
    """See `advance_bits`: which bits are sites of the second colour, have neighbours, are sites of the first."""
    half = (width + 1) // 2
    k = np.arange(half)
    by_parity = np.zeros((2, 4, n), np.uint64)
    for odd in range(2):
        column, other = 2 * k + odd, 2 * k + 1 - odd
        here, side = (column - 1, column + 1) if odd else (column + 1, column - 1)
        inside = column < width
        for place, wanted in enumerate(
            (
                inside,
                inside & (periodic | ((here >= 0) & (here < width))),
                inside & (periodic | ((side >= 0) & (side < width))),
                other < width,
            )
        ):
            bits = wanted.astype(np.uint64) << (k // n).astype(np.uint64)
            np.bitwise_or.at(by_parity[odd, place], k % n, bits)
    rows_of = [np.concatenate([by_parity[(first + i) & 1] for i in range(rows)], axis=1) for first in range(2)]
    return np.stack(rows_of)
