"""Labelled sequences of a linear chain as one batch: what objectives, solvers and other methods of inference need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.blocks_kernel import aligned
from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.model import ChainPosteriors, chain_model
from markovfield.sequence.chain.objective import ChainObjective, Clamped
from markovfield.sequence.chain.scores_kernel import Tokens, add_posteriors, label_scores
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.operators import LinearTerms

__all__ = ["ChainBatch", "ChainLikelihood"]

Labels = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ChainBatch:
    """Sequences, their labels, and the features that have weights.

    Questions about all label sequences go by the kernels of chains. `as_batch` gives the same as a factor graph, for
    every other objective and method of inference.

    Attributes
    ----------
    labels
        ``int32[n_tokens]``: the label of each token, -1 where it is not known.
    counts
        ``float64[n_weights]``: empirical counts of the features, of sequences that are not ``clamped``.
    weights
        ``float64[n_examples]``: how much sequences count; None is one each.
    clamped
        Where labels are missing or stand for hidden states: masks of the states that each token may have given its
        label, and weights of the sequences for which they count.
    """

    features: ChainFeatures
    data: Encoded
    labels: Labels
    counts: FloatArray
    weights: FloatArray | None = None
    clamped: Clamped | None = None

    @property
    def n_examples(self) -> int:
        """How many sequences there are."""
        return self.data.n_sequences

    @property
    def n_weights(self) -> int:
        """Length of the vector of weights."""
        return self.features.n_features

    def joint_features(self, states: Labels | None = None) -> FloatArray:
        """The features of some states (the labels when None), summed over sequences with their weights."""
        return self.counts if states is None and self.clamped is None else self.as_batch().joint_features(states)

    def decode(
        self, w: FloatArray, *, loss: FloatArray | None = None, running: Running | None = None
    ) -> tuple[Labels, FloatArray]:
        """The states of highest score, and the score of each sequence; ``loss[token, state]`` is added to scores."""
        model = chain_model(self.features, w)
        if loss is None:
            return model.decode(self.data, running)
        f = self.features
        if loss.shape != (self.data.n_tokens, f.n_labels):
            raise ModelError(f"loss needs shape {(self.data.n_tokens, f.n_labels)}, got {loss.shape}")
        # Every token has one more attribute, whose row of weights is its loss.
        rows = aligned(f.width * (f.n_rows + len(loss)))
        rows[: f.width * f.n_rows] = model.unpacked.rows
        rows[f.width * f.n_rows :].reshape(-1, f.width)[:, : f.n_labels] = loss
        augmented = replace(model, features=replace(f, n_rows=f.n_rows + len(loss)))
        vars(augmented)["unpacked"] = replace(model.unpacked, rows=rows)
        return augmented.decode(replace(self.data, tokens=self._tokens_with_loss), running)

    @cached_property
    def _tokens_with_loss(self) -> Tokens:
        """Tokens, each with a reference to a row of its own behind all others."""
        tokens, n = self.data.tokens, self.data.n_tokens
        ends = tokens.row_offsets[1:]
        rows = np.insert(tokens.rows, ends, (self.features.n_rows + np.arange(n)).astype(np.int32))
        values = np.insert(tokens.row_values, ends, 1.0) if len(tokens.row_values) else tokens.row_values
        if len(tokens.pair_values) and not len(tokens.row_values):  # values, and no rows until now
            values = np.ones(n)
        return tokens._replace(row_offsets=tokens.row_offsets + np.arange(n + 1), rows=rows, row_values=values)

    def posteriors(self, w: FloatArray, running: Running | None = None) -> ChainPosteriors:
        """Posteriors of states, log Z and entropy."""
        return chain_model(self.features, w).posteriors(self.data, running)

    def as_batch(self) -> Batch:
        """The same sequences as one factor graph, with the same vector of weights."""
        return self._batch

    @cached_property
    def _batch(self) -> Batch:
        f, data, k = self.features, self.data, self.features.n_labels
        n = data.n_tokens
        starts = f.borders
        steps = _following(data.offsets, 2)
        kinds = [Factors(np.arange(n)[:, None], StateScores(f, data.tokens, n), 0)]
        cells = _compact(f.transition_cells, f.width, k, 2)
        if len(data.edges.offsets):
            kinds.append(Factors(steps, StepScores(k * k, cells, _edge_terms(f, data, steps)), starts[1]))
        else:
            kinds.append(Factors(steps, _selected(k * k, cells), starts[1], np.zeros(len(steps), np.int64)))
        if f.order == 2:
            triples = _following(data.offsets, 3)
            chosen = _selected(k**3, _compact(f.triple_cells, f.width, k, 3))
            kinds.append(Factors(triples, chosen, starts[3], np.zeros(len(triples), np.int64)))
        labels, possible = self.labels, None
        if self.clamped is not None:
            masks = self.clamped[0].reshape(n, k) != 0
            labels = np.where(masks.sum(axis=1) == 1, masks.argmax(axis=1), -1).astype(np.int32)
            possible = masks.ravel() if ((labels < 0) & ~masks.all(axis=1)).any() else None
        base = None
        if len(data.masks):
            base = np.zeros(sum(kind.operator.n_cells for kind in kinds))
            base[: n * k][data.masks == 0] = -np.inf
        return Batch.of(
            np.full(n, k, np.int32), data.offsets, kinds, f.n_features, labels,
            base=base, weights=self.weights, possible=possible,
        )  # fmt: skip


@dataclass(frozen=True)
class ChainLikelihood:
    """The conditional likelihood of linear chains, by their own kernels."""

    def on(self, batch: ChainBatch, *, running: Running, rng: Any = None) -> ChainObjective:
        """The function of weights."""
        return ChainObjective(
            batch.features, batch.data, batch.counts, weights=batch.weights, clamped=batch.clamped, running=running
        )


@dataclass(frozen=True, eq=False)
class StateScores:
    """From the weights of rows and pairs to the scores of all tokens' labels, and back."""

    features: ChainFeatures
    tokens: Tokens
    n_tokens: int

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return self.features.n_state_features

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return self.n_tokens * self.features.n_labels

    def forward(self, w: FloatArray) -> FloatArray:
        """Scores of labels, token after token."""
        f, split = self.features, len(self.features.row_cells)
        rows, scores = aligned(f.n_rows * f.width), np.empty(self.n_tokens * f.width)
        rows[f.row_cells] = w[:split]
        pairs = np.ascontiguousarray(w[split:])
        label_scores(self.tokens, 0, self.n_tokens, f.n_labels, f.width, rows, pairs, scores)
        return scores.reshape(self.n_tokens, f.width)[:, : f.n_labels].ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of labels."""
        f = self.features
        counts = np.zeros((self.n_tokens, f.width))
        counts[:, : f.n_labels] = cells.reshape(self.n_tokens, f.n_labels)
        rows, pairs = aligned(f.n_rows * f.width), np.zeros(len(f.pair_label))
        add_posteriors(self.tokens, 0, self.n_tokens, f.width, counts.ravel(), 1.0, rows, pairs)
        return np.concatenate([rows[f.row_cells], pairs])


@dataclass(frozen=True, eq=False)
class StepScores:
    """From the weights of transitions and of edges to a table for each step, and back.

    Attributes
    ----------
    cells
        Cells of a table that transitions have weights for.
    edges
        ``float64[n_steps * size, n_edge_features]``, sparse: values of attributes of edges.
    """

    size: int
    cells: IntArray
    edges: Any

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return len(self.cells) + int(self.edges.shape[1])

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return int(self.edges.shape[0])

    def forward(self, w: FloatArray) -> FloatArray:
        """Log-potentials, step after step."""
        table = np.zeros(self.size)
        table[self.cells] = w[: len(self.cells)]
        made = np.asarray(self.edges @ w[len(self.cells) :])
        return np.asarray(made.reshape(-1, self.size) + table).ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of cells."""
        return np.concatenate([cells.reshape(-1, self.size).sum(axis=0)[self.cells], self.edges.T @ cells])


def _following(offsets: IntArray, n: int) -> IntArray:
    """``int64[m, n]``: every ``n`` tokens of a sequence that follow each other."""
    length = np.repeat(offsets[1:], np.diff(offsets))
    first = np.flatnonzero(np.arange(len(length)) + n <= length)
    return first[:, None] + np.arange(n)


def _compact(cells: IntArray, width: int, k: int, n: int) -> IntArray:
    """Cells of tables with ``width`` entries along each of ``n`` axes, in tables with ``k`` entries."""
    left, found = cells.astype(np.int64), np.zeros(len(cells), np.int64)
    for place in range(n):
        found += left % width * k**place
        left = left // width
    return found


def _selected(size: int, cells: IntArray) -> LinearTerms:
    """A weight for each of some cells of a table."""
    from scipy.sparse import csr_array

    n = len(cells)
    return LinearTerms(csr_array((np.ones(n), (cells, np.arange(n))), shape=(size, n)))


def _edge_terms(f: ChainFeatures, data: Encoded, steps: IntArray) -> Any:
    """Values of attributes of edges: a row for each cell of each step, a column for each edge feature."""
    from scipy.sparse import csr_array

    edges, size = data.edges, f.n_labels**2
    step = np.full(data.n_tokens, -1, np.int64)
    step[steps[:, 1]] = np.arange(len(steps))
    row = np.repeat(step, np.diff(edges.offsets)) * size
    values = edges.values if len(edges.values) else np.ones(len(edges.weight))
    inside = row >= 0
    where = row + _compact(edges.cell, f.width, f.n_labels, 2)
    return csr_array(
        (values[inside], (where[inside], edges.weight[inside])), shape=(len(steps) * size, len(f.edge_cell))
    )
