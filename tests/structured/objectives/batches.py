"""Random batches for tests of objectives, and what enumeration says of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np

from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.operators import LinearTerms, TensorProduct
from tests.oracle import Oracle

N_WEIGHTS = 3 + 3 + 4 + 2


class Example:
    """One graph of variables of two or three states: factors of one to three variables, some with a shared table."""

    def __init__(self, seed: int, *, tree: bool = False, single: bool = False) -> None:
        rng = np.random.default_rng(seed)
        n = 1 if single else int(rng.integers(1, 6))
        self.cards = rng.integers(2, 4, n)
        self.singles = [(v,) for v in range(n) if rng.random() < 0.8]
        pairs = [(v, int(rng.integers(0, v))) for v in range(1, n)]
        if not tree:
            pairs += [pair for pair in combinations(range(n), 2) if rng.random() < 0.3]
        self.shared = [p for p in pairs if rng.random() < 0.5 and (self.cards[list(p)] == 2).all()]
        self.pairs = [p for p in pairs if p not in self.shared]
        triples = [] if tree else list(combinations(range(n), 3))
        self.triples = [t for t in triples if rng.random() < 0.2]
        self.labels = rng.integers(0, self.cards)

        def terms(scopes: list[tuple[int, ...]], k: int) -> np.ndarray:
            return rng.normal(size=(sum(int(np.prod(self.cards[list(s)])) for s in scopes), k))

        self.terms = [terms(self.singles, 3), terms(self.pairs, 3), terms(self.triples, 2)]


def batch_of(examples: list[Example], weights: Any = None, hidden: bool = False) -> Batch:
    """Examples side by side; with ``hidden``, the first label of each is not known."""
    offsets = np.cumsum([0] + [len(e.cards) for e in examples])

    def kind(name: str, arity: int) -> np.ndarray:
        scopes = [[v + offsets[i] for v in s] for i, e in enumerate(examples) for s in getattr(e, name)]
        return np.array(scopes, np.int64).reshape(-1, arity)

    def terms(i: int) -> LinearTerms:
        return LinearTerms(np.concatenate([e.terms[i] for e in examples]))

    shared = kind("shared", 2)
    labels = np.concatenate([e.labels for e in examples])
    if hidden:
        labels[offsets[:-1]] = -1
    return Batch.of(
        np.concatenate([e.cards for e in examples]),
        offsets,
        [
            Factors(kind("singles", 1), terms(0), 0),
            Factors(kind("pairs", 2), terms(1), 3),
            Factors(shared, TensorProduct(1, 4), 6, np.zeros(len(shared), np.int64)),
            Factors(kind("triples", 3), terms(2), 10),
        ],
        N_WEIGHTS,
        labels,
        weights=None if weights is None else np.asarray(weights, float),
    )


def oracles(batch: Batch, w: np.ndarray) -> list[tuple[Oracle, np.ndarray]]:
    """For each example its oracle, and its labels."""
    graph, found = batch.graph(w), []
    s = batch.structure
    for i in range(batch.n_examples):
        begin, end = batch.variable_offsets[i : i + 2].tolist()
        own = np.flatnonzero(batch.example_of_factor == i)
        factors = [((s.scope(f) - begin).tolist(), graph.table(int(f))) for f in own]
        found.append((Oracle(s.cardinalities[begin:end], factors), batch.labels[begin:end]))
    return found


def conditional(oracle: Oracle, labels: np.ndarray) -> float:
    """Sum over variables of the log-probability of the label given all others."""
    total = 0.0
    for v, card in enumerate(oracle.cardinalities):
        scores = []
        for k in range(card):
            y = labels.copy()
            y[v] = k
            row = int(np.flatnonzero((oracle.states == y).all(axis=1))[0])
            scores.append(oracle.scores[row])
        total += float(scores[labels[v]] - np.logaddexp.reduce(scores))
    return total


def check_gradient(function: Callable[[Any], Any], w: np.ndarray, tolerance: float = 1e-6, step: float = 1e-5) -> None:
    """The gradient against central differences, relative to its size."""
    _, gradient = function(w)
    wanted = np.empty(len(w))
    for i in range(len(w)):
        ends = []
        for sign in (1.0, -1.0):
            moved = w.copy()
            moved[i] += sign * step
            ends.append(function(moved)[0])
        wanted[i] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(gradient, wanted, atol=tolerance * max(1.0, float(np.abs(wanted).max())))


def on(objective: Any, batch: Batch) -> Any:
    """The function of weights."""
    return objective.on(batch, running=Running(), rng=np.random.default_rng(0))


def cases(n: int) -> list[tuple[int, bool]]:
    """Seeds, with and without weights of examples."""
    return list(product(range(n), (False, True)))


def random_batch(seed: int, weighted: bool = False, n: int = 4, **settings: Any) -> tuple[Batch, np.ndarray]:
    """A batch and weights for it."""
    rng = np.random.default_rng(seed)
    examples = [Example(100 * seed + i, **settings) for i in range(n)]
    weights = rng.integers(0, 4, n) if weighted else None
    return batch_of(examples, weights), 0.7 * rng.normal(size=N_WEIGHTS)
