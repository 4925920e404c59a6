"""
Learning a network: counting, dividing, filling in
==================================================

Where everything was seen, the best tables of a directed model are shares of counts; an undirected model whose graph is
decomposable has a closed form as well (Caetano, lecture 6). Where something was not seen, EM fills it in by what the
present model believes, learns from that, and begins again.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Counts: what a table says of a row is the share of that row in the data, ``m(x, parents) / m(parents)``.

net = mf.datasets.sprinkler()
data = mf.sample(net, 2000, rng=0)
fitted = mf.fit(net, data, method="maximum_likelihood")
cloudy, rain = (np.asarray(data[v]) for v in ("cloudy", "rain"))
share = np.mean(rain[cloudy == net.states("cloudy")[1]] == net.states("rain")[1])
print(round(share, 6), round(fitted.cpt("rain")[1, 1], 6), "| true", net.cpt("rain")[1, 1])

# %%
# An undirected chain a - b - c: the maximum of the likelihood is ``p(a, b) p(b, c) / p(b)``, with the shares of the
# data. It is what a solver finds that knows nothing of it, and what proportional fitting finds in one round.

chain = mf.MarkovNetwork.from_edges({"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b", "c")])
rng = np.random.default_rng(1)
table = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
rows = np.stack(np.unravel_index(rng.choice(12, 500, p=table.ravel()), table.shape), axis=1)
seen = np.zeros((2, 3, 2))
np.add.at(seen, tuple(rows.T), 1 / len(rows))
closed = np.einsum("ab,bc,b->abc", seen.sum(2), seen.sum(0), 1 / seen.sum((0, 2)))
columns = dict(zip("abc", rows.T, strict=True))
for method in ("closed_form", "ipf", "maximum_likelihood"):
    joint = mf.marginals(mf.fit(chain, columns, method=method)).joint(["a", "b", "c"])
    print(f"{method:>20}: differs from the formula by at most {np.abs(joint - closed).max():.1e}")

# %%
# A class that nobody sees: the likelihood no longer falls apart into tables, and may have several peaks. EM climbs
# from where it starts, never down; restarts tell whether they matter. Here all end at the same height, some much
# later than others.

hidden = mf.BayesianNetwork({"class": ["u", "v", "w"], **{f"x{i}": 2 for i in range(8)}})
hidden.add_cpt("class", [], [0.5, 0.3, 0.2])
profiles = np.array([[0.9] * 4 + [0.2] * 4, [0.15] * 4 + [0.85] * 4, [0.8, 0.2] * 4])
for i in range(8):
    hidden.add_cpt(f"x{i}", ["class"], np.stack([1 - profiles[:, i], profiles[:, i]], axis=1))
cases = mf.sample(hidden, 600, rng=2).to_dict()
truth = cases.pop("class")
blank = mf.BayesianNetwork({v: hidden.states(v) for v in hidden})
for i in range(8):
    blank.set_parents(f"x{i}", ["class"])
runs = [mf.fit(blank, cases, "em", hidden=["class"], rng=seed) for seed in range(12)]
best = max(runs, key=lambda run: run.fit_report.log_likelihood)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for run in runs:
    history = np.asarray(run.fit_report.history)
    axes[0].plot(history, color="#1f5f99" if run is best else "#9db7d1", linewidth=2 if run is best else 1)
    assert (np.diff(history) >= -1e-6).all()
axes[0].set(xlabel="iteration", ylabel="log-likelihood", title="Twelve starts of EM")
axes[0].set_ylim(min(r.fit_report.history[-1] for r in runs) - 60, best.fit_report.log_likelihood + 5)

# %%
# What was learnt: classes come back in some order, which the data cannot tell. Matched to the true ones, the profiles
# agree.

learnt = np.array([[best.cpt(f"x{i}")[k, 1] for i in range(8)] for k in range(3)])
order = [int(np.argmin([np.abs(row - p).sum() for row in learnt])) for p in profiles]
for k, (name, colour) in enumerate(zip("uvw", ("#1f5f99", "#e07b39", "#4c8c4a"), strict=True)):
    axes[1].plot(profiles[k], color=colour, linestyle=":", marker="_", markersize=14)
    axes[1].plot(learnt[order[k]], "o", color=colour, label=f"class {name}")
axes[1].set(xlabel="variable", ylabel="probability of 1", title="Learnt (dots) and true (lines)", ylim=(0, 1.15))
axes[1].legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
guess = mf.predict(best, cases, targets="class")["class"]
match = {best.states("class")[order[k]]: name for k, name in enumerate("uvw")}
print(f"cases put into their class: {np.mean([match.get(g) == t for g, t in zip(guess, truth, strict=True)]):.1%}")

# %%
# The bound that EM climbs: at the present parameters it touches the log-likelihood, and so a step that raises the
# bound raises the log-likelihood by at least as much. Along the line from one iterate to the next, both are drawn.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # stopped early on purpose
    starts = [
        mf.fit(blank, cases, mf.methods.ExpectationMaximization(max_iterations=n), hidden=["class"], rng=3)
        for n in (1, 2)
    ]


def between(t):
    """The network on the way from the first to the second, in log-probabilities."""
    mixed = mf.BayesianNetwork({v: blank.states(v) for v in blank})
    for v in blank:
        p = starts[0].cpt(v) ** (1 - t) * starts[1].cpt(v) ** t
        mixed.add_cpt(v, blank.parents(v), p / p.sum(-1, keepdims=True))
    return mixed


def bound(net, q):
    """The expected complete log-likelihood under ``q``, plus its entropy."""
    logs = np.stack(
        [
            np.log(net.cpt("class")[k])
            + sum(np.log(net.cpt(f"x{i}")[k][np.asarray(cases[f"x{i}"], int)]) for i in range(8))
            for k in range(3)
        ],
        axis=1,
    )
    return float((q * (logs - np.log(q))).sum())


states = blank.states("class")
q = mf.predict(starts[0], cases, targets="class")[[f"P(class={s})" for s in states]].to_numpy()
ways = np.linspace(-0.5, 2.0, 26)
likelihoods = [mf.learning.log_likelihood(between(t), cases) for t in ways]
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(ways, likelihoods, label="log-likelihood")
ax.plot(ways, [bound(between(t), q) for t in ways], label="bound of the E step")
ax.axvline(0, color="0.8")
ax.axvline(1, color="0.8")
ax.set(xlabel="from one iterate (0) to the next (1)")
ax.legend(frameon=False)
print(f"at 0 they touch: {mf.learning.log_likelihood(starts[0], cases):.6f} and {bound(starts[0], q):.6f}")
plt.show()
