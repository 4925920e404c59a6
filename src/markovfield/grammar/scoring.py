"""Scores of parses against gold trees, equal to those of evalb (Sekine and Collins 1997) with its usual settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Literal, NamedTuple

from markovfield.exceptions import ModelError
from markovfield.grammar.trees import TRACE, Tree
from markovfield.sequence.text.entities import Score

__all__ = ["BracketReport", "SentenceScore", "bracket_report"]

# What evalb's COLLINS.prm names: labels that do not count, and labels that count as one.
DELETED = ("TOP", TRACE, ",", ":", "``", "''", ".")
EQUAL = (("ADVP", "PRT"),)
_CUT = str.maketrans({"=": "-"})


@dataclass(frozen=True)
class SentenceScore(Score):
    """Scores of one sentence.

    Attributes
    ----------
    n_true, n_found, n_correct
        Brackets of the gold tree, of the parse, and those that match.
    status
        ``"valid"``; ``"error"`` where the words of both differ, ``"skipped"`` where there is no parse: neither counts.
    length
        Words of the gold tree, punctuation included, traces not.
    n_crossing
        Brackets of the parse that cross one of the gold tree.
    n_words, n_correct_tags
        Words, those deleted aside, and how many have the right tag.
    reason
        Why a sentence does not count.
    """

    status: Literal["valid", "error", "skipped"]
    length: int
    n_crossing: int = 0
    n_words: int = 0
    n_correct_tags: int = 0
    reason: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether both have the same brackets."""
        return self.status == "valid" and self.n_true == self.n_found == self.n_correct


@dataclass(frozen=True, repr=False)
class BracketReport(Score):
    """Scores of brackets over all sentences together: counts are pooled, not averaged.

    ``precision``, ``recall`` and ``f1`` are shares of 1; ``str(report)`` has percentages.

    Attributes
    ----------
    n_true, n_found, n_correct
        Brackets of the gold trees, of the parses, and those that match.
    sentences
        A `SentenceScore` for each.
    """

    sentences: tuple[SentenceScore, ...]

    _row = (*Score._row, "complete_match", "no_crossing", "average_crossing", "tagging_accuracy")

    def __repr__(self) -> str:
        return f"BracketReport: F1 {100 * self.f1:.2f} % of brackets, {len(self.sentences)} sentences"

    @property
    def valid(self) -> list[SentenceScore]:
        """Sentences that count."""
        return [sentence for sentence in self.sentences if sentence.status == "valid"]

    @property
    def n_errors(self) -> int:
        """Sentences whose words differ from the gold tree's; they do not count."""
        return sum(sentence.status == "error" for sentence in self.sentences)

    @property
    def n_skipped(self) -> int:
        """Sentences without a parse; they do not count."""
        return sum(sentence.status == "skipped" for sentence in self.sentences)

    @property
    def complete_match(self) -> float:
        """The share of sentences whose brackets are all right."""
        return _share(sum(sentence.is_complete for sentence in self.sentences), len(self.valid))

    @property
    def average_crossing(self) -> float:
        """How many brackets of a parse cross one of its gold tree, on average."""
        return _share(sum(sentence.n_crossing for sentence in self.valid), len(self.valid))

    @property
    def no_crossing(self) -> float:
        """The share of sentences without crossing brackets."""
        return _share(sum(sentence.n_crossing == 0 for sentence in self.valid), len(self.valid))

    @property
    def two_or_less_crossing(self) -> float:
        """The share of sentences with at most two crossing brackets."""
        return _share(sum(sentence.n_crossing <= 2 for sentence in self.valid), len(self.valid))

    @property
    def tagging_accuracy(self) -> float:
        """The share of words with the right tag."""
        return _share(
            sum(sentence.n_correct_tags for sentence in self.valid), sum(sentence.n_words for sentence in self.valid)
        )

    def up_to(self, length: int) -> BracketReport:
        """The report of sentences of at most so many words."""
        return _pooled([sentence for sentence in self.sentences if sentence.length <= length])

    def __str__(self) -> str:
        rows: list[tuple[str, str]] = [
            ("Number of sentence", f"{len(self.sentences):6d}"),
            ("Number of Error sentence", f"{self.n_errors:6d}"),
            ("Number of Skip  sentence", f"{self.n_skipped:6d}"),
            ("Number of Valid sentence", f"{len(self.valid):6d}"),
            ("Bracketing Recall", f"{100 * self.recall:6.2f}"),
            ("Bracketing Precision", f"{100 * self.precision:6.2f}"),
            ("Bracketing FMeasure", f"{100 * self.f1:6.2f}"),
            ("Complete match", f"{100 * self.complete_match:6.2f}"),
            ("Average crossing", f"{self.average_crossing:6.2f}"),
            ("No crossing", f"{100 * self.no_crossing:6.2f}"),
            ("2 or less crossing", f"{100 * self.two_or_less_crossing:6.2f}"),
            ("Tagging accuracy", f"{100 * self.tagging_accuracy:6.2f}"),
        ]
        return "\n".join(f"{name:<25} = {value}" for name, value in rows)


def bracket_report(
    gold: Iterable[Tree],
    parsed: Iterable[Tree | None],
    *,
    labelled: bool = True,
    deleted: Iterable[str] = DELETED,
    equal: Iterable[tuple[str, str]] = EQUAL,
    equal_words: Iterable[tuple[str, str]] = (),
) -> BracketReport:
    """Precision, recall and F1 of labelled brackets, as evalb counts them.

    Tags are no brackets. Words under a deleted tag (punctuation, traces) go from both trees; constituents with a
    deleted label (``TOP``), or without words, do not count; labels are compared less their function tags. A parse with
    other words than its gold tree is an error, one that is missing is skipped: both are left out of all figures, so
    look at how many there are.

    Parameters
    ----------
    gold, parsed
        Trees, one for each sentence; None where a sentence has no parse.
    labelled
        Whether labels count, or only which words stand together.
    deleted
        Labels that do not count.
    equal
        Pairs of labels that count as one; tags as well.
    equal_words
        Pairs of words that count as one.

    Returns
    -------
    BracketReport
        Counts are pooled over sentences. Time is linear in trees, but for crossing brackets, which take their square.

    Examples
    --------
    >>> gold = Tree.parse("(S (NP (DT a) (NN dog)) (VP (VBD ran) (PRT (RP off))) (. .))")
    >>> parse = Tree.parse("(S (NP (DT a) (NN dog)) (VBD ran) (ADVP (RB off)) (. .))")
    >>> report = bracket_report([gold], [parse])
    >>> report.precision, report.recall
    (1.0, 0.75)
    """
    golds, parses = list(gold), list(parsed)
    if len(golds) != len(parses):
        raise ModelError(f"bracket_report takes one parse for each gold tree, got {len(parses)} and {len(golds)}")
    rules = _Rules(labelled, frozenset(deleted), _names(equal), _names(equal_words))
    return _pooled(list(starmap(rules.score, zip(golds, parses, strict=True))))


class _Brackets(NamedTuple):
    words: list[str]
    tags: list[str]
    spans: list[tuple[str, int, int]]
    length: int


class _Rules(NamedTuple):
    labelled: bool
    deleted: frozenset[str]
    labels: Mapping[str, str]
    words: Mapping[str, str]

    def score(self, gold: Tree, parse: Tree | None) -> SentenceScore:
        """Scores of a sentence."""
        true = self.brackets(gold)
        if parse is None or not (found := self.brackets(parse)).words:
            return SentenceScore(0, 0, 0, "skipped", true.length, reason="there is no parse")
        if len(true.words) != len(found.words):
            reason = f"the gold tree has {len(true.words)} words and the parse {len(found.words)}"
            return SentenceScore(0, 0, 0, "error", true.length, reason=reason)
        for mine, other in zip(true.words, found.words, strict=True):
            if mine != other:
                reason = f"the gold tree has the word {mine!r} where the parse has {other!r}"
                return SentenceScore(0, 0, 0, "error", true.length, reason=reason)
        matched = (Counter(true.spans) & Counter(found.spans)).total()
        crossing = sum(_crosses(span, true.spans) for span in found.spans)
        tags = sum(a == b for a, b in zip(true.tags, found.tags, strict=True))
        return SentenceScore(
            len(true.spans), len(found.spans), matched, "valid", true.length, crossing, len(true.words), tags
        )

    def brackets(self, tree: Tree) -> _Brackets:
        """What counts of a tree; spans are over the words that are left."""
        items = tree.constituents()
        words, tags, kept = [], [], [0]
        length = 0
        for (word, tag), alone in zip(tree.pos, _alone(items), strict=True):
            gone = alone and tag in self.deleted
            length += not (alone and tag == TRACE)
            kept.append(kept[-1] + (not gone))
            if not gone:
                words.append(self.words.get(word, word))
                tags.append(self.labels.get(tag, tag))
        spans = []
        for node, start, end in items:
            label = node.label.translate(_CUT).partition("-")[0]
            if not node.is_preterminal and kept[start] < kept[end] and label not in self.deleted:
                label = self.labels.get(label, label) if self.labelled else ""
                spans.append((label, kept[start], kept[end]))
        return _Brackets(words, tags, spans, length)


def _alone(items: Sequence[tuple[Tree, int, int]]) -> list[bool]:
    """Of each word, whether it is all that its parent has, which then is its tag."""
    found = [False] * items[0][2]
    for node, start, _ in items:
        found[start] |= node.is_preterminal
    return found


def _crosses(span: tuple[str, int, int], others: Sequence[tuple[str, int, int]]) -> bool:
    _, a, b = span
    return any(i < a < j < b or a < i < b < j for _, i, j in others)


def _names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """From each name of a pair to the one that stands for both."""
    found: dict[str, str] = {}
    for a, b in pairs:
        found[b] = found.get(a, a)
    return found


def _pooled(sentences: Sequence[SentenceScore]) -> BracketReport:
    def total(name: str) -> int:
        return sum(getattr(sentence, name) for sentence in sentences)

    return BracketReport(total("n_true"), total("n_found"), total("n_correct"), tuple(sentences))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
