"""What holds of every conditional model, and of every objective on it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import markovfield as mf
from markovfield.exceptions import FormatError, ModelError
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.objectives.registry import DIRECT, OBJECTIVES, objective_of
from tests.structured.cases import CASES, Case, all_models

# Objectives that sum over what is hidden.
HIDDEN = {"likelihood", "expected_loss", "marginal_likelihood"}
cases = pytest.mark.parametrize("name", CASES)


def encoded(case: Case, weights: Any = None) -> tuple[Any, Batch, np.ndarray]:
    model = case.model.shaped(case.X, case.Y)
    w = np.random.default_rng(3).normal(scale=0.5, size=model.n_weights)
    return model, model.encode(case.X, case.Y, weights), w


def has_hidden(batch: Batch) -> bool:
    return not batch.is_labelled


def log_sums(batch: Batch, pool: np.ndarray, clamped: bool) -> np.ndarray:
    """log Z of each example by enumeration of its outputs."""
    s, offsets = batch.structure, batch.variable_offsets
    found = []
    for i in range(batch.n_examples):
        first, last = int(offsets[i]), int(offsets[i + 1])
        scores = []
        for states in product(*(range(c) for c in s.cardinalities[first:last].tolist())):
            y = np.array(states)
            known = batch.labels[first:last]
            if clamped and (known[known >= 0] != y[known >= 0]).any():
                continue
            if clamped and batch.possible is not None:
                at = s.value_offsets[first:last] + y
                if not batch.possible[at].all():
                    continue
            full = np.zeros(s.n_variables, np.int32)
            full[first:last] = y
            scores.append(batch.scores(pool, full)[i])
        found.append(np.logaddexp.reduce(scores))
    return np.array(found)


def test_every_public_model_has_a_case() -> None:
    assert {type(case.model) for case in CASES.values()} == all_models()


@cases
def test_the_operator_is_linear_and_its_adjoint_is_its_transpose(name: str) -> None:
    model, batch, w = encoded(CASES[name])
    rng = np.random.default_rng(0)
    other, cells = rng.normal(size=len(w)), rng.normal(size=batch.structure.n_cells)
    base = batch.pool(np.zeros(len(w)))
    forward = batch.pool(w) - base
    assert np.allclose(batch.pool(2.0 * w + other) - base, 2.0 * forward + batch.pool(other) - base)
    assert np.isclose(forward @ cells, w @ batch.adjoint(cells), rtol=1e-12)
    if not has_hidden(batch):
        assert np.isclose(batch.scores(batch.pool(w) - base).sum(), w @ batch.joint_features(), rtol=1e-12)
    assert sum(part.size for part in model.named_weights(w).values()) == model.n_weights


@cases
def test_the_likelihood_is_that_of_enumeration(name: str) -> None:
    _, batch, w = encoded(CASES[name])
    pool = batch.pool(w)
    free, clamped = log_sums(batch, pool, False), log_sums(batch, pool, True)
    value, _ = objective_of("likelihood", "junction_tree").on(batch, running=Running())(w)
    assert value == pytest.approx((free - clamped).sum(), rel=1e-10)
    auto, _ = objective_of("likelihood").on(batch, running=Running())(w)
    assert auto == pytest.approx(value, rel=1e-9)


@cases
@pytest.mark.parametrize("objective", [*OBJECTIVES, *DIRECT])
def test_gradients_are_those_of_finite_differences(name: str, objective: str) -> None:
    _, batch, w = encoded(CASES[name])
    if has_hidden(batch) and objective not in HIDDEN:
        with pytest.raises(ModelError, match="label"):
            objective_of(objective).on(batch, running=Running())
        return
    if batch.possible is not None and objective != "likelihood":
        with pytest.raises(ModelError, match="likelihood"):
            objective_of(objective).on(batch, running=Running())
        return
    f = objective_of(objective).on(batch, running=Running())
    _, gradient = f(w)
    rng = np.random.default_rng(1)
    for direction in [*np.eye(len(w))[rng.permutation(len(w))[:8]], rng.normal(size=len(w))]:
        step = 1e-5
        slope = (f(w + step * direction)[0] - f(w - step * direction)[0]) / (2 * step)
        assert gradient @ direction == pytest.approx(slope, rel=2e-5, abs=2e-6)


@cases
@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "piecewise"])
def test_batches_add_up_and_weights_repeat(name: str, objective: str) -> None:
    case = CASES[name]
    model, batch, w = encoded(case)
    if has_hidden(batch) and objective not in HIDDEN:
        pytest.skip("hidden labels are for objectives that sum over them")

    def at(X: Any, Y: Any, weights: Any = None) -> tuple[float, np.ndarray]:
        made = model.encode(X, Y, weights)
        value, gradient = objective_of(objective).on(made, running=Running())(w)
        return value, gradient

    value, gradient = at(case.X, case.Y)
    singles = [at(*case.some([i])) for i in range(case.n)]
    assert value == pytest.approx(sum(v for v, _ in singles), rel=1e-9)
    assert np.allclose(gradient, sum(g for _, g in singles), rtol=1e-8, atol=1e-9)
    order = list(range(case.n))[::-1]
    assert at(*case.some(order))[0] == pytest.approx(value, rel=1e-9)
    weights = np.arange(case.n) % 3 + 0.0
    repeated = [i for i in range(case.n) for _ in range(int(weights[i]))]
    weighted, again = at(case.X, case.Y, weights), at(*case.some(repeated))
    assert weighted[0] == pytest.approx(again[0], rel=1e-9)
    assert np.allclose(weighted[1], again[1], rtol=1e-8, atol=1e-9)


@cases
def test_estimators_behave(name: str, tmp_path: Any) -> None:
    case = CASES[name]
    estimator = mf.StructuredClassifier(case.model, l2=0.5, rng=0)
    with pytest.raises(NotFittedError):
        estimator.predict(case.X)
    fitted = clone(estimator).fit(case.X, case.Y)
    again = clone(estimator).fit(case.X, case.Y)
    assert np.array_equal(fitted.weights_, again.weights_)
    assert fitted.report_.converged, fitted.report_.message
    assert fitted.report_.history[-1] >= fitted.report_.history[0]
    decoded = fitted.decode(case.X)
    assert decoded.guarantee == "exact"
    assert len(decoded.labels) == case.n
    # The best output of each example, by enumeration.
    if fitted.model_.start(np.random.default_rng(0)).any():
        return
    batch = fitted.model_.encode(case.X)
    pool = batch.pool(fitted.weights_)
    best = fitted.predict_n_best(case.X, 2)
    for i, found in enumerate(best):
        assert found[0][1] == pytest.approx(decoded.scores[i], abs=1e-9)
        assert len(found) == 1 or found[1][1] <= found[0][1] + 1e-12
    assert np.isclose(np.asarray([f[0][1] for f in best]).sum(), batch.scores(pool, decoded.states).sum())
    total = fitted.log_likelihood(case.X, case.Y).sum()
    assert total == pytest.approx(fitted.report_.log_likelihood, rel=1e-6)


@cases
def test_marginals_sum_to_one_and_predictions_by_them(name: str) -> None:
    case = CASES[name]
    fitted = mf.StructuredClassifier(case.model, l2=0.5, rng=0).fit(case.X, case.Y)
    for example in fitted.predict_marginals(case.X):
        for p in example:
            assert np.sum(p) == pytest.approx(1.0)
    found = fitted.marginals(case.X)
    assert len(found.entropies) == case.n
    assert min(h.min() for h in found.entropies) >= 0.0
    assert len(fitted.predict(case.X, decision="mpm")) == case.n
    assert len(fitted.sample(case.X, 2, rng=0)) == case.n
    assert 0.0 <= fitted.score(case.X, case.Y) <= 1.0


@cases
def test_saved_and_loaded(name: str, tmp_path: Any) -> None:
    case, path = CASES[name], tmp_path / "model.mf"
    fitted = mf.StructuredClassifier(case.model, l2=0.5, inference=mf.methods.JunctionTree(), rng=0)
    fitted.fit(case.X, case.Y)
    if name == "neural":
        with pytest.raises(ModelError, match="scores is ufunc"):
            fitted.save(path)
        return
    fitted.save(path)
    loaded = mf.load(path)
    assert type(loaded) is mf.StructuredClassifier
    assert isinstance(loaded.inference, mf.methods.JunctionTree)
    assert np.array_equal(loaded.weights_, fitted.weights_)
    assert str(loaded.decode(case.X).labels) == str(fitted.decode(case.X).labels)
    assert np.allclose(loaded.log_likelihood(case.X, case.Y), fitted.log_likelihood(case.X, case.Y))
    data = bytearray(path.read_bytes())
    at = data.index(b'"settings"')
    data[at + 3 : at + 6] = b"xxx"
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError):
        mf.load(path)


@cases
def test_mini_batches_reach_the_optimum(name: str) -> None:
    case = CASES[name]
    if "latent" in name:
        pytest.skip("not convex: where training ends depends on its steps")
    whole = mf.StructuredClassifier(case.model, l2=2.0).fit(case.X, case.Y)
    solver = mf.learning.StochasticGradient(passes=400, eta0=0.3, tau=20.0)
    parts = mf.StructuredClassifier(case.model, l2=2.0, solver=solver, batch_size=2, rng=0).fit(case.X, case.Y)
    assert parts.report_.objective == pytest.approx(whole.report_.objective, rel=1e-2)


def test_partial_labels_are_summed_over() -> None:
    case = CASES["graph"]
    Y = [[None if (i + j) % 2 else label for j, label in enumerate(y.tolist())] for i, y in enumerate(case.Y)]
    Y[2][:3] = [0, 1, 2]
    model = case.model.shaped(case.X, case.Y)
    batch = model.encode(case.X, Y)
    w = np.random.default_rng(5).normal(size=model.n_weights)
    pool = batch.pool(w)
    value, _ = objective_of("likelihood").on(batch, running=Running())(w)
    assert value == pytest.approx((log_sums(batch, pool, False) - log_sums(batch, pool, True)).sum(), rel=1e-9)


def test_constraints_and_fixed_labels_are_kept() -> None:
    case = CASES["graph"]
    fitted = mf.StructuredClassifier(case.model, l2=0.5).fit(case.X, case.Y)
    fixed = [[2, *[None] * (len(y) - 1)] for y in case.Y]
    assert all(labels[0] == 2 for labels in fitted.predict(case.X, fixed=fixed))
    assert all(labels[0] == 2 for labels in fitted.predict(case.X, fixed=fixed, decision="mpm"))
    same = [[([0, 1], "equal")] for _ in case.X]
    assert all(labels[0] == labels[1] for labels in fitted.predict(case.X, constraints=same))
    other = [[([0, 1], "different")] for _ in case.X]
    for p in fitted.predict_marginals(case.X, fixed=fixed, constraints=other):
        assert p[0].tolist() == [0.0, 0.0, 1.0]
        assert p[1][2] == 0.0
    with pytest.raises(ModelError, match="no output"):
        fitted.predict(case.X, fixed=fixed, constraints=[[([0], [True, True, False])], None, None, None])
    with pytest.raises(ModelError, match=r"example 1: .*shape \(3, 3\)"):
        fitted.predict(case.X, constraints=[None, [([0, 1], np.ones((2, 2)))], None, None])


def test_decisions_by_a_loss() -> None:
    case = CASES["multiclass"]
    fitted = mf.MulticlassCRF(l2=1.0).fit(case.X, case.Y)
    p = fitted.predict_proba(case.X)
    loss = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    best = np.asarray(fitted.classes_)[(p @ loss).argmin(axis=1)]
    assert fitted.predict(case.X, decision="mpm", loss=loss).tolist() == best.tolist()
    with pytest.raises(ModelError, match="decision='mpm'"):
        fitted.predict(case.X, loss=loss)
    with pytest.raises(ModelError, match="table"):
        fitted.predict(case.X, decision="mpm", loss=np.zeros((2, 2)))
