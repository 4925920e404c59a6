"""One sequence with all its log-potentials written out: what any linear chain can be asked, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.kernels.random import streams
from markovfield.sequence.chain.logs_kernel import log_draws, log_posteriors
from markovfield.sequence.chain.paths_kernel import draw_paths, n_best_paths
from markovfield.sequence.chain.sums_kernel import LOG_TINY

__all__ = ["Explicit", "OneByOne", "less_the_best", "step_potentials"]

Paths = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Explicit:
    """One sequence with all its log-potentials written out, as a linear chain of first order.

    Attributes
    ----------
    scores
        ``float64[length, width]``.
    transitions
        ``float64[steps, width, width]``; one step stands for all.
    n_labels
        Labels of this chain: those of the model, or pairs of them.
    """

    scores: FloatArray
    transitions: FloatArray
    n_labels: int

    @property
    def stride(self) -> int:
        """Numbers between the transitions of one step and the next."""
        return 0 if len(self.transitions) == 1 else self.transitions[0].size

    def n_best(self, n: int) -> list[tuple[Paths, float]]:
        """The ``n`` best paths and their scores, best first; fewer where there are fewer that are possible."""
        steps, width = self.scores.shape
        if not steps:
            return [(np.zeros(0, np.int32), 0.0)]
        paths, values = np.zeros((n, steps), np.int32), np.zeros(n)
        found = n_best_paths(
            self.scores.ravel(), steps, self.n_labels, width, self.transitions.ravel(), self.stride, n, paths, values
        )
        return [(paths[i], float(values[i])) for i in range(found)]

    def sample(self, size: int, key: Any) -> Paths | None:
        """``int32[size, length]`` paths drawn in proportion to the exponentials of their scores; None if none is."""
        steps, width = self.scores.shape
        paths = np.zeros((size, steps), np.int32)
        if not steps:
            return paths
        top = self.transitions.max(axis=(1, 2), keepdims=True)
        potentials = step_potentials(self.transitions, np.where(np.isfinite(top), top, 0.0)).ravel()
        easy = draw_paths(
            self.scores.ravel().copy(), steps, self.n_labels, width, potentials, self.stride, key,
            np.empty(steps * width), paths,
        )  # fmt: skip
        return paths if easy or log_draws(self.scores, self.transitions, self.n_labels, key, paths) else None

    def sums(self) -> tuple[float, float, FloatArray, FloatArray]:
        """log Z, entropy, posteriors ``[length, width]`` and expected transitions, in log space."""
        posteriors, expected = np.zeros_like(self.scores), np.zeros_like(self.transitions)
        if not len(self.scores):
            return 0.0, 0.0, posteriors, expected
        # The best label of a token, and the best of a step, count zero: what is added up stays small whatever the size
        # of scores.
        scores, tops = less_the_best(self.scores)
        moves, own = less_the_best(self.transitions)
        log_partition, entropy = log_posteriors(scores, moves, self.n_labels, posteriors, expected)
        taken = own.sum() * (len(scores) - 1 if len(own) == 1 else 1)
        return log_partition + float(tops.sum() + taken), entropy, posteriors, expected


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Answers about sequences that are written out one after the other.

    Attributes
    ----------
    offsets
        ``int64[n_sequences + 1]``.
    explicit
        The chain of a sequence, by number; its labels are those of the model.
    impossible
        What is wrong with a sequence that has no possible labels.
    """

    offsets: IntArray
    explicit: Callable[[int], Explicit]
    impossible: str

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    def n_best(self, s: int, n: int) -> list[tuple[Paths, float]]:
        """The ``n`` best labellings of a sequence and their scores."""
        return self.explicit(s).n_best(n)

    def decode(self) -> tuple[Paths, FloatArray]:
        """The best label of every token, and the score of each sequence; -inf where none is possible."""
        paths, values = np.zeros(int(self.offsets[-1]), np.int32), np.full(self.n_sequences, -np.inf)
        for s in range(self.n_sequences):
            for path, value in self.n_best(s, 1):
                paths[int(self.offsets[s]) : int(self.offsets[s + 1])] = path
                values[s] = value
        return paths, values

    def posteriors(self) -> FloatArray:
        """``float64[n_tokens, n_labels]``."""
        tables = [self._sums(s)[2] for s in range(self.n_sequences)]
        return np.concatenate(tables) if tables else np.zeros((0, 0))

    def log_partitions(self) -> FloatArray:
        """log Z of each sequence."""
        return np.array([self._sums(s)[0] for s in range(self.n_sequences)])

    def entropies(self) -> FloatArray:
        """Entropy of each sequence's labels, in nats."""
        return np.array([self._sums(s)[1] for s in range(self.n_sequences)])

    def sample(self, size: int, rng: np.random.Generator) -> list[Paths]:
        """For each sequence, ``int32[size, length]`` labels drawn from the posterior."""
        drawn = []
        for s, key in enumerate(streams(rng, self.n_sequences)):
            paths = self.explicit(s).sample(size, key)
            if paths is None:
                raise ImpossibleEvidenceError(f"sequence {s} {self.impossible}")
            drawn.append(paths)
        return drawn

    def _sums(self, s: int) -> tuple[float, float, FloatArray]:
        chain = self.explicit(s)
        log_partition, entropy, posteriors, _ = chain.sums()
        if log_partition == -np.inf:
            raise ImpossibleEvidenceError(f"sequence {s} {self.impossible}")
        return log_partition, entropy, posteriors[:, : chain.n_labels]


def less_the_best(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-potentials less the largest of each entry along the first axis, and these; zero where none is possible."""
    tops = logs.reshape(len(logs), -1).max(axis=1)
    tops = np.where(np.isfinite(tops), tops, 0.0)
    return logs - tops.reshape(-1, *[1] * (logs.ndim - 1)), tops


def step_potentials(logs: FloatArray, top: float | FloatArray) -> FloatArray:
    """exp of log-potentials less the largest; nan where one is possible and yet too small, which kernels pass on."""
    less = logs - top
    return np.where((less < LOG_TINY) & (logs > -np.inf), np.nan, np.exp(less))
