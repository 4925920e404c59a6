"""A linear chain with weights: scores of label sequences, and every question that can be asked of them.

What `ChainCRF` learns ends here; the kernels run on it directly, and `to_factor_graph` gives the same model to every
other method of the library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.sequence.chain.blocks_kernel import aligned
from markovfield.sequence.chain.explicit import Explicit, step_potentials
from markovfield.sequence.chain.features import ChainFeatures, ChainWeights, Encoded
from markovfield.sequence.chain.paths_kernel import best_paths
from markovfield.sequence.chain.scores_kernel import edge_scores, label_scores, mask_scores
from markovfield.sequence.chain.sums_kernel import write_posteriors

__all__ = ["Chain", "ChainModel", "ChainPosteriors", "InLogs", "chain_model"]

Paths = npt.NDArray[np.int32]
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class ChainPosteriors:
    """What all label sequences say together.

    Attributes
    ----------
    labels
        ``float64[n_tokens, n_labels]``: posteriors of each token's labels.
    log_partition, entropy
        ``float64[n_sequences]``.
    """

    labels: FloatArray
    log_partition: FloatArray
    entropy: FloatArray


@dataclass(frozen=True, eq=False)
class InLogs:
    """log Z, entropy and expected counts of one sequence, found in log space; counts are flat, as kernels have them."""

    log_partition: float
    entropy: float
    posteriors: FloatArray
    transitions: FloatArray
    edges: FloatArray = field(default_factory=lambda: _NONE)
    triples: FloatArray = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, eq=False)
class Chain(ABC):
    """Features and their weights.

    Attributes
    ----------
    weights
        ``float64[n_features]`` or ``float32``, in the order of `ChainFeatures`. Best paths of first order are found in
        the precision of the weights, everything else in ``float64``.
    forbidden
        ``bool[n_labels, n_labels]``: transitions that no label sequence may take, or None.
    """

    features: ChainFeatures
    weights: FloatArray
    forbidden: npt.NDArray[np.bool_] | None = None

    @cached_property
    def unpacked(self) -> ChainWeights:
        """The weights in the layout of the kernels, with forbidden transitions at -inf."""
        unpacked = self.features.unpack(np.asarray(self.weights, np.float64))
        if self.forbidden is not None:
            k = self.features.n_labels
            unpacked.transitions[:k, :k][self.forbidden] = -np.inf
        return unpacked

    @cached_property
    def unpacked_for_paths(self) -> ChainWeights:
        """The same in the precision of the weights: half the memory to read where they are ``float32``."""
        if self.weights.dtype != np.float32:
            return self.unpacked
        parts = (
            self.unpacked.rows,
            self.unpacked.pairs,
            self.unpacked.transitions,
            self.unpacked.edges,
            self.unpacked.triples,
        )
        single: Any = [part.astype(np.float32) for part in parts]
        return ChainWeights(*single)

    @abstractmethod
    def potentials(self) -> tuple[float, tuple[FloatArray, ...], FloatArray]:
        """The largest log-potential of a step, exp of the others less it (flat), and the last of these transposed."""

    @abstractmethod
    def explicit(self, data: Encoded, s: int) -> Explicit:
        """One sequence as a linear chain of first order."""

    @abstractmethod
    def in_logs(self, data: Encoded, s: int) -> InLogs:
        """Sums over one sequence in log space, where numbers of any size fit."""

    @abstractmethod
    def _labels_of(self, paths: Paths, length: int) -> Paths:
        """Labels of tokens from paths through the explicit chain."""

    @abstractmethod
    def _decode_task(self, data: Encoded, first: int, last: int, paths: Paths, values: FloatArray) -> None: ...

    @abstractmethod
    def _posteriors_task(
        self, data: Encoded, first: int, last: int, labels: FloatArray, sums: FloatArray, entropies: FloatArray
    ) -> None: ...

    def scores(self, data: Encoded) -> FloatArray:
        """``float64[n_tokens, n_labels]``: the score of each label at each token, -inf where it is ruled out."""
        return self.token_scores(data, 0, data.n_tokens)[:, : self.features.n_labels]

    def token_scores(self, data: Encoded, a: int, b: int) -> FloatArray:
        """Scores of some tokens, ``[b - a, width]``, -inf in the padding."""
        f = self.features
        out = np.empty((b - a) * f.width)
        label_scores(data.tokens, a, b, f.n_labels, f.width, self.unpacked.rows, self.unpacked.pairs, out)
        mask_scores(data.masks, a, b, f.n_labels, f.width, out)
        return out.reshape(b - a, f.width)

    def decode(self, data: Encoded, running: Running | None = None) -> tuple[Paths, FloatArray]:
        """The best label of every token (Viterbi), and the score of each sequence; -inf where none is possible."""
        paths, values = np.zeros(data.n_tokens, np.int32), np.zeros(data.n_sequences)
        _run(data, lambda first, last: self._decode_task(data, first, last, paths, values), running)
        return paths, values

    def posteriors(self, data: Encoded, running: Running | None = None, *, impossible: bool = False) -> ChainPosteriors:
        """Posteriors of labels, log Z and entropy, by forward and backward messages; in log space where they underflow.

        Raises `ImpossibleEvidenceError` where a sequence has no possible labels, unless ``impossible`` ones may be: log
        Z is then -inf, and posteriors and entropy are zero.
        """
        n, k = data.n_sequences, self.features.n_labels
        labels, sums, entropies = np.zeros(data.n_tokens * k), np.zeros(n), np.zeros(n)
        _run(data, lambda first, last: self._posteriors_task(data, first, last, labels, sums, entropies), running)
        sums += self.potentials()[0] * np.maximum(np.diff(data.offsets) - 1, 0)
        table = labels.reshape(-1, k)
        for s in np.flatnonzero(np.isnan(sums)).tolist():
            answer = self.in_logs(data, s)
            if answer.log_partition == -np.inf and not impossible:
                raise ImpossibleEvidenceError(f"sequence {s} has no labels that its constraints allow")
            sums[s], entropies[s] = answer.log_partition, answer.entropy
            own = answer.posteriors.reshape(-1, self.features.width)[:, :k]
            table[int(data.offsets[s]) : int(data.offsets[s + 1])] = own
        return ChainPosteriors(table, sums, entropies)

    def log_partition(self, data: Encoded, running: Running | None = None) -> FloatArray:
        """log Z of each sequence."""
        return self.posteriors(data, running).log_partition

    def n_best(self, data: Encoded, sequence: int, n: int) -> list[tuple[Paths, float]]:
        """The ``n`` best label sequences of one sequence and their scores, best first; fewer where there are fewer."""
        length = int(data.offsets[sequence + 1] - data.offsets[sequence])
        if length == 0:
            return [(np.zeros(0, np.int32), 0.0)]
        found = self.explicit(data, sequence).n_best(n)
        return [(self._labels_of(path[None], length)[0], score) for path, score in found]

    def sample(self, data: Encoded, size: int, rng: np.random.Generator) -> list[Paths]:
        """For each sequence, ``int32[size, length]`` label sequences drawn from the posterior."""
        drawn = []
        keys = streams(rng, data.n_sequences)
        for s in range(data.n_sequences):
            length = int(data.offsets[s + 1] - data.offsets[s])
            if length == 0:
                drawn.append(np.zeros((size, 0), np.int32))
                continue
            paths = self.explicit(data, s).sample(size, keys[s])
            if paths is None:
                raise ImpossibleEvidenceError(f"sequence {s} has no labels that its constraints allow")
            drawn.append(self._labels_of(paths, length))
        return drawn

    def path_scores(self, data: Encoded, labels: Paths) -> FloatArray:
        """The score of one label sequence for each sequence, ``float64[n_sequences]``."""
        n, offsets = data.n_sequences, data.offsets
        owner = np.repeat(np.arange(n), np.diff(offsets))
        total = np.bincount(owner, self.scores(data)[np.arange(len(labels)), labels], n).astype(np.float64)
        for s in range(n):
            path = labels[int(offsets[s]) : int(offsets[s + 1])]
            if len(path) > 1:
                total[s] += self._steps_score(data, s, path)
        return total

    @abstractmethod
    def _steps_score(self, data: Encoded, s: int, path: Paths) -> float:
        """What the steps between the tokens of one sequence add to the score of labels."""

    def to_factor_graph(self, data: Encoded, sequence: int, label_names: list[Any]) -> Any:
        """One sequence as a factor graph: variables are positions, states are labels."""
        from markovfield.models import MarkovNetwork

        a, b = int(data.offsets[sequence]), int(data.offsets[sequence + 1])
        if a == b:
            raise ModelError("an empty sequence has no factor graph")
        net = MarkovNetwork(dict.fromkeys(range(b - a), label_names))
        for i, row in enumerate(self.token_scores(data, a, b)[:, : self.features.n_labels]):
            net.add_factor([i], log_table=row)
        self._add_steps(net, data, sequence, b - a)
        return net.compile()

    @abstractmethod
    def _add_steps(self, net: Any, data: Encoded, s: int, length: int) -> None:
        """Add the factors of the steps between tokens to a network."""


@dataclass(frozen=True, eq=False)
class ChainModel(Chain):
    """A linear chain of first order: pairs of neighbouring labels count, and perhaps attributes of the step between."""

    def potentials(self) -> tuple[float, tuple[FloatArray, ...], FloatArray]:
        finite = np.isfinite(self.unpacked.transitions)
        top = float(self.unpacked.transitions[finite].max()) if finite.any() else 0.0
        potentials = step_potentials(self.unpacked.transitions, top)
        return top, (aligned(potentials),), aligned(potentials.T)

    def explicit(self, data: Encoded, s: int) -> Explicit:
        scores = self.token_scores(data, int(data.offsets[s]), int(data.offsets[s + 1]))
        return Explicit(scores, self.moves(data, s), self.features.n_labels)

    def moves(self, data: Encoded, s: int) -> FloatArray:
        """The log transitions of the steps of one sequence, ``[steps, width, width]``; one step where all are alike."""
        a, b, width = int(data.offsets[s]), int(data.offsets[s + 1]), self.features.width
        if not len(data.edges.offsets) or b - a < 2:
            return self.unpacked.transitions[None]
        moves = np.empty((b - a - 1, width, width))
        edge_scores(data.edges, a, b, width, self.unpacked.transitions.ravel(), self.unpacked.edges, moves.ravel())
        return moves

    def in_logs(self, data: Encoded, s: int) -> InLogs:
        log_partition, entropy, posteriors, expected = self.explicit(data, s).sums()
        edges = np.zeros(len(self.unpacked.edges))
        if len(data.edges.offsets):
            first, last = int(data.offsets[s]), int(data.offsets[s + 1])
            for t in range(first + 1, last):
                at = slice(int(data.edges.offsets[t]), int(data.edges.offsets[t + 1]))
                shares = expected[min(t - first, len(expected)) - 1].ravel()[data.edges.cell[at]]
                values = data.edges.values[at] if len(data.edges.values) else 1.0
                np.add.at(edges, data.edges.weight[at], shares * values)
        return InLogs(log_partition, entropy, posteriors.ravel(), expected.sum(axis=0).ravel(), edges)

    def _labels_of(self, paths: Paths, length: int) -> Paths:
        return paths

    def _decode_task(self, data: Encoded, first: int, last: int, paths: Paths, values: FloatArray) -> None:
        f, unpacked, longest = self.features, self.unpacked_for_paths, data.longest(first, last)
        kind = unpacked.rows.dtype
        moves = np.empty(f.width**2 * max(longest - 1, 0) if len(data.edges.offsets) else 0, kind)
        scores, origin = np.empty(longest * f.width, kind), np.zeros(longest * f.width, np.int32)
        best_paths(
            data.tokens, data.edges, data.offsets, first, last, f.n_labels, f.width, unpacked.rows, unpacked.pairs,
            unpacked.edges, unpacked.transitions.ravel(), data.masks, scores, origin, moves, paths, values,
        )  # fmt: skip

    def _posteriors_task(
        self, data: Encoded, first: int, last: int, labels: FloatArray, sums: FloatArray, entropies: FloatArray
    ) -> None:
        f, unpacked, longest = self.features, self.unpacked, data.longest(first, last)
        top, (potentials,), transposed = self.potentials()
        moves = np.empty(f.width**2 * max(longest - 1, 0) if len(data.edges.offsets) else 0)
        scores, forward, incoming = (np.empty(longest * f.width) for _ in range(3))
        write_posteriors(
            data.tokens, data.edges, data.offsets, first, last, f.n_labels, f.width, unpacked.rows, unpacked.pairs,
            unpacked.edges, potentials, transposed, unpacked.transitions.ravel() - top, data.masks, scores, forward,
            incoming, moves, labels, sums, entropies,
        )  # fmt: skip

    def _steps_score(self, data: Encoded, s: int, path: Paths) -> float:
        moves = self.moves(data, s)
        step = np.zeros(len(path) - 1, np.int64) if len(moves) == 1 else np.arange(len(path) - 1)
        return float(moves[step, path[:-1], path[1:]].sum())

    def _add_steps(self, net: Any, data: Encoded, s: int, length: int) -> None:
        k, moves = self.features.n_labels, self.moves(data, s)
        scopes = [[i, i + 1] for i in range(length - 1)]
        if scopes and len(moves) == 1:
            net.add_factors(scopes, log_table=moves[0, :k, :k])
        elif scopes:
            for scope, table in zip(scopes, moves, strict=True):
                net.add_factor(scope, log_table=table[:k, :k])


def chain_model(features: ChainFeatures, weights: FloatArray, forbidden: npt.NDArray[np.bool_] | None = None) -> Chain:
    """The linear chain of the features' order."""
    if features.order == 2:
        from markovfield.sequence.chain.second_order import SecondOrderModel

        return SecondOrderModel(features, weights, forbidden)
    return ChainModel(features, weights, forbidden)


def _run(data: Encoded, task: Callable[[int, int], None], running: Running | None) -> None:
    """Run a task over ranges of sequences on threads."""

    def once(first: int, last: int) -> int:
        task(first, last)
        return 0

    tasks, running = data.tasks(), running or Running()
    if len(tasks) == 1:  # asking how many cores there are takes longer than a short sequence
        running.alone(partial(once, *tasks[0]))
    elif tasks:
        running.side_by_side([partial(once, a, b) for a, b in tasks])
