"""Trees: brackets read and written, spans, depth without bounds, damage."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.grammar import Tree, cleaned
from markovfield.io import read_trees, write_trees
from tests.data import data_path

DOG = "(S (NP (DT the) (NN dog)) (VP (VBD barked) (ADVP (RB loudly))) (. .))"
LABELS = st.sampled_from(["S", "NP", "VP", "NN", "X-1", ",", "a+b", "$"])
WORDS = st.text("ab'$,.\u00a0-", min_size=1, max_size=3)


def nested(depth: int) -> Tree:
    tree = Tree("X", ["end"])
    for _ in range(depth):
        tree = Tree("X", [tree])
    return tree


@st.composite
def trees(draw: st.DrawFn, tagged: bool = False) -> Tree:
    """Random trees; with ``tagged`` every word is alone below a tag."""
    leaf = st.builds(lambda t, w: Tree(t, [w]), LABELS, WORDS)
    below = leaf if tagged else leaf | WORDS
    found = draw(
        st.recursive(below, lambda b: st.builds(Tree, LABELS, st.lists(b, min_size=1, max_size=5)), max_leaves=25)
    )
    return found if isinstance(found, Tree) else Tree("S", [found])


@given(trees())
def test_text_and_back(tree: Tree) -> None:
    assert Tree.parse(str(tree)) == tree
    assert hash(Tree.parse(str(tree))) == hash(tree)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == tree


@given(trees())
def test_spans_are_those_of_the_words_below(tree: Tree) -> None:
    inside = [(node.label, node.leaves) for node in tree]
    assert [(node.label, tree.leaves[i:j]) for node, i, j in tree.constituents()] == inside
    assert tree.spans(tags=True) == [(node.label, i, j) for node, i, j in tree.constituents()]
    assert [word for word, _ in tree.pos] == list(tree.leaves)


def test_parts_of_a_tree() -> None:
    tree = Tree.parse(DOG)
    assert tree.leaves == ("the", "dog", "barked", "loudly", ".")
    assert tree.pos == (("the", "DT"), ("dog", "NN"), ("barked", "VBD"), ("loudly", "RB"), (".", "."))
    assert tree.spans() == [("S", 0, 5), ("NP", 0, 2), ("VP", 2, 4), ("ADVP", 3, 4)]
    assert ("DT", 0, 1) in tree.spans(tags=True)
    assert tree != Tree.parse(DOG.replace("dog", "cat"))
    assert tree != DOG
    assert repr(Tree.parse("(A b)")) == "Tree.parse('(A b)')"
    assert repr(Tree("S", [tree] * 20)) == "<Tree S, 100 words>"


def test_deep_trees_do_not_recurse() -> None:
    deep = nested(50_000)
    assert deep == pickle.loads(pickle.dumps(deep)) == Tree.parse(str(deep))
    assert len(deep.constituents()) == 50_001
    assert hash(deep) == hash(nested(50_000))
    assert cleaned(deep) == deep


@pytest.mark.parametrize(
    ("label", "children", "match"),
    [
        ("", ["a"], "a label must be a string"),
        ("A B", ["a"], "a label must be a string"),
        ("A(", ["a"], "a label must be a string"),
        ("A", [], "at least one child, and this A has none"),
        ("A", "word", "got the string 'word'"),
        ("A", ["two words"], "got 'two words'"),
        ("A", [["x"]], r"got \['x'\]"),
    ],
)
def test_what_is_no_tree(label: str, children: object, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        Tree(label, children)  # type: ignore[arg-type]


def test_brackets_in_words_are_escaped() -> None:
    tree = Tree("NP", [Tree("-LRB-", ["("]), Tree("NN", ["f(x)"])])
    assert str(tree) == "(NP (-LRB- -LRB-) (NN f-LRB-x-RRB-))"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("(S (NP a)", "text:1:1: this bracket is never closed"),
        ("(S\n  (NP (A b)", "text:2:3: this bracket is never closed"),
        ("(S (NP a)))", "text:1:11: this closing bracket closes nothing"),
        ("(S (NP a) ())", "text:1:11: empty bracket"),
        ("(S (NP) b)", "text:1:4: the bracket of 'NP' has a label and nothing below it"),
        ("(S ((NP a)))", "text:1:5: expected a label after a bracket"),
        ("word (S a)", "text:1:1: expected an opening bracket, found 'word'"),
        ("(S a) word", "text:1:7: expected an opening bracket, found 'word'"),
        ("()", "text:1:1: empty bracket"),
        ("", "text:1:1: expected one tree in brackets, found 0"),
        ("(S a)(S b)", "text:1:1: expected one tree in brackets, found 2"),
    ],
)
def test_damage_is_named_with_its_place(text: str, match: str) -> None:
    with pytest.raises(mf.FormatError, match=f"^{match}"):
        Tree.parse(text)


def test_outer_brackets() -> None:
    text = "( (S (A b)) ) ((NP (A c)))\n( (S (A d)) (S (A e)) )"
    assert list(map(str, read_trees(text))) == ["(S (A b))", "(NP (A c))", "(TOP (S (A d)) (S (A e)))"]
    assert str(read_trees(text, top="ROOT")[0]) == "(ROOT (S (A b)))"


def test_traces_and_function_tags() -> None:
    text = "( (S (NP-SBJ-1 (-NONE- *) ) (VP=2 (VB Go) (PRP$ my) (-LRB- -LRB-)) (X (Y (-NONE- 0))) ))"
    assert list(map(str, read_trees(text))) == ["(S (VP (VB Go) (PRP$ my) (-LRB- -LRB-)))"]
    assert "(NP-SBJ-1 (-NONE- *))" in str(read_trees(text, traces=True, function_tags=True)[0])
    assert "(NP (-NONE- *))" in str(read_trees(text, traces=True)[0])
    assert "(VP=2 " in str(read_trees(text, function_tags=True)[0])
    assert read_trees("(S (-NONE- *))") == []


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"trees.mrg{ending}"
    some = [Tree.parse(DOG), Tree.parse("(NP-SBJ (NN x))")]
    write_trees(path, some)
    assert read_trees(path, traces=True, function_tags=True) == some
    with pytest.raises(mf.ModelError, match="takes trees, got str"):
        write_trees(path, [DOG])  # type: ignore[list-item]


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.mrg"
    path.write_text("(S (A b))\n(S\n  (NP)\n")
    with pytest.raises(mf.FormatError, match=r"bad\.mrg:3:3: the bracket of 'NP'"):
        read_trees(path)


@pytest.mark.parametrize(
    "bad",
    ["(S (NP a)", "(S (NP a)))", "( (S (NP a))", "(S (NP a) ())", "word", "(S\n  (NP)\n  (VP a))", ")", "(S a) )"],
)
def test_a_bad_tree_costs_itself_only(bad: str) -> None:
    skipped: list[mf.FormatError] = []
    good = "(S (A b))\n(S\n  (A c))\n"
    found = read_trees(f"{good}{bad}\n{good}", skipped=skipped)
    assert [tree.leaves for tree in found if tree.label == "S"].count(("c",)) == 2
    assert len(skipped) == 1
    assert str(skipped[0]).startswith("text:")


@settings(max_examples=200)
@given(st.text("()a \n", max_size=60))
def test_garbage_never_breaks_the_reader(text: str) -> None:
    skipped: list[mf.FormatError] = []
    read_trees("(" + text, skipped=skipped)
    try:
        whole = read_trees("(" + text)
    except mf.FormatError:
        assert skipped
    else:
        assert not skipped
        assert read_trees("".join(f"{tree}\n" for tree in whole)) == whole


@pytest.mark.parametrize("line", ["(S (", "(S a", ")", "(", "(S a)(", "((("])
def test_much_garbage_takes_linear_time(line: str) -> None:
    # A quadratic reader would need hours; nothing is timed.
    skipped: list[mf.FormatError] = []
    read_trees("(S a)\n" + f"{line}\n" * 30_000, skipped=skipped)
    assert skipped


def test_the_treebank_sample() -> None:
    path = data_path("ptb_sample", "wsj_0001-0199.mrg.gz")
    whole = read_trees(path, traces=True, function_tags=True)
    assert len(whole) == 3914
    assert sum(len(tree.leaves) for tree in whole) == 100_676
    plain = read_trees(path)
    # The dependency trees of the same sentences have so many tokens (`INDEX.md` of the reference data).
    assert sum(len(tree.leaves) for tree in plain) == 94_084
    assert not any("-NONE-" in str(tree) for tree in plain)
