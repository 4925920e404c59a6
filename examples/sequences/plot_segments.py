"""
Names as segments
=================

A linear chain labels tokens, and names are put together from them. A semi-Markov CRF (Sarawagi and Cohen 2004) scores
names as wholes: how a segment begins, goes on and ends, how long it is, and what it says from end to end. So it knows
the probability of every segment, which is drawn below, where a chain has those of the labels of single tokens.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A part of the Spanish names of CoNLL-2002 where they are there, otherwise sentences made of a few names.

try:
    paths = [mf.datasets.reference_path("conll2002", f"esp.{name}.gz") for name in ("train", "testa")]
    parts = [list(mf.io.read_conll(path))[:n] for path, n in zip(paths, (800, 400), strict=True)]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    names = {
        "PER": ["Ana Torre", "Luis Madrid", "Ana de Leon"],
        "ORG": ["Banco de Madrid", "Torre y Leon", "Banco Luis"],
    }
    parts = [[], []]
    for size, part in zip((100, 60), parts, strict=True):
        for _ in range(size):
            rows = []
            for _ in range(3):
                rows += [(str(rng.choice(["que", "la", "Todo", "de"])), "O") for _ in range(rng.integers(1, 3))]
                kind = str(rng.choice(["PER", "ORG"]))
                words = [
                    w if rng.random() < 0.8 else f"Xy{rng.integers(99)}" for w in str(rng.choice(names[kind])).split()
                ]
                rows += [(word, ("I-" if i else "B-") + kind) for i, word in enumerate(words)]
            part.append([(word, "-", label) for word, label in rows])
train, test = (mf.sequence.ColumnCorpus.from_rows(part, ["word", "tag", "entity"]) for part in parts)
features = mf.sequence.TokenFeatures(window=1, pairs=False)
X, X_test = features.transform(train.keep("word", "tag")), features.transform(test.keep("word", "tag"))
y, y_test = train["entity"], test["entity"]

# %%
# Both models get the same attributes of tokens; segments have their lengths, words and shapes besides. Names of two
# types in one, which a chain may answer with, cannot come from segments.

solver = mf.learning.LBFGS(max_iterations=40, tolerance=1e-4)
models = {
    "chain": mf.ChainCRF(l2=1.0, all_states=True, max_iterations=40).fit(X, y),
    "segments": mf.SemiMarkovCRF(8, l2=1.0, solver=solver).fit(X, y),
}
for name, model in models.items():
    report = mf.sequence.entity_report(y_test, model.predict(X_test))
    print(f"{name:9s} F1 of names {100 * report.f1:5.2f}, precision {report.precision:.1%}, recall {report.recall:.1%}")
semi = models["segments"]
weights = dict(
    zip(semi.model_.known.texts.texts, semi.coef_["segments"][semi.model_.known.sizes["max_length"] :], strict=True)
)
for text in sorted(weights, key=lambda t: -weights[t].max())[:5]:
    label = semi.classes_[int(np.argmax(weights[text]))]
    print(f"  {text[2:]!r:30s} {'words' if text[0] == 'w' else 'shape'}, speaks for {label}: {weights[text].max():.2f}")

# %%
# The sentence whose segmentation is least certain, of those of some length, with every segment that has a probability
# of at least 5 %: where borders and types are open, bars compete. The n best segmentations say the same in words.

sizes = [len(labels) for labels in y_test]
chosen = [i for i in range(len(sizes)) if 12 <= sizes[i] <= 24] or list(range(len(sizes)))
doubt = [mf.marginals(semi.form(X_test[i])).entropy for i in chosen[:40]]
at = chosen[int(np.argmax(doubt))]
form = semi.form(X_test[at])
segments = mf.marginals(form)["segments"]
words = [row[0] for row in test[at]]
for one in mf.decode(form, n_best=3).n_best:
    found = [f"[{' '.join(words[a:b])}]{semi.classes_[k]}" for a, b, k in one.structure if semi.classes_[k] != "O"]
    print(f"  {np.exp(one.score - float(mf.log_partition(form))):.3f}  {'  '.join(found)}")

colours = dict(zip((c for c in semi.classes_ if c != "O"), plt.cm.tab10.colors, strict=False))
bars = [
    (int(i), int(i + d + 1), semi.classes_[k], segments[i, d, k])
    for i, d, k in np.argwhere(segments > 0.05)
    if semi.classes_[k] != "O"
]
figure, axis = plt.subplots(figsize=(12, 4), layout="constrained")
rows: list[list[tuple[int, int]]] = []  # what each line of the picture holds already
for a, b, label, p in sorted(bars, key=lambda bar: -bar[3]):
    line = next((r for r, held in enumerate(rows) if all(b <= c or d <= a for c, d in held)), len(rows))
    if line == len(rows):
        rows.append([])
    rows[line].append((a, b))
    axis.barh(line, b - a - 0.1, left=a + 0.05, height=0.7, color=colours[label], alpha=0.25 + 0.75 * p)
    axis.text((a + b) / 2, line, f"{label} {p:.2f}", ha="center", va="center", fontsize=8)
truth = [(kind, a, b) for kind, a, b in mf.sequence.spans(list(y_test[at]))]
for kind, a, b in truth:
    axis.plot([a + 0.05, b - 0.05], [-0.75, -0.75], color=colours.get(kind, "0.4"), linewidth=4, solid_capstyle="butt")
axis.set_xticks(np.arange(len(words)) + 0.5, words, rotation=60, ha="right", fontsize=9)
axis.set_xlim(0, len(words))
axis.set_ylim(-1.1, max(len(rows), 1) - 0.4)
axis.set_yticks([-0.75], ["true"])
axis.spines[["top", "right", "left"]].set_visible(False)
axis.set_title("segments and their probabilities; below, the names that are there", loc="left", fontsize=10)
plt.show()
