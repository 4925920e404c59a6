"""What parsers and aligners say of a sentence or a pair of them, drawn as SVG by `markovfield.plot`."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from markovfield._validation import whole_number
from markovfield.alignment.aligner import Aligner
from markovfield.alignment.alignment_crf import AlignmentCRF
from markovfield.alignment.alignment_ssvm import AlignmentSSVM
from markovfield.alignment.symmetric import SymmetricAligner
from markovfield.dependency.dependency_parser import DependencyParser
from markovfield.exceptions import ModelError
from markovfield.grammar.parser import TreeParser
from markovfield.grammar.pcfg import PCFG
from markovfield.inference.verbs import log_partition
from markovfield.structured.form_estimator import FormEstimator

__all__ = ["ALIGNERS", "KINDS", "ParseWork"]

ALIGNERS = (Aligner, SymmetricAligner, AlignmentCRF, AlignmentSSVM)
KINDS = (PCFG, TreeParser, DependencyParser, *ALIGNERS)
MOST_WORDS, MOST_LETTERS = 60, 80


class ParseWork:
    """A grammar, a parser or an aligner, and the sentences that it can be asked about.

    Examples
    --------
    >>> import markovfield as mf
    >>> grammar = mf.PCFG.from_text("S -> 'dogs' VP [0.5] | 'cats' VP [0.5]\\nVP -> 'bark' [1.0]", normalise=True)
    >>> work = ParseWork(grammar)
    >>> work.about()["task"]
    'tree'
    """

    def __init__(self, model: Any) -> None:
        if not isinstance(model, KINDS):
            raise ModelError(f"a parser or an aligner is expected, got a {type(model).__name__}")
        self.model: Any = model
        self.task = (
            "alignment" if isinstance(model, ALIGNERS) else "arcs" if isinstance(model, DependencyParser) else "tree"
        )

    def about(self) -> dict[str, Any]:
        """What the model is and what it reads: ``words``, ``tagged`` (``dog/NN``) or ``pair`` (two sentences)."""
        reads = "pair" if self.task == "alignment" else "words" if isinstance(self.model, PCFG) else "tagged"
        labels = getattr(self.model, "labels_", None) or [c for c in getattr(self.model, "classes_", []) if c]
        return {
            "kind": type(self.model).__name__,
            "task": self.task,
            "reads": reads,
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
            ``pictures``: titles with SVG texts; ``best``: texts with log-scores and probabilities.
        """
        n = whole_number(n_best, "n_best", 1, 10)
        if self.task == "alignment":
            return self._align(_words(text, "the source"), _words(other, "the target"))
        words = _words(text, "the sentence")
        sentence: Any = words if isinstance(self.model, PCFG) else [_tagged(word) for word in words]
        return self._arcs(sentence, n) if self.task == "arcs" else self._tree(sentence, n)

    def _tree(self, sentence: list[Any], n: int) -> dict[str, Any]:
        from markovfield import plot

        words = [word if isinstance(word, str) else word[0] for word in sentence]
        tree = self.model.parse(sentence)
        if tree is None:
            raise ModelError("the model has no tree for this sentence")
        if isinstance(self.model, PCFG):
            found, total = self.model.n_best(sentence, n), float(self.model.log_likelihood([sentence])[0])
            labels: Any = self.model.labels_
        else:
            found, total = self._ranked(sentence, n)
            labels = self.model.classes_
        chart = np.asarray(self.model.predict_marginals([sentence])[0]["spans"], np.float64)
        # The symbols of a binary grammar are more than the labels of its trees.
        named = list(labels) if chart.ndim == 3 and chart.shape[2] == len(labels) else None
        shares = _capped(chart)
        pictures = [{"title": "The best tree", "svg": tree.to_svg()}]
        side = min(12.0, 1.6 + 0.55 * len(words))
        pictures.append(
            {
                "title": "How likely each run of words is a constituent",
                "svg": _drawn(
                    lambda ax: plot.spans(shares, words, labels=named, title="", ax=ax), side, 0.6 * side + 1
                ),
            }
        )
        return {"pictures": pictures, "best": _listed([(str(one), score) for one, score in found], total)}

    def _arcs(self, sentence: list[Any], n: int) -> dict[str, Any]:
        from markovfield import plot

        words, tags = [word for word, _ in sentence], [tag for _, tag in sentence]
        found, total = self._ranked(sentence, n)
        parts = self.model.predict_marginals([sentence])[0]
        shares = np.asarray(parts["arcs"], np.float64)
        best = found[0][0]
        wide = min(24.0, 1.5 + sum(0.35 + 0.11 * len(word) for word in words))
        pictures = [
            {
                "title": "The best tree; paler arcs are less likely",
                "svg": _drawn(
                    lambda ax: plot.arcs(best, words, tags=tags, probabilities=shares, ax=ax), wide, 0.45 * wide
                ),
            },
            {
                "title": "How likely each arc is",
                "svg": _drawn(
                    lambda ax: plot.arc_probabilities(shares, words, title="", ax=ax), *_square(len(words) + 1)
                ),
            },
        ]
        return {"pictures": pictures, "best": _listed([(_heads(one, words), score) for one, score in found], total)}

    def _ranked(self, sentence: Any, n: int) -> tuple[list[tuple[Any, float]], float]:
        model: FormEstimator = self.model
        found = model.predict_n_best([sentence], n)[0]
        if not found:
            raise ModelError("the model has no structure for this sentence")
        return found, float(log_partition(model.form(sentence)).log_partition)

    def _align(self, source: list[str], target: list[str]) -> dict[str, Any]:
        from markovfield import plot

        pair = [(source, target)]
        links = [(int(i), int(j)) for i, j in self.model.predict(pair)[0]]
        shares = np.clip(np.asarray(self.model.predict_marginals(pair)[0], np.float64), 0.0, 1.0)
        picture = _drawn(
            lambda ax: plot.alignment(shares, source, target, links=links, title="", ax=ax),
            min(14.0, 2.5 + 0.4 * len(target)),
            min(14.0, 1.8 + 0.4 * len(source)),
        )
        return {
            "pictures": [{"title": "How likely words are linked; dots are the links found", "svg": picture}],
            "links": [[source[i], target[j], float(shares[i, j])] for i, j in links],
            "probabilities": np.round(shares, 4).tolist(),
            "source": source,
            "target": target,
            "best": [],
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


def _heads(tree: Any, words: list[str]) -> str:
    """``dog <- fell`` for each word."""
    found = []
    for word, entry in zip(words, tree, strict=True):
        head, label = entry if isinstance(entry, (tuple, list)) else (entry, None)
        over = "root" if int(head) == 0 else words[int(head) - 1]
        found.append(f"{word} <- {over}" + ("" if label is None else f" ({label})"))
    return ", ".join(found)


def _listed(found: list[tuple[str, float]], total: float) -> list[dict[str, Any]]:
    return [
        {"text": text, "score": score, "probability": math.exp(min(score - total, 0.0))}
        for text, score in found
        if math.isfinite(score)
    ]


def _capped(values: Any) -> Any:
    """Probabilities of a chart, of which rounding may make a little more than one."""
    return np.clip(values, 0.0, 1.0)


def _square(n: int) -> tuple[float, float]:
    return min(14.0, 2.6 + 0.42 * n), min(14.0, 1.8 + 0.42 * n)


def _drawn(draw: Callable[[Any], Any], width: float, height: float) -> str:
    """What is drawn into axes of so many inches, as the text of an SVG whose letters are outlines."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "markovfield[plot]"') from error
    figure = Figure(figsize=(width, height), layout="constrained")
    draw(figure.subplots())
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
