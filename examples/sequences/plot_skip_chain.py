"""
Skip chains: the same name, the same label
==========================================

A name that is easy to tell in one sentence ("the mayor of Leganés") may come without any hint in the next. A linear
chain forgets in between. A skip chain (Murphy 19.6.2.3; Sutton and McCallum 2004) links equal words with a capital, so
that what one place says of a name counts at the other. The graph then has loops; inference is exact where they are few.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Spanish news of CoNLL-2002 where those files are there: news begin with a place, a date and the agency's name, by
# which we cut the files into documents of a few sentences. Otherwise, documents made of a few patterns.


def documents(sentences, most=4):
    """Sentences joined up to the next one that starts a piece of news, but not too many."""
    found, size = [], most
    for sentence in sentences:
        words = [row[0] for row in sentence]
        if size == most or any(a == "(" and b.startswith("EFE") for a, b in pairwise(words)):
            found.append([])
            size = 0
        found[-1].extend(sentence)
        size += 1
    return found


try:
    paths = [mf.datasets.reference_path("conll2002", f"esp.{name}.gz") for name in ("train", "testa")]
    parts = [documents(list(mf.io.read_conll(path))[:n]) for path, n in zip(paths, (600, 500), strict=True)]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    parts = [[], []]
    for size, part in zip((150, 100), parts, strict=True):
        for _ in range(size):
            rows = []
            for _ in range(2):
                kind, name = str(rng.choice(["PER", "LOC"])), f"Nombre{rng.integers(5000)}"
                hint = {"PER": "dijo", "LOC": "en"}[kind]
                rows += [(hint, "O"), (name, f"B-{kind}"), (",", "O"), ("que", "O"), (name, f"B-{kind}"), (".", "O")]
            part.append([(word, "-", label) for word, label in rows])
train, test = (mf.sequence.ColumnCorpus.from_rows(part, ["word", "tag", "entity"]) for part in parts)
features = mf.sequence.TokenFeatures(window=1, pairs=False)
X, X_test = features.transform(train.keep("word", "tag")), features.transform(test.keep("word", "tag"))
y, y_test = train["entity"], test["entity"]
print(f"{train.n_sequences} documents to learn from, {test.n_sequences} to test")

# %%
# A chain with weights for all pairs of attributes and labels, and the same with links, which have one weight for each
# unordered pair of labels.

models = {
    "chain": mf.ChainCRF(all_states=True, all_transitions=True, tolerance=1e-4).fit(X, y),
    "skip chain": mf.SkipChainCRF(max_links=1, solver=mf.learning.LBFGS(max_iterations=30, tolerance=1e-4)).fit(X, y),
}
found = {name: model.predict(X_test) for name, model in models.items()}
reports = {name: mf.sequence.entity_report(y_test, labels) for name, labels in found.items()}
skip = models["skip chain"]
links = skip.model_.inputs(X_test).placed["links"].scopes
for name, report in reports.items():
    print(f"{name:11s} F1 of names {100 * report.f1:5.2f}")
print(skip.report_.notes[0])
true = np.concatenate([np.array(own, object) for own in y_test])
guessed = {name: np.concatenate([np.array(own, object) for own in labels]) for name, labels in found.items()}
print(
    f"{len(links)} links between words to be labelled; {np.mean(true[links[:, 0]] == true[links[:, 1]]):.1%} join equal"
)
for name, labels in guessed.items():
    print(f"{name:11s} words with links labelled right: {np.mean((labels == true)[np.unique(links)]):.1%}")

# %%
# What links have learned, and the document in which they help most.

states = skip.classes_
pairs = [(i, j) for i in range(len(states)) for j in range(i, len(states))]
table = np.zeros((len(states), len(states)))
for (i, j), weight in zip(pairs, skip.coef_["links"][0], strict=True):
    table[i, j] = table[j, i] = weight

offsets = skip.model_.inputs(X_test).variable_offsets
right = {name: labels == true for name, labels in guessed.items()}
gain = right["skip chain"].astype(int) - right["chain"].astype(int)
linked = np.isin(np.arange(len(true)), links)
at = int(np.argmax(np.add.reduceat(gain * linked, offsets[:-1])))
a, b = int(offsets[at]), int(offsets[at + 1])
here = links[(links[:, 0] >= a) & (links[:, 1] < b)] - a
shown = np.flatnonzero(linked[a:b])[:16]
words = ["", "", *(row[0] for row in test[at]), "", ""]
place = {int(t): i for i, t in enumerate(shown)}

figure, axes = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained", width_ratios=[1, 1.7])
limit = np.abs(table).max()
image = axes[0].imshow(table, cmap="RdBu", vmin=-limit, vmax=limit)
axes[0].set_xticks(range(len(states)), states, rotation=90)
axes[0].set_yticks(range(len(states)), states)
axes[0].set_title("weight of two labels that are linked", loc="left", fontsize=10)
figure.colorbar(image, ax=axes[0], shrink=0.7)
for first, second in here:
    if int(first) in place and int(second) in place:
        i, j = place[int(first)], place[int(second)]
        bend = np.linspace(0, np.pi, 40)
        axes[1].plot(-0.1 - 0.3 * (j - i) ** 0.6 * np.sin(bend), i + (j - i) * (1 - np.cos(bend)) / 2, color="#2b6cb0")
for i, t in enumerate(shown):
    axes[1].text(0.95, i, " ".join(words[t : t + 2]), va="center", ha="right", fontsize=8, color="0.55")
    axes[1].text(1.0, i, words[t + 2], va="center", fontsize=9)
    axes[1].text(1.9, i, " ".join(words[t + 3 : t + 5]), va="center", fontsize=8, color="0.55")
    for column, labels in enumerate((true, guessed["chain"], guessed["skip chain"])):
        fine = labels[a + t] == true[a + t]
        look = {"color": "0.2"} if fine else {"color": "#d62728", "weight": "bold"}
        axes[1].text(3.0 + 0.8 * column, i, labels[a + t], va="center", fontsize=9, **look)
for column, name in enumerate(("true", "chain", "skip chain")):
    axes[1].text(3.0 + 0.8 * column, -1.0, name, fontsize=9, color="0.4")
axes[1].set_xlim(-1.2, 5.4)
axes[1].set_ylim(max(len(shown), 4) - 0.4, -1.5)
axes[1].set_axis_off()
axes[1].set_title("linked words of one document and what stands around them; red is wrong", loc="left", fontsize=10)
plt.show()
