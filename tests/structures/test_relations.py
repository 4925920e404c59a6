"""The same distribution written as different forms gives the same numbers, by algorithms that share nothing."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import markovfield as mf

RNG = np.random.default_rng(7)
N, K = 5, 3
TOKENS, MOVES = RNG.normal(0, 1.5, (N, K)), RNG.normal(0, 1.5, (K, K))
MOVES[0, 2] = -np.inf


def chain_as_graph(tokens, moves):
    """A linear chain as a factor graph: variables are positions."""
    n, k = tokens.shape
    network = mf.MarkovNetwork()
    for i in range(n):
        network.add_variable(i, range(k))
        network.add_factor([i], log_table=tokens[i])
    for i in range(n - 1):
        network.add_factor([i, i + 1], log_table=moves)
    return network.compile()


def chain_as_grammar(tokens, moves):
    """Right-branching: ``P_k`` is the rest of the sequence from a state k on, which a word of ``w_k`` begins."""
    k = len(moves)
    rules = {("S", f"P{a}"): 0.0 for a in range(k)}
    rules |= {(f"P{a}", f"w{a}"): 0.0 for a in range(k)}
    rules |= {(f"P{a}", f"w{a}", f"P{b}"): moves[a, b] for a, b in product(range(k), repeat=2)}
    return mf.structures.Chart([{f"w{a}": row[a] for a in range(k)} for row in tokens], rules, start="S")


def states_of_tree(tree):
    """The states of a right-branching tree."""
    node, found = tree[1], []
    while True:
        found.append(int(node[0][1:]))
        if len(node) == 2:
            return found
        node = node[2]


def test_a_chain_as_graph_segments_and_grammar():
    graph = chain_as_graph(TOKENS, MOVES)
    segments = mf.structures.SemiMarkov(TOKENS[:, None], MOVES)
    chart = chain_as_grammar(TOKENS, MOVES)
    wanted = mf.marginals(graph, targets=[[i, i + 1] for i in range(N - 1)])
    posteriors = np.array([wanted[i] for i in range(N)])
    transitions = sum(wanted.joint([i, i + 1]) for i in range(N - 1))
    by_segments, by_chart = mf.marginals(segments), mf.marginals(chart)
    assert by_segments.log_partition == pytest.approx(wanted.log_partition)
    assert by_chart.log_partition == pytest.approx(wanted.log_partition)
    np.testing.assert_allclose(by_segments["segments"][:, 0], posteriors, atol=1e-10)
    np.testing.assert_allclose(by_segments["transitions"], transitions, atol=1e-10)
    words = [chart.symbols.index(f"w{a}") for a in range(K)]
    own = by_chart["spans"][np.arange(N)[:, None], np.arange(N)[:, None], words]
    np.testing.assert_allclose(own, posteriors, atol=1e-10)
    assert by_segments.entropy == pytest.approx(by_chart.entropy)
    several = mf.decode(graph, n_best=6).n_best
    for one, two, three in zip(
        several, mf.decode(segments, n_best=6).n_best, mf.decode(chart, n_best=6).n_best, strict=True
    ):
        states = [one.assignment[i] for i in range(N)]
        assert states == [label for _, _, label in two.structure] == states_of_tree(three.structure)
        assert one.score == pytest.approx(two.score) == pytest.approx(three.score)


def test_the_chain_crf_as_segments():
    X = [[["a"], ["b"], ["a"]], [["b"], ["c"], ["c"]], [["c"], ["a"]]]
    y = [["A", "B", "A"], ["B", "C", "B"], ["C", "A"]]
    crf = mf.ChainCRF(l2=0.3, all_states=True, all_transitions=True).fit(X, y)
    x = X[0] + X[1]
    weights = crf.state_features_, crf.transition_features_
    tokens = np.array([[weights[0].get((a[0], label), 0.0) for label in crf.classes_] for a in x])
    moves = np.array([[weights[1].get((a, b), 0.0) for b in crf.classes_] for a in crf.classes_])
    form = mf.structures.SemiMarkov(tokens[:, None], moves)
    best = mf.decode(form)
    assert [crf.classes_[k] for _, _, k in best.structure] == crf.predict([x])[0]
    shown = mf.marginals(form)["segments"][:, 0]
    for t, row in enumerate(crf.predict_marginals([x])[0]):
        np.testing.assert_allclose([row[label] for label in crf.classes_], shown[t], atol=1e-9)
    z = float(mf.log_partition(form))
    assert mf.log_partition(crf.to_factor_graph(x)).log_partition == pytest.approx(z)


def test_segments_are_a_chain_that_counts():
    # A state is a label, the length of its segment, and how far into it a token is.
    n, longest, k = 5, 3, 2
    scores, moves = RNG.normal(size=(n, longest, k)), RNG.normal(size=(k, k))
    form = mf.structures.SemiMarkov(scores, moves)
    states = [(a, d, at) for a in range(k) for d in range(longest) for at in range(d + 1)]
    size = len(states)
    step = np.full((size, size), -np.inf)
    for (i, (a, d, at)), (j, (b, e, to)) in product(enumerate(states), repeat=2):
        if at < d and (b, e, to) == (a, d, at + 1):
            step[i, j] = 0.0
        elif at == d and to == 0:
            step[i, j] = moves[a, b]
    own = np.zeros((n, size))
    for t, (i, (a, d, at)) in product(range(n), enumerate(states)):
        own[t, i] = scores[t, d, a] if at == 0 else 0.0
        if (t == 0 and at > 0) or (t == n - 1 and at < d):
            own[t, i] = -np.inf
    graph = chain_as_graph(own, step)
    answer, wanted = mf.marginals(form), mf.marginals(graph)
    assert answer.log_partition == pytest.approx(wanted.log_partition)
    for t in range(n):
        for i, (a, d, at) in enumerate(states):
            if at == 0:
                assert answer["segments"][t, d, a] == pytest.approx(wanted[t][i], abs=1e-10)
    assert mf.decode(form).score == pytest.approx(mf.decode(graph).score)


def test_ctc_is_a_chain_over_its_labels_with_blanks():
    frames, labels = RNG.normal(size=(7, 4)), [1, 2, 2, 3]
    symbols = [0, 1, 0, 2, 0, 2, 0, 3, 0]
    size = len(symbols)
    step = np.full((size, size), -np.inf)
    for i in range(size):
        for j in range(i, min(i + 3, size)):
            skips = j == i + 2 and (symbols[j] == 0 or symbols[j] == symbols[i])
            step[i, j] = -np.inf if skips else 0.0
    ends = np.arange(size)
    chain = mf.structures.SemiMarkov(
        frames[:, symbols][:, None],
        step,
        start=np.where(ends < 2, 0.0, -np.inf),
        end=np.where(ends >= size - 2, 0.0, -np.inf),
    )
    ctc = mf.structures.CTC(frames, labels)
    answer, wanted = mf.marginals(chain), mf.marginals(ctc)
    assert answer.log_partition == pytest.approx(wanted.log_partition)
    found = np.zeros_like(frames)
    for state, symbol in enumerate(symbols):
        found[:, symbol] += answer["segments"][:, 0, state]
    np.testing.assert_allclose(wanted["symbols"], found, atol=1e-10)
    best = [symbols[state] for _, _, state in mf.decode(chain).structure]
    assert best == list(mf.decode(ctc).structure)
    assert ctc.n_structures() == chain.n_structures()


def test_span_trees_are_those_of_a_grammar_that_has_every_rule():
    n, labels = 5, 2
    scores = RNG.normal(size=(n, n, labels))
    trees = mf.structures.SpanTree(scores)
    rules = {("S", a): 0.0 for a in range(labels)} | dict.fromkeys(product(range(labels), repeat=3), 0.0)
    spans = {(i, j, a): scores[i, j, a] for i in range(n) for j in range(i + 1, n) for a in range(labels)}
    chart = mf.structures.Chart(
        [{a: scores[i, i, a] for a in range(labels)} for i in range(n)], rules, start="S", spans=spans
    )
    one, two = mf.marginals(trees), mf.marginals(chart)
    assert one.log_partition == pytest.approx(two.log_partition)
    assert one.entropy == pytest.approx(two.entropy)
    numbers = [chart.symbols.index(a) for a in range(labels)]
    np.testing.assert_allclose(one["spans"], two["spans"][:, :, numbers], atol=1e-10)
    assert mf.decode(trees).score == pytest.approx(mf.decode(chart).score)
    assert trees.n_structures() == chart.n_structures()


@pytest.mark.parametrize("single_root", [True, False])
def test_projective_trees_are_spanning_trees_without_crossings(single_root):
    n = 4
    scores = RNG.normal(size=(n + 1, n + 1))
    spanning = mf.structures.SpanningTree(scores, single_root=single_root)
    projective = mf.structures.ProjectiveTree(scores, single_root=single_root)
    everything = mf.decode(spanning, n_best=int(spanning.n_structures())).n_best
    kept = [one for one in everything if no_crossing(one.structure)]
    assert len(kept) == projective.n_structures() < len(everything)
    assert float(mf.log_partition(projective)) == pytest.approx(np.logaddexp.reduce([one.score for one in kept]))
    assert mf.decode(projective).structure == kept[0].structure
    p = np.exp([one.score for one in kept])
    arcs = np.zeros_like(scores)
    for one, share in zip(kept, p / p.sum(), strict=True):
        for word, head in enumerate(one.structure, 1):
            arcs[head, word] += share
    np.testing.assert_allclose(mf.marginals(projective)["arcs"], arcs, atol=1e-10)


def no_crossing(heads):
    arcs = [tuple(sorted((head, word))) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_draws_of_one_form_are_as_likely_in_another():
    # The mean log-probability of draws is minus the entropy, whichever form says how likely they are.
    graph = chain_as_graph(TOKENS, MOVES)
    segments = mf.structures.SemiMarkov(TOKENS[:, None], MOVES)
    drawn = mf.sample(segments, 2000, rng=0).structures
    paths = [[label for _, _, label in one] for one in drawn]
    scores = [
        sum(TOKENS[t, k] for t, k in enumerate(path)) + sum(MOVES[pair] for pair in pairwise(path)) for path in paths
    ]
    answer = mf.marginals(graph)
    values = np.array(scores) - answer.log_partition
    entropy = mf.marginals(segments).entropy
    assert abs(values.mean() + entropy) < 5 * values.std() / np.sqrt(len(values))
