"""Segmentations: closed forms, scores that leave the range of numbers, ragged batches, and bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.semi_markov.family import Segmentations


def test_numbers_of_segmentations_are_those_of_compositions():
    # Compositions of n into parts up to L, each part with one of K labels.
    for n, longest, labels in [(1, 1, 1), (10, 10, 1), (12, 2, 1), (9, 3, 4)]:
        numbers = [1]
        for j in range(1, n + 1):
            numbers.append(labels * sum(numbers[max(0, j - longest) : j]))
        assert mf.structures.SemiMarkov(np.zeros((n, longest, labels))).n_structures() == numbers[n]
    assert mf.structures.SemiMarkov(np.zeros((10, 10, 1))).n_structures() == 2**9


def test_labels_that_are_far_less_likely_are_not_lost():
    # Label 1 can only come right after label 0 of a score of -2000; everything else ends in a dead end.
    moves = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, -np.inf, 0.0]])
    segments = np.zeros((3, 1, 3))
    segments[1, 0] = [-2000.0, -np.inf, 0.0]
    segments[2, 0] = [-np.inf, 0.0, -np.inf]
    form = mf.structures.SemiMarkov(segments, moves)
    answer = mf.marginals(form)
    assert answer.log_partition == pytest.approx(-2000.0 + np.log(3), abs=1e-9)
    np.testing.assert_allclose(answer["segments"][1, 0], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(answer["transitions"][:, 1], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(answer["transitions"][:, 0], [1 / 3, 1 / 3, 1 / 3], atol=1e-12)
    assert mf.sample(form, 5, rng=0)["segments"][1, 0, 0] == 1.0


def test_sums_of_whole_numbers():
    # Scores that are logs of small whole numbers: Z is a whole number, computed without rounding.
    rng = np.random.default_rng(3)
    n, longest, labels = 30, 4, 3
    weights, moves = rng.integers(1, 4, (n, longest, labels)), rng.integers(0, 3, (labels, labels))
    ends = [[Fraction(0)] * labels for _ in range(n + 1)]
    for j in range(1, n + 1):
        for k in range(labels):
            for d in range(min(longest, j)):
                i = j - 1 - d
                before = 1 if i == 0 else sum(ends[i][m] * int(moves[m, k]) for m in range(labels))
                ends[j][k] += before * int(weights[i, d, k])
    with np.errstate(divide="ignore"):
        form = mf.structures.SemiMarkov(np.log(weights), np.log(moves))
    assert float(mf.log_partition(form)) == pytest.approx(np.log(float(sum(ends[n]))), rel=1e-13)


def test_ragged_batches_with_empty_and_impossible_ones():
    rng = np.random.default_rng(1)
    family = Segmentations.of([4, 0, 3, 5], 2, 2)
    pool = rng.normal(size=family.n_cells)
    pool[family.cell_offsets[2] : family.cell_offsets[3]] = -np.inf
    sums = family.sums(pool, counts=True, running=Running())
    assert sums.log_partition[1] == 0.0
    assert np.isneginf(sums.log_partition[2])
    assert np.isfinite(sums.counts).all()
    start = sums.counts[4:6].sum()
    assert start == pytest.approx(2.0)  # one first segment for each of the two that are possible
    best = family.maxima(pool, running=Running())
    assert [len(best.of(i)) > 0 for i in range(4)] == [True, False, False, True]
    drawn = family.draws(pool, 2, rng=rng, running=Running())
    assert [len(drawn.of(i)) > 0 for i in range(8)] == [True, True, False, False, False, False, True, True]
    scores = drawn.scores(pool)
    assert np.isfinite(scores).all()
    assert [len(found) for found in family.best(pool, 3, running=Running())] == [3, 1, 0, 3]


def test_draws_of_an_instance_do_not_depend_on_threads():
    rng = np.random.default_rng(2)
    family = Segmentations.of([80] * 40, 10, 20)
    pool = rng.normal(size=family.n_cells)
    one, two = (family.draws(pool, 2, rng=np.random.default_rng(0), running=Running(n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.cells, two.cells)


def test_bad_input_gets_a_sentence():
    form = mf.structures.SemiMarkov(np.zeros((3, 2, 2)))
    for made, message in (
        (lambda: mf.structures.SemiMarkov(np.zeros((3, 2))), "3 axes"),
        (lambda: mf.structures.SemiMarkov(np.zeros((0, 2, 2))), "a position, a length and a label"),
        (
            lambda: mf.structures.SemiMarkov(np.zeros((3, 2, 2)), np.zeros((3, 3))),
            r"transitions must have shape \(2, 2\)",
        ),
        (lambda: mf.structures.SemiMarkov(np.zeros((3, 2, 2)), start=[0.0]), r"start must have shape \(2,\)"),
        (lambda: form.score([(0, 3, 0)]), "starts at 0 and has at most 2"),
        (lambda: form.score([(0, 2, 0)]), "segments end at 2, the sequence has 3"),
        (lambda: form.score([(0, 2, 0), (2, 3, 5)]), "whole numbers below"),
        (lambda: mf.decode(form, {"segments": {(2, 1, 0): True}}), "goes past the end"),
        (lambda: mf.decode(form, {"transitions": {(0, 1): True}}), "can forbid transitions, not require one"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            made()


def test_evidence_may_contradict_itself_and_forbid_transitions():
    form = mf.structures.SemiMarkov(np.zeros((3, 2, 2)))
    with pytest.raises(mf.ImpossibleEvidenceError, match="no possible structure"):
        mf.decode(form, {"segments": {(0, 1, 0): True, (1, 1, 0): True}})
    alternating = mf.log_partition(form, {"transitions": {(0, 0): False, (1, 1): False}})
    assert np.exp(alternating.log_partition) == pytest.approx(2 * 3)  # 3 segmentations, the first label is free
