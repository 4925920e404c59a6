"""Gibbs sampling against exact distributions: every scan, evidence, hard zeros, structured factors, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.gibbs import single_site
from markovfield.inference.gibbs.gibbs import SCANS, Gibbs
from markovfield.inference.gibbs.single_site import ColouredSites, prepare_chains, sites_of, tables_of
from markovfield.inference.gibbs.single_site_kernel import DIRECT, LINEAR
from markovfield.inference.gibbs.tree_blocks import TreeBlocks
from markovfield.kernels.random import streams
from tests.inference.chains import check_counts, check_joint, exact_values, grid
from tests.strategies import Clause, Counted, Spec, Table, random_evidence, random_spec, specs_with_evidence

EVERY_SCAN = pytest.mark.parametrize("scan", SCANS)


def soft(seed: int) -> Spec:
    """A loopy model of five variables, factors of up to three of them, no hard zeros."""
    rng = np.random.default_rng(seed)
    cards = (2, 3, 2, 4, 3)
    scopes = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 1, 4), (4,), (0, 4)]
    tables = [Table((scope,), rng.normal(size=[cards[v] for v in scope])) for scope in scopes]
    # A tied pair of factors.
    return Spec(cards, (*tables, Table(((0, 2), (2, 0)), 0.7 * rng.normal(size=(2, 2)))), tuple("abcde"))


@EVERY_SCAN
@pytest.mark.parametrize("evidence", [{}, {1: 2}, {3: np.array([0.2, 1.0, 0.0, 0.6]), 0: 1}])
def test_samples_have_the_joint_distribution(scan: str, evidence: dict[int, Any]):
    spec = soft(1)
    found = mf.sample(spec.build(), 6000, spec.named(evidence), Gibbs(scan, thinning=12), rng=3)
    assert found.guarantee == "approximate"
    assert found.effective_sample_size > 4000, "thinned to near independence"
    check_joint(found, spec.oracle(evidence))


@EVERY_SCAN
def test_sites_without_tables_have_the_same_distribution(scan: str, monkeypatch: pytest.MonkeyPatch):
    """Sums of log-potentials in place of look-ups, for some sites or for all."""
    for limit in (0, 12):
        monkeypatch.setattr(single_site, "SITE_CELLS", limit)
        spec = soft(2)
        evidence = {4: np.array([1.0, 0.5, 0.2])}
        found = mf.sample(spec.build(), 6000, spec.named(evidence), Gibbs(scan, thinning=12), rng=4)
        check_joint(found, spec.oracle(evidence))


@EVERY_SCAN
def test_log_odds_of_pairs_have_the_same_distribution(scan: str, monkeypatch: pytest.MonkeyPatch):
    """Two states and pairs alone: log-odds linear in the neighbours, some pairs twice and in either order."""
    monkeypatch.setattr(single_site, "SITE_CELLS", 0)
    rng = np.random.default_rng(0)
    scopes = [(0, 1), (2, 1), (1, 2), (3, 0), (0, 4), (4, 3), (2, 4), (1,), (3,)]
    tables = [Table((scope,), rng.normal(size=(2,) * len(scope))) for scope in scopes]
    spec = Spec((2,) * 5, tuple(tables), tuple("abcde"))
    graph = spec.build().compile()
    for evidence in ({}, {4: 1, 0: np.array([0.5, 1.5])}):
        known = Evidence.parse(graph.structure, spec.named(evidence))
        assert (sites_of(prepare_chains(graph, known)).table == LINEAR).all()
        found = mf.sample(graph, 6000, spec.named(evidence), Gibbs(scan, thinning=12), rng=5)
        check_joint(found, spec.oracle(evidence))


def test_hard_zeros_and_larger_factors_are_not_linear(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(single_site, "SITE_CELLS", 0)
    net = mf.MarkovNetwork(dict.fromkeys("abcde", 2) | {"f": 3})
    net.add_factor(["a", "b"], [[1.0, 2.0], [3.0, 0.0]])
    net.add_factor(["b", "c", "d"], np.arange(1.0, 9.0).reshape(2, 2, 2))
    net.add_factor(["d", "e"], [[1.0, 2.0], [3.0, 1.0]])
    net.add_factor(["e", "f"], np.arange(1.0, 7.0).reshape(2, 3))
    graph = net.compile()
    sites = sites_of(prepare_chains(graph, Evidence.parse(graph.structure, None)))
    assert (sites.table == DIRECT).all()
    sites = sites_of(prepare_chains(graph, Evidence.parse(graph.structure, {"c": 0, "f": 1, "a": 0})))
    assert (sites.table == LINEAR).all(), "evidence leaves pairs alone"
    assert sites.variable.tolist() == [1, 3, 4]


def test_tables_are_the_conditional_distributions():
    spec = soft(3)
    graph = spec.build().compile()
    problem = prepare_chains(graph, Evidence.parse(graph.structure, None))
    sites = sites_of(problem)
    tables = tables_of(problem, sites)
    probabilities = np.asarray(spec.oracle().probabilities, float).reshape(spec.cardinalities)
    rng = np.random.default_rng(0)
    for i, v in enumerate(sites.variable.tolist()):
        for _ in range(10):
            states = [int(rng.integers(c)) for c in spec.cardinalities]
            where: list[Any] = list(states)
            where[v] = slice(None)
            exact = probabilities[tuple(where)]
            links = range(int(sites.link_offsets[i]), int(sites.link_offsets[i + 1]))
            at = int(sites.table[i]) + sum(int(sites.link_stride[j]) * states[sites.link_variable[j]] for j in links)
            ours = np.diff(tables[at : at + len(exact) - 1], prepend=0.0, append=1.0)
            np.testing.assert_allclose(ours, exact / exact.sum(), atol=1e-12)


# Hard zeros that single-site moves can pass: no two neighbours on a ring are both 1, one clause, a forbidden state.
RING = Spec(
    (2,) * 7,
    (
        Table(tuple((i, (i + 1) % 7) for i in range(7)), np.array([[0.0, 0.4], [0.4, -np.inf]])),
        Clause(((0, 1, True), (3, 1, True), (5, 0, True)), np.inf),
    ),
    tuple(f"x{i}" for i in range(7)),
)


@EVERY_SCAN
@pytest.mark.parametrize("evidence", [{}, {2: 1}])
def test_hard_zeros(scan: str, evidence: dict[int, int]):
    found = mf.sample(RING.build(), 5000, RING.named(evidence), Gibbs(scan, thinning=10), rng=0)
    check_joint(found, RING.oracle(evidence))


def test_trees_pass_where_single_sites_cannot():
    """Equal neighbours and a parity on top: only whole chains can move."""
    equal = np.where(np.eye(3) > 0, np.array([0.3, 0.0, -0.5])[:, None], -np.inf)
    spec = Spec(
        (3, 3, 3, 2, 2, 2),
        (
            Table(((0, 1), (1, 2)), equal),
            Table(((2, 3),), np.array([[0.5, 0.0], [0.0, 0.2], [0.1, 0.9]])),
            Counted("parity", ((3, 1, True), (4, 1, True), (5, 1, True)), (np.inf,)),
            Table(((4, 5),), np.array([[0.4, 0.0], [0.2, 0.0]])),
        ),
        tuple("abcdef"),
    )
    check_joint(mf.sample(spec.build(), 5000, method=Gibbs("trees", thinning=4), rng=0), spec.oracle())


def test_trees_move_pairs_that_several_factors_join():
    """Equal states by one factor, weights by others in either order: neither variable can move by itself."""
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 1.0]])
    net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 3.0]])
    net.add_factor(["B", "A"], [[1.0, 5.0], [7.0, 1.0]])
    net.add_factor(["B", "C"], [[1.0, 2.0], [3.0, 1.0]])
    expected = np.array([1 * 1, 1 * 2, 3 * 3, 3 * 1]) / 15  # of (A = B, C)
    found = mf.sample(net, 8000, method=Gibbs("trees"), rng=0)
    assert (found["A"] == found["B"]).all()
    check_counts(np.bincount(2 * found["A"] + found["C"], minlength=4), expected)
    given = mf.marginals(net, {"C": 1}, method=Gibbs("trees", sweeps=4000), rng=0)
    # Five standard errors of 16,000 independent draws: 6e-7.
    assert given["A"][0] == pytest.approx(0.4, abs=5 * np.sqrt(0.24 / 16_000))


def test_a_sweep_of_trees_over_a_forest_is_an_independent_sample():
    for seed in range(3):
        spec = random_spec(seed + 10, "forest", hard=False)
        found = mf.sample(spec.build(), 2000, method=Gibbs("trees", burn_in=1), rng=seed)
        sizes = found.monte_carlo.effective_sample_sizes
        assert (sizes > 1200).all()
        values = mf.marginals(spec.build(), method=Gibbs("trees", burn_in=1, sweeps=2), rng=seed).values
        # The root's distribution is exact after one sweep; some variable is a root.
        assert np.isfinite(values).all()
        joint = spec.oracle().probabilities
        if len(joint) > 1:
            check_joint(found, spec.oracle())


def test_blocks_of_trees_hold_no_cycle_and_all_variables():
    """The exact distribution is kept by each sweep: a chain that starts from it stays there."""
    spec = soft(4)
    oracle = spec.oracle()
    graph = spec.build().compile()
    problem = prepare_chains(graph, Evidence.parse(graph.structure, None))
    moves = TreeBlocks.of(problem)
    rng = np.random.default_rng(0)
    probability = np.asarray(oracle.probabilities, float)
    drawn = oracle.states[rng.choice(len(probability), 4000, p=probability / probability.sum())].astype(np.int32)
    counts = np.zeros(len(probability), np.int64)
    changed = np.zeros(5, np.int64)
    for row, stream in zip(drawn, streams(rng, len(drawn)), strict=True):
        before = row.copy()
        moves.advance(row, stream, 1)
        changed += row != before
        counts[np.ravel_multi_index(row, spec.cardinalities)] += 1
    assert (changed > 500).all(), "every variable is drawn in every sweep"
    check_counts(counts, probability)


@EVERY_SCAN
def test_structured_factors(scan: str):
    spec = Spec(
        (2, 3, 2, 2),
        (
            Clause(((0, 1, True), (1, 2, True)), 1.25),
            Counted("at_most_one", ((0, 1, True), (2, 1, True), (3, 1, True)), (np.inf,)),
            Counted("cardinality", ((1, 0, True), (2, 1, True), (3, 1, False)), (0.1, -0.6, 0.3, 0.9)),
        ),
        tuple("abcd"),
    )
    evidence = {1: np.array([0.5, 1.0, 0.7])}
    check_joint(
        mf.sample(spec.build(), 5000, spec.named(evidence), Gibbs(scan, thinning=10), rng=1), spec.oracle(evidence)
    )


@EVERY_SCAN
def test_noisy_max(scan: str):
    net = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
    net.add_cpt("A", (), [0.6, 0.4])
    net.add_cpt("B", (), [0.3, 0.7])
    net.add_noisy_or("C", ["A", "B"], [0.8, 0.4], leak=0.1)
    exact = mf.marginals(net, {"C": 1}, method="junction_tree")
    answer = mf.marginals(net, {"C": 1}, method=Gibbs(scan, sweeps=4000), rng=0)
    # Five standard errors: one false alarm in some million.
    for name in "AB":
        assert np.abs(answer[name] - exact[name]).max() < 5 * answer.standard_error(name).max() + 1e-12


@EVERY_SCAN
def test_large_structured_factors_by_trees(scan: str):
    """Twenty variables in one factor: auxiliary variables, which only trees carry along; gains need none."""
    net = mf.MarkovNetwork(dict.fromkeys(range(20), 2))
    net.add_cardinality(-0.5 * (np.arange(21) - 6.0) ** 2, dict.fromkeys(range(20), 1))
    for v in range(20):
        net.add_factor([v], [1.0, 0.3 + 0.05 * v])
    if scan != "trees":
        with pytest.raises(mf.ModelError, match="auxiliary"):
            mf.sample(net, 10, method=Gibbs(scan), rng=0)
    if scan in ("random", "coloured"):
        with pytest.raises(mf.ModelError, match="auxiliary"):
            mf.marginals(net, method=Gibbs(scan), rng=0)
        return
    answer = mf.marginals(net, method=Gibbs(scan, sweeps=2000), rng=0)
    exact = mf.marginals(net, method="junction_tree")
    assert np.abs(answer.values - exact.values).max() < 5 * answer.monte_carlo.standard_errors.max()


@EVERY_SCAN
def test_constant_and_single_variable_models(scan: str):
    net = mf.MarkovNetwork({"A": 2})
    net.add_factor(["A"], [1.0, 3.0])
    answer = mf.marginals(net, method=Gibbs(scan, sweeps=3000), rng=0)
    assert abs(answer["A"][1] - 0.75) <= 5 * answer.standard_error("A")[1] + 1e-12
    if scan != "random":
        assert answer["A"].tolist() == [0.25, 0.75]
        assert answer.standard_error("A").tolist() == [0, 0]
    check_counts(np.bincount(mf.sample(net, 4000, method=Gibbs(scan), rng=0)["A"]), np.array([0.25, 0.75]))
    sure = mf.marginals(net, {"A": 1}, method=Gibbs(scan, sweeps=10), rng=0)
    assert sure["A"].tolist() == [0, 1]
    assert sure.converged
    empty = mf.MarkovNetwork({})
    assert mf.sample(empty, 5, method=Gibbs(scan), rng=0).states.shape == (5, 0)
    assert len(mf.marginals(empty, method=Gibbs(scan, sweeps=5), rng=0)) == 0
    free = mf.MarkovNetwork({"A": 3, "B": 1})
    check_counts(np.bincount(mf.sample(free, 3000, method=Gibbs(scan), rng=0)["A"]), np.full(3, 1 / 3))


@pytest.mark.parametrize("scan", ["systematic", "trees"])
@settings(max_examples=30, deadline=None)
@given(specs_with_evidence(), st.integers(0, 5))
def test_marginals_of_random_models(scan: str, pair: tuple[Spec, dict[int, Any]], seed: int):
    """Any model either refuses with a reason or answers as it must: impossible states have none of the mass."""
    spec, evidence = pair
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(spec.build(), spec.named(evidence), method=Gibbs(scan, sweeps=10), rng=seed)
        return
    try:
        answer = mf.marginals(spec.build(), spec.named(evidence), method=Gibbs(scan, sweeps=200), rng=seed)
    except mf.ModelError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "junction_tree" in refusal
        return
    exact = exact_values(spec, oracle)
    assert (answer.values[exact == 0] == 0).all()
    for label in spec.labels:
        assert answer[label].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["bayesian", "graph", "forest"])
def test_marginals_of_soft_models_are_within_their_errors(kind: str):
    # Of some hundred states each, the worst within five standard errors: one false alarm in 10,000, were errors normal.
    compared = 0
    for seed in range(8):
        spec = random_spec(100 + seed, kind) if kind == "bayesian" else random_spec(seed, kind, hard=False, scale=0.7)
        evidence = random_evidence(seed, spec)
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            continue
        try:
            answer = mf.marginals(spec.build(), spec.named(evidence), method=Gibbs(sweeps=4000), rng=seed)
        except mf.ModelError:
            continue
        if not answer.converged:
            continue
        error = np.abs(answer.values - exact_values(spec, oracle))
        assert (error <= 5 * answer.monte_carlo.standard_errors + 1e-12).all()
        compared += 1
    assert compared >= 4


@EVERY_SCAN
def test_standard_errors_are_calibrated(scan: str):
    # z-scores over 200 repetitions: their variance has a standard deviation of sqrt(2 / 200) = 0.1, around a little
    # more than one since the errors are estimates too. The band is four deviations: one false alarm in 10,000 a state.
    spec = soft(5)
    exact = exact_values(spec, spec.oracle())
    model = spec.build().compile()
    z = []
    for seed in range(200):
        answer = mf.marginals(model, method=Gibbs(scan, sweeps=300, burn_in=20), rng=seed)
        z.append((answer.values - exact) / answer.monte_carlo.standard_errors)
    variance = np.mean(np.square(z), axis=0)
    assert ((variance > 0.65) & (variance < 1.5)).all(), variance


def test_frequencies_of_samples_are_calibrated():
    # As above, for the errors of samples.
    spec = soft(6)
    exact = exact_values(spec, spec.oracle())
    model = spec.build().compile()
    z = []
    for seed in range(200):
        drawn = mf.sample(model, 800, method=Gibbs(burn_in=20), rng=seed)
        values = np.concatenate([drawn.frequencies(label)[0] for label in spec.labels])
        z.append((values - exact) / drawn.monte_carlo.standard_errors)
    variance = np.mean(np.square(z), axis=0)
    assert ((variance > 0.65) & (variance < 1.5)).all(), variance


def test_averaging_conditionals_beats_counting_states():
    spec = soft(7)
    smooth = mf.marginals(spec.build(), method=Gibbs(sweeps=2000), rng=0).monte_carlo
    counted = mf.marginals(spec.build(), method=Gibbs("random", sweeps=2000), rng=0).monte_carlo
    assert np.median(smooth.effective_sample_sizes / counted.effective_sample_sizes) > 1.5


def test_colours_are_drawn_on_threads_as_without_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(single_site, "SHARD", 16)
    net = grid(12, 12, [[0.6, 0.0], [0.0, 0.6]])
    graph = net.compile()
    from markovfield.inference.core.running import Running

    problem = prepare_chains(graph, Evidence.parse(graph.structure, None))
    moves = ColouredSites.of(problem, Running(4), 1)
    assert moves.threaded
    assert [len(part) for part in moves.shards] == [5, 5], "a grid has two colours of 72"
    one, two = (mf.sample(net, 30, method=Gibbs("coloured", n_chains=1), rng=0, n_jobs=j).states for j in (1, 4))
    np.testing.assert_array_equal(one, two)
    exact = 0.5
    answer = mf.marginals(net, method=Gibbs("coloured", n_chains=1, sweeps=500), rng=0, n_jobs=4)
    worst = np.abs(answer.values - exact) / answer.monte_carlo.standard_errors
    assert worst.max() < 5.5


def test_strong_couplings_are_crossed_by_trees():
    """At a coupling where single sites hardly ever turn the whole chain over, trees do so at every sweep."""
    net = grid(1, 30, [[4.0, 0.0], [0.0, 4.0]])
    trees = mf.sample(net, 2000, method=Gibbs("trees"), rng=0)
    single = mf.sample(net, 2000, method=Gibbs(), rng=0)
    assert trees.effective_sample_size > 1500
    assert single.effective_sample_size < 200
