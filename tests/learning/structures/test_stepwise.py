from __future__ import annotations

import csv
import math
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.structures import hierarchical_moves
from markovfield.learning.structures.decomposable_moves import DecomposableModels
from markovfield.learning.structures.hierarchical_moves import HierarchicalModels
from markovfield.models.generators import generator_text
from tests.data import data_path
from tests.learning.tables.naive import fitted, margin

CARDS = [2, 3, 2, 2]


def draw(seed, cards=CARDS, n=400):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(c, size=n) for c in cards])
    for v in range(1, len(cards)):
        same = rng.random(n) < 0.3
        rows[same, v] = np.minimum(rows[same, v - 1], cards[v] - 1)
    return rows


def table_of(rows, cards=CARDS):
    net = mf.MarkovNetwork({chr(65 + v): c for v, c in enumerate(cards)})
    return encode(rows, net)


def counts_of(rows, cards=CARDS):
    counts = np.zeros(cards)
    np.add.at(counts, tuple(rows.T), 1.0)
    return counts


def naive_log_likelihood(counts, scopes):
    found = fitted(np.ones(counts.shape), scopes, [margin(counts, s) for s in scopes], 800)
    seen = counts > 0
    return float(counts[seen] @ np.log(found[seen] / counts.sum()))


def reinis():
    with data_path("tables", "reinis.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0])[:-1]
    return {c: [r[k] for r in rows] for c, k in zip("ABCDEF", columns, strict=True)}, [float(r["Freq"]) for r in rows]


@pytest.mark.parametrize("start", ["all 2-way", "saturated"])
@pytest.mark.parametrize("direction", ["backward", "both"])
def test_reinis(start, direction):
    """As R's stepAIC of MASS with k = log n."""
    data, counts = reinis()
    method = mf.methods.StepwiseSelection(direction, "bic", start)
    learned = mf.learn_structure(data, method=method, weights=counts)
    assert generator_text(learned.generators) == "[AC][AD][AE][BC][CE][DE][F]"
    fit = learned.details.goodness_of_fit
    assert round(fit.deviance, 2) == 64.92 and fit.degrees_of_freedom == 51
    assert learned.score == pytest.approx(fit.bic) and learned.converged
    assert sum(m.gain for m in learned.history) == pytest.approx(
        learned.score - mf.learn_structure(
            data, method=mf.methods.StepwiseSelection(start=start, max_iterations=0), weights=counts
        ).score, abs=1e-4,
    )  # fmt: skip


def test_reinis_as_r_does_it():
    """stepAIC of MASS 7.3-58: AIC backward from the saturated model, BIC forward from independence."""
    data, counts = reinis()
    method = mf.methods.StepwiseSelection(criterion="aic", start="saturated")
    fit = mf.learn_structure(data, method=method, weights=counts).details.goodness_of_fit
    # R's fit ends a little before ours, at 5.066995.
    assert fit.deviance == pytest.approx(5.066995, abs=2e-5) and fit.degrees_of_freedom == 8
    learned = mf.learn_structure(data, method=mf.methods.StepwiseSelection("forward"), weights=counts)
    assert ["".join(m.term) for m in learned.history] == ["BC", "AC", "BE", "AE", "DE", "AD"]
    assert round(learned.details.goodness_of_fit.deviance, 5) == 65.84694


def test_reinis_decomposable():
    data, counts = reinis()
    learned = mf.learn_structure(data, method=mf.methods.StepwiseSelection(decomposable=True), weights=counts)
    assert generator_text(learned.generators) == "[ACE][ADE][BC][F]"
    assert round(learned.details.goodness_of_fit.deviance, 3) == 62.078


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dense", [True, False])
def test_neighbours_of_hierarchical_models(seed, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(hierarchical_moves, "MOST_ENTRIES", 0)
    rows = draw(seed)
    counts = counts_of(rows)
    generators = [[(0, 1), (1, 2), (0, 2), (3,)], [(0, 1, 2), (1, 2, 3)], [(0,), (1,), (2, 3)], [(0, 1, 2, 3)]][seed]
    models = HierarchicalModels(table_of(rows), generators, 4, Running())
    assert models.dense == dense
    own = naive_log_likelihood(counts, models.generators)
    assert models.log_likelihood == pytest.approx(own, abs=1e-4)
    found = models.neighbours(delete=True, add=True)
    for move in found:
        if move.kind == "add":
            assert all(
                any(set(f) <= set(g) for g in generators) for f in combinations(move.members, len(move.members) - 1)
            )
            scopes = [*(g for g in generators if not set(g) <= set(move.members)), move.members]
        else:
            assert move.members in map(tuple, generators)
            faces = combinations(move.members, len(move.members) - 1)
            scopes = [*(g for g in generators if g != move.members), *faces]
        assert own + move.log_likelihood_gain == pytest.approx(naive_log_likelihood(counts, scopes), abs=1e-3)
        assert abs(move.parameters) == math.prod(CARDS[v] - 1 for v in move.members)
    # Every term that may come is there: all its faces are in the model, itself is not.
    inside = {f for g in generators for k in range(1, 5) for f in combinations(sorted(g), k)}
    addable = {
        t for k in range(2, 5) for t in combinations(range(4), k)
        if t not in inside and all(f in inside for f in combinations(t, k - 1))
    }  # fmt: skip
    assert {m.members for m in found if m.kind == "add"} == addable
    assert {m.members for m in found if m.kind == "delete"} == {g for g in generators if len(g) > 1}


@pytest.mark.parametrize("seed", range(12))
def test_neighbours_of_decomposable_models(seed):
    cards = [2, 2, 3, 2, 2, 2]
    rows = draw(seed, cards)
    graph = mf.graphs.triangulate(nx.gnp_random_graph(6, 0.35, seed=seed))
    table = table_of(rows, cards)
    models = DecomposableModels(table, graph.edges, 6, Running())
    counts = counts_of(rows, cards)

    def log_likelihood(g):
        return naive_log_likelihood(counts, [tuple(sorted(c)) for c in nx.find_cliques(g)])

    own = log_likelihood(graph)
    assert models.log_likelihood == pytest.approx(own)
    assert models.generators == sorted(tuple(sorted(c)) for c in nx.find_cliques(graph))
    found = {(m.kind, m.members): m for m in models.neighbours(delete=True, add=True)}
    for a, b in combinations(range(6), 2):
        other = graph.copy()
        kind = "delete" if graph.has_edge(a, b) else "add"
        (other.remove_edge if kind == "delete" else other.add_edge)(a, b)
        assert nx.is_chordal(other) == ((kind, (a, b)) in found)
        if nx.is_chordal(other):
            assert own + found[kind, (a, b)].log_likelihood_gain == pytest.approx(log_likelihood(other), abs=1e-6)


@pytest.mark.parametrize("decomposable", [False, True])
@pytest.mark.parametrize("criterion", ["aic", "bic", "chi2"])
def test_forward_finds_a_chain(criterion, decomposable):
    rng = np.random.default_rng(7)
    a = rng.integers(2, size=3000)
    b = a ^ (rng.random(3000) < 0.2)
    c = b ^ (rng.random(3000) < 0.2)
    method = mf.methods.StepwiseSelection("forward", criterion, decomposable=decomposable, alpha=1e-6, max_order=2)
    learned = mf.learn_structure({"A": a, "B": b, "C": c}, method=method)
    assert {("A", "B"), ("B", "C")} <= set(learned.edges)
    assert all(m.kind == "add" and m.p_value < 1e-3 for m in learned.history[:2])
    assert str(learned.history[0]).startswith("add [")
    assert learned.to_network().compile().n_factors == len(learned.generators)


def test_empty_margins_do_no_harm():
    rows = draw(3)
    rows[:, 0] = 0
    learned = mf.learn_structure(dict(zip("ABCD", rows.T, strict=True)) | {"A": ["x"] * len(rows)},
                                 method=mf.methods.StepwiseSelection())  # fmt: skip
    assert np.isfinite(learned.score) and not any("A" in e for e in learned.edges)
    for settings in ({"direction": "both", "criterion": "chi2"}, {"decomposable": True, "direction": "both"}):
        data = dict(zip("ABCD", rows.T, strict=True)) | {"A": ["x"] * len(rows)}
        learned = mf.learn_structure(data, method=mf.methods.StepwiseSelection(**settings))
        assert ("A",) in learned.generators
    net = mf.MarkovNetwork({"A": 2, "B": 3, "C": 2, "D": 2})
    learned = mf.learn_structure(rows, network=net, method=mf.methods.StepwiseSelection("both", start="all 2-way"))
    assert np.isfinite(learned.score) and not any("A" in e for e in learned.edges)


def test_stopped_it_answers_with_what_it_has():
    rows = draw(1, [2] * 6)
    seen = []
    learned = mf.learn_structure(
        dict(zip("ABCDEF", rows.T, strict=True)), method="stepwise", callback=lambda p: seen.append(p) or len(seen) > 6
    )
    assert not learned.converged and "callback" in learned.stopped


def test_many_variables_by_closed_form():
    rng = np.random.default_rng(2)
    rows = np.cumsum(rng.random((1500, 30)) < 0.15, axis=1) % 2
    method = mf.methods.StepwiseSelection("forward", decomposable=True)
    learned = mf.learn_structure({f"x{v}": rows[:, v] for v in range(30)}, method=method)
    assert {(f"x{v}", f"x{v + 1}") for v in range(29)} <= {
        tuple(sorted(e, key=lambda s: int(s[1:]))) for e in learned.edges
    }


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (lambda: mf.methods.StepwiseSelection("sideways"), "direction"),
        (lambda: mf.methods.StepwiseSelection(criterion="p"), "criterion"),
        (lambda: mf.methods.StepwiseSelection(alpha=1.0), "alpha"),
        (lambda: mf.methods.StepwiseSelection(max_order=1), "max_order"),
    ],
)
def test_settings(method, message):
    with pytest.raises(mf.ModelError, match=message):
        method()


def test_errors_of_data_and_start():
    data = dict(zip("ABCD", draw(0).T, strict=True))
    with pytest.raises(mf.ModelError, match="A - B - C - D - A has no chord"):
        mf.learn_structure(data, method=mf.methods.StepwiseSelection(start="AB/BC/CD/AD", decomposable=True))
    with pytest.raises(mf.ModelError, match="complete data"):
        mf.learn_structure({"A": [0, 1, None], "B": [0, 1, 1]}, method="stepwise_selection")
