"""Random hidden Markov models, and their sums by enumerating every sequence of states."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from markovfield.sequence.hmm.hmm import HMM

K, V = 3, 4


def random_hmm(seed: int, *, k: int = K, v: int = V, zeros: bool = False, d: int | None = None) -> HMM:
    """A model of random probabilities; some transitions and emissions may be zero."""
    rng = np.random.default_rng(seed)
    moves, shown = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(v), k)
    if zeros:
        for table in (moves, shown):
            table[rng.random(table.shape) < 0.3] = 0.0
            table[:, 0] += 0.1
            table /= table.sum(axis=1, keepdims=True)
    if d is None:
        return HMM.from_parameters(rng.dirichlet(np.ones(k)), moves, shown)
    root = rng.normal(size=(k, d, d))
    covariances = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(d)
    return HMM.from_parameters(rng.dirichlet(np.ones(k)), moves, (3 * rng.normal(size=(k, d)), covariances))


def densities(hmm: HMM, x: Any) -> np.ndarray:
    """Probabilities of each token given each state, straight from the parameters."""
    e = hmm.emissions_
    if e.kind == "categorical":
        columns = {symbol: e.probabilities[:, i] for i, symbol in enumerate(e.symbols)}
        return np.array([np.ones(e.n_states) if t is None else columns[t] for t in x])
    rows = []
    for value in np.asarray(x, float):
        if np.isnan(value).any():
            rows.append(np.ones(e.n_states))
            continue
        own = []
        for mean, covariance in zip(e.means, e.covariances, strict=True):
            left = value - mean
            power = left @ np.linalg.solve(covariance, left)
            own.append(np.exp(-0.5 * power) / np.sqrt(np.linalg.det(2 * np.pi * covariance)))
        rows.append(np.array(own))
    return np.array(rows)


def enumerated(hmm: HMM, x: Any, fixed: list | None = None) -> tuple[list, np.ndarray]:
    """Every sequence of states, and its joint probability with the observations."""
    shown = densities(hmm, x)
    paths = list(itertools.product(range(len(hmm.start_)), repeat=len(shown)))
    values = []
    for path in paths:
        p = hmm.start_[path[0]] * shown[0, path[0]]
        for t in range(1, len(path)):
            p *= hmm.transitions_[path[t - 1], path[t]] * shown[t, path[t]]
        if fixed is not None and any(f is not None and f != s for f, s in zip(fixed, path, strict=True)):
            p = 0.0
        values.append(p)
    return paths, np.array(values)


def marginals_of(paths: list, values: np.ndarray, k: int) -> np.ndarray:
    table = np.zeros((len(paths[0]), k))
    for path, p in zip(paths, values, strict=True):
        table[np.arange(len(path)), list(path)] += p
    return table / values.sum()


def sequences(hmm: HMM, seed: int, gaps: bool) -> list:
    """Sequences that the model can show, of lengths 1 to 5, some with missing observations."""
    rng = np.random.default_rng(seed)
    X, _ = hmm.sample([1, 4, 5, 3], rng=rng)
    if not gaps:
        return X
    if hmm.emissions_.kind == "categorical":
        return [[None if rng.random() < 0.3 else t for t in x] for x in X]
    for x in X:
        x[rng.random(len(x)) < 0.3] = np.nan
    return X
