"""
2. A tagger: from labelled sentences to one that knows when it is unsure
========================================================================

Labels for the words of sentences, learnt from examples: attributes of words, a linear-chain conditional random field,
its scores, its doubts, what it has learnt, and what of it can be trusted. With CoNLL-2000 in the folder that
``MARKOVFIELD_DATA`` names, the sentences are real; without, they come from a small grammar.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Sentences
# ---------
#
# A row for each word: the word, its part of speech, and the label to learn. Phrases are written as labels of words:
# ``B-`` begins one, ``I-`` goes on, ``O`` is outside.


def drawn(n, rng):
    """Sentences of noun phrases and verbs; one tag in four is missing."""
    words = {"DT": ["the", "a"], "JJ": ["old", "light", "cold"], "NN": ["dog", "run", "light"], "VB": ["sees", "run"]}
    found = []
    for _ in range(n):
        phrase = [["DT"] * rng.integers(2) + ["JJ"] * rng.integers(3) + ["NN"] for _ in range(2)]
        tags = [*phrase[0], "VB", *phrase[1]]
        starts = [True, *[a == "VB" or b == "VB" for a, b in pairwise(tags)]]
        labels = [
            ("B-" if first else "I-") + ("VP" if t == "VB" else "NP") for t, first in zip(tags, starts, strict=True)
        ]
        found.append(
            [
                (str(rng.choice(words[t])), t if rng.random() < 0.75 else "XX", y)
                for t, y in zip(tags, labels, strict=True)
            ]
        )
    return found


try:
    paths = [mf.datasets.reference_path("conll2000", f"{part}.txt.gz") for part in ("train", "test")]
    train, test = (list(mf.io.read_conll(path)) for path in paths)
    train, test = train[:600], test[:300]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    train, test = drawn(600, rng), drawn(300, rng)
for row in test[0]:
    print(*row)

# %%
# What a word looks like
# ----------------------
#
# A model sees attributes, not words. A template says which: ``%x[-1,0]`` is column 0 of the word before. The last
# line, ``B``, lets labels depend on the labels before them.

TEMPLATE = """
U0:%x[0,0]
U1:%x[-1,0]
U2:%x[1,0]
U3:%x[-1,1]
U4:%x[0,1]
U5:%x[1,1]
U6:%x[-1,1]/%x[0,1]
U7:%x[0,1]/%x[1,1]
B
""".strip()
tagger = mf.ChainTagger(TEMPLATE, crf=mf.ChainCRF(l2=0.5, constraints="iob2"))
tagger.fit(train)
tagger.crf_.report_

# %%
# ``constraints="iob2"`` keeps answers from breaking the rules of the scheme: no phrase goes on that has not begun.
#
# How good is it?
# ---------------
#
# Phrases count, not words: one is right if both its ends and its kind are. On sentences that were not learnt from:

columns = [[row[:-1] for row in sentence] for sentence in test]
truth = [[row[-1] for row in sentence] for sentence in test]
guess = tagger.predict(columns)
mf.sequence.entity_report(truth, guess)

# %%
# How does that depend on the penalty? The one knob worth turning first, chosen on sentences kept aside; here three
# values are tried on a quarter of the training sentences.

cut = len(train) * 3 // 4
kept = train[cut:]
for l2 in (0.05, 0.5, 5.0):
    tried = mf.ChainTagger(TEMPLATE, crf=mf.ChainCRF(l2=l2, constraints="iob2")).fit(train[:cut])
    found = tried.predict([[row[:-1] for row in sentence] for sentence in kept])
    print(f"l2 = {l2:<5} F1 {mf.sequence.entity_report([[row[-1] for row in s] for s in kept], found).f1:.3f}")

# %%
# How sure is it?
# ---------------
#
# The same weights give probabilities. They are worth something if they are calibrated: of the labels that it gives 70
# %, 70 % should be right.

probabilities = tagger.predict_marginals(columns)
told = [p for own in probabilities for p in own]
given = [label for labels in guess for label in labels]
sure = np.array([p[label] for p, label in zip(told, given, strict=True)])
right = np.array([label for labels in truth for label in labels]) == given
edges = np.quantile(sure, np.linspace(0, 1, 9))
groups = np.clip(np.searchsorted(edges, sure, side="right") - 1, 0, 7)
figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7")
ax.plot(*([[values[groups == g].mean() for g in np.unique(groups)] for values in (sure, right)]), marker="o")
ax.set(xlabel="probability of the label given", ylabel="share that is right", title="Calibration, in eighths")
ax.set_xlim(min(0.4, sure[groups == 0].mean() - 0.05), 1.01)
ax.set_ylim(ax.get_xlim())

# %%
# So the unsure ones can be handed to a person. Of the short sentences the one in most doubt, and what else it might
# be:

least = [
    min(p[label] for p, label in zip(own, labels, strict=True)) if len(labels) < 15 else 1.0
    for own, labels in zip(probabilities, guess, strict=True)
]
doubtful = int(np.argmin(least))
print(" ".join(row[0] for row in columns[doubtful]))
for labels, probability in tagger.predict_n_best([columns[doubtful]], 3)[0]:
    print(f"{probability:.2f}  {' '.join(labels)}")

# %%
# What has it learnt?
# -------------------
#
# The weights of neighbouring labels, and the attributes that speak loudest for a label.

common = [label for label in ("B-NP", "I-NP", "B-VP", "I-VP", "B-PP", "O") if label in tagger.classes_]
mf.plot.chain_weights(tagger.crf_, top=4, labels=common)

# %%
for (attribute, label), weight in sorted(tagger.crf_.state_features_.items(), key=lambda item: -abs(item[1]))[:8]:
    print(f"{weight:6.2f}  {attribute:<14} {label}")

# %%
# One chain is a factor graph like any other: every method of the library can look at it, which is how these kernels
# are tested.

graph = tagger.crf_.to_factor_graph(tagger.transform([columns[0]])[0])
print(mf.decode(graph).assignment)

# %%
# ``tagger.save("chunks.mf")`` keeps template and weights; ``markovfield crf tag test.txt --model chunks.mf`` uses
# them from the command line. Margins in place of probabilities: ``mf.ChainSSVM``; segments as wholes:
# ``mf.sequence.SemiMarkovCRF``; links between equal words: ``mf.sequence.SkipChainCRF``.

plt.show()
