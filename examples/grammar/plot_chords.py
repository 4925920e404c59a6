"""
Chord progressions: a chain and a tree
======================================

Lecture notes on graphical models open with chord progressions (Caetano, lecture 1): samples of a hidden Markov model
go smoothly from chord to chord and have no form, those of a model with long-range structure have one. Here both are
learnt from the same tunes. The tunes are made up, by rules such as those of the twelve-bar blues (Steedman 1984) and of
songs of the form A A B A.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Tunes, written as trees: a form has phrases, a phrase has bars, and a bar may be replaced by one that leads to what
# follows. Whoever repeats a phrase repeats its very bars, which only the name of the phrase tells.

PHRASES = {
    "A1": ["I", "vi", "ii", "V"],
    "A2": ["I", "IV", "I", "V"],
    "A3": ["I", "I7", "IV", "iv"],
    "B1": ["IV", "iv", "I", "V7"],
    "B2": ["vi", "II7", "V", "V7"],
}
INSTEAD = {"V": "V7", "I": "I6", "ii": "II7"}


def tune(rng):
    """A tree: a blues of three phrases or a song of four; every bar is the plain one or its stand-in."""
    if rng.random() < 0.4:
        form = ["BLUES", ("P", ["I", "I", "I", "I7"]), ("Q", ["IV", "IV", "I", "I"]), ("R", ["V", "IV", "I", "V"])]
    else:
        a, b = (str(rng.choice([name for name in PHRASES if name[0] == letter])) for letter in "AB")
        form = [f"SONG{a[1]}{b[1]}", *((name, PHRASES[name]) for name in (a, a, b, a))]
    text = ""
    for name, bars in form[1:]:
        played = [INSTEAD[bar] if bar in INSTEAD and rng.random() < 0.2 else bar for bar in bars]
        text += f" ({name} {' '.join(f'({bar}_ {chord})' for bar, chord in zip(bars, played, strict=True))})"
    return f"(TUNE ({form[0]}{text}))"


rng = np.random.default_rng(0)
trees = mf.io.read_trees("\n".join(tune(rng) for _ in range(300)))
tunes = [tree.leaves for tree in trees]
print(trees[0])

# %%
# A hidden Markov model learns from the chords alone, a probabilistic grammar from the trees. Then both make tunes of
# their own.

chain = mf.HMM(n_states=10, rng=0, restarts=3, max_iterations=100).fit(tunes)
grammar = mf.PCFG(vertical=1, horizontal=None).fit(trees)
lengths = rng.choice([len(t) for t in tunes], 300)
by_chain = chain.sample(lengths, rng=1)[0]
by_grammar = [tree.leaves for tree in grammar.sample(300, rng=1)]
made = {"given": tunes, "hidden Markov model": by_chain, "grammar": by_grammar}

# %%
# Bars as colours, a tune on each line. The chain's transitions are right, and phrases begin anywhere; the grammar's
# tunes have 12 or 16 bars and phrases that come back.

chords = sorted({c for t in tunes for c in t})
colours = plt.get_cmap("tab20")
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, (name, some) in zip(axes, made.items(), strict=True):
    picture = np.full((12, 16), np.nan)
    for row, words in zip(picture, some, strict=False):
        row[: len(words)] = [chords.index(w) for w in words[:16]]
    ax.imshow(picture, cmap=colours, vmin=0, vmax=20, aspect="auto")
    for (r, c), k in np.ndenumerate(picture):
        if np.isfinite(k):
            ax.text(c, r, chords[int(k)], ha="center", va="center", fontsize=7)
    ax.set(title=name, xticks=np.arange(3.5, 16, 4), xticklabels=[], yticks=[], xlabel="bars")

# %%
# How alike are two bars of one tune? The share of tunes in which both have the same chord, above what chance alone
# would give: stripes four and eight bars off the diagonal are phrases that return. The chain knows its neighbours
# only.


def echo(some):
    """For every pair of bars, the share of equal chords less what independent bars would have."""
    long = [words for words in some if len(words) == 16]
    codes = np.array([[chords.index(w) for w in words] for words in long])
    shares = np.array([[np.mean(codes[:, i] == codes[:, j]) for j in range(16)] for i in range(16)])
    single = np.array([[np.mean(codes[:, i] == k) for k in range(len(chords))] for i in range(16)])
    return shares - single @ single.T


figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, (name, some) in zip(axes, made.items(), strict=True):
    drawn = ax.imshow(echo(some), cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    ax.set(title=name, xlabel="bar", ylabel="bar")
figure.colorbar(drawn, ax=axes, shrink=0.8)
for name, some in made.items():
    plain = [[chord.rstrip("67") for chord in words] for words in some if len(words) == 16]
    returns = np.mean([words[:4] == words[12:] for words in plain])
    print(f"{name:>20}: {returns:.0%} of the tunes of 16 bars end with the phrase they began with")
plt.show()
