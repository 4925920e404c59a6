"""Filter and smoother against the unrolled field, dense Gaussians and statsmodels; EM against its likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf

Space = mf.time_series.LinearStateSpace


def covariance(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T / n + 0.3 * np.eye(n)


def random_space(rng, n, m):
    return Space(
        rng.normal(size=(n, n)) * 0.6,
        covariance(rng, n),
        rng.normal(size=(m, n)),
        covariance(rng, m),
        transition_intercept=rng.normal(size=n),
        observation_intercept=rng.normal(size=m),
        initial_mean=rng.normal(size=n),
        initial_covariance=covariance(rng, n),
        variables=[f"y{i}" for i in range(m)],
    )


def dense(model, steps):
    """Mean and covariance of all states and then all observations, by carrying moments forward."""
    n = model.n_states
    mean, spread = [model.initial_mean], np.zeros((steps * n, steps * n))
    spread[:n, :n] = model.initial_covariance
    for t in range(1, steps):
        mean.append(model.transition @ mean[-1] + model.transition_intercept)
        now, before = slice(t * n, (t + 1) * n), slice((t - 1) * n, t * n)
        spread[now, : t * n] = model.transition @ spread[before, : t * n]
        spread[: t * n, now] = spread[now, : t * n].T
        spread[now, now] = model.transition @ spread[before, before] @ model.transition.T + model.transition_noise
    see = np.kron(np.eye(steps), model.observation)
    seen = see @ np.concatenate(mean) + np.tile(model.observation_intercept, steps)
    noise = np.kron(np.eye(steps), model.observation_noise)
    whole = np.block([[spread, spread @ see.T], [see @ spread, see @ spread @ see.T + noise]])
    return np.concatenate([*mean, seen]), whole


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=12, deadline=None)
def test_filter_and_smoother_are_exact_inference_in_the_unrolled_field(seed, n, m):
    rng = np.random.default_rng(seed)
    model, steps = random_space(rng, n, m), 5
    series, _ = model.simulate(steps, rng)
    rows = np.column_stack(list(series.values()))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    states = model.smooth(rows)
    mean, whole = dense(model, steps)
    field = model.unrolled(steps)
    np.testing.assert_allclose(field.mean, mean, atol=1e-8)
    np.testing.assert_allclose(field.covariance, whole, atol=1e-8)
    seen = np.flatnonzero(~np.isnan(rows.ravel())) + steps * n
    values, hidden = rows.ravel()[seen - steps * n], np.arange(steps * n)
    names = [field.variables[i] for i in seen]
    answer = mf.marginals(field, dict(zip(names, values, strict=True)))
    np.testing.assert_allclose(states.mean.ravel(), answer.means[hidden], atol=1e-8)
    np.testing.assert_allclose(states.variance.ravel(), answer.variances[hidden], atol=1e-8)
    assert states.log_likelihood == pytest.approx(answer.log_partition - field.log_partition, abs=1e-8)
    if len(seen):
        block = whole[np.ix_(seen, seen)]
        gain = np.linalg.solve(block, whole[seen][:, hidden]).T
        spread = whole[np.ix_(hidden, hidden)] - gain @ whole[seen][:, hidden]
        np.testing.assert_allclose(states.mean.ravel(), mean[hidden] + gain @ (values - mean[seen]), atol=1e-8)
        for t in range(steps):
            now = slice(t * n, (t + 1) * n)
            np.testing.assert_allclose(states.covariance[t], spread[now, now], atol=1e-8)
            if t:
                np.testing.assert_allclose(states.lag_covariance[t - 1], spread[now, (t - 1) * n : t * n], atol=1e-8)
    # The filter is the smoother of a series that ends there.
    shorter, forward = model.smooth(rows[:3]), model.filter(rows)
    np.testing.assert_allclose(forward.mean[2], shorter.mean[2], atol=1e-10)
    np.testing.assert_allclose(forward.covariance[2], shorter.covariance[2], atol=1e-10)
    assert forward.log_likelihoods[:3].sum() == pytest.approx(shorter.log_likelihood)


def test_equal_to_statsmodels():
    tools = pytest.importorskip("statsmodels.tsa.statespace.kalman_smoother", reason="statsmodels is not installed")
    rng = np.random.default_rng(0)
    model, steps = random_space(rng, 3, 2), 200
    rows = np.column_stack(list(model.simulate(steps, rng)[0].values()))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    peer = tools.KalmanSmoother(k_endog=2, k_states=3)
    peer.bind(rows.copy())
    peer["transition"], peer["state_cov"], peer["selection"] = model.transition, model.transition_noise, np.eye(3)
    peer["design"], peer["obs_cov"] = model.observation, model.observation_noise
    peer["state_intercept"] = model.transition_intercept[:, None]
    peer["obs_intercept"] = model.observation_intercept[:, None]
    peer.initialize_known(model.initial_mean, model.initial_covariance)
    theirs, ours = peer.smooth(), model.smooth(rows)
    assert ours.log_likelihood == pytest.approx(theirs.llf_obs.sum(), rel=1e-10)
    np.testing.assert_allclose(ours.mean, theirs.smoothed_state.T, atol=1e-8)
    np.testing.assert_allclose(ours.covariance, theirs.smoothed_state_cov.transpose(2, 0, 1), atol=1e-8)
    np.testing.assert_allclose(model.filter(rows).mean, theirs.filtered_state.T, atol=1e-8)


def test_an_autoregression_with_missing_values():
    """Its states have no noise of their own and its observations none at all: the field of the series says the same."""
    var = mf.VectorAutoregression.from_parameters(
        [[[0.5, 0.2], [0.1, 0.3]], [[0.2, 0.0], [0.0, -0.2]]], [[1.0, 0.4], [0.4, 2.0]], [1.0, -0.5], ["a", "b"]
    )
    series = var.simulate(8, rng=0)
    rows = np.column_stack([series["a"], series["b"]])
    rows[3, 0] = rows[5] = np.nan
    states = var.state_space().smooth(rows)
    field = var.unrolled(8)
    known = {f"{v}[{t}]": rows[t, i] for t in range(8) for i, v in enumerate("ab") if not np.isnan(rows[t, i])}
    answer = mf.marginals(field, known)
    assert (states.mean[3, 0], states.variance[3, 0]) == pytest.approx(answer["a[3]"])
    assert (states.mean[5, 1], states.variance[5, 1]) == pytest.approx(answer["b[5]"])
    assert states.log_likelihood == pytest.approx(answer.log_partition - field.log_partition)
    rows = np.column_stack([series["a"], series["b"]])
    ahead = var.state_space().forecast(3, rows)
    np.testing.assert_allclose(ahead.mean, var.forecast(3, rows).mean)
    np.testing.assert_allclose(ahead.covariance, var.forecast(3, rows).covariance, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_em_climbs_to_where_the_likelihood_is_flat(missing):
    rng = np.random.default_rng(1)
    true = Space([[0.8]], [[0.5]], [[1.0], [0.5]], [[0.6, 0.2], [0.2, 0.4]])
    rows = np.column_stack(list(true.simulate(150, rng)[0].values()))
    rows[rng.random(rows.shape) < missing] = np.nan
    start = Space([[0.5]], [[1.0]], [[1.0], [0.5]], np.eye(2))
    chosen = ("transition", "transition_noise", "observation_noise", "transition_intercept", "observation_intercept")
    fitted = start.fit(rows, chosen, tolerance=1e-10, max_iterations=2000)
    history = np.array(fitted.fit_report.history)
    assert (np.diff(history) >= -1e-8).all() and history[-1] > true.log_likelihood(rows)
    assert fitted.fit_report.log_likelihood == pytest.approx(fitted.log_likelihood(rows))
    for name in ("transition", "transition_noise", "observation_noise"):
        value = getattr(fitted, name)
        for i in range(len(value)):
            for j in range(i + 1):
                move = np.zeros(value.shape)
                move[i, j] = move[j, i] = 1e-4
                up, down = (fitted.with_parameters(**{name: value + s * move}).log_likelihood(rows) for s in (1, -1))
                assert abs(up - down) / 2e-4 < 0.2, name


def test_observation_weights_and_the_start_are_learnt_too():
    rng = np.random.default_rng(2)
    true = random_space(rng, 2, 3).with_parameters(transition=[[0.7, 0.2], [-0.1, 0.5]])
    rows = np.column_stack(list(true.simulate(60, rng)[0].values()))
    everything = true.fit(rows, ("observation", "initial_mean", "initial_covariance"), max_iterations=30)
    assert everything.fit_report.log_likelihood > true.log_likelihood(rows)
    assert everything.fit_report.missing == {}


def test_saved_and_loaded(tmp_path):
    model = random_space(np.random.default_rng(3), 2, 2)
    mf.save(model, tmp_path / "space.mfz")
    again = mf.load(tmp_path / "space.mfz")
    rows = np.arange(6.0).reshape(3, 2)
    assert again.log_likelihood(rows) == model.log_likelihood(rows) and again.states == model.states
    assert mf.marginals(model)["state0[0]"].mean == pytest.approx(model.initial_mean[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space([[1.0, 0.0]], [[1.0]], [[1.0]], [[1.0]]), "observation\\) must be a matrix of 1 columns|square"),
        (lambda: Space([[1.0]], [[-1.0]], [[1.0]], [[1.0]]), "transition_noise\\) is no covariance"),
        (lambda: Space([[1.0]], np.eye(2), [[1.0]], [[1.0]]), "transition_noise\\) needs shape \\(1, 1\\)"),
        (
            lambda: Space([[1.0]], [[1.0]], [[1.0]], [[1.0]], states=["a"], variables=["a"]),
            "'a' is the name of a state",
        ),
        (lambda: Space([[1.0]], [[0.0]], [[1.0]], [[1.0]]).unrolled(3), "transition_noise that is positive definite"),
        (lambda: Space([[1.0]], [[1.0]], [[1.0]], [[1.0]]).fit([1.0, 2.0], ["gain"]), "got \\['gain'\\]"),
        (lambda: Space([[1.0]], [[1.0]], [[1.0]], [[1.0]]).fit([1.0]), "at least two rows, got 1"),
        (lambda: Space([[1.0]], [[1.0]], [[1.0]], [[1.0]]).filter(np.zeros((0, 1))), "at least one row"),
        (lambda: Space([[1.0]], [[1.0]], [[1.0]], [[1.0]]).filter([1.0, 2.0])["b"], "no state 'b'"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make()


def test_observations_that_tell_each_other_are_refused():
    model = Space([[1.0]], [[1.0]], [[1.0], [2.0]], np.zeros((2, 2)))
    with pytest.raises(mf.ImpossibleEvidenceError, match="row 0 have a singular covariance"):
        model.filter([[1.0, 2.0], [1.0, 2.0]])
