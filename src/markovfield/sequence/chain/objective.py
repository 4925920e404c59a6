"""The negative log-likelihood of a linear-chain CRF and its gradient (Murphy 19.6.3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.blocks_kernel import aligned
from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.scores_kernel import add_posteriors
from markovfield.sequence.chain.second_kernel import sum_second_chains
from markovfield.sequence.chain.sums_kernel import sum_chains

__all__ = ["ChainObjective", "Clamped"]

_NONE = np.zeros(0)
# Masks of tokens that keep the labels that are known, and what each sequence weighs: zero where ``counts`` know it all.
Clamped = tuple[npt.NDArray[np.uint8], FloatArray]


class ChainObjective:
    """``sum of log Z - counts . w`` over sequences, as a function of the weights.

    Where labels are hidden or missing, the sum over what is possible given the known ones takes the place of the
    counts: ``log Z - log Z(clamped)``, with expected counts of both (Murphy 19.5.2).

    Parameters
    ----------
    counts
        Empirical counts of the features (Murphy 19.41): they hold all that the labels of fully labelled sequences say.
    data
        Sequences; what their masks leave out is left out of log Z.
    weights
        Of sequences; none where all weigh one.
    clamped
        Masks and weights of the sequences that are to be summed given their known labels.
    """

    def __init__(
        self,
        features: ChainFeatures,
        data: Encoded,
        counts: FloatArray,
        *,
        weights: FloatArray | None = None,
        clamped: Clamped | None = None,
        running: Running | None = None,
    ) -> None:
        self.features, self.data, self.counts = features, data, counts
        weights = _NONE if weights is None else np.ascontiguousarray(weights, np.float64)
        # Runs over the data: masks, and weights of sequences; the second takes away what the first adds.
        self.passes = [(data.masks, weights)]
        if clamped is not None:
            self.passes.append((clamped[0], -np.ascontiguousarray(clamped[1], np.float64)))
        self.running = running or Running()
        n, width = data.n_sequences, features.width
        self.log_partitions = [np.zeros(n) for _ in self.passes]
        self.borders = data.shards()
        shards = len(self.borders) - 1
        longest, cells = data.longest(0, n), width**2
        message = cells if features.order == 2 else width
        moves = cells * max(longest - 1, 0) if len(data.edges.offsets) else 0
        self.scratch = [
            [aligned(longest * width), *(aligned(longest * message) for _ in range(2)), aligned(moves)]
            for _ in range(shards)
        ]
        last = cells * width if features.order == 2 else 0
        sizes = (features.n_rows * width, len(features.pair_label), cells, len(features.edge_cell), last)
        self.buffers = [[aligned(size) for size in sizes] for _ in range(shards)]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        f = self.features
        model = chain_model(f, w)
        top, potentials, transposed = model.potentials()
        unpacked: Any = (model.unpacked.rows, model.unpacked.pairs)

        def shard(i: int) -> int:
            rows, pairs, transitions, edges, triples = self.buffers[i]
            scores, forward, incoming, moves = self.scratch[i]
            for buffer in self.buffers[i]:
                buffer.fill(0.0)
            for (masks, weights), sums in zip(self.passes, self.log_partitions, strict=True):
                where = (self.data.offsets, self.borders[i], self.borders[i + 1], weights, f.n_labels, f.width)
                arguments: list[Any]
                if f.order == 2:
                    arguments = [
                        self.data.tokens, *where, *unpacked, *potentials, transposed, masks, rows, pairs, transitions,
                        triples, scores, forward, incoming, sums,
                    ]  # fmt: skip
                    sum_second_chains(*arguments)
                else:
                    arguments = [
                        self.data.tokens, self.data.edges, *where, *unpacked, model.unpacked.edges, *potentials,
                        transposed, masks, rows, pairs, edges, transitions, scores, forward, incoming, moves, sums,
                    ]  # fmt: skip
                    sum_chains(*arguments)
            return 0

        self.running.side_by_side([partial(shard, i) for i in range(len(self.buffers))])
        rows, pairs, transitions, edges, triples = self.buffers[0]
        for other in self.buffers[1:]:
            for mine, theirs in zip(self.buffers[0], other, strict=True):
                mine += theirs
        if f.order == 2:
            triples *= np.nan_to_num(potentials[1])
            transitions += triples.reshape(f.width, -1).sum(axis=0)
        elif not len(self.data.edges.offsets):
            transitions *= np.nan_to_num(potentials[0])
        total = sum(self._total(model, top, i) for i in range(len(self.passes)))
        gradient = f.pack(rows, pairs, transitions, edges, triples)
        gradient -= self.counts
        return total - float(self.counts @ w), gradient

    def _total(self, model: Any, top: float, i: int) -> float:
        """The weighted sum of log Z of one pass; sequences that underflowed are done again in log space."""
        (masks, weights), sums, offsets = self.passes[i], self.log_partitions[i], self.data.offsets
        # Each of the steps between tokens lost ``top``.
        sums = sums + top * np.maximum(np.diff(offsets) - 1, 0) * (weights != 0 if len(weights) else 1)
        rows, pairs, transitions, edges, triples = self.buffers[0]
        for s in np.flatnonzero(np.isnan(sums)).tolist():
            scale = float(weights[s]) if len(weights) else 1.0
            answer = model.in_logs(Encoded(self.data.tokens, offsets, masks, self.data.edges), s)
            sums[s] = answer.log_partition
            a, b = int(offsets[s]), int(offsets[s + 1])
            add_posteriors(self.data.tokens, a, b, model.features.width, answer.posteriors, scale, rows, pairs)
            transitions += scale * answer.transitions
            if len(edges):
                edges += scale * answer.edges
            if len(triples):
                triples += scale * answer.triples
        return float(sums @ weights) if len(weights) else float(sums.sum())
