"""
Reading independence off a graph
================================

A graph states which variables are independent given which others. A directed graph and an undirected one state
different things, and a distribution may hold more, or other, independences than any graph says.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# A directed graph (Murphy, figure 19.2). Is 4 independent of 5 given 2? Given 7 as well, it is not: the arrows meet in
# 7, and the path that knowing 7 opens can be asked for.

dag = nx.DiGraph([(1, 2), (1, 3), (2, 4), (2, 5), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)])
print(mf.graphs.d_separated(dag, 4, 5, given=2))
print(mf.graphs.d_separated(dag, 4, 5, given=[2, 7]), mf.graphs.active_path(dag, 4, 5, given=[2, 7]))

# %%
# Moralising joins the parents of every child. It loses statements: 4 and 5 are joined, for the sake of their child 7.
# Nobody asked about 7, though, nor about anything below it. In the moral graph of 2, 4, 5 and their ancestors alone, 2
# separates the two.

place = {1: (0, 1), 2: (1, 2), 3: (1, 0), 4: (2, 2), 5: (2, 1), 6: (2, 0), 7: (3, 1)}
graphs = {
    "directed": dag,
    "moral": mf.graphs.moralize(dag),
    "moral, of 2, 4, 5 and ancestors": mf.graphs.moralize(mf.graphs.ancestral_graph(dag, [2, 4, 5])),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
for ax, (title, graph) in zip(axes, graphs.items(), strict=True):
    colours = ["tab:orange" if v in (4, 5) else "0.7" if v == 2 else "white" for v in graph]
    nx.draw_networkx(graph, place, ax=ax, node_color=colours, edgecolors="black", node_size=500)
    ax.set(title=title, xlim=(-0.4, 3.4), ylim=(-0.5, 2.5))
    ax.axis("off")

# %%
# DAGs that state the same form a class, drawn with arrows only where all of them agree. Reversing 1 -> 2 changes
# nothing; reversing 2 -> 5 would lose the two arrows that meet in 5.

print(mf.graphs.cpdag(dag))

# %%
# No undirected graph states what two arrows that meet do, and no directed one states what a square does.

collider = nx.DiGraph([("A", "C"), ("B", "C")])
square = nx.cycle_graph(["A", "B", "C", "D"])
print(mf.graphs.equivalent_to_undirected(collider), mf.graphs.equivalent_to_directed(square))
print(mf.graphs.pairwise_independences(square))

# %%
# A positive distribution that has the pairwise statements of an undirected graph has all of them, and factorises over
# its cliques (Hammersley and Clifford). The clique potentials can be computed: of the 16 sets of variables of a square,
# only the edges, the single nodes and the constant keep one.

rng = np.random.default_rng(0)
net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
for edge in square.edges:
    net.add_factor(edge, rng.uniform(0.2, 3.0, size=(2, 2)))
sizes = {
    "".join(sorted(subset)) or "none": np.abs(table).max()
    for subset, table in mf.graphs.canonical_potentials(net, tolerance=None).items()
}
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.bar(list(sizes), list(sizes.values()))
ax.set(ylabel="largest log-potential", title="Canonical potentials of a square")
print(sorted(mf.graphs.interaction_graph(net).edges))

# %%
# Positivity matters. Three bits that are always equal: any two are independent given the third, which tells both. So
# all pairwise statements of the graph without edges hold, and yet the bits are as dependent as can be.

table = np.zeros((2, 2, 2))
table[0, 0, 0] = table[1, 1, 1] = 0.5
copies = mf.graphs.JointTable(table, ["A", "B", "C"])
empty = nx.empty_graph(["A", "B", "C"])
for statement in mf.graphs.pairwise_independences(empty):
    print(statement, mf.graphs.independent(copies, statement.a, statement.b, statement.given))
print("A ⊥ B", mf.graphs.independent(copies, "A", "B"), mf.graphs.dependence(copies, "A", "B"))

plt.show()
