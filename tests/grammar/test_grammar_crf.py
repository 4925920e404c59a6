"""The discriminative grammar: trees to cells and back, all answers by enumeration, gradients, files, bad input."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.grammar import GrammarCRF, GrammarModel, Tree
from markovfield.inference.core.running import Running
from markovfield.learning import LBFGS
from markovfield.structured import ConditionalLikelihood

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
WAYS = [("right", 1, 1), ("left", 0, 1), ("head", 2, 2), ("right", None, 3)]


@pytest.fixture(scope="module")
def parser() -> GrammarCRF:
    return GrammarCRF(**SETTINGS).fit(TREES)


def test_training_trees_are_found_again(parser: GrammarCRF) -> None:
    assert parser.predict(TREES) == TREES
    assert parser.predict(TREES, decision="mbr") == TREES
    assert parser.score([tree.pos for tree in TREES], TREES) == 1.0
    assert parser.parse(TREES[0].pos) == TREES[0]


@pytest.mark.parametrize(("direction", "horizontal", "vertical"), WAYS)
def test_trees_to_cells_and_back(direction: str, horizontal: int | None, vertical: int) -> None:
    X = [tree.pos for tree in TREES]
    model = GrammarModel(direction, horizontal, vertical, 1, 1).shaped(X, TREES)
    inputs = model.inputs(X)
    parts = model.parts(TREES, inputs)
    assert model.outputs(parts, inputs) == TREES
    # What counts are the brackets, chains of single children being one.
    counted = model.counted(inputs)
    for i, tree in enumerate(TREES):
        assert counted[parts.of(i)].sum() == len(mf.grammar.collapse_unaries(tree).spans())


def all_trees(model: GrammarModel, x: Any) -> list[Any]:
    """All trees of the grammar over a sentence as nested tuples, by listing what each symbol can be over each span."""
    grammar = model.rules.grammar
    tags = [[c for c, s in enumerate(grammar.tokens) if s.partition("^")[0] == tag] for _, tag in x]
    names, binary = grammar.symbols, [tuple(grammar.symbols[s] for s in row) for row in grammar.table.binary.tolist()]
    unary = [tuple(names[s] for s in row) for row in grammar.table.unary.tolist()]
    known: dict[tuple[int, int], list[Any]] = {}
    for size in range(1, len(x) + 1):
        for i in range(len(x) - size + 1):
            found = [(grammar.tokens[c], i) for c in tags[i]] if size == 1 else []
            for k in range(i + 1, i + size):
                for a, b in product(known[i, k], known[k, i + size]):
                    found += [(p, a, b) for p, left, right in binary if (left, right) == (a[0], b[0])]
            new = found
            while new:  # no unary rules lead around
                new = [(p, tree) for tree in new for p, child in unary if child == tree[0]]
                found = found + new
            known[i, i + size] = found
    return [tree for tree in known[0, len(x)] if tree[0] == grammar.start]


def test_every_answer_against_enumeration() -> None:
    found = GrammarCRF(**SETTINGS, horizontal=0).fit(TREES)
    found.weights_ = 0.2 * found.weights_
    words = "he/PRP saw/VBD the/DT cat/NN with/IN joy/NN with/IN joy/NN ./."
    x = [(token.split("/")[0], token.split("/")[1]) for token in words.split()]
    form: Any = found.form(x)
    every = all_trees(found.model_, x)
    assert len(every) == len({str(tree) for tree in every}) == form.n_structures()
    assert len(every) > 3
    cells = [form.cells(tree) for tree in every]
    scores = np.array([form.pool[own].sum() for own in cells])
    p = np.exp(scores - np.logaddexp.reduce(scores))
    assert float(mf.log_partition(form)) == pytest.approx(np.logaddexp.reduce(scores))
    expected = np.zeros(len(form.pool))
    for own, share in zip(cells, p, strict=True):
        np.add.at(expected, own, share)
    for name, values in form.shaped(expected).items():
        np.testing.assert_allclose(found.predict_marginals([TREES[0].pos, x])[1][name], values, atol=1e-10)
    order = np.argsort(-scores)
    ranked = found.predict_n_best([x], 5)[0]
    np.testing.assert_allclose([score for _, score in ranked], scores[order[:5]])
    shown = [found.model_.outputs(mf.structures.Parts.joined([own]), found.model_.inputs([x]))[0] for own in cells]
    assert found.predict([x])[0] == shown[order[0]]
    brackets: Counter[tuple[str, int, int]] = Counter()
    spans = [mf.grammar.collapse_unaries(tree).spans() for tree in shown]
    for own, share in zip(spans, p, strict=True):
        for span in own:
            brackets[span] += share
    gains = [sum(2 * brackets[span] - 1 for span in own) for own in spans]
    # Of several sentences at once, as their charts share the cells of rules.
    mbr = found.predict([TREES[0].pos, x], decision="mbr")[1]
    best = mf.grammar.collapse_unaries(mbr).spans()
    assert sum(2 * brackets[span] - 1 for span in best) == pytest.approx(max(gains))
    assert all(tree in shown for tree in found.sample([x], 10, rng=0)[0])


@pytest.mark.parametrize(("direction", "horizontal", "vertical"), WAYS)
def test_gradient_by_finite_differences(direction: str, horizontal: int | None, vertical: int) -> None:
    X = [t.pos for t in TREES[:4]]
    model = GrammarModel(direction, horizontal, vertical, 2, 1).shaped(X, TREES[:4])
    objective = ConditionalLikelihood().on(model.encode(X, TREES[:4], [1.0, 0.5, 2.0, 1.0]), running=Running())
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.n_weights) * 0.3
    _, gradient = objective(w)
    for direction_ in rng.normal(size=(4, len(w))):
        slope = (objective(w + 1e-5 * direction_)[0] - objective(w - 1e-5 * direction_)[0]) / 2e-5
        assert gradient @ direction_ == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_operator_is_linear_and_its_rows_are_those_of_a_matrix() -> None:
    X = [TREES[5].pos, TREES[3].pos]
    model = GrammarModel("right", 1, 2, 1, 1).shaped([t.pos for t in TREES], TREES)
    operator = model.operator(model.inputs(X))
    rng = np.random.default_rng(0)
    w, cells = rng.normal(size=operator.n_weights), rng.normal(size=operator.n_cells)
    assert operator.forward(w) @ cells == pytest.approx(w @ operator.adjoint(cells))
    some = rng.integers(0, operator.n_cells, 30)
    np.testing.assert_allclose(operator.rows(some) @ w, operator.forward(w)[some])


def test_without_weights_it_is_the_grammar_of_the_treebank(parser: GrammarCRF) -> None:
    plain = clone(parser).fit(TREES, time_limit=None)
    plain.weights_ = np.zeros_like(plain.weights_)
    # Every rule has its share among those of its parent, and a tree the product of its rules.
    grammar = plain.model_.rules.grammar
    total = np.bincount(grammar.parents, np.exp(plain.model_.rules.rule_scores), grammar.table.n_symbols)
    np.testing.assert_allclose(total[np.unique(grammar.parents)], 1.0)
    before = plain.log_likelihood([t.pos for t in TREES], TREES).sum()
    assert parser.log_likelihood([t.pos for t in TREES], TREES).sum() > before


def test_hinge_and_optimum(parser: GrammarCRF) -> None:
    hinge = GrammarCRF(**SETTINGS, objective="hinge").fit(TREES)
    assert hinge.predict(TREES) == TREES
    exact = GrammarCRF(**SETTINGS, solver=LBFGS()).fit(TREES)
    assert exact.report_.converged
    assert exact.report_.objective <= parser.report_.objective
    split = GrammarCRF(**{**SETTINGS, "l2": {"rules": 1.0, "spans": 0.1}}, solver=LBFGS()).fit(TREES)
    assert np.abs(split.coef_["rules"]).sum() < np.abs(exact.coef_["rules"]).sum()


def test_a_tag_that_is_new_and_a_sentence_without_a_tree(parser: GrammarCRF) -> None:
    tree = parser.parse([("the", "DT"), ("wug", "XX"), ("ran", "VBD"), (".", ".")])
    assert tree is not None
    assert tree.pos == (("the", "DT"), ("wug", "XX"), ("ran", "VBD"), (".", "."))
    found = parser.predict([TREES[0].pos, [(".", "."), (".", ".")], TREES[1].pos])
    assert found == [TREES[0], None, TREES[1]]


def test_saved_and_loaded(parser: GrammarCRF, tmp_path: Path) -> None:
    path = tmp_path / "grammar.mf"
    mf.save(parser, path)
    again = mf.load(path)
    assert isinstance(again, GrammarCRF)
    np.testing.assert_array_equal(again.weights_, parser.weights_)
    assert again.predict(TREES) == TREES
    assert again.get_params()["l2"] == 0.1
    assert clone(again).get_params() == again.get_params()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda p: GrammarCRF().fit(["(S a)"]), "fit takes trees, or sentences and trees, and entry 0 is str"),
        (lambda p: GrammarCRF().fit([*TREES, Tree.parse("(NN rain)")]), "tree 6 is a tag alone"),
        (lambda p: GrammarCRF().fit([Tree.parse("(S (@X (NN a)) (VB b))")]), "label '@X'"),
        (lambda p: GrammarCRF(direction="up").fit(TREES), "direction"),
        (lambda p: GrammarCRF(min_count=0).fit(TREES), "min_count"),
        (lambda p: p.predict([["the", "dog"]]), r"sentence 0 must be words with tags, as \('dog', 'NN'\), got 'the'"),
        (
            lambda p: p.log_likelihood([TREES[5].pos], [Tree.parse("(WHNP (NN rain))")]),
            "tree 0 has the rule @TOP -> WHNP, which the grammar lacks",
        ),
    ],
)
def test_what_is_refused(parser: GrammarCRF, call: Any, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        call(parser)
