"""What can be asked of a fitted linear chain: labels, probabilities, draws, weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.archive import described
from markovfield.sequence.chain.features import Encoded
from markovfield.sequence.chain.model import Chain
from markovfield.sequence.interface.crfsuite import CrfsuiteTagger
from markovfield.sequence.interface.queries import Allowed, Asked, Fixed, Known, SequenceQueries, label_masks
from markovfield.sequence.interface.weights_report import NamedWeights
from markovfield.sequence.text.labels import allowed_transitions
from markovfield.sequence.text.sequences import SequenceData

__all__ = ["ChainQueries"]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Encoded sequences and the linear chain that answers about them."""

    model: Chain
    encoded: Encoded
    running: Running

    @property
    def offsets(self) -> IntArray:
        return self.encoded.offsets

    def decode(self) -> tuple[npt.NDArray[np.int32], FloatArray]:
        return self.model.decode(self.encoded, self.running)

    def posteriors(self) -> FloatArray:
        return self.model.posteriors(self.encoded, self.running).labels

    def log_partitions(self) -> FloatArray:
        return self.model.log_partition(self.encoded, self.running)

    def entropies(self) -> FloatArray:
        return self.model.posteriors(self.encoded, self.running).entropy

    def n_best(self, s: int, n: int) -> list[tuple[npt.NDArray[np.int32], float]]:
        return self.model.n_best(self.encoded, s, n)

    def sample(self, size: int, rng: np.random.Generator) -> list[npt.NDArray[np.int32]]:
        return self.model.sample(self.encoded, size, rng)


class ChainQueries(NamedWeights, SequenceQueries):
    """The questions of `ChainCRF`."""

    model_: Chain
    constraints_: str | None
    n_jobs: int | None

    def _masks(self, lengths: npt.NDArray[np.int64], fixed: Fixed, allowed: Allowed = None) -> npt.NDArray[np.uint8]:
        """Which labels constraints and the two others leave, ``uint8[n_tokens * n_states]``; empty where all."""
        if self.constraints_ is None and fixed is None and allowed is None:
            return np.zeros(0, np.uint8)
        masks = label_masks(self._encoder, lengths, fixed, allowed)
        if self.constraints_ is not None:
            ends = np.cumsum(lengths)
            _, first, last = allowed_transitions(self.classes_, self.constraints_)
            some = lengths > 0
            masks[(ends - lengths)[some]] &= first
            masks[ends[some] - 1] &= last
        return np.repeat(masks, self.hidden_states_, axis=1).ravel()

    def _encoded(
        self, X: Iterable[Any], edges: Iterable[Any] | None, fixed: Fixed = None, allowed: Allowed = None
    ) -> Encoded:
        """Sequences for the kernels, with the labels that are left."""
        if not hasattr(self, "model_"):  # asked here, for scikit-learn's own check takes as long as a short sequence
            check_is_fitted(self, "model_")
        data = self.vectoriser_.transform(X)
        return self.model_.features.encode(data, self._edges(edges), self._masks(data.lengths, fixed, allowed))

    def _ask(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None, allowed: Allowed = None
    ) -> Asked:
        return _Asked(self.model_, self._encoded(X, edges, fixed, allowed), Running(self.n_jobs))

    def _edges(self, edges: Iterable[Any] | None) -> SequenceData | None:
        if (edges is None) != (self.edge_vectoriser_ is None):
            missing = "was fitted with edges and needs them here too" if edges is None else "was fitted without edges"
            raise ModelError(f"ChainCRF {missing}: pass edges= to both fit and this method, or to neither")
        return None if edges is None or self.edge_vectoriser_ is None else self.edge_vectoriser_.transform(edges)

    def sample(
        self, X: Iterable[Any], size: int, rng: int | np.random.Generator | None = None, **known: Unpack[Known]
    ) -> list[list[list[Any]]]:
        """For each sequence ``size`` label sequences drawn from the posterior; keywords are as for `predict`."""
        return self.sample_posterior(X, size, rng, **known)

    def log_likelihood(
        self, X: Iterable[Any], y: Iterable[Sequence[Any]], *, edges: Iterable[Any] | None = None
    ) -> FloatArray:
        """The log-probability of each sequence's labels, ``float64[n_sequences]``; None sums over all labels there.

        It is -inf where the constraints forbid the labels.
        """
        check_is_fitted(self, "model_")
        data, on_edges, labels = self.vectoriser_.transform(X), self._edges(edges), list(y)
        encoded = self.model_.features.encode(data, on_edges, self._masks(data.lengths, None))
        running = Running(self.n_jobs)
        totals = self.model_.log_partition(encoded, running)
        numbers = self._encoder.transform(labels, lengths=data.lengths, missing=True)
        if self.hidden_states_ == 1 and (numbers >= 0).all():
            return self.model_.path_scores(encoded, numbers) - totals
        clamped = replace(encoded, masks=self._masks(data.lengths, labels))
        return self.model_.posteriors(clamped, running, impossible=True).log_partition - totals

    def to_factor_graph(self, x: Any, *, edges: Any = None) -> Any:
        """One sequence as a factor graph, for any other method of the library: variables are positions.

        With hidden states, state m of a label is the pair of the label and m.
        """
        names: list[Any] = list(self.classes_)
        if self.hidden_states_ > 1:
            names = [f"{label}/{m}" for label in self.classes_ for m in range(self.hidden_states_)]
        encoded = self._encoded([x], None if edges is None else [edges])
        return self.model_.to_factor_graph(encoded, 0, names)

    @property
    def tagger_(self) -> CrfsuiteTagger:
        """What sklearn-crfsuite has under this name: asks about one sequence at a time."""
        check_is_fitted(self, "model_")
        return CrfsuiteTagger(self)

    @property
    def size_(self) -> int:
        """How many bytes the fitted model has: its weights, their layout and the names of attributes."""
        check_is_fitted(self, "model_")
        _, arrays = described(self, self.model_.features, self.model_.weights, None)
        return sum(array.nbytes for array in arrays.values())
