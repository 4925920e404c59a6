"""
Cutting planes, seen from above
===============================

Training by margins has a constraint for every wrong output of every example, far too many to write down. The cutting
plane method (Murphy, algorithm 19.3 and figure 19.21) begins with none of them, asks which one its weights break most,
adds it, and solves again. With two weights all of it can be drawn.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint, minimize

import markovfield as mf

# %%
# Four pixels in a row, black or white, and a model of two weights: what a pixel's brightness says for white, and what
# it costs neighbours to differ (Andres 6.22, an energy, so that less is better). Six examples; each has 15 wrong
# outputs.

rng = np.random.default_rng(1)
different = np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])
labels = [np.array(y) for y in ((0, 0, 1, 1), (1, 1, 1, 1), (0, 1, 1, 1), (0, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1))]
bright = [y - 0.5 + 0.4 * rng.normal(size=4) for y in labels]
examples = [
    [([i], np.array([[0.0, 0.0], [-b, 0.0]])) for i, b in enumerate(x)] + [([i, i + 1], different) for i in range(3)]
    for x in bright
]
outputs = [np.array(y) for y in product((0, 1), repeat=4)]


def features(x, y):
    """The two features of an output: brightness of what is called white, pairs that differ."""
    return np.array([-(x * y).sum(), np.abs(np.diff(y)).sum()])


# %%
# A wrong output asks that its energy be above that of the right one by at least the number of its wrong pixels: a
# half-plane of weights. The one that is broken most is found by decoding with the loss added; there are so few
# outputs here that all can be tried. Of all weights that keep what was asked so far, the shortest are taken.


def most_violated(w):
    """Over all examples, the half-plane ``normal . w >= loss`` that these weights break most, and by how much."""
    asked = [
        (features(x, other) - features(x, y), np.abs(other - y).sum())
        for x, y in zip(bright, labels, strict=True)
        for other in outputs
    ]
    normal, loss = max(asked, key=lambda plane: plane[1] - plane[0] @ w)
    return normal, loss, loss - normal @ w


def shortest(planes):
    """The shortest weights that keep some half-planes."""
    kept = LinearConstraint(np.array([p[0] for p in planes]), lb=np.array([p[1] for p in planes], float))
    return minimize(lambda w: 0.5 * w @ w, np.ones(2), jac=lambda w: w, constraints=[kept], method="SLSQP").x


axis = np.linspace(-1.0, 8.0, 400), np.linspace(-4.0, 5.0, 400)
grid = np.stack(np.meshgrid(*axis), -1)
way, planes = [np.zeros(2)], []
figure, axes = plt.subplots(1, 5, figsize=(15, 3.4), layout="constrained", sharey=True)
while len(planes) < 30:
    normal, loss, broken = most_violated(way[-1])
    print(f"{len(planes)} constraints: weights {way[-1].round(3)}, the most violated is broken by {broken:.4f}")
    if broken < 1e-6:
        break
    planes.append((normal, loss))
    way.append(shortest(planes))
    if len(planes) > len(axes):
        continue
    ax = axes[len(planes) - 1]
    allowed = np.all([grid @ n >= b for n, b in planes], axis=0)
    ax.contourf(*axis, allowed, levels=[0.5, 1.5], colors=["#d5e3f0"])
    for k, (n, b) in enumerate(planes):
        last = k == len(planes) - 1
        ax.contour(
            *axis, grid @ n - b, levels=[0], colors="#e07b39" if last else "#9aa7b3", linewidths=2 if last else 1
        )
    ax.add_patch(plt.Circle((0, 0), np.linalg.norm(way[-1]), fill=False, color="0.7", linestyle=":"))
    ax.plot(*np.array(way).T, marker="o", color="#22384f", markersize=4)
    ax.set(title=f"constraint {len(planes)}", xlabel="weight of brightness", aspect="equal")
    ax.set(xlim=(axis[0][0], axis[0][-1]), ylim=(axis[1][0], axis[1][-1]))
axes[0].set_ylabel("weight of differing neighbours")

# %%
# Shaded is what all half-planes so far allow, the newest is orange, and the line is the way of the weights. When the
# most violated one is kept, so are all others: the optimum over 90 constraints, of which a handful was ever looked
# at. The library's solver, which never lists outputs and allows for examples that cannot be told apart (slacks), ends
# at the same place when slacks are dear.

solver = mf.learning.CuttingPlane(gap=1e-9)
model = mf.StructuredClassifier(mf.structured.BinaryFactorModel(), objective="hinge", solver=solver, l2=1e-3)
model.fit(examples, labels)
print(model.weights_.round(3), way[-1].round(3))
print(model.report_)
plt.show()
