"""Rankings: permutations, first items in order, and sets, by itertools."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def make(n, top=None, *, ordered=True, given="positions", ruled_out=0.0):
    def made(rng):
        k = n if top is None else top
        items, discounts = rng.normal(0, 2, n), np.sort(rng.random(k))[::-1]
        table = rng.normal(0, 2, (n, k))
        hidden = rng.random((n, k)) < ruled_out
        hidden[np.arange(k), np.arange(k)] = False
        table[hidden] = -np.inf
        if not ordered:
            form, table = mf.structures.Ranking(items, top=top, ordered=False), np.repeat(items[:, None], k, axis=1)
        elif given == "items":
            form, table = mf.structures.Ranking(items, top=top, discounts=discounts), np.outer(items, discounts)
        elif given == "rising":
            form, table = mf.structures.Ranking(items, top=top, discounts=-discounts), np.outer(items, -discounts)
        else:
            form = mf.structures.Ranking(table)
        form.given_scores = table, ordered
        return form

    return made


def enumerate_rankings(form):
    table, ordered = form.given_scores
    n, k = table.shape
    found = (permutations if ordered else combinations)(range(n), k)
    return [(list(items), sum(table[i, p] for p, i in enumerate(items))) for items in found]


CASES = [
    Case("one item", make(1), enumerate_rankings, key=tuple),
    Case("all positions", make(5), enumerate_rankings, key=tuple),
    Case("items ruled out", make(5, ruled_out=0.4), enumerate_rankings, key=tuple),
    Case("discounts", make(5, given="items"), enumerate_rankings, key=tuple),
    Case("discounts that rise", make(5, 3, given="rising"), enumerate_rankings, key=tuple),
    Case("the first in order", make(6, 3, ruled_out=0.2), enumerate_rankings, key=tuple),
    Case("the first by discounts", make(6, 2, given="items"), enumerate_rankings, key=tuple),
    Case("the first as a set", make(7, 3, ordered=False), enumerate_rankings, key=tuple),
    Case("all as a set", make(4, 4, ordered=False), enumerate_rankings, key=tuple),
]
