"""Matchings: all sets of links that no row and no column has too many of."""

from __future__ import annotations

from itertools import product

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def make(m, n, unmatched, fertility=1, ruled_out=0.0):
    def made(rng):
        scores = rng.normal(0, 2, (m, n))
        hidden = rng.random((m, n)) < ruled_out
        hidden[np.arange(min(m, n)), np.arange(min(m, n))] = False
        scores[hidden] = -np.inf
        alone = unmatched
        if unmatched == "random":
            alone = (rng.normal(size=m), rng.normal(size=n))
        form = mf.structures.Matching(scores, unmatched=alone, fertility=fertility)
        form.given_scores = scores, alone, fertility
        return form

    return made


def enumerate_matchings(form):
    scores, alone, fertility = form.given_scores
    m, n = scores.shape
    rows, columns = fertility if isinstance(fertility, tuple) else (fertility, fertility)
    rows, columns = np.broadcast_to(rows, m), np.broadcast_to(columns, n)
    found = []
    for bits in product([False, True], repeat=m * n):
        links = np.array(bits).reshape(m, n)
        if (links.sum(axis=1) > rows).any() or (links.sum(axis=0) > columns).any():
            continue
        lonely = ~links.any(axis=1), ~links.any(axis=0)
        if alone is None:
            if lonely[0].any():
                continue
            scored = scores[links].sum()
        else:
            pair = alone if isinstance(alone, tuple) else (alone, alone)
            own = [np.broadcast_to(one, size) for one, size in zip(pair, (m, n), strict=True)]
            scored = scores[links].sum() + own[0][lonely[0]].sum() + own[1][lonely[1]].sum()
        found.append((list(map(tuple, np.argwhere(links).tolist())), scored))
    return found


def make_quadratic(m, n, unmatched, fertility=1, ruled_out=0.0):
    def made(rng):
        plain = make(m, n, unmatched, fertility, ruled_out)(rng)
        links = list(product(range(m), range(n)))
        chosen = [(links[a], links[b]) for a in range(m * n) for b in range(a) if rng.random() < 0.4]
        pairs = {pair: float(rng.normal(0, 2)) for pair in chosen}
        pairs[chosen[0]] = -np.inf if ruled_out else 1.0
        scores, alone, fertile = plain.given_scores
        form = mf.structures.Matching(scores, unmatched=alone, fertility=fertile, pairs=pairs)
        form.given_scores, form.given_pairs = plain.given_scores, pairs
        return form

    return made


def enumerate_pairs(form):
    found = []
    for structure, score in enumerate_matchings(form):
        links = set(structure)
        found.append((structure, score + sum(s for (a, b), s in form.given_pairs.items() if {a, b} <= links)))
    return found


CASES = [
    Case("pairs, perfect", make_quadratic(3, 3, None), enumerate_pairs),
    Case("pairs, unmatched with scores", make_quadratic(3, 4, "random", 1, 0.3), enumerate_pairs),
    Case("pairs, fertile", make_quadratic(2, 3, "random", (2, 1)), enumerate_pairs),
    Case("perfect", make(4, 4, None), enumerate_matchings),
    Case("rows all matched", make(3, 5, None), enumerate_matchings),
    Case("one number for the unmatched", make(3, 4, 0.3), enumerate_matchings),
    Case("unmatched with scores", make(4, 3, "random", ruled_out=0.3), enumerate_matchings),
    Case("columns must be matched", make(4, 3, (0.5, -np.inf)), enumerate_matchings),
    Case("fertile rows", make(3, 4, "random", (np.array([2, 1, 3]), 1)), enumerate_matchings),
    Case("fertile both", make(3, 3, "random", (2, np.array([1, 2, 2])), 0.2), enumerate_matchings),
    Case("fertile, all rows linked", make(3, 3, None, 2), enumerate_matchings),
]
