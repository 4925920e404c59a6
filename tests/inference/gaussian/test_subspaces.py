"""Intrinsic fields, constraints and noisy evidence, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.inference.gaussian.dense import truth

KINDS = {
    "matern": {"kappa": 0.7, "tau": 1.3},
    "rw1": {"precision": 2.0},
    "rw2": {"precision": 0.5},
    "icar": {"precision": 3.0},
    "car": {"rho": -0.6},
}


@st.composite
def questions(draw):
    """A field of at most twelve sites, what was seen of it, and constraints: enough of both for it to be proper."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(sorted(KINDS)))
    shape = draw(st.sampled_from([(5,), (9,), (3, 3), (3, 4), (2, 2, 3)]))
    periodic = bool(draw(st.booleans())) and min(shape) > 2
    field = mf.GaussianMarkovField.lattice(shape, kind=kind, periodic=periodic, **KINDS[kind])
    n = field.n_variables
    sites = rng.permutation(n)
    hard = {int(v): float(rng.normal()) for v in sites[: rng.integers(0, 3)]}
    seen = sites[len(hard) : len(hard) + rng.integers(0, 5)]
    noisy = {int(v): (float(rng.normal()), float(rng.uniform(0.05, 2.0))) for v in seen}
    if draw(st.booleans()):
        field = field.sum_to_zero(trends=True)
    if draw(st.booleans()):
        field = field.constrained(rng.normal(size=n), float(rng.normal()))
    return field, hard, noisy


def dense(field, hard, noisy):
    form = field.compile()
    return truth(form.precision.toarray(), form.information, hard, noisy, form.constraints.toarray(), form.values)


def is_proper(field, hard, noisy) -> bool:
    form = field.compile()
    held = np.eye(field.n_variables)[[*hard, *noisy]]
    rows = np.vstack([held, form.constraints.toarray()])
    return bool(np.linalg.matrix_rank(rows @ form.null_space, tol=1e-8) == form.null_space.shape[1])


@given(questions())
@settings(max_examples=60, deadline=None)
def test_all_against_dense_algebra(question):
    field, hard, noisy = question
    evidence = hard | noisy
    if not is_proper(field, hard, noisy):
        with pytest.raises(mf.ModelError, match="is intrinsic and leaves"):
            mf.marginals(field, evidence)
        return
    mean, covariance, log_z = dense(field, hard, noisy)
    answer = mf.marginals(field, evidence)
    scale = np.sqrt(np.abs(np.diag(covariance)).max())
    np.testing.assert_allclose(answer.means, mean, atol=1e-8 * max(scale, 1.0, np.abs(mean).max()))
    np.testing.assert_allclose(answer.variances, np.diag(covariance), atol=1e-8 * scale**2 + 1e-12)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-7)
    assert float(mf.log_partition(field, evidence)) == pytest.approx(log_z, abs=1e-7)
    best = mf.decode(field, evidence)
    np.testing.assert_allclose(best.values, answer.means)
    drawn = mf.sample(field, 5, evidence, rng=0).values
    form = field.compile()
    np.testing.assert_allclose(drawn @ form.constraints.toarray().T, np.tile(form.values, (5, 1)), atol=1e-7)
    free = [v for v in range(field.n_variables) if v not in hard]
    two = free[:2]
    block = covariance[np.ix_(two, two)]
    if np.linalg.eigvalsh(block)[0] > 1e-6 * block.max():
        np.testing.assert_allclose(answer.joint(two).covariance, block, atol=1e-7 * scale**2)


@pytest.mark.parametrize("kind", ["rw1", "rw2", "matern"])
def test_draws_have_the_moments_of_the_subspace(kind: str):
    field = mf.GaussianMarkovField.lattice((3, 4), kind=kind, **KINDS[kind]).constrained(
        {(0, 0): 1.0, (2, 3): 2.0}, 1.0
    )
    noisy = {0: (1.0, 0.5), 5: (0.0, 0.3), 10: (2.0, 0.7)}
    mean, covariance, _ = dense(field, {}, noisy)
    size = 40_000
    drawn = mf.sample(field, size, noisy, rng=3).values
    error = np.sqrt(np.diag(covariance) / size) + 1e-12
    assert np.abs((drawn.mean(0) - mean) / error).max() < 5.5
    spread = np.cov(drawn.T)
    deviation = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / size)
    assert (np.abs(spread - covariance) < 5.5 * deviation + 1e-9).all()


def test_log_density_of_an_intrinsic_field_has_its_rank():
    walk = mf.GaussianMarkovField.lattice(6, kind="rw1", precision=2.5).compile()
    x = np.random.default_rng(0).normal(size=6)
    expected = 0.5 * 5 * np.log(2.5 / (2 * np.pi)) - 0.5 * 2.5 * (np.diff(x) ** 2).sum()
    # The product of the nonzero eigenvalues of a path's Laplacian is its number of sites.
    assert walk.log_density(x) == pytest.approx(expected + 0.5 * np.log(6))
    assert walk.log_density(x + 7.0) == pytest.approx(walk.log_density(x))
    held = mf.GaussianMarkovField.lattice(6, kind="rw1").sum_to_zero().compile()
    assert held.log_density(x) == -np.inf and np.isfinite(held.log_density(x - x.mean()))


def test_evidence_of_an_intrinsic_field_is_that_of_its_limit():
    """Adding a little to the diagonal: log Z of the data given a proper field tends to the intrinsic one's."""
    field = mf.GaussianMarkovField.lattice(8, kind="rw1")
    y = dict(enumerate(np.random.default_rng(1).normal(size=8).tolist()))
    found = float(mf.log_partition(field, y, noise=0.5)) - float(mf.log_partition(field))
    small = 1e-7
    near = mf.GaussianField(field.precision + small * np.eye(8))
    both = float(mf.log_partition(near, y, noise=0.5)) - float(mf.log_partition(near))
    # The proper field spreads its level over N(0, 1 / small), the intrinsic one has a flat density of one.
    assert found == pytest.approx(both - 0.5 * np.log(small / (2 * np.pi)), abs=1e-4)


def test_arrays_and_pairs_say_the_same():
    field = mf.GaussianMarkovField.lattice((3, 3), kind="matern", range=3)
    image = np.full((3, 3), np.nan)
    image[0, 1], image[2, 2] = 1.0, -1.0
    answers = [
        mf.marginals(field, image, noise=0.2),
        mf.marginals(field, image.ravel(), noise=np.full(9, 0.2)),
        mf.marginals(field, {(0, 1): 1.0, (2, 2): -1.0}, noise=0.2),
        mf.marginals(field, {1: (1.0, 0.2), 8: (-1.0, 0.2)}),
        mf.marginals(field, {1: 1.0, 8: (-1.0, 0.2)}, noise={1: 0.2}),
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.means, answers[0].means)
    assert answers[0].mean.shape == answers[0].variance.shape == (3, 3)
    low, high = answers[0].intervals(0.9).T
    np.testing.assert_allclose((high - low) / np.sqrt(answers[0].variances), 2 * 1.6448536, rtol=1e-7)
    assert list(answers[0].to_frame().columns) == ["variable", "mean", "variance"]
    assert "<table" in answers[0]._repr_html_()


def test_seeing_every_site_of_a_large_field_makes_nothing_dense():
    field = mf.GaussianMarkovField.lattice(60_000, kind="rw2")
    y = np.sin(np.arange(60_000) / 1000)
    found = mf.decode(field, y, noise=0.01)  # a matrix of these sites would take 29 GB
    residual = (y - found.values) / 0.01 - field.precision @ found.values
    assert np.abs(residual).max() < 1e-6


def test_errors():
    field = mf.GaussianMarkovField.lattice((2, 3), kind="rw1")
    with pytest.raises(mf.ModelError, match="leaves 1 direction open, among others where variable 0 is"):
        mf.marginals(field)
    with pytest.raises(mf.ModelError, match="no site \\(2, 0\\) in a lattice of shape"):
        mf.marginals(field, {(2, 0): 1.0})
    with pytest.raises(mf.ModelError, match="variable 1 must be a finite number, got nan"):
        mf.marginals(field, {1: np.nan})
    with pytest.raises(mf.ModelError, match="noise must be a variance of zero or more, got -1"):
        mf.marginals(field, {1: 1.0}, noise=-1)
    with pytest.raises(mf.ModelError, match="noise of variable 1 must be a variance"):
        mf.marginals(field, {1: (1.0, np.inf)})
    with pytest.raises(mf.ModelError, match=r"shape \(6,\) or \(2, 3\), got \(3, 2\)"):
        mf.marginals(field, np.zeros((3, 2)))
    with pytest.raises(mf.ModelError, match="evidence of variable 2 must be a finite number, got inf"):
        mf.marginals(field, np.array([0, 0, np.inf, 0, 0, 0]))
    with pytest.raises(mf.ModelError, match="noise as an array needs the shape"):
        mf.marginals(field, np.zeros((2, 3)), noise=np.ones(6))
    with pytest.raises(mf.ModelError, match="noise of variable 0 must be"):
        mf.marginals(field, np.zeros((2, 3)), noise=np.full((2, 3), -1.0))
    with pytest.raises(mf.ModelError, match="an array goes with evidence as one"):
        mf.marginals(field, {0: 1.0}, noise=np.ones(6))
    with pytest.raises(mf.ModelError, match="names variable 1 twice"):
        mf.marginals(field, {1: 0.0, (0, 1): 0.0})
    with pytest.raises(mf.ModelError, match=r"intervals\(level\) must be between zero and one"):
        mf.marginals(field, {1: 0.0}).intervals(95)
    with pytest.raises(
        mf.ImpossibleEvidenceError, match=r"constraint 0 contradicts the evidence .* it leaves is -6, and it must be 0"
    ):
        mf.marginals(field.sum_to_zero(), dict.fromkeys(range(6), 1.0))
    with pytest.raises(mf.ModelError, match="their joint has no precision matrix"):
        mf.marginals(field.sum_to_zero()).joint(range(6))
    net = mf.MarkovNetwork({"A": 2})
    with pytest.raises(mf.ModelError, match="noise is the variance of real-valued evidence"):
        mf.marginals(net, noise=1.0)
