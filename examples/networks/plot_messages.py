"""
Messages on a chain, a tree and a circle
========================================

A message says what one side of the graph knows about a variable. On a chain there are two for each variable, on a tree
one for each direction of each edge (Caetano, lecture 5; Andres 6.37 to 6.40); sent twice along each edge they give all
marginals. Around a circle they never end, and what they settle at is an approximation.
"""

import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# A chain, by hand: messages from the left and from the right; their product is the marginal, up to a factor.

rng = np.random.default_rng(0)
n, k = 6, 3
tables = rng.uniform(0.1, 1.0, size=(n - 1, k, k))
left, right = [np.ones(k)], [np.ones(k)]
for table in tables:
    left.append(left[-1] @ table)
for table in tables[::-1]:
    right.insert(0, table @ right[0])
by_hand = np.array([a * b / (a @ b) for a, b in zip(left, right, strict=True)])
chain = mf.MarkovNetwork(dict.fromkeys(range(n), k))
for i, table in enumerate(tables):
    chain.add_factor([i, i + 1], table)
answer = mf.marginals(chain, method="belief_propagation")
print(answer.guarantee, bool(np.allclose(by_hand, [answer[v] for v in chain])))
print("log Z:", round(float(np.log(left[-1].sum())), 6), round(answer.log_partition, 6))

# %%
# A tree of 31 variables, and graphs with circles. Sent all at once in rounds, messages are right as soon as
# everything has had time to arrive: after as many rounds as the longest path. What each round still changes drops to
# nothing there, and not before.


def network(graph, strength, rng):
    """Random couplings of both signs, and fields."""
    net = mf.MarkovNetwork(dict.fromkeys(graph, 2))
    for a, b in graph.edges:
        w = strength * rng.normal()
        net.add_factor([a, b], log_table=[[w, -w], [-w, w]])
    for v in graph:
        net.add_factor([v], log_table=[0.0, 0.3 * rng.normal()])
    return net


def rounds(net, damping=0.0, most=60):
    """What the largest message changes by, round after round, and the answer."""
    method = mf.methods.BeliefPropagation("synchronous", damping=damping, max_iterations=most, tolerance=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is told by the answer as well
        found = mf.marginals(net, method=method)
    return found


tree = nx.balanced_tree(2, 4)
circle = nx.cycle_graph(8)
grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6, periodic=True))
repelling = mf.Ising(list(combinations(range(5), 2)), coupling=-0.5, field=0.3)
cases = {
    f"tree, longest path {nx.diameter(tree)}": rounds(network(tree, 1.0, rng)),
    "circle of 8": rounds(network(circle, 0.7, rng)),
    "torus, weak": rounds(network(grid, 0.35, rng)),
    "torus, strong": rounds(network(grid, 2.0, np.random.default_rng(3))),
    "five that repel each other": rounds(repelling),
    "the same, damped": rounds(repelling, damping=0.5),
}
figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for name, found in cases.items():
    left_over = np.maximum(np.asarray(found.residuals, float), 1e-16)
    ax.semilogy(np.arange(1, len(left_over) + 1), left_over, marker=".", label=name)
    print(f"{name:>27}: converged {found.converged!s:>5} after {found.iterations} rounds, {found.guarantee}")
ax.set(xlabel="round", ylabel="largest change of a message", ylim=(1e-14, 20))
ax.legend(frameon=False, fontsize=9)

# %%
# On a circle belief propagation settles at beliefs that count evidence more than once, as it comes around again. How
# wrong they are grows with the coupling; the likeliest states often stay right.

couplings = np.linspace(0.05, 1.5, 16)
errors = []
for coupling in couplings:
    ring = mf.Ising([(i, (i + 1) % 8) for i in range(8)], coupling=coupling, field=[0.3, 0, 0, -0.1, 0, 0, 0.1, 0])
    exact, loopy = mf.marginals(ring, method="junction_tree"), rounds(ring, most=500)
    errors.append(max(abs(exact[v][1] - loopy[v][1]) for v in ring.variables))
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(couplings, errors, marker="o")
ax.set(xlabel="coupling on a circle of 8", ylabel="largest error of a marginal")

# %%
# Maxima in place of sums find the best assignment of a tree. Reading each variable's best state off its max-marginal
# is safe where the best is unique; with ties one must walk back from a root (Caetano's "detail", Sudderth 24): here
# two assignments are best, and picking states one by one may mix them.

tie = mf.MarkovNetwork({"a": 2, "b": 2})
tie.add_factor(["a", "b"], [[1.0, 2.0], [2.0, 1.0]])
best = mf.marginals(tie).max_marginals
print(
    {v: best[v].tolist() for v in ("a", "b")}, "so every state looks best, but a = b is not;", mf.decode(tie).assignment
)
plt.show()
