"""
Noise and holes in a photograph, with the uncertainty
=====================================================

Brightness is a Gaussian Markov random field on the pixels. What was seen has noise upon it, or is missing; the
posterior is Gaussian again, and one sparse factorisation gives the mean of every pixel, its variance, and the evidence
by which the smoothness of the prior is chosen.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The brightness of a photograph from the reference data, or of a landscape drawn by code. A third of it is seen, with
# noise; scratches are missing as a whole.

try:
    clean = mf.datasets.photograph("horse323_image.png").mean(axis=2)[::2, ::2]
except FileNotFoundError:
    clean = mf.datasets.landscape(noise=0.02, rng=0).image.mean(axis=2)
rng = np.random.default_rng(1)
level = 0.08
noisy = clean + rng.normal(scale=level, size=clean.shape)
holes = noisy.copy()
holes[rng.uniform(size=clean.shape) > 0.33] = np.nan
rows = np.arange(clean.shape[0])
for start in (20, 90, 150):
    for shift in range(-2, 3):
        holes[rows, (start + shift + rows // 2) % clean.shape[1]] = np.nan
print(f"{clean.shape[0]} x {clean.shape[1]} pixels, {np.isnan(holes).mean():.0%} of them missing")

# %%
# Two priors. A first-order walk lets neighbours differ by so much; a Matern field is smooth over a range. Both leave
# something to choose, and log Z of what was seen chooses it: the higher, the better the prior foretells the data.


def build(kind, value):
    """A prior with its one number."""
    if kind == "rw1":
        return mf.GaussianMarkovField.lattice(clean.shape, kind="rw1", precision=value)
    return mf.GaussianMarkovField.lattice(clean.shape, range=value, variance=0.04, mean=0.5)


fields = {}
for kind, values in {"rw1": (25.0, 50.0, 100.0, 200.0), "matern": (5.0, 8.0, 12.0, 20.0)}.items():
    evidences = []
    for value in values:
        field = build(kind, value)
        # An intrinsic prior has a density up to its level: the evidence is a difference of two log Z.
        own = float(mf.log_partition(field))
        evidences.append(float(mf.log_partition(field, holes, noise=level**2)) - own)
    best = values[int(np.argmax(evidences))]
    fields[kind] = build(kind, best)
    print(f"{kind:>7}: {', '.join(f'{v:g}: {e:.0f}' for v, e in zip(values, evidences, strict=True))}; best {best:g}")

# %%
# What the posteriors make of the holes. Nine in ten of the true values shall be in intervals that say so.

restored = {}
for kind, field in fields.items():
    answer = mf.marginals(field, holes, noise=level**2)
    restored[kind] = answer
    error = np.sqrt(np.mean((answer.mean - clean) ** 2))
    low, high = answer.intervals(0.9).T
    inside = np.mean((low <= clean.ravel()) & (clean.ravel() <= high))
    print(f"{kind:>7}: root mean square error {error:.4f}, {inside:.0%} in 90 % intervals, {answer.guarantee}")

seen = np.where(np.isnan(holes), 0.0, holes)
titles = ["clean", "seen (black: missing)", "first-order walk", "Matern field"]
images = [clean, seen, *(a.mean for a in restored.values())]
mf.plot.image_grid(images, titles, n_columns=2, cmap="gray")

# %%
# Where the posterior is unsure, and two of the images that it holds possible: as rough as the prior says images are.

answer = restored["matern"]
deviation = np.sqrt(answer.variance)
drawn = mf.sample(fields["matern"], 2, holes, noise=level**2, rng=0).images
mf.plot.image_grid(
    [deviation / deviation.max(), *drawn],
    [f"standard deviation, up to {deviation.max():.2f}", "a draw", "another"],
    n_columns=3,
    cmap="gray",
)

plt.show()
