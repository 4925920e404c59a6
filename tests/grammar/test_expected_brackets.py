"""Trees of highest expected F1 against all trees there are."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import markovfield as mf
from tests.grammar.test_pcfg import TREES


@cache
def shapes(i: int, j: int) -> list[tuple[tuple[int, int], ...]]:
    """The spans of all binary trees over words i to j, both included."""
    if i == j:
        return [((i, i),)]
    return [((i, j), *left, *right) for k in range(i, j) for left, right in product(shapes(i, k), shapes(k + 1, j))]


def random_grammar(seed: int) -> mf.PCFG:
    rng = np.random.default_rng(seed)
    lines = []
    for symbol in ("S", "A", "@B"):
        rights = ["S A", "A A", "A @B", "@B S", "'x'", "'y'"] + (["A"] if symbol == "S" else [])
        weights = rng.dirichlet(np.ones(len(rights)))
        lines += [f"{symbol} -> {right} [{float(w)}]" for right, w in zip(rights, weights, strict=True)]
    return mf.PCFG.from_text("\n".join(lines))


def share(p: np.ndarray, spans: set[tuple[int, int, int]]) -> float:
    return 2 * sum(p[span] for span in spans) / (len(spans) + p.sum())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_tree_has_a_higher_expected_f1(seed: int, n: int):
    grammar = random_grammar(seed)
    words = [["x", "y"][(seed + i) % 2] for i in range(n)]
    (p,) = [one["spans"] for one in grammar.predict_marginals([words])]
    labels = grammar.labels_
    # For each shape all sets of labels: those above a threshold, whichever it is, hold the best of a given size.
    best = 0.0
    for spans in shapes(0, n - 1):
        all_of = sorted(((p[i, j, a], i, j, a) for i, j in spans for a in range(len(labels))), reverse=True)
        for size in range(1, len(all_of) + 1):
            best = max(best, share(p, {(i, j, a) for _, i, j, a in all_of[:size]}))
    answer = grammar.decode([words], decision="mbr")
    assert answer.scores[0] == pytest.approx(best)
    tree = answer.labels[0]
    assert tree.leaves == tuple(words)
    found = {(i, j - 1, labels.index(label)) for label, i, j in tree.spans()}
    # The whole sentence has a label also where that does not pay.
    assert share(p, found) == pytest.approx(best) or len(found & {(0, n - 1, a) for a in range(len(labels))}) == 1


def test_chains_are_in_the_order_of_rules_and_tags_are_likely_ones():
    grammar = mf.PCFG.from_trees(TREES, vertical=1)
    for tree in TREES:
        found = grammar.parse(tree, decision="mbr")
        assert found.pos == tree.pos
    assert str(grammar.parse(TREES[-1], decision="mbr")) == "(FRAG (NP (NN rain)))"
    assert grammar.parse(["Kim", "ran", "."], decision="mbr").pos == (("Kim", "NNP"), ("ran", "VBD"), (".", "."))


def test_a_sentence_that_is_one_tag():
    grammar = mf.PCFG.from_trees([mf.grammar.Tree.parse("(NN dog)"), mf.grammar.Tree.parse("(VB go)")])
    for decision in ("map", "mbr"):
        assert str(grammar.parse(["go"], decision=decision)) == "(VB go)"
    assert grammar.labels_ == []
