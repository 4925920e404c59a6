"""Tables of data in text files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.data import data_path


def written(folder: Path, text: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_values_missing_ones_and_quotes(tmp_path: Path):
    path = written(tmp_path, 'a, b,"c d"\nx,1,"p, q"\n?,NA,\n\n y ,2,"line\nbreak"\n')
    found = {name: column.tolist() for name, column in mf.io.read_csv(path).items()}
    assert found == {"a": ["x", None, "y"], "b": ["1", None, "2"], "c d": ["p, q", None, "line\nbreak"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_seen(tmp_path: Path, delimiter: str):
    path = written(tmp_path, f"a{delimiter}b\n1{delimiter}2\n")
    assert {k: v.tolist() for k, v in mf.io.read_csv(path).items()} == {"a": ["1"], "b": ["2"]}


def test_compressed_and_no_rows(tmp_path: Path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n"))
    assert {k: v.tolist() for k, v in mf.io.read_csv(path).items()} == {"a": [], "b": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1:1: expected a row of column names"),
        ("a,b\n1,2\n1,2,3\n", ":3:1: expected 2 values as there are names, got 3"),
        ("a,b\n1\n", ":2:1: expected 2 values as there are names, got 1"),
        ("a,,c\n", "column 2 has no name"),
        ("a,a\n", "two columns are named 'a'"),
        ('a,b\n"x,2\n', "no CSV"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str):
    with pytest.raises(mf.FormatError, match=message):
        mf.io.read_csv(written(tmp_path, text))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_table_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    path = tmp_path_factory.mktemp("bytes") / "x.csv"
    path.write_bytes(data)
    try:
        columns = mf.io.read_csv(path)
    except mf.FormatError:
        return
    assert len({len(c) for c in columns.values()}) == 1


def test_a_real_table():
    columns = mf.io.read_csv(data_path("tables", "chestSim1000.csv"))
    assert {len(c) for c in columns.values()} == {1000}
    assert set(columns["asia"].tolist()) == {"yes", "no"}
