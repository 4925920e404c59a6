"""Columns of any library become state numbers; what is no state, no column or no weight is said in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.core.data import DataTable, encode


class FakeSeries:
    """As much of a series as the library needs: a length and ``to_numpy``."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> np.ndarray:
        return self.values


class FakeFrame:
    """As much of a data frame as the library needs."""

    def __init__(self, **columns) -> None:
        self._columns = {name: FakeSeries(values) for name, values in columns.items()}

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, name: str) -> FakeSeries:
        return self._columns[name]


def network() -> mf.BayesianNetwork:
    return mf.BayesianNetwork({"A": ["low", "high"], "B": 3, "C": [True, False]})


@pytest.mark.parametrize(
    ("column", "states", "codes"),
    [
        (["b", "a", None, "b"], ("a", "b"), [1, 0, -1, 1]),
        (np.array(["b", "a", "c", "b"]), ("a", "b", "c"), [1, 0, 2, 1]),
        (np.array([b"b", b"a"]), ("a", "b"), [1, 0]),
        (np.array(["b", None, float("nan")], object), ("b",), [0, -1, -1]),
        ([10, 9, -1, 10], (-1, 9, 10), [2, 1, 0, 2]),
        (np.array([5, 2**40], np.int64), (5, 2**40), [0, 1]),
        (np.array([3, 0, 200], np.uint8), (0, 3, 200), [1, 0, 2]),
        (np.array([1.0, np.nan, 3.0]), (1, 3), [0, -1, 1]),
        ([1.5, 0.5, 1.5], (0.5, 1.5), [1, 0, 1]),
        (np.array([True, True]), (False, True), [1, 1]),
        ([True, None, True], (True,), [0, -1, 0]),
        (np.ma.masked_array([4, 9, 5], [False, True, False]), (4, 5), [0, -1, 1]),
        (np.ma.masked_array(["x", "y"], [True, False]), ("y",), [-1, 0]),
        ([2, "x", "a", 1], (1, 2, "a", "x"), [1, 3, 2, 0]),
        (FakeSeries(["y", "x"]), ("x", "y"), [1, 0]),
        (np.array(["2024-01-02", "NaT", "2024-01-01"], "datetime64[D]"), None, [1, -1, 0]),
    ],
)
def test_states_are_found_in_the_values(column, states, codes):
    table = encode({"X": column})
    if states is not None:
        assert table.states == (states,)
        assert [type(s) for s in table.states[0]] == [type(s) for s in states]
    assert table.codes.tolist() == [codes]
    assert table.codes.dtype == np.int16 and not table.codes.flags.writeable


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ({"A": ["high", "low"]}, [[1, 0], [-1, -1], [-1, -1]]),
        ({"A": [1, 0], "B": [2, -1]}, [[1, 0], [2, -1], [-1, -1]]),
        ({"A": [1.0, np.nan], "B": np.array([2, 0])}, [[1, -1], [2, 0], [-1, -1]]),
        ({"A": np.array(["high", None], object), "B": [None, 1]}, [[1, -1], [-1, 1], [-1, -1]]),
        ({"A": [None, None], "C": [True, False], "other": ["x", "y"]}, [[-1, -1], [-1, -1], [0, 1]]),
        ({"B": [True, False]}, [[-1, -1], [1, 0], [-1, -1]]),
    ],
)
def test_a_network_gives_the_states(columns, codes):
    table = encode(columns, network())
    assert table.variables == ("A", "B", "C")
    assert table.states == (("low", "high"), (0, 1, 2), (True, False))
    assert table.codes.tolist() == codes


def test_kinds_of_tables_agree():
    data = {"A": ["high", "low", "low"], "B": [2, 0, 1]}
    expected = encode(data, network()).codes.tolist()
    records = np.array([("high", 2), ("low", 0), ("low", 1)], [("A", "U4"), ("B", np.int8)])
    assert encode(records, network()).codes.tolist() == expected
    assert encode(FakeFrame(**data), network()).codes.tolist() == expected
    matrix = np.array([[1, 2, -1], [0, 0, -1], [0, 1, -1]])
    assert encode(matrix, network()).codes.tolist() == expected
    assert encode(matrix.tolist(), network()).codes.tolist() == expected
    assert encode(encode(data), network()).codes.tolist() == expected
    assert encode(encode(data, network()), network()).codes.tolist() == expected


def test_samples_are_data():
    net = mf.BayesianNetwork({"A": ["low", "high"], "B": 3})
    net.add_cpt("A", [], [0.4, 0.6])
    net.add_cpt("B", ["A"], [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    samples = mf.sample(net, 50, rng=0)
    table = encode(samples)
    assert table.states == (("low", "high"), (0, 1, 2))
    np.testing.assert_array_equal(table.codes, samples.states.T)
    np.testing.assert_array_equal(encode(samples, net).codes, table.codes)
    np.testing.assert_array_equal(encode(samples.to_dict(), net).codes, table.codes)
    swapped = mf.BayesianNetwork({"B": 3, "A": ["high", "low"]})
    np.testing.assert_array_equal(encode(samples, swapped).codes, [table.codes[1], 1 - table.codes[0]])


def test_pandas_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "text": ["x", None, "y"],
            "ordered": pd.Categorical(["low", "high", None], ["low", "mid", "high"], ordered=True),
            "gaps": [1, None, 3],
            "nullable": pd.array([2, None, 1], "Int64"),
            "flags": [True, False, True],
            "string": pd.array(["u", None, "v"], "string"),
        }
    )
    before = frame.copy()
    table = encode(frame)
    assert table.states == (("x", "y"), ("low", "mid", "high"), (1, 3), (1, 2), (False, True), ("u", "v"))
    assert table.codes.T.tolist() == [[0, 0, 0, 1, 1, 0], [-1, 2, -1, -1, 0, -1], [1, -1, 1, 0, 1, 1]]
    assert frame.equals(before)
    twice = pd.concat([frame["text"], frame["text"]], axis=1)
    with pytest.raises(mf.ModelError, match="more than one column named 'text'"):
        encode(twice)


def test_polars_frames():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "text": ["x", None, "y"],
            "ordered": pl.Series(["low", "high", None], dtype=pl.Enum(["low", "mid", "high"])),
            "gaps": [1, None, 3],
            "flags": [True, False, True],
        }
    )
    table = encode(frame)
    assert table.states == (("x", "y"), ("low", "mid", "high"), (1, 3), (False, True))
    assert table.codes.T.tolist() == [[0, 0, 0, 1], [-1, 2, -1, 0], [1, -1, 1, 1]]


class Categorical:
    """A categorical as pandas shows it: codes, and a dtype with categories."""

    def __init__(self, codes, categories) -> None:
        self.codes = np.array(codes, np.int8)
        self.dtype = type("Kind", (), {"categories": categories})()

    def __len__(self) -> int:
        return len(self.codes)


def test_categories_keep_their_order():
    column = Categorical([1, -1, 0], ["low", "high"])
    assert encode({"A": column}).states == (("low", "high"),)
    assert encode({"A": column}).codes.tolist() == [[1, -1, 0]]
    turned = mf.BayesianNetwork({"A": ["high", "low"]})
    assert encode({"A": column}, turned).codes.tolist() == [[0, -1, 1]]
    # A category the network does not have is an error only where a row has it.
    assert encode({"A": Categorical([0, 0], ["low", "none"])}, turned).codes.tolist() == [[1, 1]]
    with pytest.raises(mf.ModelError, match="row 1 of the data has state 'none' for variable 'A'"):
        encode({"A": Categorical([0, 1], ["low", "none"])}, turned)


def test_weights():
    data = {"A": ["x", "y"], "n": [3, 0.5]}
    table = encode(data, weights="n")
    assert table.variables == ("A",) and table.weights.tolist() == [3, 0.5] and table.total_weight == 3.5
    assert encode({"A": ["x", "y"]}, weights=[1, 2]).weights.tolist() == [1, 2]
    assert encode({"A": ["x", "y"]}).weights is None and encode({"A": ["x", "y"]}).total_weight == 2
    assert encode(table).weights is table.weights
    assert encode(table, mf.BayesianNetwork({"A": ["y", "x"]})).weights.tolist() == [3, 0.5]
    assert encode(FakeFrame(A=["x", "y"], n=[3, 1]), weights="n").weights.tolist() == [3, 1]


def test_inputs_stay_as_they_are():
    weights = np.array([1.0, 2.0])
    column = np.array([1, 0])
    table = encode({"B": column}, network(), weights=weights)
    column[0], weights[0] = 2, 9.0
    assert table.codes[1].tolist() == [1, 0] and table.weights.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        table.codes[0, 0] = 1


def test_complete_rows_and_properties():
    table = encode({"A": ["x", None, "y"], "B": [0, 1, 1]}, weights=[1, 2, 3])
    assert table.has_missing and not table.complete_rows().has_missing
    assert table.complete_rows().weights.tolist() == [1, 3]
    assert table.cardinalities.tolist() == [2, 2] and (table.n_rows, table.n_variables) == (3, 2)
    assert repr(table) == "DataTable(3 rows of 2 variables, 1 values missing, weight 6)"


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        ({"A": ["x", "y"], "B": [1]}, {}, "columns 'A' and 'B' have different numbers of rows: 2 and 1"),
        ({"A": [None, None]}, {}, "column 'A' has no value that is not missing"),
        ({}, {}, "no columns"),
        ({"A": np.linspace(0, 1, 65)}, {}, "column 'A' looks continuous: 65 distinct numbers"),
        ({"A": np.arange(40000)}, {}, "column 'A' has 40000 distinct values; at most 32767"),
        ({"A": [[1], [2]]}, {}, "variable 'A' has a value of type list"),
        ({"A": np.zeros((2, 2), int)}, {}, "column 'A' must be one-dimensional"),
        ({"A": "text"}, {}, "column 'A' must be a sequence of values, got str"),
        ({"A": 3}, {}, "column 'A' must be a sequence of values, got int"),
        ({1.5: [1]}, {}, "a variable is named by a str or an int, got 1.5"),
        (np.zeros((2, 2), int), {}, "a plain array of state numbers needs a network"),
        (7, {}, "data must be a dict of columns, .* got int"),
        ({"A": ["x"]}, {"weights": "n"}, "weights name the column 'n'"),
        ({"A": ["x"]}, {"weights": [1, 2]}, "one number for each of the 1 rows"),
        ({"A": ["x", "y"]}, {"weights": [1, -2]}, "not negative, got -2.0 in row 1"),
        ({"A": ["x", "y"]}, {"weights": [np.nan, 1]}, "finite and not negative, got nan in row 0"),
        ({"A": ["x"]}, {"weights": ["many"]}, "weights must be numbers"),
    ],
)
def test_errors_without_a_network(data, settings, message):
    with pytest.raises(mf.ModelError, match=message):
        encode(data, **settings)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"A": ["low", "hgih"]}, "row 1 of the data has state 'hgih' for variable 'A', whose states are 'low', 'high'"),
        ({"A": [0, 1, 2]}, "row 2 of the data has state 2 for variable 'A'"),
        ({"A": [0, -1]}, "row 1 of the data has state -1 for variable 'A'"),
        ({"B": [0, 1, -2]}, "row 2 of the data has state -2 for variable 'B', whose states are 0, 1, 2"),
        ({"B": np.array([0.5, 1])}, "row 0 of the data has state 0.5 for variable 'B'"),
        ({"B": ["1"]}, "row 0 of the data has state '1' for variable 'B'"),
        ({"B": [0, 10**9]}, "row 1 of the data has state 1000000000 for variable 'B'"),
        ({"A": [["low"]]}, "variable 'A' has a value of type list"),
        ({"Z": [1]}, "no column of the data is a variable of the network: columns 'Z', variables 'A', 'B', 'C'"),
        ([[0, 3, 0]], "row 0 of the data has state 3 for variable 'B', expected -1 to 2"),
        ([[0, 0]], r"needs shape \(rows, 3\), one column a variable, got \(1, 2\)"),
        ([[0, 0, 0], [0]], "rows of equal length"),
        (np.zeros((1, 3)), "must be state numbers, -1 for missing, got dtype float64"),
    ],
)
def test_errors_with_a_network(data, message):
    with pytest.raises(mf.ModelError, match=message):
        encode(data, network())


def test_an_integer_that_reads_two_ways_is_refused():
    net = mf.BayesianNetwork({"X": ["1", "2", "3"]})
    with pytest.raises(mf.ModelError, match="give the column as text"):
        encode({"X": [1, 2]}, net)
    assert encode({"X": ["1", "3"]}, net).codes.tolist() == [[0, 2]]
    same = mf.BayesianNetwork({"X": ["0", "1"]})
    assert encode({"X": [1, 0]}, same).codes.tolist() == [[1, 0]]


def test_a_network_may_name_many_numbers():
    grid = [float(x) for x in np.linspace(0, 1, 100)]
    table = encode({"X": np.array(grid[::-1])}, mf.BayesianNetwork({"X": grid}))
    assert table.codes[0].tolist() == list(range(99, -1, -1))


def test_a_table_checks_its_shape():
    with pytest.raises(mf.ModelError, match=r"need shape \(2, n_rows\)"):
        DataTable(("A", "B"), ((0, 1), (0, 1)), np.zeros((1, 3), np.int16))


def test_distinct_rows_keep_their_weight():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, (4, 500)).astype(np.int16)
    table = DataTable(tuple("abcd"), ((0, 1),) * 4, codes, np.arange(500.0))
    once = table.distinct()
    assert len({tuple(r) for r in once.codes.T.tolist()}) == once.n_rows < 100
    assert once.total_weight == table.total_weight
    for row, weight in zip(once.codes.T, once.weights, strict=True):
        assert weight == np.arange(500.0)[(row == codes.T).all(axis=1)].sum()
    everything = DataTable(("a",), (tuple(range(9)),), np.arange(9, dtype=np.int16)[None]).distinct()
    assert everything.n_rows == 9 and everything.weights.tolist() == [1.0] * 9


def test_weighted_samples_bring_their_weights():
    net = mf.BayesianNetwork({"a": 2, "b": 2})
    net.add_cpt("a", [], [0.9, 0.1])
    net.add_cpt("b", ["a"], [[0.9, 0.1], [0.2, 0.8]])
    drawn = mf.sample(net, 50, {"b": 1}, method="likelihood_weighting", rng=0)
    table = encode(drawn, net)
    np.testing.assert_allclose(table.weights, drawn.weights * 50)
