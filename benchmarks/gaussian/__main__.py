"""Gaussian models against their peers in one run: ``python -m benchmarks.gaussian [--sections lattices] [--quick]``.

Sections: ``lattices`` (sparse Cholesky: factor, draw, all variances), ``graphical_lasso``, ``time_series`` (vector
autoregressions, Kalman smoother). Seconds are of the processor, one thread, medians of runs in which we and the peers
take turns.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import importlib

# A section is a module of this folder with `run(quick) -> results`.
SECTIONS = ("lattices", "graphical_lasso", "time_series")


def main() -> None:
    """Run the sections asked for, and write what they found."""
    from benchmarks.measure import machine, save

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaussian", description=__doc__)
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, one run")
    given = parser.parse_args()
    results = {"machine": machine()}
    for section in given.sections.split(","):
        results[section] = importlib.import_module(f"benchmarks.gaussian.{section}").run(given.quick)
    save("gaussian", results)


if __name__ == "__main__":
    main()
