"""Trees of grammars, by writing out every tree below a symbol and some words."""

from __future__ import annotations

from itertools import product

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def trees(symbol, first, last, given):
    """All trees below a symbol over words first to last, with their scores."""
    words, rules, spans = given
    if first == last and symbol in words[first]:
        yield (symbol, first), words[first][symbol]
    for rule, score in rules.items():
        if rule[0] != symbol:
            continue
        if len(rule) == 2:
            for tree, below in trees(rule[1], first, last, given):
                yield (symbol, tree), score + below
            continue
        own = score + spans.get((first, last, symbol), 0.0)
        for k in range(first, last):
            left, right = trees(rule[1], first, k, given), list(trees(rule[2], k + 1, last, given))
            for (one, a), (other, b) in product(left, right):
                yield (symbol, one, other), own + a + b


def make(n, phrases, tags, ruled_out=0.0, unary=(), density=0.6):
    """Symbols p0, p1, ... of phrases and t0, t1, ... of words; a unary rule only to symbols further on."""
    names = [f"p{i}" for i in range(phrases)]
    last = [f"t{i}" for i in range(tags)]

    def made(rng):
        rules = {("p0", "p0", last[0]): 0.3, ("p0", last[0], last[-1]): -0.2}
        for rule in product(names, names + last, names + last):
            if rng.random() < density:
                rules[rule] = -np.inf if rng.random() < ruled_out else rng.normal(0, 1.5)
        rules.update({rule: rng.normal(-0.5, 1) for rule in unary})
        words = [{last[0]: 0.1, last[-1]: 0.4} for _ in range(n)]
        for word in words:
            word.update({t: rng.normal(0, 1) for t in last + names[1:] if rng.random() < 0.7})
        spans = {(i, j, "p0"): rng.normal() for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5}
        form = mf.structures.Chart(words, rules, spans=spans)
        form.given_scores = words, rules, spans
        return form

    return made


def dense(rng):
    scores, words, starts = rng.normal(0, 1, (2, 4, 4)), rng.normal(0, 1, (4, 2)), rng.normal(0, 1, 2)
    form = mf.structures.Chart.dense(scores, words, starts)
    rules = {(4, a): starts[a] for a in range(2)} | {tuple(at): scores[tuple(at)] for at in np.ndindex(2, 4, 4)}
    form.given_scores = [{2 + t: score for t, score in enumerate(row)} for row in words], rules, {}
    return form


def enumerate_trees(form):
    words = form.given_scores[0]
    return list(trees(form.symbols[0] if isinstance(form.symbols[0], str) else 4, 0, len(words) - 1, form.given_scores))


def same(tree):
    return tree


UNARY = (("p0", "p1"), ("p1", "t0"), ("p0", "t0"))
CASES = [
    Case("one word", make(1, 2, 2, unary=UNARY), enumerate_trees, same),
    Case("one symbol", make(5, 1, 1), enumerate_trees, same),
    Case("sparse", make(5, 2, 2, density=0.2), enumerate_trees, same),
    Case("unary rules", make(4, 2, 2, unary=UNARY, density=0.3), enumerate_trees, same),
    Case("ruled out", make(4, 2, 2, 0.4, unary=UNARY), enumerate_trees, same),
    Case("every rule", dense, enumerate_trees, same),
]
