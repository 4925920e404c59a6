"""What `make test-bounds` stands on: with NUMBA_BOUNDSCHECK=1, an index beyond an array is an IndexError."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from markovfield.kernels.union_find import find

# A parent beyond the forest: without checks, whatever lies behind the array is read.
SCRIPT = """
import numpy as np
from markovfield.kernels.union_find import find
find(np.array([7, 1], np.int32), 0)
"""


def test_indices_are_checked(tmp_path: Path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "IndexError" in done.stderr, done.stderr


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="run by make test-bounds")
def test_this_run_checks_indices():
    """Compiled code is found by its source alone: a cache shared with other runs would be one without checks."""
    with pytest.raises(IndexError):
        find(np.array([7, 1], np.int32), 0)
