"""Vector autoregressions against dense formulas that share no code with them, and against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.graphs import MixedGraph


def random_model(rng, k=3, p=2, sparse=0.0):
    weights = rng.normal(size=(p, k, k)) * (rng.random((p, k, k)) >= sparse)
    root = rng.normal(size=(k, k))
    noise = root @ root.T / k + 0.3 * np.eye(k)
    model = mf.VectorAutoregression.from_parameters(weights, noise, rng.normal(size=k), [f"s{i}" for i in range(k)])
    factor = 0.8 / max(model.spectral_radius, 1e-3)
    weights = weights * factor ** np.arange(1, p + 1)[:, None, None]
    return mf.VectorAutoregression.from_parameters(weights, noise, rng.normal(size=k), model.variables_)


def matrix(columns):
    return np.column_stack(list(columns.values()))


def density(values, weights, constant, noise, order):
    """Log-density given the first rows, one row after another."""
    total, logdet = 0.0, np.linalg.slogdet(noise)[1]
    for t in range(order, len(values)):
        e = values[t] - constant - sum(weights[i] @ values[t - 1 - i] for i in range(order))
        total -= 0.5 * (e @ np.linalg.solve(noise, e) + logdet + len(e) * np.log(2 * np.pi))
    return total


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=15, deadline=None)
def test_least_squares_are_the_normal_equations(seed, k, p, intercept):
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.normal(size=(60, k)), axis=0) * 0.3 + rng.normal(size=(60, k))
    fitted = mf.VectorAutoregression(p, intercept=intercept).fit(values)
    x = np.array([np.concatenate([[1.0] * intercept, *values[t - p : t][::-1]]) for t in range(p, 60)])
    weights = np.linalg.solve(x.T @ x, x.T @ values[p:]).T
    np.testing.assert_allclose(np.hstack(list(fitted.coefficients_)), weights[:, int(intercept) :], atol=1e-8)
    residual = values[p:] - x @ weights.T
    np.testing.assert_allclose(fitted.noise_covariance_, residual.T @ residual / (60 - p), atol=1e-10)
    expected = density(values, fitted.coefficients_, fitted.intercept_, fitted.noise_covariance_, p)
    assert fitted.fit_report.log_likelihood == pytest.approx(expected, rel=1e-10)
    assert fitted.log_likelihood(values) == pytest.approx(expected, rel=1e-10)


def test_equal_to_statsmodels():
    api = pytest.importorskip("statsmodels.tsa.api", reason="statsmodels is not installed")
    rng = np.random.default_rng(0)
    values = matrix(random_model(rng).simulate(300, rng=1))
    peer = api.VAR(values).fit(2)
    ours = mf.VectorAutoregression(2).fit(values)
    np.testing.assert_allclose(ours.coefficients_, peer.coefs, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, peer.intercept, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.noise_covariance_, peer.sigma_u_mle, rtol=0, atol=1e-8)
    assert ours.fit_report.log_likelihood == pytest.approx(peer.llf, rel=1e-10)
    np.testing.assert_allclose(ours.forecast(8).mean, peer.forecast(values[-2:], 8), atol=1e-8)
    scale = peer.sigma_u[0, 0] / peer.sigma_u_mle[0, 0]
    np.testing.assert_allclose(ours.forecast(8).covariance * scale, peer.forecast_cov(8), atol=1e-8)
    np.testing.assert_allclose(ours.impulse_responses(6).responses, peer.irf(6).irfs, atol=1e-8)
    test, theirs = ours.granger_test([1], [0]), peer.test_causality([0], [1], kind="f")
    assert (test.statistic, test.p_value) == pytest.approx((theirs.test_statistic, theirs.pvalue), rel=1e-8)
    chosen, selected = mf.VectorAutoregression.select_order(values, 5), api.VAR(values).select_order(5)
    for name in ("aic", "bic", "hqic", "fpe"):
        np.testing.assert_allclose(getattr(chosen, name), selected.ics[name], rtol=1e-10)


GRAPH = MixedGraph(["s0", "s1", "s2"], directed=[("s0", "s1"), ("s1", "s2")], undirected=[("s0", "s1")])


def test_a_graph_is_fitted_to_the_maximum_of_its_likelihood():
    """Against a general minimiser of minus the log-density over the free weights and a factor of the precision."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    values = matrix(random_model(rng, p=1).simulate(120, rng=4))
    fitted = mf.VectorAutoregression(1, GRAPH).fit(dict(zip(["s0", "s1", "s2"], values.T, strict=True)))
    free = np.eye(3, dtype=bool)
    free[1, 0] = free[2, 1] = True
    joined = np.eye(3, dtype=bool)
    joined[0, 1] = joined[1, 0] = True
    assert (fitted.coefficients_[0][~free] == 0).all() and (fitted.noise_precision_[~joined] == 0).all()
    assert fitted.chain_graph() == GRAPH
    lower = [(0, 0), (1, 1), (2, 2), (0, 1)]

    def unpacked(w):
        weights, omega = np.zeros((3, 3)), np.zeros((3, 3))
        weights[free] = w[: free.sum()]
        for value, (i, j) in zip(w[free.sum() + 3 :], lower, strict=True):
            omega[i, j] = omega[j, i] = np.exp(value) if i == j else value
        return weights, w[free.sum() : free.sum() + 3], omega

    def objective(w):
        weights, constant, omega = unpacked(w)
        sign, logdet = np.linalg.slogdet(omega)
        if sign <= 0 or np.linalg.eigvalsh(omega)[0] <= 0:
            return 1e10
        e = values[1:] - constant - values[:-1] @ weights.T
        return 0.5 * (np.sum((e @ omega) * e) - len(e) * (logdet - 3 * np.log(2 * np.pi)))

    best = minimize(objective, np.zeros(int(free.sum()) + 7), method="BFGS", options={"gtol": 1e-6})
    weights, constant, omega = unpacked(best.x)
    np.testing.assert_allclose(fitted.coefficients_[0], weights, atol=1e-4)
    np.testing.assert_allclose(fitted.intercept_, constant, atol=1e-4)
    np.testing.assert_allclose(fitted.noise_precision_, omega, atol=1e-3)
    assert fitted.fit_report.log_likelihood >= -best.fun - 1e-7
    assert fitted.fit_report.converged


def test_arrows_with_lags_say_which_weights_there_are():
    rng = np.random.default_rng(5)
    columns = random_model(rng).simulate(80, rng=6)
    graph = MixedGraph(columns, directed=[(("s0", 2), "s1"), (("s1", 1), "s1")])
    fitted = mf.VectorAutoregression(2, graph).fit(columns)
    assert sorted(map(tuple, np.argwhere(fitted.coefficients_).tolist())) == [(0, 1, 1), (1, 1, 0)]
    assert np.count_nonzero(fitted.noise_precision_) == 3
    again = fitted.refitted(columns)
    np.testing.assert_allclose(again.coefficients_, fitted.coefficients_, atol=1e-9)


def test_the_lasso_meets_its_conditions_and_ebic_finds_the_graph():
    rng = np.random.default_rng(7)
    weights = np.zeros((1, 5, 5))
    weights[0][np.arange(5), np.arange(5)] = 0.4
    weights[0, 1, 0] = weights[0, 2, 1] = weights[0, 4, 3] = 0.45
    true = mf.VectorAutoregression.from_parameters(weights)
    values = matrix(true.simulate(600, rng=rng))
    penalty = 40.0
    fitted = mf.VectorAutoregression(1, penalty=penalty, tolerance=1e-9).fit(values)
    x, y = values[:-1], values[1:]
    slope = fitted.noise_precision_ @ (y - fitted.intercept_ - x @ fitted.coefficients_[0].T).T @ x
    slope *= np.std(y, axis=0)[:, None] / np.sqrt(np.mean(x**2, axis=0))
    used = fitted.coefficients_[0] != 0
    np.testing.assert_allclose(slope[used], penalty * np.sign(fitted.coefficients_[0][used]), rtol=1e-3)
    assert (np.abs(slope[~used]) <= penalty * (1 + 1e-3)).all() and 0 < used.sum() < 25
    chosen = mf.VectorAutoregression(1, penalty="ebic").fit(values)
    found = set(chosen.refitted(values).granger_graph(0.01).directed.edges())
    assert found >= {(0, 1), (1, 2), (3, 4)} == set(true.chain_graph().directed.edges())
    assert len(found) <= 6  # weights that were chosen because they are large look significant too


@given(st.integers(0, 10_000), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=10, deadline=None)
def test_the_unrolled_field_is_the_process(seed, k, p):
    rng = np.random.default_rng(seed)
    model = random_model(rng, k, p)
    steps = p + 3
    field = model.unrolled(steps)
    mean, stacked = model.stationary()
    np.testing.assert_allclose(field.mean, np.tile(mean, steps), atol=1e-8)
    lagged = stacked[:k, :k]
    full = np.zeros((steps * k, steps * k))
    power = np.eye(k * p)
    for h in range(steps):  # autocovariances are powers of the companion matrix times the stationary covariance
        lagged = (power @ stacked)[:k, :k]
        for t in range(steps - h):
            full[(t + h) * k : (t + h + 1) * k, t * k : (t + 1) * k] = lagged
            full[t * k : (t + 1) * k, (t + h) * k : (t + h + 1) * k] = lagged.T
        power = model.companion() @ power
    np.testing.assert_allclose(field.covariance, full, atol=1e-7)
    history = rng.normal(size=(p, k))
    ahead, after = model.forecast(3, history), model.unrolled(3, history)
    np.testing.assert_allclose(after.mean.reshape(3, k), ahead.mean, atol=1e-8)
    for h in range(3):
        block = slice(h * k, (h + 1) * k)
        np.testing.assert_allclose(after.covariance[block, block], ahead.covariance[h], atol=1e-8)


def test_forecasts_are_marginals_of_the_field_given_the_past():
    model = random_model(np.random.default_rng(8), 2, 2)
    past = {"s0": [0.3, -0.2, 1.0], "s1": [1.0, 0.5, 0.1]}
    evidence = {f"{v}[{t}]": past[v][t] for v in past for t in range(3)}
    answer = mf.marginals(model.unrolled(5), evidence)
    ahead = model.forecast(2, past, level=0.9)
    for h in range(2):
        for i, v in enumerate(past):
            assert answer[f"{v}[{3 + h}]"] == pytest.approx((ahead.mean[h, i], ahead.covariance[h, i, i]))
    assert ahead.to_frame().shape == (4, 5) and "2 steps" in repr(ahead)
    # 90 % of a normal lies within 1.6448536 standard deviations.
    np.testing.assert_allclose((ahead.upper - ahead.mean)[0], 1.6448536 * np.sqrt(np.diag(ahead.covariance[0])))
    assert mf.marginals(model)["s0[0]"].mean == pytest.approx(model.stationary()[0][0])


def test_responses_are_what_noise_does():
    model = random_model(np.random.default_rng(9), 2, 2)
    start = np.zeros((2, 2))
    quiet = model.forecast(4, start).mean
    pushed = model.forecast(4, [[0.0, 0.0], [1.0, 0.0]]).mean  # one unit of series 0 at the last step
    responses = model.impulse_responses(4)
    np.testing.assert_allclose(responses["s1", "s0"][1:], (pushed - quiet)[:, 1], atol=1e-10)
    root = model.impulse_responses(0, orthogonal=True).responses[0]
    np.testing.assert_allclose(root @ root.T, model.noise_covariance_, atol=1e-12)
    cumulated = model.impulse_responses(3, cumulated=True).responses[-1]
    np.testing.assert_allclose(cumulated, responses.responses[:4].sum(axis=0), atol=1e-12)
    assert len(responses.to_frame()) == 20


def test_graphs_by_tests_and_what_is_drawn_of_them():
    weights = [[[0.5, 0.0, 0.0], [0.4, 0.5, 0.0], [0.0, 0.0, 0.5]]]
    noise = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.6], [0.0, 0.6, 1.0]])
    true = mf.VectorAutoregression.from_parameters(weights, noise, variables=["a", "b", "c"])
    fitted = mf.VectorAutoregression(1).fit(true.simulate(1500, rng=2))
    found = fitted.tested_graph(0.001)
    assert found == MixedGraph(["a", "b", "c"], directed=[("a", "b")], undirected=[("b", "c")]) == true.chain_graph()
    assert len(fitted.granger_tests()) == 6 and len(fitted.contemporaneous_tests()) == 3
    assert fitted.granger_graph(correction="fdr").undirected.number_of_edges() == 0
    unrolled = true.dynamic_graph()
    assert unrolled.parents("b[1]") == ["a[0]", "b[0]"] and unrolled.neighbours("b[1]") == ["c[1]"]
    # The field of the chain graph has no edge that its moral graph lacks.
    moral = mf.graphs.moralize(unrolled)
    compiled = true.unrolled(2, history=np.zeros((1, 3))).markov_graph()
    assert all(moral.has_edge(a.replace("[0]", "[1]"), b.replace("[0]", "[1]")) for a, b in [("b[0]", "c[0]")])
    assert compiled.has_edge("b[0]", "c[0]") and not compiled.has_edge("a[1]", "b[1]")


def test_saved_and_loaded(tmp_path):
    columns = random_model(np.random.default_rng(1)).simulate(60, rng=1)
    model = mf.VectorAutoregression(2).fit(columns)
    mf.save(model, tmp_path / "var.mfz")
    again = mf.load(tmp_path / "var.mfz")
    np.testing.assert_array_equal(again.forecast(3).mean, model.forecast(3).mean)
    np.testing.assert_array_equal(again.noise_precision_, model.noise_precision_)
    assert again.variables_ == model.variables_ and repr(again) == repr(model)
    with pytest.raises(mf.ModelError, match="fitted to data in this session"):
        again.granger_tests()


VAR = mf.VectorAutoregression
ROWS = np.random.default_rng(0).random((9, 2))
TWICE = np.column_stack([np.arange(30.0) % 7, 2 * (np.arange(30.0) % 7)])
ONE = [[[0.5]]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VAR(0), "order=...\\) must be an integer of at least 1, got 0"),
        (lambda: VAR(penalty=-1.0), "penalty=...\\), where it is not 'ebic', must be a number of at least 0"),
        (lambda: VAR().forecast(2), "has no numbers yet"),
        (lambda: VAR().fit({"a": [1.0, None, 4.0], "b": [1, 2, 3]}), "'a' is missing in row 1"),
        (lambda: VAR().fit({"a": [1.0, 2.0], "b": [1.0]}), "'b' has 1 rows, column 'a' has 2"),
        (lambda: VAR(3).fit(np.eye(4)), "at least 20 rows for 4 series and order 3, got 4"),
        (lambda: VAR().fit({"a": ["x", "y"]}), "'a' must hold numbers only, got 'x'"),
        (lambda: VAR().fit(np.column_stack([np.arange(9.0) % 4, np.ones(9)])), "of 1 is constant"),
        (lambda: VAR(graph=MixedGraph(directed=[("q", 0)])).fit(ROWS), "has a node 'q', which is no series"),
        (lambda: VAR(graph=MixedGraph(bidirected=[(0, 1)])).fit(ROWS), "undirected edges, got 0 <-> 1"),
        (lambda: VAR(graph=MixedGraph(directed=[((0, 2), 1)])).fit(ROWS), "with a lag from 1 to 1"),
        (lambda: VAR(graph=MixedGraph(directed=[((0, 1), 1), (1, 0)])).fit(ROWS), "give all or none"),
        (lambda: VAR(2).fit(TWICE), "linearly dependent"),
        (lambda: VAR.from_parameters([[[1.2]]]).stationary(), "not stable \\(an eigenvalue has modulus 1.2"),
        (lambda: VAR.from_parameters(ONE, [[-1.0]]), "smallest eigenvalue is -1"),
        (lambda: VAR.from_parameters(ONE).granger_tests(), "fitted to data"),
        (lambda: VAR(penalty=1.0).fit(ROWS).granger_tests(), "not shrunk by a penalty"),
        (lambda: VAR().fit(ROWS).granger_graph(correction="all"), "correction is 'holm', 'fdr' or None, got 'all'"),
        (lambda: VAR.from_parameters(ONE).forecast(1), "needs a history"),
        (lambda: VAR.from_parameters(ONE).forecast(1, [1.0], level=1.5), "between 0 and 1"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make()
