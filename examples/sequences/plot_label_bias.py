"""
Label bias: what comes later must be able to change what came before
====================================================================

A maximum-entropy Markov model decides token by token: the label given the one before. Each of these decisions is
normalised by itself, so that a word which says a lot has no way to speak to the words before it (Murphy 19.6.1). A
conditional random field is normalised once for the whole sequence, and has no such trouble; neither has a hidden Markov
model.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# "Banks" are where the money is, or where the river is. Sentences say which only later; every word of a sentence is
# labelled by what the sentence is about. Money comes three times as often.

rng = np.random.default_rng(0)
PLAIN = ["are", "open", "often", "closed", "for", "all", "the", "new"]
TELLING = {"money": ["loans", "savings", "credit"], "river": ["fishing", "boats", "swimming"]}


def sentences(n):
    """Sentences such as "banks are open for fishing", and their labels."""
    X, y = [], []
    for _ in range(n):
        about = "money" if rng.random() < 0.75 else "river"
        words = ["banks", *rng.choice(PLAIN, rng.integers(1, 4)), rng.choice(TELLING[about])]
        X.append([[word] for word in words])
        y.append([about] * len(words))
    return X, y


X, y = sentences(400)
X_test, y_test = sentences(1000)
words, words_test = ([[word for (word,) in sentence] for sentence in part] for part in (X, X_test))

hmm = mf.HMM().fit(words, y)
memm = mf.MEMM(l2=0.1).fit(X, y)
crf = mf.ChainCRF(l2=0.1).fit(X, y)

# %%
# Which words are labelled right? The maximum-entropy Markov model takes every "banks" for money, greedily or with the
# best labels of the whole sentence: one in four is wrong, and so are the plain words after it.


def right(found, where):
    """Share of right labels among those of some position in each sentence."""
    hits = [a == b for p, q in zip(found, y_test, strict=True) for a, b in zip(p[where], q[where], strict=True)]
    return np.mean(hits)


found = {
    "hidden Markov model": hmm.predict(words_test),
    "MEMM, greedy": memm.predict(X_test, decoding="greedy"),
    "MEMM, Viterbi": memm.predict(X_test, decoding="viterbi"),
    "CRF": crf.predict(X_test),
}
print(f"{'model':<22}{'banks':>9}{'plain words':>13}{'last word':>11}")
for name, labels in found.items():
    first, plain, last = (right(labels, part) for part in (slice(1), slice(1, -1), slice(-1, None)))
    print(f"{name:<22}{first:>9.1%}{plain:>13.1%}{last:>11.1%}")

# %%
# The probability of the river, word by word. In the maximum-entropy Markov model it cannot depend on what follows.

sentence = ["banks", "are", "often", "open", "for", "fishing"]
tokens = [[word] for word in sentence]
at = memm.classes_.index("river")
curves = {
    "hidden Markov model": hmm.predict_proba([sentence])[0][:, at],
    "MEMM": memm.predict_proba([tokens])[0][:, at],
    "CRF": crf.predict_proba([tokens])[0][:, at],
}
figure, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
for (name, values), marker in zip(curves.items(), "s^o", strict=True):
    ax.plot(values, marker + "-", label=name)
ax.axhline(0.5, color="0.8", zorder=0)
ax.set_xticks(range(len(sentence)), sentence)
ax.set_ylim(-0.03, 1.03)
ax.set_ylabel("probability of the river")
ax.legend(loc="center left")

# %%
# The same with letters: "rib" and "rob" as two paths of states that share their ends (Lafferty, McCallum and Pereira
# 2001). The first letter is the same in both; the second tells them apart, too late for a model that has already
# chosen.

spelt = {"rib": ["1", "2", "3"], "rob": ["4", "5", "3"]}
corpus = ["rib"] * 15 + ["rob"] * 5
letters, states = [list(word) for word in corpus], [spelt[word] for word in corpus]
local = mf.MEMM(l2=0.1).fit(letters, states)
whole = mf.ChainCRF(l2=0.1).fit(letters, states)
print()
for word, path in spelt.items():
    print(f"{word}: true {'-'.join(path)}", end="")
    for name, model in (("MEMM", local), ("CRF", whole)):
        print(f", {name} {'-'.join(model.predict([list(word)])[0])}", end="")
    print()
plt.show()
