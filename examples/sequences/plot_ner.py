"""
Names in Spanish news
=====================

The shared task of CoNLL-2002: find persons, places, organisations and others. `TokenFeatures` looks at words, affixes
and shapes; a linear-chain CRF puts labels together. Told that ``I-PER`` may only follow ``B-PER`` or ``I-PER``, it
never answers with chunks that the scheme does not allow.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A part of the task's own files where those are there, otherwise sentences made of a few names.

try:
    paths = [mf.datasets.reference_path("conll2002", f"esp.{name}.gz") for name in ("train", "testa")]
    parts = [list(mf.io.read_conll(path))[:n] for path, n in zip(paths, (1000, 600), strict=True)]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    names = {"PER": ["Ana Torre", "Luis Madrid", "Ana de Leon", "Luis"], "LOC": ["Torre Luis", "Madrid", "Leon de Ana"]}
    parts = [[], []]
    for size, part in zip((300, 150), parts, strict=True):
        for _ in range(size):
            rows = []
            for _ in range(4):
                rows += [(str(rng.choice(["que", "la", "Todo", "de"])), "O") for _ in range(rng.integers(3))]
                kind = str(rng.choice(["PER", "LOC"]))
                rows.append(("en" if (kind == "LOC") == (rng.random() < 0.7) else "dijo", "O"))
                shown = str(rng.choice(names[kind])).split()
                shown = [word if rng.random() < 0.7 else f"Nombre{rng.integers(999)}" for word in shown]
                rows += [(word, ("I-" if i else "B-") + kind) for i, word in enumerate(shown)]
            part.append([(word, "-", label) for word, label in rows])
train, test = (mf.sequence.ColumnCorpus.from_rows(part, ["word", "tag", "entity"]) for part in parts)
print(f"{train.n_sequences} sentences to learn from, {test.n_sequences} to test")

# %%
# The same attributes for all: a model that takes each token by itself (as if every sentence had one word), the chain,
# and the chain with the rules of the scheme. A chain that has seen enough learns most of the rules by itself; one
# trained in haste, by a few passes of the perceptron over a tenth of the sentences, does not.

features = mf.sequence.TokenFeatures(window=1, pairs=False)
X, X_test = features.transform(train.keep("word", "tag")), features.transform(test.keep("word", "tag"))
y, y_test = train["entity"], test["entity"]


def alone(sequences):
    """Every token as a sequence of its own."""
    return [[token] for sequence in sequences for token in sequence]


def together(labels):
    """The way back."""
    flat = iter(labels)
    return [[next(flat)[0] for _ in sentence] for sentence in y_test]


def broken(labels):
    """Chunks that start with I."""
    return sum(b[0] == "I" and a[1:] != b[1:] for sentence in labels for a, b in pairwise(["O", *sentence]))


settings = {"l2": 1.0, "max_iterations": 30}
hasty = {"solver": "perceptron", "max_iterations": 5, "rng": 0}
few = train.n_sequences // 10
ruled = mf.ChainCRF(**settings, constraints="iob2").fit(X, y)
found = {
    "each token by itself": together(mf.ChainCRF(**settings).fit(alone(X), alone(y)).predict(alone(X_test))),
    "chain": mf.ChainCRF(**settings).fit(X, y).predict(X_test),
    "chain with rules": ruled.predict(X_test),
    "hasty chain": mf.ChainCRF(**hasty).fit(X[:few], y[:few]).predict(X_test),
    "hasty chain with rules": mf.ChainCRF(**hasty, constraints="iob2").fit(X[:few], y[:few]).predict(X_test),
}

reports = {name: mf.sequence.entity_report(y_test, labels) for name, labels in found.items()}
print(f"{'':24s}   accuracy  precision  recall     F1   chunks that start with I")
for name, report in reports.items():
    print(
        f"{name:24s}   {report.accuracy:8.2%}  {report.precision:9.2%}  {report.recall:6.2%}  {100 * report.f1:5.2f}"
        f"   {broken(found[name]):6d}"
    )
print(reports["chain with rules"])

# %%
# Where the model is in doubt, its probabilities say so: the sentence of highest entropy for its length among the
# shorter ones.

lengths = np.array([len(sentence) for sentence in y_test])
doubt = np.where((lengths >= 6) & (lengths <= 16), ruled.entropy(X_test) / lengths, 0.0)
at = int(np.argmax(doubt))
table = ruled.predict_proba([X_test[at]])[0].T
words = [row[0] for row in test[at]]

figure, axes = plt.subplots(2, 1, figsize=(9.5, 7.2), layout="constrained", height_ratios=[1, 1.25])
kinds = list(reports["chain"].by_type)
colours = ["#9aa7b3", "#9fc5e8", "#2b6cb0", "#f2c9a6", "#dd7a3b"]
for i, (name, own) in enumerate(reports.items()):
    heights = [100 * own.f1, *(100 * own.by_type[kind].f1 if kind in own.by_type else 0.0 for kind in kinds)]
    bars = axes[0].bar(np.arange(len(kinds) + 1) + 0.17 * (i - 2), heights, 0.16, color=colours[i], label=name)
    axes[0].bar_label(bars, fmt="%.0f", fontsize=8)
axes[0].set_xticks(range(len(kinds) + 1), ["all", *kinds])
axes[0].set_ylim(0, 115)
axes[0].set_yticks(range(0, 101, 25))
axes[0].set_title("F1 of entities", loc="left", fontsize=10)
axes[0].legend(frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.08), fontsize=9)
axes[0].spines[["top", "right"]].set_visible(False)
axes[1].imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for t, (true, guess) in enumerate(zip(y_test[at], found["chain with rules"][at], strict=True)):
    for label, sign, colour in ((true, "o", "#3c8d6b"), (guess, "x", "#dd7a3b")):
        axes[1].plot(t, ruled.classes_.index(label), sign, color=colour, markersize=9, fillstyle="none", mew=2)
axes[1].set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=9)
axes[1].set_yticks(range(len(ruled.classes_)), ruled.classes_, fontsize=9)
axes[1].set_title(
    "probability of each label; green rings are true, orange crosses are guessed", loc="left", fontsize=10
)
plt.show()
