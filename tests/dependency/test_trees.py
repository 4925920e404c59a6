"""Lists of heads as trees: what is refused, arcs that cross, trees made projective."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.dependency import crossing_arcs, projectivised
from markovfield.dependency.trees import checked_heads, heads_and_labels, tagged_words


def is_tree(heads: list[int]) -> bool:
    for word in range(1, len(heads) + 1):
        at, steps = word, 0
        while at and steps <= len(heads):
            at, steps = heads[at - 1], steps + 1
        if at:
            return False
    return True


def crosses(heads: list[int]) -> bool:
    ends = [sorted((h, m)) for m, h in enumerate(heads, 1)]
    return any(a < c < b < d or c < a < d < b for (a, b), (c, d) in combinations(ends, 2))


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Every word hangs on the root or on one that was placed before it."""
    n = draw(st.integers(1, 9))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for at, word in enumerate(order):
        heads[word - 1] = draw(st.sampled_from([0, *order[:at]]))
    return heads


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_lists_of_heads(n: int) -> None:
    kept = 0
    for heads in product(range(n + 1), repeat=n):
        if any(h == m for m, h in enumerate(heads, 1)):
            continue
        fine = is_tree(list(heads))
        with nullcontext() if fine else pytest.raises(mf.ModelError, match="cycle"):
            checked_heads(heads, n, 0, single_root=False)
        kept += fine
    assert kept == (n + 1) ** (n - 1)  # Cayley


@settings(max_examples=200, deadline=None)
@given(trees())
def test_crossing_and_projective(heads: list[int]) -> None:
    found = crossing_arcs(heads)
    assert (found is not None) == crosses(heads)
    if found is not None:
        for head, word in found:
            assert heads[word - 1] == head
        (a, b), (c, d) = sorted(map(sorted, found))
        assert a < c < b < d
    lifted = projectivised(heads)
    assert not crosses(lifted)
    assert is_tree(lifted)
    assert lifted == heads or found is not None
    assert [h == 0 for h in heads] == [h == 0 for h in lifted] or found is not None
    names = [(h, f"l{m}") for m, h in enumerate(heads)]
    assert projectivised(names) == [(h, label) for h, (_, label) in zip(lifted, names, strict=True)]


def test_sentences_of_dicts() -> None:
    wanted = [(("a", "DT"), ("dog", "NN"))]
    assert tagged_words([[{"form": "a", "xpos": "DT"}, {"word": "dog", "tag": "NN"}]]) == wanted
    assert tagged_words([[["a", "DT"], ("dog", "NN")]]) == wanted


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: tagged_words([[("a", "b")], []]), "sentence 1 has no words"),
        (lambda: tagged_words(["text"]), "sentence 0 must be words with tags, .* got 'text'"),
        (lambda: tagged_words([[("a", "b"), "word"]]), "sentence 0 must be words with tags, .* got 'word'"),
        (lambda: tagged_words([[{"form": "a"}]]), r"got \{'form': 'a'\}"),
        (lambda: tagged_words([[("a", 3)]]), r"got \('a', 3\)"),
        (lambda: heads_and_labels("02", 4, labelled=False), "tree 4 must be a list of heads, got '02'"),
        (lambda: heads_and_labels([2, None], 4, labelled=False), "tree 4 must have heads, whole numbers .* got None"),
        (lambda: heads_and_labels([2, True], 4, labelled=False), "got True"),
        (lambda: heads_and_labels([2, 0], 4, labelled=True), r"tree 4 must have pairs \(head, label\), got 2"),
        (lambda: checked_heads([2, 0], 3, 7, single_root=True), "tree 7 has 2 heads, and its sentence 3 words"),
        (lambda: checked_heads([4, 0, 2], 3, 7, single_root=True), "tree 7: the head of word 1 must be 0, .*, got 4"),
        (lambda: checked_heads([-1, 0], 2, 7, single_root=True), "tree 7: the head of word 1 must be 0, .*, got -1"),
        (lambda: checked_heads([1, 0], 2, 7, single_root=True), "tree 7: the head of word 1 .*, got 1"),
        (lambda: checked_heads([0, 3, 4, 2], 4, 7, single_root=True), "tree 7 has a cycle of heads, 2 -> 3 -> 4 -> 2"),
        (lambda: checked_heads([0, 1, 0], 3, 7, single_root=True), "tree 7 has 2 words on the root, 1, 3: say"),
        (lambda: projectivised([2, 1]), "cycle"),
    ],
)
def test_what_is_refused(call: object, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        call()  # type: ignore[operator]
