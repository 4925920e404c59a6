"""Alignments without crossings, by recursion over the next link; a gap is priced by its definition."""

from __future__ import annotations

import itertools

import numpy as np

import markovfield as mf
from tests.structures.cases.case import Case


def monotone(i, j, m, n):
    """All lists of links that rise, from row i and column j on."""
    yield []
    for a in range(i, m):
        for b in range(j, n):
            for rest in monotone(a + 1, b + 1, m, n):
                yield [(a, b), *rest]


def make(m, n, ruled_out=0.0, **settings):
    def made(rng):
        scores = rng.normal(0, 2, (m, n))
        scores[rng.random((m, n)) < ruled_out] = -np.inf
        gaps = rng.normal(-1, 1, (2, m)), rng.normal(-1, 1, (2, n))
        form = mf.structures.MonotoneAlignment(scores, row_gap=tuple(gaps[0]), column_gap=tuple(gaps[1]), **settings)
        form.given_scores = scores, gaps, settings
        return form

    return made


def gap_score(gap, first, last):
    return sum(gap[0 if k == first else 1][k] for k in range(first, last))


def enumerate_alignments(form):
    scores, gaps, settings = form.given_scores
    m, n = scores.shape
    free = {"rows": (True, False), "columns": (False, True), "both": (True, True)}
    free = free.get(settings.get("free_ends"), (False, False))
    found = []
    for links in monotone(0, 0, m, n):
        if settings.get("band") is not None and not in_band(links, m, n, settings["band"]):
            continue
        total = sum(scores[link] for link in links)
        for side, size in ((0, m), (1, n)):
            places = [-1, *(link[side] for link in links), size]
            for k, (a, b) in enumerate(itertools.pairwise(places)):
                ends = k in (0, len(places) - 2)
                total += 0.0 if ends and free[side] else gap_score(gaps[side], a + 1, b)
        found.append((links, total))
    return found


def in_band(links, m, n, band):
    """Whether a path that goes through rows first stays near the diagonal, from after its first link on."""
    places = []
    for (a, b), (c, d) in itertools.pairwise(links):
        places += [(i, b + 1) for i in range(a + 1, c + 1)] + [(c, j) for j in range(b + 1, d + 1)]
    places += [(a + 1, b + 1) for a, b in links]
    return all(abs(j - i * n / m) <= band for i, j in places)


CASES = [
    Case("global", make(4, 5), enumerate_alignments),
    Case("links ruled out", make(5, 3, 0.4), enumerate_alignments),
    Case("local", make(4, 4, free_ends="both"), enumerate_alignments),
    Case("rows in columns", make(3, 5, free_ends="columns"), enumerate_alignments),
    Case("columns in rows", make(4, 3, free_ends="rows"), enumerate_alignments),
    Case("band", make(5, 5, band=1.5), enumerate_alignments),
    Case("band and free", make(4, 6, 0.2, band=2.0, free_ends="both"), enumerate_alignments),
    Case("a word against nothing", make(1, 2), enumerate_alignments),
]
