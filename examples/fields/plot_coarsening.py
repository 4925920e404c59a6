"""
A quenched magnet, filmed
=========================

An Ising model on 128 x 128 sites starts in disorder and is cooled at once: domains form and grow, and their borders
straighten. ``mf.plot.animate`` makes a film of the frames that a simulation hands out, which can be saved as a GIF. The
last picture shows how the energy falls towards that of the ground state.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import markovfield as mf

simulation = mf.LatticeSimulation(mf.Ising((128, 128), 0.7, periodic=True), method="gibbs", rng=4)
frames = list(simulation.frames(40, every=5))
film = mf.plot.animate(frames, titles=[f"{5 * i} sweeps" for i in range(len(frames))])
path = Path(tempfile.mkdtemp()) / "coarsening.gif"
film.save(path, writer="pillow")
print(f"{path.name}: {len(frames)} frames, {simulation.sweeps} sweeps")

# %%
# The same at four moments, and on.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, i in zip(axes[:3], (1, 8, 39), strict=True):
    mf.plot.spins(frames[i], ax=ax, title=f"after {5 * i} sweeps")
record = simulation.run(3000)
axes[3].semilogx(record.sweep, record.energy, color="tab:blue")
axes[3].axhline(-2 * 0.7, color="0.7", lw=1)
axes[3].set(xlabel="sweeps", title="Energy a site")
axes[3].set_xticks([200, 500, 1000, 3000], ["200", "500", "1000", "3000"])
axes[3].minorticks_off()
print(f"energy {record.energy[-1]:.4f}, of all spins equal {-2 * 0.7:.4f}")
