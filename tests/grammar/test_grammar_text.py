"""Grammars as text: what can be written, what comes back, and where mistakes are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar import Binarisation, Tree
from markovfield.grammar.grammar_text import WrittenGrammar, read_grammar_text, written_grammar
from markovfield.grammar.productions import Production, Remainders, Word, binary_rules, long_rules
from tests.grammar.test_trees import trees


def test_what_can_be_written():
    found = read_grammar_text(
        """
        # a comment
        %start S
        NP -> 'he' [0.25] | "it's" [0.25] |
              D N [0.5]
        S -> NP VP PP '.' [0.5] | NP VP [0.5]
        VP -> "a\\"x\\"" | 'don\\'t' | <unknown> | <unknown-s>
        PP -> NP
        D -> 'the'
        # -> '#' [1]
        '' -> "''" [1.0]
        N -> # '' [2e-1] | '|' [.8]
        """,
        normalise=False,
    )
    assert found.start == "S"
    rules = {(p.parent, p.children): p.probability for p in found.productions}
    assert rules["NP", ("it's",)] == 0.25 and rules["NP", ("D", "N")] == 0.5
    assert rules["S", ("NP", "VP", "PP", ".")] == 0.5 and rules["VP", ("<unknown-s>",)] == 0.25
    assert rules["#", ("#",)] == 1.0 and rules["N", ("#", "''")] == 0.2 and rules["N", ("|",)] == 0.8
    words = {str(c) for p in found.productions for c in p.children if isinstance(c, Word)}
    assert {"he", 'a"x"', "it's", "don't", "<unknown>", "the", ".", "#", "''", "|"} <= words


def test_normalised_and_checked_weights():
    assert [p.probability for p in read_grammar_text("S -> 'a' [2] | 'b' [6]", normalise=True).productions] == [
        0.25,
        0.75,
    ]
    thirds = read_grammar_text("S -> 'a' [0.33] | 'b' [0.33] | 'c' [0.33]").productions
    assert [p.probability for p in thirds] == pytest.approx([1 / 3] * 3)
    assert [p.probability for p in read_grammar_text("S -> 'a' | 'b'").productions] == [0.5, 0.5]
    assert read_grammar_text("%binarisation head all 3\nS -> 'a'").way == Binarisation("head", None, 3)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "there is no rule"),
        ("# only this", "1:1", "there is no rule"),
        ("S", "1:1", "expected -> after S"),
        ("\nS NP VP", "2:3", "expected -> after S"),
        ("S ->", "1:3", "nothing stands on the right"),
        ("S -> [1.0]", "1:6", "nothing stands on the right"),
        ("S -> 'a' [0.5] |", "1:16", "nothing stands on the right"),
        ("S -> 'a' | | 'b'", "1:10", "nothing stands on the right"),
        ("S -> 'a' [x]", "1:10", "expected a number in brackets, found \\[x\\]"),
        ("S -> 'a' [-1]", "1:10", "must be a number of at least 0, got -1"),
        ("S -> 'a' [nan]", "1:10", "must be a number of at least 0, got nan"),
        ("S -> 'a' [inf]", "1:10", "must be a number of at least 0, got inf"),
        ("S -> 'a", "1:6", "the word 'a does not end with the quote it begins with"),
        ("S -> 'a b'", "1:6", "the word 'a does not end"),
        ("'a' -> 'b'", "1:1", "expected a symbol on the left of a rule, found 'a'"),
        ("S -> NP(x", "1:6", "NP\\(x is no symbol"),
        ("S -> 'a' -> 'b'", "1:10", "a second -> in one rule"),
        ("S -> NP\nS -> 'a'", "1:6", "no rule says what NP is made of; words stand in quotes"),
        ("%start X\nS -> 'a'", "1:8", "no rule says what the start symbol X is made of"),
        ("%begin S\nS -> 'a'", "1:1", "expected %start SYMBOL or %binarisation"),
        ("%binarisation up 1 1\nS -> 'a'", "1:1", "expected a direction"),
        ("S -> 'a' [0.5]\nS -> 'a' [0.5]", "2:6", "this rule of S stands in line 1 already"),
        ("S -> 'a' [0.5] | 'b'", "1:18", "other rules of S have a weight and this one has none"),
        ("T -> 'x'\nS -> 'a' [0.5] | 'b' [0.1]", "2:1", "add up to 0.6, which must be 1; normalise=True"),
        ("S -> 'a' [0]", "1:1", "add up to 0, which must be more than 0"),
        ("S -> @:A|B\n@:A|B -> 'a'", "1:6", "as symbols for long rules do"),
    ],
)
def test_mistakes_say_where(text: str, place: str, message: str):
    with pytest.raises(FormatError, match=f"^grammar.txt:{place}: .*{message}"):
        read_grammar_text(text, "grammar.txt")


def test_mistakes_in_files(tmp_path: Path):
    path = tmp_path / "g.pcfg"
    path.write_text("S -> 'a' [0.5]\n\nS ->\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"g\.pcfg:3:3: nothing stands on the right"):
        mf.PCFG.from_text(path)


def test_symbols_that_cannot_be_written():
    for symbol in ("'x", "[x]", "->", "|", "<unknown-x>"):
        with pytest.raises(ModelError, match="cannot be written on the right of a rule"):
            written_grammar(WrittenGrammar("S", [Production("S", (symbol, "A"), 1.0)]))


_names = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="()\x85"), min_size=1, max_size=4)
_symbols = _names.filter(lambda s: s[0] not in "'\"[<@%#" and s not in ("->", "|"))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_anything_that_is_written_comes_back(data):
    symbols = data.draw(st.lists(_symbols, min_size=1, max_size=4, unique=True))
    items = st.sampled_from(symbols) | _names.map(Word)
    productions = {}
    for symbol in symbols:
        rights = data.draw(
            st.lists(st.lists(items, min_size=1, max_size=4).map(tuple), min_size=1, max_size=4),
        )
        different = {tuple((str(c), isinstance(c, Word)) for c in right): right for right in rights}
        weights = data.draw(st.lists(st.integers(1, 9), min_size=len(different), max_size=len(different)))
        for right, weight in zip(different.values(), weights, strict=True):
            productions[symbol, tuple(different)] = None
            productions[symbol, right, tuple(isinstance(c, Word) for c in right)] = weight / sum(weights)
    given_ = [Production(k[0], k[1], p) for k, p in productions.items() if p is not None]
    text = written_grammar(WrittenGrammar(symbols[0], given_))
    again = read_grammar_text(text)
    assert again.start == symbols[0]
    assert _keyed(again.productions) == _keyed(given_)
    # Made binary and back nothing changes either.
    assert _keyed([Production(*one) for one in long_rules(*binary_rules(given_))]) == _keyed(given_)


def _keyed(productions):
    return {(p.parent, tuple((str(c), isinstance(c, Word)) for c in p.children)): p.probability for p in productions}


@settings(max_examples=60, deadline=None)
@given(trees(tagged=False))
def test_trees_of_long_rules(tree: Tree):
    if any(node.label.startswith("@") for node in tree):
        return
    # The grammar of a tree's own rules makes that tree.
    rules = {}
    for node in tree:
        right = tuple(child.label if isinstance(child, Tree) else Word(child) for child in node.children)
        rules[node.label, tuple((str(c), isinstance(c, Word)) for c in right)] = right
    count = {label: sum(key[0] == label for key in rules) for label, _ in rules}
    productions = [Production(label, right, 1 / count[label]) for (label, _), right in rules.items()]
    binary, words = binary_rules(productions)
    made = Remainders().transform(tree)
    for node in made:
        if node.is_preterminal:
            assert (str(node.children[0]), node.label) in words
        else:
            assert (node.label, *(child.label for child in node.children)) in binary
    assert made.leaves == tree.leaves


def test_labels_of_new_nodes_are_refused():
    with pytest.raises(ModelError, match="label '@X' must not begin with '@'"):
        Remainders().transform(Tree("@X", ["a"]))
