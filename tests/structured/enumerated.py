"""What a trained model says of an example, by writing out all of its outputs; and rows of options, all pairs in few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Posterior", "all_pairs", "posterior_of"]


class Posterior(NamedTuple):
    """All labels of one example, and the log of what each adds to Z, hidden states summed out."""

    labels: np.ndarray
    scores: np.ndarray

    @property
    def log_z(self) -> float:
        return float(np.logaddexp.reduce(self.scores))

    @property
    def ranked(self) -> list[tuple[tuple[int, ...], float]]:
        """Labels and scores, best first; what is ruled out is left out."""
        order = [i for i in np.argsort(-self.scores, kind="stable") if np.isfinite(self.scores[i])]
        return [(tuple(self.labels[i].tolist()), float(self.scores[i])) for i in order]

    def marginal(self, v: int, n_labels: int) -> np.ndarray:
        return np.bincount(self.labels[:, v], np.exp(self.scores - self.log_z), n_labels)

    def kept(self, allowed: np.ndarray) -> Posterior:
        """Without the labels that are not allowed."""
        return Posterior(self.labels, np.where(allowed, self.scores, -np.inf))


def posterior_of(model: Any, x: Any, w: np.ndarray) -> Posterior:
    """Of one input."""
    batch = model.encode(x)
    s, pool, per_label = batch.structure, batch.pool(w), model.hidden_per_label
    states = np.array(list(product(*map(range, s.cardinalities.tolist()))))
    read = s.table_offsets + np.add.reduceat(s.table_strides * states[:, s.scopes], s.scope_offsets[:-1], axis=1)
    labels, which = np.unique(states // per_label, axis=0, return_inverse=True)
    scores = np.full(len(labels), -np.inf)
    np.logaddexp.at(scores, which.ravel(), pool[read].sum(axis=1))
    return Posterior(labels, scores)


def all_pairs(options: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Rows of options in which any two values of any two options meet, found greedily."""
    rng = np.random.default_rng(seed)
    names = list(options)
    missing = {
        (a, i, b, j) for a, b in combinations(names, 2) for i in range(len(options[a])) for j in range(len(options[b]))
    }

    def met(row: dict[str, int]) -> set[Any]:
        return {(a, row[a], b, row[b]) for a, b in combinations(names, 2)} & missing

    rows = []
    while missing:
        a, i, b, j = min(missing)
        tries = [{name: int(rng.integers(len(options[name]))) for name in names} | {a: i, b: j} for _ in range(20)]
        row = max(tries, key=lambda one: len(met(one)))
        missing -= met(row)
        rows.append({name: options[name][row[name]] for name in names})
    return rows
