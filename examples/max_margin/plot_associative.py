"""
Segmentation that graph cuts can decode
=======================================

A structural SVM on a picture needs the most violated labels of every pixel, a hard problem in general. Where neighbours
only attract each other, two labels are decoded exactly by a minimum cut; so training keeps the weights of edges from
being negative (associative networks, Taskar, Chatalbashev and Koller 2004). Drawn shapes in noise are told apart here
with such weights and with none.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Discs in noise, so strong that single pixels tell little of their labels.

rng = np.random.default_rng(3)
rows, columns = np.indices((24, 24))


def shapes():
    """A few discs, and the picture of them."""
    labels = np.zeros((24, 24), int)
    for _ in range(3):
        row, column, radius = rng.uniform(4, 20), rng.uniform(4, 20), rng.uniform(3, 5)
        labels |= ((rows - row) ** 2 + (columns - column) ** 2 < radius**2).astype(int)
    return labels + rng.normal(scale=0.75, size=labels.shape), labels


pictures, labels = zip(*(shapes() for _ in range(12)), strict=True)
train, test = slice(0, 6), slice(6, 12)

# %%
# With ``associative=True`` the oracle is a graph cut, so that the gap is proven. Without edges every pixel is told by
# itself.

settings = {"C": 0.1, "interaction": "equal", "solver": mf.learning.BlockFrankWolfe(gap=1e-2), "rng": 0}
held = mf.GridSSVM(associative=True, **settings).fit(pictures[train], labels[train])
alone = mf.GridSSVM(edge_features=None, **settings).fit(pictures[train], labels[train])
print(held.report_)
print("weights of edges:", held.coef_["edges"].ravel().round(3))
right = [svm.score(pictures[test], labels[test]) for svm in (held, alone)]
print(f"right: {right[0]:.1%}, pixel by pixel {right[1]:.1%}")

# %%

figure, axes = plt.subplots(2, 4, figsize=(8, 4.2), layout="constrained")
for row, k in zip(axes, (6, 7), strict=True):
    found = [pictures[k], labels[k], alone.predict([pictures[k]])[0], held.predict([pictures[k]])[0]]
    for axis, image, title in zip(
        row, found, ("picture", "truth", "pixel by pixel", "neighbours attract"), strict=True
    ):
        axis.imshow(image, cmap="gray", interpolation="nearest")
        axis.set(xticks=[], yticks=[], title=title if k == 6 else "")
plt.show()
