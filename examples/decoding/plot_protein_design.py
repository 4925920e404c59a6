"""
Packing the side chains of a protein
====================================

The backbone of a protein is given; each residue's side chain can point in one of several directions (rotamers), and
those of residues near each other must not clash. The best packing is the decoding of a pairwise model with many states
and a dense graph, for which branch and bound gives a proof, and until then an answer with a gap.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Side chains of real proteins (Yanover and Weiss 2003) from the reference data, where that is there. Their tables say
# much about each residue by itself, and the search proves them quickly.

try:
    proteins = mf.datasets.side_chains()
except FileNotFoundError:
    proteins = []
for protein in proteins:
    started = time.perf_counter()
    answer = mf.decode(protein.model, method=mf.methods.BranchAndBound(), time_limit=10)
    states = protein.model.structure.cardinalities
    print(
        f"{protein.name:>8}: {len(states):3} residues, up to {states.max()} rotamers, score "
        f"{answer.score / np.log(10):9.4f} (base 10), {'proven' if answer.optimal else f'gap {answer.gap:.3g}'}, "
        f"{time.perf_counter() - started:.2f} s"
    )

# %%
# A harder one, made by code: a backbone folded into a ball, side chains of random directions and lengths, and an energy
# of distances that is high for clashes, lowest at contact and zero far away.


def folded(n_residues, n_rotamers, rng, stay=1.0):
    """Positions of the backbone, a walk that keeps near its middle, and of the ends of all rotamers."""
    rng = np.random.default_rng(rng)
    ways = np.vstack([np.eye(3), -np.eye(3)])
    path = np.zeros((1, 3))
    while len(path) < n_residues:
        free = [p for p in path[-1] + ways if not (path == p).all(axis=1).any()]
        if not free:
            path = path[:1]  # run into a corner: begin again
            continue
        far = np.linalg.norm(np.array(free) - path.mean(axis=0), axis=1)
        weights = np.exp(-stay * far)
        path = np.vstack([path, free[rng.choice(len(free), p=weights / weights.sum())]])
    backbone = 3.8 * path
    way = rng.normal(size=(n_residues, n_rotamers, 3))
    way *= rng.uniform(1.5, 4.0, (n_residues, n_rotamers, 1)) / np.linalg.norm(way, axis=2, keepdims=True)
    return backbone, backbone[:, None] + way


def energy(distance, contact=3.8):
    """Of two side chains: -1 at contact, up to 20 when they clash."""
    close = (contact / np.maximum(distance, 0.5)) ** 6
    return np.minimum(close**2 - 2 * close, 20.0)


backbone, ends = folded(34, 8, rng=0)
n_residues, n_rotamers = ends.shape[:2]
rng = np.random.default_rng(1)
net = mf.MarkovNetwork(dict.fromkeys(range(n_residues), n_rotamers))
for i in range(n_residues):
    clash = energy(np.linalg.norm(ends[i][:, None] - np.delete(backbone, i, axis=0), axis=2), contact=2.5)
    net.add_factor([i], log_table=-np.maximum(clash, 0).sum(axis=1) + rng.normal(size=n_rotamers))
    for j in range(i):
        apart = np.linalg.norm(ends[i][:, None] - ends[j], axis=2)
        if apart.min() < 7.0:
            net.add_factor([i, j], log_table=-energy(apart))
print(f"\nmade by code: {net}, {n_rotamers}^{n_residues} packings")

# %%
# The callback hears of the best packing so far and of the bound on all packings. Where they meet, the packing is
# proven. Stopped before that, the answer says how far it can be from the best.

heard = []
answer = mf.decode(
    net,
    method=mf.methods.BranchAndBound(),
    time_limit=30,
    callback=lambda p: heard.append((p.seconds, p.value, p.bound)),
)
early = mf.decode(net, method=mf.methods.BranchAndBound(), time_limit=answer.seconds / 4)
print(f"{answer.iterations} nodes in {answer.seconds:.1f} s: score {answer.score:.4f}, optimal: {answer.optimal}")
print(f"stopped after {early.seconds:.1f} s: score {early.score:.4f}, at most {early.gap:.4f} from the best")
quick = mf.decode(net, method=mf.methods.ICM(restarts=50), rng=0)
print(f"{quick.seconds:.1f} s of local search: score {quick.score:.4f}, nothing proven")

# %%
# On the left score and bound as they close; on the right the packing, with all rotamers that there were to choose from.

figure = plt.figure(figsize=(11, 4.4), layout="constrained")
ax = figure.add_subplot(1, 2, 1)
for which, name, colour in ((1, "best score so far", "#e07b39"), (2, "best bound so far", "#2f6fb0")):
    end = answer.score if which == 1 else answer.upper_bound
    told = [(row[0], row[which]) for row in heard if row[which] is not None and np.isfinite(row[which])]
    x, y = np.array([*told, (answer.seconds, end)]).T
    y = np.maximum.accumulate(y) if which == 1 else np.minimum.accumulate(y)
    ax.step(x, y, where="post", color=colour, linewidth=1.8, label=name)
    ax.plot(x[-1], y[-1], "o", color=colour, markersize=6)
ax.axhline(quick.score, color="#8a97a3", linewidth=1.0, linestyle=":", label="local search")
ax.set_xscale("log")
# The first bounds, before anything is known of the pairs, would squeeze all the rest.
ax.set_ylim(quick.score - 3.0, answer.score + 1.6 * max(early.gap, 1.0))
ax.set_xlabel("seconds")
ax.set_ylabel("score")
ax.set_title(f"branch and bound: {'proven' if answer.optimal else 'not proven'}", loc="left", fontsize=10)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=9)

ax = figure.add_subplot(1, 2, 2, projection="3d")
ax.plot(*backbone.T, color="#22384f", linewidth=2.5)
ax.scatter(*ends.reshape(-1, 3).T, s=4, color="#c9d3dd", depthshade=False)
chosen = ends[np.arange(n_residues), answer.states]
for a, b in zip(backbone, chosen, strict=True):
    ax.plot(*np.stack([a, b]).T, color="#e07b39", linewidth=1.5)
ax.scatter(*chosen.T, s=26, color="#e07b39", edgecolor="white", linewidth=0.5, depthshade=False)
ax.set_title("backbone, rotamers (grey) and the best packing", loc="left", fontsize=10)
ax.set_axis_off()
ax.view_init(18, 20)
ax.set_box_aspect(np.ptp(ends.reshape(-1, 3), axis=0), zoom=1.5)
plt.show()
