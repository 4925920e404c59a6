"""
Words and their translations
============================

IBM models and a hidden Markov model learn from pairs of sentences which words go together, and nobody shows them a
link. A few dozen sentences with links are enough to do better: alignment as matching (Taskar, Lacoste-Julien and Klein
2005), a conditional model whose features are what the others think.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Debates of the Canadian parliament where they are there, otherwise sentences made of a few words.

try:
    corpus = mf.datasets.hansards("training", 12000).pairs
    pairs, links = mf.datasets.hansards("validation")
except FileNotFoundError:
    rng = np.random.default_rng(0)
    corpus, links = [], []
    for _ in range(1500):
        words = rng.zipf(1.6, int(rng.integers(4, 9))) % 60
        order = np.argsort(np.arange(len(words)) + rng.normal(scale=0.7, size=len(words)))
        extra = int(rng.integers(0, len(words)))
        target = [f"f{words[i]}" for i in order]
        corpus.append(([f"e{k}" for k in words], [*target[:extra], "de", *target[extra:]]))
        links.append([(int(i), j + (j >= extra)) for j, i in enumerate(order)])
    pairs, links, corpus = corpus[:40], links[:40], corpus[40:]
print(f"{len(corpus)} pairs without links, {len(pairs)} with links")

# %%
# Models without links, in both directions. What the two agree on is right most of the time; the alignment error rate
# asks for sure links and forgives possible ones.

rows = {}
for name, model in {
    "IBM 1": mf.alignment.IBM1(),
    "IBM 2": mf.alignment.IBM2(),
    "HMM": mf.alignment.HMMAligner(),
}.items():
    both = mf.alignment.SymmetricAligner(model, symmetrisation="intersection").fit(corpus)
    rows[name] = mf.alignment.alignment_report(links, both.forward_.predict(pairs))
    rows[f"{name}, both ways"] = mf.alignment.alignment_report(links, both.predict(pairs))
print(both.forward_.report_)
word = "house" if both.forward_.translations("house") else "e1"
print(word, [(f, round(p, 2)) for f, p in both.forward_.translations(word, 4)])

# %%
# The conditional model, cross-validated: a fifth of the linked pairs is predicted from the others. Statistics of the
# corpus are learnt once.

crf = mf.AlignmentCRF()
found = [[] for _ in pairs]
statistics = corpus
for fold in range(5):
    kept = [k for k in range(len(pairs)) if k % 5 != fold]
    crf.fit([pairs[k] for k in kept], [links[k] for k in kept], corpus=statistics)
    statistics = crf.model_.statistics
    for k in range(fold, len(pairs), 5):
        found[k] = crf.predict([pairs[k]])[0]
rows["CRF, cross-validated"] = mf.alignment.alignment_report(links, found)
print(f"{'':22s}   AER  precision  recall")
for name, report in rows.items():
    print(f"{name:22s} {report.error_rate:6.1%} {report.precision:9.1%} {report.recall:8.1%}")

# %%
# Probabilities of the links of one pair, by the hidden Markov model in one direction and by the conditional model that
# was trained on the others. Orange borders are what annotators drew, dotted where they were in doubt.

at = next((k for k, (e, f) in enumerate(pairs) if min(len(e), len(f)) >= 8 and max(len(e), len(f)) <= 16), 0)
others = [k for k in range(len(pairs)) if k != at]
crf.fit([pairs[k] for k in others], [links[k] for k in others], corpus=statistics)
source, target = pairs[at]
figure, axes = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
for axis, title, p, chosen in (
    (axes[0], "HMM", both.forward_.predict_marginals([pairs[at]])[0], both.forward_.predict([pairs[at]])[0]),
    (axes[1], "CRF on matchings", crf.predict_marginals([pairs[at]])[0], crf.predict([pairs[at]])[0]),
):
    mf.plot.alignment(p, source, target, links=chosen, gold=links[at], title=title, ax=axis)

# %%
# What the conditional model listens to.

weights = crf.named_weights()["links"]
names = sorted(weights, key=lambda name: -abs(weights[name]))[:14][::-1]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.barh(names, [weights[name] for name in names], color=["#2b6cb0" if weights[n] > 0 else "#dd7a3b" for n in names])
axis.set_title("weights of links", loc="left", fontsize=10)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
