"""The Metropolis algorithm against exact distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.gibbs import single_site
from markovfield.inference.gibbs.gibbs import Gibbs
from markovfield.inference.gibbs.metropolis import Metropolis
from tests.inference.chains import check_counts, check_joint, exact_values
from tests.inference.gibbs.test_gibbs import RING, soft

EACH = pytest.mark.parametrize(
    "settings",
    [("uniform", "systematic"), ("uniform", "random"), ("conditional", "systematic"), ("conditional", "random")],
    ids="-".join,
)


@EACH
@pytest.mark.parametrize("evidence", [{}, {1: 2}, {3: np.array([0.2, 1.0, 0.0, 0.6]), 0: 1}])
def test_samples_have_the_joint_distribution(settings: tuple[str, str], evidence: dict[int, Any]):
    spec = soft(1)
    found = mf.sample(spec.build(), 6000, spec.named(evidence), Metropolis(*settings, thinning=15), rng=3)
    assert found.effective_sample_size > 4000, "thinned to near independence"
    check_joint(found, spec.oracle(evidence))


@EACH
def test_sites_without_tables(settings: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(single_site, "SITE_CELLS", 0)
    spec = soft(2)
    check_joint(mf.sample(spec.build(), 6000, method=Metropolis(*settings, thinning=15), rng=4), spec.oracle())


@EACH
def test_hard_zeros(settings: tuple[str, str]):
    found = mf.sample(RING.build(), 5000, method=Metropolis(*settings, thinning=10), rng=0)
    check_joint(found, RING.oracle())


@EACH
def test_single_variables_and_nothing(settings: tuple[str, str]):
    net = mf.MarkovNetwork({"A": 3, "B": 2})
    net.add_factor(["A"], [1.0, 3.0, 2.0])
    found = mf.sample(net, 6000, method=Metropolis(*settings, n_chains=1, thinning=50), rng=0)
    check_counts(np.bincount(2 * found["A"] + found["B"]), np.repeat([1, 3, 2], 2) / 12)
    assert mf.sample(mf.MarkovNetwork({}), 4, method=Metropolis(*settings), rng=0).states.shape == (4, 0)


@EACH
def test_standard_errors_are_calibrated(settings: tuple[str, str]):
    # The band of test_gibbs: one false alarm in 10,000 a state.
    spec = soft(5)
    exact = exact_values(spec, spec.oracle())
    model = spec.build().compile()
    z = []
    for seed in range(200):
        answer = mf.marginals(model, method=Metropolis(*settings, sweeps=300, burn_in=20), rng=seed)
        z.append((answer.values - exact) / answer.monte_carlo.standard_errors)
    variance = np.mean(np.square(z), axis=0)
    assert ((variance > 0.65) & (variance < 1.5)).all(), variance


def test_metropolised_moves_beat_the_heat_bath():
    """Liu (1996): leaving the present state more often makes every error smaller."""
    spec = soft(8)
    model = spec.build().compile()
    gibbs, better = (
        mf.marginals(model, method=method, rng=0).monte_carlo.effective_sample_sizes.mean()
        for method in (Gibbs("random", sweeps=20_000), Metropolis("conditional", "random", sweeps=20_000))
    )
    assert better > 1.1 * gibbs


@EACH
def test_moves_that_cost_nothing_are_not_made_in_step(settings: tuple[str, str]):
    """A square in which neighbours are mostly unlike: sites between two that differ feel no pull."""
    model = mf.Ising((2, 2), -0.7)
    found = mf.sample(model, 40_000, method=Metropolis(*settings, n_chains=16, thinning=4), rng=0)
    like = np.mean(found.states[:, 0] == found.states[:, 1])
    agree = np.array([[x[0] == x[1], x[0] == x[2], x[1] == x[3], x[2] == x[3]] for x in np.ndindex(2, 2, 2, 2)])
    weights = np.exp(-1.4 * agree.sum(axis=1))
    exact = weights @ agree[:, 0] / weights.sum()
    # Five standard errors of 8,000 independent draws: 6e-7.
    assert found.effective_sample_size > 8000
    assert like == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 8000))


@EACH
@pytest.mark.parametrize("cards", [(2, 2), (3, 3)])
def test_independent_variables_are_drawn_independently(settings: tuple[str, str], cards: tuple[int, int]):
    net = mf.MarkovNetwork({"A": cards[0], "B": cards[1]})
    net.add_factor(["A", "B"], np.ones(cards))
    found = mf.sample(net, 4000, method=Metropolis(*settings, n_chains=1, thinning=40), rng=1)
    joint = cards[0] * cards[1]
    check_counts(np.bincount(cards[1] * found["A"] + found["B"], minlength=joint), np.full(joint, 1 / joint))
