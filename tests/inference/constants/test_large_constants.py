"""Sums of models with constants of 10^9 and more: probabilities are what they would be without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.strategies import random_evidence, random_spec

EXACT = ["enumeration", "junction_tree", "variable_elimination", "auto"]


def pair(constant: float) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork({"A": 2, "B": 3})
    net.add_factor(["A", "B"], log_table=[[0.0, 1.0, -1.0], [0.5, 0.0, 2.0]])
    net.add_factor(["A"], log_table=[constant, constant + 1.0])
    net.add_factor(["B"], log_table=[-3 * constant] * 3)
    return net


@pytest.mark.parametrize("constant", [1e5, 1e9, -1e9, 1e12])
@pytest.mark.parametrize("method", EXACT)
def test_marginals_add_up_and_log_z_has_the_constants(method: str, constant: float):
    plain, moved = mf.marginals(pair(0.0), method=method), mf.marginals(pair(constant), method=method)
    for name in ("A", "B"):
        np.testing.assert_allclose(moved[name], plain[name], rtol=1e-12)
        assert moved[name].sum() == pytest.approx(1.0, abs=1e-12)
        best = moved.max_marginals[name]
        np.testing.assert_allclose(best, plain.max_marginals[name] - 2 * constant, rtol=1e-15)
    np.testing.assert_allclose(moved.joint(["B", "A"]), plain.joint(["B", "A"]), rtol=1e-12)
    np.testing.assert_allclose(moved.expected_counts, plain.expected_counts, rtol=1e-12)
    wanted = plain.log_partition - 2 * constant
    assert moved.log_partition == pytest.approx(wanted, rel=1e-15)
    assert float(mf.log_partition(pair(constant), method=method)) == pytest.approx(wanted, rel=1e-15)
    assert moved.graph.score({"A": 0, "B": 0}) == pytest.approx(-2 * constant, rel=1e-12)


@pytest.mark.parametrize("ring", ["entropy", "sum_product", "max_sum", "min_sum", "counting"])
@pytest.mark.parametrize("method", EXACT[:3])
def test_semirings(method: str, ring: str):
    plain, moved = (mf.analysis.aggregate(pair(c), ring, method=method) for c in (0.0, 1e9))
    shift = 0.0 if ring in ("entropy", "counting") else -2e9
    assert moved == pytest.approx(plain + shift, rel=1e-15 if shift else 1e-12)


@pytest.mark.parametrize("method", EXACT[:3])
def test_factors_that_share_cells_and_differ_in_their_best(method: str):
    """The diagonal of a table, and all of it: what they have in common stays, the constant of another factor goes."""
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factors([["B", "B"], ["B", "A"]], log_table=[[0.0, 0.0], [2.0, 0.0]])
    net.add_factor(["A"], log_table=[0.0, 1e9])
    assert mf.analysis.aggregate(net, "entropy", method=method) == pytest.approx(np.log(2.0), abs=1e-9)
    assert mf.marginals(net, method=method)["B"].sum() == pytest.approx(1.0, abs=1e-12)


def test_a_product_beyond_floats_is_refused():
    with pytest.raises(mf.ModelError, match="take 'max_sum'"):
        mf.analysis.aggregate(pair(-1e9), "max_product")


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", sorted(methods("marginals")))
@pytest.mark.parametrize("seed", range(6))
def test_every_method_answers_as_without_constants(name: str, seed: int):
    """Bounds and guarantees hold of the model itself; single marginals are the same up to rounding of the tables."""
    spec = random_spec(seed, scale=1.0, hard=False)
    net, plain = spec.build().compile(), spec.oracle(random_evidence(seed, spec))
    if plain.impossible:
        return
    constants = np.zeros(net.structure.n_cells)
    reads = [where for _, _, where in spec._placed()]
    rng = np.random.default_rng(seed)
    # Factors that share cells share the constant; it is a power of two, so that tables stay what they were.
    moved = 0.0
    owner: dict[int, float] = {}
    for where in reads:
        value = owner.setdefault(int(where.min()), float(2.0 ** rng.integers(17, 24)))
        constants[np.unique(where)] = value
        moved += value
    graph = net.with_tables(np.round(net.log_tables, 6) + constants)
    known = spec.named(random_evidence(seed, spec))
    settings: dict[str, Any] = {"rng": 0} if "rng" in methods("marginals")[name].abilities else {}
    try:
        answer = mf.marginals(graph, known, method=name, **settings)
    except mf.ModelError:
        return
    low, high = answer.log_partition_bounds
    room = 1e-12 * moved + 1e-9
    assert low - room <= plain.log_partition + moved <= high + room
    if answer.guarantee == "exact":
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], plain.marginal(v), atol=1e-7)
    if answer.components is not None:
        before = mf.marginals(net.with_tables(np.round(net.log_tables, 6)), known, method=name, **settings)
        assert before.components is not None
        # What components lack of log Z, factors that no choice is left in, grows by the constants of whole factors.
        more = answer.log_partition - answer.components.log_partition.sum()
        more -= before.log_partition - before.components.log_partition.sum()
        sums = {0.0}
        for where in reads:
            sums |= {x + constants[where.min()] for x in sums}
        assert min(abs(more - x) for x in sums) <= 1e-6
        fixed = all(p.max() == 1.0 for _, p in answer.items())
        assert fixed or before.components.log_partition.sum() == 0.0 or more < moved


def test_expected_counts_where_the_only_possible_state_is_hundreds_of_powers_below():
    net = mf.MarkovNetwork({"A": 1, "B": 2})
    net.add_factor(["B"], log_table=[165.0, -470.0])
    net.add_factor(["B", "A"], log_table=[[-np.inf], [0.0]])
    for zeros in (False, True):
        answer = mf.marginals(net, method=mf.methods.JunctionTree(propagate_zeros=zeros))
        np.testing.assert_array_equal(answer.expected_counts, [0.0, 1.0, 0.0, 1.0])
