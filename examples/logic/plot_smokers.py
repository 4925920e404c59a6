"""
Smokers and their friends
=========================

"Smoking causes cancer" and "friends smoke alike" are not always true. As formulas with weights they are a template for
a Markov network over any group of people (Murphy 19.4.5): here over a made-up group, of whom some were asked.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# The program: what each formula says holds the more often the larger its weight.

kb = mf.MarkovLogic(
    """
    *Friends(person, person)
    Smokes(person)
    Cancer(person)
     0.6  Smokes(x)
    -2.0  Cancer(x)
     1.5  Smokes(x) => Cancer(x)
     0.25  Friends(x, y) => (Smokes(x) <=> Smokes(y))
    """
)

# %%
# A group with circles of friends, six people who were asked whether they smoke, and one who is ill. Friendships are
# evidence; everything else is open.

people = nx.relabel_nodes(nx.connected_caveman_graph(6, 6), lambda i: f"P{i}")
asked = {"P0": True, "P1": True, "P8": False, "P14": True, "P20": False, "P31": False}
lines = [f"Friends({a}, {b})\nFriends({b}, {a})" for a, b in people.edges]
lines += [f"{'' if smokes else '!'}Smokes({name})" for name, smokes in asked.items()]
lines += ["Cancer(P26)"]
world = kb.ground("\n".join(lines) + "\n", query=["Smokes", "Cancer"])
print(world)
print(world.to_frame()[["rule", "groundings", "open"]].to_string())
answer = mf.marginals(world)
print(answer.guarantee, answer.method)

# %%
# Probability of smoking, by colour; those who were asked have a thick border, and the ill one a square. Illness of one
# friend moves the whole circle a little.


def smokes(name):
    return float(asked[name]) if name in asked else answer[f"Smokes({name})"][1]


layout = nx.kamada_kawai_layout(people)
figure, axis = plt.subplots(figsize=(8, 6), layout="constrained")
nx.draw_networkx_edges(people, layout, ax=axis, alpha=0.35)
for shape, chosen in (("o", [p for p in people if p != "P26"]), ("s", ["P26"])):
    drawn = nx.draw_networkx_nodes(
        people, layout, nodelist=chosen, node_color=[smokes(p) for p in chosen], cmap="YlOrRd", vmin=0, vmax=1,
        node_shape=shape, node_size=300, ax=axis, edgecolors="black",
        linewidths=[2.5 if p in asked else 0.6 for p in chosen],
    )  # fmt: skip
for dark in (True, False):
    some = {p: p for p in people if (smokes(p) > 0.6) == dark}
    nx.draw_networkx_labels(people, layout, some, font_size=7, font_color="white" if dark else "black", ax=axis)
figure.colorbar(drawn, ax=axis, label="probability of smoking", shrink=0.7)
axis.axis("off")

# %%
# The weights come back from data: fifty groups drawn from the network, and pseudo-likelihood.

groups = mf.sample(kb.ground("\n".join(line for line in lines if "Friends" in line) + "\n"), 50, rng=0)
databases = []
for row in np.asarray(groups.states):
    truths = [f"{'' if state else '!'}{name}" for name, state in zip(groups.graph.variables, row, strict=True)]
    databases.append("\n".join([*(line for line in lines if "Friends" in line), *truths]) + "\n")
fitted = kb.with_weights([0.0] * 4).fit(databases, query=["Smokes", "Cancer"], method="pseudo_likelihood")
for before, after in zip(kb.rules, fitted.rules, strict=True):
    print(f"{before.weight:5.2f} {after.weight:6.2f}  {before.formula}")
plt.show()
