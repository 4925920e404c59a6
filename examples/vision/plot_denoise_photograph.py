"""
Taking noise off a photograph
=============================

Grey levels are the states of a Markov random field on the pixels: neighbours tend to be alike, but a jump costs no more
than so much, so that edges stay sharp (Murphy 19.70). Belief propagation finds the mean and the likeliest image.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The brightness of a photograph from the reference data, or of a landscape drawn by code, with noise upon it.

try:
    clean = mf.datasets.photograph("horse323_image.png").mean(axis=2)[::2, ::2]
except FileNotFoundError:
    clean = mf.datasets.landscape(noise=0.02, rng=0).image.mean(axis=2)
level = 0.12
noisy = np.clip(clean + np.random.default_rng(1).normal(scale=level, size=clean.shape), 0.0, 1.0)


def signal_to_noise(image):
    """Peak signal-to-noise ratio in decibels."""
    return -10 * np.log10(np.mean((image - clean) ** 2))


# %%
# Thirty-two grey levels; the likelihood of what was seen is normal. A pair costs its distance in levels, up to a cut.
# Such a distance potential has few cells and its messages cost as much as there are levels, not their square.


def grey_field(seen, level, *, weight=0.3, cut=6, n_levels=32):
    """The posterior of the levels given what was seen; nan says nothing."""
    pixel = np.arange(seen.size).reshape(seen.shape)
    net = mf.MarkovNetwork(dict.fromkeys(range(seen.size), n_levels))
    across = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()], axis=1)
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()], axis=1)
    net.add_truncated(np.concatenate([across, down]).tolist(), weight, cut)
    grey = (np.arange(n_levels) + 0.5) / n_levels
    # Pixels of one of 256 values share a table.
    rounded = np.rint(seen * 255)
    for value in np.unique(rounded[np.isfinite(rounded)]):
        unary = -((value / 255 - grey) ** 2) / (2 * level**2)
        net.add_factors(pixel[rounded == value][:, None].tolist(), log_table=unary)
    return net, grey


# %%
# The mean of each pixel's marginal has the least squared error that the model expects; the likeliest image is
# flatter.

net, grey = grey_field(noisy, level)
started = time.perf_counter()
method = mf.methods.BeliefPropagation("synchronous", max_iterations=15, tolerance=1e-3)
with warnings.catch_warnings():
    # A few sweeps are enough for an image; the answers say that they were stopped early.
    warnings.filterwarnings("ignore", message=".*did not converge.*")
    answer = mf.marginals(net, method=method)
    best = mf.decode(net, method=method)
mean = (answer.values.reshape(-1, len(grey)) @ grey).reshape(clean.shape)
likeliest = grey[best.states].reshape(clean.shape)
images = {"clean": clean, "with noise": noisy, "posterior mean": mean, "likeliest image": likeliest}
for name, image in list(images.items())[1:]:
    print(f"{signal_to_noise(image):5.1f} dB: {name}")
print(f"{clean.size} pixels, {len(grey)} levels, {time.perf_counter() - started:.1f} s")

titles = ["clean", *(f"{name}, {signal_to_noise(p):.1f} dB" for name, p in list(images.items())[1:])]
mf.plot.image_grid(list(images.values()), titles, n_columns=2, cmap="gray", width=9)

# %%
# What was never seen can be filled in by the same model: a pixel without data has no unary factor.

holes = noisy.copy()
rows, columns = clean.shape
holes[rows // 3 : rows // 3 + 6, columns // 6 : columns // 2] = np.nan
holes[:, 3 * columns // 4 : 3 * columns // 4 + 4] = np.nan
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*did not converge.*")
    answer = mf.marginals(grey_field(holes, level)[0], method=method)
filled = (answer.values.reshape(-1, len(grey)) @ grey).reshape(clean.shape)
mf.plot.image_grid(
    [np.nan_to_num(holes), filled],
    ["holes", f"filled, {signal_to_noise(filled):.1f} dB"],
    n_columns=2,
    cmap="gray",
    width=9,
)
plt.show()
