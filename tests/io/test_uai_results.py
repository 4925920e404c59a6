"""Result files of the UAI competitions."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from tests.data import data_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


def text_of(*arguments, **settings) -> str:
    stream = io.StringIO()
    mio.write_uai_result(stream, *arguments, **settings)
    return stream.getvalue()


def read(path, text):
    path.write_text(text)
    return mio.read_uai_result(path)


@given(value=st.floats(allow_nan=False).filter(lambda x: x != np.inf))
def test_partition_round_trip(folder, value):
    mio.write_uai_result(folder / "r.PR", "PR", value)
    assert mio.read_uai_result(folder / "r.PR").log10_partition == value


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=4)


@given(marginals=st.lists(probabilities, max_size=5))
def test_marginals_round_trip(folder, marginals):
    mio.write_uai_result(str(folder / "r.MAR"), "MAR", marginals)
    assert [m.tolist() for m in mio.read_uai_result(folder / "r.MAR").marginals] == marginals


@given(
    states=st.lists(st.integers(0, 9), max_size=6),
    task=st.sampled_from(["MPE", "MAP", "MMAP"]),
    pairs=st.booleans(),
)
def test_states_round_trip(folder, states, task, pairs):
    query = [10 + i for i in range(len(states))] if task == "MMAP" else None
    mio.write_uai_result(folder / "r.MPE", task, states, query=query, pairs=pairs)
    result = mio.read_uai_result(folder / "r.MPE")
    assert result.task == task
    assert result.states.tolist() == states
    if pairs and states:
        assert result.variables.tolist() == (query or list(range(len(states))))


def test_answers_of_the_verbs_are_written():
    net = mf.MarkovNetwork({"a": 2, "b": 3})
    net.add_factor(["a"], [1, 3])
    graph = net.compile()
    from markovfield.inference.core.answers import Marginals
    from markovfield.inference.core.decodings import decoding_of_states

    values = np.array([0.25, 0.75, 0.5, 0.25, 0.25])
    answer = Marginals(graph=graph, values=values, log_partition=np.log(12.0), method="by hand")
    assert float(text_of("PR", answer).split()[1]) == pytest.approx(np.log10(12))
    assert text_of("MAR", answer) == "MAR\n2 2 0.25 0.75 3 0.5 0.25 0.25\n"
    decoding = decoding_of_states(graph, [(np.array([1, 2]), 0.0)], None, method="by hand")
    assert text_of("MPE", decoding) == "MPE\n2 1 2\n"
    assert text_of("MMAP", decoding, query=[1]) == "MMAP\n1 2\n"
    partial = decoding_of_states(graph, [(np.array([0, 2]), 0.0)], [1], method="by hand")
    assert text_of("MMAP", partial, pairs=True) == "MMAP\n1 1 2\n"
    with pytest.raises(mf.ModelError, match="gives no state to variable 0, which MPE asks for"):
        text_of("MPE", partial)


def test_wrong_answers_are_refused():
    with pytest.raises(mf.ModelError, match="must be one of PR, MAR, MPE, MAP, MMAP, got 'BEL'"):
        text_of("BEL", 1.0)
    with pytest.raises(mf.ModelError, match="the query has 1 variables and the answer 2 states"):
        text_of("MMAP", [0, 1], query=[3])
    with pytest.raises(mf.ModelError, match="gives no state to variable 3"):
        text_of("MMAP", {2: 1}, query=[3])
    with pytest.raises(mf.ModelError, match="gives no state to variable 5"):
        text_of("MMAP", SimpleNamespace(states=[0]), query=[5])


def test_older_form_with_a_number_of_samples(tmp_path):
    path = tmp_path / "r"
    assert read(path, "PR\n1\n-3.5").log10_partition == -3.5
    assert read(path, "PR\n1").log10_partition == 1.0
    for text in ("MAR\n1\n2 2 .5 .5 1 1", "MAR\n2 2 .5 .5 1 1"):
        assert [m.tolist() for m in read(path, text).marginals] == [[0.5, 0.5], [1.0]]
    for text in ("MAR\n1\n1 2 .5 .5", "MAR\n1 2 .5 .5"):
        assert [m.tolist() for m in read(path, text).marginals] == [[0.5, 0.5]]
    for text in ("MPE\n1\n3 0 1 2", "MAP\n3 0 1 2"):
        assert read(path, text).states.tolist() == [0, 1, 2]
    assert read(path, "MPE 1 4").states.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the file ends too early"),
        ("2133 0 0", "1:1: expected PR, MAR, MPE, MAP or MMAP, got '2133'"),
        ("PR\nnan", "2:1: log10 of the partition function must be a number"),
        ("PR\n1 2 3", "2:3: unexpected '2' after"),
        ("MAR\n2 2 .5 .5", "2:10: the file ends too early"),
        ("MAR\n1 2 .5 1.5", "2:5: variable 0 has a marginal that is no probability"),
        ("MAR\n1 99999999999 .5", "2:17: the file ends too early"),
        ("MPE\n3 0 1", "2:1: 3 variables need 3 states or 6 pairs, the file has 2 numbers"),
        ("MPE\n2 0 -1", "2:5: states and variables count from zero, got '-1'"),
    ],
)
def test_bad_results(tmp_path, text, message):
    path = tmp_path / "r"
    with pytest.raises(mf.FormatError) as caught:
        read(path, text)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_every_reference_result_is_read():
    folder = data_path("uai2014")
    seen = set()
    for suffix in ("PR", "MAR", "MAP", "MMAP"):
        for path in sorted(folder.glob(f"*/*.uai.{suffix}")):
            if path.parent.name == "MMAP" and suffix == "MAP":
                continue  # upstream left one there without its header
            result = mio.read_uai_result(path)
            assert result.task == suffix
            for marginal in result.marginals or ():
                assert marginal.sum() == pytest.approx(1, abs=1e-4)
            seen.add(suffix)
    assert seen == {"PR", "MAR", "MAP", "MMAP"}
