"""
Stereo that learns how disparities jump
=======================================

`StereoMatching` is told how much it costs neighbours to have different disparities, and from where on a larger jump
costs no more (Murphy 19.69, 19.70). A conditional random field learns all of that from labelled pixels (Murphy
19.6.2.7): one weight for the matching costs, one for each size of a jump, and these anew for edges of low and of high
contrast.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The Tsukuba pair at half its size where it is there, otherwise squares of random dots, of which some pixels have no
# known disparity. Every other strip of columns is labelled; tests are on the strips between. What a disparity costs by
# itself comes from `StereoMatching`, as scores of each class.

try:
    pair = mf.datasets.stereo_pair("tsukuba", step=2)
except FileNotFoundError:
    pair = mf.datasets.random_dots((36, 54), (2, 4, 6), noise=0.12, rng=0)
known = np.isfinite(pair.disparity)
inside = np.ix_(np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0)))
labels = np.where(known, np.floor(np.nan_to_num(pair.disparity) + 0.5), -1).astype(int)[inside]
left = pair.left[inside]
strips = np.array_split(np.arange(labels.shape[1]), 6)
seen = np.unique(np.concatenate([labels[:, s].ravel() for s in strips[::2]]))
classes = seen[seen >= 0]
matching = mf.StereoMatching(pair.max_disparity, data="birchfield_tomasi")
scores = -matching.costs(pair.left, pair.right)[inside][..., classes]
X, y = [(left[:, s], scores[:, s]) for s in strips[::2]], [labels[:, s] for s in strips[::2]]
test = np.concatenate(strips[1::2])
print(f"{labels.shape[0]} x {labels.shape[1]} pixels, disparities {classes.tolist()}")


def errors(found):
    """Share of test pixels with another disparity than the true one, and of those that are off by more than one."""
    off = np.abs(found - labels)[:, test][labels[:, test] >= 0]
    return f"{np.mean(off > 0):.1%} differ, {np.mean(off > 1):.1%} by more than one"


# %%
# Three models, learned by 25 steps each: the costs alone, a weight for each jump of 0, 1, 2 or at least 3, and the same
# for three levels of contrast between the pixels.

settings = {"node_features": None, "unknown": -1, "solver": mf.learning.LBFGS(max_iterations=25)}
jumps = {"interaction": "distance", "truncation": 3}
models = {
    "costs alone": mf.GridCRF(edge_features=None, **settings),
    "learned jumps": mf.GridCRF(edge_features="constant", **jumps, **settings),
    "learned jumps by contrast": mf.GridCRF(edge_features="binned", n_bins=3, **jumps, **settings),
}
found = {}
for name, crf in models.items():
    started = time.perf_counter()
    crf.fit(X, y)
    seconds = time.perf_counter() - started
    found[name] = crf.predict([(left, scores)])[0]
    print(f"{name:>26}: {errors(found[name])}; {len(crf.weights_)} weights, {seconds:.1f} s")
# By hand, any disparity may be the answer, also one that no pixel of the labelled strips has.
by_hand = mf.StereoMatching(pair.max_disparity, data="birchfield_tomasi", smoothness="truncated_linear", weight=1.2)
found["set by hand"] = by_hand.predict(pair.left, pair.right)[inside]
print(f"{'set by hand':>26}: {errors(found['set by hand'])}")

# %%
# What has been learned: the curve bends over by itself, so that a truncation is found and not set, and jumps cost less
# where the contrast is high.

figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
tables = models["learned jumps by contrast"].coef_["edges"]
for weights, level in zip(tables, ("high", "middle", "low"), strict=True):
    ax.plot(range(4), weights[0] - weights, "o-", label=f"{level} contrast")
weights = models["learned jumps"].coef_["edges"][0]
ax.plot(range(4), weights[0] - weights, "o--", color="#888888", label="all edges alike")
ax.set(
    xlabel="difference of disparities", ylabel="cost learned", xticks=range(4), xticklabels=["0", "1", "2", "3 or more"]
)
ax.legend(frameon=False)

figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
shaded = left.copy()
for strip in strips[1::2]:
    shaded[:, strip] = 0.4 * shaded[:, strip]
images = {"left view, strips with labels bright": shaded, "truth": np.where(labels >= 0, labels, np.nan), **found}
for ax, (name, image) in zip(axes.ravel(), images.items(), strict=True):
    grey = name.startswith("left")
    ax.imshow(
        image, cmap="gray" if grey else "viridis", **({} if grey else {"vmin": classes.min(), "vmax": classes.max()})
    )
    ax.set_title(name, loc="left", fontsize=10)
    ax.set_axis_off()
plt.show()
