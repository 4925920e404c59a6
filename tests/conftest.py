"""Settings shared by all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# Kernels compile on first use, so one example may take seconds: no deadline. `make test` sees the same examples on
# every run and machine, so that a change is judged by itself; HYPOTHESIS_PROFILE=explore (or thorough) tries new ones.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("same", max_examples=40, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=40, print_blob=True, **_COMMON)
settings.register_profile("thorough", max_examples=1000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "same")

# A shell's background jobs ignore Ctrl-C, and with them every test that presses it would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
