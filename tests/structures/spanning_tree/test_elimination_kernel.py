"""The matrix-tree theorem in linear space: closed forms, determinants in fractions, scores far apart."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.spanning_tree.family import SpanningTrees


def determinant(rows):
    rows = [list(row) for row in rows]
    found = Fraction(1)
    for k in range(len(rows)):
        pivot = next((r for r in range(k, len(rows)) if rows[r][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            found = -found
        found *= rows[k][k]
        for r in range(k + 1, len(rows)):
            factor = rows[r][k] / rows[k][k]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[k], strict=True)]
    return found


def exact_sum(powers, single):
    """Z of weights 2^powers (None: no arc) by determinants of Laplacians in fractions."""
    n = len(powers) - 1
    w = [
        [Fraction(2) ** p if p is not None and h != m else Fraction(0) for m, p in enumerate(r)]
        for h, r in enumerate(powers)
    ]

    def laplacian(words, heads):
        return [[sum(w[h][m] for h in heads if h != m) if a == m else -w[a][m] for m in words] for a in words]

    words = range(1, n + 1)
    if not single:
        return determinant(laplacian(words, range(n + 1)))
    return sum(w[0][r] * determinant(laplacian([m for m in words if m != r], words)) for r in words)


def log2_of(fraction):
    shift = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    return shift + log(fraction / Fraction(2) ** shift, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 60])
def test_numbers_of_trees_are_those_of_cayley(n):
    scores = np.zeros((n + 1, n + 1))
    assert float(mf.log_partition(mf.structures.SpanningTree(scores))) == pytest.approx((n - 1) * log(n))
    many = mf.structures.SpanningTree(scores, single_root=False)
    assert float(mf.log_partition(many)) == pytest.approx((n - 1) * log(n + 1))


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("reach", [3, 200, 1440])
def test_sums_are_those_of_fractions(single, reach):
    rng = np.random.default_rng(reach)
    for _ in range(6):
        n = int(rng.integers(2, 8))
        powers = [
            [None if rng.random() < 0.25 else int(p) for p in row]
            for row in rng.integers(-reach, reach + 1, (n + 1, n + 1))
        ]
        z = exact_sum(powers, single)
        pool = np.array([-np.inf if p is None else p * log(2) for row in powers for p in row])
        family = SpanningTrees.of([n], single_root=single)
        sums = family.sums(pool, counts=True, running=Running())
        if z == 0:
            assert sums.log_partition[0] == -np.inf
            assert not sums.counts.any()
            continue
        assert sums.log_partition[0] / log(2) == pytest.approx(log2_of(z), rel=1e-12, abs=1e-11)
        counts = sums.counts.reshape(n + 1, n + 1)
        np.testing.assert_allclose(counts[:, 1:].sum(axis=0), 1.0, atol=1e-10)
        for h, m in (
            (int(h), int(m)) for h, m in zip(*np.nonzero(np.isfinite(pool.reshape(n + 1, n + 1))), strict=True)
        ):
            if m in (0, h):
                assert counts[h, m] == 0
                continue
            without = [list(row) for row in powers]
            without[h][m] = None
            assert counts[h, m] == pytest.approx(float(1 - exact_sum(without, single) / z), abs=1e-10)


def test_scores_a_thousand_apart():
    """Two words in a cycle that only a light arc leads into: the linear pass alone would see no tree."""
    scores = np.array([[0.0, -1000.0, -1000.0], [0.0, 0.0, 1000.0], [0.0, 1000.0, 0.0]])
    trees = mf.structures.SpanningTree(scores)
    assert float(mf.log_partition(trees)) == pytest.approx(log(2))
    np.testing.assert_allclose(mf.marginals(trees)["arcs"][:, 1:], [[0.5, 0.5], [0, 0.5], [0.5, 0]])


def test_a_long_sentence_and_a_shifted_one():
    rng = np.random.default_rng(0)
    family = SpanningTrees.of([150, 0, 3], single_root=True)
    pool = rng.normal(0, 3, family.n_cells)
    sums = family.sums(pool, counts=True, running=Running())
    assert sums.log_partition[1] == 0
    counts = sums.counts[: 151**2].reshape(151, 151)
    assert counts[0].sum() == pytest.approx(1)
    np.testing.assert_allclose(counts[:, 1:].sum(axis=0), 1.0)
    moved = family.sums(pool + 500.0, running=Running()).log_partition
    np.testing.assert_allclose(moved - sums.log_partition, [75000.0, 0.0, 1500.0])


def test_bad_input_gets_a_sentence():
    for scores, message in (
        (np.zeros((2, 3)), "square"),
        (np.zeros((1, 1)), "a word and a label at least"),
        (np.zeros(3), "3 axes"),
        (np.full((3, 3), np.nan), "nan"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.structures.SpanningTree(scores)
    with pytest.raises(mf.ModelError, match="single_root must be"):
        mf.structures.SpanningTree(np.zeros((3, 3)), single_root=1)
    trees = mf.structures.SpanningTree(np.zeros((4, 4)))
    for heads, message in (
        ([0, 1], "as many heads"),
        ([0, 3, 2], "must lead to the root"),
        ([0, 0, 1], "one word hangs on the root"),
        ([1, 0, 1], "an arc is"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            trees.score(heads)
    with pytest.raises(mf.ModelError, match="modifier, label"):
        mf.decode(mf.structures.SpanningTree(np.zeros((3, 3, 2))), {"arcs": {(0, 1): True}})


@pytest.mark.parametrize("single", [True, False])
def test_many_sentences_side_by_side_are_those_one_by_one(single):
    rng = np.random.default_rng(3)
    lengths = np.array([5] * 21 + [1] * 9 + [12] * 8 + [3, 0, 7])
    rng.shuffle(lengths)
    family = SpanningTrees.of(lengths, single_root=single)
    pool = rng.normal(0, 3, family.n_cells)
    # Some are ruled out, or far apart.
    for i, spread in zip(np.flatnonzero(lengths == 5)[:3], (40.0, 400.0, 0.0), strict=True):
        pool[family.cell_offsets[i] : family.cell_offsets[i + 1]] *= spread
    own = slice(int(family.cell_offsets[np.flatnonzero(lengths == 12)[0]]), None)
    pool[own][[17, 40]] = -np.inf
    weights = rng.random(len(lengths))
    found = family.sums(pool, counts=True, weights=weights, running=Running(n_jobs=1))
    assert family.sums(pool, running=Running(n_jobs=1)).log_partition == pytest.approx(found.log_partition)
    for i in range(len(lengths)):
        one, where = family.select(np.array([i]))
        alone = one.sums(pool[where], counts=True, weights=weights[[i]], running=Running(n_jobs=1))
        assert found.log_partition[i] == pytest.approx(alone.log_partition[0], rel=1e-12)
        np.testing.assert_allclose(found.counts[where], alone.counts, atol=1e-12)
