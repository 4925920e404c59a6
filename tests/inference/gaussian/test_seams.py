"""Queries, explanations and the moments that learning needs, against dense algebra and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.gaussian.moments import expected_moments
from tests.inference.gaussian.dense import truth


def random_field(n: int, seed: int) -> mf.GaussianField:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4)
    return mf.GaussianField(half @ half.T + np.eye(n), rng.normal(size=n))


@pytest.mark.parametrize("seed", range(3))
def test_queries_are_joints_and_regressions(seed: int) -> None:
    field = random_field(6, seed)
    noisy, hard = {5: (0.3, 0.5)}, {4: -1.0}
    mean, covariance, _ = truth(field.precision.toarray(), field.information, hard, noisy)
    found: Any = mf.query(field, [2, 0], evidence={4: -1.0, 5: 0.3}, noise={5: 0.5})
    np.testing.assert_allclose(found.mean(), mean[[2, 0]])
    np.testing.assert_allclose(found.covariance, covariance[np.ix_([2, 0], [2, 0])])
    given: Any = mf.query(field, [2, 0], evidence=noisy | hard, given=[3, 1])
    fixed = truth(field.precision.toarray(), field.information, hard | {3: 0.4, 1: 2.0}, noisy)
    np.testing.assert_allclose(given.mean({1: 2.0, 3: 0.4}), fixed.mean[[2, 0]])
    np.testing.assert_allclose(given.covariance, fixed.covariance[np.ix_([2, 0], [2, 0])])
    assert "given 3, 1" in repr(given) and "weight of 3" in given.to_frame().columns
    with pytest.raises(mf.ModelError, match="needs a value for each of"):
        given.mean({1: 2.0})
    with pytest.raises(mf.ModelError, match="variable 4 is known"):
        mf.query(field, 4, evidence={4: 1.0})
    with pytest.raises(mf.ModelError, match="needs at least one target"):
        mf.query(field, [])
    with pytest.raises(mf.ModelError, match="answered by sparse_cholesky"):
        mf.query(field, 0, method="gibbs")


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize(("evidence", "noise"), [({}, None), ({0: 1.0, 5: -0.3}, None), ({1: 0.7, 2: 0.1}, 0.4)])
def test_moments_are_the_derivatives_of_log_z(constrained: bool, evidence: dict[int, float], noise: float | None):
    form = mf.GaussianMarkovField.lattice((2, 3), kind="matern", kappa=1.0, tau=0.7).compile()
    form = form.changed(information=np.linspace(-1, 1, 6))
    if constrained:
        form = form.changed(constraints=np.array([[1.0, 2, 0, 0, 1, 1]]), values=np.array([0.5]))
    found = expected_moments(form, evidence, noise=noise)
    assert found.log_partition == pytest.approx(float(mf.log_partition(form, evidence, noise=noise)))

    def value(precision: object, information: np.ndarray) -> float:
        changed = form.changed(precision=precision, information=information)
        return float(mf.log_partition(changed, evidence, noise=noise))

    step = 1e-5
    for i in range(6):
        move = step * np.eye(6)[i]
        slope = value(form.precision, form.information + move) - value(form.precision, form.information - move)
        assert found.first[i] == pytest.approx(slope / (2 * step), abs=1e-6)
    columns = np.repeat(np.arange(6), np.diff(form.precision.indptr))
    for entry in range(len(form.precision.data)):
        i, j = int(form.precision.indices[entry]), int(columns[entry])
        move = np.zeros((6, 6))
        move[i, j] = move[j, i] = step
        slope = value(form.precision + move, form.information) - value(form.precision - move, form.information)
        twice = 1.0 if i == j else 2.0  # both triangles move together
        assert -0.5 * twice * found.second[entry] == pytest.approx(slope / (2 * step), abs=1e-6)


def test_explanations() -> None:
    field = mf.GaussianMarkovField.lattice((20, 20), kind="rw1")
    told: Any = mf.explain(field, "marginals", {(0, 0): 1.0}, noise=0.1)
    assert told.method == "sparse_cholesky" and told.open_directions == 0 and told.fill > 400
    assert told.fits and told.bytes >= 8 * told.fill / 2 and told.flops > 400
    assert told.to_dict()["guarantee"] == "exact" and "nonzeros" in repr(told) and len(told.to_frame()) == 7
    held: Any = mf.explain(field.sum_to_zero(), "sample")
    assert held.n_constraints == 1
    torus = mf.GaussianMarkovField.lattice((64, 64), periodic=True)
    assert mf.explain(torus, "log_partition").method == "toeplitz_fft"
    assert mf.log_partition(torus).method == "toeplitz_fft"
    assert mf.explain(torus, "sample", method="gibbs").guarantee == "see its answer"
    assert mf.explain(torus, "marginals", {0: 1.0}).method == "sparse_cholesky"
    with pytest.raises(mf.ModelError, match="not of 'fit'"):
        mf.explain(torus, "fit")


def test_auto_iterates_where_a_factor_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from markovfield.inference.gaussian import cholesky, explanations

    field = mf.GaussianMarkovField.lattice((40, 40), kind="matern", range=5)
    seen = {(3, 4): 1.0, (30, 20): -1.0}
    exact = mf.marginals(field, seen, noise=0.1)
    for module in (cholesky, explanations):
        monkeypatch.setattr(module, "memory_limit_bytes", lambda _: 10_000.0)
    told = mf.explain(field, "marginals", seen, noise=0.1)
    assert told.method == "conjugate_gradient" and "a factor would take" in told.reason
    found = mf.marginals(field, seen, noise=0.1, rng=0)
    assert found.method == "conjugate_gradient" and found.guarantees["means"] == "approximate"
    np.testing.assert_allclose(found.means, exact.means, atol=1e-6)
    with pytest.raises(mf.MemoryLimitError):
        mf.marginals(field.sum_to_zero(), seen, noise=0.1)
    with pytest.raises(mf.MemoryLimitError):
        mf.marginals(field, seen, noise=0.1, method="sparse_cholesky")
    assert "would be refused" in mf.explain(field.sum_to_zero(), "decode").reason
