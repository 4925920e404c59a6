"""Small random chains and what enumeration says of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from markovfield.structured.chain_features import ChainFeatures, observed_features
from markovfield.structured.sequences import SequenceData


@dataclass(frozen=True)
class Chains:
    """Random sequences with labels, features and weights."""

    data: SequenceData
    labels: np.ndarray
    n_labels: int
    features: ChainFeatures
    counts: np.ndarray
    weights: np.ndarray

    def scores(self, s: int) -> np.ndarray:
        """Scores of the labels of the tokens of one sequence, straight from the weights."""
        f, d = self.features, self.data
        attribute, label = f.attributes_and_labels()
        table = np.zeros((d.n_attributes, self.n_labels))
        table[attribute, label] = self.weights[: f.n_state_features]
        rows = []
        for t in range(int(d.sequence_offsets[s]), int(d.sequence_offsets[s + 1])):
            at = slice(int(d.token_offsets[t]), int(d.token_offsets[t + 1]))
            values = np.ones(at.stop - at.start) if d.values is None else d.values[at]
            rows.append(values @ table[d.attributes[at]])
        return np.array(rows).reshape(-1, self.n_labels)

    def transitions(self) -> np.ndarray:
        f = self.features
        table = np.zeros((self.n_labels, self.n_labels))
        table[f.transitions_of()] = self.weights[f.n_state_features :]
        return table

    def paths(
        self, s: int, masks: np.ndarray | None = None, forbidden: np.ndarray | None = None
    ) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """Every label sequence and its score."""
        scores, moves = self.scores(s), self.transitions()
        if masks is not None:
            scores = np.where(masks, scores, -np.inf)
        if forbidden is not None:
            moves = np.where(forbidden, -np.inf, moves)
        n = len(scores)
        paths = list(itertools.product(range(self.n_labels), repeat=n))
        values = [
            sum(scores[i, p[i]] for i in range(n)) + sum(moves[p[i], p[i + 1]] for i in range(n - 1)) for p in paths
        ]
        return paths, np.array(values)


def random_chains(
    rng: np.random.Generator, lengths: list[int], n_labels: int, *, valued: bool, scale: float = 1.0, full: bool = True
) -> Chains:
    """Chains whose tokens have up to five attributes; with many labels, some attributes get rows and some pairs."""
    n = sum(lengths)
    counts = rng.integers(0, 6, size=n)
    # Some attributes are frequent and some rare, as in text.
    attributes = np.minimum(rng.geometric(0.3, size=int(counts.sum())) - 1, 11).astype(np.int32)
    data = SequenceData(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        attributes,
        rng.normal(size=len(attributes)) if valued else None,
        12,
    )
    labels = rng.integers(0, n_labels, size=n).astype(np.int32)
    features, empirical = observed_features(
        data, labels, n_labels, all_states=full and n % 2 == 0, all_transitions=full
    )
    weights = scale * rng.normal(size=features.n_features)
    return Chains(data, labels, n_labels, features, empirical, weights)
