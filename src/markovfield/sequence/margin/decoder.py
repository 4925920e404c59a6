"""Loss-augmented decoding of linear chains: shards of a batch, each asked by one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import get_ident
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.features import ChainFeatures
from markovfield.sequence.chain.model import ChainModel
from markovfield.sequence.margin.worst_paths_kernel import counted_path, path_differences, worst_paths
from markovfield.structured.losses.counts import CountLoss
from markovfield.structured.losses.loss import Truth
from markovfield.structured.oracles.decoders import Rows

__all__ = ["ChainDecoder", "ChainShard", "Places", "shards_of"]

Paths = npt.NDArray[np.int32]
_NONE = np.zeros(0)


class Places(NamedTuple):
    """Where features lie in the vector of weights, and scratch of its length for each thread.

    Attributes
    ----------
    rows, steps
        ``int64``: for each cell of rows, and of transitions, the place of its weight, or -1.
    pairs, edges
        Where the weights of pairs and of edges begin.
    """

    rows: IntArray
    steps: IntArray
    pairs: int
    edges: int
    scratch: dict[int, tuple[FloatArray, npt.NDArray[np.bool_]]]

    @classmethod
    def of(cls, f: ChainFeatures) -> Places:
        """Those of some features."""
        a, b, c, _, _ = f.borders
        rows, steps = np.full(f.n_rows * f.width, -1, np.int64), np.full(f.width**2, -1, np.int64)
        rows[f.row_cells] = np.arange(a)
        steps[f.transition_cells] = np.arange(b, c)
        return cls(rows, steps, a, c, {})


@dataclass(frozen=True, eq=False)
class ChainShard:
    """Some sequences of a batch, one after the other."""

    batch: ChainBatch
    first: int
    last: int
    places: Places

    @property
    def n_examples(self) -> int:
        """How many sequences there are."""
        return self.last - self.first

    @property
    def n_weights(self) -> int:
        """Length of the vector of weights."""
        return self.batch.n_weights

    def margin_decoder(self, running: Running) -> ChainDecoder:
        """What finds the most violated labels."""
        return ChainDecoder(self)


def shards_of(batch: ChainBatch, size: int) -> list[ChainShard]:
    """A batch in shards of so many sequences."""
    places, n = Places.of(batch.features), batch.n_examples
    return [ChainShard(batch, a, b, places) for a, b in pairwise([*range(0, n, size), n])]


class ChainDecoder:
    """Label sequences of linear chains of first order; see `Decoder`. Exact."""

    exact, sure, gap = True, True, 0.0

    def __init__(self, shard: ChainShard) -> None:
        batch, offsets = shard.batch, shard.batch.data.offsets
        self.shard, self.batch = shard, batch
        self.first, self.last = shard.first, shard.last
        self.n_examples, self.n_weights = shard.n_examples, shard.n_weights
        self._tokens = slice(int(offsets[self.first]), int(offsets[self.last]))
        self.labels = np.ascontiguousarray(batch.labels[self._tokens], np.int32)
        if (self.labels < 0).any():
            raise ModelError("max-margin training needs every label; hidden states are for hidden_states above 1")
        if batch.features.order != 1:
            raise ModelError("max-margin training of linear chains is for order=1")
        n, k = len(self.labels), batch.features.n_labels
        lengths = np.diff(offsets[self.first : self.last + 1])
        self.truth = Truth(
            self.labels.astype(np.int64), np.full(n, k, np.int64), np.repeat(np.arange(self.n_examples), lengths),
            self.n_examples,
        )  # fmt: skip
        self._starts = self.truth.offsets
        longest, f = int(lengths.max(initial=0)), batch.features
        self._scores, self._origin = np.empty(longest * f.width), np.zeros(longest * f.width, np.int32)
        with_edges = len(batch.data.edges.offsets)
        self._moves = np.empty(f.width**2 * max(longest - 1, 0) if with_edges else 0)

    @cached_property
    def slots(self) -> IntArray:
        """The sequence of each label of each token."""
        return np.repeat(self.truth.examples, self.truth.cardinalities)

    def best(self, w: FloatArray, added: FloatArray | None = None) -> Paths:
        f, data = self.batch.features, self.batch.data
        unpacked = f.unpack(w)
        paths, values = np.empty(len(self.labels), np.int32), np.empty(self.n_examples)
        worst_paths(
            data.tokens, data.edges, data.offsets, self.first, self.last, f.n_labels, f.width, unpacked.rows,
            unpacked.pairs, unpacked.edges, unpacked.transitions.ravel(), data.masks, _NONE if added is None else added,
            self._scores, self._origin, self._moves, paths, values,
        )  # fmt: skip
        return paths

    def other(self, w: FloatArray, output: Paths, which: IntArray) -> Paths:
        model, found = ChainModel(self.batch.features, w), output.copy()
        offsets = self.batch.data.offsets
        for i in which.tolist():
            s = self.first + i
            own = slice(int(offsets[s]) - self._tokens.start, int(offsets[s + 1]) - self._tokens.start)
            for path, _ in model.n_best(self.batch.data, s, 2):
                if (path != self.labels[own]).any():
                    found[own] = path
                    break
        return found

    def by_counts(self, loss: CountLoss) -> Callable[[FloatArray], Paths]:
        """The labels of highest score and loss of counts, by a dynamic program that counts."""
        offsets = self.batch.data.offsets.tolist()
        positive = self.labels != loss.negative
        begin = self._tokens.start
        spans = [(offsets[s], offsets[s + 1]) for s in range(self.first, self.last)]
        tables = [loss.costs(int(positive[a - begin : b - begin].sum()), b - a) for a, b in spans]
        f = self.batch.features

        def search(w: FloatArray) -> Paths:
            model, found = ChainModel(f, w), np.zeros(len(self.labels), np.int32)
            for i, ((a, b), table) in enumerate(zip(spans, tables, strict=True)):
                if a == b:
                    continue
                moves = model.moves(self.batch.data, self.first + i)
                own = slice(a - begin, b - begin)
                counted_path(
                    model.token_scores(self.batch.data, a, b).ravel(), b - a, f.n_labels, f.width, moves.ravel(),
                    0 if len(moves) == 1 else f.width**2, self.labels[own], loss.negative, table, found[own],
                )  # fmt: skip
            return found

        return search

    def wrong(self, output: Paths) -> npt.NDArray[np.bool_]:
        return np.bincount(self.truth.examples, output != self.labels, self.n_examples) > 0

    def merged(self, first: Paths, second: Paths, which: npt.NDArray[np.bool_]) -> Paths:
        return np.where(which[self.truth.examples], second, first).astype(np.int32)

    def total(self, slots: FloatArray, output: Paths) -> FloatArray:
        return np.bincount(self.truth.examples, slots[self._starts + output], self.n_examples).astype(np.float64)

    def rows(self, output: Paths) -> Rows:
        places, data, f = self.shard.places, self.batch.data, self.batch.features
        ends = np.zeros(self.n_examples + 1, np.int64)
        own = get_ident()
        if own not in places.scratch:
            places.scratch[own] = (np.zeros(self.n_weights), np.zeros(self.n_weights, np.bool_))
        given = (
            data.tokens, data.edges, data.offsets, self.first, self.last, f.width, places.rows, places.steps,
            places.pairs, places.edges, self.labels, output, *places.scratch[own], ends,
        )  # fmt: skip
        room = path_differences(*given, np.zeros(0, np.int64), _NONE)
        if not room:
            return Rows(ends, np.zeros(0, np.int64), _NONE)
        columns, values = np.empty(room, np.int64), np.empty(room)
        n = path_differences(*given, columns, values)
        return Rows(ends, columns[:n], values[:n])

    def base(self, output: Paths) -> None:
        return None
