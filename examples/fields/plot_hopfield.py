"""
A memory that completes images
================================

A Hopfield network (Murphy 19.4.2) is a fully connected Ising model whose weights hold patterns. Shown part of one, it
goes downhill in energy, neuron after neuron, to the pattern it is reminded of (figure 19.7).
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Seven images of 50 x 50 pixels are stored by maximum pseudo-likelihood: 2500 neurons, three million weights.

images = mf.datasets.binary_patterns()
memory = mf.Hopfield((50, 50)).store(images, "pseudo_likelihood")
print(memory)

# %%
# What the network gets to see: a half, a quarter, a window, or scattered pixels of each; the rest is unknown.

rng = np.random.default_rng(0)
row, column = np.mgrid[:50, :50]
visible = [
    row < 25,
    column >= 25,
    (row < 25) & (column < 25),
    np.hypot(row - 25, column - 25) < 14,
    row > column,
    rng.random((50, 50)) < 0.2,
    (row // 5) % 4 == 0,
]
partial = [np.where(seen, image, np.nan) for seen, image in zip(visible, images, strict=True)]

# %%
# Neurons are visited in random order, and each takes its likelier state given all others. Half a sweep shows the images
# on their way: grey pixels have not been visited yet.

found = [memory.complete(seen, record=[0.5], rng=rng) for seen in partial]
for answer, image in zip(found, images, strict=True):
    wrong = np.mean(answer.state != image)
    print(f"{wrong:.1%} wrong pixels after {answer.sweeps} sweeps, energy {answer.energy:.1f}")

rows = {
    "stored": images,
    "seen": partial,
    "half a sweep": [answer.history[0] for answer in found],
    "completed": [answer.state for answer in found],
}
figure, axes = plt.subplots(4, 7, figsize=(9.6, 5.8), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=True):
        # A zero among -1 and +1 is a neuron not visited yet.
        mf.plot.spins(np.nan_to_num(image), ax=ax)
    line[0].set_ylabel(name, fontsize=11)

# %%
# How much fits in? In large networks, Hebb's outer products keep random patterns until their number reaches about
# 0.138 of that of the neurons. Pseudo-likelihood, which also raises the energy of what is not stored, goes on to more
# than one pattern for each neuron.

n, loads = 60, np.array([2, 4, 6, 8, 12, 16, 24, 36, 48, 60, 72, 84, 96, 120])
kept: dict[str, list[float]] = {"outer": [], "pseudo_likelihood": []}
for rule, shares in kept.items():
    for load in loads:
        patterns = rng.choice([-1, 1], (load, n))
        network = mf.Hopfield(n).store(patterns, rule, max_iterations=200)
        # A pattern is kept where no neuron wants to change.
        shares.append(float(((patterns @ network.weights) * patterns > 0).all(axis=1).mean()))

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for shares, label in zip(kept.values(), ["outer products", "maximum pseudo-likelihood"], strict=True):
    ax.plot(loads / n, shares, "o-", label=label)
ax.axvline(0.138, color="0.6", linestyle=":")
ax.annotate("0.138", (0.15, 0.03), color="0.4")
ax.set_xlabel("patterns for each neuron")
ax.set_ylabel("share kept without a flaw")
ax.legend(loc="center right")
plt.show()
