"""Weights of features and of pairs of features and labels, against a dense matrix."""

from __future__ import annotations

import numpy as np

from markovfield.grammar.pairs import FeatureRows, LabelSupport, PairProduct


def dense(given: FeatureRows, support: LabelSupport, column: np.ndarray, n_columns: int) -> np.ndarray:
    """The operator written out, entry by entry."""
    n_rows, n_features = len(given.rows) - 1, len(support.starts) - 1
    found = np.zeros((n_rows, n_columns, support.n_weights))
    for r in range(n_rows):
        for f in given.features[given.rows[r] : given.rows[r + 1]]:
            found[r, :, f] += 1
            for k in range(support.starts[f], support.starts[f + 1]):
                if column[support.labels[k]] >= 0:
                    found[r, column[support.labels[k]], n_features + k] += 1
    return found.reshape(n_rows * n_columns, -1)


def test_scores_and_counts() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 5, 12)
    rows = FeatureRows(np.concatenate([[0], np.cumsum(sizes)]), rng.integers(0, 7, sizes.sum()).astype(np.int32))
    support = LabelSupport.of(rows, rng.integers(0, 4, 12), 7, 4)
    for column in (np.arange(4), np.array([1, -1, 0, -1])):
        operator = PairProduct(rows, support, column, int(column.max()) + 1)
        matrix = dense(rows, support, column, operator.n_columns)
        w, counts = rng.normal(size=operator.n_weights), rng.normal(size=operator.n_cells)
        counts[rng.random(len(counts)) < 0.5] = 0.0
        np.testing.assert_allclose(operator.forward(w), matrix @ w, atol=1e-12)
        np.testing.assert_allclose(operator.adjoint(counts), matrix.T @ counts, atol=1e-12)
        cells = rng.integers(0, operator.n_cells, 20)
        np.testing.assert_array_equal(operator.rows(cells).toarray(), matrix[cells])
        assert operator.rows(cells[:0]).shape == (0, operator.n_weights)


def test_support_is_what_was_seen() -> None:
    rows = FeatureRows(np.array([0, 2, 3, 3]), np.array([0, 2, 2], np.int32))
    support = LabelSupport.of(rows, np.array([1, 0, 1]), 4, 2)
    assert [support.labels[support.starts[f] : support.starts[f + 1]].tolist() for f in range(4)] == [
        [1],
        [],
        [0, 1],
        [],
    ]
    again = LabelSupport.restored(support.numbers(2), 4, 2)
    assert again.labels.tolist() == support.labels.tolist()
    assert again.starts.tolist() == support.starts.tolist()
