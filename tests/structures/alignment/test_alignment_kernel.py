"""Alignments without crossings: closed forms, bands, long sequences, bad input."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.family import MonotoneAlignments


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 5), (12, 9), (0, 4)])
@pytest.mark.parametrize("free_ends", ["none", "both"])
def test_numbers_of_alignments_are_binomial(m, n, free_ends):
    assert mf.structures.MonotoneAlignment(np.zeros((m, n)), free_ends=free_ends).n_structures() == comb(m + n, m)


def edit_distance(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            if i and j:
                table[i, j] = min(
                    table[i - 1, j - 1] + (a[i - 1] != b[j - 1]), table[i - 1, j] + 1, table[i, j - 1] + 1
                )
            else:
                table[i, j] = i + j
    return table[-1, -1]


@pytest.mark.parametrize(("a", "b"), [("kitten", "sitting"), ("abcdefgh", "hgfedcba"), ("same", "same"), ("", "word")])
def test_edit_distance(a, b):
    equal = np.array([x == y for x in a for y in b], float).reshape(len(a), len(b))
    form = mf.structures.MonotoneAlignment(equal - 1.0, row_gap=-1.0, column_gap=-1.0)
    assert mf.decode(form).score == -edit_distance(a, b)


def test_a_gap_opens_once():
    form = mf.structures.MonotoneAlignment(np.zeros((5, 1)), row_gap=(-10.0, -1.0), column_gap=-100.0)
    best = mf.decode(form)
    assert best.score == -13.0
    assert best.structure in ([(0, 0)], [(4, 0)])
    assert mf.decode(form, {"links": {(2, 0): True}}).score == -22.0


def test_local_alignment_is_that_of_smith_and_waterman():
    rng = np.random.default_rng(0)
    scores = rng.choice([2.0, -1.0], (12, 15), p=[0.25, 0.75])
    table = np.zeros((13, 16))
    for i in range(1, 13):
        for j in range(1, 16):
            table[i, j] = max(
                0.0, table[i - 1, j - 1] + scores[i - 1, j - 1], table[i - 1, j] - 1.5, table[i, j - 1] - 1.5
            )
    form = mf.structures.MonotoneAlignment(scores, row_gap=-1.5, column_gap=-1.5, free_ends="both")
    assert mf.decode(form).score == table.max()


def test_a_wide_band_changes_nothing():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(30, 40))
    found = [
        mf.log_partition(mf.structures.MonotoneAlignment(scores, row_gap=-1.0, band=band)).log_partition
        for band in (None, 40.0, 6.0, 3.0)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    assert found[1] > found[2] > found[3]


def test_long_sequences_stay_finite():
    family = MonotoneAlignments.of(np.array([300, 2]), np.array([250, 3]), free_rows=True)
    pool = np.random.default_rng(2).normal(0, 30, family.n_cells)
    sums = family.sums(pool, counts=True, running=Running())
    at = family.places(0)
    links, rows = sums.counts[: at.rows].reshape(300, 250), sums.counts[at.rows : at.columns].reshape(3, 300)
    np.testing.assert_allclose(links.sum(axis=1) + rows.sum(axis=0), 1.0, atol=1e-9)
    best = family.maxima(pool, running=Running()).scores(pool)
    assert (sums.log_partition >= best - 1e-9).all()


def test_bad_input_gets_a_sentence():
    make = mf.structures.MonotoneAlignment
    for scores, settings, message in (
        (np.zeros(3), {}, "2 axes"),
        (np.zeros((0, 0)), {}, "a row or a column at least"),
        (np.zeros((2, 2)), {"free_ends": "all"}, "free_ends must be one of"),
        (np.zeros((2, 2)), {"band": -1.0}, "band must not be negative"),
        (np.zeros((2, 2)), {"row_gap": np.zeros(3)}, "array of 2 numbers"),
        (np.zeros((2, 2)), {"row_gap": (1.0, 2.0, 3.0)}, "a pair"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            make(scores, **settings)
    form = make(np.zeros((2, 3)))
    with pytest.raises(mf.ModelError, match="must rise"):
        form.score([(0, 1), (1, 1)])
    with pytest.raises(mf.ModelError, match="a link is"):
        mf.decode(form, {"links": {(2, 0): True}})
    with pytest.raises(mf.ModelError, match="row_opens are those of rows 0 to 1"):
        mf.decode(form, {"row_opens": {2: True}})
    assert (1, 0) not in mf.decode(form, {"row_opens": {1: True}}).structure
