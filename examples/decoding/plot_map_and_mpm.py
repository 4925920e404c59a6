"""
The likeliest whole and the likeliest parts
===========================================

Two answers to "what is most likely": the assignment that is likeliest as a whole (`decode`), and each variable's
likeliest state by itself (`marginals(...).mpm()`). They can differ, and the second can even be impossible as a whole.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The least example: two variables. As a whole A = 0, B = 0 is likeliest. But A = 1 has more probability than A = 0,
# spread over two outcomes.

table = np.array([[0.4, 0.05], [0.25, 0.3]])
pair = mf.MarkovNetwork({"A": 2, "B": 2})
pair.add_factor(["A", "B"], table)
whole, parts = mf.decode(pair).assignment, mf.marginals(pair).mpm()
print(f"as a whole {whole}, probability {table[tuple(whole.values())]:.2f}")
print(f"one by one {parts}, probability {table[tuple(parts.values())]:.2f}")

# %%
# One by one can be impossible. Someone leaves the hall, for the garden or, more likely, for the stairs, and from there
# by two ways to the roof. The one path through the garden is likelier than any other. One by one, the stairs win at
# time 1 and the roof at time 3, but at time 2 the attic and the loft share what came by the stairs, and the garden
# wins: those rooms make no path, for there is no door between the stairs and the garden.

rooms = ["hall", "garden", "stairs", "attic", "loft", "roof"]
doors = {
    "hall": {"garden": 0.36, "stairs": 0.64},
    "garden": {"garden": 1.0},
    "stairs": {"attic": 0.5, "loft": 0.5},
    "attic": {"roof": 0.9, "attic": 0.1},
    "loft": {"roof": 0.9, "loft": 0.1},
    "roof": {"roof": 1.0},
}
n_times = 4
step = np.array([[doors[a].get(b, 0.0) for b in rooms] for a in rooms])
walk = mf.MarkovNetwork(dict.fromkeys(range(n_times), rooms))
walk.add_factor([0], [float(room == "hall") for room in rooms])
walk.add_factors([[t, t + 1] for t in range(n_times - 1)], step)

answer, best = mf.marginals(walk), mf.decode(walk)
log_partition = answer.log_partition
one_by_one = answer.mpm()
print(f"\nlikeliest path: {' - '.join(best.assignment.values())}, probability {np.exp(best.score - log_partition):.3f}")
states = [rooms.index(one_by_one[t]) for t in range(n_times)]
score = float(walk.compile().score(states))
print(f"one by one:     {' - '.join(one_by_one.values())}, probability {np.exp(score - log_partition):.3f}")

# %%
# Which one is right depends on what a mistake costs. If only the whole counts, it is the likeliest path; if each wrong
# room costs one, it is the likeliest rooms: they have the least expected number of mistakes (Murphy 19.79).


def expected_mistakes(path):
    """How many of these rooms are wrong, on average."""
    return sum(1.0 - answer.probability_of(t, room) for t, room in enumerate(path))


for name, path in (("likeliest path", best.assignment.values()), ("one by one", one_by_one.values())):
    print(f"{name:>15}: {expected_mistakes(path):.2f} rooms wrong on average")

figure, axes = plt.subplots(1, 2, figsize=(11, 3.9), width_ratios=[1.0, 2.2], layout="constrained")
ax = axes[0]
ax.imshow(table, cmap="Blues", vmin=0.0, vmax=0.6)
for a in range(2):
    for b in range(2):
        ax.text(b, a, f"{table[a, b]:.2f}", ha="center", va="center", fontsize=12)
for at, colour in ((whole, "#e07b39"), (parts, "#2f6fb0")):
    ax.add_patch(plt.Rectangle((at["B"] - 0.47, at["A"] - 0.47), 0.94, 0.94, fill=False, edgecolor=colour, linewidth=3))
ax.set_xticks([0, 1], [f"B = {b}\n{table[:, b].sum():.2f} in all" for b in range(2)])
ax.set_yticks([0, 1], [f"A = {a}\n{table[a].sum():.2f} in all" for a in range(2)])
ax.set_title("whole (orange), one by one (blue)", loc="left", fontsize=10)

ax = axes[1]
probability = np.array([answer[t] for t in range(n_times)])
possible = probability > 0
for t in range(n_times - 1):
    for a in np.flatnonzero(possible[t]):
        for b in np.flatnonzero(possible[t + 1] & (step[a] > 0)):
            share = answer.joint([t, t + 1])[a, b]
            ax.plot([t, t + 1], [a, b], color="#9aa7b3", linewidth=8 * share, solid_capstyle="round", zorder=1)
t, r = np.nonzero(possible)
ax.scatter(t, r, s=900 * probability[t, r] + 30, color="#d5e3f0", edgecolor="#22384f", zorder=2)
for x, y in zip(t, r, strict=True):
    ax.text(
        x,
        y + 0.17 + 0.3 * np.sqrt(probability[x, y]),
        f"{probability[x, y]:.2f}",
        ha="center",
        va="bottom",
        fontsize=8,
        color="#22384f",
        zorder=4,
    )
paths = (
    ("likeliest path", best.assignment.values(), "#e07b39", "-", -0.06),
    ("one by one", one_by_one.values(), "#2f6fb0", "--", 0.06),
)
for name, path, colour, line, shift in paths:
    y = [rooms.index(room) + shift for room in path]
    ax.plot(range(n_times), y, line, color=colour, linewidth=2.2, marker="o", markersize=5, label=name, zorder=3)
ax.set_xticks(range(n_times), [f"time {t}" for t in range(n_times)])
ax.set_yticks(range(len(rooms)), rooms)
ax.set_ylim(-0.5, len(rooms) - 0.2)
ax.set_title("where someone is: circles and lines by their probability", loc="left", fontsize=10)
ax.legend(frameon=False, fontsize=9, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
