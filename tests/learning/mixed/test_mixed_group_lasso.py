"""The pairwise mixed model: gradients, conditions of the minimum, conditionals of the joint, graphs found again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.mixed.columns import MixedTable
from markovfield.learning.mixed.pseudo_likelihood import MixedProblem

Model = mf.learning.MixedGraphicalModel


def random_model(seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    return Model(
        {"a": ["no", "yes"], "x": None, "b": 3, "y": None},
        precision=root @ root.T + np.eye(2),
        linear=rng.normal(size=2),
        shifts={"a": rng.normal(size=(2, 2)), "b": rng.normal(size=(3, 2))},
        fields={"a": rng.normal(size=2), "b": rng.normal(size=3)},
        couplings={("a", "b"): rng.normal(size=(2, 3))},
    )


def log_density(model, row):
    """Straight from the definition, up to a constant."""
    x = np.array([row[v] for v in model.continuous])
    at = {v: model.states(v).index(row[v]) for v in model.discrete}
    total = model.linear @ x - 0.5 * x @ model.precision @ x
    for v in model.discrete:
        total += model.fields[v][at[v]] + model.shifts[v][at[v]] @ x
    return total + sum(table[at[a], at[b]] for (a, b), table in model.couplings.items())


def test_exact_answers_are_sums_and_integrals_of_the_density():
    model = random_model()
    covariance = np.linalg.inv(model.precision)
    logs, means, cells = [], [], list(itertools.product(range(2), range(3)))
    for i, j in cells:
        h = model.linear + model.shifts["a"][i] + model.shifts["b"][j]
        logs.append(
            model.fields["a"][i] + model.fields["b"][j] + model.couplings["a", "b"][i, j] + 0.5 * h @ covariance @ h
        )
        means.append(covariance @ h)
    log_z = np.logaddexp.reduce(logs) + np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    answer = mf.marginals(model)
    assert answer.log_partition == pytest.approx(log_z)
    p = np.exp(logs - np.logaddexp.reduce(logs)).reshape(2, 3)
    np.testing.assert_allclose(answer["a"], p.sum(axis=1))
    assert answer["x"].mean == pytest.approx(p.ravel() @ np.array(means)[:, 0]) and answer["x"].mixture
    best = mf.decode(model)
    assert best.score == pytest.approx(log_density(model, best.assignment))


def test_conditionals_are_those_of_the_joint():
    model = random_model(1)
    rows = {"a": ["no", "yes"], "x": [0.3, -1.0], "b": [2, 0], "y": [1.5, 0.2]}
    for v in model.variables:
        found = model.conditional(v, rows)
        for i in range(2):
            evidence = {u: c[i] for u, c in rows.items() if u != v}
            answer = mf.marginals(model, evidence)[v]
            if v in model.discrete:
                np.testing.assert_allclose(found[i], answer, atol=1e-12)
            else:
                assert (found[0][i], found[1]) == pytest.approx(answer[:2]) and not answer.mixture
    with pytest.raises(mf.ModelError, match="needs a column for 'y'"):
        model.conditional("x", {"a": ["no"], "b": [1]})


def data_of(model, size, seed):
    return mf.sample(model, size, rng=seed).to_dict()


def test_the_gradient_is_that_of_the_value_and_the_value_of_the_conditionals():
    data = data_of(random_model(2), 40, 0)
    problem = MixedProblem.of(MixedTable.of(data, "test"))
    rng = np.random.default_rng(0)
    theta = problem.start() + 0.1 * rng.normal(size=len(problem.start()))
    value, gradient = problem(theta)
    for i in rng.choice(len(theta), 12, replace=False):
        move = np.zeros(len(theta))
        move[i] = 1e-6
        slope = (problem(theta + move)[0] - problem(theta - move)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)
    model = problem.model(theta)
    total = 0.0
    for v in model.variables:
        found = model.conditional(v, data)
        if v in model.discrete:
            at = [model.states(v).index(s) for s in data[v]]
            total += np.log(found[np.arange(40), at]).sum()
        else:
            mean, variance = found
            total -= np.sum(0.5 * (data[v] - mean) ** 2 / variance + 0.5 * np.log(2 * np.pi * variance))
    # Standardised numbers have a density that is larger by their scale.
    assert -value == pytest.approx(total + 40 * np.log(problem.width).sum(), rel=1e-9)


def test_a_minimum_meets_its_conditions():
    data = data_of(random_model(3), 200, 1)
    penalty = 12.0
    method = mf.methods.MixedGroupLasso(penalty=penalty, tolerance=1e-9, max_iterations=5000)
    problem = MixedProblem.of(MixedTable.of(data, "test"))
    theta = method._minimum(problem, penalty, problem.start(), Running())
    _, gradient = problem(theta)
    np.testing.assert_allclose(gradient[: problem.n_own], 0.0, atol=1e-3)
    groups = problem.cells[2]
    active = 0
    for g in range(len(problem.pairs)):
        own, slope = theta[problem.n_own :][groups == g], gradient[problem.n_own :][groups == g]
        strength = penalty * np.sqrt(len(own))
        if own.any():
            active += 1
            np.testing.assert_allclose(slope, -strength * own / np.linalg.norm(own), atol=1e-3 * strength)
        else:
            assert np.linalg.norm(slope) <= strength * (1 + 1e-6)
    assert 0 < active <= len(problem.pairs)


def sparse_model():
    """A chain k - u - v - w - m of both kinds, and two variables by themselves."""
    return Model(
        {"k": ["a", "b", "c"], "u": None, "v": None, "w": None, "m": 2, "alone": None, "coin": 2},
        precision=np.eye(4) + 0.45 * (np.eye(4, k=1) + np.eye(4, k=-1)) * np.outer([1, 1, 1, 0], [1, 1, 1, 0]),
        shifts={"k": [[-1.2, 0, 0, 0], [0, 0, 0, 0], [1.2, 0, 0, 0]], "m": [[0, 0, -0.8, 0], [0, 0, 0.8, 0]]},
    )


@pytest.mark.parametrize("selection", ["ebic", "cv"])
def test_the_graph_is_found_again(selection):
    true = sparse_model()
    data = data_of(true, 1500 if selection == "ebic" else 400, 4)
    method = mf.methods.MixedGroupLasso(selection=selection, n_penalties=8, folds=2, max_iterations=200)
    learned = mf.learn_structure(data, method=method, rng=0)
    wanted = {("k", "u"), ("u", "v"), ("v", "w"), ("w", "m")}
    assert set(true.edges) == wanted
    if selection == "ebic":
        assert set(learned.edges) == wanted
        np.testing.assert_allclose(learned.details.refitted.precision, true.precision, atol=0.2)
        answer = mf.marginals(learned.details.refitted, {"m": 1})
        assert answer["w"].mean == pytest.approx(mf.marginals(true, {"m": 1})["w"].mean, abs=0.3)
    else:
        assert set(learned.edges) >= wanted and learned.details.held_out is not None
    assert "MixedPath(8 penalties" in repr(learned.details) and len(learned.details.to_frame()) == 8
    assert sorted(learned.details.model.edges) == sorted(learned.edges)


def test_only_numbers_and_only_states():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3))
    x[:, 1] += x[:, 0]
    learned = mf.learn_structure({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}, method="mgm")
    assert learned.edges == (("a", "b"),)
    coin = rng.integers(2, size=400)
    states = {"p": coin, "q": coin ^ (rng.random(400) < 0.2), "r": rng.integers(2, size=400)}
    assert mf.learn_structure(states, method="mixed_group_lasso").edges == (("p", "q"),)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: mf.learn_structure(d | {"x": [1.0] * 20}, method="mgm"), "column 'x' is constant"),
        (lambda d: mf.learn_structure(d | {"k": ["a"] * 20}, method="mgm"), "column 'k' is constant"),
        (lambda d: mf.learn_structure(d | {"x": [None, *[0.5] * 19]}, method="mgm"), "'x' is missing in row 0"),
        (lambda d: mf.learn_structure([1, 2], method="mgm"), "takes a dict of columns"),
        (lambda d: mf.methods.MixedGroupLasso(selection="aic"), "must be 'ebic', 'cv' or None, got 'aic'"),
        (lambda d: mf.methods.MixedGroupLasso(penalty=-1.0), "penalty"),
        (lambda d: Model({"x": None}, precision=[[-1.0]]).compile(), "smallest eigenvalue -1"),
        (lambda d: Model({"x": None}, precision=[[1.0, 2.0]]), "precision needs finite numbers of shape \\(1, 1\\)"),
        (lambda d: Model({"x": None}, precision=[[1.0]], shifts={"x": [[1.0]]}), "'x', which is no discrete"),
        (lambda d: Model({"k": 2}, couplings={("k", "k"): np.eye(2)}), "pairs of discrete variables"),
    ],
)  # fmt: skip
def test_mistakes(make, message):
    rng = np.random.default_rng(0)
    data = {"k": list("ab" * 10), "x": rng.normal(size=20).tolist(), "y": rng.normal(size=20).tolist()}
    with pytest.raises(mf.ModelError, match=message):
        make(data)
