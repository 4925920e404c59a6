"""Fitted machines: near maximum likelihood, repeatable, and honest about what went wrong."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.training import Training, fit_rbm, train_rbm
from markovfield.models.boltzmann import RestrictedBoltzmannMachine

STATES = ((np.arange(2**5)[:, None] >> np.arange(5)) & 1).astype(float)


def truth(seed):
    rng = np.random.default_rng(seed)
    return RestrictedBoltzmannMachine(5, 2, 1.5 * rng.normal(size=(5, 2)), 0.5 * rng.normal(size=5), rng.normal(size=2))


def divergence(model, p):
    """Kullback-Leibler divergence from the distribution p over all states to the machine."""
    return float(p @ (np.log(p) - model.log_likelihood(STATES)))


# A fit by exact maximum likelihood to N rows of a machine with 17 parameters has about 17 / (2 N) on average: a method
# that stays below is within sampling error for so many rows.
CONSTANT = {"schedule": "constant", "learning_rate": 1.0, "batch_size": 32, "epochs": 10_000}


@pytest.mark.parametrize(
    ("kind", "settings", "n_rows"),
    [
        ("pcd", {**CONSTANT, "n_chains": 100}, 2000),
        ("cd", {**CONSTANT, "k": 10}, 2000),
        ("mpf", {"batch_size": None, "epochs": 2000}, 20_000),
        ("mpf", {"batch_size": 8, "epochs": 3000, "learning_rate": 0.2, "schedule": "constant"}, 2000),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_the_whole_distribution_as_data_gives_it_back(kind, settings, n_rows, seed):
    p = np.exp(truth(seed).log_likelihood(STATES))
    best = min(
        (
            fit_rbm(RestrictedBoltzmannMachine(5, 2), STATES, weights=p, kind=kind, rng=start, **settings)
            for start in range(2)
        ),
        key=lambda model: divergence(model, p),
    )
    assert divergence(best, p) < 17 / (2 * n_rows)
    assert best.fit_report.log_likelihood == pytest.approx(p @ best.log_likelihood(STATES), abs=1e-9)


@pytest.mark.parametrize("kind", ["cd", "pcd", "mpf"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_seed_same_machine(kind, dtype):
    rows = np.random.default_rng(0).random((30, 6)) < 0.4
    fits = [fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, kind=kind, epochs=5, dtype=dtype, rng=s) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].weights, fits[1].weights)
    assert not np.array_equal(fits[0].weights, fits[2].weights)


def test_single_precision_follows_double_as_long_as_draws_agree():
    """Both compare with other bits, so after the first update they part; before it they differ by rounding."""
    rows = (np.random.default_rng(0).random((64, 6)) < 0.4).astype(float)
    start = np.random.default_rng(1).normal(0, 0.1, (6, 3)), np.zeros(6), np.zeros(3)
    chains = np.random.default_rng(2).integers(0, 2, (100_000, 3))
    made = [
        train_rbm(
            *start, rows, Training(epochs=1, batch_size=None, n_chains=100_000, averaging=0.0, dtype=dtype),
            rng=np.random.default_rng(3), running=Running(), chains=chains,
        )
        for dtype in ("float32", "float64")
    ]  # fmt: skip
    assert np.abs(made[0].weights - made[1].weights).max() < 0.1 * 5 * np.sqrt(2 * 0.25 / 100_000) + 1e-6


def test_starts_from_the_model_and_leaves_it_alone():
    model = truth(0)
    before = model.weights.copy()
    rows = (np.random.default_rng(0).random((20, 5)) < 0.5).astype(float)
    fitted = fit_rbm(model, rows, epochs=1, learning_rate=1e-6, rng=0)
    assert np.array_equal(model.weights, before)
    assert model.fit_report is None
    assert np.abs(fitted.weights - before).max() < 1e-5
    assert np.abs(fitted.visible_biases - model.visible_biases).max() < 1e-5


def test_columns_and_weights():
    rows = np.array([[1, 0], [0, 1], [1, 1]])
    frame = {"v0": rows[:, 0], "v1": rows[:, 1]}
    one, other = (fit_rbm(RestrictedBoltzmannMachine(2, 1), data, epochs=20, rng=0) for data in (rows, frame))
    assert np.array_equal(one.weights, other.weights)
    heavy = fit_rbm(RestrictedBoltzmannMachine(2, 1), rows, weights=[0, 0, 5.0], epochs=400, rng=0)
    assert heavy.log_likelihood([1, 1]) > -0.1
    assert heavy.fit_report.total_weight == 5.0


def test_history_and_report():
    rows = (np.random.default_rng(0).random((50, 6)) < [0.1, 0.3, 0.5, 0.7, 0.9, 0.5]).astype(float)
    fitted = fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, epochs=40, history_every=10, rng=0)
    report = fitted.fit_report
    assert len(report.history) == 4
    assert report.history[-1] == pytest.approx(report.log_likelihood / 50)
    assert report.log_likelihood == pytest.approx(fitted.log_likelihood(rows).sum())
    assert (report.iterations, report.converged, report.guarantee) == (40, True, "approximate")
    assert "the log-likelihood is exact" in report.notes
    assert report.details.chains.shape == (20, 3)
    assert report.details.updates == 40 * 3
    annealed = fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, epochs=40, likelihood="annealed", rng=0).fit_report
    assert annealed.details.log_likelihood_error > 0
    assert abs(annealed.log_likelihood - report.log_likelihood) < 5 * annealed.details.log_likelihood_error
    assert np.isnan(
        fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, epochs=1, likelihood=None).fit_report.log_likelihood
    )


def test_probabilities_bound_the_likelihood():
    rng = np.random.default_rng(0)
    grey = rng.random((20, 6))
    fitted = fit_rbm(RestrictedBoltzmannMachine(6, 3), grey, epochs=50, rng=0)
    said = fitted.fit_report.log_likelihood / 20
    drawn = [fitted.log_likelihood(rng.random(grey.shape) < grey).mean() for _ in range(400)]
    assert said < np.mean(drawn) + 5 * np.std(drawn) / 20
    assert any("lower bound" in note for note in fitted.fit_report.notes)
    with pytest.raises(ModelError, match="flow needs rows of 0 and 1"):
        fit_rbm(RestrictedBoltzmannMachine(6, 3), grey, kind="mpf")


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "pcd", "learning_rate": 1e6},
        {"kind": "cd", "learning_rate": 1e30},
        {"kind": "pcd", "learning_rate": 1.0, "l2": 1e5},
        {"kind": "mpf", "learning_rate": 1e4},
        {"kind": "pcd", "learning_rate": 1e6, "dtype": "float64", "averaging": 0.0},
    ],
)
def test_what_blows_up_is_told_and_leaves_finite_weights(settings):
    rows = (np.random.default_rng(0).random((40, 6)) < 0.4).astype(float)
    with pytest.warns(ConvergenceWarning, match="passed 1000 in epoch .* lower the learning rate"):
        fitted = fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, epochs=50, schedule="constant", rng=0, **settings)
    assert np.isfinite(fitted.weights).all()
    assert np.abs(fitted.weights).max() <= 1000
    assert not fitted.fit_report.converged
    assert "lower the learning rate" in fitted.fit_report.message
    assert np.isfinite(fitted.fit_report.log_likelihood)


@pytest.mark.parametrize("kind", ["cd", "pcd", "mpf"])
def test_a_callback_stops_with_what_there_is(kind):
    rows = (np.random.default_rng(0).random((40, 6)) < 0.4).astype(float)
    running = Running(callback=lambda progress: progress.step >= 7)
    fitted = fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, kind=kind, epochs=50, running=running, rng=0)
    assert fitted.fit_report.iterations == 6
    assert not fitted.fit_report.converged
    assert fitted.fit_report.message == "stopped by the callback"


def test_flow_by_quasi_newton_reports_its_objective():
    rows = (np.random.default_rng(0).random((40, 6)) < 0.4).astype(float)
    report = fit_rbm(RestrictedBoltzmannMachine(6, 3), rows, kind="mpf", batch_size=None, l2=1.0, rng=0).fit_report
    assert report.objective_name == "probability flow"
    assert report.gradient_norm < 0.1 * report.objective


def test_penalty_shrinks_weights():
    rows = np.repeat([[1.0, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    sizes = [
        np.abs(fit_rbm(RestrictedBoltzmannMachine(4, 2), rows, l2=l2, epochs=200, rng=0).weights).sum()
        for l2 in (0.0, 1.0, 10.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "sml"}, "kind of Training must be 'cd', 'pcd' or 'mpf', got 'sml'"),
        ({"k": 0}, "k of Training must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate of Training must be positive"),
        ({"learning_rate": np.inf}, "learning_rate of Training must be finite"),
        ({"momentum": 1.0}, "momentum of Training must be below 1"),
        ({"averaging": 1.0}, "averaging of Training must be below 1"),
        ({"batch_size": 0}, "batch_size of Training must be at least 1"),
        ({"epochs": 2.5}, "epochs of Training must be an integer"),
        ({"schedule": "cosine"}, "schedule of Training must be 'constant' or 'robbins_monro'"),
        ({"dtype": "float16"}, "dtype of Training must be 'float32' or 'float64'"),
        ({"likelihood": "ais"}, "likelihood must be 'auto', 'exact', 'annealed' or None, got 'ais'"),
        ({"history_every": -1}, "history_every must be an integer of at least 0"),
    ],
)
def test_bad_settings(settings, said):
    with pytest.raises(ModelError, match=said):
        fit_rbm(RestrictedBoltzmannMachine(2, 1), [[0, 1]], **settings)


def test_another_model():
    with pytest.raises(ModelError, match="takes a RestrictedBoltzmannMachine, got BoltzmannMachine"):
        fit_rbm(mf.BoltzmannMachine(2, 1), [[0, 1]])  # type: ignore[arg-type]
