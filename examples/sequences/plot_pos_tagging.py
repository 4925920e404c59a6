"""
Parts of speech with three kinds of linear chains
=================================================

A hidden Markov model, a maximum-entropy Markov model and a conditional random field learn to tag words with their parts
of speech. The first sees words only; the other two may look at anything: endings, capitals, neighbours.

With Universal Dependencies' English Web Treebank in the folder that ``MARKOVFIELD_DATA`` names, the sentences are real;
without, they are drawn from a small grammar.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf
from markovfield.io.conll import read_conllu
from markovfield.sequence.chain.crf import ChainCRF

# %%
# Sentences and tags; a part of the treebank is enough to see the difference.


def treebank(name, n):
    """The first sentences of a part of the treebank, or None where it is not there."""
    try:
        path = mf.datasets.reference_path("ud_ewt", f"en_ewt-ud-{name}.conllu.gz")
    except FileNotFoundError:
        return None
    corpus = read_conllu(path, ["form", "upos"])
    return corpus["form"][:n], corpus["upos"][:n]


def drawn(n, rng):
    """Sentences from a hidden Markov model over made-up words, whose endings tell something of their tags."""
    tags = ["ADJ", "ADV", "DET", "NOUN", "VERB"]
    moves = [[2, 1, 0, 7, 0], [2, 1, 1, 0, 6], [4, 1, 0, 5, 0], [0, 2, 1, 2, 5], [1, 2, 5, 2, 0]]
    endings = {"ADJ": "ous", "ADV": "ly", "DET": "e", "NOUN": "tion", "VERB": "ing"}
    stems = {"ADJ": 300, "ADV": 100, "DET": 4, "NOUN": 800, "VERB": 400}
    X, y = [], []
    for _ in range(n):
        words, labels, tag = [], [], 2
        for _ in range(int(rng.integers(4, 15))):
            name = tags[tag]
            ending = endings[name] if rng.random() < 0.7 else rng.choice(list(endings.values()))
            words.append(f"{int(stems[name] * rng.random() ** 3):x}{ending}")
            labels.append(name)
            tag = int(rng.choice(5, p=np.array(moves[tag]) / sum(moves[tag])))
        X.append(words)
        y.append(labels)
    return X, y


rng = np.random.default_rng(0)
words, tags = treebank("train", 5000) or drawn(1000, rng)
words_test, tags_test = treebank("test", 1500) or drawn(500, rng)
print(f"{sum(map(len, words))} words to learn from, {sum(map(len, words_test))} to tag")

# %%
# What the discriminative models see of a word.


def attributes(sentence):
    """Attributes of each word of a sentence."""
    small = ["<s>", *(word.lower() for word in sentence), "</s>"]
    result = []
    for i, word in enumerate(sentence, 1):
        shape = "".join("X" if c.isupper() else "d" if c.isdigit() else "x" if c.islower() else c for c in word)
        own = [f"w={small[i]}", f"before={small[i - 1]}", f"after={small[i + 1]}", f"shape={shape[:6]}"]
        own += [f"end={small[i][-n:]}" for n in (1, 2, 3)] + [f"begin={small[i][:2]}"]
        result.append(own)
    return result


X, X_test = [attributes(s) for s in words], [attributes(s) for s in words_test]
lower, lower_test = ([[word.lower() for word in s] for s in part] for part in (words, words_test))

# %%
# Three models, four ways to tag. Words that training has not seen tell how much each has understood.

models = {
    "HMM": (mf.HMM(smoothing=0.1, emission_smoothing=0.01, unknown="rare"), lower, lower_test),
    "MEMM": (mf.MEMM(l2=0.5, max_iterations=60), X, X_test),
    "CRF": (ChainCRF(l2=0.5, max_iterations=60), X, X_test),
}
known = {word for sentence in lower for word in sentence}
unseen = np.array([word not in known for sentence in lower_test for word in sentence])
true = np.array([tag for labels in tags_test for tag in labels])
shares = {}
print(f"{'model':<16}{'accuracy':>10}{'unseen words':>14}{'training':>11}{'tagging':>10}")
for kind, (model, train, test) in models.items():
    begin = time.perf_counter()
    model.fit(train, tags)
    seconds = time.perf_counter() - begin
    for how in ("greedy", "viterbi") if kind == "MEMM" else (None,):
        begin = time.perf_counter()
        labels = model.predict(test) if how is None else model.predict(test, decoding=how)
        spent = time.perf_counter() - begin
        hits = np.array([tag for sentence in labels for tag in sentence]) == true
        name = kind if how is None else f"{kind}, {how.title()}"
        shares[name] = [hits.mean(), hits[unseen].mean()]
        print(f"{name:<16}{hits.mean():>10.2%}{hits[unseen].mean():>14.2%}{seconds:>9.2f} s{spent:>8.2f} s")

figure, ax = plt.subplots(figsize=(6.8, 3.4), layout="constrained")
for i, label in enumerate(["all words", f"unseen words ({unseen.mean():.0%})"]):
    bars = ax.bar(np.arange(len(shares)) + 0.38 * i, [s[i] for s in shares.values()], 0.36, label=label)
    ax.bar_label(bars, fmt=lambda v: f"{v:.1%}", fontsize=9)
ax.set_xticks(np.arange(len(shares)) + 0.19, shares)
ax.set_ylim(0, 1.25)
ax.set_yticks(np.linspace(0, 1, 6))
ax.set_ylabel("share of right tags")
ax.legend(loc="upper left", ncols=2)
plt.show()
