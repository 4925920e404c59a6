"""
Parses and how sure they are
============================

A probabilistic grammar (Murphy 19.6.2.4) has a probability for every tree of a sentence, and so for every constituent.
Below are both readings of an ambiguous sentence, a chart of probabilities on newspaper text, and a check that these
probabilities mean what they say.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Who has the telescope? The grammar leaves it open, and says how open.

grammar = mf.PCFG.from_text(
    """
    S   -> NP VP [1.0]
    NP  -> NP PP [0.2] | Det N [0.6] | 'she' [0.2]
    VP  -> V NP [0.6] | VP PP [0.3] | 'slept' [0.1]
    PP  -> P NP [1.0]
    Det -> 'the' [0.6] | 'a' [0.4]
    N   -> 'man' [0.4] | 'dog' [0.3] | 'telescope' [0.3]
    V   -> 'saw' [1.0]
    P   -> 'with' [1.0]
    """
)
sentence = ["she", "saw", "the", "man", "with", "a", "telescope"]
total = grammar.log_likelihood([sentence])[0]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2))
for ax, (tree, score) in zip(axes, grammar.n_best(sentence, 2), strict=True):
    mf.plot.tree(tree, title=f"probability {np.exp(score - total):.2f}", ax=ax)
figure.tight_layout()

# %%
# A grammar read off trees: of the Penn Treebank's sample where it is there, otherwise of trees that a grammar with
# coordination made. Tags are given; labels remember their parents, the rest of a long rule its last sibling.

try:
    trees = mf.io.read_trees(mf.datasets.reference_path("ptb_sample", "wsj_0001-0199.mrg.gz"))
    train, test = trees[:3522], [tree for tree in trees[3522:] if 8 <= len(tree.leaves) <= 25][:120]
except FileNotFoundError:
    source = mf.PCFG.from_text(
        """
        S  -> NP VP [1.0]
        NP -> NP PP [0.2] | D N [0.5] | 'Kim' [0.2] | NP C NP [0.1]
        VP -> V NP [0.5] | V NP PP [0.3] | V [0.1] | VP C VP [0.1]
        PP -> P NP [1.0]
        D -> 'the' | 'a'
        N -> 'man' | 'dog' | 'hill' | 'rain'
        V -> 'saw' | 'met'
        P -> 'with' | 'on'
        C -> 'and'
        """
    )
    trees = [tree for tree in source.sample(3000, rng=0) if 4 <= len(tree.leaves) <= 25]
    train, test = trees[:-150], trees[-150:]
parser = mf.PCFG.from_trees(train)

# %%
# Probabilities of constituents of one sentence, added up over labels: a cell stands over the words it covers, and
# those of the true tree have an orange border. Where the grammar hesitates, so do the cells.

probabilities = [one["spans"] for one in parser.predict_marginals(test)]
by_doubt = [np.sum(p * (1 - p)) for p in probabilities]
short = [i for i in np.argsort(by_doubt)[::-1] if len(test[i].leaves) <= 14]
chosen = test[short[0]]
mf.plot.spans(probabilities[short[0]], chosen.leaves, labels=parser.labels_, gold=chosen)

# %%
# Its most probable tree, and the one of highest expected F1, which keeps what is likely and leaves out what is not.

mf.plot.tree(parser.parse(chosen), title="most probable")
mf.plot.tree(parser.parse(chosen, decision="mbr"), title="highest expected F1")

# %%
# Over many sentences the second decision is worth some points of F1; and of brackets with a probability of p, about a
# share p is right.

f1 = {decision: parser.report(test, decision=decision).f1 for decision in ("map", "mbr")}
p, right = [], []
for tree, one in zip(test, probabilities, strict=True):
    true = {(i, j - 1, parser.labels_.index(label)) for label, i, j in tree.spans() if label in parser.labels_}
    for where in np.argwhere(one > 0.01):
        p.append(one[tuple(where)])
        right.append(tuple(where) in true)
p, right = np.array(p), np.array(right)
bins = np.clip((p * 10).astype(int), 0, 9)
counts = np.bincount(bins, minlength=10)
shares = np.bincount(bins, right, 10) / np.maximum(counts, 1)
figure, ax = plt.subplots(figsize=(4.6, 4.2))
ax.plot([0, 1], [0, 1], color="#b0b0b0", linewidth=1)
ax.plot(np.bincount(bins, p, 10)[counts > 0] / counts[counts > 0], shares[counts > 0], "o-")
ax.set(xlabel="probability of a bracket", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
ax.set_title(f"F1 {100 * f1['map']:.1f}, by expected F1 {100 * f1['mbr']:.1f}")
figure.tight_layout()
