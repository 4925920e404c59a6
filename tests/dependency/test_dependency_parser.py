"""The dependency parser: all verbs against enumeration of trees, gradients, files, objectives, bad input."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.dependency import ArcModel, DependencyParser
from markovfield.inference.core.running import Running
from markovfield.learning import LBFGS
from markovfield.structured import ConditionalLikelihood
from tests.data import data_path
from tests.dependency.test_trees import crosses, is_tree

X = [
    [("the", "DT"), ("dog", "NN"), ("barked", "VBD"), (".", ".")],
    [("rain", "NN"), ("fell", "VBD")],
    [("a", "DT"), ("small", "JJ"), ("cat", "NN"), ("saw", "VBD"), ("the", "DT"), ("dog", "NN"), (".", ".")],
    [("Go", "VB")],
]
Y = [
    [(2, "det"), (3, "nsubj"), (0, "root"), (3, "punct")],
    [(2, "nsubj"), (0, "root")],
    [(3, "det"), (3, "amod"), (4, "nsubj"), (0, "root"), (6, "det"), (4, "obj"), (4, "punct")],
    [(0, "root")],
]
HEADS = [[head for head, _ in tree] for tree in Y]
SETTINGS = {"min_count": 1, "min_word_count": 1, "l2": 0.1, "rng": 0}
KINDS = [(p, k, s) for p in (False, True) for k in (False, True) for s in (False, True)]


def fitted(projective: bool = False, labelled: bool = False, single_root: bool = True, **more: Any) -> DependencyParser:
    words = SETTINGS | {"projective": projective, "labelled": labelled, "single_root": single_root} | more
    return DependencyParser(**words).fit(X, Y if labelled else HEADS)


@pytest.fixture(scope="module")
def parser() -> DependencyParser:
    return fitted(labelled=True)


@pytest.mark.parametrize(("projective", "labelled", "single_root"), KINDS)
def test_training_trees_are_found_again(projective: bool, labelled: bool, single_root: bool) -> None:
    found = fitted(projective, labelled, single_root)
    assert found.predict(X) == (Y if labelled else HEADS)
    assert found.predict(X, decision="mbr") == (Y if labelled else HEADS)
    assert found.score(X, HEADS) == found.score(X, Y) == 1.0
    assert found.report(X, Y).las == (1.0 if labelled else None)
    assert found.parse(X[0]) == (Y if labelled else HEADS)[0]
    assert (found.log_likelihood(X, Y) > -2.0).all()


@pytest.mark.parametrize(("projective", "labelled", "single_root"), KINDS)
def test_every_answer_against_enumeration(projective: bool, labelled: bool, single_root: bool) -> None:
    found = fitted(projective, labelled, single_root)
    # Weights near zero, so that no tree is certain.
    found.weights_ = 0.2 * found.weights_
    x = [("a", "DT"), ("dog", "NN"), ("fell", "VBD")]
    n, n_labels = len(x), len(found.classes_) if labelled else 1
    pool = found.form(x).pool.reshape(n + 1, n + 1, n_labels)
    every, scores = [], []
    for heads in product(range(n + 1), repeat=n):
        possible = all(h != m for m, h in enumerate(heads, 1)) and is_tree(list(heads))
        if not possible or (projective and crosses(list(heads))) or (single_root and heads.count(0) != 1):
            continue
        for labels in product(range(n_labels), repeat=n):
            every.append(list(zip(heads, labels, strict=True)))
            scores.append(sum(pool[h, m, k] for m, (h, k) in enumerate(every[-1], 1)))
    order = np.argsort(scores)[::-1]
    p = np.exp(np.array(scores) - np.logaddexp.reduce(scores))
    expected = np.zeros_like(pool)
    for tree, share in zip(every, p, strict=True):
        for m, (h, k) in enumerate(tree, 1):
            expected[h, m, k] += share
    marginals = found.predict_marginals([x, X[0]])[0]["arcs"]
    np.testing.assert_allclose(marginals.reshape(expected.shape), expected, atol=1e-10)

    def named(tree: list[tuple[int, int]]) -> list[Any]:
        return [(h, found.classes_[k]) for h, k in tree] if labelled else [h for h, _ in tree]

    for y, share in list(zip(every, p, strict=True))[:10]:
        assert found.log_likelihood([x], [named(y)])[0] == pytest.approx(np.log(share), abs=1e-9)
    assert found.predict([x])[0] == named(every[order[0]])
    ranked = found.predict_n_best([x], 6)[0]
    np.testing.assert_allclose([score for _, score in ranked], np.array(scores)[order[:6]])
    assert ranked[0][0] == named(every[order[0]])
    gains = [sum(expected[h, m, k] for m, (h, k) in enumerate(tree, 1)) for tree in every]
    assert found.predict([x], decision="mbr")[0] == named(every[int(np.argmax(gains))])
    drawn = found.sample([x], 30, rng=0)[0]
    assert all(tree in [named(one) for one in every] for tree in drawn)


@pytest.mark.parametrize(("projective", "labelled", "single_root"), KINDS)
def test_gradient_by_finite_differences(projective: bool, labelled: bool, single_root: bool) -> None:
    model = ArcModel(projective, labelled, single_root, 1, 2).shaped(X, Y)
    objective = ConditionalLikelihood().on(model.encode(X, Y, [1.0, 0.5, 2.0, 1.0]), running=Running())
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.n_weights) * 0.2
    _, gradient = objective(w)
    for direction in rng.normal(size=(4, len(w))):
        slope = (objective(w + 1e-5 * direction)[0] - objective(w - 1e-5 * direction)[0]) / 2e-5
        assert gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_hinge(projective: bool, labelled: bool) -> None:
    found = fitted(projective, labelled, objective="hinge")
    assert found.predict(X) == (Y if labelled else HEADS)
    assert found.report_.gap >= -1e-9
    # At the weights found, and at others: the hinge of each sentence by listing all trees, a wrong arc costing 1.
    for share in (1.0, 0.3):
        found.weights_ = share * found.weights_
        hinges = [0.0, 0.0]
        for i, (x, y) in enumerate([(X[k], (Y if labelled else HEADS)[k]) for k in (1, 3)]):
            form = found.form(x)
            ranked = mf.decode(form, n_best=200).n_best
            truth = form.cells([(h, found.classes_.index(k)) for h, k in y] if labelled else y)
            wrong = [len(set(form.cells(one.structure).tolist()) - set(truth.tolist())) for one in ranked]
            margins = [one.score + cost for one, cost in zip(ranked, wrong, strict=True)]
            hinges[i] = max(margins) - form.pool[truth].sum()
        batch = found.model_.encode([X[1], X[3]], [Y[1], Y[3]])
        rows, cost = mf.structured.Hinge(loss="arcs").on(batch, running=Running()).planes(found.weights_, losses=True)
        np.testing.assert_allclose(cost - rows.products(found.weights_), hinges, atol=1e-8)


def test_batches_are_as_singles(parser: DependencyParser) -> None:
    whole = parser.decode(X)
    for x, tree, score in zip(X, whole.labels, whole.scores, strict=True):
        alone = parser.decode([x])
        assert alone.labels == [tree]
        assert alone.scores[0] == pytest.approx(score)
    arcs = parser.predict_marginals(X)[2]["arcs"]
    np.testing.assert_allclose(arcs, mf.marginals(parser.form(X[2]))["arcs"])
    # Every word has one head; one word hangs on the root.
    np.testing.assert_allclose(arcs.sum(axis=(0, 2)), [0, 1, 1, 1, 1, 1, 1, 1])
    assert arcs[0].sum() == pytest.approx(1.0)


def test_words_as_dicts_and_weights_of_sentences() -> None:
    dicts = [[{"form": word, "upos": tag} for word, tag in x] for x in X]
    a, b = fitted(), DependencyParser(**SETTINGS).fit(dicts, HEADS)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    model, w = a.model_, 0.3 * a.weights_
    twice = ConditionalLikelihood().on(model.encode([*X, X[0]], [*HEADS, HEADS[0]]), running=Running())
    weighted = ConditionalLikelihood().on(model.encode(X, HEADS, [2.0, 1.0, 1.0, 1.0]), running=Running())
    assert twice(w)[0] == pytest.approx(weighted(w)[0])
    np.testing.assert_allclose(twice(w)[1], weighted(w)[1], atol=1e-12)


def test_solvers_and_threads(parser: DependencyParser) -> None:
    exact = fitted(labelled=True, solver=LBFGS())
    assert exact.report_.converged
    assert exact.report_.objective <= parser.report_.objective
    again = fitted(labelled=True, n_jobs=2)
    # AdaGrad divides by roots of tiny gradients, so that what rounding leaves may grow.
    np.testing.assert_allclose(again.weights_, parser.weights_, atol=1e-6)


@pytest.mark.parametrize(("projective", "labelled"), [(False, False), (True, True)])
def test_saved_and_loaded(projective: bool, labelled: bool, tmp_path: Path) -> None:
    found = fitted(projective, labelled)
    path = tmp_path / "parser.mf"
    mf.save(found, path)
    again = mf.load(path)
    assert isinstance(again, DependencyParser)
    np.testing.assert_array_equal(again.weights_, found.weights_)
    assert again.predict(X) == found.predict(X)
    assert again.get_params()["projective"] is projective
    new = [[("zebras", "NN"), ("wandered", "XX")]]
    np.testing.assert_array_equal(again.log_likelihood(new, Y[1:2]), found.log_likelihood(new, Y[1:2]))


def test_clone_and_settings() -> None:
    found = DependencyParser(projective=True, labelled=True, min_count=3, l2=0.5)
    copy = clone(found)
    assert copy.get_params() == found.get_params()
    assert copy.set_params(single_root=False).single_root is False


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda p: DependencyParser().fit(X, HEADS[:2]), "X has 4 examples and y has 2"),
        (lambda p: DependencyParser().fit([], []), "X holds no examples"),
        (lambda p: DependencyParser().fit(X, [[2, 1, 0, 3], *HEADS[1:]]), "tree 0 has a cycle of heads, 1 -> 2 -> 1"),
        (lambda p: DependencyParser().fit(X, [*HEADS[:3], [2]]), "tree 3: the head of word 1 must be 0, .* got 2"),
        (lambda p: DependencyParser().fit(X, [HEADS[0], [0, 0], *HEADS[2:]]), "tree 1 has 2 words on the root, 1, 2"),
        (lambda p: DependencyParser().fit(X, [HEADS[0], [0], *HEADS[2:]]), "tree 1 has 1 heads, and its sentence 2"),
        (lambda p: DependencyParser().fit([*X[:3], []], HEADS), "sentence 3 has no words"),
        (lambda p: DependencyParser(labelled=True).fit(X, HEADS), r"tree 0 must have pairs \(head, label\), got 2"),
        (
            lambda p: DependencyParser(projective=True).fit([X[0]], [[3, 4, 0, 3]]),
            "tree 0 has arcs that cross, 3 -> 1 and 4 -> 2: say projective=False",
        ),
        (lambda p: DependencyParser(projective="yes").fit(X, HEADS), "projective .* must be True or False, got 'yes'"),
        (lambda p: DependencyParser(min_count=0).fit(X, HEADS), "min_count"),
        (lambda p: DependencyParser(min_word_count=0).fit(X, HEADS), "min_word_count"),
        (lambda p: p.log_likelihood(X[1:2], [[(2, "obl"), (0, "root")]]), "tree 0 has the label 'obl', which no tree"),
        (lambda p: p.predict([["the", "dog"]]), r"sentence 0 must be words with tags, .* got 'the'"),
        (lambda p: p.predict(X, decision="best"), "decision must be 'map' or 'mbr', got 'best'"),
    ],
)
def test_what_is_refused(parser: DependencyParser, call: Any, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        call(parser)


def test_treebank() -> None:
    X, y = mf.io.read_dependencies(data_path("ptb_sample", "dependency_treebank.dp.gz"))
    assert (len(X), sum(map(len, X))) == (3914, 94084)
    found = DependencyParser(rng=0, solver=mf.learning.AdaGrad(eta0=0.1, passes=2)).fit(X[:150], y[:150])
    # Half of the words have their neighbour as head, which is what little there is to learn without a model.
    near = np.mean([h == m + 1 for heads in y[3814:] for m, h in enumerate(heads, 1)])
    assert found.score(X[3814:], y[3814:]) > near + 0.2
