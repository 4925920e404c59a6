"""Feature induction (Murphy 19.5.6) on a list of words with counts and on running text: what grows, and how fast.

``python -m benchmarks.learning.feature_induction [--features 100] [--top 20000] [--per-step 1] [--parts list text]``;
about a minute for each part with 100 features. The list is all in lower case; the text, the words of CoNLL-2000
(newspapers, as in the paper), has capitals, digits and punctuation. The alphabet is that of 95 printable characters.
The text's test half says what is left of the likelihood on new words; beside it, a model of pairs of characters with
its best smoothing on the same words (interpolated with single characters, and both with the uniform distribution).
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections import Counter
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save

PRINTABLE = "".join(map(chr, range(32, 127)))
LONGEST = 20


def listed(top: int) -> Counter[str]:
    """The most frequent words of the list."""
    path = data_folder() / "words" / "frequency_dictionary_en_82_765.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8-sig") as lines:
        rows = (line.split() for line in lines)
        found = [(word, int(count)) for word, count in rows if set(word) <= set(PRINTABLE)]
    return Counter(dict(found[:top]))


def text(part: str) -> Counter[str]:
    """The words of a part of CoNLL-2000."""
    with gzip.open(data_folder() / "conll2000" / f"{part}.txt.gz", "rt", encoding="utf-8") as lines:
        words = Counter(line.split()[0] for line in lines if line.strip())
    return Counter({w: n for w, n in words.items() if set(w) <= set(PRINTABLE) and len(w) <= LONGEST})


def mean(values: np.ndarray, words: Counter[str]) -> float:
    """Per word, of words whose length the model knows."""
    counts = np.array(list(words.values()), float)
    known = np.isfinite(values)
    return float(values[known] @ counts[known] / counts[known].sum())


def pairs_of_characters(train: Counter[str], test: Counter[str]) -> float:
    """The log-likelihood per word, with its length, of a model of pairs of characters, smoothed as is best."""
    code = {c: i for i, c in enumerate(PRINTABLE)}
    start, n = len(PRINTABLE), len(PRINTABLE) + 1
    pairs = np.zeros((n, n - 1))
    for word, count in train.items():
        for a, b in zip([start, *(code[c] for c in word)], word, strict=False):
            pairs[a, code[b]] += count
    singles = pairs.sum(axis=0)
    singles = (singles + 0.5) / (singles + 0.5).sum()
    lengths = Counter[int]()
    for word, count in train.items():
        lengths[len(word)] += count
    best = -np.inf
    for strength in (1, 3, 10, 30, 100):
        log = np.log((pairs + strength * singles) / (pairs.sum(axis=1, keepdims=True) + strength))
        total = 0.0
        for word, count in test.items():
            rows = [start, *(code[c] for c in word[:-1])]
            total += count * log[rows, [code[c] for c in word]].sum()
            total += count * np.log(lengths[len(word)] / lengths.total())
        best = max(best, total / test.total())
    return float(best)


def run(name: str, train: Counter[str], test: Counter[str] | None, features: int, per_step: int) -> dict[str, Any]:
    """Grow a field and show it."""
    began = time.perf_counter()
    model = mf.learning.FeatureInduction(features, alphabet=PRINTABLE, per_step=per_step)
    model.fit(list(train), list(train.values()), rng=0)
    seconds = time.perf_counter() - began
    table = Table(f"{name}: {len(train):,} words", ("pattern", "weight", "first", "gain", "log-lik."), first=22)
    induced = model.features_
    shown = sorted({*range(min(20, len(induced))), *range(0, len(induced), max(len(induced) // 20, 1))})
    for i in shown:
        f = induced[i]
        table.row(f"{i + 1:>4} {f.pattern}", f.weight, f.first_weight, f.gain, f.log_likelihood)
    states, columns = model.field_.automaton.following.shape
    table.note(f"{len(induced)} features in {seconds:.1f} s; automaton of {states} states x {columns} columns")
    for n in sorted({1, 2, 10, 100, len(induced)}):
        if n <= len(induced):
            table.note(f"{n} features: {', '.join(model.stage(n).sample(30, rng=1))}")
    result: dict[str, Any] = {"seconds": seconds, "states": states, "log_likelihoods": model.log_likelihoods_}
    if test is not None:
        result["test"] = mean(model.log_likelihood(list(test)), test)
        result["pairs"] = pairs_of_characters(train, test)
        table.note(
            f"log-likelihood per word: {model.log_likelihoods_[-1]:.3f}; on new text {result['test']:.3f}, of pairs of "
            f"characters {result['pairs']:.3f}"
        )
    return {**result, "features": [(f.pattern, f.weight, f.gain) for f in induced]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--top", type=int, default=20_000)
    parser.add_argument("--per-step", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=("list", "text"), default=("list", "text"))
    asked = parser.parse_args()
    results: dict[str, Any] = {"machine": machine()}
    for part in asked.parts:
        train = listed(asked.top) if part == "list" else text("train")
        test = None if part == "list" else text("test")
        results[part] = run(part, train, test, asked.features, asked.per_step)
    save("feature_induction", results)


if __name__ == "__main__":
    main()
