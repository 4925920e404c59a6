"""
3. A lattice: exact where it fits, bounds where it does not
===========================================================

A noisy black and white image, an Ising prior, and one question asked in ever harder ways. The answers go from exact, by
a junction tree, to exact by a special structure, to bounds, to estimates; each says which it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The model
# ---------
#
# A pixel tends to be like its neighbours (the coupling), and like what was seen of it (its field). With spins of -1
# and +1 and noise that turns a pixel with probability p, what was seen counts half the log-odds of being right.

rng = np.random.default_rng(0)
rows, columns = np.mgrid[:16, :120]
clean = np.where((rows - 8) ** 2 / 30 + ((columns % 40) - 20) ** 2 / 120 < 1, 1, -1)
p = 0.2
noisy = np.where(rng.random(clean.shape) < p, -clean, clean)
field = noisy * 0.5 * np.log((1 - p) / p)
model = mf.Ising(clean.shape, coupling=0.7, field=field.ravel())
model

# %%
# Ask before you ask
# ------------------
#
# 1,920 pixels have 2 ** 1920 images. ``explain`` plans and allocates nothing: a lattice is as hard as its smaller
# side.

mf.explain(model, "marginals")

# %%
# So this one is exact: the probability of every pixel, the best image (by a minimum cut), and draws from the
# posterior.

answer = mf.marginals(model)
best = mf.decode(model)
draw = mf.sample(model, 1, rng=0)
print(answer.method, answer.guarantee, "|", best.method, best.optimal, "|", draw.method, draw.guarantee)
white = np.array([answer[v][1] for v in model.variables]).reshape(clean.shape)
pictures = {
    "seen": noisy,
    "best image": best.states.reshape(clean.shape),
    "probability of white": white,
    "one draw": draw.states[0].reshape(clean.shape),
}
figure, axes = plt.subplots(4, 1, figsize=(8, 5.4), layout="constrained")
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="gray", interpolation="nearest")
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_axis_off()


def wrong(picture):
    """Share of pixels that are not as they were."""
    return np.mean((picture > 0) != (clean > 0))


print(f"wrong: seen {wrong(noisy):.1%}, best image {wrong(best.states.reshape(clean.shape)):.1%}, ", end="")
print(f"each pixel's likelier colour {wrong(white - 0.5):.1%}")

# %%
# The best image and the likelier colours differ: one is the likeliest whole, the other has the fewest wrong pixels on
# average. Which is right depends on what a mistake costs (``mf.decode(model, loss="hamming")`` is the second).
#
# Too wide, but special
# ---------------------
#
# A lattice of 60 x 60 has no junction tree that fits. Without a field, though, planar Ising models are still exact,
# by Pfaffians; and images with attractive couplings are still decoded exactly, by a cut.

magnet = mf.Ising((60, 60), coupling=0.4)
log_z = mf.log_partition(magnet)
print(log_z.method, log_z.guarantee, round(log_z.log_partition, 4))

# %%
# Too wide, and not special
# -------------------------
#
# With a field no exact method is left for the sum. ``sandwich`` bounds it from both sides; belief propagation
# guesses; Monte Carlo estimates, with an error and a diagnosis of its own.

side = 18
hard = mf.Ising((side, side), coupling=rng.normal(0.0, 0.5, 2 * side * (side - 1)), field=rng.normal(0.0, 0.4, side**2))
rows = []
for method in (
    mf.methods.MeanField(),
    mf.methods.MiniBucket(i_bound=10),
    mf.methods.TreeReweighted(),
    mf.methods.BeliefPropagation(),
    mf.methods.GeneralizedBP(),
):
    found = mf.log_partition(hard, method=method)
    rows.append((found.method, found.guarantee, found.log_partition, *found.log_partition_bounds))
    print(f"{found.method:>20} {found.guarantee:>12} {found.log_partition:10.3f}")
exact = mf.log_partition(hard, method="junction_tree").log_partition  # this size still fits, for comparison
print(f"{'exact':>20} {'':>12} {exact:10.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for k, (_, _, value, low, high) in enumerate(rows):
    ends = [max(low, exact - 40), min(high, exact + 40)]
    ax.plot(ends, [k, k], color="#9db7d1", linewidth=6, solid_capstyle="butt")
    ax.plot(value, k, "o", color="#1f5f99")
ax.axvline(exact, color="#e07b39")
ax.set_yticks(range(len(rows)), [f"{name} ({guarantee})" for name, guarantee, *_ in rows])
ax.set(xlabel="log Z, with what is proven of it; the true value in orange")

# %%
# Estimates say how well they mixed. Here a Gibbs sampler of whole trees of pixels does; R-hat near one and the
# effective size are part of the answer.

estimate = mf.marginals(hard, method=mf.methods.Gibbs(scan="trees"), rng=0)
estimate.monte_carlo

# %%
truth = mf.marginals(hard, method="junction_tree")
errors = np.array([estimate[v][1] - truth[v][1] for v in hard.variables])
print(f"largest error of a pixel's probability: {np.abs(errors).max():.3f}")

# %%
# Against the clock
# -----------------
#
# Decoding such a model is hard as well. ``time_limit`` gives the best so far and how far from the best it can be at
# most.

for seconds in (0.5, 3.0):
    found = mf.decode(hard, time_limit=seconds)
    print(f"{found.method:>18}  score {found.score:9.4f}  gap {found.gap:7.4f}  optimal {found.optimal}")
plt.show()
