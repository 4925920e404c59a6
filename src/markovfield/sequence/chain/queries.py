"""What can be asked of a fitted linear chain: labels, probabilities, draws, weights; how data and files are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.archive import described, restored
from markovfield.sequence.chain.features import Encoded
from markovfield.sequence.chain.model import Chain, chain_model
from markovfield.sequence.chain.settings import check_labels
from markovfield.sequence.interface.crfsuite import CrfsuiteTagger
from markovfield.sequence.interface.queries import Allowed, Asked, Fixed, Known, SequenceQueries, label_masks
from markovfield.sequence.interface.weights_report import NamedWeights
from markovfield.sequence.text.labels import LabelEncoder, allowed_transitions
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["ChainQueries", "ChainReader"]


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
        encoded = self._encoded(X, edges, fixed, allowed)
        return _Asked(self.model_, encoded, Running(self.n_jobs))

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
        encoded = self._encoded([x], None if edges is None else [edges])
        names: list[Any] = list(self.classes_)
        if self.hidden_states_ > 1:
            names = [f"{label}/{m}" for label in self.classes_ for m in range(self.hidden_states_)]
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


class ChainReader:
    """Reading of `ChainCRF` and its relatives."""

    hashing: int | None
    classes_: list[Any]
    model_: Chain
    constraints_: str | None
    hidden_states_: int

    def _learn(self, X: Iterable[Any], name: str, given: AttributeVectoriser | None, further: bool) -> SequenceData:
        """Sequences as numbers, by a vectoriser that is kept under a name."""
        if given is not None:
            setattr(self, name, given)
            return given.transform(X)
        known: AttributeVectoriser | None = getattr(self, name, None)
        if isinstance(X, SequenceData):
            if not further or known is None:
                known = AttributeVectoriser().fit([np.zeros((0, X.n_attributes))])
                setattr(self, name, known)
            return known.transform(X)
        if further and known is not None:
            sequences = list(X)
            known = deepcopy(known)  # a fit that fails leaves the one before it whole
            setattr(self, name, known)
            known.partial_fit(sequences)
            return known.transform(sequences)
        fresh = AttributeVectoriser(hashing=self.hashing)
        setattr(self, name, fresh)
        return fresh.fit_transform(X)

    def _labels(
        self, y: Iterable[Sequence[Any]], data: SequenceData, further: bool
    ) -> tuple[LabelEncoder, npt.NDArray[np.int32]]:
        labels = list(y)
        encoder = LabelEncoder().fit(labels)
        check_labels(encoder.classes_)
        if further and encoder.classes_ != self.classes_:
            encoder = LabelEncoder().fit([self.classes_, encoder.classes_])
        if not encoder.classes_:
            raise ModelError("there are no labels to learn from: X and y are empty, or no label is known")
        return encoder, encoder.transform(labels, lengths=data.lengths, missing=True)

    def _forbidden(self) -> npt.NDArray[np.bool_] | None:
        if self.constraints_ is None:
            return None
        forbidden = ~allowed_transitions(self.classes_, self.constraints_)[0]
        return forbidden.repeat(self.hidden_states_, axis=0).repeat(self.hidden_states_, axis=1)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """The model that an archive describes."""
        crf: Any = cls()
        found = restored(about, arrays, set(crf.get_params()))
        crf.set_params(**found.settings)
        crf.classes_ = found.labels
        crf.constraints_, crf.hidden_states_ = crf.constraints, int(crf.hidden_states)
        crf._encoder = LabelEncoder().fit([found.labels])
        if crf._encoder.classes_ != found.labels:
            raise ModelError("its labels are not in order")
        crf.vectoriser_, crf.edge_vectoriser_ = found.vectoriser, found.edge_vectoriser
        crf.model_ = chain_model(found.features, found.weights, crf._forbidden())
        crf.report_ = found.report
        crf.n_iter_ = crf.report_.iterations
        made: Self = crf
        return made
