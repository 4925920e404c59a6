"""Linear chains whose tokens are scored by a kernel: training data, and the vectoriser of what was learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError
from markovfield.learning.max_margin.kernel_expansion import KernelExpansion
from markovfield.learning.max_margin.kernel_frank_wolfe import KernelPlaces
from markovfield.sequence.chain.features import ChainFeatures
from markovfield.sequence.chain.observed_features import FeatureSet
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["KernelVectoriser", "places_of", "rows_of", "scored_features", "single_tokens"]

PREFIX = "input_"


def rows_of(data: SequenceData) -> Any:
    """Tokens by attributes as a sparse matrix; a dense one where it is not sparse."""
    from scipy.sparse import csr_array

    values = np.ones(len(data.attributes)) if data.values is None else data.values
    shape = (data.n_tokens, data.n_attributes)
    rows = csr_array((values, data.attributes, data.token_offsets), shape=shape)
    rows.sum_duplicates()
    return rows.toarray() if 2 * rows.nnz > shape[0] * shape[1] else rows


def single_tokens(data: SequenceData) -> SequenceData:
    """The same sequences, every token with an attribute that no other has."""
    n = data.n_tokens
    return SequenceData(data.sequence_offsets, np.arange(n + 1), np.arange(n, dtype=np.int32), None, n)


def places_of(features: ChainFeatures, offsets: IntArray) -> KernelPlaces:
    """Where the weights of tokens that have an attribute each lie."""
    nodes: IntArray = np.empty((int(offsets[-1]), features.n_labels), np.int64)
    attributes, labels = features.attributes_and_labels()
    nodes[attributes, labels] = np.arange(len(labels))
    return KernelPlaces(nodes, np.asarray(offsets, np.int64))


def scored_features(features: ChainFeatures, w: FloatArray) -> tuple[ChainFeatures, FloatArray]:
    """Features and weights with an attribute for each label, its score, in place of one for each token."""
    k, known = features.n_labels, FeatureSet.of(features, w)
    states = np.arange(k) * k + np.arange(k), np.ones(k)
    frequency = np.full(k, features.n_state_features, np.int64)
    return FeatureSet(
        known.n_labels, k, known.n_edge_attributes, states, known.transitions, known.edges, known.triples, known.order,
        frequency,
    ).with_layout()  # fmt: skip


@dataclass(eq=False)
class KernelVectoriser:
    """Scores of labels as the attributes of tokens, by the support vectors of a kernel.

    Attributes
    ----------
    inputs
        What reads the attributes that the kernel compares.
    """

    inputs: AttributeVectoriser
    expansion: KernelExpansion

    @property
    def n_attributes_(self) -> int:
        """Labels: each has a score."""
        return self.expansion.coefficients.shape[1]

    @property
    def attributes_(self) -> None:
        """They have no names."""
        return None

    def transform(self, X: Iterable[Any]) -> SequenceData:
        """Sequences with scores of labels."""
        data = self.inputs.transform(X)
        n, k = data.n_tokens, self.n_attributes_
        rows: Any = rows_of(data)
        if isinstance(rows, np.ndarray) != isinstance(self.expansion.vectors, np.ndarray):
            rows = _as(rows, isinstance(self.expansion.vectors, np.ndarray))
        scores = self.expansion.scores(rows)
        attributes = np.tile(np.arange(k, dtype=np.int32), n)
        return SequenceData(data.sequence_offsets, k * np.arange(n + 1), attributes, scores.ravel(), k)

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As a vectoriser of arrays with a column for each label; `inputs_described` has the rest."""
        return AttributeVectoriser().fit([np.zeros((0, self.n_attributes_))]).described()

    def inputs_described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What reads inputs, and the expansion, for archives."""
        about, arrays = self.inputs.described()
        kernel, support = self.expansion.described()
        named = {PREFIX + name: array for name, array in {**arrays, **support}.items()}
        return {"vectoriser": about, "kernel": kernel}, named

    @classmethod
    def restored(cls, about: Any, arrays: Mapping[str, Any], n_labels: int) -> KernelVectoriser:
        """What `inputs_described` described."""
        own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        try:
            inputs = AttributeVectoriser.restored(about["vectoriser"], own)
        except (KeyError, TypeError) as error:
            raise FormatError(f"it does not say where its attributes come from: {error}") from None
        found = cls(inputs, KernelExpansion.restored(about.get("kernel"), own, n_labels))
        if found.expansion.vectors.shape[1] != inputs.n_attributes_:
            raise FormatError("its support vectors do not fit its attributes")
        return found


def _as(rows: Any, dense: bool) -> Any:
    from scipy.sparse import csr_array

    return rows.toarray() if dense else csr_array(rows)
