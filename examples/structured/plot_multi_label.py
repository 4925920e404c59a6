"""
Several labels at once
======================

An input may have several labels, and which of them come together says something. Binary classifiers, one for each
label, cannot know; a CRF on the labels adds a weight for each pair, for the pairs of a tree, which keeps inference
linear, or for all pairs.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import KNeighborsClassifier

import markovfield as mf

# %%
# Data made by code: eight labels, drawn from a tree in which each edge wants two labels to come together or to exclude
# each other, and features that tell something of each. And the scenes of Boutell et al. (2004) where those are there:
# 294 colour features of photographs, six labels.

drawn = mf.datasets.make_multilabel(2500, n_features=12, n_labels=8, dependence=1.0, rng=0)
tasks = {"made by code": ((drawn.X[:500], drawn.Y[:500]), (drawn.X[500:], drawn.Y[500:]))}
try:
    scenes = [mf.datasets.scene(part) for part in ("train", "test")]
    tasks["scenes"] = tuple((part.X, part.Y) for part in scenes)
except FileNotFoundError as missing:
    print(missing)

# %%
# The same penalty for all. A chain of classifiers reads the labels before it in some order: the mean of five orders.
# ``"map"`` asks for the most probable labels as a whole, which gets most rows right; ``"mpm"`` for the most probable
# value of each label, which makes the fewest errors among labels (Murphy 19.79).

l2 = 1.0


def scores(truth, guess):
    """Rows all right, errors among labels, F1 over all labels."""
    return (np.all(guess == truth, axis=1).mean(), hamming_loss(truth, guess), f1_score(truth, guess, average="micro"))


def binary():
    """Logistic regression of one label."""
    return LogisticRegression(C=1 / l2, max_iter=2000)


found = {}
for task, ((X, Y), (X_test, Y_test)) in tasks.items():
    print(f"\n{task}: {len(X)} rows to learn from, {len(X_test)} to test, {X.shape[1]} features, {Y.shape[1]} labels")
    print(f"{'':30s} rows right  label errors     F1   seconds")
    started = time.perf_counter()
    rows = {"one against the rest": scores(Y_test, OneVsRestClassifier(binary()).fit(X, Y).predict(X_test))}
    seconds = [time.perf_counter() - started]
    started = time.perf_counter()
    rows["ten nearest neighbours"] = scores(Y_test, KNeighborsClassifier(10).fit(X, Y).predict(X_test))
    seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    chains = [ClassifierChain(binary(), order="random", random_state=i).fit(X, Y).predict(X_test) for i in range(5)]
    rows["chain of classifiers"] = np.mean([scores(Y_test, guess) for guess in chains], axis=0)
    seconds.append((time.perf_counter() - started) / 5)
    for dependence in ("independent", "tree", "full"):
        started = time.perf_counter()
        crf = mf.MultiLabelCRF(dependence, l2=l2).fit(X, Y)
        rows[f"CRF, {dependence}"] = scores(Y_test, crf.predict(X_test))
        seconds.append(time.perf_counter() - started)
        if dependence != "independent":
            rows[f"CRF, {dependence}, label by label"] = scores(Y_test, crf.predict(X_test, decision="mpm"))
            seconds.append(seconds[-1])
    for (name, (whole, errors, f1)), spent in zip(rows.items(), seconds, strict=True):
        print(f"{name:30s} {whole:10.1%} {errors:13.2%} {f1:6.3f} {spent:9.2f}")
    found[task] = rows, crf

# %%
# The pairs that the full model has learned: those that come together, and those that exclude each other; and what each
# model gains.

task = list(tasks)[-1]
rows, crf = found[task]
n_labels = tasks[task][0][1].shape[1]
pairs = np.full((n_labels, n_labels), np.nan)
for (i, j), weight in zip(crf.model_.known.edges, crf.coef_["pairs"].ravel(), strict=True):
    pairs[i, j] = pairs[j, i] = weight
figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.8), layout="constrained", width_ratios=[1, 1.2, 1.2])
limit = np.nanmax(np.abs(pairs))
shown = axes[0].imshow(pairs, cmap="RdBu", vmin=-limit, vmax=limit)
figure.colorbar(shown, ax=axes[0], shrink=0.8)
axes[0].set_title(f"weights of pairs of labels: {task}", loc="left", fontsize=10)
axes[0].set_facecolor("0.9")
if task == "made by code":
    ends = np.vstack([drawn.tree, drawn.tree[:, ::-1]])
    axes[0].plot(
        *ends.T,
        "o",
        color="#f0b429",
        markersize=6,
        mew=1.8,
        fillstyle="none",
        label="edges of the tree it was drawn from",
    )
    axes[0].legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08))
names = list(rows)
for ax, which, title in ((axes[1], 0, "rows all right"), (axes[2], 1, "errors among labels")):
    values = [rows[name][which] for name in names]
    colours = ["#8a97a3" if not name.startswith("CRF") else "#d1663a" for name in names]
    ax.barh(range(len(names)), values, color=colours)
    for i, value in enumerate(values):
        ax.text(value, i, f" {value:.1%}", va="center", fontsize=8)
    ax.set_yticks(range(len(names)), names if ax is axes[1] else [], fontsize=9)
    ax.set_xlim(0, 1.15 * max(values))
    ax.invert_yaxis()
    ax.set_title(f"{title}: {task}", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
