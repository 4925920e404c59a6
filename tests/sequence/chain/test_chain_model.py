"""Chains against enumeration: log Z, gradients, posteriors, best and n best paths, draws, constraints.

First order, with attributes of edges, and second order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.features import Encoded
from markovfield.sequence.chain.model import Chain, chain_model
from markovfield.sequence.chain.objective import ChainObjective
from markovfield.sequence.chain.observed_features import observed_features
from markovfield.sequence.chain.training import penalised
from tests.sequence.chains import Chains, random_chains

KINDS = {"first": {}, "edges": {"edges": True}, "second": {"order": 2}}


@st.composite
def chains(draw: st.DrawFn, scale: float = 1.0, hidden: int = 1) -> Chains:
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    n_labels = draw(st.integers(1, 4 if hidden == 1 else 2))
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    valued, full = draw(st.booleans()), draw(st.booleans())
    return random_chains(rng, lengths, n_labels, valued=valued, scale=scale, full=full, hidden=hidden, **kind)


def check_gradient(objective: ChainObjective, weights: np.ndarray, rng: np.random.Generator) -> None:
    value, gradient = objective(weights)
    step = 1e-6
    for i in rng.permutation(len(gradient))[:6]:
        unit = np.zeros(len(gradient))
        unit[i] = step
        slope = (objective(weights + unit)[0] - objective(weights - unit)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
    assert objective(weights)[0] == value


@settings(max_examples=60, deadline=None)
@given(chains(), st.floats(0, 3), st.booleans())
def test_objective_and_gradient(case: Chains, l2: float, weighted: bool):
    rng = np.random.default_rng(0)
    n = case.data.n_sequences
    weights = rng.random(n) + 0.5 if weighted else None
    counts = case.counts
    if weights is not None:
        per_token = np.repeat(weights, case.data.lengths)
        again, counts = observed_features(
            case.data, case.labels, case.n_labels, token_weights=per_token, **case.settings
        )
        assert again.n_features == case.features.n_features
    objective = penalised(ChainObjective(case.features, case.encoded(), counts, weights=weights), l2)
    expected = l2 / 2 * case.weights @ case.weights
    for s in range(n):
        paths, values = case.paths(s)
        true = values[paths.index(tuple(case.labels[case.span(s)].tolist()))]
        expected += (1.0 if weights is None else weights[s]) * (np.logaddexp.reduce(values) - true)
    assert objective(case.weights)[0] == pytest.approx(expected, abs=1e-9)
    check_gradient(objective, case.weights, rng)


@settings(max_examples=30, deadline=None)
@given(chains(), st.integers(0, 100))
def test_labels_that_are_not_known_are_summed_over(case: Chains, seed: int):
    """Partly labelled sequences: log Z less log Z given the known labels, by enumeration."""
    rng = np.random.default_rng(seed)
    known = rng.random(case.data.n_tokens) < 0.6
    masks = np.ones((case.data.n_tokens, case.n_labels), bool)
    masks[known] = case.labels[known, None] == np.arange(case.n_labels)
    weights = rng.random(case.data.n_sequences)
    objective = ChainObjective(
        case.features, case.encoded(), np.zeros(case.features.n_features), weights=weights,
        clamped=(masks.astype(np.uint8).ravel(), weights),
    )  # fmt: skip
    expected = 0.0
    for s in range(case.data.n_sequences):
        free, clamped = case.paths(s)[1], case.paths(s, masks[case.span(s)])[1]
        expected += weights[s] * (np.logaddexp.reduce(free) - np.logaddexp.reduce(clamped))
    assert objective(case.weights)[0] == pytest.approx(expected, abs=1e-9)
    check_gradient(objective, case.weights, rng)


@settings(max_examples=30, deadline=None)
@given(chains(hidden=2))
def test_hidden_states_are_summed_over(case: Chains):
    """Each label has two states: the likelihood of labels is that of all their states, by enumeration."""
    masks = np.repeat(case.labels[:, None] == np.arange(case.n_labels), 2, axis=1)
    n = case.data.n_sequences
    objective = ChainObjective(
        case.features, case.encoded(), case.counts, clamped=(masks.astype(np.uint8).ravel(), np.ones(n))
    )
    assert not case.counts.any()
    expected = 0.0
    for s in range(n):
        paths, values = case.paths(s)
        labels = [tuple(k // 2 for k in path) for path in paths]
        own = [v for v, path in zip(values, labels, strict=True) if path == tuple(case.labels[case.span(s)].tolist())]
        expected += np.logaddexp.reduce(values) - np.logaddexp.reduce(own)
    assert objective(case.weights)[0] == pytest.approx(expected, abs=1e-9)
    check_gradient(objective, case.weights, np.random.default_rng(0))


@settings(max_examples=60, deadline=None)
@given(chains(), st.booleans(), st.integers(0, 100))
def test_queries_agree_with_enumeration(case: Chains, constrained: bool, seed: int):
    rng = np.random.default_rng(seed)
    masks = rng.random((case.data.n_tokens, case.n_labels)) < 0.7 if constrained else None
    forbidden = rng.random((case.n_labels, case.n_labels)) < 0.2 if constrained else None
    model = chain_model(case.features, case.weights, forbidden)
    data = case.encoded(masks)
    listed = [
        case.paths(s, None if masks is None else masks[case.span(s)], forbidden) for s in range(case.data.n_sequences)
    ]
    best, scores = model.decode(data)
    for s, (paths, values) in enumerate(listed):
        assert scores[s] == pytest.approx(values.max(), abs=1e-9)
        if np.isfinite(scores[s]):
            mine = values[paths.index(tuple(best[case.span(s)].tolist()))]
            assert mine == pytest.approx(values.max(), abs=1e-9)
        order = np.sort(values[np.isfinite(values)])[::-1]
        found = model.n_best(data, s, 4)
        np.testing.assert_allclose([v for _, v in found], order[:4], atol=1e-9)
        assert len({tuple(p.tolist()) for p, _ in found}) == len(found)
        for path, value in found:
            assert values[paths.index(tuple(path.tolist()))] == pytest.approx(value, abs=1e-9)
    own = model.path_scores(data, case.labels)
    for s, (paths, values) in enumerate(listed):
        assert own[s] == pytest.approx(values[paths.index(tuple(case.labels[case.span(s)].tolist()))], abs=1e-9)
    if any(not np.isfinite(values).any() for _, values in listed):
        with pytest.raises(mf.ImpossibleEvidenceError, match="no labels that its constraints allow"):
            model.posteriors(data)
        with pytest.raises(mf.ImpossibleEvidenceError, match="no labels that its constraints allow"):
            model.sample(data, 2, rng)
        return
    check_posteriors(case, model, data, listed)
    for s, drawn in enumerate(model.sample(data, 3, rng)):
        paths, values = listed[s]
        assert all(np.isfinite(values[paths.index(tuple(path.tolist()))]) for path in drawn)


def check_posteriors(case: Chains, model: Chain, data: Encoded, listed: list) -> None:
    answer = model.posteriors(data)
    for s, (paths, values) in enumerate(listed):
        total = np.logaddexp.reduce(values)
        p = np.exp(values - total)
        expected = np.zeros((len(paths[0]), case.n_labels))
        for probability, path in zip(p, paths, strict=True):
            expected[np.arange(len(path)), list(path)] += probability
        np.testing.assert_allclose(answer.labels[case.span(s)], expected, atol=1e-9)
        assert answer.log_partition[s] == pytest.approx(total, rel=1e-12, abs=1e-9)
        entropy = -float((p[p > 0] * np.log(p[p > 0])).sum())
        assert answer.entropy[s] == pytest.approx(entropy, abs=1e-9 * (1 + abs(total)))


@settings(max_examples=40, deadline=None)
@given(chains(scale=800.0))
def test_potentials_that_no_float_can_hold(case: Chains):
    model, data = chain_model(case.features, case.weights), case.encoded()
    listed = [case.paths(s) for s in range(case.data.n_sequences)]
    check_posteriors(case, model, data, listed)
    objective = ChainObjective(case.features, data, case.counts)
    value, gradient = objective(case.weights)
    expected, counts = 0.0, -case.counts
    for s, (paths, values) in enumerate(listed):
        total = np.logaddexp.reduce(values)
        expected += total - values[paths.index(tuple(case.labels[case.span(s)].tolist()))]
        for path, probability in zip(paths, np.exp(values - total), strict=True):
            if probability:
                counts = counts + probability * path_counts(case, s, path)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-6)
    np.testing.assert_allclose(gradient, counts, atol=1e-6)
    for s, drawn in enumerate(model.sample(data, 3, np.random.default_rng(0))):
        paths, values = listed[s]
        assert all(values[paths.index(tuple(path.tolist()))] > values.max() - 60 for path in drawn)


def path_counts(case: Chains, s: int, path: tuple[int, ...]) -> np.ndarray:
    """The features of one label sequence: the change of its score with each weight, which is linear in them."""
    empty = case.features.encode(case.data.select([s]), None if case.edges is None else case.edges.select([s]))
    unit = np.eye(case.features.n_features)
    labels = np.array(path, np.int32)
    return np.array([float(chain_model(case.features, w).path_scores(empty, labels)[0]) for w in unit])


def test_underflow_is_met_and_survived():
    """Weights such that linear space must fail: the kernels say so, and log space takes over."""
    case = random_chains(np.random.default_rng(4), [6, 5], 3, valued=False)
    moves = np.full((3, 3), -2000.0)
    moves[0, 1] = moves[1, 0] = 0.0
    weights = case.weights.copy()
    start, stop = case.features.borders[1:3]
    weights[start:stop] = moves[case.features.transitions_of()]
    masks = np.ones((11, 3), bool)
    masks[3] = [False, False, True]
    case = replace(case, weights=weights)
    data = case.encoded(masks)
    objective = ChainObjective(
        case.features, case.encoded(), np.zeros(case.features.n_features), clamped=(data.masks, np.ones(2))
    )
    value, _ = objective(weights)
    assert np.isnan(objective.log_partitions[1][0])
    expected = sum(
        np.logaddexp.reduce(case.paths(s)[1]) - np.logaddexp.reduce(case.paths(s, masks[case.span(s)])[1])
        for s in range(2)
    )
    assert value == pytest.approx(expected, rel=1e-12)
    check_gradient(objective, weights, np.random.default_rng(0))


@settings(max_examples=25, deadline=None)
@given(chains())
def test_same_answers_from_the_junction_tree(case: Chains):
    model = chain_model(case.features, case.weights)
    data = case.encoded()
    answer, (best, scores) = model.posteriors(data), model.decode(data)
    names = [f"label {k}" for k in range(case.n_labels)]
    for s in range(case.data.n_sequences):
        if not case.data.lengths[s]:
            with pytest.raises(mf.ModelError, match="empty sequence"):
                model.to_factor_graph(data, s, names)
            continue
        graph = model.to_factor_graph(data, s, names)
        exact = mf.marginals(graph, method="junction_tree")
        assert exact.log_partition == pytest.approx(answer.log_partition[s], abs=1e-9)
        np.testing.assert_allclose(exact.values, answer.labels[case.span(s)].ravel(), atol=1e-9)
        assert mf.decode(graph).score == pytest.approx(scores[s], abs=1e-9)
        assert graph.score(best[case.span(s)]) == pytest.approx(scores[s], abs=1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_draws_follow_the_posterior(kind: str):
    # Three tests of 26 degrees of freedom at fixed seeds: false alarm below one in 3000.
    case = random_chains(np.random.default_rng(5), [3, 1], 3, valued=True, **KINDS[kind])
    drawn = chain_model(case.features, case.weights).sample(case.encoded(), 20_000, np.random.default_rng(1))
    _, values = case.paths(0)
    expected = np.exp(values - np.logaddexp.reduce(values)) * 20_000
    code = drawn[0] @ np.array([9, 3, 1])
    seen = np.bincount(code, minlength=27)
    few = expected < 5
    assert few.sum() < 22
    observed, wanted = seen[~few], expected[~few]
    if few.any():
        observed, wanted = [*observed, seen[few].sum()], [*wanted, expected[few].sum()]
    assert chisquare(observed, wanted).pvalue > 1e-4
    assert drawn[1].shape == (20_000, 1)


def test_rows_and_pairs_give_the_same_scores():
    """Forty labels: attributes with four labels or more have rows, the others pairs."""
    rng = np.random.default_rng(2)
    case = random_chains(rng, [40, 30], 40, valued=True, full=False)
    assert case.features.n_rows and len(case.features.pair_label)
    scores = chain_model(case.features, case.weights).scores(case.encoded())
    np.testing.assert_allclose(scores, np.concatenate([case.scores(0), case.scores(1)]), atol=1e-9)
    counts = np.zeros(case.features.n_features)
    attribute, label = case.features.attributes_and_labels()
    where = {(a, k): i for i, (a, k) in enumerate(zip(attribute.tolist(), label.tolist(), strict=True))}
    d = case.data
    for t in range(d.n_tokens):
        for r in range(int(d.token_offsets[t]), int(d.token_offsets[t + 1])):
            counts[where[int(d.attributes[r]), int(case.labels[t])]] += d.values[r]
    n = case.features.n_state_features
    np.testing.assert_allclose(case.counts[:n], counts[:n], atol=1e-12)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_threads_do_not_change_the_objective(kind: str):
    case = random_chains(np.random.default_rng(3), [30] * 200, 5, valued=False, **KINDS[kind])
    results = [
        ChainObjective(case.features, case.encoded(), case.counts, running=Running(n_jobs=n))(case.weights)
        for n in (1, 2, 3)
    ]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])
