"""Contrastive divergence and stochastic maximum likelihood by MC-SAT, beside the maximum of the exact likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf

CD, SML = mf.methods.ContrastiveDivergence, mf.methods.StochasticMaximumLikelihood
PROGRAM = """
t = {A, B, C}
P(t)
Q(t)
P(x) => Q(x)
P(x) ^ Q(y) ^ x != y
Q(x) v P(x)
"""
WORLDS = ["P(A) Q(A) P(B) Q(B) !P(C) !Q(C)", "!P(A) Q(A) P(B) Q(B) P(C) Q(C)", "!P(A) !Q(A) P(B) Q(B) !P(C) Q(C)"]


def weights(kb: Any) -> np.ndarray:
    return np.array([rule.weight for rule in kb.rules if not rule.hard])


@pytest.mark.parametrize(
    "method",
    [
        SML(n_steps=500, sampler="mc_sat", l2=0.5, learning_rate=1.0),
        CD(k=5, n_steps=500, sampler="mc_sat", l2=0.5, learning_rate=1.0),
    ],
    ids=["sml", "cd"],
)
def test_weights_are_near_those_of_the_exact_gradient(method: Any):
    kb = mf.MarkovLogic(PROGRAM)
    exact = weights(kb.fit(WORLDS, query=["P", "Q"], method=mf.methods.MaximumLikelihood(l2=0.5)))
    found = weights(kb.fit(WORLDS, query=["P", "Q"], method=method, rng=0))
    np.testing.assert_allclose(found, exact, atol=0.15)
    assert np.abs(exact).max() > 0.3


def test_what_hard_formulas_hold_fast_is_learned():
    """Exactly one of two atoms: single changes never move, so that their gradient is none."""
    kb = mf.MarkovLogic("t = {A}\nP(t)\nQ(t)\nP(x) v Q(x).\n!P(x) v !Q(x).\nP(x)\n")
    data = ["P(A) !Q(A)"] * 8 + ["!P(A) Q(A)"] * 2
    exact = weights(kb.fit(data, query=["P", "Q"], method=mf.methods.MaximumLikelihood(l2=0.1)))
    found = weights(kb.fit(data, query=["P", "Q"], method=SML(n_steps=300, sampler="mc_sat", l2=0.1), rng=0))
    stuck = weights(kb.fit(data, query=["P", "Q"], method=SML(n_steps=300, l2=0.1), rng=0))
    np.testing.assert_allclose(found, exact, atol=0.15)
    assert abs(stuck[0] - exact[0]) > 0.3


def test_hidden_atoms_are_drawn_given_what_is_seen():
    model = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    for pair in ("AB", "BC"):
        model.add_factor(list(pair), [[1.0, 1.0], [1.0, 1.0]])
    model.add_factor(["A"], [1.0, 1.0])
    rng = np.random.default_rng(0)
    a = rng.random(300) < 0.7
    rows = np.stack([a, np.where(rng.random(300) < 0.8, a, ~a), np.where(rng.random(300) < 0.7, a, ~a)], 1).astype(int)
    rows[:150, 1] = -1
    exact = mf.fit(model, rows, method=mf.methods.MaximumLikelihood(l2=5.0))
    found = mf.fit(model, rows, method=SML(n_steps=300, l2=5.0, sampler="mc_sat"), rng=1)
    for v in "ABC":
        assert abs(mf.marginals(exact)[v][1] - mf.marginals(found)[v][1]) < 0.05
    joint = [mf.marginals(x, targets=[("A", "B")]).joint(["A", "B"]) for x in (exact, found)]
    np.testing.assert_allclose(*joint, atol=0.05)


def test_same_seed_same_weights_on_any_number_of_threads():
    model = mf.MarkovLogic(PROGRAM).ground().log_linear()
    rows = np.random.default_rng(0).integers(0, 2, (20, 6))
    method = SML(n_steps=20, sampler="mc_sat")
    one, two, three = (mf.fit(model, rows, method=method, rng=2, n_jobs=n).parameters for n in (1, 2, 1))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match="sampler of ContrastiveDivergence must be 'gibbs' or 'mc_sat'"):
        CD(sampler="walk")
    net = mf.MarkovNetwork(dict.fromkeys(range(20), 2))
    net.add_clause(dict.fromkeys(range(20), 1), weight=1.0)
    data = np.ones((3, 20), int)
    with pytest.raises(mf.ModelError, match="takes factors of up to 2\\^16 cells"):
        mf.fit(net, data, method=SML(n_steps=2, sampler="mc_sat"))
    machine = mf.RestrictedBoltzmannMachine(3, 2)
    with pytest.raises(mf.ModelError, match="sampler of ContrastiveDivergence says nothing"):
        mf.fit(machine, np.zeros((4, 3), int), method=CD(sampler="mc_sat"))
