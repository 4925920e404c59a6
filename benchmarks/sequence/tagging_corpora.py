"""Corpora for taggers as lists of attributes: chunks, names, and names that are rare and new.

Standard library only, for the peers' interpreter reads them too. ``rare`` is made from the Spanish names of CoNLL-2002
so as to be like WNUT-17: nineteen tokens in twenty are outside of all names, sentences are few, and no name of the
development and test sets is one of those in training.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NAMES", "Part", "TaggingCorpus", "read_corpus"]

Rows = list[list[str]]
NAMES = ("conll2000", "conll2002", "rare")
# Share of the training sentences with a name that `rare` keeps.
KEPT = 0.08
DEVELOPMENT = 1000


@dataclass
class Part:
    """Lists of attributes for the tokens of sentences, and their labels."""

    X: list[list[list[str]]]
    y: list[list[str]]

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return sum(map(len, self.X))


@dataclass
class TaggingCorpus:
    """What to learn from, what to stop by, and what to score."""

    train: Part
    dev: Part
    test: Part


def read_corpus(name: str, data: Path, *, share: float = 1.0, development: bool = True) -> TaggingCorpus:
    """A corpus of `NAMES` from the folder of all data sets; of training, some share of its sentences.

    CoNLL-2000 has no development set: it is the end of training, unless there is to be none.
    """
    if name == "conll2000":
        folder = data / "conll2000"
        train, test = _read(folder / "train.txt.gz"), _read(folder / "test.txt.gz")
        cut = len(train) - DEVELOPMENT if development else len(train)
        train, dev = train[:cut], train[cut:]
        attributes = chunk_attributes
    else:
        train, dev, test = (_read(data / "conll2002" / f"esp.{part}.gz") for part in ("train", "testa", "testb"))
        attributes = name_attributes
    if name == "rare":
        train, dev, test = _rare(train, dev, test)
    parts = (train[: int(len(train) * share)], dev, test)
    return TaggingCorpus(
        *(Part([attributes(s) for s in part], [[row[-1] for row in s] for s in part]) for part in parts)
    )


def _read(path: Path) -> list[Rows]:
    """Sentences of a file of columns."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        blocks = lines.read().split("\n\n")
    return [[line.split() for line in block.split("\n") if line.strip()] for block in blocks if block.strip()]


def _rare(train: list[Rows], dev: list[Rows], test: list[Rows]) -> tuple[list[Rows], list[Rows], list[Rows]]:
    rng = random.Random(0)
    kept = [s for s in train if all(row[-1] == "O" for row in s) or rng.random() < KEPT]
    rng.shuffle(kept)
    known = set().union(*map(_names, kept))
    others = ([s for s in part if not _names(s) & known] for part in (dev, test))
    return kept, *others


def _names(sentence: Rows) -> set[str]:
    """The names of a sentence in IOB2."""
    found: list[str] = []
    for row in sentence:
        if row[-1].startswith("B") or (row[-1].startswith("I") and not found):
            found.append(row[0])
        elif row[-1].startswith("I"):
            found[-1] += f" {row[0]}"
    return set(found)


def chunk_attributes(sentence: Rows) -> list[list[str]]:
    """The usual nineteen templates of CoNLL-2000: words within two, tags within two, and their neighbours together."""
    n = len(sentence)

    def at(column: int, i: int) -> str:
        if i < 0:
            return f"_B-{-i}"
        return sentence[i][column] if i < n else f"_B+{i - n + 1}"

    found = []
    for t in range(n):
        w = [at(0, t + i) for i in range(-2, 3)]
        p = [at(1, t + i) for i in range(-2, 3)]
        found.append(
            [
                *(f"U0{i}:{w[i]}" for i in range(5)),
                f"U05:{w[1]}/{w[2]}",
                f"U06:{w[2]}/{w[3]}",
                *(f"U1{i}:{p[i]}" for i in range(5)),
                *(f"U1{5 + i}:{p[i]}/{p[i + 1]}" for i in range(4)),
                *(f"U2{i}:{p[i]}/{p[i + 1]}/{p[i + 2]}" for i in range(3)),
            ]
        )
    return found


def name_attributes(sentence: Rows) -> list[list[str]]:
    """Words within two, how they are written, and first and last letters: what is usual for names."""
    words = ["<s>", "<s>", *(row[0] for row in sentence), "</s>", "</s>"]
    shapes = [
        "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in w) for w in words
    ]
    found = []
    for t in range(2, len(words) - 2):
        word = words[t]
        found.append(
            [
                f"word={word}",
                *(f"lower[{i}]={words[t + i].lower()}" for i in range(-2, 3)),
                *(f"shape[{i}]={shapes[t + i]}" for i in range(-1, 2)),
                *(f"first{n}={word[:n]}" for n in range(1, 4)),
                *(f"last{n}={word[-n:]}" for n in range(1, 4)),
                f"before={words[t - 1].lower()}|{word.lower()}",
                f"after={word.lower()}|{words[t + 1].lower()}",
                f"title={word.istitle()}",
                f"upper={word.isupper()}",
                f"digit={any(map(str.isdigit, word))}",
            ]
        )
    return found
