"""A hidden Markov model with its numbers: likelihoods, posteriors, best paths and expected counts of sequences.

What `HMM` learns ends here. Sums run in scaled linear space; sequences in which a message would leave the range of
numbers are summed again in log space.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.explicit import Explicit
from markovfield.sequence.chain.features import padded
from markovfield.sequence.hmm.emissions import CategoricalEmissions, Observations
from markovfield.sequence.hmm.gaussian import GaussianEmissions
from markovfield.sequence.hmm.hidden_markov_kernel import hidden_paths, hidden_posteriors, hidden_sums, scale_rows

__all__ = ["Emissions", "Expected", "HiddenMarkov"]

Known = npt.NDArray[np.int32]
Emissions = CategoricalEmissions | GaussianEmissions
NONE_KNOWN = np.zeros(0, np.int32)
# Tokens of a shard, and the most shards: sums are made within a shard and then over shards in order, so that they do
# not depend on the number of threads.
SHARD_TOKENS, MOST_SHARDS = 2**12, 8
# Below this a transition may block a path for good, and what a forward message drops may matter later.
SAFE_TRANSITION = 1e-100
_EMPTY = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected counts of all sequences together.

    Attributes
    ----------
    log_likelihoods
        ``float64[n_sequences]``.
    start
        ``float64[n_states]``: how many sequences start in each state.
    moves
        ``float64[n_states, n_states]``: entry [i, j] counts steps from state i to state j.
    emissions
        Counts of symbols, or moments of values, as the family of emissions has them.
    """

    log_likelihoods: FloatArray
    start: FloatArray
    moves: FloatArray
    emissions: FloatArray


@dataclass(frozen=True, eq=False)
class HiddenMarkov:
    """Where sequences start, how states follow each other, and what they show.

    Attributes
    ----------
    start
        ``float64[n_states]``, adding up to one.
    transitions
        ``float64[n_states, n_states]``: entry [i, j] is the probability of state j after state i.
    """

    start: FloatArray
    transitions: FloatArray
    emissions: Emissions

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return len(self.start)

    @property
    def width(self) -> int:
        """States and padding."""
        return padded(self.n_states)

    @cached_property
    def _padded(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The start, the transitions and the transitions transposed, flat, with zeros in the padding."""
        k, width = self.n_states, self.width
        start, moves = np.zeros(width), np.zeros((width, width))
        start[:k], moves[:k, :k] = self.start, self.transitions
        return start, moves.ravel(), np.ascontiguousarray(moves.T).ravel()

    @cached_property
    def _logs(self) -> tuple[FloatArray, FloatArray]:
        """The logs of the start and of the transitions, padded with -inf."""
        start, moves, _ = self._padded
        with np.errstate(divide="ignore"):
            return np.log(start), np.log(moves)

    @property
    def _risky(self) -> bool:
        return bool(self.transitions.min() < SAFE_TRANSITION)

    def shards(self, observed: Observations) -> list[tuple[int, int]]:
        """Ranges of sequences of about as many tokens each."""
        n = int(min(MOST_SHARDS, max(1, observed.n_tokens // SHARD_TOKENS)))
        cuts = np.searchsorted(observed.offsets, np.linspace(0, observed.n_tokens, n + 1)[1:-1])
        return list(pairwise(np.unique([0, *cuts.tolist(), observed.n_sequences]).tolist()))

    def _run(self, observed: Observations, task: Any, running: Running) -> list[Any]:
        """Run ``task(first, last)`` for each shard; what they gave, in order."""
        found: dict[int, Any] = {}

        def step(first: int, last: int) -> int:
            found[first] = task(first, last)
            return 0

        running.side_by_side([partial(step, a, b) for a, b in self.shards(observed)])
        return [found[first] for first in sorted(found)]

    def _longest(self, observed: Observations, first: int, last: int) -> int:
        return int(observed.lengths[first:last].max(initial=0)) * self.width

    def _potentials(self, observed: Observations) -> _Potentials:
        """The table of potentials: symbols have theirs at once, values get theirs shard by shard."""
        width = self.width
        if isinstance(self.emissions, CategoricalEmissions):
            table = self.emissions.log_table(observed, width)
            shifts = np.empty(len(table) // width)
            scale_rows(table, len(shifts), width, shifts)
            return _Potentials(table, shifts, None)
        return _Potentials(np.empty(observed.n_tokens * width), np.empty(observed.n_tokens), self.emissions)

    def expected(self, observed: Observations, known: Known = NONE_KNOWN, running: Running | None = None) -> Expected:
        """Expected counts given the observations and the states that are known (the E step; Murphy 17.5.2).

        Raises `ImpossibleEvidenceError` where a sequence has probability zero.
        """
        width, k = self.width, self.n_states
        potentials = self._potentials(observed)
        sums = np.zeros(observed.n_sequences)
        gaussian = self.emissions if isinstance(self.emissions, GaussianEmissions) else None
        table = np.zeros(observed.n_tokens * width) if gaussian else _EMPTY

        def task(first: int, last: int) -> list[FloatArray]:
            a, b = int(observed.offsets[first]), int(observed.offsets[last])
            potentials.fill(observed, width, a, b)
            counts = [np.zeros(width), np.zeros(width * width)]
            rows = table if gaussian else np.zeros(len(potentials.table))
            hidden_sums(
                observed.rows, known, observed.offsets, first, last, k, width, potentials.table, *self._padded,
                np.bool_(True), np.empty(self._longest(observed, first, last)), sums, counts[0], counts[1], rows,
            )  # fmt: skip
            for s in (first + np.flatnonzero(np.isnan(sums[first:last]))).tolist():
                self._count_in_logs(observed, known, s, sums, counts, rows)
            return [*counts, gaussian.moments(observed, table, width, a, b) if gaussian else rows]

        parts = self._run(observed, task, running or Running())
        start, moves, shown = (sum(part[i] for part in parts[1:]) + parts[0][i] for i in range(3))
        return Expected(
            self._unshifted(observed, sums, potentials.shifts),
            start[:k],
            moves.reshape(width, width)[:k, :k] * self.transitions,
            shown,
        )

    def _count_in_logs(
        self, observed: Observations, known: Known, s: int, sums: FloatArray, counts: list[FloatArray], rows: FloatArray
    ) -> None:
        """Add what one sequence counts, summed in log space."""
        width = self.width
        total, posteriors, steps = self._in_logs(observed, known, s)
        if total == -np.inf:
            raise ImpossibleEvidenceError(f"sequence {s} has probability zero under the model")
        counts[0] += posteriors[0]
        # Sums over sequences lack the transition probabilities, which are multiplied in at the end.
        moves = np.divide(steps, self._padded[1], out=np.zeros_like(steps), where=self._padded[1] > 0)
        counts[1] += moves
        a, b = int(observed.offsets[s]), int(observed.offsets[s + 1])
        np.add.at(rows.reshape(-1, width), observed.rows[a:b], posteriors)
        sums[s] = total - self._shift(observed, s)

    def log_likelihoods(
        self, observed: Observations, known: Known = NONE_KNOWN, running: Running | None = None
    ) -> FloatArray:
        """The log-probability of each sequence's observations and known states; -inf where it is zero."""
        width, k = self.width, self.n_states
        potentials = self._potentials(observed)
        sums = np.zeros(observed.n_sequences)

        def task(first: int, last: int) -> None:
            potentials.fill(observed, width, int(observed.offsets[first]), int(observed.offsets[last]))
            scratch = np.empty(self._longest(observed, first, last))
            hidden_sums(
                observed.rows, known, observed.offsets, first, last, k, width, potentials.table, *self._padded,
                np.bool_(self._risky), scratch, sums, np.zeros(width), np.zeros(width * width), _EMPTY,
            )  # fmt: skip

        self._run(observed, task, running or Running())
        result = self._unshifted(observed, sums, potentials.shifts)
        for s in np.flatnonzero(np.isnan(sums)).tolist():
            result[s] = self._in_logs(observed, known, s)[0]
        return result

    def posteriors(
        self, observed: Observations, known: Known = NONE_KNOWN, running: Running | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Posteriors of states, ``float64[n_tokens, n_states]``, and log-likelihoods.

        Raises `ImpossibleEvidenceError` where a sequence has probability zero.
        """
        width, k = self.width, self.n_states
        potentials = self._potentials(observed)
        sums, found = np.zeros(observed.n_sequences), np.zeros(observed.n_tokens * k)

        def task(first: int, last: int) -> None:
            potentials.fill(observed, width, int(observed.offsets[first]), int(observed.offsets[last]))
            hidden_posteriors(
                observed.rows, known, observed.offsets, first, last, k, width, potentials.table, *self._padded,
                np.empty(self._longest(observed, first, last)), sums, found,
            )  # fmt: skip

        self._run(observed, task, running or Running())
        table, totals = found.reshape(-1, k), self._unshifted(observed, sums, potentials.shifts)
        for s in np.flatnonzero(np.isnan(sums)).tolist():
            totals[s], own, _ = self._in_logs(observed, known, s)
            if totals[s] == -np.inf:
                raise ImpossibleEvidenceError(f"sequence {s} has probability zero under the model")
            table[int(observed.offsets[s]) : int(observed.offsets[s + 1])] = own[:, :k]
        return table, totals

    def decode(
        self, observed: Observations, known: Known = NONE_KNOWN, running: Running | None = None
    ) -> tuple[Known, FloatArray]:
        """The likeliest states of each sequence (Viterbi), and their log joint probabilities; -inf where zero."""
        width, k = self.width, self.n_states
        table = self.emissions.log_table(observed, width)
        paths, values = np.zeros(observed.n_tokens, np.int32), np.zeros(observed.n_sequences)

        def task(first: int, last: int) -> None:
            longest = self._longest(observed, first, last)
            hidden_paths(
                observed.rows, known, observed.offsets, first, last, k, width, table, *self._logs, np.empty(longest),
                np.zeros(longest, np.int32), paths, values,
            )  # fmt: skip

        self._run(observed, task, running or Running())
        return paths, values

    def explicit(self, observed: Observations, known: Known, s: int, masks: Any = None) -> Explicit:
        """One sequence written out, its start among the scores; ``masks`` are of all tokens, zero where a state is not
        allowed."""
        scores = self._scores(observed, known, s)
        if masks is not None:
            own = masks[int(observed.offsets[s]) : int(observed.offsets[s + 1])]
            scores[:, : self.n_states][own == 0] = -np.inf
        return Explicit(scores, self._logs[1].reshape(1, self.width, self.width), self.n_states)

    def draw(self, length: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """A sequence of states, before anything is observed."""
        sums = np.cumsum(np.vstack([self.start, self.transitions]), axis=1)
        sums /= sums[:, -1:]
        states, row = np.empty(length, np.int64), sums[0]
        for t, u in enumerate(rng.random(length).tolist()):
            states[t] = min(int(np.searchsorted(row, u, side="right")), self.n_states - 1)
            row = sums[1 + states[t]]
        return states

    def _scores(self, observed: Observations, known: Known, s: int) -> FloatArray:
        """Log-potentials of one sequence, ``[length, width]``, the start among them."""
        one = observed.one(s)
        table = self.emissions.log_table(one, self.width).reshape(-1, self.width)
        scores = table[one.rows]
        if len(known):
            own = known[int(observed.offsets[s]) : int(observed.offsets[s + 1])]
            scores[(own[:, None] >= 0) & (own[:, None] != np.arange(self.width))] = -np.inf
        scores[:1] += self._logs[0]
        return scores

    def _in_logs(self, observed: Observations, known: Known, s: int) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, posteriors ``[length, width]`` and expected moves (flat) of one sequence, in log space."""
        total, _, posteriors, steps = self.explicit(observed, known, s).sums()
        return total, posteriors, steps.ravel()

    @staticmethod
    def _unshifted(observed: Observations, sums: FloatArray, shifts: FloatArray) -> FloatArray:
        """Log-likelihoods with the scales of the potentials put back."""
        owner = np.repeat(np.arange(observed.n_sequences), observed.lengths)
        return sums + np.bincount(owner, shifts[observed.rows], observed.n_sequences)

    def _shift(self, observed: Observations, s: int) -> float:
        """What `_unshifted` adds to one sequence."""
        one = observed.one(s)
        tops = self.emissions.log_table(one, self.width).reshape(-1, self.width).max(axis=1)
        return float(tops[one.rows].sum())

    def to_factor_graph(self, observed: Observations, s: int, names: list[Any]) -> Any:
        """One sequence as a factor graph whose log-partition is its log-likelihood: variables are positions."""
        from markovfield.models import MarkovNetwork

        k, scores = self.n_states, self._scores(observed, NONE_KNOWN, s)
        net = MarkovNetwork(dict.fromkeys(range(len(scores)), names))
        moves = self._logs[1].reshape(self.width, self.width)[:k, :k]
        for t, row in enumerate(scores[:, :k]):
            net.add_factor([t], log_table=row)
            if t:
                net.add_factor([t - 1, t], log_table=moves)
        return net.compile()


@dataclass(frozen=True, eq=False)
class _Potentials:
    """Potentials by row, and the logs that were taken out of them."""

    table: FloatArray
    shifts: FloatArray
    lazy: GaussianEmissions | None

    def fill(self, observed: Observations, width: int, a: int, b: int) -> None:
        """Make sure that the rows of tokens ``a`` to ``b`` are there."""
        if self.lazy is not None:
            self.lazy.fill(observed, width, a, b, self.table)
            scale_rows(self.table[a * width : b * width], b - a, width, self.shifts[a:b])
