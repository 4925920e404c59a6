"""
Alignments nobody gave
======================

A misspelt word and the word that was meant are alike up to some edits, but nobody says which letter became which.
`EditModel` sums over all alignments and learns what edits cost; `CTCLabeller` does the same for the frames of a
picture and its letters (Graves et al. 2006).
"""

import gzip

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Frequent English words where the list is there, otherwise a few; typing errors are made up: a key beside the right
# one, a letter doubled or left out.

try:
    path = mf.datasets.reference_path("words", "frequency_dictionary_en_82_765.txt.gz")
    with gzip.open(path, "rt", encoding="utf-8-sig") as file:
        lines = [line.split() for line, _ in zip(file, range(3000), strict=False)]
    lexicon = {word: float(count) for word, count in lines if word.isalpha() and 4 <= len(word) <= 9}
except FileNotFoundError:
    given = "their there these those where which would could should other after before people because through between"
    lexicon = {word: 100.0 / rank for rank, word in enumerate(given.split(), 1)}
rows = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
beside = {a: row[max(k - 1, 0) : k + 2].replace(a, "") for row in rows for k, a in enumerate(row)}
rng = np.random.default_rng(0)


def misspelt(word):
    """One error, of one of three kinds."""
    k, kind = int(rng.integers(len(word))), rng.random()
    letter = word[k] * 2 if kind < 0.3 else "" if kind < 0.5 else str(rng.choice(list(beside[word[k]])))
    return word[:k] + letter + word[k + 1 :]


meant = [str(word) for word in rng.choice(list(lexicon), 400)]
typed = [misspelt(word) for word in meant]
model = mf.sequence.EditModel(lexicon, l2=0.3, solver=mf.learning.LBFGS(max_iterations=25)).fit(
    typed[:200], meant[:200]
)
print(f"right words of 200 others: {model.score(typed[200:], meant[200:]):.1%} of {len(lexicon)} words")
letters = model.model_.strings.alphabet
pairs = model.coef_["pairs"].reshape(len(letters) + 1, -1)[1:, 1:]
off = np.where(np.eye(len(letters)) > 0, -np.inf, pairs)
typical = [divmod(int(k), len(letters)) for k in np.argsort(-off.ravel())[:6]]
print("letters typed for others:", ", ".join(f"{letters[a]} for {letters[b]}" for a, b in typical))
string, word = next((x, y) for x, y in zip(typed[200:], meant[200:], strict=True) if len(x) != len(y) and len(y) > 5)
print(f"{string!r} may mean", ", ".join(f"{w} ({p:.1%})" for w, p in model.suggest([string], 3)[0]))

# %%
# Letters as frames: columns of pixels, with the borders of letters hidden. Where handwriting is there it is that,
# otherwise drawn strokes.

try:
    data = mf.datasets.handwritten_words()
    chosen = rng.permutation([i for i in range(len(data.words)) if len(data.words[i]) <= 5][:500]).tolist()
    X = [np.concatenate(list(data.images[i]), axis=1).T.astype(float) for i in chosen]
    y = [data.words[i] for i in chosen]
except FileNotFoundError:
    strokes = {a: rng.random((8, 16)) < 0.4 for a in "abcdef"}
    y = ["".join(rng.choice(list(strokes), 3)) for _ in range(80)]
    X = [np.concatenate([strokes[a] for a in word]).astype(float) for word in y]
part = len(X) * 4 // 5
reader = mf.sequence.CTCLabeller(window=4, l2=10.0, solver=mf.learning.LBFGS(max_iterations=60)).fit(X[:part], y[:part])
print(f"letters right in words of other writers: {reader.score(X[part:], y[part:]):.1%}")

# %%
# Left, the probability of every link of the misspelt word; right, which symbol each column of a word is, given what
# the word reads as. CTC asks for the order of letters, not for their places: a label is said where it is surest,
# which need not be where the letter stands (here there are a few words by many writers, and ends tell them apart
# best), and all else is blank.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 2), layout="constrained")
image = left.imshow(mf.marginals(model.pair(string, word))["links"], cmap="Blues", vmin=0, vmax=1)
left.set_xticks(range(len(word)), list(word))
left.set_yticks(range(len(string)), list(string))
left.set(title="links", xlabel="meant", ylabel="typed")
figure.colorbar(image, ax=left, shrink=0.8)
right_ones = [i for i in range(part, len(X)) if reader.predict(X[i : i + 1])[0] == y[i]] or [0]
shown = max(right_ones, key=lambda i: len(y[i]))
free = reader.form(X[shown])
read = [reader.classes_.index(a) + 1 for a in y[shown]]
paths = mf.structures.CTC(free.pool.reshape(len(X[shown]), -1), read)
share = mf.marginals(paths)["symbols"]
used = [0, *dict.fromkeys(read)]
right.imshow(X[shown].T, cmap="Greys", alpha=0.35, aspect="auto", extent=(-0.5, len(X[shown]) - 0.5, 0, 1))
for symbol in used:
    name = "blank" if symbol == 0 else reader.classes_[symbol - 1]
    right.plot(share[:, symbol], "--" if symbol == 0 else "-", color="grey" if symbol == 0 else None, label=name)
right.set(title=f"columns of {y[shown]!r}", xlabel="column of pixels", ylabel="probability", ylim=(0, 1.02))
right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()
