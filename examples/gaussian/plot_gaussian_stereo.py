"""
Depth by a Gaussian field, with contrast
========================================

The Gaussian conditional random field of stereo vision (Murphy 19.68 and 19.69): disparities of neighbours differ by a
normal amount. It smooths over the borders of things, unless neighbours of different colour are allowed to differ more.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import uniform_filter

import markovfield as mf

# %%
# The Tsukuba pair at half its size from the reference data, or squares of random dots.

try:
    pair, scene = mf.datasets.stereo_pair("tsukuba", step=2), "Tsukuba"
except FileNotFoundError:
    pair, scene = mf.datasets.random_dots((80, 110), noise=0.06, rng=0), "random dots"
shape = pair.disparity.shape
grey = pair.left if pair.left.ndim == 2 else pair.left.mean(axis=2)

# %%
# The local term is not Gaussian: it has a value for each disparity. Near its best it is, with the mean and the variance
# of disparities under it: pixels on walls without texture say little, and say so by a large variance. Costs are added
# up over small windows (Murphy, after 19.68), since a single pixel may agree with many.

costs = 5 * uniform_filter(mf.StereoMatching(pair.max_disparity).costs(pair.left, pair.right), size=(5, 5, 1))
weights = np.exp(-(costs - costs.min(axis=2, keepdims=True)))
weights /= weights.sum(axis=2, keepdims=True)
disparities = np.arange(weights.shape[2])
seen = weights @ disparities
variance = weights @ disparities**2 - seen**2 + 0.1

# %%
# Edges of a lattice come axis by axis. A step of brightness along an edge lowers the precision of their difference.

down, across = np.abs(np.diff(grey, axis=0)), np.abs(np.diff(grey, axis=1))
contrast = np.concatenate([down.ravel(), across.ravel()])


def plane(precision, softness):
    """A first-order walk on the pixels; with a softness, one that is loose where brightness changes."""
    loose = np.ones(contrast.size) if softness is None else 0.02 + np.exp(-contrast / softness)
    return mf.GaussianMarkovField(shape, kind="rw1", precision=precision, weights=loose)


priors = {"smooth (19.69)": (1.0, None), "very smooth": (16.0, None), "very smooth but at contrasts": (16.0, 0.02)}
found = {"the local term alone": seen}
for name, (precision, softness) in priors.items():
    answer = mf.marginals(plane(precision, softness), seen, noise=variance)
    found[name] = answer.mean
    print(f"{name:>28}: log Z {answer.log_partition:.1f}, {answer.guarantee}, {answer.seconds:.2f} s")
for name, image in found.items():
    print(f"{name:>28}: {mf.vision.disparity_error(np.rint(image).astype(int), pair.disparity):.1%} bad pixels")

# %%
# What is very smooth runs over borders, and contrast gives much of them back: on Tsukuba the fewest bad pixels, among
# random dots, which have contrasts everywhere, as few as a little smoothness. Robust potentials (19.70)
# keep borders better than any Gaussian, which has one exact answer in a moment.

limits = (0.0, float(pair.max_disparity))
images = [np.nan_to_num(pair.disparity), *found.values()]
heading = f"Disparities of {scene}"
mf.plot.image_grid(images, ["truth", *found], n_columns=2, limits=limits, cmap="viridis", heading=heading)

plt.show()
