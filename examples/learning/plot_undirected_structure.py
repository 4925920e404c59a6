"""
Sparse graphs from data
=======================

Which variables interact? Maximum pseudo-likelihood (Murphy 19.5.4) with a penalty on the size of each coupling sets
most of them to zero: what is left is a graph. As the penalty falls, edges come in one after another."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# The truth: thirty spins on a lattice, every edge with a coupling of 0.4, some for, some against being alike; a tenth
# of the edges are taken out. Each row of the data is one state of all spins.

rng = np.random.default_rng(3)
lattice = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6))
lattice.remove_edges_from([e for e in list(lattice.edges) if rng.random() < 0.1])
model = mf.Ising(lattice, coupling={e: rng.choice([-0.4, 0.4]) for e in lattice.edges})
rows = mf.sample(model, 4000, rng=0)
true = {frozenset(e) for e in lattice.edges}

# %%
# The path of penalties. Every curve is an edge; those of the true graph are blue. Between the last true edge and the
# first false one lies a wide range of penalties, and the extended BIC (dashed) finds it. Strengths there are shrunk:
# the graph is what one keeps of it, and fits anew.

learned = mf.learn_structure(rows, method="group_lasso")
print(learned)
mf.plot.penalty_path(learned, truth=lattice)

# %%
# With fewer rows there is no such range: edges are missed (grey, dashed), others are invented (orange).

place = {v: divmod(v, 6)[::-1] for v in lattice}
figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.1), layout="constrained")
for ax, size in zip(axes, (100, 250, 4000), strict=True):
    found = mf.learn_structure(rows.states[:size], method="group_lasso", network=model.compile()).graph
    pairs = {frozenset(e) for e in found.edges}
    for edges, colour, line in (
        (true & pairs, "#2b6cb0", "-"),
        (true - pairs, "#9aa7b3", ":"),
        (pairs - true, "#dd7a3b", "-"),
    ):
        listed = [tuple(e) for e in edges]
        nx.draw_networkx_edges(lattice, place, listed, ax=ax, edge_color=colour, width=2.0, style=line)
    nx.draw_networkx_nodes(lattice, place, ax=ax, node_size=36, node_color="#1f2a36")
    ax.set_title(f"{size} rows: {len(true - pairs)} missed, {len(pairs - true)} false", fontsize=10)
    ax.set_axis_off()

# %%
# How sure is an edge? Stability selection learns from random halves of the rows, and counts how often each edge comes
# up at the chosen penalty or a larger one. Edges of the truth come up nearly always; those that a table of 500 rows
# suggests by chance do not.

few = mf.learn_structure(
    rows.states[:500],
    method=mf.methods.GroupLasso(selection="stability", subsamples=40, n_penalties=15),
    network=model.compile(),
    rng=1,
)
path = few.details
order = np.argsort(-path.frequencies)
shown = order[path.frequencies[order] > 0]
colours = ["#2b6cb0" if frozenset(path.edges[e]) in true else "#dd7a3b" for e in shown]
figure, ax = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
ax.bar(np.arange(len(shown)), path.frequencies[shown], color=colours, width=0.85)
ax.axhline(0.8, color="0.4", linestyle="--", linewidth=1)
ax.set_xlabel("edges, by frequency (blue: true, orange: false)")
ax.set_ylabel("share of subsamples")
print(few, few.notes)

# %%
# Couplings of all pairs at once, without a penalty, are the inverse Ising problem. Where couplings are weak, reading
# them off the inverse of the correlations is as good as pseudo-likelihood and needs no iteration; where they are
# strong, the mean field is wrong however many rows there are.

strengths = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
errors: dict[str, list[float]] = {"pseudo_likelihood": [], "mean_field": [], "small_correlation": []}
ring = nx.circulant_graph(10, [1, 2])
for strength in strengths:
    signs = {e: strength * rng.choice([-1, 1]) for e in ring.edges}
    glass = mf.Ising(ring, coupling=signs)
    exact = np.zeros((10, 10))
    for (a, b), coupling in signs.items():
        exact[a, b] = exact[b, a] = coupling
    spins = glass.to_spins(mf.sample(glass, 20_000, rng=rng))
    for name, shown_errors in errors.items():
        inverted = mf.learning.inverse_ising(spins, name)
        shown_errors.append(float(np.sqrt(np.mean((inverted.edge_couplings - exact[np.triu_indices(10, 1)]) ** 2))))

figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
for name, values in errors.items():
    ax.semilogy(strengths, values, "o-", label=name.replace("_", " "))
ax.set_xlabel("strength of the couplings")
ax.set_ylabel("error of the couplings")
ax.legend(frameon=False)

# %%
# Each conditional by itself makes a dependency network. The two conditionals of a pair then disagree by a little, so
# that no distribution has them all; with more rows they come together.

for size in (100, 250, 4000):
    network = mf.learn_structure(rows.states[:size], method="dependency_network", network=model.compile())
    print(f"{size} rows: the two directions differ by {network.details.inconsistency():.0%} of the couplings")

plt.show()
