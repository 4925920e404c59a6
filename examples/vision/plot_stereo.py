"""
Depth from two views
====================

Two cameras side by side see near things farther apart than distant ones. The disparity of each pixel is a variable of a
Markov random field: what a disparity costs by itself says how well the two views agree (Murphy 19.68), and a prior says
that neighbours are alike. What that prior makes of jumps decides how good the answer is (Murphy, figure 19.20).
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import markovfield as mf

# %%
# The Tsukuba pair at half its size from the reference data where that is there, otherwise squares of random dots. Of
# what is near the border of Tsukuba the truth is not known. At full size (a step of 1) all below takes some minutes.

STEP = 2
try:
    pair, scene = mf.datasets.stereo_pair("tsukuba", step=STEP), "Tsukuba"
except FileNotFoundError:
    pair, scene = mf.datasets.random_dots((80, 110), noise=0.06, rng=0), "random dots"
rows, columns = pair.disparity.shape
print(f"{scene}: {rows} x {columns} pixels, disparities 0 to {pair.max_disparity}")

# %%
# Three priors on the difference of neighbours' disparities: its square (19.69), its square up to a limit (19.70), and
# its amount up to a limit. Messages of belief propagation start from the costs alone. After one round each pixel has
# had messages of its neighbours, after 60 hardly any pixel still changes its mind.

priors = {
    "Gaussian": {"smoothness": "gaussian", "weight": 0.3},
    "truncated quadratic": {"smoothness": "truncated_quadratic", "weight": 0.8},
    "truncated linear": {"smoothness": "truncated_linear", "weight": 1.2},
}
stages = ["0 rounds", "1 round", "60 rounds"]
found = {}
for name, settings in priors.items():
    started = time.perf_counter()
    model = mf.StereoMatching(pair.max_disparity, **settings)
    graph = model.to_factor_graph(pair.left, pair.right)
    found[name] = [model.costs(pair.left, pair.right).argmin(axis=2)]
    answer = None
    for more in (1, 49, 10):
        method = mf.methods.BeliefPropagation("synchronous", max_iterations=more)
        with warnings.catch_warnings():
            # Each answer says that its messages are still moving; the next one goes on from there.
            warnings.filterwarnings("ignore", message=".*did not converge.*")
            answer = mf.marginals(graph, method=method, init=answer)
        found[name].append(answer.values.reshape(rows, columns, -1).argmax(axis=2))
    before = found[name].pop(2)
    changed = np.mean(before != found[name][-1])
    errors = [mf.vision.disparity_error(f, pair.disparity) for f in found[name]]
    print(
        f"{name:>20}: bad pixels {', '.join(f'{e:.1%}' for e in errors)}; {changed:.1%} of all changed in the last ten "
        f"rounds; {time.perf_counter() - started:.1f} s"
    )

# %%
# Costs alone are right where there is texture. The Gaussian prior smears whatever is near into what lies behind it,
# since a jump of ten costs a hundred times a jump of one. With a limit on what a jump can cost, borders stay sharp. A
# pixel is bad when it is off by more than one.

figure, axes = plt.subplots(3, 4, figsize=(12, 7.4), layout="constrained")
shades = plt.get_cmap("magma").with_extremes(bad="#d8dde2")
limits = {"cmap": shades, "vmin": 0, "vmax": pair.max_disparity, "interpolation": "nearest"}


def bad(picture):
    """Where a disparity is known and off by more than one."""
    return np.isfinite(pair.disparity) & (np.abs(picture - pair.disparity) > 1)


axes[0, 0].imshow(pair.left, cmap="gray")
axes[0, 0].set_title("left view", loc="left", fontsize=10)
axes[1, 0].imshow(pair.disparity, **limits)
axes[1, 0].set_title("true disparities (grey: not known)", loc="left", fontsize=10)
wrong = bad(found["Gaussian"][-1]) + 2 * bad(found["truncated quadratic"][-1])
colours = ListedColormap(["#f4f1ea", "#e07b39", "#2f6fb0", "#22384f"])
axes[2, 0].imshow(wrong, cmap=colours, vmin=0, vmax=3, interpolation="nearest")
axes[2, 0].set_title("bad in 19.69 (orange), 19.70 (blue), both", loc="left", fontsize=10)
for row, (name, pictures) in zip(axes[:, 1:], found.items(), strict=True):
    for ax, stage, picture in zip(row, stages, pictures, strict=True):
        ax.imshow(picture, **limits)
        share = mf.vision.disparity_error(picture, pair.disparity)
        ax.set_title(f"{name}, {stage}: {share:.1%} bad", loc="left", fontsize=10)
for ax in axes.ravel():
    ax.set_axis_off()

# %%
# What counts as agreement matters as well. A limit on what a pixel can cost tames squares where something is hidden
# from one camera. A window averages costs, which helps by itself, but rounds off corners once the prior does that work.
# Comparing with the range that a view takes within half a pixel forgives sampling (Birchfield and Tomasi 1998), and
# jumps may be cheaper where colours jump too. All with the truncated quadratic prior, by expansion moves.

terms = {
    "squared, no limit": {"data": "squared", "data_truncation": np.inf},
    "squared, robust": {"data": "squared"},
    "absolute, robust": {},
    "absolute, robust, window 5": {"window": 5},
    "Birchfield and Tomasi": {"data": "birchfield_tomasi"},
    "the same, contrast-sensitive": {"data": "birchfield_tomasi", "weight": 1.2, "contrast": 0.5},
}
figure, axes = plt.subplots(2, 6, figsize=(15, 4.5), layout="constrained")
print(f"\n{'cost of a pixel':>28}   alone  with prior")
for column, (name, settings) in zip(axes.T, terms.items(), strict=True):
    model = mf.StereoMatching(pair.max_disparity, **({"weight": 0.8} | settings))
    alone = model.costs(pair.left, pair.right).argmin(axis=2)
    smooth = model.predict(pair.left, pair.right, method="alpha_expansion")
    shares = [mf.vision.disparity_error(picture, pair.disparity) for picture in (alone, smooth)]
    print(f"{name:>28}   {shares[0]:5.1%}  {shares[1]:5.1%}")
    for ax, picture in zip(column, (alone, smooth), strict=True):
        ax.imshow(picture, **limits)
        ax.set_axis_off()
    column[0].set_title(f"{name}\nalone: {shares[0]:.1%} bad", loc="left", fontsize=9)
    column[1].set_title(f"with the prior: {shares[1]:.1%} bad", loc="left", fontsize=9)
plt.show()
