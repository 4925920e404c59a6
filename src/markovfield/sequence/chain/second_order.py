"""Linear chains of second order: triples of neighbouring labels count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.sequence.chain.explicit import Explicit, less_the_best, step_potentials
from markovfield.sequence.chain.features import Encoded, padded
from markovfield.sequence.chain.model import Chain, InLogs
from markovfield.sequence.chain.second_kernel import best_second_paths, write_second_posteriors

__all__ = ["SecondOrderModel"]

Paths = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SecondOrderModel(Chain):
    """A linear chain of second order; time grows with the cube of the number of labels.

    The rarer questions (n best, draws, sums in log space) go to the equivalent chain of first order, whose labels are
    pairs of neighbouring labels.
    """

    @cached_property
    def steps(self) -> FloatArray:
        """``[width, width, width]``: what label k after j after i adds, with the transition from j to k."""
        return self.unpacked.triples + self.unpacked.transitions

    def potentials(self) -> tuple[float, tuple[FloatArray, ...], FloatArray]:
        top = max(float(np.max(x, initial=-np.inf)) for x in (self.unpacked.transitions, self.steps))
        top = top if np.isfinite(top) else 0.0
        triples = step_potentials(self.steps, top)
        transposed = np.ascontiguousarray(triples.transpose(2, 1, 0)).ravel()
        return top, (step_potentials(self.unpacked.transitions, top).ravel(), triples.ravel()), transposed

    def explicit(self, data: Encoded, s: int) -> Explicit:
        return self._explicit(self.token_scores(data, int(data.offsets[s]), int(data.offsets[s + 1])))

    def _explicit(self, scores: FloatArray) -> Explicit:
        k = self.features.n_labels
        if len(scores) == 1:
            return Explicit(scores, self.unpacked.transitions[None], k)
        pairs = np.tile(scores[1:, None, :k], (1, k, 1))
        pairs[0] += scores[0, :k, None] + self.unpacked.transitions[:k, :k]
        moves = np.full((k, k, k, k), -np.inf)
        labels = np.arange(k)
        moves[:, labels, labels, :] = self.steps[:k, :k, :k]
        n = k * k
        extra = (0, padded(n) - n)  # kernels go through rows a block at a time
        rows = np.pad(pairs.reshape(len(pairs), n), ((0, 0), extra), constant_values=-np.inf)
        return Explicit(rows, np.pad(moves.reshape(1, n, n), ((0, 0), extra, extra), constant_values=-np.inf), n)

    def in_logs(self, data: Encoded, s: int) -> InLogs:
        k, width = self.features.n_labels, self.features.width
        # Less the best before scores of tokens are added to each other, which might lose the smaller ones.
        scores, tops = less_the_best(self.token_scores(data, int(data.offsets[s]), int(data.offsets[s + 1])))
        log_partition, entropy, pairs, expected = self._explicit(scores).sums()
        log_partition += float(tops.sum())
        length = int(data.offsets[s + 1] - data.offsets[s])
        posteriors, transitions = np.zeros((length, width)), np.zeros((width, width))
        triples = np.zeros((width, width, width))
        if length == 1:
            posteriors[:] = pairs
            return InLogs(log_partition, entropy, posteriors.ravel(), transitions.ravel(), triples=triples.ravel())
        tables = pairs[:, : k * k].reshape(-1, k, k)
        posteriors[0, :k], posteriors[1:, :k] = tables[0].sum(axis=1), tables.sum(axis=1)
        transitions[:k, :k] = tables.sum(axis=0)
        labels = np.arange(k)
        triples[:k, :k, :k] = expected[0, : k * k, : k * k].reshape(k, k, k, k)[:, labels, labels, :]
        return InLogs(log_partition, entropy, posteriors.ravel(), transitions.ravel(), triples=triples.ravel())

    def _labels_of(self, paths: Paths, length: int) -> Paths:
        if length == 1:
            return paths
        k = self.features.n_labels
        return np.concatenate([paths[:, :1] // k, paths % k], axis=1)

    def _decode_task(self, data: Encoded, first: int, last: int, paths: Paths, values: FloatArray) -> None:
        f, unpacked, longest = self.features, self.unpacked, data.longest(first, last)
        best_second_paths(
            data.tokens, data.offsets, first, last, f.n_labels, f.width, unpacked.rows, unpacked.pairs,
            unpacked.transitions.ravel(), self.steps.ravel(), data.masks, np.empty(longest * f.width),
            np.zeros(longest * f.width**2, np.int32), paths, values,
        )  # fmt: skip

    def _posteriors_task(
        self, data: Encoded, first: int, last: int, labels: FloatArray, sums: FloatArray, entropies: FloatArray
    ) -> None:
        f, unpacked, longest = self.features, self.unpacked, data.longest(first, last)
        top, (transitions, triples), transposed = self.potentials()
        write_second_posteriors(
            data.tokens, data.offsets, first, last, f.n_labels, f.width, unpacked.rows, unpacked.pairs, transitions,
            triples, transposed, unpacked.transitions.ravel() - top, self.steps.ravel() - top, data.masks,
            np.empty(longest * f.width), np.empty(longest * f.width**2), np.empty(longest * f.width**2), labels, sums,
            entropies,
        )  # fmt: skip

    def _steps_score(self, data: Encoded, s: int, path: Paths) -> float:
        later = self.steps[path[:-2], path[1:-1], path[2:]].sum()
        return float(self.unpacked.transitions[path[0], path[1]] + later)

    def _add_steps(self, net: Any, data: Encoded, s: int, length: int) -> None:
        k = self.features.n_labels
        if length > 1:
            net.add_factor([0, 1], log_table=self.unpacked.transitions[:k, :k])
        if length > 2:
            net.add_factors([[i, i + 1, i + 2] for i in range(length - 2)], log_table=self.steps[:k, :k, :k])
