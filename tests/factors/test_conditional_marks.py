"""Marks of conditional distributions are kept where the numbers make them true, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.factors.structure import Structure
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from tests.oracle import Oracle
from tests.strategies import Spec, specs

EXACT = ["enumeration", "junction_tree", "variable_elimination"]


def network() -> mf.BayesianNetwork:
    rng = np.random.default_rng(0)
    net = mf.BayesianNetwork({"a": 2, "b": 3, "c": 3})
    net.add_cpt("a", [], [0.3, 0.7])
    net.add_cpt("b", ["a"], rng.dirichlet(np.ones(3), 2))
    net.add_cpt("c", ["b"], rng.dirichlet(np.ones(3), 3))
    return net


@pytest.mark.parametrize("method", [*EXACT, "belief_propagation", "mini_bucket", "auto"])
def test_other_tables_are_summed_as_they_are(method: str):
    graph = network().compile()
    ones = graph.with_tables(0 * graph.log_tables)
    assert float(mf.log_partition(ones, method=method)) == pytest.approx(np.log(18), abs=1e-12)
    np.testing.assert_allclose(mf.marginals(ones, method=method)["b"], 1 / 3, atol=1e-12)
    # And back again: the marks return with the numbers, and so do the plans.
    again = ones.with_tables(graph.log_tables)
    assert again.structure is graph.structure
    assert float(mf.log_partition(again, method=method)) == pytest.approx(0.0, abs=1e-12)


def test_only_the_factor_that_changed_loses_its_mark():
    graph = network().compile()
    tables = graph.log_tables.copy()
    tables[0] += 0.1
    other = graph.with_tables(tables)
    assert other.structure.child.tolist() == [-1, 1, 2]
    assert graph.with_tables(tables - 0.0).structure is other.structure, "kept, so that plans are found again"
    assert other.with_tables(graph.log_tables).structure is graph.structure


@settings(max_examples=60)
@given(specs("bayesian"), st.integers(0, 2**16), st.sampled_from(EXACT))
def test_changed_networks_agree_with_the_oracle(spec: Spec, seed: int, method: str):
    """Some rows of some tables are other numbers; evidence decides nothing, so that barren variables would be there."""
    rng = np.random.default_rng(seed)
    graph = spec.build().compile()
    tables = np.where(
        rng.random(len(graph.log_tables)) < rng.choice([0.1, 0.5]),
        rng.normal(size=len(graph.log_tables)),
        graph.log_tables,
    )
    changed = graph.with_tables(tables)
    oracle = Oracle(
        spec.cardinalities, [(s, t) for (s, _), t in zip(spec.factors, spec.from_pool(tables), strict=True)]
    )
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.log_partition(changed, method=method)
        return
    assert float(mf.log_partition(changed, method=method)) == pytest.approx(oracle.log_partition, rel=1e-11, abs=1e-9)
    answer = mf.marginals(changed, method=method)
    for v, name in enumerate(graph.variables):
        np.testing.assert_allclose(answer[name], oracle.marginal(v), atol=1e-9)
    assert mf.analysis.aggregate(spec.build(), "counting", method=method) == spec.oracle().count


def test_a_compiled_tree_plans_anew_where_marks_are_lost():
    graph = network().compile()
    tree = JunctionTree(propagate_zeros=False).compile(graph)
    ones = tree.with_tables(0 * graph.log_tables)
    rows = np.full((1, 3), -1, np.int32)
    assert ones.run_batch(rows).log_partition[0] == pytest.approx(np.log(18), abs=1e-12)
    assert ones.with_tables(graph.log_tables).run_batch(rows).log_partition[0] == pytest.approx(0.0, abs=1e-12)


def test_a_noisy_or_whose_numbers_change():
    net = mf.BayesianNetwork({"a": 2, "b": 2, "y": 2})
    net.add_cpt("a", [], [0.4, 0.6])
    net.add_cpt("b", [], [0.9, 0.1])
    net.add_noisy_or("y", ["a", "b"], [0.3, 0.8], leak=0.05)
    graph = net.compile()
    tables = graph.log_tables.copy()
    tables[4:] += np.log(2.0)  # all three contributions twice as large
    for method in EXACT:
        assert float(mf.log_partition(graph, method=method)) == pytest.approx(0.0, abs=1e-12)
        value = float(mf.log_partition(graph.with_tables(tables), method=method))
        assert value == pytest.approx(3 * np.log(2.0), abs=1e-12)


def test_directed_cycles_are_no_distributions(tmp_path: Path):
    """P(a | b) P(b | a): every row sums to one, and all together do not."""
    path = tmp_path / "cycle.uai"
    path.write_text("BAYES 2 2 2 2  2 1 0  2 0 1  4 .1 .9 .8 .2  4 .3 .7 .5 .5")
    graph = mf.io.read_uai(path)
    total = 0.1 * 0.3 + 0.8 * 0.7 + 0.9 * 0.5 + 0.2 * 0.5
    assert (graph.structure.child == -1).all()
    for method in [*EXACT, "auto"]:
        assert float(mf.log_partition(graph, method=method)) == pytest.approx(np.log(total), abs=1e-12)


def test_a_second_distribution_of_a_variable_has_no_mark():
    s = Structure.from_arrays([2], [0, 1, 2], [0, 0], [0, 0], n_cells=2, child=[0, 0])
    assert s.child.tolist() == [0, -1]
    graph = mf.FactorGraph(s, np.log([0.25, 0.75]))
    assert float(mf.log_partition(graph, method="junction_tree")) == pytest.approx(np.log(0.0625 + 0.5625))


@pytest.mark.parametrize("digits", [6, 7, 9])
def test_files_with_few_digits_have_one_log_partition(tmp_path: Path, digits: int):
    """Rows that sum to one only nearly: the product of the tables is what counts, in every method."""
    rng = np.random.default_rng(digits)
    rows = [rng.dirichlet(np.ones(3)) for _ in range(4)]
    text = " ".join(f"{x:.{digits}f}" for row in rows for x in row)
    first, rest = text.split()[:3], text.split()[3:]
    path = tmp_path / "rounded.uai"
    path.write_text(f"BAYES 2 3 3 2  1 0  2 0 1  3 {' '.join(first)}  9 {' '.join(rest)}")
    graph = mf.io.read_uai(path)
    given = np.array(rest, float).reshape(3, 3).sum(axis=1)
    wanted = float(np.log(np.array(first, float) @ given))
    for method in [*EXACT, "belief_propagation", "auto"]:
        assert float(mf.log_partition(graph, method=method)) == pytest.approx(wanted, abs=1e-14)
    # Still a network for whoever wants one: its rows are rescaled, as by add_cpt.
    net = mf.BayesianNetwork.from_factor_graph(graph)
    assert float(mf.log_partition(net, method="junction_tree")) == pytest.approx(0.0, abs=1e-14)


def test_strides_of_zero_ask_for_no_memory():
    """Sixty parents that read one row: the table would have 2^61 cells, so nobody looks and no mark is kept."""
    n = 60
    s = Structure.from_arrays([2] * (n + 1), [0, n + 1], [*range(n + 1)], [0], [0] * n + [1], n_cells=2, child=[n])
    assert mf.FactorGraph(s, np.log([0.5, 0.5])).structure.child.tolist() == [-1]
