"""What the states of a hidden Markov model show: sequences of observations as arrays, and symbols with probabilities.

`markovfield.sequence.hmm.gaussian` has the other family, of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError

__all__ = ["UNKNOWN", "CategoricalEmissions", "Observations", "is_missing", "sequence_offsets", "sequences_of"]

# What to make of a symbol that training has not seen.
UNKNOWN = ("smooth", "rare", "missing", "error")


@dataclass(frozen=True, eq=False)
class Observations:
    """Sequences of observations for the kernels.

    Attributes
    ----------
    offsets
        ``int64[n_sequences + 1]``: sequence s has the tokens from entry s up to entry s + 1.
    rows
        ``int32[n_tokens]``: the row of a table of potentials that each token reads.
    values
        ``float64[n_tokens, d]``, zero where a token was not observed; empty for symbols.
    missing
        ``bool[n_tokens]``: what was not observed; empty for symbols, which have a row of ones for it.
    """

    offsets: IntArray
    rows: npt.NDArray[np.int32]
    values: FloatArray
    missing: npt.NDArray[np.bool_]

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all sequences."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence."""
        return np.diff(self.offsets)

    def one(self, s: int) -> Observations:
        """One of the sequences by itself."""
        a, b = int(self.offsets[s]), int(self.offsets[s + 1])
        if len(self.values):
            own = np.arange(b - a, dtype=np.int32)
            return Observations(np.array([0, b - a]), own, self.values[a:b], self.missing[a:b])
        return Observations(np.array([0, b - a]), self.rows[a:b], self.values, self.missing)


def is_missing(x: Any) -> bool:
    """Whether an observation stands for one that was not made."""
    return x is None or (isinstance(x, (float, np.floating)) and bool(np.isnan(x)))


def sequences_of(X: Any) -> list[Any]:
    """The sequences of X as a list; a single text is no list of sequences."""
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise ModelError(f"X must be a list of sequences, got {type(X).__name__}")
    return list(X)


def sequence_offsets(lengths: Iterable[int]) -> IntArray:
    """Where sequences of these lengths start and end."""
    return offsets_of(list(lengths))


@dataclass(frozen=True, eq=False)
class CategoricalEmissions:
    """Symbols and their probabilities in each state.

    Attributes
    ----------
    symbols
        What can be observed, by column.
    probabilities
        ``float64[n_states, n_columns]``, rows adding up to one. With ``unknown`` ``"smooth"`` or ``"rare"``, a last
        column stands for every symbol that training has not seen.
    """

    symbols: tuple[Any, ...]
    probabilities: FloatArray
    unknown: str = "smooth"

    kind = "categorical"

    def __repr__(self) -> str:
        return f"CategoricalEmissions({self.n_states} states, {len(self.symbols)} symbols, unknown={self.unknown!r})"

    @classmethod
    def learn(cls, X: Iterable[Any], symbols: Iterable[Any] | None, unknown: str) -> CategoricalEmissions:
        """The symbols of some sequences (or those given), without probabilities yet."""
        if symbols is None:
            found = _distinct(_checked(sequences_of(X)))
        else:
            found = list(dict.fromkeys(symbols))
        if not found:
            raise ModelError("there is no observation to learn from: X is empty, or everything in it is missing")
        extra = unknown in ("smooth", "rare")
        return cls(tuple(found), np.zeros((0, len(found) + extra)), unknown)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return len(self.probabilities)

    @property
    def n_rows(self) -> int:
        """Rows of the table: one for each column, and one of ones for what is missing."""
        return self.probabilities.shape[1] + 1

    def encode(self, X: Iterable[Any]) -> Observations:
        """Sequences of symbols as numbers; None and nan are missing."""
        sequences = _checked(sequences_of(X))
        offsets = sequence_offsets(map(len, sequences))
        none: Any = (np.zeros((0, 0)), np.zeros(0, np.bool_))
        if sequences and all(isinstance(s, np.ndarray) and s.dtype.kind in "iu" for s in sequences):
            numbers = self._from_integers(np.concatenate(sequences))
            if numbers is not None:
                return Observations(offsets, numbers, *none)
        table: dict[Any, int] = {None: self.n_rows - 1}
        table.update((symbol, i) for i, symbol in enumerate(self.symbols))
        tokens = chain.from_iterable(s.tolist() if isinstance(s, np.ndarray) else s for s in sequences)
        numbers = np.empty(int(offsets[-1]), np.int32)
        for t, token in enumerate(tokens):
            try:
                number = table.get(token)
            except TypeError:
                raise ModelError(
                    f"observations must be hashable symbols, got {token!r}; emissions='gaussian' takes arrays"
                ) from None
            if number is None:
                number = self.n_rows - 1 if is_missing(token) else self._unseen(token)
            numbers[t] = number
        return Observations(offsets, numbers, *none)

    def _from_integers(self, flat: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
        """Columns of integers, all at once; None where symbols are not integers."""
        if any(type(symbol) is not int for symbol in self.symbols):
            return None
        names = np.array(self.symbols, np.int64)
        low, span = int(names.min()), int(names.max()) - int(names.min()) + 1
        if span <= 4 * len(names) + 1024:
            columns = np.full(span + 1, -1, np.int32)  # a last entry for what lies outside
            columns[names - low] = np.arange(len(names))
            if len(flat) and low <= flat.min() and flat.max() < low + span:
                found = columns[flat - low] if low else columns[flat]
            else:
                found = columns[np.where((flat < low) | (flat >= low + span), low + span, flat) - low]
        else:
            order = np.argsort(names)
            at = np.minimum(np.searchsorted(names, flat, sorter=order), len(names) - 1)
            found = np.where(names[order[at]] == flat, order[at], -1).astype(np.int32)
        for t in np.flatnonzero(found < 0).tolist():
            found[t] = self._unseen(int(flat[t]))
        return found

    def _unseen(self, symbol: Any) -> int:
        """The row of a symbol that training has not seen."""
        if self.unknown == "missing":
            return self.n_rows - 1
        if self.unknown == "error":
            raise ModelError(
                f"the symbol {symbol!r} was not seen in training; unknown='smooth', 'rare' or 'missing' takes it"
            )
        if self.n_states and not self.probabilities[:, -1].any():
            raise ModelError(
                f"the symbol {symbol!r} was not seen in training and has probability zero: give HMM an "
                "emission_smoothing above 0, or unknown='missing'"
            )
        return self.probabilities.shape[1] - 1

    def log_table(self, observed: Observations, width: int) -> FloatArray:
        """``float64[n_rows * width]``: logs of probabilities by row, -inf in the padding."""
        table = np.full((self.n_rows, width), -np.inf)
        with np.errstate(divide="ignore"):
            table[:-1, : self.n_states] = np.log(self.probabilities.T)
        table[-1, : self.n_states] = 0.0
        return table.ravel()

    def mean_start(self, observed: Observations, n_states: int, rng: np.random.Generator) -> CategoricalEmissions:
        """Probabilities to start Baum-Welch from: those of all observations together, shaken."""
        seen = np.bincount(observed.rows, minlength=self.n_rows)[:-1] + 0.5
        shaken = seen * rng.gamma(2.0, size=(n_states, len(seen)))
        return replace(self, probabilities=shaken / shaken.sum(axis=1, keepdims=True))

    def counted(self, observed: Observations, known: npt.NDArray[np.int32], width: int) -> FloatArray:
        """How often each known state shows each row, ``float64[n_rows * width]``."""
        at = np.flatnonzero(known >= 0)
        cells = observed.rows[at].astype(np.int64) * width + known[at]
        return np.bincount(cells, minlength=self.n_rows * width).astype(np.float64)

    def updated(
        self, counts: FloatArray, n_states: int, smoothing: float, regularisation: FloatArray
    ) -> CategoricalEmissions:
        """The probabilities that fit counts ``[n_rows * width]`` best; a state without any keeps what it had."""
        weights = counts.reshape(self.n_rows, -1)[:-1, :n_states].T.copy()
        weights[:, : len(self.symbols) if self.unknown == "rare" else None] += smoothing
        totals = weights.sum(axis=1, keepdims=True)
        before = self.probabilities if self.n_states else np.full_like(weights, 1.0 / weights.shape[1])
        return replace(self, probabilities=np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), before))

    def finished(self, counts: FloatArray, smoothing: float) -> CategoricalEmissions:
        """With ``unknown="rare"``, give unseen symbols the place of those seen once: states that show many of these
        will show more."""
        if self.unknown != "rare":
            return self
        weights = counts.reshape(self.n_rows, -1)[:-1, : self.n_states].T
        once = weights[:, np.round(weights.sum(axis=0), 6) == 1.0].sum(axis=1)
        share = (once + smoothing) / np.maximum(weights.sum(axis=1) + once + smoothing * weights.shape[1], 1e-300)
        probabilities = self.probabilities * (1.0 - share[:, None])
        probabilities[:, -1] = share
        return replace(self, probabilities=probabilities)

    def log_prior(self, smoothing: float, regularisation: FloatArray) -> float:
        """What `updated` maximises beside the likelihood."""
        if not smoothing:
            return 0.0
        columns = len(self.symbols) if self.unknown == "rare" else self.probabilities.shape[1]
        return smoothing * float(np.log(self.probabilities[:, :columns]).sum())

    def draw(self, states: npt.NDArray[Any], rng: np.random.Generator) -> list[Any]:
        """A symbol for each state; unseen symbols are not drawn."""
        seen = self.probabilities[:, : len(self.symbols)]
        sums = np.cumsum(seen / seen.sum(axis=1, keepdims=True), axis=1)
        u = rng.random(len(states))
        columns = np.zeros(len(states), np.int64)
        for k in np.unique(states).tolist():
            at = states == k
            columns[at] = np.minimum(np.searchsorted(sums[k], u[at], side="right"), len(self.symbols) - 1)
        return [self.symbols[c] for c in columns.tolist()]


def _checked(sequences: list[Any]) -> list[Sequence[Any] | npt.NDArray[Any]]:
    """Each sequence as something with a length."""
    result: list[Any] = []
    for s, sequence in enumerate(sequences):
        if isinstance(sequence, np.ndarray):
            if sequence.ndim != 1:
                raise ModelError(
                    f"sequence {s} is an array of {sequence.ndim} dimensions; symbols need one, "
                    "and emissions='gaussian' takes two"
                )
            result.append(sequence)
        elif isinstance(sequence, (list, tuple, str)):
            result.append(sequence)
        elif isinstance(sequence, Iterable):
            result.append(list(sequence))
        else:
            raise ModelError(f"sequence {s} must be a list of symbols, got {sequence!r}")
    return result


def _distinct(sequences: Sequence[Any]) -> list[Any]:
    """The symbols that occur, sorted where they can be, else as they come."""
    if sequences and all(isinstance(s, np.ndarray) and s.dtype.kind in "iu" for s in sequences):
        whole: list[Any] = np.unique(np.concatenate(sequences)).tolist()
        return whole
    try:
        seen = dict.fromkeys(chain.from_iterable(s.tolist() if isinstance(s, np.ndarray) else s for s in sequences))
    except TypeError:
        raise ModelError("observations must be hashable symbols; emissions='gaussian' takes arrays") from None
    symbols = [symbol for symbol in seen if not is_missing(symbol)]
    try:
        return sorted(symbols)
    except TypeError:
        return symbols
