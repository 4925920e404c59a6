"""Segmentations, by where the first segment ends."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def cuts(first, n, longest):
    """All lists of segments, without labels, from a position to the end."""
    if first == n:
        yield []
    for stop in range(first + 1, min(first + longest, n) + 1):
        for rest in cuts(stop, n, longest):
            yield [(first, stop), *rest]


def make(n, longest, labels, ruled_out=0.0, shared=True):
    def made(rng):
        def scores(*shape):
            found = rng.normal(0, 2, shape)
            found[rng.random(shape) < ruled_out] = -np.inf
            return found

        segments, moves, start, end = scores(n, longest, labels), scores(labels, labels), *scores(2, labels)
        segments[:, 0, 0], moves[0, 0], start[0], end[0] = 0.2, 0.1, -0.3, 0.4  # one way at least
        form = mf.structures.SemiMarkov(
            segments, moves if shared else None, **{"start": start, "end": end} if shared else {}
        )
        nothing = np.zeros_like
        form.given_scores = (segments, moves, start, end) if shared else (segments, *map(nothing, (moves, start, end)))
        return form

    return made


def enumerate_segmentations(form):
    segments, moves, start, end = form.given_scores
    n, longest, labels = segments.shape
    found = []
    for parts in cuts(0, n, longest):
        for chosen in product(range(labels), repeat=len(parts)):
            whole = [(i, j, label) for (i, j), label in zip(parts, chosen, strict=True)]
            score = sum(segments[i, j - i - 1, label] for i, j, label in whole)
            score += start[chosen[0]] + end[chosen[-1]] + sum(moves[pair] for pair in pairwise(chosen))
            found.append((whole, score))
    return found


CASES = [
    Case("one position", make(1, 3, 3), enumerate_segmentations),
    Case("as long as the sequence", make(5, 7, 2), enumerate_segmentations),
    Case("length one", make(5, 1, 3), enumerate_segmentations),
    Case("without transitions", make(5, 3, 2, shared=False), enumerate_segmentations),
    Case("ruled out", make(5, 3, 3, 0.4), enumerate_segmentations),
]
