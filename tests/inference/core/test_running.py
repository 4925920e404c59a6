"""How long a computation may take, and by which clock."""

import time

import pytest

from markovfield.inference.core.running import Running
from markovfield.kernels import compilations


def _kernel():
    """A function of this package, as the compiler is told of it."""


_kernel.__module__ = "markovfield.somewhere"


def test_a_time_limit_counts_no_compilation(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(compilations, "WATCH", compilations.Watch())
    running = Running(time_limit=5.0)
    compilations.WATCH.begin(_kernel)
    now[0] += 60.0
    running.check()
    assert running.seconds == pytest.approx(0.0)
    assert running.seconds_left == pytest.approx(5.0)
    compilations.WATCH.end()
    now[0] += 4.0
    running.check()
    assert running.within(0.5).time_limit == pytest.approx(4.5)
    now[0] += 2.0
    with pytest.raises(TimeoutError):
        running.check()
