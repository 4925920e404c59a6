"""Labelled sequences as one batch: kernels of chains and the factor graph of the protocol say the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.batch import ChainBatch, ChainLikelihood
from markovfield.sequence.chain.observed_features import observed_features
from markovfield.sequence.conditional.factorial_chain import FactorialChainModel
from markovfield.sequence.text.vectoriser import AttributeVectoriser
from markovfield.structured.models.factor import FactorModel, FactorTemplate
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.structured.objectives.registry import OBJECTIVES
from tests.sequence.chains import Chains, random_chains

SHAPES = [
    {"valued": False},
    {"valued": True},
    {"valued": False, "edges": True},
    {"valued": True, "edges": True},
    {"valued": True, "order": 2},
    {"valued": False, "full": False},
    {"valued": True, "edges": True, "full": False},
]


def batch_of(case: Chains, **rest) -> ChainBatch:
    return ChainBatch(case.features, case.encoded(), case.labels, case.counts, **rest)


def both(batch: ChainBatch, w: np.ndarray):
    fused = ChainLikelihood().on(batch, running=Running(1))(w)
    return fused, ConditionalLikelihood().on(batch.as_batch(), running=Running(1))(w)


@pytest.mark.parametrize("n_labels", [2, 9])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_factor_graph_has_the_same_objective_and_gradient(shape, n_labels):
    case = random_chains(np.random.default_rng(n_labels), [4, 1, 0, 3, 2], n_labels, **shape)
    batch = batch_of(case)
    assert (batch.n_examples, batch.n_weights) == (5, case.features.n_features)
    (value, gradient), (other, slope) = both(batch, case.weights)
    assert other == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(slope, gradient, atol=1e-10)
    np.testing.assert_allclose(batch.as_batch().joint_features(), batch.joint_features(), atol=1e-12)


@pytest.mark.parametrize("edges", [False, True])
def test_hidden_states_and_missing_labels_are_summed_over(edges):
    rng = np.random.default_rng(7)
    case = random_chains(rng, [4, 2, 3], 3, valued=True, edges=edges, hidden=2)
    known = rng.random(case.data.n_tokens) < 0.7
    masks = np.repeat((case.labels[:, None] == np.arange(3)) | ~known[:, None], 2, axis=1).astype(np.uint8)
    batch = batch_of(case, clamped=(masks.ravel(), np.ones(3)))
    (value, gradient), (other, slope) = both(batch, case.weights)
    assert other == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(slope, gradient, atol=1e-10)


def test_masks_rule_labels_out():
    case = random_chains(np.random.default_rng(1), [3, 4], 3, valued=False)
    masks = np.ones((7, 3), np.uint8)
    masks[2, (case.labels[2] + 1) % 3] = masks[5, (case.labels[5] + 2) % 3] = 0
    batch = replace(batch_of(case), data=case.encoded(masks))
    (value, gradient), (other, slope) = both(batch, case.weights)
    assert other == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(slope, gradient, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_of_sequences_count(shape):
    case = random_chains(np.random.default_rng(8), [4, 1, 3], 3, **shape)
    weights = np.array([0.5, 2.0, 0.0])
    per_token = np.repeat(weights, case.data.lengths)
    _, counts = observed_features(case.data, case.labels, 3, token_weights=per_token, **case.settings)
    batch = replace(batch_of(case, weights=weights), counts=counts)
    (value, gradient), (other, slope) = both(batch, case.weights)
    assert other == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(slope, gradient, atol=1e-10)
    np.testing.assert_allclose(batch.as_batch().joint_features(), counts, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_decoding_with_a_loss_is_the_best_of_all_paths(shape):
    rng = np.random.default_rng(3)
    case = random_chains(rng, [4, 1, 0, 3], 3, **shape)
    batch, loss = batch_of(case), rng.normal(size=(8, 3))
    plain, scores = batch.decode(case.weights)
    augmented, values = batch.decode(case.weights, loss=loss)
    for s in range(4):
        span = case.span(s)
        paths, totals = case.paths(s)
        assert scores[s] == pytest.approx(totals.max())
        assert tuple(plain[span].tolist()) == paths[int(totals.argmax())]
        extra = np.array([sum(loss[span][t, y] for t, y in enumerate(path)) for path in paths])
        assert values[s] == pytest.approx((totals + extra).max())
        assert tuple(augmented[span].tolist()) == paths[int((totals + extra).argmax())]
    with pytest.raises(ModelError, match=r"loss needs shape \(8, 3\), got \(8, 2\)"):
        batch.decode(case.weights, loss=loss[:, :2])


def test_joint_features_of_any_states_and_posteriors():
    case = random_chains(np.random.default_rng(2), [3, 2], 3, valued=True, edges=True)
    batch = batch_of(case)
    states = np.array([0, 2, 1, 1, 0], np.int32)
    scores = sum(case.paths(s)[1][case.paths(s)[0].index(tuple(states[case.span(s)].tolist()))] for s in range(2))
    assert batch.joint_features(states) @ case.weights == pytest.approx(scores)
    answer = batch.posteriors(case.weights)
    assert answer.log_partition[0] == pytest.approx(np.logaddexp.reduce(case.paths(0)[1]))


@pytest.mark.parametrize("edged", [False, True])
def test_one_chain_in_all_models_has_one_objective_and_one_gradient(edged):
    """As `ChainCRF`, as a directed graph, factor by factor, and (without attributes of edges) as a factorial layer."""
    rng = np.random.default_rng(11)
    X = [rng.normal(size=(n, 4)) for n in (3, 1, 5, 2)]
    y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    y[0][:3] = [0, 1, 2]
    on_steps = [rng.normal(size=(len(x), 2)) for x in X]
    data = AttributeVectoriser().fit_transform(X)
    steps = AttributeVectoriser().fit_transform(on_steps) if edged else None
    numbers = np.concatenate(y).astype(np.int32)
    f, counts = observed_features(data, numbers, 3, edges=steps, all_states=True, all_transitions=True)
    w = rng.normal(size=f.n_features)
    value, gradient = ChainLikelihood().on(ChainBatch(f, f.encode(data, steps), numbers, counts), running=Running(1))(w)

    def chain_edges(n: int) -> np.ndarray:
        return np.array(list(pairwise(range(n)))).reshape(-1, 2)

    graphs = [
        (x, chain_edges(len(x)), np.column_stack([np.ones(len(x) - 1), e[1:]])) if edged else (x, chain_edges(len(x)))
        for x, e in zip(X, on_steps, strict=True)
    ]
    model = GraphModel("directed", bias=False).shaped(graphs, y)
    (nodes, _), (edges, shape) = model.layout["nodes"], model.layout["edges"]
    # Only pairs of labels that were seen have weights of attributes of edges in the chain; the graph has all.
    v, seen = np.zeros(model.n_weights), np.ones(model.n_weights, bool)
    attribute, label = f.attributes_and_labels()
    v[nodes].reshape(4, 3)[attribute, label] = w[: f.n_state_features]
    a, b, c = f.borders[1], f.borders[2], f.borders[3]
    v[edges].reshape(shape)[0] = w[a:b]
    cells = np.zeros(shape, bool)
    cells[0] = True
    if edged:
        own, before, after = f.edges_of()
        v[edges].reshape(shape)[1 + own, before * 3 + after] = w[b:c]
        cells[1 + own, before * 3 + after] = True
    seen[edges] = cells.ravel()
    other, slope = ConditionalLikelihood().on(model.encode(graphs, y), running=Running(1))(v)
    assert other == pytest.approx(value, abs=1e-10)
    expected = np.zeros(model.n_weights)
    expected[nodes].reshape(4, 3)[attribute, label] = gradient[: f.n_state_features]
    expected[edges].reshape(shape)[0] = gradient[a:b]
    if edged:
        expected[edges].reshape(shape)[1 + own, before * 3 + after] = gradient[b:c]
        assert not seen.all()
    np.testing.assert_allclose(slope[seen], expected[seen], atol=1e-10)
    written = FactorModel([FactorTemplate("node"), FactorTemplate("edge", ("label", "label"))])
    factors = [
        {
            "node": (np.arange(len(g[0]))[:, None], g[0]),
            "edge": (g[1], g[2]) if edged else g[1],
            "n": len(g[0]),
        }
        for g in graphs
    ]
    written = written.shaped(factors, y)
    fourth, same = ConditionalLikelihood().on(written.encode(factors, y), running=Running(1))(v)
    assert fourth == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(same, slope, atol=1e-10)
    if not edged:
        layer = FactorialChainModel(["y"]).shaped(X, [{"y": own} for own in y])
        third, again = ConditionalLikelihood().on(layer.encode(X, [{"y": own} for own in y]), running=Running(1))(v)
        assert third == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(again, slope, atol=1e-10)


def test_an_objective_of_the_protocol_trains_a_chain():
    rng = np.random.default_rng(5)
    X = [[[f"w={rng.integers(5)}", "b"] for _ in range(rng.integers(1, 6))] for _ in range(20)]
    y = [[str(rng.integers(3)) for _ in x] for x in X]
    plain = mf.ChainCRF(l2=0.5, tolerance=1e-12).fit(X, y)
    other = mf.ChainCRF(l2=0.5, tolerance=1e-12, objective=ConditionalLikelihood("junction_tree")).fit(X, y)
    assert other.report_.objective == pytest.approx(plain.report_.objective, rel=1e-9)
    np.testing.assert_allclose(other.model_.weights, plain.model_.weights, atol=1e-4)
    hidden = mf.ChainCRF(hidden_states=2, rng=0, tolerance=1e-12, objective=ConditionalLikelihood()).fit(X, y)
    fused = mf.ChainCRF(hidden_states=2, rng=0, tolerance=1e-12).fit(X, y)
    assert hidden.report_.objective == pytest.approx(fused.report_.objective, rel=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_trains_a_chain_that_reads_its_words(objective):
    rng = np.random.default_rng(6)
    y = [[str(rng.choice(["a", "b", "c"])) for _ in range(rng.integers(1, 7))] for _ in range(40)]
    X = [[[f"w={label}{rng.integers(2)}"] for label in own] for own in y]
    crf = mf.ChainCRF(l2=0.1, objective=objective, rng=0).fit(X, y)
    assert crf.score(X, y) == 1.0
    assert np.isfinite(crf.report_.objective)


def test_a_callback_is_told_of_every_evaluation_and_stops_it():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
    told = []

    def three(progress: mf.answers.Progress) -> bool:
        told.append(progress.step)
        return len(told) == 3

    crf = mf.ChainCRF(l2=0.01, objective=ConditionalLikelihood()).fit(X, y, callback=three)
    assert len(told) == 3
    assert not crf.report_.converged


def test_objectives_that_do_not_fit_are_refused():
    X, y = [[["a"], ["b"]]], [["x", "y"]]
    with pytest.raises(ModelError, match="objective must be one of 'likelihood'"):
        mf.ChainCRF(objective="margin").fit(X, y)
    with pytest.raises(ModelError, match="objective needs a batch solver, solver='lbfgs'; got 'sgd'"):
        mf.ChainCRF(objective=ConditionalLikelihood(), solver="sgd").fit(X, y)
    with pytest.raises(ModelError, match="need objective='likelihood'"):
        mf.ChainCRF(objective=ConditionalLikelihood(), class_weight={"x": 2.0}).fit(X, y)
