"""Sparse pairwise structures: recovery, choices along the path, awkward columns, and answers that do not wobble."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.special import logsumexp

import markovfield as mf
from markovfield.learning.core.data import DataTable, encode
from markovfield.learning.structures.group_lasso import GroupLasso
from markovfield.learning.structures.penalty_path import noise_level
from tests.learning.structures.test_hill_climbing import drawn
from tests.learning.structures.test_regressions import correlated_spins, spin_table


def pairs_of(graph) -> set[frozenset]:
    return {frozenset(e) for e in graph.edges}


@pytest.fixture(scope="module")
def thirty():
    """A sparse model of thirty spins and 4000 samples of it."""
    graph = nx.random_regular_graph(3, 30, seed=1)
    rng = np.random.default_rng(0)
    model = mf.Ising(list(graph.edges), coupling={e: float(rng.choice([-0.4, 0.4])) for e in graph.edges})
    return model, graph, mf.sample(model, 4000, rng=1)


@pytest.mark.parametrize("method", ["group_lasso", "group_l1", GroupLasso(gamma=0.25), GroupLasso(n_penalties=10)])
def test_a_sparse_graph_of_thirty_spins(thirty, method):
    model, graph, samples = thirty
    learned = mf.learn_structure(samples, method)
    assert isinstance(learned, mf.learning.LearnedGraph) and learned.converged and learned.method == "group_lasso"
    assert pairs_of(learned) == pairs_of(graph)
    for (a, b), coupling in zip(model.edges.tolist(), model.edge_couplings, strict=True):
        weight = learned.graph.edges[a, b]["weight"]
        assert np.sign(weight) == np.sign(coupling) and abs(weight) < 0.5
        np.testing.assert_allclose(
            learned.details.couplings[min(a, b), max(a, b)], weight * np.array([[1, -1], [-1, 1]]), atol=1e-12
        )


def test_more_rows_less_error(thirty):
    model, graph, samples = thirty
    wrong = []
    for rows in (150, 600, 4000):
        learned = mf.learn_structure(samples.states[:rows], "group_lasso", network=model.compile())
        wrong.append(len(pairs_of(learned) ^ pairs_of(graph)))
    assert wrong[0] > wrong[1] >= wrong[2] == 0


def test_stability_selection(thirty):
    _, graph, samples = thirty
    learned = mf.learn_structure(samples, GroupLasso(selection="stability", subsamples=10, n_penalties=12), rng=0)
    path = learned.details
    assert pairs_of(learned) <= pairs_of(graph) and len(learned.edges) > 40
    assert path.frequencies.shape == (len(path.edges),) and path.frequencies.max() == 1.0
    assert {frozenset(e) for e, f in zip(path.edges, path.frequencies, strict=True) if f >= 0.8} == pairs_of(learned)
    assert path.expected_false > 0 and "false edges are expected" in learned.notes[0]
    # Subsamples are the same for the same seed.
    strict = mf.learn_structure(
        samples, GroupLasso(selection="stability", subsamples=10, n_penalties=12, threshold=1.0), rng=0
    )
    assert pairs_of(strict) <= pairs_of(learned)
    np.testing.assert_array_equal(strict.details.frequencies, path.frequencies)


def test_cross_validation_is_of_rows_not_seen():
    """Folds by hand: an estimate at a given penalty from the other rows, scored by its own tables."""
    spins = correlated_spins(5, 300)
    table = spin_table(spins)
    learned = mf.learn_structure(table, GroupLasso(selection="cv", folds=3, n_penalties=6), rng=4)
    path = learned.details
    assert learned.score_name == "held_out" and learned.score == path.held_out[path.chosen] == path.held_out.max()
    assert path.held_out[0] < path.held_out[-1] and (path.held_out_error > 0).all()
    fold = np.random.default_rng(4).permutation(300) % 3
    for i in (1, 4):
        total = 0.0
        for k in range(3):
            share = (fold != k).sum() / 300
            fitted = mf.learn_structure(
                table.rows(np.flatnonzero(fold != k)), GroupLasso(penalty=path.penalties[i] * share)
            ).details
            coupling = np.zeros((5, 5))
            for (a, b), t in fitted.couplings.items():
                coupling[a, b] = coupling[b, a] = t[1, 1]
            field = np.array([fitted.fields[v][1] for v in range(5)])
            out = spins[fold == k]
            total -= np.logaddexp(0, -2 * out * (out @ coupling + field)).sum()
        assert path.held_out[i] == pytest.approx(total / 300, rel=1e-6)


def test_the_path(thirty):
    _, _, samples = thirty
    path = mf.learn_structure(samples, "group_lasso").details
    assert path.n_edges[0] == 0 and (np.diff(path.n_edges) >= -2).all() and (np.diff(path.penalties) < 0).all()
    np.testing.assert_array_equal((path.strengths != 0).sum(axis=1), path.n_edges)
    assert (np.diff(path.log_likelihoods) > 0).all() and (np.diff(path.objectives) < 0).all()
    np.testing.assert_array_equal(path.df, 30 + 4 * path.n_edges - 2 * path.n_edges)
    assert path.ebic[path.chosen] == path.ebic.max() and path.n_edges[path.chosen] == 45
    entered = (path.strengths != 0).argmax(axis=0)
    assert (np.diff(entered) >= 0).all()
    assert "chosen" in repr(path) and list(path.to_frame().columns)[:2] == ["penalties", "n_edges"]


def test_ebic_by_hand():
    """The graph's pseudo-likelihood at its maximum, which for a single edge is in closed form."""
    spins = correlated_spins(3, 400)[:, :2]
    learned = mf.learn_structure(spin_table(spins), GroupLasso(gamma=0.5))
    counts = np.array([[((spins == (a, b)).all(axis=1)).sum() for b in (-1, 1)] for a in (-1, 1)], float)
    likelihood = sum((counts * np.log(counts / counts.sum(axis=x, keepdims=True))).sum() for x in (0, 1))
    expected = likelihood - 0.5 * 4 * np.log(400) - 2 * 0.5 * np.log(2)
    assert learned.details.n_edges[-1] == 1 and learned.details.ebic[-1] == pytest.approx(expected, abs=1e-3)
    sides = [counts.sum(axis=x) for x in (0, 1)]
    alone = sum((c * np.log(c / 400)).sum() for c in sides) - 0.5 * 2 * np.log(400)
    assert learned.details.ebic[0] == pytest.approx(alone, rel=1e-9)


def test_a_given_penalty_is_that_of_the_path():
    table = drawn(5, n=6, rows=400)
    path = mf.learn_structure(table, GroupLasso(tolerance=1e-9)).details
    i = len(path.penalties) // 2
    one = mf.learn_structure(table, GroupLasso(penalty=path.penalties[i], tolerance=1e-9))
    assert one.score == pytest.approx(-path.objectives[i], rel=1e-10) and one.score_name == "minus the objective"
    kept = path.strengths[i] != 0
    assert pairs_of(one) == {frozenset(e) for e, k in zip(path.edges, kept, strict=True) if k}
    for e, strength in zip(path.edges, path.strengths[i], strict=True):
        if strength:
            assert one.graph.edges[e]["weight"] == pytest.approx(strength, abs=1e-5)
    assert not mf.learn_structure(table, GroupLasso(penalty=1.01 * path.penalties[0])).edges


def test_groups_come_as_a_whole():
    table = drawn(5, n=7, rows=400, cards=(2, 4))
    learned = mf.learn_structure(table, GroupLasso(selection=None))
    assert any(t.shape[0] > 2 and t.shape[1] > 2 for t in learned.details.couplings.values())
    for (a, b), t in learned.details.couplings.items():
        k, m = t.shape
        weight = learned.graph.edges[a, b]["weight"]
        assert abs(weight) == pytest.approx(np.sqrt((k - 1) * (m - 1) * np.mean(t**2)))
        np.testing.assert_allclose([*t.sum(axis=0), *t.sum(axis=1)], 0, atol=1e-12)
        assert weight > 0 or (k == m == 2)


@pytest.mark.parametrize("states", [2, 3])
def test_tables_of_any_number_of_states_by_proximal_gradient(states: int):
    """All K x K cells of every pair free, fields without a penalty: the minimum has the tables of ours."""
    rng = np.random.default_rng(states)
    n, rows, penalty = 4, 250, 30.0
    codes = rng.integers(states, size=(n, rows))
    codes[1] = np.where(rng.random(rows) < 0.5, codes[0], codes[1])
    codes[2] = np.where(rng.random(rows) < 0.4, codes[1], codes[2])
    one_hot = np.eye(states)[codes]  # [n, rows, states]
    pairs = list(itertools.combinations(range(n), 2))

    def loss(fields, tables):
        slope_f, slope_t, total = np.zeros_like(fields), np.zeros_like(tables), 0.0
        for s in range(n):
            scores = np.tile(fields[s], (rows, 1))
            for e, (a, b) in enumerate(pairs):
                if s in (a, b):
                    scores += one_hot[b] @ tables[e].T if s == a else one_hot[a] @ tables[e]
            log_p = scores - logsumexp(scores, axis=1, keepdims=True)
            total -= (one_hot[s] * log_p).sum()
            rest = np.exp(log_p) - one_hot[s]
            slope_f[s] = rest.sum(axis=0)
            for e, (a, b) in enumerate(pairs):
                if s in (a, b):
                    slope_t[e] += rest.T @ one_hot[b] if s == a else one_hot[a].T @ rest
        return total, slope_f, slope_t

    weight = penalty * (states - 1) / states
    fields, tables, rate = np.zeros((n, states)), np.zeros((len(pairs), states, states)), 1.0 / (2.0 * rows)
    for _ in range(1500):
        _, slope_f, slope_t = loss(fields, tables)
        fields = fields - rate * slope_f
        tables = tables - rate * slope_t
        norms = np.sqrt((tables**2).sum(axis=(1, 2), keepdims=True))
        tables = tables * np.maximum(1 - rate * weight / np.maximum(norms, 1e-300), 0.0)
    objective = loss(fields, tables)[0] + weight * np.sqrt((tables**2).sum(axis=(1, 2))).sum()
    table = DataTable(tuple(range(n)), (tuple(range(states)),) * n, codes.astype(np.int16))
    learned = mf.learn_structure(table, GroupLasso(penalty=penalty, tolerance=1e-10))
    assert -learned.score == pytest.approx(objective, rel=1e-9)
    for e, pair in enumerate(pairs):
        found = learned.details.couplings.get(pair, np.zeros((states, states)))
        np.testing.assert_allclose(found, tables[e], atol=1e-5)
    assert 1 < len(learned.edges) < 6


def test_relabelling_changes_nothing():
    table = drawn(8, n=7, rows=500, cards=(2, 3))
    learned = mf.learn_structure(table, GroupLasso(tolerance=1e-10))
    rng = np.random.default_rng(0)
    order = rng.permutation(7)
    codes, states = [], []
    for v in order:
        turn = rng.permutation(len(table.states[v]))
        codes.append(np.argsort(turn)[table.codes[v]])
        states.append(tuple(table.states[v][x] for x in turn))
    moved = DataTable(tuple(table.variables[v] for v in order), tuple(states), np.array(codes, np.int16))
    again = mf.learn_structure(moved, GroupLasso(tolerance=1e-10))
    assert pairs_of(again) == pairs_of(learned) and again.score == pytest.approx(learned.score, rel=1e-7)
    np.testing.assert_allclose(again.details.objectives, learned.details.objectives, rtol=1e-9)
    for a, b in learned.edges:
        weights = [abs(x.graph.edges[a, b]["weight"]) for x in (learned, again)]
        assert weights[0] == pytest.approx(weights[1], abs=1e-6)


@pytest.mark.parametrize("selection", ["ebic", "cv", "stability"])
def test_weights_are_repeated_rows(selection: str):
    table = drawn(8, n=5, rows=80)
    times = np.random.default_rng(1).integers(0, 4, 80)
    repeated = table.rows(np.repeat(np.arange(80), times))
    weighted = DataTable(table.variables, table.states, table.codes, times.astype(float))
    method = GroupLasso(selection=selection, subsamples=10, tolerance=1e-9)
    one, two = (mf.learn_structure(t, method, rng=3) for t in (repeated, weighted))
    np.testing.assert_allclose(one.details.objectives, two.details.objectives, rtol=1e-9)
    assert pairs_of(one) == pairs_of(two)
    if selection == "cv":
        np.testing.assert_allclose(one.details.held_out, two.details.held_out, rtol=1e-6)
    if selection == "stability":
        np.testing.assert_array_equal(one.details.frequencies, two.details.frequencies)


def test_the_number_of_threads_changes_nothing():
    table = drawn(8, n=8, rows=3000, cards=(2, 3))
    one, two = (mf.learn_structure(table, GroupLasso(selection="cv"), rng=0, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.details.strengths, two.details.strengths)
    np.testing.assert_array_equal(one.details.held_out, two.details.held_out)


def test_constant_columns_have_no_edges():
    spins = correlated_spins(4, 500)
    data = {f"s{i}": spins[:, i] for i in range(4)} | {"k": ["x"] * 500}
    learned = mf.learn_structure(data, "group_lasso")
    assert "k" in learned.graph and learned.graph.degree("k") == 0 and len(learned.edges) == 4
    assert learned.notes[0] == "'k' never changes: no edges"
    np.testing.assert_array_equal(learned.details.fields["k"], [0.0])
    for lonely in ({"k": ["x"] * 5}, {"k": ["x"] * 5, "a": [0, 1, 0, 1, 1]}):
        for method in ("group_lasso", "nodewise", "dependency_network"):
            assert not mf.learn_structure(lonely, method).edges
    balanced = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
    assert not mf.learn_structure(balanced, "group_lasso").edges


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_copies_of_a_column(copies: int, sign: int):
    """Columns that predict each other with certainty: the penalty keeps couplings finite, and minima are reached."""
    spins = correlated_spins(4, 400)
    data = np.column_stack([spins, *[sign * spins[:, 0]] * (copies - 1)])
    learned = mf.learn_structure(spin_table(data), GroupLasso(n_penalties=12))
    assert learned.converged and np.isfinite(learned.details.strengths).all()
    assert learned.graph.has_edge(0, 4) and np.sign(learned.graph.edges[0, 4]["weight"]) == sign
    nodewise = mf.learn_structure(spin_table(data), mf.methods.NodewiseLogistic(rule="or"))
    assert nodewise.converged and nodewise.graph.has_edge(0, 4)


def test_missing_values_are_refused():
    data = {"A": [0, 1, None, 1], "B": [0, 1, 1, 0]}
    for method in ("group_lasso", "nodewise", "dependency_network"):
        with pytest.raises(
            mf.ModelError, match=rf"{method} needs complete data.*'A' is missing in row 2.*drop_missing"
        ):
            mf.learn_structure(data, method)
        assert mf.learn_structure(data, method, drop_missing=True).variables == ("A", "B")


def test_at_most_so_many_edges(thirty):
    _, graph, samples = thirty
    learned = mf.learn_structure(samples, GroupLasso(selection=None, max_edges=20))
    assert 0 < len(learned.edges) <= 20 and pairs_of(learned) <= pairs_of(graph)
    assert not mf.learn_structure(samples, GroupLasso(max_edges=0)).edges


def test_stopped_on_the_way(thirty):
    _, _, samples = thirty
    learned = mf.learn_structure(samples, "group_lasso", callback=lambda progress: progress.step > 1500)
    assert not learned.converged and learned.stopped == "the callback"
    assert 1 <= len(learned.details.penalties) < 30
    with pytest.raises(mf.StoppedError):
        mf.learn_structure(samples, "group_lasso", callback=lambda progress: True)
    few = mf.learn_structure(samples, GroupLasso(max_iterations=1))
    assert not few.converged and few.stopped == "max_iterations"
    assert any("ended the search for the minimum" in note for note in few.notes)


def test_the_memory_limit_ends_the_path(thirty, monkeypatch):
    monkeypatch.setattr("markovfield.learning.structures.regressions.memory_limit_bytes", lambda limit: 5000.0)
    learned = mf.learn_structure(thirty[2], "group_lasso")
    assert learned.stopped == "the memory limit" and not learned.converged and 0 < len(learned.edges) < 45
    with pytest.raises(mf.MemoryLimitError, match=r"pairs at once need 7.5 KiB, more than the limit of 4.88 KiB: take"):
        mf.learn_structure(thirty[2], "nodewise")


def test_the_tree_of_chow_liu():
    """With many rows of a tree, the sparse graph is the tree."""
    tree = nx.random_labeled_tree(12, seed=5)
    rng = np.random.default_rng(2)
    signs = {e: float(rng.choice([-0.6, 0.6])) for e in tree.edges}
    samples = mf.sample(mf.Ising(list(tree.edges), coupling=signs), 100_000, rng=0)
    best = mf.learn_structure(samples, "chow_liu").to_graph()
    assert isinstance(best, mf.learning.LearnedGraph) and nx.is_tree(best.graph)
    sparse = mf.learn_structure(samples, "group_lasso")
    assert pairs_of(sparse) == pairs_of(best) == pairs_of(tree)


def test_the_moral_graph_of_a_learned_structure():
    rng = np.random.default_rng(1)
    a, b = rng.integers(2, size=(2, 2000))
    c = np.where(rng.random(2000) < 0.1, 1 - (a | b), a | b)
    graph = mf.learn_structure({"A": a, "B": b, "C": c}, "pc").to_graph()
    assert pairs_of(graph) == {frozenset("AB"), frozenset("AC"), frozenset("BC")}
    assert graph.method == "pc" and graph.graph.nodes["A"]["states"] == (0, 1)


def test_learned_then_fitted(thirty):
    net = mf.learn_structure(thirty[2], "group_lasso").to_network()
    assert isinstance(net, mf.MarkovNetwork)


def test_at_the_level_of_noise_each_variable_has_an_edge():
    noise = np.random.default_rng(0).choice([-1, 1], (3000, 80))
    level = noise_level(3000.0, 80)
    found = mf.learn_structure(spin_table(noise), GroupLasso(penalty=level))
    assert 50 < len(found.edges) < 120  # 80 expected, with a standard deviation of 9
    assert noise_level(100.0, 2) == 20.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": 0.0}, "penalty of GroupLasso must be positive"),
        ({"selection": "aic"}, "selection of GroupLasso must be 'ebic', 'cv', 'stability' or None, got 'aic'"),
        ({"threshold": 0.5}, "threshold of GroupLasso must be above 0.5"),
        ({"threshold": 1.5}, "at most 1, got 1.5"),
        ({"folds": 1}, "folds of GroupLasso must be at least 2"),
        ({"l2": -1.0}, "l2 of GroupLasso must be at least 0"),
        ({"smallest": 1.0}, "smallest of GroupLasso must be"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(mf.ModelError, match=message):
        GroupLasso(**settings)


def test_too_few_rows_for_folds():
    with pytest.raises(mf.ModelError, match="3 rows cannot be cut into 5 folds"):
        mf.learn_structure(encode({"A": [0, 1, 1], "B": [0, 1, 0]}), GroupLasso(selection="cv"))
