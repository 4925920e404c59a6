"""The parser of spans: trees to cells and back, the gradient, decisions of least risk, files, bad input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import markovfield as mf
from markovfield.grammar import SpanModel, SpanParser, Tree
from markovfield.inference.core.running import Running
from markovfield.learning import LBFGS
from markovfield.structured import ConditionalLikelihood
from tests.grammar.test_trees import trees

TREES = mf.io.read_trees(
    """
(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (JJ small) (NN cat))) (. .))
(S (NP (PRP he)) (VP (VBD saw) (NP (DT the) (NN dog)) (PP (IN with) (NP (NN joy)))) (. .))
(S (NP (NP (DT the) (NN cat)) (PP (IN with) (NP (NNS stripes)))) (VP (VBD ran)) (. .))
(S (VP (VB Go) (ADVP (RB away))) (. !))
(S (NP (NNP Kim)) (VP (VBD said) (SBAR (S (NP (PRP he)) (VP (VBD ran))))) (. .))
(FRAG (NP (NN rain)))
"""
)
SETTINGS = {"min_count": 1, "min_word_count": 1, "l2": 0.1, "rng": 0}


@pytest.fixture(scope="module")
def parser() -> SpanParser:
    return SpanParser(**SETTINGS).fit(TREES)


def test_training_trees_are_found_again(parser: SpanParser) -> None:
    assert parser.predict(TREES) == TREES
    assert parser.score(TREES) == 1.0
    assert parser.score([tree.pos for tree in TREES], TREES) == 1.0
    assert parser.parse(TREES[0].pos) == TREES[0]
    assert parser.report(TREES).complete_match == 1.0
    assert (parser.log_likelihood([t.pos for t in TREES], TREES) > -1.0).all()


@settings(max_examples=40, deadline=None)
@given(trees(tagged=True).filter(lambda tree: "+" not in str(tree) and not tree.is_preterminal))
def test_trees_to_cells_and_back(tree: Tree) -> None:
    for direction in ("right", "left", "head"):
        model = SpanModel(direction, 1, 1).shaped([tree.pos], [tree])
        inputs = model.inputs([tree.pos])
        parts = model.parts([tree], inputs)
        assert len(parts.of(0)) == 2 * len(tree.leaves) - 1
        assert model.outputs(parts, inputs) == [tree]


def test_a_single_tag_is_a_tree() -> None:
    one = Tree.parse("(NN rain)")
    model = SpanModel(min_count=1).shaped([t.pos for t in [*TREES, one]], [*TREES, one])
    inputs = model.inputs([one.pos])
    assert model.outputs(model.parts([one], inputs), inputs) == [one]


def test_gradient_by_finite_differences() -> None:
    X = [t.pos for t in TREES[:3]]
    model = SpanModel(min_count=2, min_word_count=1).shaped(X, TREES[:3])
    objective = ConditionalLikelihood().on(model.encode(X, TREES[:3], [1.0, 0.5, 2.0]), running=Running())
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.n_weights) * 0.3
    _, gradient = objective(w)
    for direction in rng.normal(size=(5, len(w))):
        slope = (objective(w + 1e-5 * direction)[0] - objective(w - 1e-5 * direction)[0]) / 2e-5
        assert gradient @ direction == pytest.approx(slope, rel=1e-5)


def test_least_risk_against_enumeration() -> None:
    # Weights near zero, so that no tree is certain; trees of three words and few labels can all be listed.
    x = [(("he", "PRP"), ("saw", "VBD"), ("cats", "NNS"))]
    small = SpanParser(**SETTINGS).fit(TREES[:2])
    small.weights_ = 0.15 * small.weights_
    ranked = small.predict_n_best(x, 100_000)[0]
    scores = np.array([score for _, score in ranked])
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    expected: Counter[tuple[str, int, int]] = Counter()
    spans_of = [joined(tree) for tree, _ in ranked]
    for spans, p in zip(spans_of, weights, strict=True):
        for span in spans:
            expected[span] += p
    gains = [sum(2 * expected[span] - 1 for span in spans) for spans in spans_of]
    (found,) = small.predict(x, decision="mbr")
    assert sum(2 * expected[span] - 1 for span in joined(found)) == pytest.approx(max(gains))
    assert ranked[0][0] == small.predict(x)[0]


def joined(tree: Tree) -> list[tuple[str, int, int]]:
    return mf.grammar.collapse_unaries(tree).spans()


def test_batches_are_as_singles(parser: SpanParser) -> None:
    X = [t.pos for t in TREES]
    whole = parser.decode(X)
    for x, tree, score in zip(X, whole.labels, whole.scores, strict=True):
        alone = parser.decode([x])
        assert alone.labels == [tree]
        assert alone.scores[0] == pytest.approx(score)
    first = parser.predict_marginals(X)[0]["spans"]
    assert first.shape == (7, 7, parser.model_.n_classes)
    np.testing.assert_allclose(first, mf.marginals(parser.form(X[0]))["spans"])
    # All words are covered by one span of themselves, and by the whole.
    np.testing.assert_allclose(first.sum(axis=2)[np.arange(7), np.arange(7)], 1.0)
    assert first[0, 6].sum() == pytest.approx(1.0)
    assert first[0, 6, 0] == 0.0


def test_threads_and_solvers(parser: SpanParser) -> None:
    again = SpanParser(**SETTINGS, n_jobs=2).fit(TREES)
    # AdaGrad divides by roots of tiny gradients, so that what rounding leaves may grow.
    np.testing.assert_allclose(again.weights_, parser.weights_, atol=1e-6)
    exact = SpanParser(**SETTINGS, solver=LBFGS()).fit(TREES)
    assert exact.report_.converged
    assert exact.report_.objective <= parser.report_.objective
    assert exact.predict(TREES) == TREES


def test_samples_and_n_best(parser: SpanParser) -> None:
    x = [TREES[0].pos]
    ranked = parser.predict_n_best(x, 4)[0]
    assert ranked[0][0] == TREES[0]
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)
    drawn = parser.sample(x, 20, rng=0)[0]
    assert all(tree.pos == TREES[0].pos for tree in drawn)
    assert TREES[0] in drawn


def test_saved_and_loaded(parser: SpanParser, tmp_path: Path) -> None:
    path = tmp_path / "parser.mf"
    parser.save(path)
    again = mf.load(path)
    assert isinstance(again, SpanParser)
    np.testing.assert_array_equal(again.weights_, parser.weights_)
    assert again.predict(TREES) == TREES
    assert again.get_params()["l2"] == 0.1


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda p: SpanParser().fit(["(S a)"]), "fit takes trees, or sentences and trees, and entry 0 is str"),
        (lambda p: SpanParser().fit([[("a", "A")]], [Tree.parse("(S (B b))")]), "tree 0 has other words or tags"),
        (lambda p: SpanParser().fit([[("a", "A")]], ["x"]), "y must be trees, and entry 0 is str"),
        (lambda p: SpanParser().fit([[("a", "A")]], TREES), "X has 1 examples and y has 6"),
        (lambda p: SpanParser().fit([]), "X holds no examples"),
        (lambda p: SpanParser(direction="up").fit(TREES), "direction"),
        (lambda p: SpanParser(min_count=0).fit(TREES), "min_count"),
        (lambda p: p.predict([["the", "dog"]]), r"sentence 0 must be words with tags, as \('dog', 'NN'\), got 'the'"),
        (lambda p: p.predict([TREES[0].pos, ()]), "sentence 1 has no words"),
        (
            lambda p: p.log_likelihood([(("a", "DT"),)], [Tree.parse("(WHNP (DT a))")]),
            "tree 0 has the label 'WHNP', which no tree had in training",
        ),
    ],
)
def test_what_is_refused(parser: SpanParser, call: object, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        call(parser)  # type: ignore[operator]
