"""
Hidden states by margins
========================

A latent structural SVM (Yu and Joachims 2009) gives labels several hidden states, which the data do not tell apart.
Here every class is made of clusters, no two of which a line can separate from the other class. Training fills in hidden
states and solves a convex problem in turn (Murphy's algorithm 19.5): the objective never rises, and where it ends
depends on where it starts.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Two classes, four clusters, as on the fields of a chessboard.

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0]])
cluster = rng.integers(0, 4, 160)
X, y = centres[cluster] + rng.normal(0, 0.45, (160, 2)), np.where(cluster < 2, "black", "white")

# %%
# One state of each class is a line. Two states of each take the clusters apart.

solver = mf.learning.CuttingPlane("one", gap=1e-2)  # few weights: few planes tell everything
line = mf.structured.MulticlassSSVM(1.0, solver=solver).fit(X, y)
settings = {"C": 1.0, "model": mf.structured.MulticlassModel(), "n_hidden": 2, "spread": 1.0, "solver": solver}
starts = [mf.structured.LatentSSVM(**settings, rng=seed).fit(X, y) for seed in range(5)]
paced = mf.structured.LatentSSVM(**settings, pace=1.4, rng=0).fit(X, y)
best = min(starts, key=lambda svm: svm.report_.primal)
for name, svm in (("a line", line), ("the best of five starts", best), ("self-paced", paced)):
    print(f"{name}: {svm.score(X, y):.1%} right")
for svm in starts:
    print("rounds:", ", ".join(f"{value:.1f}" for value in svm.report_.rounds))

# %%
# On the left the objective from round to round; on the right what the best one learnt.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4))
for seed, svm in enumerate(starts):
    left.plot(svm.report_.rounds, marker="o", markersize=3, label=f"start {seed}")
left.plot(paced.report_.rounds, marker="s", markersize=3, color="black", label="self-paced")
left.set(xlabel="round", ylabel="objective", yscale="log", title="it never rises")
left.legend(fontsize=8)
grid = np.stack(np.meshgrid(np.linspace(-2, 4, 120), np.linspace(-2, 4, 120)), axis=-1)
found = best.predict(grid.reshape(-1, 2)).reshape(120, 120) == "white"
right.contourf(grid[..., 0], grid[..., 1], found, levels=1, cmap="Greys_r", alpha=0.35)
right.scatter(*X.T, c=np.where(y == "white", "white", "black"), edgecolor="grey", s=18)
right.set(title="two hidden states of each class", aspect="equal")
fig.tight_layout()
plt.show()
