"""
Segmenting a photograph from a few strokes
==========================================

A Potts prior says that neighbouring pixels tend to belong together; a density of colours for each class says what they
look like (Murphy 19.23). A few pixels labelled by hand are enough to set the densities, and decoding finds the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A photograph of a horse from the reference data where that is there, otherwise a landscape drawn by code. Classes are
# 1 for what is sought and 0 for the rest.

try:
    image = mf.datasets.photograph("horse323_image.png")[::2, ::2]
    truth = (mf.datasets.photograph("horse323_mask.png") > 0)[::2, ::2].astype(int)
    strokes = {
        1: [(75, 55, 100, 140), (20, 32, 50, 45), (85, 170, 65, 180), (110, 60, 140, 48)],
        0: [(10, 5, 60, 10), (20, 110, 35, 195), (150, 90, 130, 199), (8, 80, 10, 190), (150, 5, 120, 10)],
    }
except FileNotFoundError:
    scene = mf.datasets.landscape(rng=0)
    image, truth = scene.image, (scene.labels == 1).astype(int)
    strokes = {
        1: [(80, 8, 110, 10), (112, 90, 100, 150), (75, 20, 78, 60), (70, 135, 90, 150)],
        0: [(5, 10, 20, 150), (104, 30, 104, 85), (62, 108, 85, 120), (50, 115, 55, 116)],
    }

labels = np.full(truth.shape, -1)
for kind, lines in strokes.items():
    for r0, c0, r1, c1 in lines:
        t = np.linspace(0, 1, 120)
        labels[np.rint(r0 + t * (r1 - r0)).astype(int), np.rint(c0 + t * (c1 - c0)).astype(int)] = kind
print(f"{np.mean(labels >= 0):.1%} of {labels.size} pixels are labelled")

# %%
# Colours alone, the Potts prior, and couplings that are weaker where the colours change.


def compare(found):
    """Share of right pixels, and what both agree on over what either has."""
    both, either = np.sum((found == 1) & (truth == 1)), np.sum((found == 1) | (truth == 1))
    return f"{np.mean(found == truth):.1%} right, overlap {both / either:.2f}"


messages = mf.methods.BeliefPropagation(max_iterations=100, tolerance=1e-4)
models = {
    "colours alone": mf.ImageSegmentation(coupling=0.0),
    "Potts prior": mf.ImageSegmentation(coupling=1.5),
    "contrast-sensitive, 8 neighbours": mf.ImageSegmentation(coupling=2.5, connectivity=8, contrast=2.0),
}
found = {}
for name, model in models.items():
    found[name] = model.fit(image, labels).predict(image, messages, labels=labels)
    print(f"{name}: {compare(found[name])}")

figure, axes = plt.subplots(2, 2, figsize=(9, 7.6), layout="constrained")
axes = axes.ravel()
axes[0].imshow(image)
for kind, colour in ((1, "#ff5a36"), (0, "#2b8cff")):
    rows, columns = np.nonzero(labels == kind)
    axes[0].plot(columns, rows, ".", color=colour, markersize=3)
axes[0].set_title("strokes: sought and not", loc="left", fontsize=10)
for ax, (name, mask) in zip(axes[1:], found.items(), strict=True):
    ax.imshow(np.where(mask[..., None] == 1, image, 0.25 * image + 0.75))
    ax.contour(mask, [0.5], colors="#ff5a36", linewidths=0.8)
    ax.set_title(f"{name}\n{compare(mask)}", loc="left", fontsize=10)
for ax in axes:
    ax.set_axis_off()

# %%
# Without any labels, EM finds classes of colour by itself. They need not be what one has in mind (Murphy, end of
# 19.4.3), but they are regions, not specks.

alone = mf.ImageSegmentation(4, coupling=1.2, rng=0, max_iterations=12).fit(image[::2, ::2])
regions = alone.predict(image[::2, ::2], messages)
print(f"EM took {alone.n_iter_} steps; the objective rose from {alone.objective_[0]:.0f} to {alone.objective_[-1]:.0f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
axes[0].imshow(np.clip(alone.observation_.means, 0, 1)[regions])
axes[0].set_title("four classes in their mean colours", loc="left", fontsize=10)
axes[0].set_axis_off()
mf.plot.regions(regions, title="regions: blue large, red small", ax=axes[1])
plt.show()
