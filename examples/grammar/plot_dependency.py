"""
Heads of words
==============

A dependency tree gives every word the word that it depends on, its head. `DependencyParser` is a conditional random
field on such trees: the score of a tree is the sum over its arcs, and sums over all trees are exact, so that the
probability of every arc is known. They are drawn below, for a sentence of whose parse the model is not sure.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A part of the treebank where it is there, otherwise sentences from a small grammar. Most trees of English have no
# crossing arcs; ``projective=True`` says so, and Eisner's algorithm sums over those trees alone.

try:
    X, y = mf.io.read_dependencies(mf.datasets.reference_path("ptb_sample", "dependency_treebank.dp.gz"))
    short = [i for i in range(len(X)) if len(X[i]) <= 25]
    train, test = short[:600], short[-200:]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    words = {
        "DT": "the a",
        "NN": "dog man park cat hat",
        "VBD": "saw chased met",
        "IN": "in with near",
        "NNP": "Kim Lee",
    }
    X, y = [], []
    for _ in range(260):
        # A subject, a verb, an object, and a phrase that goes with the verb after "in" and with the object otherwise.
        tags = ["DT", "NN", "VBD", "DT", "NN", "IN", *(["NNP"] if rng.random() < 0.5 else ["DT", "NN"])]
        row = [(str(rng.choice(words[tag].split())), tag) for tag in tags]
        with_verb = rng.random() < (0.9 if row[5][0] == "in" else 0.2)
        X.append(row)
        y.append([2, 3, 0, 5, 3, 3 if with_verb else 5, *([6] if len(row) == 7 else [8, 6])])
    train, test = list(range(200)), list(range(200, 260))


def some(values, which):
    return [values[i] for i in which]


for projective in (False, True):
    parser = mf.DependencyParser(projective=projective, rng=0).fit(some(X, train), some(y, train))
    report = parser.report(some(X, test), some(y, test))
    kind = "without crossing arcs" if projective else "all trees"
    print(
        f"{kind:22s} UAS {100 * report.uas:.1f}, without punctuation {100 * report.uas_without_punctuation:.1f}, "
        f"whole trees {100 * report.complete_match:.1f} %, {parser.report_.seconds:.1f} s"
    )

# %%
# The entropy of the trees of a sentence says how sure the parser is: nothing for a single tree, log k for k trees that
# are equally likely. A sentence with some doubt, about 1.5 nats, and its best trees with their probabilities.

chosen = [i for i in test if 8 <= len(X[i]) <= 14]
doubt = [mf.marginals(parser.form(X[i])).entropy for i in chosen]
at = chosen[int(np.argmin(np.abs(np.array(doubt) - 1.5)))]
form = parser.form(X[at])
words = [word for word, _ in X[at]]
for one in mf.decode(form, n_best=4).n_best:
    right = np.mean(np.array(one.structure) == np.array(y[at]))
    print(f"  probability {np.exp(one.score - float(mf.log_partition(form))):.3f}, {right:.0%} of heads right")

# %%
# The best tree. Pale arcs are those that are not likely, orange ones are wrong.

arcs = mf.marginals(form)["arcs"]
best = parser.parse(X[at])
mf.plot.arcs(
    best, words, tags=[tag for _, tag in X[at]], probabilities=arcs, gold=y[at], title="The most probable tree"
)
plt.show()

# %%
# The probabilities of all arcs: each column is a word and sums to one over its heads. True heads have a border.

mf.plot.arc_probabilities(arcs, words, gold=y[at])
plt.show()
