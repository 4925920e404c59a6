"""Binary trees and back; heads; chains of unaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.grammar import Binarisation, Tree, collapse_unaries, expand_unaries, head_child
from tests.grammar.test_trees import nested, trees

WAYS = st.builds(
    Binarisation, st.sampled_from(["right", "left", "head"]), st.sampled_from([0, 1, 2, 3, None]), st.integers(1, 3)
)
FIVE = Tree.parse("(A (B b) (C c) (D d) (E e) (F f))")


@given(trees(tagged=True), WAYS)
def test_the_inverse_is_exact(tree: Tree, way: Binarisation) -> None:
    binary = way.transform(tree)
    assert all(len(node.children) <= 2 for node in binary)
    assert binary.pos == tree.pos
    assert way.inverse(binary) == tree


@given(trees(tagged=True).filter(lambda tree: "+" not in str(tree)))
def test_unaries_there_and_back(tree: Tree) -> None:
    short = collapse_unaries(tree)
    spans = [(i, j) for _, i, j in short.spans()]
    assert len(set(spans)) == len(spans)
    assert expand_unaries(short) == tree


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (Binarisation("right", 2), "(A (B b) (@A[B] (C c) (@A[B|C] (D d) (@A[C|D] (E e) (F f)))))"),
        (Binarisation("right", 0), "(A (B b) (@A[] (C c) (@A[] (D d) (@A[] (E e) (F f)))))"),
        (Binarisation("right", None), "(A (B b) (@A[B] (C c) (@A[B|C] (D d) (@A[B|C|D] (E e) (F f)))))"),
        (Binarisation("left", 1), "(A (@A[F] (@A[E] (@A[D] (B b) (C c)) (D d)) (E e)) (F f))"),
        (Binarisation("left", 2), "(A (@A[F] (@A[E|F] (@A[D|E] (B b) (C c)) (D d)) (E e)) (F f))"),
    ],
)
def test_what_new_labels_remember(way: Binarisation, text: str) -> None:
    assert str(way.transform(FIVE)) == text


def test_head_outward() -> None:
    tree = Tree.parse("(VP (ADVP a) (MD b) (VP c) (PP d) (NP e))")
    assert head_child("VP", ["ADVP", "MD", "VP", "PP", "NP"]) == 1
    assert str(Binarisation("head", 1).transform(tree)) == (
        "(VP (ADVP a) (@VP[MD..NP] (@VP[MD..PP] (@VP[MD..VP] (MD b) (VP c)) (PP d)) (NP e)))"
    )


def test_vertical() -> None:
    tree = Tree.parse("(S (NP (DT the) (NN dog)) (VP (V saw) (NP (PRP me)) (PP (IN at) (NP (NN night)))))")
    assert str(Binarisation("right", 1, 3).transform(tree)) == (
        "(S (NP^S (DT the) (NN dog)) (VP^S (V saw) (@VP^S[V] (NP^VP^S (PRP me)) "
        "(PP^VP^S (IN at) (NP^PP^VP (NN night))))))"
    )


def test_deep_and_wide_trees() -> None:
    deep = nested(20_000)
    way = Binarisation(vertical=2)
    assert way.inverse(way.transform(deep)) == deep
    wide = Tree("S", [Tree("A", ["a"])] * 3_000)
    assert way.inverse(way.transform(wide)) == wide
    assert expand_unaries(collapse_unaries(nested(2_000))) == nested(2_000)


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("S", ["NP", "VP", "."], 1),
        ("NP", ["DT", "NN", "NN"], 2),
        ("NP", ["NP", "PP"], 0),
        ("NP", ["NNP", "POS"], 1),
        ("NP", ["NP", "CC", "NP"], 0),
        ("NP", ["NN", "CC", "NN"], 0),
        ("NP", ["DT", "CD"], 1),
        ("NP", ["DT"], 0),
        ("PP-LOC", ["IN", "NP-1"], 0),
        ("ADVP", ["RB", "RB"], 1),
        ("ROOT", ["``", "S", "''"], 1),
        ("X", [",", ","], 0),
    ],
)
def test_heads(label: str, children: list[str], head: int) -> None:
    assert head_child(label, children) == head


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Binarisation("up"), "direction=.* must be 'right', 'left' or 'head', got 'up'"),  # type: ignore[arg-type]
        (lambda: Binarisation(horizontal=-1), "horizontal=.* at least 0, or None, got -1"),
        (lambda: Binarisation(vertical=0), "vertical=.* at least 1, got 0"),
        (lambda: Binarisation().transform(Tree.parse("(S (@A b))")), "label '@A' must not begin with '@'"),
        (lambda: Binarisation().transform(Tree.parse("(S (A^B b))")), "label 'A.B' must not"),
        (lambda: Binarisation().transform(Tree.parse("(S a (B b))")), "the word 'a' stands beside others below S"),
        (lambda: Binarisation().inverse(Tree.parse("(@A (B b) (C c))")), "so it has no inverse"),
        (lambda: collapse_unaries(Tree.parse("(A+B (C c))")), r"label 'A\+B' must not hold '\+'"),
    ],
)
def test_errors(make: object, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        make()  # type: ignore[operator]
