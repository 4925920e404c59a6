"""
Tags and noun phrases, together or one after the other
======================================================

Most taggers work in steps: parts of speech first, then noun phrases from words and tags. A mistake of the first step
is then beyond repair. A factorial chain (Murphy 19.6.2.2; Sutton, McCallum and Rohanimanesh 2007) has a layer of
labels for each and finds both together; inference is exact in the product of the two chains.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The shared task of CoNLL-2000 where its files are there, with tags cut to their first two letters and only the noun
# phrases among the chunks. Otherwise, sentences of a small grammar, many of whose words are new.

try:
    paths = [mf.datasets.reference_path("conll2000", f"{name}.txt.gz") for name in ("train", "test")]
    sizes = (50, 100, 200)
    parts = [
        [[(w, tag[:2], chunk if chunk[2:] == "NP" else "O") for w, tag, chunk in sentence] for sentence in own]
        for own in (list(mf.io.read_conll(path))[:n] for path, n in zip(paths, (sizes[-1], 300), strict=True))
    ]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    sizes, parts = (30, 60, 120), [[], []]
    known = {"DT": ["the", "a"], "JJ": ["old", "light", "run"], "NN": ["dog", "run", "light"], "VB": ["sees", "run"]}
    for size, part in zip((sizes[-1], 200), parts, strict=True):
        for _ in range(size):
            rows = []
            for _ in range(3):
                phrase = ["DT"] * rng.integers(2) + ["JJ"] * rng.integers(3) + ["NN"]
                rows += [(tag, "I-NP" if i else "B-NP") for i, tag in enumerate(phrase)] + [("VB", "O")]
            # Many words are new; those with an x are in noun phrases, more often than not.
            new = [f"{'x' if (mark != 'O') == (rng.random() < 0.8) else 'z'}{rng.integers(10**6)}" for _, mark in rows]
            shown = [
                str(rng.choice(known[t])) if rng.random() < 0.6 else w for (t, _), w in zip(rows, new, strict=True)
            ]
            part.append([(w, tag, mark) for w, (tag, mark) in zip(shown, rows, strict=True)])
words = [[[row[0] for row in sentence] for sentence in part] for part in parts]
tags = [[[row[1] for row in sentence] for sentence in part] for part in parts]
phrases = [[[row[2] for row in sentence] for sentence in part] for part in parts]
features = mf.sequence.TokenFeatures(window=1, pairs=False, shape=False)
X, X_test = (features.transform(part) for part in words)
print(f"{len({tag for own in tags[0] for tag in own})} tags, {len({p for own in phrases[0] for p in own})} marks")

# %%
# The steps: a chain for tags, and a chain for phrases that sees tags, true ones in training and guessed ones later. The
# factorial chain sees what the first chain sees, and joins a tag to the mark of its word and of the next one. It has no
# guessed tags to be misled by, yet also none of the pairs of tags that the second chain looks at: with few sentences
# the two come out about even.


def with_tags(sentences, guessed):
    """Attributes of words and of the tags of a word and its neighbours."""
    return [
        [
            [*token, f"t={t}", f"t-1={a}", f"t+1={b}", f"t-1|t={a}|{t}", f"t|t+1={t}|{b}"]
            for token, t, a, b in zip(sentence, own, ["<s>", *own[:-1]], [*own[1:], "</s>"], strict=True)
        ]
        for sentence, own in zip(sentences, guessed, strict=True)
    ]


settings = {"l2": 1.0, "all_states": True, "all_transitions": True, "max_iterations": 60}
rows = {"steps": [], "together": []}
for size in sizes:
    own = [X[i] for i in range(size)]
    tagger = mf.ChainCRF(**settings).fit(own, tags[0][:size])
    phraser = mf.ChainCRF(**settings).fit(with_tags(own, tags[0][:size]), phrases[0][:size])
    guessed = tagger.predict(X_test)
    joint = mf.FactorialCRF(["tag", "phrase"], across=True, solver=mf.learning.LBFGS(max_iterations=60))
    joint.fit(own, [{"tag": t, "phrase": p} for t, p in zip(tags[0][:size], phrases[0][:size], strict=True)])
    answer = joint.predict(X_test)
    outcomes = {
        "steps": (guessed, phraser.predict(with_tags(X_test, guessed))),
        "together": ([a["tag"] for a in answer], [a["phrase"] for a in answer]),
    }
    for name, (tagged, phrased) in outcomes.items():
        accuracy = mf.sequence.token_report(tags[1], tagged).accuracy
        f1 = mf.sequence.entity_report(phrases[1], phrased).f1
        flat = [np.concatenate(part) for part in (tags[1], phrases[1], tagged, phrased)]
        both_right = np.mean((flat[0] == flat[2]) & (flat[1] == flat[3]))
        rows[name].append((accuracy, f1, both_right))
        scores = f"tags {accuracy:6.2%}, phrases F1 {100 * f1:5.2f}, both right {both_right:6.2%}"
        print(f"{size:4d} sentences, {name:9s} {scores}")
print(joint.report_)

# %%
# Learning curves, and what the layers say of each other.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", width_ratios=[1, 1, 1.1])
for ax, at, title in ((axes[0], 0, "right tags, %"), (axes[1], 1, "F1 of noun phrases")):
    for (name, own), colour in zip(rows.items(), ("#9aa7b3", "#2b6cb0"), strict=True):
        ax.plot(sizes, [100 * row[at] for row in own], "o-", color=colour, label=name)
    ax.set_xscale("log")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_xlabel("sentences to learn from")
    ax.set_title(title, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
names = joint.model_.classes
table = joint.coef_["tag with phrase"].reshape(len(names[0]), len(names[1]))
order = np.argsort(-np.abs(table).sum(axis=1))[:14]
limit = np.abs(table).max()
image = axes[2].imshow(table[order], cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
axes[2].set_xticks(range(len(names[1])), names[1])
axes[2].set_yticks(range(len(order)), [names[0][i] for i in order], fontsize=9)
axes[2].set_title("weight of a tag with a mark", loc="left", fontsize=10)
figure.colorbar(image, ax=axes[2], shrink=0.8)
plt.show()
