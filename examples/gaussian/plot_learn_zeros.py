"""
Two kinds of zeros
==================

A Gaussian has two graphs (Murphy 19.4.4 and figure 19.11). Zeros of its precision are pairs that are independent given
all others: the undirected graph. Zeros of its covariance are pairs that are independent by themselves: the covariance
graph, whose edges have two heads. Data tell which of the two is the sparse one."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# Marks of 88 students in five examinations of mathematics (Mardia, Kent and Bibby 1979), by their covariance. All
# marks go together: no covariance is zero. But given algebra, the two marks of geometry say nothing of the two others.

exams = ["mechanics", "vectors", "algebra", "analysis", "statistics"]
covariance = [
    [302.29, 125.78, 100.43, 105.07, 116.07],
    [125.78, 170.88, 84.19, 93.60, 97.89],
    [100.43, 84.19, 111.60, 110.84, 120.49],
    [105.07, 93.60, 110.84, 217.88, 153.77],
    [116.07, 97.89, 120.49, 153.77, 294.37],
]
marks = mf.learning.GaussianMoments(covariance, 88, [38.95, 50.59, 50.60, 46.68, 42.31], exams)
given_rest = mf.learning.correlation_tests(marks)
given_nothing = mf.learning.correlation_tests(marks, "nothing")

figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
mf.plot.graph(given_rest.graph(0.05, "none"), ax=axes[0], title="not independent given the rest")
mf.plot.graph(given_nothing.graph(0.05, "none"), ax=axes[1], title="not independent")
print(given_rest.to_frame().round(3).to_string(index=False))

# %%
# The butterfly fits as well as the complete graph: a deviance of 0.9 with four degrees of freedom. Independence does
# not. Four ways to the maximum end in the same numbers, as there is only one.

butterfly = mf.GaussianMarkovField(given_rest.graph(0.05, "none"))
fitted = mf.fit(butterfly, marks)
print(fitted.fit_report.details)
alone = nx.empty_graph(exams)
print(mf.fit(mf.GaussianMarkovField(alone), marks).fit_report.details)
for algorithm in ("closed_form", "newton", "ipf", "regression"):
    again = mf.fit(butterfly, marks, mf.methods.CovarianceSelection(algorithm))
    print(algorithm, again.fit_report.iterations, float(abs(again.precision - fitted.precision).max()) < 1e-9)

# %%
# The other way round: three measurements, two hidden causes that each move two of them. Figure 19.11 of Murphy has this
# graph. Its covariance has a zero, its precision has none, and the undirected graph that fits is complete.

rng = np.random.default_rng(0)
u, v, noise = rng.standard_normal(400), rng.standard_normal(400), rng.standard_normal((3, 400))
measured = {"y1": u + noise[0], "y2": u + v + noise[1], "y3": v + noise[2]}
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.0), layout="constrained")
mf.plot.graph(mf.learning.correlation_tests(measured).graph(), ax=axes[0], title="by zeros of the precision")
mf.plot.graph(mf.learning.correlation_tests(measured, "nothing").graph(), ax=axes[1], title="of the covariance")
path = mf.GaussianMarkovField([("y1", "y2"), ("y2", "y3")])
print("zeros of the precision: ", mf.fit(path, measured).fit_report.details)
print("zeros of the covariance:", mf.fit(path, measured, "icf").fit_report.details)

# %%
# Which graph is the likeliest of all decomposable ones, and how sure is each edge? Marginal likelihoods are in closed
# form there (19.5.7.4), so a walk over graphs gives the posterior probability of every edge.

search = mf.learn_structure(marks, method=mf.methods.DecomposableSearch(samples=20_000), rng=0)
figure, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
image = ax.imshow(search.details["frequencies"], cmap="Blues", vmin=0, vmax=1)
ax.set_xticks(range(5), exams, rotation=30)
ax.set_yticks(range(5), exams)
for i in range(5):
    for j in range(5):
        if i != j:
            share = search.details["frequencies"][i, j]
            ax.text(j, i, f"{share:.2f}", ha="center", va="center", color="white" if share > 0.5 else "black")
ax.set_title("posterior probability of an edge", fontsize=10)
print(search.edges)
plt.show()
