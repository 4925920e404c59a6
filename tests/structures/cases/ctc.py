"""Paths of CTC: all sequences of symbols, kept where they read as the labels."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def make(frames, symbols, labels, blank=0, ruled_out=0.0):
    def made(rng):
        scores = rng.normal(0, 1.5, (frames, symbols))
        scores[rng.random(scores.shape) < ruled_out] = -np.inf
        scores[:, blank] = np.where(np.isneginf(scores[:, blank]), -1.0, scores[:, blank])
        for t, label in enumerate(labels or ()):
            scores[2 * t, label] = 0.2  # at least one path is possible
        form = mf.structures.CTC(scores, labels, blank=blank)
        form.given_scores = scores, labels, blank
        return form

    return made


def enumerate_paths(form):
    scores, labels, blank = form.given_scores
    frames, symbols = scores.shape
    found = []
    for path in product(range(symbols), repeat=frames):
        if labels is None or [symbol for symbol, _ in groupby(path) if symbol != blank] == list(labels):
            found.append((list(path), scores[np.arange(frames), path].sum()))
    return found


CASES = [
    Case("labels that differ", make(6, 3, [1, 2, 1]), enumerate_paths, key=tuple),
    Case("labels that repeat", make(6, 3, [2, 2]), enumerate_paths, key=tuple),
    Case("any labels", make(4, 3, None), enumerate_paths, key=tuple),
    Case("any labels, symbols ruled out", make(5, 3, None, ruled_out=0.4), enumerate_paths, key=tuple),
    Case("no label", make(3, 2, []), enumerate_paths, key=tuple),
    Case("last symbol is blank", make(5, 4, [0, 2], blank=3), enumerate_paths, key=tuple),
    Case("symbols ruled out", make(7, 3, [1, 1, 2], ruled_out=0.4), enumerate_paths, key=tuple),
]
