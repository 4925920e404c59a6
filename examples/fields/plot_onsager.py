"""
The Ising model and Onsager's solution
======================================

Energy and magnetisation of the two-dimensional Ising model, simulated on 64 x 64 sites, beside what is known
exactly: Onsager's energy of the infinite lattice, Yang's spontaneous magnetisation, and Kaufman's energy of the very
lattice that was simulated. At the critical coupling the infinite lattice has a singularity, which the finite one rounds
off.

The third picture shows why cluster moves matter: how long a sweep remembers the magnetisation, for single-site
heat-bath updates and for Swendsen and Wang's clusters.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

size, critical = 64, mf.lattice.critical_coupling()
couplings = np.linspace(0.30, 0.58, 13)
fine = np.linspace(0.28, 0.60, 400)

energies, errors, orders = [], [], []
for coupling in couplings:
    simulation = mf.LatticeSimulation(mf.Ising((size, size), coupling, periodic=True), method="swendsen_wang", rng=1)
    simulation.run(200)
    record = simulation.run(800)
    energies.append(record.mean("energy"))
    errors.append(record.standard_error("energy"))
    orders.append(np.abs(record.magnetisation).mean())
exact = [mf.lattice.torus_energy((size, size), c) for c in couplings]
off = (np.array(energies) - exact) / errors
print(f"energies are off Kaufman's by {np.abs(off).max():.1f} standard errors at most")

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
left.plot(fine, [mf.lattice.ising_energy(c) for c in fine], color="0.6", label="Onsager, infinite lattice")
left.plot(
    fine,
    [mf.lattice.torus_energy((size, size), c) for c in fine],
    color="tab:blue",
    lw=1,
    label=f"Kaufman, {size} x {size}",
)
left.errorbar(couplings, energies, errors, fmt="o", ms=4, color="tab:red", label="simulated")
left.set(xlabel="coupling", ylabel="energy a site", title="Energy")
left.legend()
middle.plot(fine, [mf.lattice.ising_magnetisation(c) for c in fine], color="0.6", label="Yang, infinite lattice")
middle.plot(couplings, orders, "o", ms=4, color="tab:red", label=f"simulated, {size} x {size}")
middle.axvline(critical, color="0.8", lw=1)
middle.set(xlabel="coupling", ylabel="|magnetisation|", title="Magnetisation")
middle.legend()

# %%
# Autocorrelation times of the magnetisation at the critical coupling, in sweeps.

sides = [8, 16, 32, 64]
for method, colour in (("gibbs", "tab:orange"), ("swendsen_wang", "tab:green")):
    times = []
    for side in sides:
        sweeps = 60_000 if method == "gibbs" else 4_000
        simulation = mf.LatticeSimulation(mf.Ising((side, side), critical, periodic=True), method=method, rng=2)
        simulation.run(sweeps // 10)
        times.append(mf.diagnostics.autocorrelation_time(np.abs(simulation.run(sweeps).magnetisation)))
    print(f"{method:14s}", *(f"{side}: {t:.0f}" for side, t in zip(sides, times, strict=True)))
    right.loglog(sides, times, "o-", color=colour, label=method)
right.set(xlabel="side of the lattice", ylabel="sweeps", title="Autocorrelation time at the critical coupling")
right.set_xticks(sides, [str(s) for s in sides])
right.minorticks_off()
right.legend()
