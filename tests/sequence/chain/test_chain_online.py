"""Online solvers: one update by hand, objectives against L-BFGS, averages, weights, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.objective import ChainObjective
from markovfield.sequence.chain.online import ONLINE_SOLVERS, Online
from tests.sequence.chain.test_chain_crf import objective, steps_of, toy
from tests.sequence.chains import Chains, random_chains

SOLVERS = sorted(ONLINE_SOLVERS)


def online(case: Chains, **settings: Any) -> Online:
    defaults = {
        "weights": np.zeros(0),
        "l2": 0.0,
        "step": None,
        "rng": np.random.default_rng(0),
        "running": Running(),
        "max_iterations": 1,
        "tolerance": 0.0,
        "period": 10,
        "callback": lambda *_: False,
    }
    return Online(features=case.features, data=case.encoded(), labels=case.labels, **{**defaults, **settings})


def feature_counts(case: Chains, labels: np.ndarray) -> np.ndarray:
    """The features of labels: the score is linear in the weights."""
    unit = np.eye(case.features.n_features)
    data = case.encoded()
    return np.array([float(chain_model(case.features, w).path_scores(data, labels)[0]) for w in unit])


def one(kind: str, scale: float = 1.0) -> Chains:
    """A single sequence, so that a pass is one update."""
    edges = kind == "edges"
    return random_chains(np.random.default_rng(3), [6], 4, valued=True, scale=scale, full=False, edges=edges)


@pytest.mark.parametrize("kind", ["first", "edges"])
def test_one_update_of_the_perceptron(kind: str):
    case = one(kind)
    best, _ = chain_model(case.features, case.weights).decode(case.encoded())
    assert (best != case.labels).any()
    found, said = online(case).perceptron(case.weights)
    difference = feature_counts(case, case.labels) - feature_counts(case, best)
    # The only update came after no sequence at all, so the average is the weights themselves.
    np.testing.assert_allclose(found - case.weights, difference, atol=1e-9)
    assert said["objective"] == (best != case.labels).sum()


def cost_augmented(case: Chains) -> tuple[np.ndarray, float]:
    """The path that is best when every wrong label earns one, and its lead over the true labels, by enumeration."""
    paths, values = case.paths(0)
    truth = tuple(case.labels.tolist())
    costs = np.array([sum(a != b for a, b in zip(path, truth, strict=True)) for path in paths])
    at = int(np.argmax(values + costs))
    return np.array(paths[at], np.int32), float((values + costs)[at] - values[paths.index(truth)])


def rival(case: Chains, margin: int) -> tuple[np.ndarray, float]:
    """The best path and what it lacks to be behind the true labels by a margin of its own, by enumeration."""
    if margin == 2:
        return cost_augmented(case)
    paths, values = case.paths(0)
    truth, at = tuple(case.labels.tolist()), int(np.argmax(values))
    wrong = sum(a != b for a, b in zip(paths[at], truth, strict=True))
    lead = float(values[at] - values[paths.index(truth)]) + (np.sqrt(wrong) if margin else 1.0)
    return np.array(paths[at], np.int32), lead


@pytest.mark.parametrize("kind", ["first", "edges"])
@pytest.mark.parametrize(("solver", "margin"), [("pa", 0), ("pa", 1), ("pa2", 0), ("pa2", 1), ("arow", 2)])
def test_one_update_with_a_margin(kind: str, solver: str, margin: int):
    case = one(kind, scale=0.3)
    worst, lead = rival(case, margin)
    difference = feature_counts(case, case.labels) - feature_counts(case, worst)
    size = float(difference @ difference)
    assert lead > 0 and size > 0
    for step in (0.01, 2.0):
        expected = {"pa": min(step, lead / size), "pa2": lead / (size + 0.5 / step), "arow": lead / (size + 1 / step)}
        for averaged in (True, False):  # of one sequence
            run = online(case, step=step, margin=margin, averaged=averaged)
            found, said = ONLINE_SOLVERS[solver](run, case.weights)
            np.testing.assert_allclose(found - case.weights, expected[solver] * difference, atol=1e-9)
            assert said["objective"] == pytest.approx(lead)
    if solver == "pa":
        # A step without a limit leaves exactly the margin that it was to leave.
        after, _ = online(case, step=1e9, margin=margin).passive_aggressive(case.weights)
        wanted = np.sqrt(float((worst != case.labels).sum())) if margin else 1.0
        assert after @ difference == pytest.approx(wanted, abs=1e-9)
    if solver == "arow":
        found, _ = online(case, step=0.5, variance=3.0).arow(case.weights)
        np.testing.assert_allclose(found - case.weights, lead / (3.0 * size + 2.0) * 3.0 * difference, atol=1e-9)


def test_weights_of_passive_aggressive_updates_without_averages():
    case = random_chains(np.random.default_rng(5), [4, 3, 5, 2, 4, 3], 3, valued=False, full=False)
    w = np.zeros(case.features.n_features)
    for s in np.random.default_rng(11).permutation(6):
        own = Chains(**{**vars(case), "data": case.data.select([s]), "labels": case.labels[case.span(s)], "weights": w})
        worst, lead = rival(own, 1)
        difference = feature_counts(own, own.labels) - feature_counts(own, worst)
        if difference.any():
            w = w + min(1.0, lead / float(difference @ difference)) * difference
    run = online(case, rng=np.random.default_rng(11), step=1.0, averaged=False)
    np.testing.assert_allclose(run.passive_aggressive(np.zeros(len(w)))[0], w, atol=1e-9)


def test_descent_is_averaged_over_passes():
    case = random_chains(np.random.default_rng(5), [4, 3, 5, 2, 4, 3], 3, valued=False, full=False)

    def ends(n: int) -> np.ndarray:
        run = online(case, rng=np.random.default_rng(1), l2=0.5, step=0.1, max_iterations=n, period=99)
        return run.sgd(np.zeros(case.features.n_features))[0]

    first, second, third = (ends(n) for n in (1, 2, 3))
    # Each answer is the mean of the passes' ends, pass t counting t times: so the ends can be told from the answers.
    last = first + 1.5 * (second - first), second + 2.0 * (third - second)
    np.testing.assert_allclose(third, (first + 2 * last[0] + 3 * last[1]) / 6, atol=1e-12)


def test_arow_grows_sure_of_what_it_has_seen():
    """The second update divides by the variances that the first has left."""
    case = one("first", scale=0.3)
    worst, _ = cost_augmented(case)
    first = feature_counts(case, case.labels) - feature_counts(case, worst)
    step = 0.5
    once, _ = online(case, step=step).arow(case.weights)
    twice, _ = online(case, step=step, max_iterations=2).arow(case.weights)
    again = Chains(**{**vars(case), "weights": once})
    worst, lead = cost_augmented(again)
    second = feature_counts(case, case.labels) - feature_counts(case, worst)
    variances = 1.0 / (1.0 + first**2 * step)
    expected = once + lead / (second**2 @ variances + 1 / step) * variances * second
    np.testing.assert_allclose(twice, expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["first", "edges"])
def test_one_update_of_gradient_descent(kind: str):
    case = one(kind)
    _, gradient = ChainObjective(case.features, case.encoded(), case.counts)(case.weights)
    value = ChainObjective(case.features, case.encoded(), case.counts)(case.weights)[0]
    l2, step = 0.7, 0.05
    found, said = online(case, l2=l2, step=step).sgd(case.weights)
    np.testing.assert_allclose(found, (1 - step * l2) * case.weights - step * gradient, atol=1e-9)
    assert said["objective"] == pytest.approx(value + l2 / 2 * found @ found)
    # AdaGrad's first step goes as far for every weight whose gradient is not zero, where a feature comes once.
    found, _ = online(case, l2=0.0, step=step).adagrad(case.weights)
    moved = found - case.weights
    away = np.abs(gradient) > 1e-9
    assert (np.sign(moved[away]) == -np.sign(gradient[away])).mean() > 0.8
    transitions = slice(*case.features.borders[1:3])
    np.testing.assert_allclose(np.abs(moved[transitions]), step, rtol=1e-3)


def test_average_of_the_perceptron():
    """The average over all sequences seen, from the weights after each, kept one by one."""
    case = random_chains(np.random.default_rng(5), [4, 3, 5, 2, 4, 3], 3, valued=False, full=False)
    rng = np.random.default_rng(11)
    orders = [np.random.default_rng(11).permutation(6)]
    w, kept = np.zeros(case.features.n_features), []
    for s in orders[0]:
        own = Chains(**{**vars(case), "data": case.data.select([s]), "labels": case.labels[case.span(s)]})
        best, _ = chain_model(case.features, w).decode(own.encoded())
        w = w + feature_counts(own, own.labels) - feature_counts(own, best)
        kept.append(w)
    found, _ = online(case, rng=rng).perceptron(np.zeros(len(w)))
    np.testing.assert_allclose(found, np.mean(kept, axis=0), atol=1e-9)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("solver", ["sgd", "adagrad"])
def test_descent_comes_close_to_the_minimum(solver: str, edges: bool):
    X, y = toy(150, seed=4)
    own = steps_of(X) if edges else None
    best = ChainCRF(l2=1.0, tolerance=1e-10).fit(X, y, edges=own).report_.objective
    crf = ChainCRF(l2=1.0, solver=solver, rng=0, max_iterations=150, period=40).fit(X, y, edges=own)
    assert best <= objective(crf, X, y, 1.0, own) < 1.01 * best


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_learn_and_repeat_themselves(solver: str):
    X, y = toy(80, seed=2)
    new, true = toy(40, seed=3)
    best = ChainCRF().fit(X, y).score(new, true)
    crf = ChainCRF(solver=solver, rng=0).fit(X, y)
    assert crf.score(new, true) > best - 0.06
    again = ChainCRF(solver=solver, rng=0, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(crf.model_.weights, again.model_.weights)
    weighted = ChainCRF(solver=solver, rng=0).fit(X, y, sample_weight=np.arange(80) % 2)
    half = ChainCRF(solver=solver, rng=0).fit(X[1::2], y[1::2])
    assert weighted.score(new, true) > half.score(new, true) - 0.1


def test_ends_of_training():
    X, y = toy(30)
    assert "passes" in ChainCRF(solver="sgd", max_iterations=2, rng=0).fit(X, y).report_.message
    easy = [[["a"], ["b"]], [["b"], ["a"]]]
    report = ChainCRF(solver="perceptron", rng=0).fit(easy, [["A", "B"], ["B", "A"]]).report_
    assert report.message == "a pass without a mistake" and report.objective == 0.0
    seen = []
    stopped = ChainCRF(solver="adagrad", rng=0).fit(X, y, callback=lambda p: seen.append(p) or len(seen) > 4)
    assert stopped.report_.message == "stopped by the callback"
    with pytest.raises(TimeoutError):
        ChainCRF(solver="adagrad").fit(X, y, time_limit=1e-9)
    with pytest.raises(mf.ModelError, match="left the range of numbers"):
        ChainCRF(solver="sgd", step=1e6, rng=0).fit([[{"a": 1e6}], [{"a": -1e6}, {"b": 1e6}]], [["A"], ["B", "A"]])
