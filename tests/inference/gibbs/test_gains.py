"""Gibbs sampling of wide and of many structured factors, which are read as they are, against exact answers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.automatic import MANY_FORMULAS, candidates
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.gibbs.gains import keeps_gains
from markovfield.methods import Gibbs

WIDE = 20


def wide_model():
    """A clause of 20 literals, one of three that is negative, chains of pairs, a count, a variable of three states."""
    rng = np.random.default_rng(3)
    net = mf.MarkovNetwork({**dict.fromkeys(range(WIDE), 2), "C": 3})
    net.add_clause(dict.fromkeys(range(WIDE), 1), weight=3.0)
    for i in range(WIDE - 1):
        net.add_clause({i: 1}, {i + 1: 1}, weight=float(rng.normal()))
        net.add_factor([i], log_table=[0.0, float(rng.normal() - 2.0)])
    net.add_factor([0, "C"], log_table=rng.normal(size=(2, 3)))
    return net


@pytest.mark.parametrize("evidence", [{}, {2: 0, "C": 1}, {1: [0.2, 0.8]}])
def test_wide_clauses_against_exact_marginals(evidence):
    net = wide_model()
    graph = net.compile()
    assert keeps_gains(graph, Evidence.parse(graph.structure, evidence))
    exact = mf.marginals(net, evidence, method="junction_tree")
    answer = mf.marginals(net, evidence, method=Gibbs(sweeps=20_000), rng=5)
    assert answer.converged and answer.method == "gibbs"
    errors = answer.monte_carlo.standard_errors
    off = np.abs(answer.values - exact.values)
    assert (off <= 6.0 * errors + 1e-9).all(), (off / np.maximum(errors, 1e-12)).max()
    again = mf.marginals(net, evidence, method=Gibbs(sweeps=20_000), rng=5, n_jobs=1)
    np.testing.assert_array_equal(again.values, answer.values)


def test_many_clauses_for_each_variable():
    rng = np.random.default_rng(1)
    net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
    for _ in range(200):
        some = rng.choice(8, 3, replace=False).tolist()
        net.add_clause({v: int(rng.integers(2)) for v in some}, weight=float(rng.normal(scale=0.3)))
    answer, exact = mf.marginals(net, method=Gibbs(sweeps=10_000), rng=2), mf.marginals(net)
    assert keeps_gains(net.compile(), Evidence.parse(net.compile().structure, None)) and answer.converged
    assert (np.abs(answer.values - exact.values) <= 6.0 * answer.monte_carlo.standard_errors).all()


def test_what_is_hard_keeps_to_other_moves():
    net = wide_model()
    net.add_clause({0: 1, 1: 1})
    graph = net.compile()
    assert not keeps_gains(graph, Evidence.parse(graph.structure, None))
    with pytest.raises(mf.ModelError, match="gibbs moves one variable at a time"):
        mf.marginals(net, method=Gibbs(sweeps=10), rng=0)


def test_stopped_on_the_way():
    net, told = wide_model(), []

    def stop(progress):
        told.append(progress)
        return len(told) > 60

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = mf.marginals(net, method=Gibbs(sweeps=10**8, burn_in=100), rng=0, callback=stop)
    assert not answer.converged and answer.iterations < 10**8


def test_many_formulas_have_marginals_from_chains_by_default():
    """Not from messages that do not settle: ground networks of many soft formulas, where no junction tree fits."""
    n = 210
    kb = mf.MarkovLogic(f"t = {{1, ..., {n}}}\nP(t)\n0.01 P(x) ^ P(y) => x = y\n-1 P(x)")
    graph = kb.ground().compile()
    assert graph.n_factors > MANY_FORMULAS
    names = [m.name for m in candidates("auto", "marginals", graph, Evidence.parse(graph.structure, None))]
    assert names[-2:] == ["gibbs", "belief_propagation"] and names[0] == "junction_tree"
    hard = mf.MarkovLogic(f"t = {{1, ..., {n}}}\nP(t)\n0.01 P(x) ^ P(y) => x = y\nP(1).").ground(closed=[]).compile()
    others = candidates("auto", "marginals", hard, Evidence.parse(hard.structure, None))
    assert "gibbs" not in [m.name for m in others]


def test_lattices_of_distances_are_no_formulas():
    """However large, marginals of Potts and truncated lattices come from where those of tables do."""
    n = 110
    site = np.arange(n * n).reshape(n, n)
    pairs = [*zip(site[:-1].ravel(), site[1:].ravel(), strict=True)]
    pairs += [*zip(site[:, :-1].ravel(), site[:, 1:].ravel(), strict=True)]
    told = {}
    for kind in ("table", "potts", "truncated"):
        net = mf.MarkovNetwork(dict.fromkeys(range(n * n), 3))
        if kind == "table":
            net.add_factors(pairs, log_table=0.5 * np.eye(3))
        elif kind == "potts":
            net.add_potts(pairs, 0.5)
        else:
            net.add_truncated(pairs, 0.5, 1)
        graph = net.compile()
        assert graph.n_factors > MANY_FORMULAS
        told[kind] = [m.name for m in candidates("auto", "marginals", graph, Evidence.parse(graph.structure, None))]
    assert "gibbs" not in told["table"] + told["potts"] + told["truncated"]
    assert told["potts"] == told["truncated"]
