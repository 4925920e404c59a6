"""
Translation with hidden alignments
==================================

Murphy 19.7.5: somebody tells which sentence translates which, and nobody which word goes with which. A model of
translations y and alignments h, ``p(y, h | x) = exp(w phi(x, y, h)) / Z``, is trained by the likelihood of y alone: h
is summed over. Here y is a choice of words from a pool, h is a matching of the source words with the chosen ones, and
both sums are permanents, exact for short sentences. The model is written below, in forty lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf
from markovfield.structured import Block, FormEstimator, FormInputs, FormModel, LinearTerms, Shape, Template

# %%
# An input has the source words and a pool of target words; the output is the set of positions in the pool that are the
# translation, no more than there are source words. Links to other words are ruled out by the mask, and chosen words
# must have a link: all matchings that are left explain the output. ``features(source word, target word)`` makes the
# scores of links.


@dataclass(frozen=True, eq=False)
class TranslationModel(FormModel):
    """Words of a pool that translate source words, by links that nobody sees."""

    features: Any = None
    form_class: ClassVar[Any] = mf.structures.Matching

    def shape_of(self, X: Any, Y: Any) -> Shape:
        return Shape(sizes={"features": len(self.features(X[0][0][0], X[0][1][0]))})

    def templates(self) -> Sequence[Template]:
        return [Template("links", 1, self.known.sizes["features"]), Template("alone", 1, 2)]

    def inputs(self, X: Any) -> FormInputs:
        rows, columns = np.array([len(x) for x, _ in X]), np.array([len(pool) for _, pool in X])
        family = mf.structures.Matchings.of(rows, columns)
        links = np.array([self.features(e, f) for x, pool in X for e in x for f in pool], np.float64)
        sides = [np.repeat([[1.0, 0.0], [0.0, 1.0]], (n, m), axis=0) for n, m in zip(rows, columns, strict=True)]
        starts, sizes = family.cell_offsets[:-1], rows * columns
        of_links = np.concatenate([np.arange(a, a + size) for a, size in zip(starts, sizes, strict=True)])
        others = np.setdiff1d(np.arange(family.n_cells), of_links)
        blocks = (
            Block("links", LinearTerms(links), of_links),
            Block("alone", LinearTerms(np.concatenate(sides)), others),
        )
        return FormInputs(family, blocks, given=X)

    def parts(self, Y: Any, inputs: FormInputs) -> None:
        return None  # hidden: see mask

    def mask(self, Y: Any, inputs: FormInputs) -> Any:
        found = []
        for (x, pool), chosen in zip(inputs.given, Y, strict=True):
            there = np.isin(np.arange(len(pool)), list(chosen))
            links = np.where(np.broadcast_to(there, (len(x), len(pool))), 0.0, -np.inf)
            found += [links.ravel(), np.zeros(len(x)), np.where(there, -np.inf, 0.0)]
        return np.concatenate(found)

    def outputs(self, parts: Any, inputs: FormInputs) -> list[Any]:
        family, found = inputs.family, []
        for k in range(family.n_instances):
            m = int(family.columns[k])
            own = parts.of(k) - family.cell_offsets[k]
            found.append(frozenset((own[own < int(family.rows[k]) * m] % m).tolist()))
        return found

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        return float(np.mean([y == guess for y, guess in zip(Y, predicted, strict=True)]))


class Translator(FormEstimator):
    """The model above, trained by the likelihood of what is seen."""

    objective, solver, l1, batch_size, rng, n_jobs = "likelihood", "auto", 0.0, None, None, None

    def __init__(self, features: Any = None, l2: float = 1.0) -> None:
        self.features = features
        self.l2 = l2

    def _model(self) -> TranslationModel:
        return TranslationModel(self.features)


# %%
# A toy: eight source words have a translation each, and the pool holds those of the sentence and as many others. A
# weight for every pair of words is learnt from sentences alone, and the dictionary comes out of it.

rng = np.random.default_rng(0)
names = ["dog", "cat", "house", "tree", "book", "bread", "water", "sun"]
french = ["chien", "chat", "maison", "arbre", "livre", "pain", "eau", "soleil"]
X, y = [], []
for _ in range(60):
    words = rng.choice(8, 4, replace=False)
    pool = rng.permutation(8)
    X.append(([names[k] for k in words], [french[k] for k in pool]))
    y.append({j for j in range(8) if pool[j] in words})
pair_of = {(e, f): i * 8 + j for i, e in enumerate(names) for j, f in enumerate(french)}
toy = Translator(lambda e, f: np.eye(64)[pair_of[e, f]], l2=0.1).fit(X[:40], y[:40])
print(f"toy: {toy.score(X[40:], y[40:]):.0%} of new sentences have all words right")
weights = toy.coef_["links"].reshape(8, 8)

# %%
# Sentences of the parliament: which of five English sentences translates a French one? The pool holds the words of all
# five. Links are judged by translation probabilities of IBM model 1, which has not seen the sentences that are asked
# for, how far apart words are, and their letters; four weights are learnt from pairs without a single link.

try:
    corpus = [(french, english) for english, french in mf.datasets.hansards("training", 12000).pairs]
except FileNotFoundError:
    words = rng.integers(0, 80, (900, 6))
    corpus = [([f"f{k}" for k in row], [f"e{k}" for k in rng.permutation(row)[:5]]) for row in words]
fits = [len(english) <= len(french) <= 8 for french, english in corpus]
short = [pair for pair, fit in zip(corpus, fits, strict=True) if fit][:250]
asked = set(map(id, short[100:]))
first = mf.alignment.IBM1().fit([pair for pair in corpus if id(pair) not in asked])
tables = {word: dict(first.translations(word, 1000)) for word in {word for pair in short for word in pair[0]}}


def judged(e: tuple[str, float], f: tuple[str, float]) -> list[float]:
    """Words come with their places, from 0 to 1."""
    p = tables[e[0]].get(f[0], 0.0)
    return [np.log(p + 1e-4) / 5, p, -abs(e[1] - f[1]), e[0][:4] == f[0][:4]]


def placed(words: list[str]) -> list[tuple[str, float]]:
    return [(word, i / len(words)) for i, word in enumerate(words)]


def questions(chosen: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Each French sentence with a pool of five English ones, and where each of these is in the pool."""
    X, Y = [], []
    for k in chosen:
        # Others are of about the same length, so that it says nothing.
        n = [len(words) for words, _ in short]
        alike = [o for o in range(len(short)) if o != k and len(short[o][1]) <= n[k] and abs(n[o] - n[k]) <= 1]
        others = rng.choice(alike, 4, replace=False).tolist()
        sentences = [short[o][1] for o in [k, *others]]
        ends = np.cumsum([len(words) for words in sentences]).tolist()
        X.append((placed(short[k][0]), [item for words in sentences for item in placed(words)]))
        Y.append([frozenset(range(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)])
    return X, Y


train, held = questions(range(100)), questions(range(100, 250))
model = Translator(judged).fit(train[0], [sets[0] for sets in train[1]])
print(
    "weights:",
    dict(zip(["log t", "t", "near", "letters"], model.coef_["links"].ravel().round(2).tolist(), strict=True)),
)

right = by_first = 0
for k, (x, sets) in enumerate(zip(*held, strict=True)):
    scores = model.log_likelihood([x] * len(sets), sets)
    right += int(np.argmax(scores)) == 0
    words = [[x[1][j][0] for j in sorted(own)] for own in sets]
    each = first.log_likelihood([(short[100 + k][0], sentence) for sentence in words]) / [len(w) for w in words]
    by_first += int(np.argmax(each)) == 0
print(f"the right one of five: {right / 150:.0%}; by IBM model 1, for each word: {by_first / 150:.0%}")

# %%
# The dictionary of the toy; and the links of a sentence with its translation, which nobody has shown: the posterior of
# the hidden alignment, given that the translation is right.


def hidden(french: list[str], english: list[str]) -> Any:
    """Posteriors of links between a sentence and its translation."""
    inputs = model.model_.inputs([(placed(french), placed(english))])
    scores = model.model_.encode_inputs(inputs).pool(model.weights_)
    scores = scores + model.model_.mask([range(len(english))], inputs)
    return mf.marginals(model.model_.form(inputs, 0, scores))["links"]


# Of some longer sentences the one whose words change places most.
longer = [pair for pair in short[100:] if len(pair[1]) >= 5][:60]
moved = [
    float((p * np.abs(np.subtract.outer(*map(np.arange, p.shape)))).sum()) for p in (hidden(*pair) for pair in longer)
]
source, target = longer[int(np.argmax(moved))]
posterior = hidden(source, target)
figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
spread = np.exp(weights - weights.max(axis=1, keepdims=True))
mf.plot.alignment(spread / spread.sum(axis=1, keepdims=True), names, french, title="toy: words learnt", ax=axes[0])
mf.plot.alignment(posterior, source, target, title="hidden alignment", ax=axes[1])
plt.show()
