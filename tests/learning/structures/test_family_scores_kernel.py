"""Scores of one more parent against likelihoods from counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from markovfield.learning.structures.family_scores_kernel import fit_of_table, score_additions


def fit(table: np.ndarray, prior: float) -> float:
    """Log-likelihood of ``table[configuration, state]``: at its maximum, or integrated over Dirichlet priors."""
    if prior:
        own = gammaln(prior + table).sum(axis=1) - table.shape[1] * gammaln(prior)
        all_ = gammaln(prior * table.shape[1] + table.sum(axis=1)) - gammaln(prior * table.shape[1])
        return float((own - all_).sum())
    total = table.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum(np.where(table > 0, table * np.log(table / total), 0.0)))


@pytest.mark.parametrize("prior", [0.0, 0.5, 1.0])
def test_fit_of_a_table(prior: float):
    counts = np.random.default_rng(0).integers(0, 4, (3, 2, 4)).astype(float)
    counts[1, :, 2] = 0.0
    by_configuration = counts.transpose(0, 2, 1).reshape(-1, 2)
    assert fit_of_table(counts.ravel(), 3, 2, 4, prior) == pytest.approx(fit(by_configuration, prior), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [[[0], [1], [2], [3]], [[0, 1], [2, 3]], [[3, 0, 2, 1]]])
def test_additions(groups: list[list[int]], weighted: bool):
    rng = np.random.default_rng(1)
    n_rows, states, configurations = 5000, 3, 4
    cards = np.array([2, 3, 1, 5], np.int32)
    codes = np.array([rng.integers(0, card, n_rows) for card in cards], np.int16)
    base = rng.integers(0, configurations * states, n_rows).astype(np.int32)
    weights = rng.random(n_rows) if weighted else np.zeros(0)
    candidates = np.concatenate(groups).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(g) for g in groups])]).astype(np.int64)
    priors = np.array([0.0, 0.5, 0.0, 1.0])
    out = np.empty(4)
    score_additions(codes, weights, cards, base, configurations, states, offsets, candidates, priors, out)
    for i, c in enumerate(candidates):
        table = np.zeros((configurations, cards[c], states))
        np.add.at(table, (base // states, codes[c], base % states), weights if weighted else 1.0)
        assert out[i] == pytest.approx(fit(table.reshape(-1, states), priors[i]), rel=1e-10)
