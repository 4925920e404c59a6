"""
Classes in a taxonomy
=====================

Where classes stand in a taxonomy, those that are near each other can share what is learnt: a class has its own weights
and those of all its ancestors, features of the input times bits of the label (Murphy 19.6.2.5). Inference is no harder
than in multinomial logistic regression; what changes is what the penalty calls simple.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import markovfield as mf

# %%
# First where the taxonomy is true: sixteen classes, the leaves of a binary tree. Each node of the tree has a random
# vector, the mean of a class is the sum of those on its way to the root, and inputs are means with noise.

n_features, depth = 40, 4
leaves = [format(c, f"0{depth}b") for c in range(2**depth)]
tree = {node[:n]: node[: n - 1] or "all" for node in leaves for n in range(1, depth + 1)}


def drawn(each, rng):
    """So many inputs of each class; the means are always the same."""
    fixed = np.random.default_rng(0)
    vectors = {node: 0.5 * fixed.normal(size=n_features) for node in sorted(tree)}
    means = np.array([sum(vectors[leaf[:n]] for n in range(1, depth + 1)) for leaf in leaves])
    y = np.repeat(np.arange(len(leaves)), each)
    return means[y] + 1.5 * rng.normal(size=(len(y), n_features)), np.array(leaves)[y]


# %%
# The digits have no such tree; a guess, by their shape: which have a closed ring, which an open bow, which straight
# lines.

pixels, digits = load_digits(return_X_y=True)
shape = {0: "ring", 6: "ring", 8: "ring", 9: "ring", 2: "bow", 3: "bow", 5: "bow", 1: "line", 4: "line", 7: "line"}


def chosen(each, rng):
    """So many rows of each digit, and all the others."""
    rows = np.concatenate([rng.permutation(np.flatnonzero(digits == d))[:each] for d in range(10)])
    rest = np.setdiff1d(np.arange(len(digits)), rows)
    return (pixels[rows] / 16, digits[rows]), (pixels[rest] / 16, digits[rest])


# %%
# Both with few examples of each class, against scikit-learn's logistic regression with the same penalty, and against
# our own without the taxonomy, which is the same model: the mean of several draws of training data. Beside right labels
# stand right families, the ancestors two levels down from the root: errors that stay near are smaller errors.

draws, l2 = 5, 1.0
few = (1, 2, 4, 8, 16)


def shares(train, test, taxonomy, family):
    """The share of right labels, and of right families, of each model."""
    models = {
        "scikit-learn": LogisticRegression(C=1 / l2, max_iter=1000),
        "flat": mf.MulticlassCRF(l2=l2),
        "taxonomy": mf.HierarchicalClassifier(taxonomy, l2=l2),
    }
    right = {}
    for name, model in models.items():
        pairs = list(zip(model.fit(*train).predict(test[0]).tolist(), test[1].tolist(), strict=True))
        right[name] = np.mean([(a == b, family(a) == family(b)) for a, b in pairs], axis=0)
    return right


tasks = ("made, tree is true", "digits, tree is a guess")
found = {}
for each in few:
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        found[tasks[0], each, seed] = shares(drawn(each, rng), drawn(100, rng), tree, lambda leaf: leaf[:2])
        found[tasks[1], each, seed] = shares(*chosen(each, rng), shape, shape.get)
names = ("scikit-learn", "flat", "taxonomy")
for task in tasks:
    print(f"\n{task:25s} right labels:" + 18 * " " + "right families:")
    print(26 * " " + 2 * "".join(f"{name:>13s}" for name in names))
    for each in few:
        mean = np.mean([[found[task, each, s][name] for name in names] for s in range(draws)], axis=0)
        print(f"{each:4d} of each class       " + "".join(f"{share:13.1%}" for share in mean.T.ravel()))

# %%
# On the left the bits of each class (Figure 19.19 of Murphy): columns are nodes of the tree. Where the tree is true and
# examples are few, the gain is two to three labels in a hundred, and more in families; it goes away as examples grow. A
# tree that is a guess changes little either way.

model = mf.structured.HierarchyModel(tree).shaped(*drawn(1, np.random.default_rng(0)))
order = np.lexsort((list(model.nodes), [len(node) if node != "all" else 0 for node in model.nodes]))
figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained", width_ratios=[1.25, 1, 1])
axes[0].imshow(model.bits[:, order], cmap="Blues", vmax=1.4, aspect="auto")
axes[0].set_title("bits of a class: itself and its ancestors", loc="left", fontsize=10)
axes[0].set_xlabel("nodes, from the root down")
axes[0].set_ylabel("classes")
for ax, task in zip(axes[1:], tasks, strict=True):
    for name, colour in (("flat", "#8a97a3"), ("taxonomy", "#d1663a")):
        rows = np.array([[found[task, each, s][name] for s in range(draws)] for each in few])
        ax.plot(few, rows[..., 0], ".", color=colour, alpha=0.35)
        ax.plot(few, rows[..., 0].mean(axis=1), "o-", color=colour, label=f"{name}, labels")
        ax.plot(few, rows[..., 1].mean(axis=1), "s--", color=colour, markersize=4, label=f"{name}, families")
    ax.set_xscale("log", base=2)
    ax.set_xticks(few, few)
    ax.set_xlabel("training examples of each class")
    ax.set_title(f"share right: {task}", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
plt.show()
