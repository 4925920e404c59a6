"""
Potts models around the critical coupling
=========================================

Samples of a 10-state Potts model on a lattice of 128 x 128 sites (Murphy, figure 19.8). Regions of equal state are
coloured by their size: blue is largest, red is smallest. Below the critical coupling there are many small regions;
above it one state takes over. Murphy gives 1.44 as the critical coupling; the exact value is log(1 + sqrt(10)), about
1.426, and the transition is of first order, so that a few hundredths on either side make all the difference.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

critical = mf.lattice.critical_coupling(10)
print(f"the critical coupling is log(1 + sqrt(10)) = {critical:.4f}")

figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for ax, coupling in zip(axes, (1.40, critical, 1.46), strict=True):
    model = mf.Potts((128, 128), 10, coupling, periodic=True)
    simulation = mf.LatticeSimulation(model, method="swendsen_wang", rng=7)
    record = simulation.run(1500)
    labels, sizes = simulation.clusters()
    mf.plot.regions(simulation.state, ax=ax, periodic=True, title=f"coupling {coupling:.3f}")
    largest = 100 * np.max(sizes) / labels.size
    order = record.magnetisation[-1]
    print(f"{coupling:.3f}: {len(sizes):5d} regions, the largest has {largest:4.1f} % of the sites; order {order:.3f}")
