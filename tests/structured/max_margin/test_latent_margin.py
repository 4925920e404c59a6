"""Latent structural SVMs: the objective by enumeration, rounds that never rise, pace, chains with hidden states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe

MODEL = mf.structured.MulticlassModel()


def two_sided(n=40, seed=0):
    """Points outside of an interval: two hidden states where a line cannot."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    return x[:, None], np.where(np.abs(x) > 1, "out", "in")


def objective_by_enumeration(svm, X, y, C, table):
    """``1/2 |w|^2 + C sum [max (loss + score) - max score of the truth]``, all outputs and states one by one."""
    w, model, h = svm.weights_, svm.model_, svm.n_hidden
    batch = model.encode(X)
    pool, total = batch.pool(w), 0.5 * float(w @ w)
    for i, label in enumerate(y):
        own, n = list(model.classes).index(label), len(model.classes)
        scores = {}
        for state in range(n * h):
            states = np.zeros(len(y), np.int32)
            states[i] = state
            scores[state] = batch.scores(pool, states)[i]
        best = max(scores[s] + table[own][s // h] for s in scores)
        total += C * (best - max(scores[s] for s in scores if s // h == own))
    return total


@pytest.mark.parametrize("solver", [BlockFrankWolfe(gap=1e-4), "cutting_plane"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounds_never_rise(solver, seed):
    X, y = two_sided()
    svm = mf.structured.LatentSSVM(10.0, model=MODEL, n_hidden=2, solver=solver, rng=seed).fit(X, y)
    rounds = np.array(svm.report_.rounds)
    assert len(rounds) >= 2
    assert (np.diff(rounds) <= 1e-9 * rounds[0]).all()
    assert svm.report_.primal == pytest.approx(objective_by_enumeration(svm, X, y, 10.0, 1 - np.eye(2)))
    assert svm.report_.primal == rounds[-1]


def test_hidden_states_find_what_a_line_cannot(tmp_path):
    X, y = two_sided(80)
    svm = mf.structured.LatentSSVM(100.0, model=MODEL, n_hidden=2, n_starts=5, rng=0).fit(X, y)
    assert svm.score(X, y) > 0.95
    assert mf.structured.MulticlassSSVM(100.0, rng=0).fit(X, y).score(X, y) < 0.8
    svm.save(tmp_path / "latent.mfz")
    assert mf.load(tmp_path / "latent.mfz").score(X, y) == svm.score(X, y)
    assert "rounds" in repr(svm.report_)


def test_one_hidden_state_is_the_machine_without():
    X, y = two_sided()
    solver = BlockFrankWolfe(gap=1e-6)
    latent = mf.structured.LatentSSVM(1.0, model=MODEL, n_hidden=1, solver=solver, rng=0).fit(X, y)
    plain = mf.structured.MulticlassSSVM(1.0, solver=solver, rng=0).fit(X, y)
    assert latent.report_.primal == pytest.approx(plain.report_.primal, rel=1e-5)


def test_pace_and_tables_of_losses():
    X, y = two_sided(60)
    table = [[0, 3], [1, 0]]
    svm = mf.structured.LatentSSVM(10.0, model=MODEL, pace=1.5, loss=table, rng=1).fit(X, y)
    rounds = np.array(svm.report_.rounds)
    assert (np.diff(rounds) <= 1e-9 * rounds[0]).all()
    assert svm.report_.primal == pytest.approx(objective_by_enumeration(svm, X, y, 10.0, np.array(table)))
    assert svm.report_.loss == "table"


def test_graphs_with_hidden_states():
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(12):
        y = rng.integers(0, 2, 3)
        X.append((np.eye(2)[y] + rng.normal(0, 0.3, (3, 2)), np.array([[0, 1], [1, 2]])))
        Y.append(y)
    svm = mf.structured.LatentSSVM(1.0, n_hidden=2, rng=0).fit(X, Y)
    assert (np.diff(svm.report_.rounds) <= 1e-9).all()
    assert svm.score(X, Y) > 0.9
    batch = svm.model_.encode(X)
    pool, total = batch.pool(svm.weights_), 0.5 * svm.weights_ @ svm.weights_
    for i, y in enumerate(Y):
        values = {}
        for states in product(range(4), repeat=3):
            every = np.zeros(36, np.int32)
            every[3 * i : 3 * i + 3] = states
            values[states] = batch.scores(pool, every)[i]
        loss = {s: (np.array(s) // 2 != y).sum() for s in values}
        total += max(values[s] + loss[s] for s in values) - max(values[s] for s in values if not loss[s])
    assert svm.report_.primal == pytest.approx(total)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "C of LatentSSVM"),
        ({"pace": 1.0}, "pace"),
        ({"rounds": 0}, "rounds"),
        ({"n_starts": 0}, "n_starts"),
        ({"loss": "zero_one"}, "adds up over labels"),
        ({"n_hidden": 0}, "n_hidden"),
    ],
)
def test_what_is_refused(settings, message):
    X, y = two_sided(10)
    with pytest.raises(mf.ModelError, match=message):
        mf.structured.LatentSSVM(**{"model": MODEL, **settings}).fit(X, y)


def test_it_takes_no_development_set():
    X, y = two_sided(10)
    with pytest.raises(mf.ModelError, match="takes no development set"):
        mf.structured.LatentSSVM(model=MODEL).fit(X, y, X_dev=X, y_dev=y)


def chains(n=40, seed=0):
    """A label that is the same while hidden phases alternate: b follows two a in turn."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y = (["a", "a", "b"] * 4)[int(rng.integers(3)) :][: int(rng.integers(4, 9))]
        X.append([["bias"] for _ in y])
        X[-1][0] = ["bias", f"start={y[0]}{y[1]}"]
        Y.append(y)
    return X, Y


def test_chains_with_hidden_states(tmp_path):
    X, Y = chains()
    plain = mf.ChainSSVM(10.0, all_states=True, all_transitions=True, rng=0).fit(X, Y)
    found = [
        mf.ChainSSVM(10.0, hidden_states=2, all_states=True, all_transitions=True, rng=seed).fit(X, Y)
        for seed in range(4)
    ]
    for svm in found:
        assert (np.diff(svm.report_.rounds) <= 1e-9 * svm.report_.rounds[0]).all()
    best = min(found, key=lambda svm: svm.report_.primal)
    assert best.score(X, Y) > plain.score(X, Y) + 0.1
    best.save(tmp_path / "chain.mfz")
    assert mf.load(tmp_path / "chain.mfz").predict(X) == best.predict(X)
    with pytest.raises(mf.ModelError, match="takes no development set"):
        mf.ChainSSVM(hidden_states=2).fit(X, Y, X, Y)
