"""
Chunking: phrases from words and tags
=====================================

The shared task of CoNLL-2000: find the noun, verb and other phrases of a sentence, given its words and their parts of
speech. Chunks are written as labels of tokens (B first, I inside, O outside), and a linear-chain CRF (Murphy 19.6)
learns which attributes of a token, and which neighbouring labels, speak for which label.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A part of the task's own files where those are there, otherwise sentences from a grammar of a few lines.

SENTENCES = 800
try:
    paths = [mf.datasets.reference_path("conll2000", f"{name}.txt.gz") for name in ("train", "test")]
    parts = [list(mf.io.read_conll(path))[:SENTENCES] for path in paths]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    words = {"DT": ["the", "a"], "JJ": ["old", "light", "run"], "NN": ["dog", "run", "light"], "VB": ["sees", "run"]}
    parts = [[], []]
    for part in parts:
        for _ in range(SENTENCES // 2):
            tags = [t for _ in range(3) for t in ["DT"] * rng.integers(2) + ["JJ"] * rng.integers(3) + ["NN", "VB"]]
            starts = [t == "VB" or before == "VB" for t, before in zip(tags, ["VB", *tags], strict=False)]
            chunks = [("B-" if s else "I-") + ("VP" if t == "VB" else "NP") for t, s in zip(tags, starts, strict=True)]
            shown = [t if rng.random() < 0.8 else "XX" for t in tags]
            part.append(list(zip([str(rng.choice(words[t])) for t in tags], shown, chunks, strict=True)))
train, test = (mf.sequence.ColumnCorpus.from_rows(part, ["word", "tag", "chunk"]) for part in parts)
print(f"{train.n_sequences} sentences to learn from, {test.n_sequences} to test; {len(set(train.texts[2]))} labels")

# %%
# Templates say which attributes a token has: ``%x[-1,1]`` is column 1, the tag, of the token before. Each line below
# adds to what the line above it has.

words_alone = "U0:%x[0,0]"
tags = words_alone + "\nU1:%x[0,1]"
near = tags + "".join(f"\nU{2 + i}:%x[{d},{c}]" for i, (d, c) in enumerate([(-1, 0), (1, 0), (-1, 1), (1, 1)]))
pairs = near + "\nU6:%x[-1,1]/%x[0,1]\nU7:%x[0,1]/%x[1,1]\nU8:%x[-2,1]/%x[-1,1]\nU9:%x[-1,0]/%x[0,0]"

found, reports = {}, {}
print(f"{'':24s}   accuracy  precision  recall     F1   seconds")
for name, template in {"word": words_alone, "and tag": tags, "and neighbours": near, "and pairs": pairs}.items():
    tagger = mf.ChainTagger(template, crf=mf.ChainCRF(l2=1.0, max_iterations=40)).fit(train)
    report = mf.sequence.entity_report(test["chunk"], tagger.predict(test))
    found[name], reports[name] = tagger, report
    print(
        f"{name:24s}   {report.accuracy:8.2%}  {report.precision:9.2%}  {report.recall:6.2%}  {100 * report.f1:5.2f}"
        f"   {tagger.report_.seconds:7.2f}"
    )
print(reports["and pairs"])

# %%
# What the last of them has learnt about neighbouring labels, and how much each step of the template was worth for the
# commonest phrases.

weights = found["and pairs"].crf_.explain_weights()
kinds = sorted(report.by_type, key=lambda kind: -report.by_type[kind].n_true)[:6]
labels = [label for label in weights.labels if label == "O" or label[2:] in kinds]
at = [weights.labels.index(label) for label in labels]
table = weights.transitions[np.ix_(at, at)]

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
limit = np.abs(table).max()
image = axes[0].imshow(np.where(table == 0, np.nan, table), cmap="RdBu", vmin=-limit, vmax=limit)
axes[0].set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
axes[0].set_yticks(range(len(labels)), labels, fontsize=8)
axes[0].set_facecolor("0.9")
axes[0].set_title("weight of a label (above) after another (left); grey: never seen", loc="left", fontsize=10)
axes[0].xaxis.tick_top()
figure.colorbar(image, ax=axes[0], shrink=0.8)
for i, (name, own) in enumerate(reports.items()):
    shades = plt.colormaps["Blues"](0.3 + 0.2 * i)
    heights = [100 * own.by_type[kind].f1 if kind in own.by_type else 0.0 for kind in kinds]
    axes[1].bar(np.arange(len(kinds)) + 0.2 * (i - 1.5), heights, 0.2, color=shades, label=name)
axes[1].set_xticks(range(len(kinds)), [f"{kind}\n{report.by_type[kind].n_true}" for kind in kinds])
axes[1].set_title("F1 of the commonest phrases, and how many there are", loc="left", fontsize=10)
axes[1].set_ylim(0, 100)
axes[1].legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=9)
axes[1].spines[["top", "right"]].set_visible(False)
plt.show()
