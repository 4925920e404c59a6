"""
Elimination, step by step
=========================

The graph that lecture notes like to eliminate (Caetano, lecture 5; Sudderth, lecture 24): six variables, four factors
of two and one of three. Summing out a variable multiplies all factors that it is in and leaves one factor on its
neighbours; in the graph, its neighbours are joined and it goes. The order is free, and decides what that costs.
"""

from itertools import permutations

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# The model, with numbers drawn at random.

rng = np.random.default_rng(0)
net = mf.MarkovNetwork({f"x{i}": 3 for i in range(1, 7)})
for scope in ("12", "13", "24", "35", "256"):
    names = [f"x{i}" for i in scope]
    net.add_factor(names, rng.uniform(0.1, 1.0, size=(3,) * len(scope)))
graph = mf.graphs.interaction_graph(net)
print(sorted(tuple(sorted(edge)) for edge in graph.edges))

# %%
# Eliminating x6, x5, x4, x3, x2: each picture shows the variable that goes (orange), its neighbours (blue) and the
# edges that must be added between them (dashed). Every clique of a variable with its neighbours is the scope of a
# table.

place = {"x1": (0, 1), "x2": (1, 2), "x3": (1, 0), "x4": (2, 2.5), "x5": (2, 0), "x6": (3, 1)}
order = ["x6", "x5", "x4", "x3", "x2"]
figure, axes = plt.subplots(1, 5, figsize=(15, 3.2), layout="constrained")
left = graph.copy()
added = set()
for ax, gone in zip(axes, order, strict=True):
    near = set(left[gone])
    new = {frozenset((a, b)) for a in near for b in near if a < b and not left.has_edge(a, b)}
    colours = ["#e07b39" if v == gone else "#9db7d1" if v in near else "white" for v in left]
    nx.draw_networkx(left, place, ax=ax, node_color=colours, edgecolors="black", node_size=520, font_size=9)
    nx.draw_networkx_edges(left, place, [tuple(e) for e in new], ax=ax, edge_color="#e07b39", style="dashed", width=2)
    ax.set_title(f"{gone}: a table on {', '.join(sorted(near | {gone}))}", fontsize=9, loc="left")
    ax.set(xlim=(-0.5, 3.5), ylim=(-0.6, 3.1))
    ax.axis("off")
    added |= new
    left.add_edges_from(tuple(e) for e in new)
    left.remove_node(gone)
print("added:", sorted(sorted(e) for e in added))

# %%
# No table was on more than three variables: a width of two. Of all 720 orders, how many do as well? And how well does
# the library's search do, which in general cannot try them all (the best order is hard to find)?

widths = [mf.graphs.induced_width(graph, o) for o in permutations(graph)]
print({width: widths.count(width) for width in sorted(set(widths))})
found = mf.graphs.elimination_order(graph)
print(found, mf.graphs.induced_width(graph, found))

# %%
# The edges that were added make the graph chordal, whatever the order; its cliques make a junction tree, and what two
# neighbours share, the separators, is {2, 3}, {2, 5} and {2}.

chordal = mf.graphs.triangulate(graph, [*order, "x1"])
tree = mf.graphs.junction_tree(chordal)
print(mf.graphs.is_chordal(graph), mf.graphs.is_chordal(chordal), mf.graphs.has_running_intersection(tree))
for a, b in tree.edges:
    print(sorted(a), "-", sorted(a & b), "-", sorted(b))
mf.plot.junction_tree(net, method=mf.methods.JunctionTree(order=(*order, "x1")))

# %%
# Elimination answers one question. The next one, with the same evidence, computes nearly the same tables again; the
# junction tree has kept them. Both give the same numbers, of course.

seen = {"x6": 0}
for target in ("x1", "x3"):
    alone = mf.query(net, target, seen, method="variable_elimination").values
    together = mf.marginals(net, seen, method="junction_tree")[target]
    print(target, alone.round(4), together.round(4), bool(np.allclose(alone, together)))

# %%
# The same in the algebra of maxima decodes (Sudderth 24): only the sum is another operation, and one must remember
# which state was best for each setting of the neighbours, to walk back.

for semiring in ("sum_product", "max_product", "max_sum", "counting"):
    print(f"{semiring:>11}", round(mf.analysis.aggregate(net, semiring, method="variable_elimination"), 4))
print(mf.decode(net, method="variable_elimination").assignment)
plt.show()
