"""The verbs on Gaussian fields, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import markovfield as mf

NAMES = ["a", "b", "c", "d"]


def random_field(seed: int) -> tuple[mf.GaussianField, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(4, 4))
    precision = half @ half.T + np.eye(4)
    information = rng.normal(size=4)
    return mf.GaussianField(precision, information, NAMES), precision, information


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("evidence", [{}, {"b": 0.7}, {"d": -1.0, "a": 2.0}, dict.fromkeys(NAMES, 0.5)])
def test_all_four_verbs(seed: int, evidence: dict[str, float]):
    field, precision, information = random_field(seed)
    at = [NAMES.index(v) for v in evidence]
    free = [v for v in range(4) if v not in at]
    x = np.zeros(4)
    x[at] = list(evidence.values())
    inner = precision[np.ix_(free, free)]
    towards = information[free] - precision[np.ix_(free, at)] @ x[at]
    mean = np.linalg.solve(inner, towards) if free else np.zeros(0)
    covariance = np.linalg.inv(inner) if free else np.zeros((0, 0))
    score = x @ information - 0.5 * x @ precision @ x
    log_z = score + 0.5 * (len(free) * np.log(2 * np.pi) - np.linalg.slogdet(inner)[1] + towards @ mean)

    answer = mf.marginals(field, evidence)
    assert answer.guarantee == "exact" and answer.method == "sparse_cholesky"
    assert answer.log_partition == pytest.approx(log_z)
    assert float(mf.log_partition(field, evidence)) == pytest.approx(log_z)
    np.testing.assert_allclose(answer.means[free], mean, atol=1e-10)
    np.testing.assert_allclose(answer.variances[free], np.diag(covariance), atol=1e-10)
    assert (answer.variances[at] == 0).all()
    best = mf.decode(field, evidence)
    x[free] = mean
    assert best.optimal and best.score == pytest.approx(x @ information - 0.5 * x @ precision @ x)
    np.testing.assert_allclose(best.values, x, atol=1e-10)
    drawn = mf.sample(field, 4000, evidence, rng=seed)
    assert len(drawn) == 4000
    for v in free:
        error = np.sqrt(answer.variances[v] / 4000)
        assert abs(drawn[NAMES[v]].mean() - answer.means[v]) < 5 * error
    for v in at:
        assert (drawn[NAMES[v]] == x[v]).all()


def test_marginal_map_integrates_the_others_out():
    field, *_ = random_field(3)
    best = mf.decode(field, {"a": 1.0}, variables=["b"])
    inner = field.condition({"a": 1.0})
    alone = inner.marginal(["b"])
    assert best.assignment == pytest.approx({"b": float(alone.mean[0])})
    assert np.isnan(best.values[2:]).all()
    fixed = {"a": 1.0, "b": best["b"]}
    assert best.score == pytest.approx(float(mf.log_partition(field, fixed)))


def test_joints_are_fields():
    field, precision, _ = random_field(1)
    joint = mf.marginals(field).joint(["c", "a"])
    np.testing.assert_allclose(joint.covariance, np.linalg.inv(precision)[np.ix_([2, 0], [2, 0])])


def test_a_linear_gaussian_network_is_asked_like_any_model():
    net = mf.LinearGaussianNetwork()
    net.add_variable("x", bias=1.0, variance=2.0)
    net.add_variable("y", ["x"], [3.0], variance=0.5)
    assert mf.marginals(net)["y"].mean == pytest.approx(3.0)
    assert mf.marginals(net)["y"].variance == pytest.approx(18.5)
    assert "x" in repr(mf.marginals(net)) and "optimal" in repr(mf.decode(net)) and "2 of 2" in repr(mf.sample(net, 2))


def test_mistakes_are_told_in_one_sentence():
    field, *_ = random_field(0)
    with pytest.raises(mf.ModelError, match="'e'"):
        mf.marginals(field, {"e": 1.0})
    with pytest.raises(mf.ModelError, match="must be a finite number, got 'high'"):
        mf.marginals(field, {"a": "high"})
    with pytest.raises(mf.ModelError, match="finite number"):
        mf.sample(field, 3, {"a": np.inf})
    with pytest.raises(mf.ModelError, match="one mode"):
        mf.decode(field, n_best=2)
    with pytest.raises(mf.ModelError, match="there is no method 'metropolis'"):
        mf.sample(field, 3, method="metropolis")
    with pytest.raises(mf.ModelError, match="discrete variables"):
        mf.predict(field, [])
    with pytest.raises(mf.ModelError, match="takes no init"):
        mf.marginals(field, init=mf.marginals(field))


def test_a_factor_beyond_the_memory_limit_is_refused():
    n = 400
    path = sparse.diags_array([[-1.0] * (n - 1), [2.0] * n, [-1.0] * (n - 1)], offsets=[-1, 0, 1])
    field = mf.GaussianField(path)
    method = mf.methods.SparseCholesky(memory_limit="1 KiB")
    with pytest.raises(mf.MemoryLimitError, match=r"needs .* KiB, more than the memory limit of 1 KiB"):
        mf.marginals(field, {0: 1.0}, method=method)
    assert mf.marginals(field, {0: 1.0}, method=mf.methods.SparseCholesky(memory_limit="1 MiB"))[1].mean > 0
    with pytest.raises(mf.ModelError, match="memory_limit must be a number of bytes"):
        mf.methods.SparseCholesky(memory_limit="much")
