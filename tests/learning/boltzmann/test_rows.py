"""Data of Boltzmann machines, from arrays and frames, and what is wrong with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from markovfield.exceptions import ModelError
from markovfield.learning.boltzmann.rows import rows_of
from markovfield.learning.core.data import encode


def test_arrays_frames_and_tables_are_the_same():
    values = np.array([[0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1]])
    frame = pd.DataFrame(values[:, ::-1], columns=["v2", "v1", "v0"]).assign(other="x")
    table = encode({f"v{i}": values[:, i] for i in range(3)}, weights=[1, 2, 3, 4.0])
    for data in (values, values.astype(bool), frame, values.tolist(), table):
        rows = rows_of(data, 3)
        assert np.array_equal(rows.values, values)
        assert rows.binary
    assert rows_of(table, 3).weights.tolist() == [1, 2, 3, 4]
    assert rows_of(table, 3, [1, 1, 1, 1]).weights.tolist() == [1, 1, 1, 1]
    assert not rows_of(values * 0.5, 3).binary
    assert rows_of(values, 3).means.tolist() == [0.5, 0.9, 0.5]


@pytest.mark.parametrize(
    ("data", "weights", "said"),
    [
        (np.zeros((4, 2)), None, r"needs shape \(rows, 3\), got \(4, 2\)"),
        (np.zeros(3), None, r"got \(3,\)"),
        (np.zeros((0, 3)), None, "at least one row"),
        ([[0, 1, np.nan]], None, "got nan for v2 in row 0: fill in"),
        ([[0, 1, 1], [0, 16, 1]], None, "got 16.0 for v1 in row 1: scale"),
        ([[0, -0.5, 1]], None, "got -0.5 for v1"),
        ([["a", "b", "c"]], None, "must be numbers from 0 to 1"),
        ({"v0": [0], "v1": [1]}, None, "no column 'v2': a machine of 3 visible units needs v0 to v2"),
        ({"v0": [0, 1], "v1": [1], "v2": [1]}, None, "different numbers of rows"),
        (encode({"v0": [0, 1], "v1": [1, None], "v2": [0, 1]}), None, "got nan for v1 in row 1"),
        (np.zeros((2, 3)), [1.0], "one finite number of at least zero for each of the 2 rows"),
        (np.zeros((2, 3)), [1.0, -1.0], "of at least zero"),
        (np.zeros((2, 3)), [0.0, 0.0], "not all of them zero"),
    ],
)
def test_bad_data(data, weights, said):
    with pytest.raises(ModelError, match=said):
        rows_of(data, 3, weights)
