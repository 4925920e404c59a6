"""A linear chain with weights: scores of label sequences, and every question that can be asked of them.

What `ChainCRF` learns ends here; the kernels run on it directly, and `to_factor_graph` gives the same model to every
other method of the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.running import Running
from markovfield.kernels.chain_logs import log_posteriors
from markovfield.kernels.chain_paths import best_paths, draw_paths, n_best_paths
from markovfield.kernels.chain_scores import Tokens, label_scores, mask_scores
from markovfield.kernels.chain_sums import write_posteriors
from markovfield.kernels.random import streams
from markovfield.structured.chain_features import ChainFeatures, ChainWeights

__all__ = ["ChainModel", "ChainPosteriors", "Encoded"]

FloatArray = npt.NDArray[np.float64]
# Tokens of a task: enough to pay for a thread, few enough to stay interruptible.
TASK_TOKENS = 2**14
_NO_MASKS = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Sequences ready for the kernels.

    Attributes
    ----------
    masks
        ``uint8[n_tokens * n_labels]``, zero where a token cannot have a label; empty where every label is possible.
    """

    tokens: Tokens
    offsets: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint8] = field(default_factory=lambda: _NO_MASKS)

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(np.diff(self.offsets).max(initial=0))

    def tasks(self) -> list[tuple[int, int]]:
        """Ranges of sequences, of about `TASK_TOKENS` tokens each."""
        n = max(1, -(-int(self.offsets[-1]) // TASK_TOKENS))
        cuts = np.searchsorted(self.offsets, np.linspace(0, int(self.offsets[-1]), n + 1)[1:-1])
        borders = np.unique([0, *cuts.tolist(), self.n_sequences]).tolist()
        return list(pairwise(borders))


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
class ChainModel:
    """Features and their weights.

    Attributes
    ----------
    weights
        ``float64[n_features]``, in the order of `ChainFeatures`.
    forbidden
        ``bool[n_labels, n_labels]``: transitions that no label sequence may take, or None.
    """

    features: ChainFeatures
    weights: FloatArray
    forbidden: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        laid = self.features.unpack(np.asarray(self.weights, np.float64))
        if self.forbidden is not None:
            k = self.features.n_labels
            laid.transitions[:k, :k][self.forbidden] = -np.inf
        object.__setattr__(self, "_laid", laid)

    @property
    def laid(self) -> ChainWeights:
        """The weights in the layout of the kernels, with forbidden transitions at -inf."""
        laid: ChainWeights = self._laid  # type: ignore[attr-defined]
        return laid

    def scores(self, data: Encoded) -> FloatArray:
        """``float64[n_tokens, n_labels]``: the score of each label at each token, -inf where it is ruled out."""
        f, total = self.features, int(data.offsets[-1])
        out = np.empty(total * f.width)
        label_scores(data.tokens, 0, total, f.n_labels, f.width, self.laid.rows, self.laid.pairs, out)
        mask_scores(data.masks, 0, total, f.n_labels, f.width, out)
        return out.reshape(total, f.width)[:, : f.n_labels]

    def decode(self, data: Encoded, running: Running | None = None) -> tuple[npt.NDArray[np.int32], FloatArray]:
        """The best label of every token (Viterbi), and the score of each sequence; -inf where none is possible."""
        f = self.features
        paths, values = np.zeros(int(data.offsets[-1]), np.int32), np.zeros(data.n_sequences)

        def task(first: int, last: int) -> int:
            longest = int(np.diff(data.offsets[first : last + 1]).max(initial=0)) * f.width
            best_paths(
                data.tokens, data.offsets, first, last, f.n_labels, f.width, self.laid.rows, self.laid.pairs,
                self.laid.transitions.ravel(), data.masks, np.empty(longest), np.zeros(longest, np.int32), paths,
                values,
            )  # fmt: skip
            return 0

        _run(data, task, running)
        return paths, values

    def posteriors(self, data: Encoded, running: Running | None = None) -> ChainPosteriors:
        """Posteriors of labels, log Z and entropy, by forward and backward messages; in log space where they underflow.

        Raises `ImpossibleEvidenceError` where a sequence has no possible labels.
        """
        f, n = self.features, data.n_sequences
        top, potentials, transposed = self._potentials()
        labels, log_partition, entropy = np.zeros(int(data.offsets[-1]) * f.n_labels), np.zeros(n), np.zeros(n)

        def task(first: int, last: int) -> int:
            longest = int(np.diff(data.offsets[first : last + 1]).max(initial=0)) * f.width
            write_posteriors(
                data.tokens, data.offsets, first, last, f.n_labels, f.width, self.laid.rows, self.laid.pairs,
                potentials, transposed, self.laid.transitions.ravel() - top, data.masks, np.empty(longest),
                np.empty(longest), np.empty(longest), labels, log_partition, entropy,
            )  # fmt: skip
            return 0

        _run(data, task, running)
        log_partition += top * np.maximum(np.diff(data.offsets) - 1, 0)
        table = labels.reshape(-1, f.n_labels)
        for s in np.flatnonzero(np.isnan(log_partition)).tolist():
            a, b = int(data.offsets[s]), int(data.offsets[s + 1])
            found = log_posteriors(self._padded(data, s), self.laid.transitions, f.n_labels, table[a:b])
            log_partition[s], entropy[s] = found
            if log_partition[s] == -np.inf:
                raise ImpossibleEvidenceError(f"sequence {s} has no labels that its constraints allow")
        return ChainPosteriors(table, log_partition, entropy)

    def log_partition(self, data: Encoded, running: Running | None = None) -> FloatArray:
        """log Z of each sequence."""
        return self.posteriors(data, running).log_partition

    def n_best(self, data: Encoded, sequence: int, n: int) -> list[tuple[npt.NDArray[np.int32], float]]:
        """The ``n`` best label sequences of one sequence and their scores, best first; fewer where there are fewer."""
        f = self.features
        length = int(data.offsets[sequence + 1] - data.offsets[sequence])
        if length == 0:
            return [(np.zeros(0, np.int32), 0.0)]
        paths, values = np.zeros((n, length), np.int32), np.zeros(n)
        found = n_best_paths(
            self._padded(data, sequence).ravel(), length, f.n_labels, f.width, self.laid.transitions.ravel(), n, paths,
            values,
        )  # fmt: skip
        return [(paths[i], float(values[i])) for i in range(found)]

    def sample(self, data: Encoded, size: int, rng: np.random.Generator) -> list[npt.NDArray[np.int32]]:
        """For each sequence, ``int32[size, length]`` label sequences drawn from the posterior."""
        f = self.features
        _, potentials, _ = self._potentials()
        drawn = []
        keys = streams(rng, data.n_sequences)
        for s in range(data.n_sequences):
            n = int(data.offsets[s + 1] - data.offsets[s])
            paths = np.zeros((size, n), np.int32)
            if n:
                scratch = np.empty(n * f.width)
                padded = self._padded(data, s).ravel()
                if not draw_paths(padded, n, f.n_labels, f.width, potentials, keys[s], scratch, paths):
                    raise ImpossibleEvidenceError(f"sequence {s} has no labels that its constraints allow")
            drawn.append(paths)
        return drawn

    def _padded(self, data: Encoded, s: int) -> FloatArray:
        """Scores of the tokens of one sequence, ``[length, width]``, -inf in the padding."""
        f = self.features
        a, b = int(data.offsets[s]), int(data.offsets[s + 1])
        out = np.empty((b - a) * f.width)
        label_scores(data.tokens, a, b, f.n_labels, f.width, self.laid.rows, self.laid.pairs, out)
        mask_scores(data.masks, a, b, f.n_labels, f.width, out)
        return out.reshape(b - a, f.width)

    def _potentials(self) -> tuple[float, FloatArray, FloatArray]:
        """The largest log transition, and exp of the others less it, both ways round and flat."""
        finite = np.isfinite(self.laid.transitions)
        top = float(self.laid.transitions[finite].max()) if finite.any() else 0.0
        potentials = np.exp(self.laid.transitions - top)
        return top, potentials.ravel(), np.ascontiguousarray(potentials.T).ravel()

    def to_factor_graph(self, data: Encoded, sequence: int, label_names: list[Any]) -> Any:
        """One sequence as a factor graph: variables are positions, states are labels."""
        from markovfield.models import MarkovNetwork

        a, b = int(data.offsets[sequence]), int(data.offsets[sequence + 1])
        if a == b:
            raise ModelError("an empty sequence has no factor graph")
        k = self.features.n_labels
        net = MarkovNetwork(dict.fromkeys(range(b - a), label_names))
        padded = self._padded(data, sequence)[:, :k]
        for i in range(b - a):
            net.add_factor([i], log_table=padded[i])
        if b - a > 1:
            net.add_factors([[i, i + 1] for i in range(b - a - 1)], log_table=self.laid.transitions[:k, :k])
        return net.compile()


def _run(data: Encoded, task: Callable[[int, int], int], running: Running | None) -> None:
    """Run a task over ranges of sequences on threads."""
    if data.n_sequences:
        (running or Running()).side_by_side([partial(task, a, b) for a, b in data.tasks()])
