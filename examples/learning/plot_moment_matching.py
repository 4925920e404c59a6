"""
Moment matching in the chest clinic
===================================

At the maximum of the likelihood an undirected model expects of every feature what the data have (Murphy, 19.43). Here a
network of chest diseases makes the data, and undirected models of its moral graph are fitted to them; the answers to
two exercises of the chapter come with numbers.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The clinic is a Bayesian network. Its moral graph joins parents of a common child; made chordal, it is decomposable,
# and the maximum has a formula. Left as it is, with tables of pairs only, it has a cycle without a chord, and
# gradients find the maximum.

clinic = mf.datasets.asia()
data = mf.sample(clinic, 5000, rng=0)
states = {v: list(clinic.states(v)) for v in clinic.variables}
moral = mf.graphs.moralize(clinic.to_networkx())
chordal = mf.graphs.triangulate(moral)
cliques = mf.graphs.maximal_cliques(chordal)
tables = mf.MarkovNetwork(states)
for clique in cliques:
    tables.add_unknown(sorted(clique))
pairs = mf.MarkovNetwork.from_edges(states, moral.edges())
by_formula, by_gradients = mf.fit(tables, data), mf.fit(pairs, data, method="maximum_likelihood")
for name, model in (("cliques", by_formula), ("pairs", by_gradients)):
    report = model.fit_report
    print(f"{name:8} {report.method:20} log-likelihood {report.log_likelihood:.1f}, {report.n_parameters} parameters")

# %%
# Moments before and after: what the model of pairs expects of each of its indicators, against their frequencies.

start, end = mf.LogLinear.of(pairs), mf.LogLinear.of(by_gradients)
seen = mf.learning.empirical_moments(pairs, data)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, model, title in zip(axes, (start, end), ("all parameters zero", "maximum likelihood"), strict=True):
    ax.plot([0, 1], [0, 1], color="0.8", zorder=1)
    ax.plot(seen, mf.learning.expected_moments(model), "o", markersize=4, alpha=0.7)
    ax.set(title=title, xlabel="frequency in the data", aspect="equal")
axes[0].set_ylabel("expected by the model")
figure.tight_layout()
print("largest difference", np.abs(mf.learning.expected_moments(end) - seen).max())

# %%
# Exercise 19.1: the derivative of log Z by a parameter is the expectation of its feature. By differences of log Z:

theta = np.array(end.parameters)
expected = mf.learning.expected_moments(end)
for i in (0, 7, 30):
    step = np.zeros(len(theta))
    step[i] = 1e-5
    up, down = (float(mf.log_partition(end.with_parameters(theta + s * step))) for s in (1, -1))
    print(f"{end.parameter_names[i]:10} difference {(up - down) / 2e-5:.6f}   expectation {expected[i]:.6f}")

# %%
# Exercise 19.4: with k features, N rows, c for the marginals of one inference and r steps, training costs
# O(N k + r (c + k)), as the data are counted once. Where every row needs an inference of its own, as in a conditional
# model, or here with a value missing in each row, it is O(r N (c + k)); rows that are alike are one.

rows = np.array(data.states)
for n in (250, 5000):
    gaps = np.where(np.arange(8) == np.arange(n)[:, None] % 8, -1, rows[:n])
    each = 1 + len(np.unique(gaps, axis=0))
    steps = mf.fit(pairs, rows[:n], method="maximum_likelihood").fit_report.evaluations
    print(f"{n:5} rows: 1 inference a step if complete ({steps} in all), {each} a step with gaps")

# %%
# The formula needs whole cliques. Asked for the model of pairs, it names the cycle that is in its way.

try:
    mf.fit(pairs, data, method="closed_form")
except mf.ModelError as error:
    print(error)
