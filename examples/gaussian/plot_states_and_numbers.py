"""
States and numbers in one model
===============================

A waste incinerator (after Lauritzen 1992): discrete variables say how it burns, what it burns and whether its filter
works, and real-valued ones what comes out. Given a reading the probabilities of states are exact, and the densities of
numbers are mixtures.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Logarithms of emissions; each real-valued variable has a regression for each configuration of its discrete parents.

net = mf.ConditionalGaussianNetwork(
    {
        "burning": ["stable", "unstable"],
        "filter": ["intact", "defect"],
        "waste": ["industrial", "household"],
        "efficiency": None,
        "metal in waste": None,
        "CO2": None,
        "dust": None,
        "metal": None,
        "light": None,
    }
)
net.add_cpt("burning", [], [0.85, 0.15])
net.add_cpt("filter", [], [0.95, 0.05])
net.add_cpt("waste", [], [2 / 7, 5 / 7])
efficiency = [[-3.9, -3.2], [-0.4, -0.5]]
net.add_cpd("efficiency", ["filter", "waste"], bias=efficiency, variance=[[2e-5, 2e-5], [1e-4, 1e-4]])
net.add_cpd("metal in waste", ["waste"], bias=[0.5, -0.5], variance=[0.01, 0.005])
net.add_cpd("CO2", ["burning"], bias=[-2.0, -1.0], variance=[0.1, 0.3])
dust_bias, dust_variance = [[6.5, 6.0], [7.5, 7.0]], [[0.03, 0.04], [0.1, 0.1]]
net.add_cpd("dust", ["burning", "waste", "efficiency"], [1.0], bias=dust_bias, variance=dust_variance)
net.add_cpd("metal", ["metal in waste", "dust"], [1.0, 1.0], variance=0.002)
net.add_cpd("light", ["dust"], [-0.5], bias=3.0, variance=0.25)

before = mf.marginals(net)
after = mf.marginals(net, {"light": 1.5, "CO2": -0.9})
for name in ("burning", "filter", "waste"):
    print(f"{name:<8} {before[name].round(3)} -> {after[name].round(3)}")
print(f"dust     {before['dust'].mean:.2f} -> {after['dust'].mean:.2f}, a mixture: {after['dust'].mixture}")
print(mf.decode(net, {"light": 1.5, "CO2": -0.9}, variables=list(net.discrete)).assignment)

# %%
# The network, and the density of dust before and after the readings; dotted the Gaussian with the same two moments.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1.2, 1))
mf.plot.graph(net.to_networkx(), ax=left, title="Incinerator")
grid = np.linspace(1.5, 8.5, 600)
for answer, colour, said in ((before, "0.5", "before"), (after, "tab:red", "given light and CO2")):
    moments = answer["dust"]
    right.plot(grid, answer.mixture("dust").density(grid), color=colour, label=said)
    bell = np.exp(-0.5 * (grid - moments.mean) ** 2 / moments.variance) / np.sqrt(2 * np.pi * moments.variance)
    right.plot(grid, bell, color=colour, linestyle=":")
right.set_title("Dust emitted (logarithm)")
right.legend(frameon=False)
figure.tight_layout()
plt.show()

# %%
# From data alone: which columns of a table go together, whatever their kinds, along a path of penalties. The rows are
# drawn from an undirected model, so that it is known what should be found.

shops = mf.learning.MixedGraphicalModel(
    {
        "town": ["small", "middle", "large"],
        "visits": None,
        "sales": None,
        "rent": None,
        "open late": ["no", "yes"],
        "age": None,
    },
    precision=np.eye(4) + np.diag([-0.45, -0.4, 0.0], 1) + np.diag([-0.45, -0.4, 0.0], -1),
    shifts={
        "town": [[-1.2, 0, 0, 0], [0, 0, 0, 0], [1.2, 0, 0, 0]],
        "open late": [[0, -0.7, 0, 0], [0, 0.7, 0, 0]],
    },
)
rows = mf.sample(shops, 800, rng=0).to_frame()
learned = mf.learn_structure(rows, method=mf.methods.MixedGroupLasso(n_penalties=12))
path = learned.details
print("found:", learned.edges)
print("truth:", shops.edges)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
mf.plot.graph(learned.graph, ax=left, title=f"{len(learned.edges)} pairs that interact")
right.plot(path.penalties, path.ebic, marker="o", color="tab:blue")
right.axvline(path.penalties[path.chosen], color="0.6", linestyle="--")
right.set_xscale("log")
right.invert_xaxis()
right.set_xlabel("penalty")
right.set_title("Extended BIC along the path")
figure.tight_layout()
plt.show()
