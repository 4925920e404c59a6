"""How often the stated errors of lattice measurements hold Kaufman's exact energy, at the default settings.

``python -m benchmarks.approximate.lattice_errors`` (``--quick`` for ten runs of each instead of a hundred). Each run is
``mf.lattice.measure(Ising(...), rng=seed)`` and nothing else. The target is 95 of 100 within three stated errors; were
errors those of a normal distribution, 99.7 would be, and the mean squared deviation one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import Table, machine, save
from markovfield.lattice.measurement import measure
from markovfield.lattice.onsager import critical_coupling, torus_energy, torus_specific_heat
from markovfield.models.ising import Ising

COUPLINGS = (0.3, 0.44, critical_coupling(), 0.5)
TARGET = 0.95


def runs(size: int, coupling: float, seeds: int) -> dict[str, Any]:
    """Deviations in stated errors, over seeds."""
    model = Ising((size, size), coupling, periodic=True)
    exact = {
        "energy": torus_energy((size, size), coupling),
        "specific_heat": torus_specific_heat((size, size), coupling),
    }
    scores: dict[str, list[float]] = {name: [] for name in exact}
    errors, converged, method, started = [], 0, "", time.perf_counter()
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = measure(model, rng=seed)
        for name, value in exact.items():
            average = found.quantities[name]
            scores[name].append((average.mean - value) / average.standard_error)
        errors.append(found.energy.standard_error)
        converged += found.converged
        method = found.method
    return {
        "size": size, "coupling": coupling, "seeds": seeds, "method": method, "converged": converged,
        "error": float(np.mean(errors)), "seconds": (time.perf_counter() - started) / seeds,
        **{f"{name} scores": values for name, values in scores.items()},
    }  # fmt: skip


def main() -> None:
    """All sizes and couplings; at 512 x 512 a tenth of the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ten runs of each")
    seeds = 10 if parser.parse_args().quick else 100
    measure(Ising((8, 8), 0.5, periodic=True), rng=0)  # compiles
    headers = ("lattice", "coupling", "method", "within 3", "1", "mean sq.", "mean", "c within 3", "converged", "s")
    table = Table("Kaufman's energy within stated errors, default settings", headers, first=12, second=9)
    rows = []
    for size in (32, 64, 128, 512):
        for coupling in COUPLINGS:
            row = runs(size, coupling, seeds if size < 512 else max(5, seeds // 10))
            z, heat = np.array(row["energy scores"]), np.abs(row["specific_heat scores"])
            row["met"] = bool((np.abs(z) <= 3).mean() >= TARGET)
            n = row["seeds"]
            table.row(
                f"{size} x {size}", f"{coupling:.4f}", row["method"], f"{(np.abs(z) <= 3).sum()}/{n}",
                f"{(np.abs(z) <= 1).sum()}/{n}", float(np.mean(z**2)), float(z.mean()), f"{(heat <= 3).sum()}/{n}",
                f"{row['converged']}/{n}", row["seconds"],
            )  # fmt: skip
            rows.append(row)
    table.note(
        "within 3, within 1: runs whose energy is as near to the exact one in stated errors; mean sq., mean: of "
        "deviations in stated errors; c: the specific heat; s: seconds of one measurement."
    )
    print(f"target of {TARGET:.0%} within three errors: {'met' if all(r['met'] for r in rows) else 'MISSED'}")
    print(f"written to {save('lattice_errors', {'machine': machine(), 'rows': rows})}")


if __name__ == "__main__":
    main()
