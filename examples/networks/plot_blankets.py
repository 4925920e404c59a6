"""
Blankets, maps and orders
=========================

What shields a variable from all others is its Markov blanket: parents, children and the children's other parents in a
directed graph, the neighbours in an undirected one (Murphy, figure 19.1). The two kinds of graph cannot say the same
things (figures 19.5 and 19.6), and three ways of reading an undirected graph say the same only together with
positivity (figure 19.3).
"""

from itertools import islice

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# A lattice as a directed graph, every site with the ones above and to the left as parents, and as an undirected one.
# The blanket of the middle has six nodes in one and four in the other, lopsided in the first.

sites = [(r, c) for r in range(5) for c in range(5)]
directed = nx.DiGraph(
    [((r, c), (r + a, c + b)) for r, c in sites for a, b in ((1, 0), (0, 1)) if max(r + a, c + b) < 5]
)
undirected = directed.to_undirected()
figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained")
for ax, graph in zip(axes, (directed, undirected), strict=True):
    blanket = mf.graphs.markov_blanket(graph, (2, 2))
    colours = ["#e07b39" if v == (2, 2) else "#9db7d1" if v in blanket else "white" for v in graph]
    place = {(r, c): (c, -r) for r, c in graph}
    nx.draw(graph, place, ax=ax, node_color=colours, edgecolors="black", node_size=260)
    ax.set_title(f"a blanket of {len(blanket)}", loc="left", fontsize=10)

# %%
# A blanket shields: whatever tables the graph has, the middle is independent of the rest given it. Here for a smaller
# lattice with random tables, as the largest dependence that is left, and with one node of the blanket forgotten.

arcs = [(v, v + step) for v in range(9) for step in (1, 3) if v + step < 9 and (step == 3 or v % 3 < 2)]
small = nx.DiGraph(arcs)
rng = np.random.default_rng(0)
net = mf.BayesianNetwork(dict.fromkeys(nx.topological_sort(small), 2))
for v in small:
    parents = list(small.predecessors(v))
    net.add_cpt(v, parents, rng.dirichlet([1.0, 1.0], size=(2,) * len(parents)))
joint = mf.graphs.JointTable.of(net)
blanket = mf.graphs.markov_blanket(small, 4)
rest = [v for v in small if v not in blanket and v != 4]
print(f"given the blanket: {mf.graphs.dependence(joint, 4, rest, blanket):.1e}")
for v in sorted(blanket):
    print(f"without {v}: {mf.graphs.dependence(joint, 4, [*rest, v], blanket - {v}):.3f}")

# %%
# Three variables, two arrows (Caetano, lecture 3). In a chain and in a fork the ends are dependent until the middle
# is known; where arrows meet, they are independent until it is. Chain and fork state the same, so no data tell them
# apart.

shapes = {"chain": [("a", "c"), ("c", "b")], "fork": [("c", "a"), ("c", "b")], "collider": [("a", "c"), ("b", "c")]}
for name, arcs in shapes.items():
    dag = nx.DiGraph(arcs)
    alone, given = (mf.graphs.d_separated(dag, "a", "b", given=known) for known in ((), ["c"]))
    print(f"{name:>9}: a and b independent {alone!s:>5}, given c {given!s:>5}; class {mf.graphs.cpdag(dag)}")

# %%
# A square says that opposite corners are independent given the other two (figure 19.6). Of all 543 directed graphs on
# four nodes none says just that; the closest ones say less, or something false.

square = nx.cycle_graph(["A", "B", "D", "C"])
wanted = {str(s) for s in mf.graphs.global_independences(square)}
print("the square:", sorted(wanted))
tries = {
    "with a chord": nx.DiGraph([("A", "B"), ("A", "C"), ("B", "C"), ("B", "D"), ("C", "D")]),
    "without": nx.DiGraph([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]),
}
for name, dag in tries.items():
    said = {str(s) for s in mf.graphs.global_independences(dag)}
    print(f"{name:>12}: right {sorted(said & wanted)}, false {sorted(said - wanted)}")
pairs = [(a, b) for i, a in enumerate("ABCD") for b in "ABCD"[i + 1 :]]
count = same = 0
for code in range(3 ** len(pairs)):
    arcs = [(a, b)[:: 1 if turn == 1 else -1] for k, (a, b) in enumerate(pairs) if (turn := code // 3**k % 3)]
    dag = nx.DiGraph(arcs)
    dag.add_nodes_from("ABCD")
    if nx.is_directed_acyclic_graph(dag):
        count += 1
        same += mf.graphs.same_independences(dag, square)
print(f"{count} directed graphs without circles, {same} of which say what the square says")

# %%
# Three readings of one undirected graph (figure 19.3): every pair without an edge, given the rest; every node, given
# its neighbours; all sets that are separated. Each statement of the first two follows from the third.

graph = nx.Graph([(1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)])
readings = {
    "pairwise": mf.graphs.pairwise_independences(graph),
    "local": mf.graphs.local_independences(graph),
    "global": list(mf.graphs.global_independences(graph)),
}
for name, statements in readings.items():
    follow = all(mf.graphs.separated(graph, s.a, s.b, s.given) for s in statements)
    print(f"{name:>9}: {len(statements):3} statements, all separated {follow}; {statements[0]}")

# %%
# Orders in which every variable comes after its parents (Caetano, lecture 2): all of them where nothing is
# independent is one, n factorial where everything is.

complete = nx.DiGraph([(i, j) for i in range(6) for j in range(i + 1, 6)])
empty = nx.empty_graph(6, create_using=nx.DiGraph)
for name, dag in (("complete", complete), ("empty", empty), ("the lattice of 3 x 3", small)):
    first = list(islice(mf.graphs.topological_sorts(dag), 1))
    print(f"{name:>20}: {mf.graphs.count_topological_sorts(dag)}, such as {first[0]}")
plt.show()
