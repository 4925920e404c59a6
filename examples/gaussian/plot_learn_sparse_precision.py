"""
A sparse precision from few rows
================================

The graphical lasso: maximum likelihood with a penalty on every entry of the precision, so that most of them become
zero. As the penalty falls, edges come in; which penalty to take is the question."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# The truth: forty variables on a lattice, each given its neighbours the half of their sum, and noise; 250 rows of it.

lattice = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 8))
precision = np.eye(40) - 0.22 * nx.to_numpy_array(lattice)
root = np.linalg.cholesky(np.linalg.inv(precision))
rows = np.random.default_rng(1).standard_normal((250, 40)) @ root.T
true = {frozenset(e) for e in lattice.edges}

# %%
# The path. Each curve is the partial correlation of a pair; blue ones are edges of the truth. The extended BIC, of each
# graph fitted anew without a penalty, takes the dashed line. Every minimum on the path comes with a proven gap.

learned = mf.learn_structure(rows, method="graphical_lasso")
print(learned)
print("largest duality gap:", f"{learned.details.gaps.max():.1e}")
mf.plot.penalty_path(learned, truth=lattice)

# %%
# Three choices on the same path: the extended BIC, held-out rows, and edges that come up in most halves of the rows.
# Missed edges are grey and dotted, false ones orange.

place = {v: divmod(v, 8)[::-1] for v in lattice}
figure, axes = plt.subplots(1, 3, figsize=(9.8, 2.6), layout="constrained")
for ax, selection in zip(axes, ("ebic", "cv", "stability"), strict=True):
    method = mf.methods.GraphicalLasso(selection=selection, n_penalties=20)
    pairs = {frozenset(e) for e in mf.learn_structure(rows, method=method, rng=0).edges}
    for edges, colour, line in (
        (true & pairs, "#2b6cb0", "-"),
        (true - pairs, "#9aa7b3", ":"),
        (pairs - true, "#dd7a3b", "-"),
    ):
        nx.draw_networkx_edges(
            lattice, place, [tuple(e) for e in edges], ax=ax, edge_color=colour, width=1.6, style=line
        )
    nx.draw_networkx_nodes(lattice, place, ax=ax, node_size=24, node_color="#1f2a36")
    ax.set_title(f"{selection}: {len(true - pairs)} missed, {len(pairs - true)} false", fontsize=10)
    ax.set_axis_off()

# %%
# The penalty shrinks what it leaves. Fitted anew on the graph, or with a second path whose penalties are smaller on
# strong edges, the partial correlations come back to their true size, 0.22.


def strengths(matrix):
    scale = np.sqrt(matrix.diagonal())
    return np.array([-matrix[a, b] / scale[a] / scale[b] for a, b in lattice.edges])


adaptive = mf.learn_structure(rows, method=mf.methods.GraphicalLasso(adaptive=1.0))
shown = {
    "graphical lasso": learned.precision.toarray(),
    "adaptive": adaptive.precision.toarray(),
    "fitted anew": mf.fit(learned.to_network(), rows).precision.toarray(),
}
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
for i, matrix in enumerate(shown.values()):
    ax.scatter(strengths(matrix), i + np.random.default_rng(i).uniform(-0.2, 0.2, len(true)), s=9, alpha=0.7)
ax.axvline(0.22, color="0.4", linestyle="--", linewidth=1)
ax.set_yticks(range(3), list(shown))
ax.set_xlabel("partial correlation of the true edges (dashed: the truth)")

# %%
# Three years with the same graph and couplings of their own, eighty rows each: too few for any by itself. A penalty on
# the three couplings of a pair together brings edges into all years at once.

years = {}
for year in (2001, 2002, 2003):
    own = np.random.default_rng(year)
    coupled = np.eye(40)
    for a, b in lattice.edges:
        coupled[a, b] = coupled[b, a] = -own.uniform(0.12, 0.3)
    coupled += np.diag(np.maximum(np.abs(coupled).sum(axis=1) - 1.9, 0.0))
    years[year] = own.standard_normal((80, 40)) @ np.linalg.cholesky(np.linalg.inv(coupled)).T


def found(graphs):
    pairs = [{frozenset(e) for e in graph.edges} for graph in graphs]
    return [f"{len(p & true)} true, {len(p - true)} false" for p in pairs]


single = mf.methods.GraphicalLasso(penalty=0.24)
print("by themselves:", found([mf.learn_structure(part, method=single).graph for part in years.values()]))
joint = mf.learn_structure(years, method=mf.methods.JointGraphicalLasso(0.02, 0.36))
print("together:     ", found(joint.details.graphs.values()))
plt.show()
