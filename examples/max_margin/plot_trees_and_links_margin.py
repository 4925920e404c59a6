"""
Trees and links with margins
============================

Structural SVMs need best structures and no sums (Murphy 19.7): a chart gives the best tree of a grammar, an assignment
the best links of two sentences. Below, both are learned twice over the same features, by the likelihood and by the
margin: 19.82 with the number of wrong constituents, and of wrong links, as the loss.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Parsing: short sentences of the Penn Treebank's sample where it is there, otherwise trees drawn from a grammar. Tags
# are given, so that what is learned are the rules.

try:
    trees = mf.io.read_trees(mf.datasets.reference_path("ptb_sample", "wsj_0001-0199.mrg.gz"))
    short = [tree for tree in trees if 4 <= len(tree.leaves) <= 10]
    train, test = short[:200], short[200:300]
except FileNotFoundError:
    source = mf.PCFG.from_text(
        """
        S  -> NP VP [1.0]
        NP -> NP PP [0.2] | D N [0.6] | 'Kim' [0.2]
        VP -> V NP [0.5] | V NP PP [0.4] | V [0.1]
        PP -> P NP [1.0]
        D -> 'the' | 'a'
        N -> 'man' | 'dog' | 'hill'
        V -> 'saw' | 'met'
        P -> 'with' | 'on'
        """
    )
    drawn = [tree for tree in source.sample(1500, rng=0) if 4 <= len(tree.leaves) <= 10]
    train, test = drawn[:200], drawn[200:300]

parsers = {
    "CRF": mf.GrammarCRF(min_count=2, min_word_count=2, l2=0.3, rng=0),
    "structural SVM": mf.grammar.GrammarSSVM(0.1, min_count=2, min_word_count=2, rng=0),
}
f1 = {}
for name, parser in parsers.items():
    parser.fit(train)
    f1[name] = 100 * parser.score(test)
    print(f"{name:15s} F1 of constituents {f1[name]:.1f} %")

# %%
# Word alignment: the debates of the Canadian parliament where they are there, otherwise made sentences. Each fifth of
# the linked pairs is predicted from the others.

try:
    corpus = mf.datasets.hansards("training", 4000).pairs
    pairs, links = mf.datasets.hansards("validation")
except FileNotFoundError:
    rng = np.random.default_rng(0)
    corpus, links = [], []
    for _ in range(800):
        words = rng.zipf(1.6, int(rng.integers(4, 9))) % 60
        order = np.argsort(np.arange(len(words)) + rng.normal(scale=0.7, size=len(words)))
        corpus.append(([f"e{k}" for k in words], [f"f{words[i]}" for i in order]))
        links.append([(int(i), j) for j, i in enumerate(order)])
    pairs, links, corpus = corpus[:40], links[:40], corpus[40:]

errors = {}
statistics = corpus
for name, aligner in (("CRF", mf.AlignmentCRF()), ("structural SVM", mf.alignment.AlignmentSSVM(0.1, rng=0))):
    found = [[] for _ in pairs]
    for fold in range(5):
        kept = [k for k in range(len(pairs)) if k % 5 != fold]
        aligner.fit([pairs[k] for k in kept], [links[k] for k in kept], corpus=statistics)
        statistics = aligner.model_.statistics
        for k in range(fold, len(pairs), 5):
            found[k] = aligner.predict([pairs[k]])[0]
    errors[name] = 100 * mf.alignment.alignment_report(links, found).error_rate
    print(f"{name:15s} alignment error rate {errors[name]:.1f} %")
print(aligner.report_)

# %%
# The two are close: where features are the same and the loss is a sum of parts, margin and likelihood mostly differ in
# what they need, best structures or sums.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
for ax, values, title in ((left, f1, "F1 of constituents in %"), (right, errors, "alignment error rate in %")):
    bars = ax.bar(list(values), list(values.values()), color=["tab:blue", "tab:orange"], width=0.6)
    ax.bar_label(bars, fmt="%.1f")
    ax.set(title=title, ylim=(0, 1.2 * max(values.values())))
figure.tight_layout()
plt.show()
