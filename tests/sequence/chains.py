"""Small random chains and what enumeration says of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.observed_features import observed_features
from markovfield.sequence.text.sequences import SequenceData

Path = tuple[int, ...]


@dataclass(frozen=True)
class Chains:
    """Random sequences with labels, features and weights; ``settings`` are those of the features."""

    data: SequenceData
    edges: SequenceData | None
    labels: np.ndarray
    n_labels: int
    features: ChainFeatures
    counts: np.ndarray
    weights: np.ndarray
    settings: dict

    def span(self, s: int) -> slice:
        return slice(int(self.data.sequence_offsets[s]), int(self.data.sequence_offsets[s + 1]))

    def encoded(self, masks: np.ndarray | None = None) -> Encoded:
        if masks is None:
            return self.features.encode(self.data, self.edges)
        return self.features.encode(self.data, self.edges, masks.astype(np.uint8).ravel())

    def scores(self, s: int) -> np.ndarray:
        """Scores of the labels of the tokens of one sequence, straight from the weights."""
        f = self.features
        attribute, label = f.attributes_and_labels()
        table = np.zeros((self.data.n_attributes, f.n_labels))
        table[attribute, label] = self.weights[: f.n_state_features]
        rows = [_gathered(self.data, t, table) for t in range(self.span(s).start, self.span(s).stop)]
        return np.array(rows).reshape(-1, f.n_labels)

    def moves(self, s: int) -> np.ndarray:
        """Weights of label j after label i for each step of one sequence."""
        f = self.features
        start, stop = f.borders[1:3]
        table = np.zeros((f.n_labels, f.n_labels))
        table[f.transitions_of()] = self.weights[start:stop]
        span = self.span(s)
        result = np.array([table] * max(span.stop - span.start - 1, 0)).reshape(-1, f.n_labels, f.n_labels)
        if self.edges is not None:
            by_attribute = np.zeros((self.edges.n_attributes, f.n_labels, f.n_labels))
            by_attribute[f.edges_of()] = self.weights[f.borders[2] : f.borders[3]]
            for i in range(len(result)):
                result[i] += _gathered(self.edges, span.start + i + 1, by_attribute)
        return result

    def triples(self) -> np.ndarray:
        f = self.features
        table = np.zeros((f.n_labels,) * 3)
        table[f.triples_of()] = self.weights[f.borders[3] :]
        return table

    def paths(
        self, s: int, masks: np.ndarray | None = None, forbidden: np.ndarray | None = None
    ) -> tuple[list[Path], np.ndarray]:
        """Every label sequence and its score."""
        scores, moves, triples = self.scores(s), self.moves(s), self.triples()
        if masks is not None:
            scores = np.where(masks, scores, -np.inf)
        if forbidden is not None:
            moves = np.where(forbidden, -np.inf, moves)
        n = len(scores)
        paths = list(itertools.product(range(self.features.n_labels), repeat=n))
        values = [
            sum(scores[i, p[i]] for i in range(n))
            + sum(moves[i, p[i], p[i + 1]] for i in range(n - 1))
            + sum(triples[p[i : i + 3]] for i in range(n - 2))
            for p in paths
        ]
        return paths, np.array(values, np.float64)


def _gathered(data: SequenceData, t: int, table: np.ndarray) -> np.ndarray:
    """The rows of a table that a token refers to, added up."""
    at = slice(int(data.token_offsets[t]), int(data.token_offsets[t + 1]))
    values = np.ones(at.stop - at.start) if data.values is None else data.values[at]
    return np.tensordot(values, table[data.attributes[at]], axes=1)


def random_data(rng: np.random.Generator, lengths: list[int], n_attributes: int, *, valued: bool) -> SequenceData:
    """Tokens of up to five attributes each; some attributes are frequent and some rare, as in text."""
    counts = rng.integers(0, 6, size=sum(lengths))
    attributes = np.minimum(rng.geometric(0.3, size=int(counts.sum())) - 1, n_attributes - 1).astype(np.int32)
    return SequenceData(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        attributes,
        rng.normal(size=len(attributes)) if valued else None,
        n_attributes,
    )


def random_chains(
    rng: np.random.Generator,
    lengths: list[int],
    n_labels: int,
    *,
    valued: bool,
    scale: float = 1.0,
    full: bool = True,
    order: int = 1,
    edges: bool = False,
    hidden: int = 1,
) -> Chains:
    """Random chains; with many labels, some attributes get rows and some pairs."""
    data = random_data(rng, lengths, 12, valued=valued)
    labels = rng.integers(0, n_labels, size=data.n_tokens).astype(np.int32)
    settings = {
        "edges": random_data(rng, lengths, 5, valued=valued) if edges else None,
        "order": order,
        "hidden": hidden,
        "all_states": full and data.n_tokens % 2 == 0,
        "all_transitions": full,
    }
    features, empirical = observed_features(data, labels, n_labels, **settings)
    weights = scale * rng.normal(size=features.n_features)
    return Chains(data, settings["edges"], labels, n_labels, features, empirical, weights, settings)
