"""The line that says that kernels are being compiled, and the clock that stands still meanwhile."""

import gc
import time

import pytest

from markovfield import settings
from markovfield.kernels import compilations


def _ours():
    """A function of this package, as the compiler is told of it."""


_ours.__module__ = "markovfield.somewhere"


@pytest.fixture
def watch(monkeypatch):
    made = compilations.Watch()
    monkeypatch.setattr(compilations, "WATCH", made)
    monkeypatch.setattr(compilations, "PATIENCE", 0.0)
    monkeypatch.setattr(settings, "announce_compilation", True)
    return made


def test_one_line_for_all_that_is_compiled_in_a_row(watch, capsys):
    for _ in range(3):
        watch.begin(_ours)
        watch.begin(_ours)
        watch.end()
        watch.end()
    watch.end_burst()
    watch.end_burst()
    assert capsys.readouterr().err == "markovfield: compiling kernels, once per machine ... done in 0 s\n"


def test_the_line_can_be_switched_off(watch, capsys, monkeypatch):
    monkeypatch.setattr(settings, "announce_compilation", False)
    watch.begin(_ours)
    watch.end()
    watch.end_burst()
    assert capsys.readouterr().err == ""


def test_short_compilations_are_not_mentioned(watch, capsys, monkeypatch):
    monkeypatch.setattr(compilations, "PATIENCE", 60.0)
    watch.begin(_ours)
    watch.end()
    watch.end_burst()
    assert capsys.readouterr().err == ""


def test_kernels_of_others_do_not_count(watch, capsys):
    watch.begin(test_kernels_of_others_do_not_count)
    assert not compilations.compiling()
    watch.end()
    assert compilations.seconds_compiling() == 0.0
    assert capsys.readouterr().err == ""


def test_garbage_waits_until_compilation_is_over(watch):
    try:
        for usual in (True, False):
            (gc.enable if usual else gc.disable)()
            watch.begin(_ours)
            watch.begin(_ours)
            assert not gc.isenabled()
            watch.end()
            assert not gc.isenabled()
            watch.end()
            assert gc.isenabled() == usual
            watch.end()
            assert gc.isenabled() == usual
    finally:
        gc.enable()


def test_the_clock_stands_still(watch, monkeypatch):
    now = [10.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    started = compilations.clock()
    now[0] += 1.0
    watch.begin(_ours)
    assert compilations.compiling()
    now[0] += 50.0
    assert compilations.clock() - started == pytest.approx(1.0)
    watch.end()
    assert not compilations.compiling()
    now[0] += 2.0
    assert compilations.clock() - started == pytest.approx(3.0)
    assert compilations.seconds_compiling() == pytest.approx(50.0)
