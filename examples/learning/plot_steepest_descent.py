"""
Learning by steepest descent and message passing
================================================

Binary labels whose energy is a weighted sum of features of factors (Andres 6.3): the negative log-likelihood is convex,
its gradient is a difference of two sums of features, and the second of them, an expectation, is what takes time. Where
the factors make no circle, messages compute it in linear time; adding up all labellings takes ``2^n``.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Rows of pixels that are seen through noise, with three features: what is seen, a constant, and whether neighbours
# differ. Each factor brings its features for each combination of its labels.

different = np.zeros((2, 2, 3))
different[0, 1, 2] = different[1, 0, 2] = 1.0


def row(n, rng):
    """Factors of a row of so many pixels, and its labels, in runs."""
    y = np.repeat(rng.integers(0, 2, n // 4 + 1), 4)[:n]
    x = y - 0.5 + 0.6 * rng.normal(size=n)
    single = [([i], np.array([[0.0, 0.0, 0.0], [-x[i], -1.0, 0.0]])) for i in range(n)]
    return single + [([i, i + 1], different) for i in range(n - 1)], y


rng = np.random.default_rng(0)
X, Y = zip(*(row(40, rng) for _ in range(30)), strict=True)

# %%
# Algorithm 1: along the gradient as far as it helps, again and again. A line search makes each step the best one, and
# still the way is a zigzag; L-BFGS remembers where it came from.

solvers = {
    "steepest descent, exact line search": mf.learning.SteepestDescent(gradient_tolerance=1e-8, max_iterations=400),
    "L-BFGS": mf.learning.LBFGS(gradient_tolerance=1e-8, tolerance=0.0),
}
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
fits = {}
for name, solver in solvers.items():
    model = mf.StructuredClassifier(mf.structured.BinaryFactorModel(), solver=solver, l2=0.01)
    fits[name] = model.fit(list(X), list(Y))
    print(f"{name:>36}: weights {model.weights_.round(4)}, {model.report_.iterations} iterations")
best = max(max(fit.report_.history) for fit in fits.values())  # log-likelihoods
for name, fit in fits.items():
    above = np.maximum(best - np.asarray(fit.report_.history), 1e-12)
    axes[0].semilogy(above, marker=".", label=name)
axes[0].set(xlabel="iteration", ylabel="log-likelihood below the best")
axes[0].legend(frameon=False, fontsize=9)

# %%
# The gradient is zero where the expected features are those of the data (6.24 to 6.28): the probabilities of factors
# come from messages, here from the library's, and the sums agree.

fit = fits["L-BFGS"]
seen = np.zeros(3)
expected = np.zeros(3)
for x, y in zip(X, Y, strict=True):
    graph = mf.MarkovNetwork(dict.fromkeys(range(40), 2))
    for scope, features in x:
        seen += features[tuple(y[list(scope)])]
        graph.add_factor(scope, log_table=-(features @ fit.weights_))
    answer = mf.marginals(graph, method="belief_propagation", targets=[scope for scope, _ in x if len(scope) == 2])
    for scope, features in x:
        table = answer.joint(scope) if len(scope) == 2 else answer[scope[0]]
        expected += np.tensordot(table, features, axes=table.ndim)
print("of the data", seen.round(3), "expected", expected.round(3), "less the penalty", (0.01 * fit.weights_).round(4))

# %%
# What messages save: log Z of one row of n pixels, by all labellings and by messages.

lengths = list(range(4, 21, 2))
seconds = {"all labellings": [], "messages": []}
for n in lengths:
    x, _ = row(n, rng)
    graph = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for scope, features in x:
        graph.add_factor(scope, log_table=-(features @ fit.weights_))
    values = []
    for name, method in (
        ("all labellings", mf.methods.Enumeration(max_states=2**21)),
        ("messages", mf.methods.BeliefPropagation()),
    ):
        mf.log_partition(graph, method=method)
        times = []
        for _ in range(3):
            started = time.perf_counter()
            values.append(mf.log_partition(graph, method=method).log_partition)
            times.append(time.perf_counter() - started)
        seconds[name].append(1e3 * min(times))
    assert np.ptp(values) < 1e-8
for name, spent in seconds.items():
    axes[1].semilogy(lengths, spent, marker="o", label=name)
axes[1].set(xlabel="pixels in a row", ylabel="milliseconds")
axes[1].legend(frameon=False, fontsize=9)
plt.show()
