"""
Stereo matching by six methods
==============================

One pair of views, one model, six ways to decode it: how good, how fast, and what is proven. The pairs' costs are
truncated linear, a metric, so that expansion moves are cuts (Boykov, Veksler and Zabih 2001); with truncated quadratic
ones only swap moves would be.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Tsukuba at half its size from the reference data where that is there, otherwise squares of random dots. At full size
# (a step of 1) all below takes some minutes.

STEP = 2
try:
    pair, scene = mf.datasets.stereo_pair("tsukuba", step=STEP), "Tsukuba"
except FileNotFoundError:
    pair, scene = mf.datasets.random_dots((80, 110), noise=0.06, rng=0), "random dots"
model = mf.StereoMatching(
    pair.max_disparity, smoothness="truncated_linear", weight=1.0, data="birchfield_tomasi", noise=0.025
)
graph = model.to_factor_graph(pair.left, pair.right)
print(f"{scene}: {graph.n_variables} variables of {pair.max_disparity + 1} states, {graph.structure.n_factors} factors")

# %%
# Every method tells its score while it works, TRW-S its bound as well. A score is a sum of log-potentials; no
# assignment can have one above the bound. What the others leave open TRW-S can answer: how far they are from the best.

methods = {
    "ICM": mf.methods.ICM(),
    "simulated annealing": mf.methods.SimulatedAnnealing(sweeps=40),
    "max-product BP": mf.methods.BeliefPropagation("synchronous", max_iterations=60, damping=0.3),
    "swap moves": mf.methods.AlphaBetaSwap(),
    "expansion moves": mf.methods.AlphaExpansion(),
    "TRW-S": mf.methods.TRWS(max_iterations=60),
}


def seed(method):
    """Those that draw numbers at random, always the same."""
    return {"rng": 0} if "rng" in method.abilities else {}


for method in methods.values():
    # A first small call loads what is compiled, so that the clock below measures the work.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corner = model.to_factor_graph(pair.left[:12, :40], pair.right[:12, :40])
        mf.decode(corner, method=method, **seed(method))

answers, traces = {}, {}
for name, method in methods.items():
    trace = []
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        answers[name] = mf.decode(
            graph,
            method=method,
            callback=lambda p, trace=trace: trace.append((p.seconds, p.value, p.bound)),
            **seed(method),
        )
    seconds = time.perf_counter() - started
    traces[name] = (seconds, trace)

best_bound = min(answer.upper_bound for answer in answers.values())
print(f"\n{'':>20}  {'score':>9}  {'below the bound':>15}  {'bad pixels':>10}  seconds")
pictures = {}
for name, answer in answers.items():
    pictures[name] = answer.states.reshape(pair.disparity.shape)
    bad = mf.vision.disparity_error(pictures[name], pair.disparity)
    short = (best_bound - answer.score) / abs(best_bound)
    print(f"{name:>20}  {answer.score:9.0f}  {short:15.2%}  {bad:10.2%}  {traces[name][0]:7.1f}")

# %%
# The truth itself scores less than what the best methods find: the model is now the weaker part, not the decoding.

known = np.isfinite(pair.disparity)
filled = np.where(known, np.nan_to_num(pair.disparity), pictures["TRW-S"]).round().astype(int)
print(f"{'the truth':>20}  {float(graph.score(filled.ravel())):9.0f}  (unknown pixels as TRW-S has them)")

# %%
# Scores and the bound over time, and what the methods see.

colours = ["#8a5fb0", "#b59a2d", "#5c7c8a", "#3a9d6e", "#e07b39", "#2f6fb0"]
figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
for (name, answer), colour in zip(answers.items(), colours, strict=True):
    seconds, trace = traces[name]
    at = [(s, v) for s, v, _ in trace if v is not None and np.isfinite(v)] + [(seconds, answer.score)]
    x, y = np.array(at).T
    ax.step(x, best_bound - y, where="post", color=colour, linewidth=1.6)
    ax.plot(x[-1], best_bound - y[-1], "o", color=colour, markersize=6, label=name)
seconds, trace = traces["TRW-S"]
x, y = np.array([(s, b) for s, _, b in trace if b is not None and np.isfinite(b)]).T
best_score = max(answer.score for answer in answers.values())
ax.step(x, y - best_score, where="post", color=colours[-1], linewidth=1.2, linestyle=":", label="bound of TRW-S")
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlabel("seconds")
ax.set_ylabel("log-potential")
ax.set_title("scores below the best bound; dotted, a bound above the best score", loc="left", fontsize=10)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))

# sphinx_gallery_thumbnail_number = 2
mf.plot.image_grid(
    [p / pair.max_disparity for p in pictures.values()],
    [f"{name}: {mf.vision.disparity_error(p, pair.disparity):.1%} bad" for name, p in pictures.items()],
    n_columns=3,
    cmap="magma",
    width=11,
)
plt.show()
