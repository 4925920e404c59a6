"""Parallel tempering: exact distributions, swaps, ladders, and barriers that single chains do not cross."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.gibbs import single_site
from markovfield.inference.gibbs.gibbs import Gibbs
from markovfield.inference.gibbs.parallel_tempering import ParallelTempering, ladder_of
from tests.inference.chains import check_counts, check_joint, exact_values, grid
from tests.inference.gibbs.test_gibbs import RING, soft

GIVEN = ParallelTempering([0.3, 1.0, 0.0], thinning=10, swaps_every=2)
TUNED = ParallelTempering(n_temperatures=3, thinning=10, base="metropolis")


@pytest.mark.parametrize("method", [GIVEN, TUNED], ids=["given", "tuned"])
@pytest.mark.parametrize("evidence", [{}, {3: np.array([0.2, 1.0, 0.0, 0.6]), 0: 1}])
def test_samples_have_the_joint_distribution(method: ParallelTempering, evidence: dict[int, Any]):
    spec = soft(1)
    found = mf.sample(spec.build(), 6000, spec.named(evidence), method, rng=3)
    assert found.effective_sample_size > 4000, "thinned to near independence"
    check_joint(found, spec.oracle(evidence))


def test_sites_without_tables_are_tempered_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(single_site, "SITE_CELLS", 0)
    spec = soft(2)
    check_joint(mf.sample(spec.build(), 6000, method=GIVEN, rng=3), spec.oracle())
    pairs = grid(2, 3, [[0.9, 0.0], [0.2, 0.5]])
    exact = mf.marginals(pairs, method="enumeration").values
    answer = mf.marginals(pairs, method=ParallelTempering([1.0, 0.4], sweeps=4000), rng=0)
    # Five standard errors: one false alarm in some 100,000.
    assert (np.abs(answer.values - exact) < 5 * answer.monte_carlo.standard_errors).all()


@pytest.mark.parametrize("method", [GIVEN, TUNED], ids=["given", "tuned"])
def test_hard_zeros_stay_hard_at_every_temperature(method: ParallelTempering):
    found = mf.sample(RING.build(), 5000, method=method, rng=0)
    check_joint(found, RING.oracle())
    state = found._state
    replicas = state.states[:, : 3 * 7].reshape(-1, 7)
    assert np.isfinite(RING.build().compile().score(replicas)).all()


def test_standard_errors_are_calibrated():
    # The band of test_gibbs: one false alarm in 10,000 a state.
    spec = soft(5)
    exact = exact_values(spec, spec.oracle())
    model = spec.build().compile()
    method = ParallelTempering([1.0, 0.5], sweeps=300, burn_in=20)
    z = []
    for seed in range(200):
        answer = mf.marginals(model, method=method, rng=seed)
        z.append((answer.values - exact) / answer.monte_carlo.standard_errors)
    variance = np.mean(np.square(z), axis=0)
    assert ((variance > 0.65) & (variance < 1.5)).all(), variance


def test_barriers_are_crossed():
    """A ferromagnet far below its critical temperature: a single chain stays all up or all down."""
    net = grid(6, 6, [[1.5, 0.0], [0.0, 1.5]])
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="do not agree"):
        stuck = mf.marginals(net, method=Gibbs(sweeps=3000), rng=1)
    assert not stuck.converged
    answer = mf.marginals(net, method=ParallelTempering(sweeps=6000), rng=1)
    assert answer.converged
    worst = np.abs(answer.values - 0.5) / answer.monte_carlo.standard_errors
    assert worst.max() < 5
    assert answer.monte_carlo.standard_errors.max() < 0.05


def test_swaps_happen_as_often_as_they_should():
    """Two replicas of one variable: the expected chance of a swap is a sum over four states."""
    net = mf.MarkovNetwork({"A": 2})
    net.add_factor(["A"], log_table=[0.0, 2.0])
    drawn = mf.sample(net, 40_000, method=ParallelTempering([1.0, 0.25], burn_in=10), rng=0)
    ladder = ladder_of(drawn)
    assert ladder.inverse_temperatures.tolist() == [1.0, 0.25]
    cold, hot = (1 / (1 + np.exp(-2 * beta)) for beta in (1.0, 0.25))
    # Refused only where the cold one is up and the hot one down, and then not always.
    chance = 1 - cold * (1 - hot) * (1 - np.exp(-0.75 * 2))
    # 20,000 swaps tried: four standard deviations of the rate.
    assert ladder.swap_rates[0] == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 20_000))


def test_ladders_are_spaced_evenly():
    net = grid(8, 8, [[1.0, 0.0], [0.0, 1.0]])
    answer = mf.marginals(net, method=ParallelTempering(sweeps=3000, burn_in=3000, n_temperatures=6), rng=0)
    ladder = ladder_of(answer)
    assert ladder.inverse_temperatures[0] == 1.0
    assert (np.diff(ladder.inverse_temperatures) < 0).all()
    assert ladder.swap_rates.max() - ladder.swap_rates.min() < 0.15
    even = ladder_of(mf.marginals(net, method=ParallelTempering(np.linspace(1, 0, 6), sweeps=3000), rng=0))
    assert ladder.swap_rates.min() > even.swap_rates.min() + 0.05


def test_ladders_end_where_swaps_would_stop():
    """A large model and few replicas: the hottest is not at infinite temperature, and swaps go on."""
    net = grid(40, 40, [[0.8, 0.0], [0.0, 0.8]])
    ladder = ladder_of(mf.marginals(net, method=ParallelTempering(n_temperatures=4, sweeps=200), rng=0))
    assert ladder.inverse_temperatures[-1] > 0.3
    assert ladder.swap_rates.min() > 0.15


def test_resuming_keeps_the_ladder():
    net = grid(3, 3, [[1.0, 0.0], [0.0, 1.0]])
    method = ParallelTempering(n_temperatures=4, burn_in=100)
    first = mf.sample(net, 40, method=method, rng=0)
    again = mf.sample(net, 40, method=method, init=first, rng=1)
    np.testing.assert_array_equal(ladder_of(first).inverse_temperatures, ladder_of(again).inverse_temperatures)


def test_other_answers_have_no_ladder():
    net = grid(2, 2, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(mf.ModelError, match="no ladder"):
        ladder_of(mf.sample(net, 5, method=Gibbs(), rng=0))


def test_metropolis_moves_that_cost_nothing_are_not_made_in_step():
    """Spins that feel no pull at any temperature, or at some configurations only."""
    # One false alarm in a million for each of the two.
    coins = mf.MarkovNetwork({"A": 2, "B": 2})
    coins.add_factor(["A", "B"], np.ones((2, 2)))
    method = ParallelTempering([1.0, 0.5], base="metropolis", thinning=40)
    found = mf.sample(coins, 4000, method=method, rng=0)
    check_counts(np.bincount(2 * found["A"] + found["B"], minlength=4), np.full(4, 0.25))
    square = grid(2, 2, [[0.0, 1.4], [1.4, 0.0]])
    states = np.array(list(np.ndindex(2, 2, 2, 2)))
    weights = np.exp(square.compile().score(states))
    found = mf.sample(square, 4000, method=method, rng=0)
    check_counts(np.bincount(found.states @ [8, 4, 2, 1], minlength=16), weights / weights.sum())
