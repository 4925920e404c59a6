"""
Arcs and spans: how sure is a tree?
===================================

The best tree of a sentence hides how close others came. Here are the probabilities of all arcs of dependency trees,
with and without crossings, and those of all spans of binary trees, each from one pass over all trees there are: the
matrix-tree theorem, Eisner's algorithm and the inside-outside algorithm.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Scores of arcs for a sentence that can be read in two ways: who has the telescope? A preposition likes the verb
# nearly as much as the noun before it.

words = ["I", "saw", "a", "girl", "with", "a", "telescope"]
n = len(words)
arcs = np.full((n + 1, n + 1), -2.0)
for head, word, score in [
    (0, 2, 4.0), (2, 1, 3.0), (2, 4, 3.0), (4, 3, 3.0), (2, 5, 1.6), (4, 5, 1.2), (5, 7, 3.0), (7, 6, 3.0),
]:  # fmt: skip
    arcs[head, word] = score
forms = {
    "any tree": mf.structures.SpanningTree(arcs),
    "no crossings": mf.structures.ProjectiveTree(arcs),
}
for name, form in forms.items():
    answer = mf.marginals(form)
    best = mf.decode(form, n_best=2)
    heads = [["root", *words][h] for h in best.n_best[1].structure]
    print(f"{name:12s}: {form.n_structures():8.0f} trees, entropy {answer.entropy:.2f} nats, the best has probability")
    print(f"    {np.exp(best.score - answer.log_partition):.2f}; in the second best the head of 'with' is {heads[4]!r}")

# %%
# Row 0 is the root; a column sums to one, as every word has one head.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for axis, (name, form) in zip(axes, forms.items(), strict=True):
    image = axis.imshow(mf.marginals(form)["arcs"][:, 1:], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(n), words, rotation=45, ha="right")
    axis.set_yticks(range(n + 1), ["root", *words])
    axis.set_title(name)
    axis.set_xlabel("word")
axes[0].set_ylabel("head")
figure.colorbar(image, ax=axes, shrink=0.8, label="probability of the arc")

# %%
# Spans with scores of their own: two that cross compete, and a tree has one of them. Evidence settles it: that "girl
# with a telescope" is no unit.

scores = np.zeros((n, n, 1))
for first, last, score in [(2, 3, 2.0), (5, 6, 2.0), (4, 6, 2.5), (2, 6, 1.5), (1, 6, 2.0), (1, 3, 1.2)]:
    scores[first, last] = score
spans = mf.structures.SpanTree(scores)
evidence = {"spans": {(2, 6, 0): False}}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for axis, (title, given) in zip(
    axes, (("as it is", None), ("'a girl ... telescope' ruled out", evidence)), strict=True
):
    shown = mf.marginals(spans, given)["spans"][:, :, 0]
    image = axis.imshow(np.where(np.tri(n, k=-1) > 0, np.nan, shown), cmap="Oranges", vmin=0, vmax=1)
    axis.set_xticks(range(n), words, rotation=45, ha="right")
    axis.set_yticks(range(n), words)
    axis.set_title(title)
    axis.set_xlabel("last word")
    for i, j in np.argwhere(shown > 0.3):
        if i != j:
            axis.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=8)
axes[0].set_ylabel("first word")
figure.colorbar(image, ax=axes, shrink=0.8, label="probability of the span")
plt.show()
