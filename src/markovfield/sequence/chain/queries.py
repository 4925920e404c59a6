"""What can be asked of a fitted linear chain: labels, probabilities, draws, weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.features import Encoded
from markovfield.sequence.chain.model import Chain
from markovfield.sequence.chain.weights_report import WeightsReport, weights_report
from markovfield.sequence.text.labels import LabelEncoder, allowed_transitions
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["ChainQueries"]

Fixed = Iterable[Sequence[Any]] | None


class Listed(list[Any]):
    """A list that NumPy takes for a vector of whatever it holds: what scikit-learn's ``cross_val_predict`` joins."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        vector = np.empty(len(self), object)
        for i, item in enumerate(self):
            vector[i] = item
        return vector


class ChainQueries:
    """The questions of `ChainCRF`; every one takes ``edges`` where the model was fitted with them."""

    classes_: list[Any]
    model_: Chain
    vectoriser_: AttributeVectoriser
    edge_vectoriser_: AttributeVectoriser | None
    _encoder: LabelEncoder
    constraints_: str | None
    hidden_states_: int
    n_jobs: int | None

    def _masks(self, lengths: npt.NDArray[np.int64], fixed: Fixed) -> npt.NDArray[np.uint8]:
        """Which labels constraints and ``fixed`` leave, ``uint8[n_tokens * n_states]``; empty where all."""
        if self.constraints_ is None and fixed is None:
            return np.zeros(0, np.uint8)
        ends = np.cumsum(lengths)
        masks = np.ones((int(lengths.sum()), len(self.classes_)), np.uint8)
        if self.constraints_ is not None:
            _, first, last = allowed_transitions(self.classes_, self.constraints_)
            some = lengths > 0
            masks[(ends - lengths)[some]] &= first
            masks[ends[some] - 1] &= last
        if fixed is not None:
            known = self._encoder.transform(fixed, lengths=lengths, missing=True)
            at = np.flatnonzero(known >= 0)
            masks[at] &= (known[at, None] == np.arange(len(self.classes_))).astype(np.uint8)
        return np.repeat(masks, self.hidden_states_, axis=1).ravel()

    def _encoded(self, X: Iterable[Any], edges: Iterable[Any] | None, fixed: Fixed = None) -> Encoded:
        """Sequences for the kernels, with the labels that constraints and ``fixed`` leave."""
        if not hasattr(self, "model_"):  # asked here, for scikit-learn's own check takes as long as a short sequence
            check_is_fitted(self, "model_")
        data = self.vectoriser_.transform(X)
        return self.model_.features.encode(data, self._edges(edges), self._masks(data.lengths, fixed))

    def _edges(self, edges: Iterable[Any] | None) -> SequenceData | None:
        if (edges is None) != (self.edge_vectoriser_ is None):
            missing = "was fitted with edges and needs them here too" if edges is None else "was fitted without edges"
            raise ModelError(f"ChainCRF {missing}: pass edges= to both fit and this method, or to neither")
        return None if edges is None or self.edge_vectoriser_ is None else self.edge_vectoriser_.transform(edges)

    def _names(self) -> npt.NDArray[Any]:
        """The label of each state, by number."""
        names = np.empty(len(self.classes_) * self.hidden_states_, object)
        for k in range(len(names)):
            names[k] = self.classes_[k // self.hidden_states_]
        return names

    def predict(self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None) -> list[list[Any]]:
        """The best labels of each sequence (Viterbi).

        ``fixed`` gives labels that are known, None where they are not: the others are decoded given them. With hidden
        states, these are the labels of the best states; `predict_mpm` sums over states.
        """
        encoded = self._encoded(X, edges, fixed)
        paths, scores = self.model_.decode(encoded, Running(self.n_jobs))
        bad = np.flatnonzero(np.isneginf(scores))
        if len(bad):
            raise ImpossibleEvidenceError(f"sequence {bad[0]} has no labels that its constraints allow")
        return Listed(self._encoder.inverse_transform(paths // self.hidden_states_, encoded.offsets))

    def predict_single(self, x: Any) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([x])[0]

    def predict_n_best(
        self, X: Iterable[Any], n: int = 5, *, edges: Iterable[Any] | None = None
    ) -> list[list[tuple[list[Any], float]]]:
        """For each sequence its ``n`` best label sequences, each with its probability.

        With hidden states they are the best sequences of states, so that labels may come twice.
        """
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ModelError(f"n must be an integer from 1 on, got {n!r}")
        encoded = self._encoded(X, edges)
        totals = self.model_.log_partition(encoded, Running(self.n_jobs))
        names = self._names()
        return [
            [
                (names[path].tolist(), float(np.exp(score - totals[s])))
                for path, score in self.model_.n_best(encoded, s, int(n))
            ]
            for s in range(encoded.n_sequences)
        ]

    def predict_marginals(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None
    ) -> list[list[dict[Any, float]]]:
        """Posterior probabilities of each token's labels, as dicts; `predict_proba` gives them as arrays."""
        return Listed(
            [dict(zip(self.classes_, row, strict=True)) for row in table.tolist()]
            for table in self.predict_proba(X, edges=edges, fixed=fixed)
        )

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """The same for one sequence."""
        return self.predict_marginals([x])[0]

    def predict_proba(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None
    ) -> list[FloatArray]:
        """For each sequence ``float64[length, n_labels]``, labels in the order of ``classes_``.

        NumPy takes the answer for a vector of tables, so that those of several folds can be joined. scikit-learn's
        ``cross_val_predict`` refuses labels of sequences before it comes to any ``predict_proba``: loop over the folds
        of ``KFold`` instead.
        """
        encoded = self._encoded(X, edges, fixed)
        tables = self.model_.posteriors(encoded, Running(self.n_jobs)).labels
        by_label = tables.reshape(len(tables), len(self.classes_), self.hidden_states_).sum(axis=2)
        return Listed(np.split(by_label, encoded.offsets[1:-1])[: encoded.n_sequences])

    def predict_mpm(self, X: Iterable[Any], *, edges: Iterable[Any] | None = None) -> list[list[Any]]:
        """The likeliest label of each token on its own (maximiser of posterior marginals)."""
        return [[self.classes_[k] for k in table.argmax(axis=1)] for table in self.predict_proba(X, edges=edges)]

    def sample(
        self,
        X: Iterable[Any],
        size: int,
        rng: int | np.random.Generator | None = None,
        *,
        edges: Iterable[Any] | None = None,
    ) -> list[list[list[Any]]]:
        """For each sequence ``size`` label sequences drawn from the posterior."""
        if not isinstance(size, (int, np.integer)) or size < 0:
            raise ModelError(f"size must be an integer from 0 on, got {size!r}")
        names = self._names()
        drawn = self.model_.sample(self._encoded(X, edges), int(size), generator_of(rng))
        return [names[paths].tolist() for paths in drawn]

    def entropy(self, X: Iterable[Any], *, edges: Iterable[Any] | None = None) -> FloatArray:
        """Entropy of each sequence's labels, in nats: where it is high, a human should look.

        With hidden states it is the entropy of the states.
        """
        return self.model_.posteriors(self._encoded(X, edges), Running(self.n_jobs)).entropy

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

    def expected_loss(self, X: Iterable[Any], *, edges: Iterable[Any] | None = None) -> FloatArray:
        """How many labels of `predict_mpm` are expected to be wrong in each sequence, by the model's own account."""
        tables = self.predict_proba(X, edges=edges)
        return np.array([float(len(table) - table.max(axis=1, initial=0.0).sum()) for table in tables])

    def score(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        sample_weight: npt.ArrayLike | None = None,
        *,
        edges: Iterable[Any] | None = None,
    ) -> float:
        """The share of tokens whose predicted label is right."""
        true, found = list(y), self.predict(X, edges=edges)
        if list(map(len, true)) != list(map(len, found)):
            raise ModelError("score: X and y have sequences of different lengths")
        weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weights.shape != (len(true),):
            raise ModelError(f"score: sample_weight needs a number for each of {len(true)} sequences")
        right = np.array([sum(a == b for a, b in zip(p, q, strict=True)) for p, q in zip(true, found, strict=True)])
        total = float(weights @ np.array([len(p) for p in true]))
        if not total:
            raise ModelError("score: there are no tokens to score")
        return float(weights @ right) / total

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
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weight of each pair of an attribute and a label that is not zero; with hidden states, the label is a pair."""
        check_is_fitted(self, "model_")
        attributes, labels = self.model_.features.attributes_and_labels()
        names, known = self._state_names(), _attribute_names(self.vectoriser_)
        weights = self.model_.weights[: len(attributes)]
        used = np.flatnonzero(weights)
        listed = zip(attributes[used].tolist(), labels[used].tolist(), weights[used].tolist(), strict=True)
        return {(known[a], names[k]): float(w) for a, k, w in listed}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weight of each pair of neighbouring labels that is not zero."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        return self._named(f.transitions_of(), self.model_.weights[f.borders[1] : f.borders[2]], (names, names))

    @property
    def edge_features_(self) -> dict[tuple[str, Any, Any], float]:
        """Weight of each attribute of edges with the labels before and after that is not zero."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        known = [] if self.edge_vectoriser_ is None else _attribute_names(self.edge_vectoriser_)
        weights = self.model_.weights[f.borders[2] : f.borders[3]]
        return self._named(f.edges_of(), weights, (known, names, names))

    @property
    def triple_features_(self) -> dict[tuple[Any, Any, Any], float]:
        """Weight of each triple of neighbouring labels that is not zero, in a linear chain of second order."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        return self._named(f.triples_of(), self.model_.weights[f.borders[3] :], (names, names, names))

    def _state_names(self) -> list[Any]:
        if self.hidden_states_ == 1:
            return self.classes_
        return [(label, m) for label in self.classes_ for m in range(self.hidden_states_)]

    @staticmethod
    def _named(parts: tuple[Any, ...], weights: FloatArray, names: tuple[list[Any], ...]) -> dict[Any, float]:
        used = np.flatnonzero(weights)
        columns = [[listed[i] for i in part[used].tolist()] for part, listed in zip(parts, names, strict=True)]
        return dict(zip(zip(*columns, strict=True), map(float, weights[used]), strict=True))

    def explain_weights(self, top: int = 20) -> WeightsReport:
        """The transitions and the strongest state features, as a table that prints well; `plot.chain_weights` draws
        it."""
        check_is_fitted(self, "model_")
        return weights_report(self._state_names(), self.transition_features_, self.state_features_, top)


def _attribute_names(vectoriser: AttributeVectoriser) -> list[str]:
    return vectoriser.attributes_ or [str(i) for i in range(vectoriser.n_attributes_)]
