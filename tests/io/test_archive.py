"""Archives: the same model back, whole or not at all, and nothing but FormatError for files that are none."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from tests.io.damage import damaged
from tests.strategies import Spec, specs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("archive")


def assert_same(a, b) -> None:
    assert type(a) is type(b)
    first, second = a.compile(), b.compile()
    for name in (
        "cardinalities",
        "scope_offsets",
        "scopes",
        "table_offsets",
        "table_strides",
        "child",
        "kind",
    ):
        np.testing.assert_array_equal(getattr(first.structure, name), getattr(second.structure, name), err_msg=name)
    np.testing.assert_array_equal(first.log_tables, second.log_tables)
    assert list(first.variables) == list(second.variables)
    assert [type(v) for v in first.variables] == [type(v) for v in second.variables]
    assert first.names.states == second.names.states
    for position, states in first.names.states.items():
        assert [type(s) for s in states] == [type(s) for s in second.names.states[position]]


@given(spec=specs(), frozen=st.booleans())
def test_any_markov_network_comes_back(folder, spec: Spec, frozen: bool):
    model = spec.build().compile() if frozen else spec.build()
    mio.save(model, folder / "m.mfz")
    assert_same(mio.load(folder / "m.mfz"), model)


@given(spec=specs("bayesian"))
def test_any_bayesian_network_comes_back(folder, spec: Spec):
    model = spec.build()
    mio.save(model, folder / "b.mfz")
    again = mio.load(folder / "b.mfz")
    assert_same(again, model)
    for v in model.variables:
        assert again.parents(v) == model.parents(v)
        np.testing.assert_allclose(again.cpt(v), model.cpt(v), rtol=1e-14)


state_names = st.lists(
    st.one_of(st.text(max_size=5), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.none()),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(states=st.lists(st.one_of(state_names, st.just([False, True])), max_size=4), data=st.data())
def test_names_of_every_sort_come_back(folder, states, data):
    names = st.one_of(st.text(max_size=4), st.integers())
    labels = data.draw(st.lists(names, min_size=len(states), max_size=len(states), unique=True))
    net = mf.MarkovNetwork(dict(zip(labels, states, strict=True)))
    mio.save(net, folder / "n.mfz")
    assert_same(mio.load(folder / "n.mfz"), net)


def test_shared_tables_and_clauses_survive_and_can_be_added_to(tmp_path):
    net = mf.MarkovNetwork(dict.fromkeys("abcd", 3))
    net.add_factors([["a", "b"], ["c", "b"], ["d", "a"]], log_table=np.arange(9.0).reshape(3, 3))
    net.add_clause({"a": 1, "b": 2}, {"c": 0}, weight=1.5)
    mio.save(net, tmp_path / "m")
    again = mio.load(tmp_path / "m")
    assert again.compile().structure.n_cells == 11
    for model in (net, again):
        model.add_variable("e", 2)
        model.add_factor(["e", "a"], [[1, 2, 3], [4, 5, 6]])
        model.add_clause({"e": 1})
    assert_same(again, net)


def test_bayesian_network_can_be_changed_after_loading(tmp_path):
    net = mf.BayesianNetwork({"a": 2, "b": 2})
    net.add_cpt("b", [], [0.5, 0.5])
    net.add_cpt("a", ["b"], [[0.25, 0.75], [0.5, 0.5]])
    mio.save(net, tmp_path / "m")
    again = mio.load(tmp_path / "m")
    again.add_cpt("b", [], [0.25, 0.75])
    assert np.exp(again.compile().table(1)).tolist() == pytest.approx([0.25, 0.75])


def test_a_million_unnamed_variables_are_saved_by_their_number(tmp_path):
    n = 1_000_000
    structure = mf.answers.Structure.from_arrays(np.full(n, 2), np.arange(n + 1), np.arange(n), np.zeros(n), n_cells=2)
    graph = mf.FactorGraph(structure, np.zeros(2))
    mio.save(graph, tmp_path / "m")
    assert mio.load(tmp_path / "m").variables == range(n)
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.getinfo("model.json").file_size < 200


def test_the_same_model_gives_the_same_bytes(tmp_path):
    net = small()
    mio.save(net, tmp_path / "1")
    mio.save(mio.load(tmp_path / "1"), tmp_path / "2")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize("state", [(1, 2), frozenset(), float("inf"), b"x", 1 + 2j])
def test_state_names_that_json_cannot_hold_are_named(tmp_path, state):
    net = mf.MarkovNetwork({"v": ["a", state]})
    with pytest.raises(mf.ModelError, match=r"state .* of variable 'v' cannot be saved"):
        mio.save(net, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_other_models_are_refused(tmp_path):
    with pytest.raises(mf.ModelError, match=r"save\(\) takes a FactorGraph, .*, got dict"):
        mio.save({}, tmp_path / "m")


def test_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    mio.save(small(), path)
    old = path.read_bytes()
    calls = []

    def fail_midway(*arguments, **settings):
        calls.append(1)
        if len(calls) == 4:
            raise OSError("no space left on device")
        return write_array(*arguments, **settings)

    write_array = np.lib.format.write_array
    monkeypatch.setattr(np.lib.format, "write_array", fail_midway)
    with pytest.raises(OSError, match="no space"):
        mio.save(mf.MarkovNetwork({"other": 2}), path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["m"]


def small() -> mf.MarkovNetwork:
    net = mf.MarkovNetwork({"a": ["no", "yes"], 5: 3})
    net.add_factor(["a", 5], [[1, 2, 3], [0, 5, 6]])
    net.add_clause({"a": "yes"}, {5: 2}, weight=2.0)
    return net


def small_bytes(model=None) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        mio.save(model or small(), f"{folder}/m")
        with open(f"{folder}/m", "rb") as stream:
            return stream.read()


def rebuilt(path, *, model=None, compression=zipfile.ZIP_STORED, extra=(), **members):
    """Write the small archive with some members replaced: bytes, an array, or a function of the manifest."""
    with zipfile.ZipFile(io.BytesIO(small_bytes(model))) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    for key, value in members.items():
        name = "model.json" if key == "manifest" else f"{key}.npy"
        if callable(value):
            manifest = json.loads(contents[name])
            value(manifest)
            value = json.dumps(manifest).encode()
        elif isinstance(value, np.ndarray):
            stream = io.BytesIO()
            np.save(stream, value)
            value = stream.getvalue()
        contents[name] = value
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, value in [*contents.items(), *extra]:
            archive.writestr(name, value)
    return path


def test_rebuilding_changes_nothing(tmp_path):
    assert_same(mio.load(rebuilt(tmp_path / "m")), small())


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"manifest": b"[]"}, "model.json is not that of a Markovfield archive"),
        ({"manifest": b"{" * 5}, "Expecting property name"),
        ({"manifest": b"[" * 200_000}, "recursion"),
        (
            {"manifest": lambda m: m.update(version=2)},
            "its version is 2 and this Markovfield reads up to 1; upgrade",
        ),
        ({"manifest": lambda m: m.pop("version")}, "has no version"),
        ({"manifest": lambda m: m.update({"class": "Popen"})}, "it holds a 'Popen', expected one of"),
        ({"manifest": lambda m: m.update({"class": ["FactorGraph"]})}, "expected one of"),
        (
            {"manifest": lambda m: m.update({"class": "BayesianNetwork"})},
            "its tables are larger than its pool",
        ),
        ({"manifest": lambda m: m.update(variables=["a", "a"])}, "it must name its 2 variables, each once"),
        ({"manifest": lambda m: m.update(variables=["a", True])}, "not a list of str and int"),
        ({"manifest": lambda m: m.update(variables=7)}, "not a list of str and int"),
        ({"manifest": lambda m: m.update(states=None)}, "its states are not a list"),
        ({"manifest": lambda m: m.update(states=[[2, ["x"]]])}, "pairs of a variable and its state names"),
        ({"manifest": lambda m: m.update(states=[[0, ["x"]]])}, "variable 'a' has 2 states, not 1"),
        ({"manifest": lambda m: m.update(states=[[0, ["x", "x"]]])}, "are not distinct"),
        ({"manifest": lambda m: m.update(states=[[0, ["x", []]]])}, "not a list of plain values"),
        ({"cardinalities": np.array([2, 0], "i4")}, "counts of at least one|reads outside"),
        ({"scopes": np.array([0, 9, 0, 1], "i4")}, "a scope names a variable that is not there"),
        ({"scope_offsets": np.array([0, 3, 2], "i8")}, "its scope offsets do not fit its scopes"),
        ({"scope_offsets": np.array([], "i8")}, "its scope offsets do not fit its scopes"),
        ({"table_strides": np.array([1], "i8")}, "its arrays differ in length"),
        ({"table_strides": np.array([2**62, 2**62, 0, 1], "i8")}, "reads outside the pool"),
        ({"table_strides": np.array([3, 1, 99, 1], "i8")}, "reads outside the pool"),
        ({"table_offsets": np.array([2**62, 0], "i8")}, "starts outside the pool"),
        ({"table_offsets": np.array([-1, 0], "i8")}, "reads cells -1"),
        ({"kind": np.array([0, 7], "i1")}, "a kind of factor that this version does not know"),
        ({"child": np.array([-1, 3], "i4")}, "marked as a distribution of a variable outside its scope"),
        ({"log_tables": np.full(8, np.nan)}, "nan"),
        ({"log_tables": np.full(8, np.inf)}, "not a number below"),
        ({"log_tables": np.zeros(8, "f4")}, "has the dtype <f4, expected <f8"),
        ({"log_tables": np.zeros((2, 4))}, "not a vector as NumPy writes it"),
        ({"log_tables": b""}, "not a vector as NumPy writes it"),
        ({"log_tables": b"\x93NUMPY\x01\x00\xff\xff"}, "not a vector as NumPy writes it"),
    ],
)
def test_wrong_contents_are_format_errors(tmp_path, members, message):
    path = rebuilt(tmp_path / "m", **members)
    with pytest.raises(mf.FormatError, match=message) as caught:
        mio.load(path)
    assert str(caught.value).startswith(f"{path}: this Markovfield archive cannot be loaded: ")


def test_announced_shapes_are_held_against_the_bytes(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.zeros(8))
    data = stream.getvalue().replace(b"(8,), }          ", b"(800000000,), }  ")
    assert b"800000000" in data
    with pytest.raises(mf.FormatError, match="announces 800000000 entries and holds 64 bytes"):
        mio.load(rebuilt(tmp_path / "m", log_tables=data))


def test_pickles_are_never_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    stream = io.BytesIO()
    np.save(stream, np.array([Trap()], object), allow_pickle=True)
    with pytest.raises(mf.FormatError):
        mio.load(rebuilt(tmp_path / "m", log_tables=stream.getvalue()))
    with pytest.raises(mf.FormatError):
        mio.load(rebuilt(tmp_path / "m", log_tables=pickle.dumps(Trap())))
    assert not (tmp_path / "sprung").exists()


def test_bombs_and_strangers_are_refused(tmp_path):
    bomb = rebuilt(tmp_path / "m", compression=zipfile.ZIP_DEFLATED, log_tables=np.zeros(10**6))
    with pytest.raises(mf.FormatError, match="is compressed, and archives are stored"):
        mio.load(bomb)
    with pytest.raises(mf.FormatError, match="which is no vector"):
        mio.load(rebuilt(tmp_path / "m", extra=[("../evil", b"")]))
    vector = io.BytesIO()
    np.save(vector, np.zeros(3))
    with pytest.raises(mf.FormatError, match="and no others"):
        mio.load(rebuilt(tmp_path / "m", extra=[("evil.npy", vector.getvalue())]))
    for junk in (b"", b"PK", b"MARKOV 0 0", os.urandom(2000)):
        (tmp_path / "m").write_bytes(junk)
        with pytest.raises(mf.FormatError, match="cannot be loaded"):
            mio.load(tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        mio.load(tmp_path / "absent")


def test_a_network_cannot_blow_up_its_tables_with_strides_of_zero(tmp_path):
    net = mf.BayesianNetwork({"a": 1})
    net.add_cpt("a", [], [1.0])
    path = rebuilt(
        tmp_path / "m",
        model=net,
        cardinalities=np.array([2**31 - 1], "i4"),
        table_strides=np.array([0], "i8"),
    )
    with pytest.raises(mf.FormatError, match="larger than its pool"):
        mio.load(path)


def test_truncation_anywhere_is_a_format_error(tmp_path):
    data = small_bytes()
    for end in range(len(data)):
        (tmp_path / "m").write_bytes(data[:end])
        with pytest.raises(mf.FormatError):
            mio.load(tmp_path / "m")


WHOLE = small_bytes()


@given(data=st.data())
def test_damage_anywhere_is_a_format_error_or_harmless(folder, data):
    (folder / "d.mfz").write_bytes(data.draw(damaged(WHOLE)))
    try:
        model = mio.load(folder / "d.mfz")
    except mf.FormatError:
        return
    model.compile()


def test_a_networks_name_and_properties_are_kept(tmp_path: Path):
    net = mf.BayesianNetwork({"a": 2, 7: 2})
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt(7, ["a"], [[0.5, 0.5], [0.1, 0.9]])
    net.name, net.properties = "pair", {None: ("by hand",), 7: ("x = 1", "y = 2")}
    mf.save(net, tmp_path / "pair.mfz")
    loaded = mf.load(tmp_path / "pair.mfz")
    assert loaded.name == "pair" and loaded.properties == net.properties
    for wrong in ({"name": 3}, {"properties": [["z", ["text"]]]}, {"properties": [[7, "text"]]}, {"properties": 5}):
        damaged = tmp_path / "damaged.mfz"
        change_manifest(tmp_path / "pair.mfz", damaged, wrong)
        with pytest.raises(mf.FormatError, match=r"its name is|its properties"):
            mf.load(damaged)


def change_manifest(path: Path, target: Path, change: dict[str, Any]) -> None:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == "model.json":
                data = json.dumps(json.loads(data) | change).encode()
            new.writestr(info.filename, data)


def test_models_that_compile_and_estimators_are_saved_too(tmp_path):
    path = tmp_path / "m"
    mf.save(mf.Ising((3, 3), 0.4, 0.1), path)
    again = mf.load(path)
    assert float(mf.log_partition(again)) == pytest.approx(float(mf.log_partition(mf.Ising((3, 3), 0.4, 0.1))))
    crf = mf.ChainCRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["X", "Y"], ["Y", "X"]])
    mf.save(crf, path)
    assert mf.load(path).predict([[["a"], ["b"]]]) == crf.predict([[["a"], ["b"]]])
    with pytest.raises(mf.ModelError, match="or what compiles to one, got dict"):
        mf.save({}, path)


def test_a_folder_that_is_not_there_is_named_by_the_file_asked_for(tmp_path: Path):
    path = tmp_path / "nowhere" / "net.mfz"
    with pytest.raises(FileNotFoundError) as error:
        mf.save(mf.datasets.sprinkler(), path)
    assert error.value.filename == str(path) and ".tmp" not in str(error.value)
