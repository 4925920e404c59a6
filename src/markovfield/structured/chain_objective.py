"""The regularised negative log-likelihood of a linear-chain CRF and its gradient (Murphy 19.6.3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.inference.running import Running
from markovfield.kernels.chain_scores import Tokens
from markovfield.kernels.chain_sums import sum_chains
from markovfield.structured.chain_features import ChainFeatures

__all__ = ["ChainObjective"]

FloatArray = npt.NDArray[np.float64]
# Sequences are cut into shards of about this many references each, but at most so many: every shard adds up a
# gradient of its own. Neither number depends on the threads, so neither do sums.
SHARD_REFERENCES = 2**16
MOST_SHARDS = 4
_NONE, _NO_MASKS = np.zeros(0), np.zeros(0, np.uint8)


class ChainObjective:
    """``sum of log Z - counts . w + (l2 / 2) |w|^2`` over sequences, as a function of the weights.

    Parameters
    ----------
    counts
        Empirical counts of the features (Murphy 19.41): they hold all that the labels say.
    weights
        Of sequences; none where all weigh one.
    """

    def __init__(
        self,
        features: ChainFeatures,
        tokens: Tokens,
        sequence_offsets: npt.NDArray[np.int64],
        counts: FloatArray,
        *,
        l2: float = 0.0,
        weights: FloatArray | None = None,
        running: Running | None = None,
    ) -> None:
        self.features, self.tokens, self.counts, self.l2 = features, tokens, counts, l2
        self.offsets = np.ascontiguousarray(sequence_offsets, np.int64)
        self.weights = _NONE if weights is None else np.ascontiguousarray(weights, np.float64)
        self.running = running or Running()
        n = len(self.offsets) - 1
        self.log_partitions = np.zeros(n)
        references = tokens.row_offsets[self.offsets] + tokens.pair_offsets[self.offsets]
        shards = int(min(MOST_SHARDS, max(1, references[-1] // SHARD_REFERENCES))) if n else 1
        cuts = np.searchsorted(references, np.linspace(0, references[-1], shards + 1)[1:-1])
        self.borders = [0, *cuts.tolist(), n]
        longest = int(np.diff(self.offsets).max(initial=0)) * features.width
        cells = features.width**2
        self.buffers: list[Any] = [
            (np.zeros(features.n_rows * features.width), np.zeros(len(features.pair_label)), np.zeros(cells))
            for _ in range(shards)
        ]
        self.scratch: list[Any] = [[np.empty(longest) for _ in range(3)] for _ in range(shards)]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        f = self.features
        laid = f.unpack(w)
        top = float(laid.transitions.max(initial=0.0, where=np.isfinite(laid.transitions)))
        transitions = np.exp(laid.transitions - top)
        arguments: Any = (laid.rows, laid.pairs, transitions.ravel(), np.ascontiguousarray(transitions.T).ravel())

        def shard(i: int) -> int:
            for buffer in self.buffers[i]:
                buffer.fill(0.0)
            where = (self.tokens, self.offsets, self.borders[i], self.borders[i + 1], self.weights)
            rest: list[Any] = [*arguments, _NO_MASKS, *self.buffers[i], *self.scratch[i], self.log_partitions]
            return sum_chains(*where, f.n_labels, f.width, *rest)

        self.running.side_by_side([partial(shard, i) for i in range(len(self.buffers))])
        # Each of the steps between tokens lost ``top``.
        steps = np.maximum(np.diff(self.offsets) - 1, 0)
        per_sequence = self.log_partitions + top * steps
        total = float(per_sequence @ self.weights) if len(self.weights) else float(per_sequence.sum())
        rows, pairs, moves = self.buffers[0]
        for other in self.buffers[1:]:
            rows += other[0]
            pairs += other[1]
            moves += other[2]
        gradient = f.pack(rows, pairs, moves * transitions.ravel())
        gradient -= self.counts
        value = total - float(self.counts @ w)
        if self.l2:
            value += 0.5 * self.l2 * float(w @ w)
            gradient += self.l2 * w
        return value, gradient
