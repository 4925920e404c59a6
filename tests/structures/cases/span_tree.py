"""Binary trees of spans, by recursion over where a span splits."""

from __future__ import annotations

from itertools import product

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def trees(i, j):
    """All sets of spans of binary trees over words i to j."""
    if i == j:
        yield [(i, i)]
    for k in range(i, j):
        for left, right in product(trees(i, k), trees(k + 1, j)):
            yield [(i, j), *left, *right]


def make(n, labels, ruled_out):
    def made(rng):
        scores = rng.normal(0, 2, (n, n, labels))
        scores[rng.random(scores.shape) < ruled_out] = -np.inf
        scores[np.arange(n), np.arange(n), 0] = 0.3
        scores[0, :, 0] = 0.1  # a left- or right-branching tree is always possible
        form = mf.structures.SpanTree(scores)
        form.given_scores = scores
        return form

    return made


def enumerate_trees(form):
    scores = form.given_scores
    n, _, labels = scores.shape
    found = []
    for spans in trees(0, n - 1):
        for chosen in product(range(labels), repeat=len(spans)):
            tree = [(i, j, label) for (i, j), label in zip(spans, chosen, strict=True)]
            found.append((tree, sum(scores[span] for span in tree)))
    return found


CASES = [
    Case("one word", make(1, 3, 0.0), enumerate_trees),
    Case("one label", make(6, 1, 0.0), enumerate_trees),
    Case("two labels", make(4, 2, 0.0), enumerate_trees),
    Case("spans ruled out", make(5, 2, 0.4), enumerate_trees),
]
