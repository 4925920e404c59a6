"""Boltzmann machines with all units joined: maximum likelihood, with hidden units and without."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.dense import fit_boltzmann, marginal_log_likelihood
from markovfield.learning.boltzmann.updates import Training
from markovfield.models.boltzmann import BoltzmannMachine

STATES = ((np.arange(2**4)[:, None] >> np.arange(4)) & 1).astype(float)


def machine(seed, n_visible, n_hidden):
    rng = np.random.default_rng(seed)
    n = n_visible + n_hidden
    upper = np.triu(rng.normal(size=(n, n)), 1)
    return BoltzmannMachine(n_visible, n_hidden, upper + upper.T, 0.5 * rng.normal(size=n))


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(4, 0), (4, 3), (1, 2)])
def test_the_marginal_likelihood_is_that_of_the_graph(n_visible, n_hidden):
    model = machine(0, n_visible, n_hidden)
    rows = STATES[: 2**n_visible, :n_visible]
    whole = mf.log_partition(model).log_partition
    expected = [
        mf.log_partition(model, {f"v{i}": int(x) for i, x in enumerate(row)}).log_partition - whole for row in rows
    ]
    assert np.abs(marginal_log_likelihood(model, rows) - expected).max() < 1e-10


# As with restricted machines: exact maximum likelihood from N rows has about n_parameters / (2 N) on average.
@pytest.mark.parametrize(("n_hidden", "rate"), [(0, 1.0), (2, 0.5)])
@pytest.mark.parametrize("seed", range(2))
def test_the_whole_distribution_as_data_gives_it_back(n_hidden, rate, seed):
    model = machine(seed, 4, n_hidden)
    p = np.exp(marginal_log_likelihood(model, STATES))
    fitted = fit_boltzmann(
        BoltzmannMachine(4, n_hidden), STATES, weights=p, epochs=8000, batch_size=16, n_chains=100, learning_rate=rate,
        schedule="constant", rng=seed,
    )  # fmt: skip
    divergence = p @ (np.log(p) - marginal_log_likelihood(fitted, STATES))
    assert divergence < fitted.fit_report.n_parameters / (2 * 2000)
    assert fitted.fit_report.log_likelihood == pytest.approx(p @ marginal_log_likelihood(fitted, STATES))
    if not n_hidden:
        assert np.abs(fitted.weights - model.weights).max() < 0.2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_seed_same_machine(dtype):
    rows = np.random.default_rng(0).random((30, 4)) < 0.4
    fits = [fit_boltzmann(BoltzmannMachine(4, 2), rows, epochs=5, dtype=dtype, rng=s) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].weights, fits[1].weights)
    assert not np.array_equal(fits[0].weights, fits[2].weights)


def test_more_units_than_can_be_summed():
    rows = (np.random.default_rng(0).random((50, 20)) < 0.4).astype(int)
    model = BoltzmannMachine(20, 3)
    fitted = fit_boltzmann(model, {f"v{i}": rows[:, i] for i in range(20)}, epochs=3, rng=0)
    assert np.isnan(fitted.fit_report.log_likelihood)
    assert any("not known" in note for note in fitted.fit_report.notes)
    assert not model.weights.any()
    with pytest.raises(ModelError, match="16 units or fewer, got 23"):
        marginal_log_likelihood(fitted, rows)


def test_blown_up_and_stopped():
    rows = (np.random.default_rng(0).random((40, 4)) < 0.4).astype(int)
    with pytest.warns(ConvergenceWarning, match="passed 1000 in epoch .* lower the learning rate"):
        fitted = fit_boltzmann(BoltzmannMachine(4, 1), rows, learning_rate=1e6, rng=0)
    assert np.isfinite(fitted.weights).all()
    running = Running(callback=lambda progress: progress.step >= 4)
    stopped = fit_boltzmann(BoltzmannMachine(4, 1), rows, running=running, rng=0)
    assert (stopped.fit_report.iterations, stopped.fit_report.converged) == (3, False)


def test_by_the_verb():
    model = machine(0, 4, 1)
    p = np.exp(marginal_log_likelihood(model, STATES))
    method = mf.methods.StochasticMaximumLikelihood(training=Training(epochs=4000, n_chains=50), l2=1e-6)
    fitted = mf.fit(BoltzmannMachine(4, 1), STATES.astype(int), method, weights=p, rng=0)
    assert p @ (np.log(p) - marginal_log_likelihood(fitted, STATES)) < 0.02
    assert fitted.fit_report.method == "stochastic_maximum_likelihood"
    with pytest.raises(ModelError, match="weights of a BoltzmannMachine take an l2"):
        mf.fit(model, STATES.astype(int), mf.methods.StochasticMaximumLikelihood(training=Training(), l1=1.0))


def test_what_is_refused():
    with pytest.raises(ModelError, match="kind='pcd', got 'cd'"):
        fit_boltzmann(BoltzmannMachine(2, 1), [[0, 1]], kind="cd")
    with pytest.raises(ModelError, match="rows of 0 and 1"):
        fit_boltzmann(BoltzmannMachine(2, 1), [[0, 0.5]])
    with pytest.raises(ModelError, match="takes a BoltzmannMachine, got RestrictedBoltzmannMachine"):
        fit_boltzmann(mf.RestrictedBoltzmannMachine(2, 1), [[0, 1]])  # type: ignore[arg-type]


def test_large_machines_go_by_units_unasked():
    rows = np.random.default_rng(3).integers(0, 2, (60, 20))
    made = mf.fit(mf.BoltzmannMachine(20, 4), rows, rng=0)
    assert made.fit_report.method == "stochastic_maximum_likelihood"
    assert np.isfinite(made.weights).all() and made.weights[0, 22] != 0
    again = mf.fit(mf.BoltzmannMachine(20, 4), rows, mf.methods.StochasticMaximumLikelihood(training=Training()), rng=0)
    np.testing.assert_array_equal(again.weights, made.weights)
