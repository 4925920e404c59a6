"""Diagonal Newton, voted perceptron and max-margin weights: against enumeration of all assignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.discriminative.assignment_hinge import AssignmentHinge
from markovfield.learning.discriminative.expectations import expectations_of
from markovfield.learning.discriminative.truth import rows_of
from markovfield.learning.undirected.problem import Problem

N = 5
EVERY = np.array(list(itertools.product((0, 1), repeat=N)))


def features(rows):
    """Three shared features of binary variables in a ring with a variable apart, by hand."""
    rows = np.atleast_2d(rows)
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    equal = sum((rows[:, a] == rows[:, b]) for a, b in ring)
    return np.stack([rows.sum(axis=1), equal, rows[:, 0] * rows[:, 2] + 2.0 * rows[:, 4]], axis=1).astype(float)


def model():
    names = [f"v{i}" for i in range(N)]
    single = mf.Feature([names[0]], float, places=[[n] for n in names[1:]], name="true")
    ring = [(names[0], names[1]), (names[1], names[2]), (names[2], names[3]), (names[3], names[0])]
    equal = mf.Feature(list(ring[0]), lambda a, b: float(a == b), places=[list(p) for p in ring[1:]], name="equal")
    made = mf.LogLinear(dict.fromkeys(names, 2), [single, equal, ["v0", "v2"], ["v4"]])
    both, last = made.parameter_names.index("v0=1 v2=1"), made.parameter_names.index("v4=1")
    operator = made.operator.toarray()
    shared = np.stack([operator[:, 0], operator[:, 1], operator[:, both] + 2.0 * operator[:, last]], axis=1)
    from scipy.sparse import csr_array

    return mf.LogLinear.from_arrays(made.base_graph, csr_array(shared), np.zeros(3), ["true", "equal", "both"])


def rows(seed, n=6):
    return np.random.default_rng(seed).integers(2, size=(n, N))


def negative_likelihood(w, data):
    scores = features(EVERY) @ w
    return len(data) * np.logaddexp.reduce(scores) - float((features(data) @ w).sum())


def problem_of(data):
    form = model()
    return Problem(form, encode(data, form), Running())


def test_the_model_has_the_features_of_this_file():
    form = model()
    w = np.array([0.3, -0.7, 1.1])
    log_z = mf.log_partition(form.with_parameters(w)).log_partition
    assert log_z == pytest.approx(np.logaddexp.reduce(features(EVERY) @ w))


@pytest.mark.parametrize("inference", ["junction_tree", "enumeration"])
def test_gradient_and_curvature_are_those_of_differences(inference):
    data, w, h = rows(0), np.array([0.2, 0.4, -0.3]), 1e-5
    expectations = expectations_of(problem_of(data), _method(inference), 10, None)
    value, gradient = expectations.at(w)
    assert value == pytest.approx(negative_likelihood(w, data))
    p = np.exp(features(EVERY) @ w - np.logaddexp.reduce(features(EVERY) @ w))
    mean = p @ features(EVERY)
    apart = features(EVERY) - mean
    covariance = len(data) * (apart.T * p) @ apart
    for i in range(3):
        step = np.eye(3)[i] * h
        slope = (negative_likelihood(w + step, data) - negative_likelihood(w - step, data)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
    np.testing.assert_allclose(expectations.variances(w), np.diag(covariance), rtol=1e-5)
    d = np.array([1.0, -2.0, 0.5])
    assert expectations.along(w, d) == pytest.approx(d @ covariance @ d, rel=1e-5)


def _method(name):
    from markovfield.inference.core.counts import resolve_counts

    return resolve_counts(name)


def test_samples_estimate_the_same():
    data, w = rows(1), np.array([0.2, 0.4, -0.3])
    problem = problem_of(data)
    exact = expectations_of(problem, _method("junction_tree"), 10, None)
    drawn = expectations_of(problem, _method("gibbs"), 4000, np.random.default_rng(0))
    _, slope = exact.at(w)
    value, near = drawn.at(w)
    assert np.isnan(value)
    spread = np.sqrt(exact.variances(w) / len(data))
    # Gibbs chains of five variables: some ten sweeps to an independent draw, and six standard errors.
    assert (np.abs(near - slope) < len(data) * 6 * spread * np.sqrt(10 / 4000)).all()
    np.testing.assert_allclose(drawn.variances(w), exact.variances(w), rtol=0.4)
    d = np.array([1.0, 1.0, -1.0])
    assert drawn.along(w, d) == pytest.approx(exact.along(w, d), rel=0.4)


@pytest.mark.parametrize("direction", ["newton", "conjugate"])
@pytest.mark.parametrize("seed", range(3))
def test_diagonal_newton_ends_where_maximum_likelihood_does(direction, seed):
    data = rows(seed)
    one = mf.fit(model(), data, method=mf.methods.DiagonalNewton(l2=0.4, direction=direction))
    other = mf.fit(model(), data, method=mf.methods.MaximumLikelihood(l2=0.4))
    np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)
    report = one.fit_report
    assert report.converged and report.guarantee == "exact"
    assert report.log_likelihood == pytest.approx(-negative_likelihood(one.parameters, data))
    assert report.objective == pytest.approx(-report.log_likelihood + 0.2 * one.parameters @ one.parameters)


def test_diagonal_newton_with_l1_and_with_missing_values():
    data = rows(3)
    penalty = mf.learning.Penalty(l1=np.full(3, 2.0), l2=np.full(3, 0.1))
    one, other = (
        mf.fit(model(), data, method=kind(penalty=penalty))
        for kind in (mf.methods.DiagonalNewton, mf.methods.MaximumLikelihood)
    )
    np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)
    holes = data.copy()
    holes[:, 4] = -1
    one, other = (
        mf.fit(model(), holes, method=kind(l2=0.5), hidden=["v4"])
        for kind in (mf.methods.DiagonalNewton, mf.methods.MaximumLikelihood)
    )
    np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-3)


def test_diagonal_newton_by_samples_comes_near():
    data = rows(4, 40)
    method = mf.methods.DiagonalNewton(l2=1.0, inference="gibbs", n_samples=400, max_iterations=40)
    one = mf.fit(model(), data, method=method, rng=0)
    other = mf.fit(model(), data, method=mf.methods.MaximumLikelihood(l2=1.0))
    assert one.fit_report.guarantee == "approximate"
    loss = negative_likelihood(one.parameters, data) - negative_likelihood(other.parameters, data)
    assert loss < 1.0 < negative_likelihood(np.zeros(3), data) - negative_likelihood(other.parameters, data)


def hinge(w, row, loss):
    wrong = loss * (row != EVERY).sum(axis=1)
    # v0 to v3 are a component, v4 is another: the sum of both hinges is the hinge of the whole.
    return float((wrong + features(EVERY) @ w).max() - features(row)[0] @ w)


@pytest.mark.parametrize("solver", ["block_frank_wolfe", "cutting_plane", "frank_wolfe"])
@pytest.mark.parametrize("seed", range(3))
def test_max_margin_is_the_least_of_the_hinges(solver, seed):
    data, l2, l1 = rows(seed, 4), 0.7, 0.3 if solver != "frank_wolfe" else 0.0
    fitted = mf.fit(model(), data, method=mf.methods.MaxMargin(l2=l2, l1=l1, solver=solver, loss=0.5), rng=0)

    def value(w):
        return sum(hinge(w, row, 0.5) for row in data) + 0.5 * l2 * w @ w + l1 * np.abs(w).sum()

    report, gap = fitted.fit_report, 1e-2 if solver == "frank_wolfe" else 1e-3  # what solvers end at
    best = value(fitted.parameters)
    assert report.converged and report.objective == pytest.approx(best)
    rng = np.random.default_rng(seed)
    near = fitted.parameters + rng.normal(size=(500, 3)) * rng.choice([0.01, 0.1, 1.0], size=(500, 1))
    assert best <= min(value(w) for w in near) * (1 + 2 * gap)


def test_planes_are_the_highest_of_each_component():
    data, w = rows(5, 2), np.array([0.5, -0.4, 0.8])
    problem = problem_of(data)
    found = AssignmentHinge(problem, rows_of(problem, "max_margin"), 1.0, 0.0, "auto", 1.0, None)
    assert found.n_components == 2
    for shard, row in enumerate(found.rows.states):
        heights = found.planes(w, shard).heights(w)
        assert heights.sum() == pytest.approx(hinge(w, row, 1.0))
        assert (heights >= 0).all()


@pytest.mark.parametrize("scaled", [True, False])
def test_the_perceptron_goes_down_to_the_least_of_its_objective(scaled):
    data, l2 = rows(6, 5), 0.5
    method = mf.methods.VotedPerceptron(n_steps=3000, l2=l2, scaled=scaled, averaged=True, learning_rate=0.5)
    fitted = mf.fit(model(), data, method=method, rng=0)

    def value(w):
        return len(data) * (features(EVERY) @ w).max() - float((features(data) @ w).sum()) + 0.5 * l2 * w @ w

    rng = np.random.default_rng(0)
    grid = rng.normal(size=(20000, 3)) * 0.5
    assert value(fitted.parameters) <= min(value(w) for w in grid) + 0.3


def test_the_perceptron_learns_what_can_be_separated():
    row = np.array([[1, 1, 1, 1, 1]])
    method = mf.methods.VotedPerceptron(n_steps=30, averaged=False)
    fitted = mf.fit(model(), row, method=method)
    assert mf.decode(fitted).states.tolist() == row[0].tolist()
    assert fitted.fit_report.message == "the data are the best assignment"


@pytest.mark.parametrize("name", ["voted_perceptron", "max_margin"])
def test_missing_values_are_refused_where_nothing_determines_them(name):
    data = rows(7)
    data[0, 4] = -1
    with pytest.raises(mf.ModelError, match=f"method '{name}' needs complete data, but variable 'v4' has missing"):
        mf.fit(model(), data, method=name)


def test_wrong_settings():
    with pytest.raises(mf.ModelError, match="solver of MaxMargin must be one of block_frank_wolfe"):
        mf.methods.MaxMargin(solver="adam")
    with pytest.raises(mf.ModelError, match="l2 of MaxMargin must be positive"):
        mf.methods.MaxMargin(l2=0.0)
    with pytest.raises(mf.ModelError, match="direction='conjugate' of DiagonalNewton takes no l1"):
        mf.fit(model(), rows(0), method=mf.methods.DiagonalNewton(direction="conjugate", l1=1.0))
    with pytest.raises(mf.ModelError, match="direction of DiagonalNewton must be"):
        mf.methods.DiagonalNewton(direction="up")


def test_what_is_stopped_has_an_answer():
    for name in ("diagonal_newton", "voted_perceptron", "max_margin"):
        fitted = mf.fit(model(), rows(0), method=name, callback=lambda progress: progress.step > 12)
        assert np.isfinite(fitted.parameters).all() and "stopped" in fitted.fit_report.message
