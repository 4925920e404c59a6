"""Grammars read off trees: symbols, rules, lexicon, counts, token columns, and trees as cells of a chart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binarisation import Binarisation
from markovfield.grammar.binary_grammar import BinaryGrammar, plain_label
from markovfield.grammar.lexicon import UNKNOWN, Lexicon, lexicon_counts, word_class
from markovfield.grammar.treebank import (
    Sentence,
    TreebankGrammar,
    checked_treebank,
    sentences_of,
    token_scores,
)
from markovfield.grammar.trees import Tree

TREES = [
    Tree.parse(text)
    for text in (
        "(S (NP (DT the) (JJ big) (JJ old) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN in) (NP (NN rain)))))",
        "(S (NP (NN rain)) (VP (VBD fell)))",
        "(FRAG (NP (DT the) (NN cat)) (S (VP (VBD fell))))",
        "(NP (NP (NN rain)))",
        "(NN dog)",
    )
]
WAYS = [
    Binarisation(direction, horizontal=h, vertical=v)
    for direction in ("right", "left", "head")
    for h in (0, 1, None)
    for v in (1, 3)
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("spans", [False, True])
def test_trees_are_cells_and_cells_are_trees(way, spans):
    found = TreebankGrammar.read(TREES, way)
    grammar = found.grammar
    family = grammar.family([len(tree.leaves) for tree in TREES], spans=spans)
    counts = np.zeros(grammar.table.n_rules)
    for i, tree in enumerate(TREES):
        cells = grammar.cells(found.binary(tree), family, i)
        assert grammar.tree(cells, family, i, tree.leaves) == tree
        own = [c for c in cells if c < grammar.table.n_rules]
        np.add.at(counts, own, 1)
        inside = [c for c in cells if c >= grammar.table.n_rules]
        assert all(family.cell_offsets[i] <= c < family.cell_offsets[i + 1] for c in inside)
        # The form of one sentence reads the same cells as the same tree.
        form = grammar.form(np.zeros(grammar.table.n_rules), np.zeros((len(tree.leaves), len(grammar.tokens))), None)
        alone = grammar.cells(found.binary(tree), form.family, 0)
        assert form.cells(form.structure(np.array(alone))).tolist() == alone
    np.testing.assert_array_equal(counts, found.rule_counts)


def test_counts_are_those_of_the_binary_trees():
    way = Binarisation(vertical=2, horizontal=1)
    found = TreebankGrammar.read(TREES, way)
    rules, words = Counter(), Counter()
    for tree in TREES:
        rules["@TOP", way.transform(tree).label] += 1
        for node in way.transform(tree):
            if node.is_preterminal:
                words[node.children[0], node.label] += 1
            else:
                rules[(node.label, *(child.label for child in node.children))] += 1
    assert found.grammar.start == "@TOP"
    assert dict(zip(found.grammar.rules, found.rule_counts.tolist(), strict=True)) == rules
    tags = found.grammar.tokens
    got = {(word, tags[t]): c for (word, t), c in zip(found.lexicon.pairs(), found.word_counts.tolist(), strict=True)}
    assert got == words


def test_weights_are_repetitions_and_nothing_counts_nothing():
    weights = np.array([2.0, 0.0, 1.0, 3.0, 0.0])
    weighed = TreebankGrammar.read(TREES, weights=weights)
    repeated = TreebankGrammar.read([tree for tree, w in zip(TREES, weights, strict=True) for _ in range(int(w))])
    assert weighed.grammar.rules == repeated.grammar.rules
    np.testing.assert_array_equal(weighed.rule_counts, repeated.rule_counts)
    assert weighed.lexicon.pairs() == repeated.lexicon.pairs()
    np.testing.assert_array_equal(weighed.word_counts, repeated.word_counts)


def test_one_label_at_the_top_is_the_start():
    assert TreebankGrammar.read(TREES[:2]).grammar.start == "S"
    assert TreebankGrammar.read(TREES[:3]).grammar.start == "@TOP"
    grammar = TreebankGrammar.read(TREES[:2]).grammar
    with pytest.raises(ModelError, match="tree 0 begins with NP, and the grammar with S"):
        grammar.cells(TREES[3], grammar.family([1]), 0)
    with pytest.raises(ModelError, match="tree 0 has the rule S -> VP NP, which the grammar lacks"):
        grammar.cells(Tree.parse("(S (VP (VBD fell)) (NP (NN rain)))"), grammar.family([2]), 0)
    with pytest.raises(ModelError, match="tree 0 has the tag NP, which the grammar lacks"):
        grammar.cells(Tree.parse("(S (NP rain) (VP (VBD fell)))"), grammar.family([2]), 0)


def test_labels_are_plain():
    grammar = TreebankGrammar.read(TREES, Binarisation(vertical=2, horizontal=1)).grammar
    assert grammar.labels == ("FRAG", "NP", "PP", "S", "VP")
    for symbol, label in zip(grammar.symbols, grammar.label_of.tolist(), strict=True):
        tag = symbol in grammar.tokens
        assert (label == -1) == (symbol.startswith("@") or tag)
        assert tag or label == -1 or grammar.labels[label] == plain_label(symbol)
    assert grammar.tree([], grammar.family([2]), 0, ["a", "b"]) is None


def test_sentences():
    assert sentences_of([["a", "b"], [("a", "DT"), ("b", None)], TREES[1]]) == [
        Sentence(("a", "b"), (None, None)),
        Sentence(("a", "b"), ("DT", None)),
        Sentence(("rain", "fell"), ("NN", "VBD")),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a b", "sentences must be a list of sentences, got a string"),
        (TREES[0], "sentences must be a list of sentences, got a tree"),
        (["a b"], "sentence 0 must be a list of words, got the string 'a b'; split it first"),
        ([["a"], []], "sentence 1 has no words"),
        ([["a"], 3], "sentence 1 must be a list of words, got int"),
        ([["a", 3]], "word 1 of sentence 0 must be a text, or a pair"),
        ([["a", ("b", 3)]], "word 1 of sentence 0 must be a text, or a pair"),
        ([["a b"]], "word 0 of sentence 0 must be a text without white space, got 'a b'"),
        ([[""]], "word 0 of sentence 0 must be a text without white space, got ''"),
    ],
)
def test_mistakes_in_sentences(given, message):
    with pytest.raises(ModelError, match=message):
        sentences_of(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("(S x)", "trees must be a list of trees, got str"),
        (TREES[0], "trees must be a list of trees, got Tree"),
        ([TREES[0], "x"], "and entry 1 is str"),
        ([], "there is no tree to read a grammar off"),
    ],
)
def test_mistakes_in_treebanks(given, message):
    with pytest.raises(ModelError, match=message):
        checked_treebank(given)


def test_token_scores_by_words_and_by_tags():
    grammar = BinaryGrammar.of([("S", "A", "B")], ["A", "B"], start="S")
    lexicon = Lexicon.of([("x", 0), ("x", 1), ("y", 1)])
    sentences = sentences_of([["x", "z"], [("x", "B"), ("z", "A"), ("y", "nothing"), "y"]])
    found = token_scores(grammar, lexicon, sentences, np.array([-1.0, -2.0, -3.0]))
    none = -np.inf
    wanted = [[-1, -2], [none, none], [none, 0], [0, none], [none, none], [none, -3]]
    np.testing.assert_array_equal(found, wanted)


def test_spreading_and_gathering_are_transposes():
    rng = np.random.default_rng(0)
    lexicon = Lexicon.of([(f"w{i}", int(t)) for i in range(6) for t in rng.permutation(4)[: rng.integers(1, 5)]])
    rows = lexicon.rows([f"w{i}" for i in rng.integers(0, 8, 20)])
    assert set(rows.tolist()) > {-1}
    values, counts = rng.normal(size=lexicon.n_entries), rng.normal(size=(20, 4))
    spread = lexicon.spread(rows, values, 4)
    assert np.where(np.isinf(spread), 0.0, spread * counts).sum() == pytest.approx(
        values @ lexicon.gathered(rows, counts)
    )


def test_unknown_words():
    seen = {("dog", "NN"): 5.0, ("Rome", "NNP"): 1.0, ("blorfs", "NNS"): 1.0, ("glorfs", "VBZ"): 1.0}
    found = lexicon_counts(seen, unknown="classes", rare_count=1)
    assert {pair: found[pair] for pair in seen} == seen
    assert found["<unknown-s>", "NNS"] == found["<unknown-s>", "VBZ"] == found["<unknown-capital>", "NNP"] == 1.0
    assert found[UNKNOWN, "NNP"] == pytest.approx(1 / 3)
    lexicon = Lexicon.of((word, 0) for word in dict.fromkeys(word for word, _ in found))
    names = [lexicon.words[row] for row in lexicon.rows(["dog", "wombats", "Berlin", "dog-ish", UNKNOWN])]
    assert names == ["dog", "<unknown-s>", "<unknown-capital>", UNKNOWN, UNKNOWN]
    one = lexicon_counts(seen, unknown="one", rare_count=1)
    assert {pair for pair in one if pair not in seen} == {(UNKNOWN, "NNP"), (UNKNOWN, "NNS"), (UNKNOWN, "VBZ")}
    assert lexicon_counts(seen, unknown="none", smoothing=3.0) == seen
    smooth = lexicon_counts(seen, unknown="one", rare_count=1, smoothing=0.3)
    assert smooth["dog", "VBZ"] == pytest.approx(0.1) and smooth["Rome", "NNP"] == pytest.approx(1.1)
    assert lexicon_counts(seen, unknown="classes", rare_count=0, smoothing=1.0) == seen


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("1987", "<unknown-number>"),
        ("...", "<unknown-sign>"),
        ("A", "<unknown-capital>"),
        ("IBM", "<unknown-capitals>"),
        ("B-52", "<unknown-digit-capital-hyphen>"),
        ("glass", "<unknown-plain>"),
        ("Housing", "<unknown-capital-ing>"),
        ("re-elect", "<unknown-hyphen>"),
    ],
)
def test_classes_of_words(word, name):
    assert word_class(word) == name


def test_archives_are_checked():
    found = TreebankGrammar.read(TREES)
    about, arrays = found.grammar.described()
    again = BinaryGrammar.restored(about, arrays)
    assert again.rules == found.grammar.rules and again.symbols == found.grammar.symbols
    assert again.tokens == found.grammar.tokens and again.start == found.grammar.start
    own, vectors = found.lexicon.described()
    assert Lexicon.restored(own, vectors, 9).pairs() == found.lexicon.pairs()
    broken = [
        ({"symbols": []}, {}, "no symbols"),
        ({"symbols": [*about["symbols"], "S"]}, {}, "a symbol twice"),
        ({"start": 99}, {}, "start symbol is not there"),
        ({}, {"binary": np.array([0, 1])}, "binary rules are not there or broken"),
        ({}, {"unary": np.array([0, -1])}, "unary rules are not there or broken"),
        ({}, {"unary": np.array([0, 99])}, "unary rules name a symbol that is not there"),
        ({}, {"tokens": np.array([1, 1])}, "one of its tokens rules twice"),
    ]
    for changed, other, message in broken:
        with pytest.raises(FormatError, match=message):
            BinaryGrammar.restored(about | changed, arrays | other)
    with pytest.raises(FormatError, match="one is there twice"):
        Lexicon.restored({"words": ["a", "a"]}, vectors, 9)
    with pytest.raises(FormatError, match="it has no lexicon"):
        Lexicon.restored(own, {}, 9)
    with pytest.raises(FormatError, match="does not fit its words"):
        Lexicon.restored({"words": ["a"]}, vectors, 9)
    with pytest.raises(FormatError, match="tags that are not there"):
        Lexicon.restored(own, vectors, 1)


def test_a_chart_of_a_table_is_the_chart_of_its_rules():
    rng = np.random.default_rng(1)
    rules = [("S", "A", "B"), ("A", "A", "B"), ("B", "B"), ("A", "B")]
    grammar = BinaryGrammar.of(rules, ["A", "B"], start="S")
    scores, tokens = rng.normal(-1, 0.3, 4), rng.normal(size=(4, 2))
    spans = rng.normal(size=(6, 2))
    words = [dict(zip("AB", row, strict=True)) for row in tokens.tolist()]
    by_name = dict(zip(grammar.rules, scores.tolist(), strict=True))
    i, j = np.triu_indices(4, 1)
    branching = [grammar.symbols[s] for s in grammar.table.branching]
    named = {
        (a, b, s): spans[k, x] for k, (a, b) in enumerate(np.stack([i, j], 1).tolist()) for x, s in enumerate(branching)
    }
    one = grammar.form(scores, tokens, spans)
    two = mf.structures.Chart(words, by_name, start="S", spans=named)
    assert float(mf.log_partition(one)) == pytest.approx(float(mf.log_partition(two)))
    assert mf.decode(one).structure == mf.decode(two).structure
