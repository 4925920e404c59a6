"""Choices between pairs: the alignments of each, enumerated as those of one pair."""

from __future__ import annotations

import numpy as np

import markovfield as mf
from tests.structures.cases import alignment
from tests.structures.cases.case import Case


def make(shapes, with_scores=True, ruled_out=0.0, **settings):
    def made(rng):
        forms = [alignment.make(m, n, ruled_out, **settings)(rng) for m, n in shapes]
        scores = rng.normal(0, 2, len(shapes)) if with_scores else None
        form = mf.structures.AlignmentChoice(forms, scores)
        form.given_scores = forms, np.zeros(len(shapes)) if scores is None else scores
        return form

    return made


def enumerate_choices(form):
    forms, scores = form.given_scores
    return [
        ((choice, links), score + scores[choice])
        for choice, own in enumerate(forms)
        for links, score in alignment.enumerate_alignments(own)
    ]


def key(structure):
    return structure[0], tuple(map(tuple, structure[1]))


CASES = [
    Case("one pair", make([(3, 3)]), enumerate_choices, key),
    Case("three pairs", make([(3, 2), (2, 4), (1, 1)]), enumerate_choices, key),
    Case("no scores, links ruled out", make([(3, 3), (3, 2)], False, 0.4), enumerate_choices, key),
    Case("free ends", make([(3, 2), (2, 3)], free_ends="both"), enumerate_choices, key),
]
