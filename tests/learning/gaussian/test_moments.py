"""Data of real-valued variables: where they come from, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovfield as mf
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.learning.gaussian.moments import GaussianMoments, guard_dense, not_definite, read_moments, read_numbers

VALUES = np.array([[1.0, 2.0, 0.5], [0.0, 1.5, 2.5], [3.0, -1.0, 1.0], [2.0, 0.5, 0.0]])


@pytest.mark.parametrize(
    "data",
    [
        dict(zip("abc", VALUES.T, strict=True)),
        pd.DataFrame(VALUES, columns=list("abc")),
        pd.DataFrame(VALUES, columns=list("abc")).convert_dtypes(),
        pl.DataFrame(VALUES, schema=list("abc")),
        np.rec.fromarrays(VALUES.T, names="a,b,c"),
    ],
    ids=["dict", "pandas", "nullable", "polars", "records"],
)
def test_columns_of_any_library_have_the_same_moments(data):
    found = read_moments(data)
    assert found.variables == ("a", "b", "c")
    assert np.allclose(found.mean, VALUES.mean(axis=0))
    assert np.allclose(found.covariance, np.cov(VALUES.T, bias=True))
    assert found.n_rows == 4
    assert np.allclose(read_moments(data, variables=["c", "a"]).mean, VALUES.mean(axis=0)[[2, 0]])


def test_arrays_have_numbers_as_names_and_masks_are_missing_values():
    assert read_moments(VALUES).variables == (0, 1, 2)
    masked = np.ma.masked_array(VALUES, VALUES > 2.4)
    assert read_numbers(masked).missing == {0: 1, 2: 1}
    frame = pd.DataFrame({"a": pd.array([1, None, 3], "Int64"), "b": [1.0, 2.0, np.nan]})
    assert read_numbers(frame).missing == {"a": 1, "b": 1}


def test_weights_count_rows_and_may_be_a_column():
    weights = np.array([2.0, 1.0, 1.0, 3.0])
    found = read_moments(VALUES, weights=weights)
    repeated = np.repeat(VALUES, weights.astype(int), axis=0)
    assert found.n_rows == 7
    assert np.allclose(found.covariance, np.cov(repeated.T, bias=True))
    columns = dict(zip("abc", VALUES.T, strict=True)) | {"w": weights}
    assert np.allclose(read_moments(columns, weights="w").covariance, found.covariance)


def test_large_offsets_cost_no_digits():
    assert np.allclose(read_moments(VALUES + 1e8).covariance, read_moments(VALUES).covariance, rtol=1e-6)


def test_moments_given_are_read_as_they_are():
    given = GaussianMoments([[2.0, 0.5], [0.5, 1.0]], 20, variables=["x", "y"])
    assert given.correlation[0, 1] == pytest.approx(0.5 / np.sqrt(2))
    assert given.among(["y"]).covariance.tolist() == [[1.0]]
    assert given.shrunk(0.5).covariance.tolist() == [[2.0, 0.25], [0.25, 1.0]]
    assert given.to_frame()["variable"].tolist() == ["x", "y"]
    assert read_moments(given) is given
    assert repr(given) == "GaussianMoments(2 variables, 20 rows)"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: read_moments({"a": [1.0, np.nan], "b": [1.0, 2.0]}),
            r"'a' is missing in 1 row, the first of them row 1",
        ),
        (lambda: read_moments({"a": [1.0, np.inf]}), r"column 'a' is infinite in row 1"),
        (lambda: read_moments({"a": [5.0, 5.0], "b": [1.0, 2.0]}), r"column 'a' is the same in every row"),
        (lambda: read_moments({"a": ["x", "y"]}), r"column 'a' must hold numbers only"),
        (lambda: read_moments({"a": [1.0, 2.0], "b": [1.0]}), r"column 'b' has 1 rows, where column 'a' has 2"),
        (lambda: read_moments({"a": [[1.0], [2.0]]}), r"column 'a' must be one-dimensional"),
        (lambda: read_moments({"a": [1.0, 2.0]}, variables=["b"]), r"no column for variable 'b'"),
        (lambda: read_moments({"a": [1.0, 2.0]}, weights="w"), r"no column 'w' to be the weights"),
        (lambda: read_moments({"a": [1.0, 2.0]}, weights=[1.0, -1.0]), r"at least 0 for each of the 2 rows"),
        (lambda: read_moments(np.zeros((0, 2))), r"at least one row"),
        (lambda: read_moments(np.zeros(3)), r"needs shape \[rows, variables\], got \(3,\)"),
        (lambda: read_moments(np.zeros((3, 2)), variables=["a"]), r"2 columns, for 1 variables"),
        (lambda: read_moments("text"), r"needs columns of numbers"),
        (lambda: GaussianMoments([[1.0, 0.2]], 3), r"square matrix, got shape \(1, 2\)"),
        (lambda: GaussianMoments([["a"]], 3), r"matrix of numbers"),
        (lambda: GaussianMoments([[1.0, 0.2], [0.3, 1.0]], 3), r"symmetric, but has 0.2 and 0.3 for 0 and 1"),
        (lambda: GaussianMoments([[1.0, np.nan], [np.nan, 1.0]], 3), r"of 0 and 1 is nan"),
        (lambda: GaussianMoments([[1.0, 0.0], [0.0, 0.0]], 3, variables="ab"), r"of 'b' with itself is 0"),
        (lambda: GaussianMoments([[1.0]], 0), r"n_rows of GaussianMoments must be a number greater than 0"),
        (lambda: GaussianMoments([[1.0]], 2, mean=[1.0, 2.0]), r"mean=...\) needs 1 finite numbers"),
        (lambda: GaussianMoments(np.eye(2), 2, variables=["a", "a"]), r"2 different names"),
        (lambda: GaussianMoments(np.eye(2), 2).among(["z"]), r"no column for variable 'z'"),
        (lambda: read_moments(GaussianMoments(np.eye(2), 2), weights=[1.0]), r"weights are of rows"),
    ],
)
def test_what_is_wrong_with_data_is_said(make, match):
    with pytest.raises(ModelError, match=match):
        make()


def test_dense_matrices_above_the_limit_are_refused_before_they_are_made():
    with pytest.raises(MemoryLimitError, match=r"of 1000000 variables takes .* as dense matrices, above the limit"):
        guard_dense(10**6, "the covariance")
    with pytest.raises(MemoryLimitError, match="GraphicalLasso of 3 variables"):
        mf.learn_structure(VALUES, method=mf.methods.GraphicalLasso(penalty=0.1, memory_limit=100))


def test_a_matrix_that_is_not_definite_has_its_eigenvalue_and_variables_named():
    matrix = np.eye(4)
    matrix[:3, :3] = 1.0
    said = not_definite(matrix, ["a", "b", "c", "d"], "the covariance")
    assert "smallest eigenvalue" in said
    assert "'d'" not in said
