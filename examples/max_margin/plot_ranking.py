"""
Rankings by precision at k
==========================

Of a list of items the first few are looked at. A structural SVM can be trained for just that: its loss is one less the
precision of the first k, and the most violated list is found by sorting (Murphy 19.7.5; Joachims 2005). Beside it is a
machine that counts wrong items, wherever in the list they are.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Lists of 30 items, a few of them relevant. Most relevant items look like each other; some are odd, to either side.

rng = np.random.default_rng(1)


def drawn():
    """Items of a list, and which are relevant."""
    relevant = (rng.random(30) < 0.2).astype(int)
    relevant[rng.integers(30)] = 1
    items = rng.normal(size=(30, 4))
    odd = relevant * (rng.random(30) < 0.3)
    items[:, 0] += 2.0 * (relevant - odd)
    items[:, 1] += 3.0 * odd * rng.choice([-1.0, 1.0], 30)
    return items, relevant


X, y = zip(*(drawn() for _ in range(150)), strict=True)
train, test = slice(0, 50), slice(50, 150)

# %%
# The share that is relevant among the first items of other lists, by machines for k = 1, for k = 5 and for all labels
# alike. Of 50 lists, a loss of the first item alone says too little: it is k = 5 that helps, there too.

first = range(1, 11)
curves = {}
for name, settings in {
    "for the first": {"k": 1},
    "for the first five": {"k": 5},
    "for all labels": {"loss": "hamming"},
}.items():
    svm = mf.structured.RankingSSVM(0.1, rng=0, **settings).fit(X[train], y[train])
    ranks = svm.rank(X[test])
    curves[name] = [np.mean([own[rank[:k]].mean() for own, rank in zip(y[test], ranks, strict=True)]) for k in first]
    print(f"{name}: precision of one {curves[name][0]:.3f}, of five {curves[name][4]:.3f}, gap {svm.report_.gap:.1e}")

# %%

figure, axis = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for name, values in curves.items():
    axis.plot(first, values, marker="o", label=name)
axis.set(xlabel="items that are looked at", ylabel="share that is relevant", title="100 lists of 30 items")
axis.legend()
plt.show()
