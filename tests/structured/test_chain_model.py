"""Chains against enumeration: log Z, gradients, posteriors, best and n best paths, draws, constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import markovfield as mf
from markovfield.structured.chain_features import observed_features
from markovfield.structured.chain_model import ChainModel, Encoded
from markovfield.structured.chain_objective import ChainObjective
from tests.structured.chains import Chains, random_chains


@st.composite
def chains(draw: st.DrawFn, scale: float = 1.0) -> Chains:
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    n_labels = draw(st.integers(1, 4))
    return random_chains(rng, lengths, n_labels, valued=draw(st.booleans()), scale=scale, full=draw(st.booleans()))


def encoded(case: Chains, masks: np.ndarray | None = None) -> Encoded:
    tokens = case.features.encode(case.data)
    if masks is None:
        return Encoded(tokens, case.data.sequence_offsets)
    return Encoded(tokens, case.data.sequence_offsets, masks.astype(np.uint8).ravel())


def span(case: Chains, s: int) -> slice:
    return slice(int(case.data.sequence_offsets[s]), int(case.data.sequence_offsets[s + 1]))


@settings(max_examples=40, deadline=None)
@given(chains(), st.floats(0, 3), st.booleans())
def test_objective_and_gradient(case: Chains, l2: float, weighted: bool):
    rng = np.random.default_rng(0)
    n = case.data.n_sequences
    weights = rng.random(n) + 0.5 if weighted else None
    counts = case.counts
    if weights is not None:
        per_token = np.repeat(weights, case.data.lengths)
        again, counts = observed_features(
            case.data, case.labels, case.n_labels, token_weights=per_token,
            all_states=case.features.n_state_features == 12 * case.n_labels,
            all_transitions=len(case.features.transition_cells) == case.n_labels**2,
        )  # fmt: skip
        assert again.n_features == case.features.n_features
    objective = ChainObjective(
        case.features, case.features.encode(case.data), case.data.sequence_offsets, counts, l2=l2, weights=weights
    )
    value, gradient = objective(case.weights)
    expected = l2 / 2 * case.weights @ case.weights
    for s in range(n):
        paths, values = case.paths(s)
        true = values[paths.index(tuple(case.labels[span(case, s)].tolist()))]
        expected += (1.0 if weights is None else weights[s]) * (np.logaddexp.reduce(values) - true)
    assert value == pytest.approx(expected, abs=1e-9)
    step = 1e-6
    for i in rng.permutation(len(gradient))[:6]:
        unit = np.zeros(len(gradient))
        unit[i] = step
        slope = (objective(case.weights + unit)[0] - objective(case.weights - unit)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(chains(), st.booleans(), st.integers(0, 100))
def test_queries_agree_with_enumeration(case: Chains, constrained: bool, seed: int):
    rng = np.random.default_rng(seed)
    masks = rng.random((case.data.n_tokens, case.n_labels)) < 0.7 if constrained else None
    forbidden = rng.random((case.n_labels, case.n_labels)) < 0.2 if constrained else None
    model = ChainModel(case.features, case.weights, forbidden)
    data = encoded(case, masks)
    listed = [
        case.paths(s, None if masks is None else masks[span(case, s)], forbidden) for s in range(case.data.n_sequences)
    ]
    best, scores = model.decode(data)
    for s, (paths, values) in enumerate(listed):
        assert scores[s] == pytest.approx(values.max(), abs=1e-9)
        if np.isfinite(scores[s]):
            mine = values[paths.index(tuple(best[span(case, s)].tolist()))]
            assert mine == pytest.approx(values.max(), abs=1e-9)
        order = np.sort(values[np.isfinite(values)])[::-1]
        found = model.n_best(data, s, 4)
        np.testing.assert_allclose([v for _, v in found], order[:4], atol=1e-9)
        assert len({tuple(p.tolist()) for p, _ in found}) == len(found)
        for path, value in found:
            assert values[paths.index(tuple(path.tolist()))] == pytest.approx(value, abs=1e-9)
    if any(not np.isfinite(values).any() for _, values in listed):
        with pytest.raises(mf.ImpossibleEvidenceError, match="no labels that its constraints allow"):
            model.posteriors(data)
        return
    check_posteriors(case, model, data, listed)


def check_posteriors(case: Chains, model: ChainModel, data: Encoded, listed: list) -> None:
    answer = model.posteriors(data)
    for s, (paths, values) in enumerate(listed):
        total = np.logaddexp.reduce(values)
        p = np.exp(values - total)
        expected = np.zeros((len(paths[0]), case.n_labels))
        for chance, path in zip(p, paths, strict=True):
            expected[np.arange(len(path)), list(path)] += chance
        np.testing.assert_allclose(answer.labels[span(case, s)], expected, atol=1e-9)
        assert answer.log_partition[s] == pytest.approx(total, rel=1e-12, abs=1e-9)
        entropy = -float((p[p > 0] * np.log(p[p > 0])).sum())
        assert answer.entropy[s] == pytest.approx(entropy, abs=1e-9 * (1 + abs(total)))


@settings(max_examples=20, deadline=None)
@given(chains(scale=800.0))
def test_potentials_that_no_float_can_hold(case: Chains):
    model = ChainModel(case.features, case.weights)
    check_posteriors(case, model, encoded(case), [case.paths(s) for s in range(case.data.n_sequences)])


@settings(max_examples=15, deadline=None)
@given(chains())
def test_same_answers_from_the_junction_tree(case: Chains):
    model = ChainModel(case.features, case.weights)
    data = encoded(case)
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
        np.testing.assert_allclose(exact.values, answer.labels[span(case, s)].ravel(), atol=1e-9)
        assert mf.decode(graph).score == pytest.approx(scores[s], abs=1e-9)
        assert graph.score(best[span(case, s)]) == pytest.approx(scores[s], abs=1e-9)


def test_draws_follow_the_posterior():
    # One test of 26 degrees of freedom at a fixed seed: false alarm one in 10^4.
    case = random_chains(np.random.default_rng(5), [3, 1], 3, valued=True)
    drawn = ChainModel(case.features, case.weights).sample(encoded(case), 20_000, np.random.default_rng(1))
    _, values = case.paths(0)
    expected = np.exp(values - np.logaddexp.reduce(values)) * 20_000
    code = drawn[0] @ np.array([9, 3, 1])
    seen = np.bincount(code, minlength=27)
    few = expected < 5
    assert few.sum() < 20
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
    scores = ChainModel(case.features, case.weights).scores(encoded(case))
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


def test_threads_do_not_change_the_objective():
    from markovfield.inference.running import Running

    case = random_chains(np.random.default_rng(3), [30] * 200, 5, valued=False)
    tokens = case.features.encode(case.data)
    results = [
        ChainObjective(case.features, tokens, case.data.sequence_offsets, case.counts, running=Running(n_jobs=n))(
            case.weights
        )
        for n in (1, 2, 3)
    ]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])
