"""
A dynamic chain graph of series
===============================

A vector autoregression is a directed model across time and an undirected one within a time step (Murphy 19.4.4.1). Its
graph is learned by tests of what helps to predict what, and the model is fitted again on that graph. Missing values are
for the Kalman smoother, which is exact inference in the unrolled field.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Four series: interest rates hold orders back, orders raise output, and the noise of prices and wages goes together.

names = ["rate", "orders", "output", "prices", "wages"]
weights = np.diag([0.7, 0.5, 0.6, 0.8, 0.7])
weights[1, 0], weights[2, 1], weights[3, 2] = -0.4, 0.4, 0.2
noise = np.eye(5)
noise[3, 4] = noise[4, 3] = 0.6
true = mf.VectorAutoregression.from_parameters([weights], noise, variables=names)
series = true.simulate(300, rng=1)

free = mf.VectorAutoregression(order=1).fit(series)
graph = free.tested_graph(alpha=0.05)
model = mf.VectorAutoregression(order=1, graph=graph).fit(series)
print("found:  ", graph)
print("truth:  ", true.chain_graph())
print(f"BIC: {free.fit_report.bic:.1f} with all weights, {model.fit_report.bic:.1f} on the graph (higher is better)")
print("orders by BIC:", mf.VectorAutoregression.select_order(series, 4).best("bic"))

# %%
# The chain graph, and the same unrolled: arrows from one time step to the next, edges within the last.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1, 1.5))
mf.plot.graph(graph, ax=left, title="Arrows across time, edges within")
mf.plot.graph(model.dynamic_graph(), ax=right, title="The same, unrolled")
plt.show()

# %%
# Forecasts with their bands, and what a unit of noise in the interest rate does to the others.

ahead = model.forecast(24, level=0.9)
responses = model.impulse_responses(24)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2))
for axis, name in zip(axes, ("orders", "output"), strict=False):
    at = names.index(name)
    axis.plot(range(-40, 0), series[name][-40:], color="0.3", linewidth=1)
    axis.plot(range(24), ahead[name], color="tab:blue")
    axis.fill_between(range(24), ahead.lower[:, at], ahead.upper[:, at], color="tab:blue", alpha=0.2, linewidth=0)
    axis.set_title(f"{name}: forecast, 90 % band")
    axis.set_xlabel("steps from now")
for name in ("orders", "output", "prices"):
    axes[2].plot(responses[name, "rate"], label=name)
axes[2].axhline(0, color="0.7", linewidth=0.8)
axes[2].set_title("After a unit of noise in the rate")
axes[2].set_xlabel("steps after it")
axes[2].legend(frameon=False)
figure.tight_layout()
plt.show()

# %%
# Thirty values of output get lost. The smoother fills them in with what the other series say, and how sure that is.

lost = dict(series)
lost["output"] = np.where((np.arange(300) >= 200) & (np.arange(300) < 230), np.nan, series["output"])
states = model.state_space().smooth(lost)
at, seen = names.index("output"), slice(180, 250)
mean, deviation = states.mean[seen, at], np.sqrt(np.maximum(states.variance[seen, at], 0.0))
figure, axis = plt.subplots(figsize=(9, 3.2))
time = np.arange(300)[seen]
axis.fill_between(time, mean - 1.645 * deviation, mean + 1.645 * deviation, color="tab:orange", alpha=0.25, linewidth=0)
axis.plot(time, series["output"][seen], color="0.6", linewidth=1, label="what it was")
axis.plot(time, mean, color="tab:orange", label="smoothed")
axis.plot(time, lost["output"][seen], color="0.1", linewidth=1.2, label="what was seen")
axis.set_title("Output, with thirty values missing")
axis.legend(frameon=False, ncol=3)
figure.tight_layout()
plt.show()
