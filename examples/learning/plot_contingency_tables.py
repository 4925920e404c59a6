"""
Contingency tables
==================

A table of counts is described by the sets of variables that interact: a hierarchical log-linear model. Fitting one
means finding the table with the margins that were observed and nothing else; choosing one means asking which of the
interactions the counts speak for.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf
from markovfield.models.generators import generator_text

# %%
# One hundred people by sex and hand (Murphy, 19.5.7.1). The model without interaction multiplies the two margins, and
# iterative proportional fitting finds it in one sweep, because the model is decomposable.

people = {"sex": ["male", "male", "female", "female"], "hand": ["right", "left"] * 2, "n": [43, 9, 44, 4]}
states = {"sex": ["male", "female"], "hand": ["right", "left"]}
independent = mf.MarkovNetwork.from_generators(states, "sex/hand")
fitted = mf.fit(independent, people, method="iterative_proportional_fitting", weights="n")
print(mf.learning.fitted_table(fitted, total=100).round(2))
print(fitted.fit_report)
print(fitted.fit_report.details.goodness_of_fit)

# %%
# The same algorithm moves a table to margins from elsewhere, and keeps the odds ratio that was observed: raking. Here
# the hundred people shall stand for a town of 5,000 in which half are women and one in ten is left-handed.

table = np.reshape(people["n"], (2, 2))
raked = mf.learning.rake(table, {0: [2500, 2500], 1: [4500, 500]})
print(raked.table.round(1))
print("odds ratios", *(round(t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]), 4) for t in (table, raked.table)))

# %%
# Margins that contradict each other are told, not averaged.

try:
    mf.learning.rake(table, {0: [2500, 2500], 1: [4500, 600]})
except mf.ModelError as error:
    print(error)

# %%
# Where a model is not decomposable, fitting takes several sweeps. What is left of the difference between margins falls
# by a constant factor in each, the more slowly the stronger the interactions. The table is never written down: the walk
# goes along a tree of cliques, and a ring of a hundred variables, 3^100 cells, is fitted like one of six; faster even,
# as what goes round such a ring is forgotten on the way.

rng = np.random.default_rng(0)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for n, strength in ((6, 1.0), (6, 2.0), (100, 2.0)):
    ring = mf.MarkovNetwork(dict.fromkeys(range(n), 3))
    for v in range(n):
        ring.add_factor([v, (v + 1) % n], log_table=strength * rng.normal(size=(3, 3)))
    rows = mf.sample(ring, 2000, rng=1)
    unknown = mf.MarkovNetwork.from_generators(dict.fromkeys(range(n), 3), [[v, (v + 1) % n] for v in range(n)])
    report = mf.fit(unknown, rows, method=mf.methods.IterativeProportionalFitting(tolerance=1e-14)).fit_report
    ax.semilogy(
        range(1, report.iterations + 1), report.details.deviations, "o-", label=f"{n} variables, strength {strength:g}"
    )
ax.set(
    xlabel="sweep",
    ylabel="largest difference of a margin",
    title="Proportional fitting on rings",
    xticks=range(1, 21, 3),
)
ax.legend()

# %%
# Which interactions are there? Six binary variables are drawn from a model that has a cycle without a chord and one
# variable by itself. Stepwise selection begins with all interactions of any order and deletes the one whose loss costs
# least, as long as the Bayesian information criterion grows. Among hierarchical models it finds the cycle; among
# decomposable ones, whose scores need no fitting, it must put a chord into it or do without an edge.

truth = nx.Graph([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A"), ("D", "E")])
truth.add_node("F")
model = mf.MarkovNetwork(dict.fromkeys("ABCDEF", 2))
for a, b in truth.edges:
    model.add_factor([a, b], log_table=[[0.6, -0.6], [-0.6, 0.6]])
rows = mf.sample(model, 3000, rng=2)
hierarchical = mf.learn_structure(rows, method=mf.methods.StepwiseSelection(direction="backward", criterion="bic"))
decomposable = mf.learn_structure(rows, method=mf.methods.StepwiseSelection(decomposable=True))
for learned in (hierarchical, decomposable):
    fit = learned.details.goodness_of_fit
    print(generator_text(learned.generators), f"G2 {fit.deviance:.1f} on {fit.degrees_of_freedom}, p {fit.p_value:.2f}")

place = {"A": (0, 1), "B": (0, 0), "C": (1, 0), "D": (1, 1), "E": (2, 1), "F": (2, 0)}
drawn = {"drawn from": truth, "hierarchical": hierarchical.graph, "decomposable": decomposable.graph}
figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, (title, graph) in zip(axes, drawn.items(), strict=True):
    nx.draw_networkx(graph, place, ax=ax, node_color="white", edgecolors="black", node_size=500)
    ax.set(title=title, xlim=(-0.4, 2.4), ylim=(-0.4, 1.4))
    ax.axis("off")

# %%
# The path to it. Each deletion costs some deviance and saves degrees of freedom; where what goes was not there, that is
# about one for each degree, the dashed line, and less at first, as what costs least goes first.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
orders = np.array([len(move.term) for move in hierarchical.history])
freedom = np.cumsum([move.degrees_of_freedom for move in hierarchical.history])
deviance = np.cumsum([move.deviance for move in hierarchical.history])
ax.plot(freedom, freedom, "--", color="0.7", zorder=0)
for order in sorted(set(orders), reverse=True):
    ax.plot(freedom[orders == order], deviance[orders == order], "o", label=f"{order} variables")
ax.set(xlabel="degrees of freedom", ylabel="deviance", title="Backward selection from the saturated model")
ax.legend(title="deleted interaction of")
print(hierarchical.history[-1])

# %%
# How sure are the numbers? The decomposable model has a conjugate prior, so its posterior is known and can be drawn
# from. The other's posterior is drawn by proportional fitting to margins that are themselves drawn (Bayesian
# proportional fitting). Both give the odds ratio of A and B within every slice of the table.

posterior = mf.fit(
    hierarchical.to_network(), rows, method=mf.methods.BayesianProportionalFitting(prior=1.0), rng=3
).fit_report.details.posterior
joint = posterior.joint()[:, :, :, 0, 0, 0, 0]
log_odds = np.log(joint[:, 0, 0] * joint[:, 1, 1] / (joint[:, 0, 1] * joint[:, 1, 0]))
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.hist(log_odds, bins=40, density=True, color="0.75")
ax.axvline(4 * 0.6, color="tab:orange", label="drawn from")
ax.set(xlabel="log odds ratio of A and B", yticks=[], title="Posterior of an interaction")
ax.legend()
print(f"{log_odds.mean():.2f} +- {log_odds.std():.2f}")

plt.show()
