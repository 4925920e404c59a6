"""A locally normalised linear chain with weights: its objective, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.explicit import Explicit
from markovfield.sequence.chain.features import ChainFeatures, ChainWeights, Encoded
from markovfield.sequence.memm.local_chain_kernel import filter_local, follow_local, sum_local

__all__ = ["LocalChain", "LocalLikelihood", "LocalObjective"]

Paths = npt.NDArray[np.int32]
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class LocalChain:
    """Features and their weights.

    Attributes
    ----------
    weights
        ``float64[n_features]``, in the order of `ChainFeatures`.
    """

    features: ChainFeatures
    weights: FloatArray

    @cached_property
    def unpacked(self) -> ChainWeights:
        """The weights in the layout of the kernels."""
        return self.features.unpack(np.asarray(self.weights, np.float64))

    def _given(self, data: Encoded, first: int, last: int) -> Any:
        return data.tokens, data.edges, data.offsets, first, last

    def _weights(self) -> Any:
        f, unpacked = self.features, self.unpacked
        return f.n_labels, f.width, unpacked.rows, unpacked.pairs, unpacked.edges, unpacked.transitions.ravel()

    def decode(self, data: Encoded, mode: int, running: Running | None = None) -> tuple[Paths, FloatArray]:
        """Labels of every token, and the log-probability of each sequence's; see `follow_local` for the modes."""
        paths, values = np.zeros(data.n_tokens, np.int32), np.zeros(data.n_sequences)

        def task(first: int, last: int) -> None:
            size = data.longest(first, last) * self.features.width
            scratch = (np.empty(size), np.zeros(size, np.int32))
            arguments: Any = (
                *self._given(data, first, last),
                *self._weights(),
                np.int64(mode),
                *scratch,
                paths,
                values,
            )
            follow_local(*arguments)

        _run(data, task, running)
        return paths, values

    def posteriors(self, data: Encoded, running: Running | None = None) -> FloatArray:
        """``float64[n_tokens, n_labels]``: probabilities of each token's labels."""
        k = self.features.n_labels
        found = np.zeros(data.n_tokens * k)

        def task(first: int, last: int) -> None:
            scratch = np.empty(data.longest(first, last) * self.features.width)
            arguments: Any = (*self._given(data, first, last), *self._weights(), scratch, found)
            filter_local(*arguments)

        _run(data, task, running)
        return found.reshape(-1, k)

    def log_likelihoods(self, data: Encoded, labels: Paths, running: Running | None = None) -> FloatArray:
        """The log-probability of one label sequence for each sequence, ``float64[n_sequences]``."""
        found = np.zeros(data.n_sequences)
        weights = self._weights()

        def task(first: int, last: int) -> None:
            scratch = np.empty(data.longest(first, last) * self.features.width)
            arguments: Any = (*self._given(data, first, last), labels, *weights, scratch, *[_NONE] * 4, found)
            sum_local(*arguments)

        _run(data, task, running)
        return found

    def explicit(self, data: Encoded, sequence: int) -> Explicit:
        """One sequence written out: the first label, and each label given the one before, as log-probabilities."""
        a, b = int(data.offsets[sequence]), int(data.offsets[sequence + 1])
        k, width = self.features.n_labels, self.features.width
        attributes = self._token_scores(data, a, b)
        scores = np.full((b - a, width), -np.inf)
        scores[:, :k] = 0.0
        moves = np.full((max(b - a - 1, 1), width, width), -np.inf)
        scores[:1, :k] = _log_shares(attributes[:1])
        for i in range(1, b - a):
            table = self.unpacked.transitions[:k, :k] + attributes[i]
            if len(data.edges.offsets):
                at = slice(int(data.edges.offsets[a + i]), int(data.edges.offsets[a + i + 1]))
                own = self.unpacked.edges[data.edges.weight[at]] * (
                    data.edges.values[at] if len(data.edges.values) else 1
                )
                before, after = np.divmod(data.edges.cell[at], width)
                np.add.at(table, (before, after), own)
            moves[i - 1, :k, :k] = _log_shares(table)
        masks = data.masks.reshape(-1, k)[a:b] if len(data.masks) else np.ones((b - a, k), np.uint8)
        scores[:, :k][masks == 0] = -np.inf
        return Explicit(scores, moves, k)

    def to_factor_graph(self, data: Encoded, sequence: int, label_names: list[Any]) -> Any:
        """One sequence as a factor graph: the first label, and each label given the one before."""
        from markovfield.models import MarkovNetwork

        chain = self.explicit(data, sequence)
        k, net = chain.n_labels, MarkovNetwork(dict.fromkeys(range(len(chain.scores)), label_names))
        net.add_factor([0], log_table=chain.scores[0, :k])
        for i in range(1, len(chain.scores)):
            net.add_factor([i - 1, i], log_table=chain.transitions[i - 1, :k, :k])
        return net.compile()

    def _token_scores(self, data: Encoded, a: int, b: int) -> FloatArray:
        from markovfield.sequence.chain.scores_kernel import label_scores

        f = self.features
        out = np.empty((b - a) * f.width)
        label_scores(data.tokens, a, b, f.n_labels, f.width, self.unpacked.rows, self.unpacked.pairs, out)
        return out.reshape(b - a, f.width)[:, : f.n_labels]


class LocalObjective:
    """``-log-likelihood`` of labels, each given the label before, as a function of the weights.

    Parameters
    ----------
    labels
        ``int32[n_tokens]``.
    counts
        Empirical counts of the features.
    """

    def __init__(
        self,
        features: ChainFeatures,
        data: Encoded,
        labels: Paths,
        counts: FloatArray,
        *,
        running: Running | None = None,
    ) -> None:
        self.features, self.data, self.labels, self.counts = features, data, labels, counts
        self.running = running or Running()
        n, width, self.borders = data.n_sequences, features.width, data.shards()
        shards = len(self.borders) - 1
        self.scratch = [np.empty(data.longest(0, n) * width) for _ in range(shards)]
        sizes = (features.n_rows * width, len(features.pair_label), len(features.edge_cell), width**2)
        self.buffers = [[np.zeros(size) for size in sizes] for _ in range(shards)]
        self.sums = np.zeros(n)

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        f, model = self.features, LocalChain(self.features, w)
        weights = model._weights()

        def shard(i: int) -> int:
            for buffer in self.buffers[i]:
                buffer.fill(0.0)
            given = model._given(self.data, self.borders[i], self.borders[i + 1])
            arguments: Any = (*given, self.labels, *weights, self.scratch[i], *self.buffers[i], self.sums)
            sum_local(*arguments)
            return 0

        self.running.side_by_side([partial(shard, i) for i in range(len(self.buffers))])
        rows, pairs, edges, transitions = self.buffers[0]
        for other in self.buffers[1:]:
            for mine, theirs in zip(self.buffers[0], other, strict=True):
                mine += theirs
        return -float(self.sums.sum()), f.pack(rows, pairs, transitions, edges, _NONE) - self.counts


@dataclass(frozen=True)
class LocalLikelihood:
    """The likelihood of labels, each given the label before."""

    def on(self, batch: ChainBatch, *, running: Running, rng: Any = None) -> LocalObjective:
        """The function of weights."""
        return LocalObjective(batch.features, batch.data, batch.labels, batch.counts, running=running)


def _log_shares(scores: FloatArray) -> FloatArray:
    """Rows less the logs of the sums of their exponentials."""
    top = scores.max(axis=1, keepdims=True)
    total: FloatArray = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    return total


def _run(data: Encoded, task: Callable[[int, int], None], running: Running | None) -> None:
    """Run a task for each range of sequences."""

    def step(first: int, last: int) -> int:
        task(first, last)
        return 0

    (running or Running()).side_by_side([partial(step, a, b) for a, b in data.tasks()])
