"""Chains in files: the same model comes back, damaged files are refused, an interrupted save destroys nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from markovfield import files
from markovfield.sequence.chain.crf import ChainCRF
from tests.io.damage import damaged, format_error
from tests.sequence.chain.test_chain_crf import EDGES, X, Y

KINDS = {
    "plain": ({}, None),
    "constrained": ({"constraints": "iob2"}, None),
    "hashed": ({"hashing": 32}, None),
    "second": ({"order": 2}, None),
    "latent": ({"hidden_states": 2, "rng": 0}, None),
    "edges": ({"l1": 0.3}, EDGES),
}


def fitted(kind: str) -> tuple[ChainCRF, list, list | None]:
    kwargs, edges = KINDS[kind]
    labels = Y if kind != "constrained" else [[{"A": "O", "B": "B-X", "C": "B-Y"}[k] for k in own] for own in Y]
    return ChainCRF(max_iterations=15, **kwargs).fit(X, labels, edges=edges), labels, edges


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_same_model_comes_back(kind: str, tmp_path: Path):
    crf, labels, edges = fitted(kind)
    path = tmp_path / "model.mf"
    crf.save(path)
    again = mio.load(path)
    assert isinstance(again, ChainCRF)
    assert again.classes_ == crf.classes_ and again.get_params() == crf.get_params()
    assert again.predict(X, edges=edges) == crf.predict(X, edges=edges)
    np.testing.assert_array_equal(
        again.log_likelihood(X, labels, edges=edges), crf.log_likelihood(X, labels, edges=edges)
    )
    assert again.state_features_ == crf.state_features_ and again.edge_features_ == crf.edge_features_
    assert again.report_ == crf.report_
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first
    assert again.set_params(warm_start=True, max_iterations=3).fit(X, labels, edges=edges).score(X, labels, edges=edges)


@pytest.mark.parametrize("kind", ["plain", "edges", "constrained", "second"])
def test_weights_of_four_bytes(kind: str, tmp_path: Path):
    crf, labels, edges = fitted(kind)
    small = ChainCRF(**{**crf.get_params(), "dtype": "float32"}).fit(X, labels, edges=edges)
    assert small.model_.weights.dtype == np.float32
    assert small.predict(X, edges=edges) == crf.predict(X, edges=edges)
    for a, b in zip(small.predict_proba(X, edges=edges), crf.predict_proba(X, edges=edges), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    for name, model in (("small", small), ("large", crf)):
        model.save(tmp_path / name)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "large").stat().st_size
    again = mio.load(tmp_path / "small")
    assert again.model_.weights.dtype == np.float32 and again.predict(X, edges=edges) == small.predict(X, edges=edges)
    again.set_params(warm_start=True).fit(X, labels, edges=edges)
    with pytest.raises(mf.ModelError, match="dtype must be"):
        ChainCRF(dtype="float16").fit(X, labels)


def test_labels_of_other_types(tmp_path: Path):
    crf = ChainCRF(max_iterations=5).fit(X, [["ABC".index(k) for k in own] for own in Y])
    crf.save(tmp_path / "numbers.mf")
    assert mio.load(tmp_path / "numbers.mf").classes_ == [0, 1, 2]
    odd = ChainCRF(max_iterations=2).fit(X, [[(k, 1) for k in own] for own in Y])
    with pytest.raises(mf.ModelError, match="cannot be saved"):
        odd.save(tmp_path / "odd.mf")
    assert not (tmp_path / "odd.mf").exists()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("chains") / "model.mf"
    # Attributes of single sequences have pairs, the others rows.
    noisy = [[{**token, f"noise{s}": 1.0} for token in x] for s, x in enumerate(X)]
    ChainCRF(max_iterations=15).fit(noisy, Y, edges=EDGES).save(path)
    return path, path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_or_harmless(saved: tuple[Path, bytes], data: st.DataObject):
    path, whole = saved
    broken = path.with_name("broken.mf")
    broken.write_bytes(data.draw(damaged(whole)))
    if format_error(mio.load, broken) is None:
        # What is left is a model; kernels must not trip over it.
        mio.load(broken).predict(X, edges=EDGES)


def test_truncated_files_are_refused(saved: tuple[Path, bytes]):
    path, whole = saved
    broken = path.with_name("short.mf")
    for length in np.linspace(0, len(whole) - 1, 15).astype(int):
        broken.write_bytes(whole[:length])
        assert "cannot be loaded" in (format_error(mio.load, broken) or "")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("row_of", lambda a: a[:-1], "do not fit its attributes"),
        ("row_of", lambda a: a + 1000, "row that is not there"),
        ("row_cells", lambda a: a + 10**6, "outside of its table"),
        ("pair_label", lambda a: a + 50, "label that is not there"),
        ("pair_start", lambda a: a[::-1].copy(), "do not fit its attributes"),
        ("transition_cells", lambda a: a + 7, r"label that is not there|outside of its table"),
        ("edge_cell", lambda a: a - 100, "outside of its table"),
        ("edge_start", lambda a: a * 2, "do not fit its attributes"),
        ("triple_cells", lambda a: np.zeros(1, np.int64), "has triples"),
        ("weights", lambda a: a[:-1], "weights for"),
        ("weights", lambda a: a * np.nan, "not finite"),
        ("weights", lambda a: a.astype(np.int64), "of another type"),
    ],
)
def test_numbers_that_kernels_would_trip_over(saved: tuple[Path, bytes], tmp_path: Path, name, change, message: str):
    path, _ = saved
    kept = {}
    files.read_archive(path, 1, lambda about, arrays: kept.update(about=about, arrays=arrays) or 0)
    about = {k: v for k, v in kept["about"].items() if k not in ("format", "version")}
    arrays = {**kept["arrays"], name: change(kept["arrays"][name])}
    broken = tmp_path / "broken.mf"
    files.write_archive(broken, 1, about, arrays)
    with pytest.raises(mf.FormatError, match=message):
        mio.load(broken)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", []), ("labels", ["A", "A", "B"]), ("labels", [["A"], "B", "C"]), ("labels", ["C", "B", "A"]),
        ("settings", []), ("settings", {"hidden_states": 0}), ("settings", {"hidden_states": 2}), ("n_rows", -1),
        ("order", 3), ("vectoriser", None), ("vectoriser", {"min_count": 1}), ("report", {"solver": "x"}),
        ("settings", {"constraints": "iob2"}), ("edge_vectoriser", None),
    ],
)  # fmt: skip
def test_descriptions_that_make_no_sense(saved: tuple[Path, bytes], tmp_path: Path, name: str, value):
    path, _ = saved
    kept = {}
    files.read_archive(path, 1, lambda about, arrays: kept.update(about=about, arrays=arrays) or 0)
    about = {k: v for k, v in kept["about"].items() if k not in ("format", "version")}
    broken = tmp_path / "broken.mf"
    files.write_archive(broken, 1, {**about, name: value}, kept["arrays"])
    with pytest.raises(mf.FormatError, match="cannot be loaded"):
        mio.load(broken)


def test_an_interrupted_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    crf, _, _ = fitted("plain")
    path = tmp_path / "model.mf"
    crf.save(path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        ChainCRF(l2=9.0, max_iterations=3).fit(X, Y).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_checkpoints_are_models_to_go_on_from(tmp_path: Path):
    path = tmp_path / "checkpoint.mf"
    ChainCRF(l2=0.5, checkpoint=path, checkpoint_every=4, max_iterations=9).fit(X, Y)
    half = mio.load(path)
    same = ChainCRF(l2=0.5, max_iterations=8).fit(X, Y)
    np.testing.assert_array_equal(half.model_.weights, same.model_.weights)
    assert half.report_.message == "a checkpoint"
    best = ChainCRF(l2=0.5, tolerance=1e-10).fit(X, Y)
    resumed = half.set_params(warm_start=True, max_iterations=None, tolerance=1e-10).fit(X, Y)
    assert resumed.report_.objective == pytest.approx(best.report_.objective, rel=1e-8)
    assert resumed.report_.history[0] < best.report_.history[5]
