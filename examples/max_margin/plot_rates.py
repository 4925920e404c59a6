"""
A table of rates, measured
==========================

Lecture notes (Sontag 2013) list how many calls of an oracle solvers of structural SVMs need at most for an accuracy e:
as 1 / e for dual extragradient, exponentiated gradient, bundle methods (BMRM, one slack), subgradients and
block-coordinate Frank-Wolfe, the last two without a factor of the number n of examples, and as ``n / sqrt(e)`` for
excessive gap reduction. Here are the same solvers on words of the letters, or on drawn chains where
these are not at hand.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf
from markovfield.learning import (
    BlockFrankWolfe,
    CuttingPlane,
    DualExtragradient,
    ExcessiveGap,
    ExponentiatedGradient,
    Subgradient,
)

# %%
# Short words, as graphs that are chains: solvers by marginals take factor graphs.

try:
    data = mf.datasets.handwritten_words()
    chosen = [i for i, word in enumerate(data.labels) if len(word) <= 6][:30]
    images = [data.images[i].reshape(len(data.labels[i]), -1).astype(float) for i in chosen]
    X = [(image, [[t, t + 1] for t in range(len(image) - 1)]) for image in images]
    y = [list(data.labels[i]) for i in chosen]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        states = rng.integers(0, 6, 5)
        X.append((np.eye(6)[states] + rng.normal(scale=0.7, size=(5, 6)), [[t, t + 1] for t in range(4)]))
        y.append(states.tolist())
model = mf.structured.GraphModel("directed", bias=False)


def trained(solver):
    """The report of a solver."""
    svm = mf.StructuredClassifier(model, objective="hinge", solver=solver, l2=10.0, batch_size=1, rng=0)
    return svm.fit(X, y).report_


best = trained(BlockFrankWolfe(gap=1e-5)).dual
reports = {
    "block Frank-Wolfe, planes kept": trained(BlockFrankWolfe(gap=1e-4, check_every=1)),
    "block Frank-Wolfe, plain": trained(
        BlockFrankWolfe(gap=1e-3, steps="toward", sweeps=0, keep=1, averaged=True, check_every=2, max_passes=60)
    ),
    "one slack (BMRM)": trained(CuttingPlane("one", gap=1e-3, max_passes=100)),
    "subgradient": trained(Subgradient(60, check_every=2)),
    "exponentiated gradient": trained(ExponentiatedGradient(gap=1e-3, max_passes=30, check_every=2)),
    "dual extragradient": trained(DualExtragradient(gap=1e-3, max_passes=30, check_every=2)),
    "excessive gap": trained(ExcessiveGap(gap=1e-3, max_passes=30, check_every=2)),
}

# %%
# The least primal so far, above the optimum, against calls of the oracle for each example (runs of inference, for those
# that take expectations). Lines of slope -1 and -2 are rates of 1 / e and 1 / sqrt(e).

figure, axis = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
for name, report in reports.items():
    seen = [(one.oracle_calls / len(X), one.primal) for one in report.passes if np.isfinite(one.primal)]
    calls, primal = np.array(seen).T
    above = np.minimum.accumulate(primal) / best - 1.0
    shown = (above > 0) & (calls > 0)
    axis.loglog(calls[shown], above[shown], marker=".", label=name)
    print(f"{name}: {above[-1]:.2e} above the optimum after {calls[-1]:.0f} calls for each example")
calls = np.array([3.0, 100.0])
axis.loglog(calls, 3.0 / calls, "k:", label="1 / e")
axis.loglog(calls, 9.0 / calls**2, "k--", label="1 / sqrt(e)")
axis.set(xlabel="calls of the oracle for each example", ylabel="primal above the optimum, as a share", ylim=(3e-5, 30))
axis.legend(fontsize=7)
plt.show()
