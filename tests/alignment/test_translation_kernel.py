"""Pairs of words that stand opposite each other: numbers, cells and counts, against dictionaries."""

from __future__ import annotations

import numpy as np

from markovfield.alignment.translation import TranslationTable
from markovfield.alignment.translation_kernel import gather, normalise_rows
from tests.alignment.enumeration import random_pairs


def test_every_cell_is_its_pair_of_words() -> None:
    pairs = random_pairs(np.random.default_rng(0), 30, longest=5, words=6)
    table, encoded, together = TranslationTable.over(pairs)
    seen: dict[tuple[str, str], int] = {}
    for source, target in pairs:
        for pair in {(e, f) for e in source for f in target}:
            seen[pair] = seen.get(pair, 0) + 1
    assert len(table.columns) == len(seen)
    rows = np.repeat(np.arange(len(table.source)), np.diff(table.row_starts))
    names = [(table.source.words[r], table.target.words[c]) for r, c in zip(rows, table.columns, strict=True)]
    assert dict(zip(names, together.tolist(), strict=True)) == seen
    for matrix, (source, target) in zip(encoded.matrices(encoded.arrays.cells), pairs, strict=True):
        assert [[names[cell] for cell in row] for row in matrix] == [[(e, f) for f in target] for e in source]
    # Columns of a row ascend, so that pairs are found again.
    np.testing.assert_array_equal(table.encoded(pairs).arrays.cells, encoded.arrays.cells)
    other = table.encoded([(["e0", "new"], ["neu", "f0"])])
    found = other.matrices(other.arrays.cells)[0]
    assert found[1].tolist() == [-1, -1] and found[0, 0] == -1
    assert (found[0, 1] >= 0) == (("e0", "f0") in seen)


def test_probabilities_of_a_sentence() -> None:
    table, _, _ = TranslationTable.over([(["a", "b"], ["x"]), (["c"], ["y"])])
    values, rest, nulls = np.array([0.5, 0.25, 0.75]), np.array([0.01, 0.02, 0.03, 0.04]), np.array([0.1, 0.2, 0.3])
    encoded = table.encoded([(["a", "new", "c"], ["x", "neu"])])
    block, none = np.empty((4, 4)), np.empty(4)
    assert not gather(tuple(encoded.arrays), (values, rest, nulls), 0, block, none)
    np.testing.assert_array_equal(block[:2, :3], [[0.5, 0.04, 0.03], [0.01, 0.04, 0.03]])
    np.testing.assert_array_equal(none[:2], [0.1, 0.3])
    zeros = np.zeros(3), np.zeros(4), np.zeros(3)
    assert gather(tuple(encoded.arrays), zeros, 0, block, none)
    assert (block[:2, :3] == 1.0).all() and (none[:2] == 1.0).all()


def test_rows_are_normalised() -> None:
    row_starts, counts = np.array([0, 2, 2, 3]), np.array([1.0, 3.0, 0.0])
    values, rest = np.full(3, 0.2), np.full(4, 0.2)
    normalise_rows(row_starts, counts, 0.0, 5, values, rest)
    np.testing.assert_allclose(values, [0.25, 0.75, 0.2])
    np.testing.assert_allclose(rest, [0.0, 0.2, 0.2, 0.2])
    normalise_rows(row_starts, counts, 0.5, 5, values, rest)
    np.testing.assert_allclose(values, [1.5 / 6.5, 3.5 / 6.5, 0.2])
    np.testing.assert_allclose(rest[:3], [0.5 / 6.5, 0.2, 0.2])


def test_pruned_tables_and_translations() -> None:
    table, _, _ = TranslationTable.over([(["a"], ["x", "y", "z"]), (["b"], ["x"])])
    table = table.with_values(np.array([0.5, 0.1, 0.4, 1.0]))
    small = table.pruned(0.3)
    assert small.translations("a") == [("x", 0.5), ("z", 0.4)] and small.translations("b") == [("x", 1.0)]
    assert table.translations("a", 1) == [("x", 0.5)] and table.translations("c") == []
