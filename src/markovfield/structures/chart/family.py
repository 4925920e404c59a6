"""Trees of a grammar over many sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structures.chart.dense_kernel import dense_sums
from markovfield.structures.chart.descent_kernel import chart_descents
from markovfield.structures.chart.inside_kernel import inside, new_chart
from markovfield.structures.chart.lanes_kernel import lane_sums
from markovfield.structures.chart.outside_kernel import chart_sums
from markovfield.structures.chart.rules import RuleTable
from markovfield.structures.chart.ways import Ways
from markovfield.structures.core.family import ByDescent, Parts, Sums, in_shards
from markovfield.structures.core.k_best import k_best

__all__ = ["Charts"]

# Products of matrices do so many operations in about as long as others do `SHARD`, and like to be many.
DENSE_SHARD = 2e7


@dataclass(frozen=True, eq=False)
class Charts(ByDescent):
    """Trees of one grammar over sentences of some lengths.

    The pool: scores of binary rules, then of unary rules, shared by all sentences; then for each sentence scores of
    tokens ``[n, columns]`` and, with ``spans``, of ``[n (n - 1) / 2, branching symbols]``: of what a binary rule makes
    of two or more words, in the order (0, 2), (0, 3), ..., (1, 3), ...; ends are not included. A tree's cells are in
    the order of its nodes, parents before children and left before right, so that they can be read as the tree.
    """

    lengths: IntArray
    rules: RuleTable
    spans: bool

    name: ClassVar[str] = "chart"

    @classmethod
    def of(cls, lengths: IntArray, rules: RuleTable, *, spans: bool = False) -> Self:
        """Sentences of some lengths."""
        n = np.asarray(lengths, np.int64)
        cells = n * len(rules.tokens) + (n * (n - 1) // 2 * len(rules.branching) if spans else 0)
        return cls(offsets_of(cells) + rules.n_rules, n, rules, spans)

    def work(self) -> FloatArray:
        n = self.lengths.astype(np.float64)
        pairs = len(self.rules.arrays(False).pair_right)
        return n**3 / 30 * pairs + n**2 * (pairs + self.rules.n_symbols + 4 * len(self.rules.unary))

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        log_z = np.empty(self.n_instances)
        found = np.zeros(self.n_cells if counts else 0)
        given = np.ones(self.n_instances) if weights is None else np.array(weights, np.float64)
        done = np.zeros(self.n_instances, np.bool_)
        shared: list[FloatArray] = []
        scored = _owned(pool)
        if self.rules.dense.fits:
            shared += self._dense_sums(scored, given, log_z, found, done, running)
        if not done.all():
            shared += self._sparse_sums(scored, given, log_z, found, done, running)
        if not counts:
            return Sums(log_z)
        for own in shared:
            found[: self.rules.n_rules] += own
        return Sums(log_z, found)

    def _dense_sums(
        self, pool: FloatArray, weights: FloatArray, log_z: FloatArray, found: FloatArray, done: Any, running: Running
    ) -> list[FloatArray]:
        """Sums by products of matrices, where numbers are large enough; counts of rules of each shard."""
        grammar = self.rules.dense
        rules = grammar.rules(pool, self.spans)
        if rules is None:
            return []
        totals: dict[int, Any] = {}

        def task(shard: int, first: int, last: int) -> int:
            own = totals[shard] = grammar.totals(rules) if len(found) else rules
            words = (self.cell_offsets, self.lengths, rules, pool, weights, log_z, found, own, done)
            if grammar.few_phrases:
                lane_sums(first + np.argsort(self.lengths[first:last], kind="stable"), *words)
            else:
                dense_sums(first, last, *words)
            return 0

        in_shards(grammar.work(self.lengths), task, running, DENSE_SHARD)
        return [grammar.counts(rules, totals[shard]) for shard in sorted(totals)] if len(found) else []

    def _sparse_sums(
        self, pool: FloatArray, weights: FloatArray, log_z: FloatArray, found: FloatArray, done: Any, running: Running
    ) -> list[FloatArray]:
        """Sums rule by rule for sentences that are not done; counts of rules of each shard."""
        rules, scores = self.rules.arrays(self.spans), self.rules.scores(pool, False)
        shared: dict[int, FloatArray] = {}

        def task(shard: int, first: int, last: int) -> int:
            own = shared[shard] = np.zeros(self.rules.n_rules if len(found) else 0)
            words = (rules, scores, pool, weights, log_z, own, found, np.empty(0))
            chart_sums(first, last, self.cell_offsets, self.lengths, *words, done)
            return 0

        in_shards(np.where(done, 0.0, self.work()), task, running)
        return [shared[shard] for shard in sorted(shared)]

    def nodes(self, pool: FloatArray, instance: int) -> tuple[float, FloatArray, FloatArray]:
        """log Z of a sentence, and ``float64[n (n + 1) / 2, symbols]``: how often each symbol is over each span.

        Of spans in the order (0, 1), (0, 2), ..., (1, 2), ...; in expectation, however a node is made. Then
        ``float64[n, columns]``: how often a word itself is each of its symbols.
        """
        n, symbols = int(self.lengths[instance]), self.rules.n_symbols
        kept = np.zeros(n * (n + 1) // 2 * symbols)
        log_z = np.empty(self.n_instances)
        words = (self.rules.arrays(self.spans), self.rules.scores(pool, False), _owned(pool))
        counts = np.zeros(self.n_cells)
        room = (np.ones(self.n_instances), log_z, np.zeros(self.rules.n_rules), counts, kept)
        done = np.zeros(self.n_instances, np.bool_)
        chart_sums(instance, instance + 1, self.cell_offsets, self.lengths, *words, *room, done)
        begin, columns = int(self.cell_offsets[instance]), len(self.rules.tokens)
        tokens = counts[begin : begin + n * columns].reshape(n, columns)
        return float(log_z[instance]), kept.reshape(-1, symbols), tokens

    def _descents(self, pool: FloatArray, best: bool, size: int, state: Any, running: Running) -> Parts:
        rules, scores = self.rules.arrays(self.spans), self.rules.scores(pool, best)
        found: dict[int, tuple[IntArray, IntArray]] = {}
        scored = _owned(pool)

        def task(shard: int, first: int, last: int) -> int:
            words = (rules, scores, scored, best, size, state)
            found[shard] = chart_descents(first, last, self.cell_offsets, self.lengths, *words)
            return 0

        in_shards(self.work(), task, running)
        pieces = [found[shard] for shard in sorted(found)]
        sizes = np.concatenate([np.zeros(1, np.int64), *(own for _, own in pieces)])
        return Parts(np.cumsum(sizes), np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in pieces)]))

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        rules, scores = self.rules.arrays(self.spans), self.rules.scores(pool, True)
        given = _owned(pool)
        found: list[list[IntArray]] = []
        for instance in range(self.n_instances):
            running.check()
            words, begin = int(self.lengths[instance]), int(self.cell_offsets[instance])
            if words == 0:
                found.append([])
                continue
            chart = new_chart(words, rules, True)
            inside(given, begin, words, rules, scores, True, chart)
            values = chart.values.reshape(-1, self.rules.n_symbols)
            goal = (0, words, self.rules.start)
            ways = Ways(rules, scores, given, begin, words, values, n)
            found.append(k_best(goal, ways.edges, ways.value, given, n, running.quiet))
        return found

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        n, columns = int(self.lengths[instance]), len(self.rules.tokens)
        begin, end = int(self.cell_offsets[instance]), int(self.cell_offsets[instance + 1])
        tokens = pool[begin : begin + n * columns].reshape(n, columns)
        spans = pool[begin + n * columns : end].reshape(-1, len(self.rules.branching))
        i, j = np.triu_indices(n, 1)  # of the first and the last word
        for cell in cells.tolist():
            if cell < begin:
                raise ModelError("evidence can forbid a rule, not require one: require spans with the symbol it makes")
            where = cell - begin
            if where < n * columns:
                tokens[where // columns, np.arange(columns) != where % columns] = -np.inf
                continue
            span, column = divmod(where - n * columns, spans.shape[1])
            a, b = i[span], j[span]
            # A binary tree that has no span across the borders of this one has this one itself.
            spans[((i < a) & (a <= j) & (j < b)) | ((a < i) & (i <= b) & (b < j))] = -np.inf
            spans[span, np.arange(spans.shape[1]) != column] = -np.inf

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(self.lengths[instances], self.rules, spans=self.spans)


def _owned(pool: FloatArray) -> FloatArray:
    """A pool of the one kind that kernels are compiled for."""
    return np.require(pool, np.float64, ["C", "W"])
