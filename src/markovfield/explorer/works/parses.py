"""What parsers and aligners say of a sentence or a pair of them: trees, charts, arcs and links with probabilities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from markovfield._validation import whole_number
from markovfield.alignment.aligner import Aligner
from markovfield.alignment.alignment_crf import AlignmentCRF
from markovfield.alignment.alignment_ssvm import AlignmentSSVM
from markovfield.alignment.symmetric import SymmetricAligner
from markovfield.dependency.dependency_parser import DependencyParser
from markovfield.exceptions import ModelError
from markovfield.explorer.works.code import lines_of
from markovfield.grammar.discriminative.grammar_crf import GrammarCRF
from markovfield.grammar.discriminative.grammar_model import label_of
from markovfield.grammar.parser import TreeParser
from markovfield.grammar.pcfg import PCFG
from markovfield.grammar.trees import Tree
from markovfield.inference.verbs import log_partition
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structures.chart.chart import Chart

__all__ = ["ALIGNERS", "KINDS", "ParseWork"]

ALIGNERS = (Aligner, SymmetricAligner, AlignmentCRF, AlignmentSSVM)
KINDS = (PCFG, TreeParser, DependencyParser, *ALIGNERS)
MOST_WORDS, MOST_LETTERS = 60, 80
# Labels of a span that are told, and the probability from which a span is.
MOST_LABELS, LEAST = 4, 1e-6


class ParseWork:
    """A grammar, a parser or an aligner, and the sentences that it can be asked about.

    Examples
    --------
    >>> import markovfield as mf
    >>> grammar = mf.PCFG.from_text("S -> 'dogs' VP [0.5] | 'cats' VP [0.5]\\nVP -> 'bark' [1.0]", normalise=True)
    >>> work = ParseWork(grammar)
    >>> work.about()["task"]
    'tree'
    >>> work.ask("dogs bark")["best"][0]["tree"]
    ['S', ['dogs', ['VP', ['bark'], 1, 2]], 0, 2]
    """

    def __init__(self, model: Any) -> None:
        if not isinstance(model, KINDS):
            raise ModelError(f"a parser or an aligner is expected, got a {type(model).__name__}")
        self.model: Any = model
        self.task = (
            "alignment" if isinstance(model, ALIGNERS) else "arcs" if isinstance(model, DependencyParser) else "tree"
        )

    @property
    def reads(self) -> str:
        """``words``, ``tagged`` (``dog/NN``) or ``pair`` (two sentences)."""
        return "pair" if self.task == "alignment" else "words" if isinstance(self.model, PCFG) else "tagged"

    def about(self) -> dict[str, Any]:
        """What the model is and what it reads."""
        labels = getattr(self.model, "labels_", None) or [c for c in getattr(self.model, "classes_", []) if c]
        return {
            "kind": type(self.model).__name__,
            "task": self.task,
            "reads": self.reads,
            "labels": [str(label) for label in labels],
        }

    def ask(self, text: Any, other: Any = "", *, n_best: Any = 3) -> dict[str, Any]:
        """The best structure of a sentence, how likely its parts are, and others that come next.

        Parameters
        ----------
        text
            Words with blanks between them; of parsers that need tags, ``dog/NN``. Of aligners the source sentence.
        other
            Of aligners the target sentence.
        n_best
            How many structures, at most 10.

        Returns
        -------
        dict
            ``best``: structures with texts, log-scores and probabilities; of trees ``spans``, of arcs and alignments
            the table ``probabilities``; ``log_partition`` and ``guarantee``, which speaks of all of them.
        """
        n = whole_number(n_best, "n_best", 1, 10)
        if self.task == "alignment":
            return self._align(_words(text, "the source"), _words(other, "the target"))
        sentence = self._sentence(text)
        return self._arcs(sentence, n) if self.task == "arcs" else self._tree(sentence, n)

    def code(self, path: Path | None, text: Any, other: Any = "") -> str:
        """Lines of Python that ask the same."""
        if self.task == "alignment":
            pair = (_words(text, "the source"), _words(other, "the target"))
            asked = ["print(model.predict([pair])[0])", "probabilities = model.predict_marginals([pair])[0]"]
            return lines_of(path, f"pair = {pair!r}", *asked)
        asked = ["print(model.parse(sentence))", "probabilities = model.predict_marginals([sentence])[0]"]
        return lines_of(path, f"sentence = {self._sentence(text)!r}", *asked)

    def _sentence(self, text: Any) -> list[Any]:
        words = _words(text, "the sentence")
        return [*words] if self.reads == "words" else [_tagged(word) for word in words]

    # ---- trees ------------------------------------------------------------------------------------------------

    def _tree(self, sentence: list[Any], n: int) -> dict[str, Any]:
        if isinstance(self.model, PCFG):
            found, total = self.model.n_best(sentence, n), float(self.model.log_likelihood([sentence])[0])
            guarantee = "exact"
        else:
            found, total, guarantee = self._ranked(sentence, n)
        found = [(tree, score) for tree, score in found if tree is not None]
        if not found:
            raise ModelError("the model has no tree for this sentence")
        best = _listed([(str(tree), score) for tree, score in found], total)
        for one, (tree, _) in zip(best, found, strict=True):
            one["tree"] = _nested(tree)
        return {
            "words": [word if isinstance(word, str) else word[0] for word in sentence],
            "best": best,
            "spans": self._spans(sentence),
            "log_partition": _finite(total),
            "guarantee": guarantee,
        }

    def _spans(self, sentence: list[Any]) -> list[dict[str, Any]]:
        """Runs of words with the probability that they are a constituent, and those of its labels."""
        chart = np.clip(np.asarray(self.model.predict_marginals([sentence])[0]["spans"], np.float64), 0.0, 1.0)
        words, runs = self._labels_of_cells(sentence)
        found = []
        for i in range(len(sentence)):
            for j in range(i, len(sentence)):
                shares: dict[str, float] = {}
                for label, share in zip(runs if i < j else words, chart[i, j].tolist(), strict=True):
                    if label and share > LEAST:
                        shares[label] = shares.get(label, 0.0) + share
                listed = sorted(shares.items(), key=lambda one: -one[1])[:MOST_LABELS]
                whole = min(1.0, sum(shares.values()))
                found.append({"first": i, "last": j, "probability": whole, "labels": listed})
        return found

    def _labels_of_cells(self, sentence: list[Any]) -> tuple[list[str], list[str]]:
        """Of single words, and of longer runs: the label of each entry of a chart's cell, empty for no constituent."""
        if isinstance(self.model, GrammarCRF):
            form = self.model.form(sentence)
            assert isinstance(form, Chart)
            symbols = [str(symbol) for symbol in form.symbols]
            return [label_of(s, is_tag=True) for s in symbols], [label_of(s, is_tag=False) for s in symbols]
        labels = self.model.labels_ if isinstance(self.model, PCFG) else self.model.classes_
        named = [str(label) for label in labels]
        return named, named

    def _ranked(self, sentence: Any, n: int) -> tuple[list[tuple[Any, float]], float, str]:
        model: FormEstimator = self.model
        found = model.predict_n_best([sentence], n)[0]
        if not found:
            raise ModelError("the model has no structure for this sentence")
        total = log_partition(model.form(sentence))
        return found, float(total.log_partition), total.guarantee

    # ---- arcs and links ---------------------------------------------------------------------------------------

    def _arcs(self, sentence: list[Any], n: int) -> dict[str, Any]:
        words, tags = [word for word, _ in sentence], [tag for _, tag in sentence]
        found, total, guarantee = self._ranked(sentence, n)
        shares = np.asarray(self.model.predict_marginals([sentence])[0]["arcs"], np.float64)
        # Labels of an arc exclude each other.
        whole = np.clip(shares.sum(axis=2) if shares.ndim == 3 else shares, 0.0, 1.0)
        best = _listed([(_heads(tree, words), score) for tree, score in found], total)
        for one, (tree, _) in zip(best, found, strict=True):
            one["arcs"] = [[head, label] for head, label in map(_arc, tree)]
        return {
            "words": words,
            "tags": tags,
            "best": best,
            "probabilities": np.round(whole, 6),
            "log_partition": _finite(total),
            "guarantee": guarantee,
        }

    def _align(self, source: list[str], target: list[str]) -> dict[str, Any]:
        pair = [(source, target)]
        links = [(int(i), int(j)) for i, j in self.model.predict(pair)[0]]
        shares = np.clip(np.asarray(self.model.predict_marginals(pair)[0], np.float64), 0.0, 1.0)
        found: dict[str, Any] = {"guarantee": "approximate", "log_partition": None}
        if isinstance(self.model, FormEstimator):
            total = log_partition(self.model.form((source, target)))
            found = {"guarantee": total.guarantee, "log_partition": _finite(float(total.log_partition))}
        elif isinstance(self.model, Aligner):
            total_of_pair = float(self.model.log_likelihood(pair)[0])
            found = {"guarantee": "exact", "log_partition": _finite(total_of_pair)}
        return found | {
            "links": [[i, j, float(shares[i, j])] for i, j in links],
            "probabilities": np.round(shares, 6),
            "source": source,
            "target": target,
            # Directions are joined by their geometric mean, which is no posterior of one model.
            "joined": isinstance(self.model, SymmetricAligner),
        }


def _words(text: Any, what: str) -> list[str]:
    if not isinstance(text, str) or len(text) > MOST_WORDS * (MOST_LETTERS + 1):
        raise ModelError(f"{what} must be a text of at most {MOST_WORDS} words")
    words = text.split()
    if not words or len(words) > MOST_WORDS or max(map(len, words)) > MOST_LETTERS:
        raise ModelError(
            f"{what} must have 1 to {MOST_WORDS} words of at most {MOST_LETTERS} letters, got {len(words)}"
        )
    return words


def _tagged(token: str) -> tuple[str, str]:
    word, slash, tag = token.rpartition("/")
    if not slash or not word or not tag:
        raise ModelError(f"this parser reads words with their tags, such as dog/NN, got {token!r}")
    return word, tag


def _nested(tree: Tree) -> list[Any]:
    """``[label, children, first word, word after the last]``; words are strings."""

    def made(part: Tree, first: int) -> list[Any]:
        children: list[Any] = []
        at = first
        for child in part.children:
            below = made(child, at) if isinstance(child, Tree) else child
            at = below[3] if isinstance(below, list) else at + 1
            children.append(below)
        return [part.label, children, first, at]

    return made(tree, 0)


def _arc(entry: Any) -> tuple[int, str | None]:
    head, label = entry if isinstance(entry, (tuple, list)) else (entry, None)
    return int(head), None if label is None else str(label)


def _heads(tree: Any, words: list[str]) -> str:
    """``dog <- fell`` for each word."""
    found = []
    for word, (head, label) in zip(words, map(_arc, tree), strict=True):
        over = "root" if head == 0 else words[head - 1]
        found.append(f"{word} <- {over}" + ("" if label is None else f" ({label})"))
    return ", ".join(found)


def _listed(found: list[tuple[str, float]], total: float) -> list[dict[str, Any]]:
    return [{"text": text, "score": score, "probability": math.exp(min(score - total, 0.0))} for text, score in found]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
