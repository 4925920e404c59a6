"""
Learning to segment: edges that see contrast
============================================

`ImageSegmentation` is told how much neighbours attract each other; a conditional random field learns that, and where
they do not, from labelled images (Murphy 19.6.2.1). Here half of a photograph, every other tile of it, is labelled, and
the other half is to be found.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A horse from the reference data where that is there, otherwise a landscape drawn by code. Tiles are images of their
# own, of slightly different sizes: no pixel of the other half is looked at in training.

try:
    scene = mf.datasets.horse(4)
except FileNotFoundError:
    scene = mf.datasets.landscape((44, 60), noise=0.15, rng=0)
image, truth = scene.image, scene.labels
rows, columns = (np.array_split(np.arange(n), parts) for n, parts in zip(truth.shape, (4, 5), strict=True))
tiles = [np.ix_(r, c) for i, r in enumerate(rows) for j, c in enumerate(columns) if (i + j) % 2 == 0]
hidden = np.ones(truth.shape, bool)
for tile in tiles:
    hidden[tile] = False
print(f"{len(tiles)} labelled tiles of about {truth[tiles[0]].shape} pixels; classes {', '.join(scene.classes)}")

# %%
# The same pixels' colours for all. Without edges this is logistic regression; with edges of constant weights a trained
# Potts model; and edges may also see ``exp(-beta d^2)`` of the distance d between colours. Training maximises the
# likelihood, as tree-reweighted messages bound it.

models = {
    "colours alone": mf.GridCRF(edge_features=None),
    "edges alike": mf.GridCRF(edge_features="constant"),
    "edges that see contrast": mf.GridCRF(edge_features="contrast"),
}
found = {}
for name, crf in models.items():
    started = time.perf_counter()
    crf.fit([image[tile] for tile in tiles], [truth[tile] for tile in tiles])
    seconds = time.perf_counter() - started
    found[name] = crf.predict([image])[0]
    right = np.mean((found[name] == truth)[hidden])
    print(f"{name:>24}: {right:.1%} of pixels without labels right; {crf.report_.iterations} steps, {seconds:.1f} s")

# %%
# What the edges have learned, as log-odds that two neighbours agree rather than differ: much where colours are equal,
# less where they change.

base, contrast = models["edges that see contrast"].coef_["edges"]
same = [(k * (2 * len(scene.classes) - k + 1)) // 2 for k in range(len(scene.classes))]
for label, table in (("colours that differ", base), ("colours that are equal", base + contrast)):
    apart = np.delete(table, same)
    print(f"{label}: agreeing is worth {table[same].mean() - apart.mean():+.2f}")

# %%
# The map on the right says where the model is in doubt: the entropy of each pixel's label.

entropy = models["edges that see contrast"].predict_entropy([image])[0]
figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
axes = axes.ravel()
axes[0].imshow(np.where(hidden[..., None], image, 0.5 * image + 0.5 * plt.cm.tab10(truth)[..., :3]))
axes[0].set_title("tiles with labels", loc="left", fontsize=10)
axes[1].imshow(truth, cmap="tab10", vmin=0, vmax=9)
axes[1].set_title("truth", loc="left", fontsize=10)
axes[2].imshow(entropy, cmap="magma", vmin=0)
axes[2].set_title("doubt (entropy)", loc="left", fontsize=10)
for ax, (name, labels) in zip(axes[3:], found.items(), strict=True):
    ax.imshow(labels, cmap="tab10", vmin=0, vmax=9)
    ax.set_title(f"{name}: {np.mean((labels == truth)[hidden]):.1%}", loc="left", fontsize=10)
for ax in axes:
    ax.set_axis_off()
plt.show()
