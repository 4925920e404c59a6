"""Dependency trees: all ways to give words heads, those kept that lead to the root and, where asked, do not cross."""

from __future__ import annotations

from itertools import product

import numpy as np

import markovfield as mf

from .case import Case


def leads_to_root(heads):
    for word in range(1, len(heads) + 1):
        seen = set()
        while word and word not in seen:
            seen.add(word)
            word = heads[word - 1]
        if word:
            return False
    return True


def crosses(heads):
    arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def make(kind, n, labels, ruled_out, single):
    def made(rng):
        scores = rng.normal(0, 2, (n + 1, n + 1) if labels is None else (n + 1, n + 1, labels))
        scores[rng.random(scores.shape) < ruled_out] = -np.inf
        for word in range(1, n + 1):  # a chain is always possible
            scores[(word - 1, word) if labels is None else (word - 1, word, 0)] = 0.2 * word
        form = kind(scores, single_root=single)
        form.given_scores = scores
        return form

    return made


def enumerate_trees(form):
    scores = form.given_scores
    n = len(scores) - 1
    found = []
    for heads in product(range(n + 1), repeat=n):
        if any(h == m for m, h in enumerate(heads, 1)) or not leads_to_root(heads):
            continue
        if form.family.single_root and heads.count(0) != 1:
            continue
        if isinstance(form, mf.structures.ProjectiveTree) and crosses(heads):
            continue
        if scores.ndim == 2:
            found.append((list(heads), sum(scores[h, m] for m, h in enumerate(heads, 1))))
            continue
        for labels in product(range(scores.shape[2]), repeat=n):
            tree = list(zip(heads, labels, strict=True))
            found.append((tree, sum(scores[h, m, label] for m, (h, label) in enumerate(tree, 1))))
    return found


CASES = [
    Case(
        f"{kind.__name__} {name}{'' if single else ', many roots'}",
        make(kind, n, labels, ruled_out, single),
        enumerate_trees,
        tuple,
    )
    for kind in (mf.structures.SpanningTree, mf.structures.ProjectiveTree)
    for single in (True, False)
    for name, n, labels, ruled_out in (
        ("one word", 1, None, 0.0),
        ("all arcs", 5 if single else 4, None, 0.0),
        ("labels", 3, 2, 0.2),
        ("arcs ruled out", 5, None, 0.6),
    )
]
