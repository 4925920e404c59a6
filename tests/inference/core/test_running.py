"""Threads, time limits, callbacks: what surrounds a computation never changes its answer."""

from __future__ import annotations

import multiprocessing
import sys

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.junction_tree import plan as planning


def lattice(rows: int = 9, columns: int = 9) -> mf.FactorGraph:
    index = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    rng = np.random.default_rng(0)
    structure = mf.Structure.from_arrays(
        np.full(index.size, 2), 2 * np.arange(len(pairs) + 1), pairs.ravel(), np.zeros(len(pairs), int), n_cells=4
    )
    return mf.FactorGraph(structure, rng.normal(size=4))


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small plans into parts that run side by side."""
    monkeypatch.setattr(planning, "PARALLEL_OPERATIONS", 0.0)
    monkeypatch.setattr(planning, "STEP_OPERATIONS", 1e4)


@pytest.mark.usefixtures("in_parts")
def test_threads_do_not_change_a_bit():
    graph = lattice()
    one = mf.marginals(graph, method="junction_tree", n_jobs=1)
    for jobs in (2, 3):
        several = mf.marginals(graph, method="junction_tree", n_jobs=jobs)
        np.testing.assert_array_equal(one.values, several.values)
        assert one.log_partition == several.log_partition
    np.testing.assert_array_equal(one.expected_counts, several.expected_counts)


def test_parts_agree_with_one_piece(monkeypatch: pytest.MonkeyPatch):
    whole = mf.marginals(lattice(), method="junction_tree")
    monkeypatch.setattr(planning, "PARALLEL_OPERATIONS", 0.0)
    parts = mf.marginals(lattice(), method="junction_tree")
    np.testing.assert_allclose(whole.values, parts.values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(whole.expected_counts, parts.expected_counts, rtol=1e-12)


@pytest.mark.usefixtures("in_parts")
def test_a_callback_hears_of_steps_and_can_stop():
    steps: list[int] = []
    mf.marginals(lattice(), method="junction_tree", callback=lambda progress: steps.append(progress.step))
    assert steps == list(range(1, len(steps) + 1)) and len(steps) > 4
    with pytest.raises(mf.StoppedError, match="callback"):
        mf.marginals(lattice(), method="junction_tree", callback=lambda progress: progress.step > 2)


@pytest.mark.usefixtures("in_parts")
def test_a_time_limit_is_kept():
    with pytest.raises(TimeoutError, match="time limit of 1e-09 s"):
        mf.marginals(lattice(), method="junction_tree", time_limit=1e-9)


@pytest.mark.parametrize(("setting", "message"), [({"n_jobs": 0}, "n_jobs"), ({"time_limit": 0}, "time_limit")])
def test_settings_are_checked(setting: dict, message: str):
    with pytest.raises(mf.ModelError, match=message):
        mf.marginals(lattice(2, 2), **setting)


def _in_child(graph: mf.FactorGraph, pipe) -> None:
    pipe.send(mf.marginals(graph, method="junction_tree", n_jobs=2).log_partition)


@pytest.mark.skipif(sys.platform != "linux", reason="forking is safe to try on Linux only")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("in_parts")
def test_threads_survive_a_fork():
    graph = lattice()
    here = mf.marginals(graph, method="junction_tree", n_jobs=2).log_partition
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(graph, theirs))
    child.start()
    try:
        assert ours.poll(60), "the forked process hangs"
        assert ours.recv() == here
    finally:
        child.kill()
        child.join()
