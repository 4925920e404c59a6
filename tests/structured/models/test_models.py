"""Conditional models: what they are, and bad input, whose message names the example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from tests.structured.cases import CASES

st = mf.structured


def graph(n: int = 3, k: int = 2, **change: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    parts = {"nodes": rng.normal(size=(n, k)), "edges": [[i, i + 1] for i in range(n - 1)], **change}
    return tuple(parts.values())


def fitted() -> mf.GraphCRF:
    return mf.GraphCRF().fit([graph(3), graph(4)], [["a", "b", "a"], ["b", "b", "a", "a"]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([graph(3), graph(3, k=5)], "example 1: node features must have 2 columns as in training, got 5"),
        ([graph(3), graph(3, edges=[[0, 3]])], r"example 1: edges\[0\] = \[0, 3\] is out of range: there are 3 nodes"),
        ([graph(3), graph(3, edges=[[1, 1]])], r"example 1: edges\[0\] joins node 1 to itself"),
        ([graph(3), graph(3, edges=[[0.5, 1.0]])], "example 1: edges must be pairs of node numbers"),
        ([graph(3), graph(3, nodes=np.full((3, 2), np.nan))], "example 1: node features must be finite, and 6 are not"),
        ([graph(3), graph(3, nodes=np.zeros((0, 2)), edges=[])], "example 1: the graph has no nodes"),
        ([graph(3), graph(3, nodes=np.zeros(3))], "example 1: node features must be a matrix"),
        ([graph(3), graph(3, nodes=[["x", "y"]] * 3)], "example 1: node features must be numbers"),
        ([graph(3), np.zeros((3, 2))], "example 1: a graph is"),
        ([graph(3), (np.zeros((3, 2)), {"other": [[0, 1]]})], "example 1: edges of type 'other' were not seen"),
        ([], "X holds no examples"),
        ("graphs", "X must be a list of examples"),
        (7, "X must be a list of examples"),
    ],
)
def test_bad_graphs_are_named(X: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fitted().predict(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a", "b"], ["a", "a", "b"]], "example 0: there are 3 variables and 2 labels"),
        ([["a", "a", "a"], ["a", "a", "a"]], "at least two different labels .* only 'a'"),
        ([["a", "b", "a"]], "X has 2 examples and y has 1"),
        ([[0.0, 1.0, np.nan], [0, 1, 1]], "example 0: a label is nan; write None"),
        ([[None, None, None], [None, None, None]], "y has none"),
        (3, "y must be a list"),
    ],
)
def test_bad_labels_are_named(y: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        mf.GraphCRF().fit([graph(3), graph(3)], y)


def test_unseen_labels_are_named() -> None:
    with pytest.raises(ModelError, match="example 1: label 'z' was not seen in training"):
        fitted().score([graph(3), graph(3)], [["a", "b", "a"], ["a", "z", "a"]])


def test_edge_features_that_come_and_go_are_named() -> None:
    x = (*graph(3), np.ones((2, 1)))
    crf = mf.GraphCRF().fit([x, x], [[0, 1, 0], [1, 1, 0]])
    with pytest.raises(ModelError, match="example 0: edges had 1 features in training and have none here"):
        crf.predict([graph(3)])
    with pytest.raises(ModelError, match="example 0: features of edges must have 2 rows, got 1"):
        crf.predict([(*graph(3), np.ones((1, 1)))])


def test_settings_are_checked() -> None:
    X, y = [graph(3)], [["a", "b", "a"]]
    for settings, message in [
        ({"interaction": "random"}, "interaction of GraphModel must be one of 'symmetric'"),
        ({"objective": "likelyhood"}, "objective must be one of 'likelihood', 'pseudo_likelihood'"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"inference": "bp", "objective": "pseudo_likelihood"}, "takes no inference"),
        ({"l2": -1.0}, "l2"),
        ({"batch_size": 4}, "batch_size is for stochastic solvers"),
        ({"solver": "adam", "batch_size": 0}, "batch_size must be at least 1"),
    ]:
        with pytest.raises(ModelError, match=message):
            mf.GraphCRF(**settings).fit(X, y)
    with pytest.raises(ModelError, match="sample_weight needs one number for each of 1 examples"):
        mf.GraphCRF().fit(X, y, sample_weight=[1.0, 2.0])
    with pytest.raises(ModelError, match="sample_weight of example 0"):
        mf.GraphCRF().fit([*X, *X], [*y, *y], sample_weight=[-1.0, 2.0])
    with pytest.raises(ModelError, match="model of StructuredClassifier must be one of"):
        mf.StructuredClassifier("graph").fit(X, y)
    with pytest.raises(ModelError, match="init must be"):
        mf.GraphCRF().fit(X, y, init=np.zeros(3))


def test_bad_factors_are_named() -> None:
    case = CASES["factor"]
    clf = mf.StructuredClassifier(case.model).fit(case.X, case.Y)
    x = case.X[0]
    for change, message in [
        ({"pair": [[0, 9]]}, r"example 1: scope \[0, 9\] of pair is out of range: there are 4 variables"),
        ({"pair": [[3, 0]]}, r"example 1: scope \[3, 0\] of pair must be of kinds word, topic"),
        ({"step": [[1, 1]]}, r"example 1: scope \[1, 1\] of step names a variable twice"),
        ({"step": [[0, 1, 2]]}, r"example 1: scopes of step must be int\[n, 2\]"),
        ({"stepp": [[0, 1]]}, "example 1: there is no template 'stepp'"),
        ({"kinds": ["word", "noun"]}, "example 1: 'noun' is no kind of variable"),
        ({"word": [[0], [1], [2]]}, "example 1: word had 2 features in training and has none here"),
    ]:
        with pytest.raises(ModelError, match=message):
            clf.predict([x, {**x, **change}])
    with pytest.raises(ModelError, match="names of their own"):
        st.FactorModel([st.FactorTemplate("a"), st.FactorTemplate("a")])


def test_bad_rows_are_named() -> None:
    X, y = np.eye(3), ["a", "b", "c"]
    crf = mf.MulticlassCRF().fit(X, y)
    with pytest.raises(ModelError, match="example 1: features must be finite"):
        crf.predict(np.array([[0.0, 0, 0], [0, np.inf, 0]]))
    with pytest.raises(ModelError, match="X must have 3 features as in training, got 2"):
        crf.predict(np.eye(2))
    with pytest.raises(ModelError, match="label 'c' has no place in the taxonomy"):
        mf.HierarchicalClassifier({"a": "x", "b": "x"}).fit(X, y)
    with pytest.raises(ModelError, match="goes round in a circle"):
        mf.HierarchicalClassifier({"a": "x", "x": "a"}).fit(X, y)
    Y = np.array([[0, 1], [1, 0], [1, 1]])
    with pytest.raises(ModelError, match="example 2: labels must be 0 or 1"):
        mf.MultiLabelCRF().fit(X, np.array([[0, 1], [1, 0], [1, 2]]))
    with pytest.raises(ModelError, match="label 0 is always there"):
        mf.MultiLabelCRF().fit(X, np.array([[1, 1], [1, 0], [1, 1]]))
    with pytest.raises(ModelError, match="dependence of MultiLabelModel"):
        mf.MultiLabelCRF("all").fit(X, Y)


def test_bad_energies_are_named() -> None:
    case = CASES["energy"]
    clf = mf.StructuredClassifier(case.model).fit(case.X, case.Y)
    cards, factors = case.X[0]
    for x, message in [
        ((cards, [([0, 9], np.zeros((2, 2, 3)))]), "example 0: factor 0 is on"),
        ((cards, [([0], np.zeros((9, 3)))]), "example 0: energies of factor 0 must have shape"),
        ((cards, [([0], np.full((cards[0], 3), np.inf))]), "example 0: energies of factor 0 must be finite"),
        (([0, 1], factors), "example 0: cardinalities must be"),
        ((cards, [([0, 0], np.zeros((2, 2, 3)))]), "must be different variables"),
    ]:
        with pytest.raises(ModelError, match=message):
            clf.predict([x])
    with pytest.raises(ModelError, match="example 0: state 9 is out of range"):
        clf.score(case.X[:1], [[9] * len(cards)])


def test_steepest_descent_and_lbfgs_reach_one_optimum_of_binary_trees_of_arity_three() -> None:
    """Andres 6.3.6: acyclic binary graphs with factors of arity 3, algorithm 1 against L-BFGS."""
    rng = np.random.default_rng(4)
    X, Y = [], []
    for _ in range(20):
        n = int(rng.integers(2, 5)) * 2 + 1
        # Triples that share a variable with the next one: a tree of factors.
        scopes = [[i, i + 1, i + 2] for i in range(0, n - 2, 2)] + [[i] for i in range(n)]
        X.append([(s, rng.normal(size=(*[2] * len(s), 4))) for s in scopes])
        Y.append(rng.integers(0, 2, n).tolist())
    found = {}
    for name, solver in (
        ("lbfgs", mf.learning.LBFGS(gradient_tolerance=1e-9, tolerance=0.0)),
        ("steepest", mf.learning.SteepestDescent(gradient_tolerance=1e-8, max_iterations=5000)),
    ):
        clf = mf.StructuredClassifier(st.BinaryFactorModel(), solver=solver, l2=0.1).fit(X, Y)
        assert clf.report_.guarantee == "exact"
        assert clf.report_.notes == ("inference by belief_propagation (exact)",)
        found[name] = clf
    assert found["steepest"].report_.objective == pytest.approx(found["lbfgs"].report_.objective, rel=1e-10)
    assert np.allclose(found["steepest"].weights_, found["lbfgs"].weights_, atol=1e-5)


def test_penalties_by_kind_of_factor() -> None:
    case = CASES["graph"]
    plain = mf.StructuredClassifier(case.model, l2=0.3, l1=0.2).fit(case.X, case.Y)
    same = mf.StructuredClassifier(case.model, l2={"nodes": 0.3, "edges": 0.3}, l1={"nodes": 0.2, "edges": 0.2})
    assert np.array_equal(same.fit(case.X, case.Y).weights_, plain.weights_)
    few = mf.StructuredClassifier(case.model, l2={"nodes": 0.3}, l1={"edges": 50.0}).fit(case.X, case.Y)
    assert not few.coef_["edges"].any()
    assert few.coef_["nodes"].all()
    alone = mf.StructuredClassifier(case.model, l2={"nodes": 0.3}, l1=0.0, group_l1={"edges": 50.0}).fit(case.X, case.Y)
    assert np.allclose(alone.weights_, few.weights_, atol=1e-3)
    with pytest.raises(ModelError, match="l1 names 'edge'; kinds of factors are 'nodes', 'edges'"):
        mf.StructuredClassifier(case.model, l1={"edge": 1.0}).fit(case.X, case.Y)


def test_groups_of_weights_become_zero_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=80) > 0, "a", np.where(X[:, 1] > 0, "b", "c"))
    clf = mf.StructuredClassifier(st.MulticlassModel(bias=False), l2=0.01, group_l1=3.0).fit(X, y)
    kept = clf.coef_["classes"].any(axis=1)
    assert kept.tolist() == [True, True, False, False, False]
    assert clf.coef_["classes"][kept].all()


def test_sampled_expectations_are_near_exact_ones() -> None:
    case = CASES["graph"]
    model = case.model.shaped(case.X, case.Y)
    batch = model.encode(case.X, case.Y)
    w = np.random.default_rng(1).normal(scale=0.3, size=model.n_weights)
    _, exact = st.ConditionalLikelihood().on(batch, running=Running())(w)
    sampler = mf.methods.Gibbs()
    value, noisy = st.ConditionalLikelihood(sampler, n_samples=4000).on(batch, running=Running(), rng=0)(w)
    assert np.isnan(value)
    # Sums over some twelve variables of averages over thousands of draws.
    assert np.abs(noisy - exact).max() < 0.5
    assert np.corrcoef(noisy, exact)[0, 1] > 0.99


def test_a_multiclass_model_is_multinomial_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    ours = mf.MulticlassCRF(bias=False, l2=0.7, solver=mf.learning.LBFGS(gradient_tolerance=1e-9, tolerance=0.0))
    ours.fit(X, y)
    theirs = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=5000).fit(X, y)
    assert np.allclose(ours.coef_["classes"].T, theirs.coef_, atol=1e-5)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_independent_labels_are_logistic_regressions() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(50, 3)), rng.integers(0, 2, (50, 2))
    solver = mf.learning.LBFGS(gradient_tolerance=1e-9, tolerance=0.0)
    ours = mf.MultiLabelCRF("independent", bias=False, l2=0.5, solver=solver).fit(X, Y)
    for j in range(2):
        theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10).fit(X, Y[:, j])
        assert np.allclose(ours.predict_proba(X)[:, j], theirs.predict_proba(X)[:, 1], atol=1e-5)


def test_hidden_states_tell_apart_what_one_weight_vector_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(200, 1))
    y = np.where(np.abs(X[:, 0]) < 1, "in", "out")
    flat = mf.MulticlassCRF(l2=0.01).fit(X, y).score(X, y)
    latent = mf.LatentCRF(st.MulticlassModel(), n_hidden=2, l2=0.01, rng=1).fit(X, y)
    assert latent.score(X, y) > 0.97 > flat + 0.2
    assert [p.shape for p in latent.predict_marginals(X[:2])] == [(1, 2), (1, 2)]


def test_several_types_of_edges_have_weights_of_their_own() -> None:
    case = CASES["graph_typed"]
    crf = mf.GraphCRF({"near": "equal", "far": "directed"}).fit(case.X, case.Y)
    assert {name: w.shape for name, w in crf.coef_.items()} == {"nodes": (3, 2), "far": (2, 4), "near": (1, 1)}


def test_wide_graphs_are_answered_with_a_bound() -> None:
    rng = np.random.default_rng(1)
    n = 30
    at = np.arange(n * n).reshape(n, n)
    edges = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    truth = (np.add.outer(np.arange(n), np.arange(n)) // 8 % 3).ravel()
    X = [(np.eye(3)[truth] + rng.normal(scale=0.7, size=(n * n, 3)), edges)]
    crf = mf.GraphCRF("equal", objective="pseudo_likelihood").fit(X, [truth])
    found = crf.decode(X)
    assert found.method == "trws"
    assert np.isfinite(found.gap)
    assert crf.score(X, [truth]) > 0.9
    assert crf.marginals(X).guarantee == "approximate"
