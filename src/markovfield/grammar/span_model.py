"""Trees without a grammar: a score for each label of each span, linear in features of the span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import IntArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binarisation import NEW, Binarisation, collapse_unaries, expand_unaries
from markovfield.grammar.pairs import LabelSupport, PairProduct
from markovfield.grammar.parser import checked_trees, tagged_sentences
from markovfield.grammar.scoring import bracket_report
from markovfield.grammar.span_features import TEMPLATES, SpanFeatures
from markovfield.grammar.trees import Tree
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structures.core.family import Parts
from markovfield.structures.span_tree.family import SpanTrees
from markovfield.structures.span_tree.span_tree import SpanTree

__all__ = ["SpanModel", "SpanShape"]

# The label of spans that binary trees have and trees have not.
NULL = ""


@dataclass(frozen=True)
class SpanShape(Shape):
    """What a model of spans has read off its trees.

    Attributes
    ----------
    features
        Which combinations of words and tags are features.
    support
        Which labels they were seen with.
    """

    features: SpanFeatures = field(default_factory=lambda: SpanFeatures((), ()))
    support: LabelSupport = field(default_factory=lambda: LabelSupport(np.zeros(1, np.int64), np.zeros(0, np.int64)))

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        about, arrays = super().described()
        keys = self.features.keys
        about |= {"words": list(self.features.words), "tags": list(self.features.tags), "n_keys": list(map(len, keys))}
        joined = np.concatenate([np.zeros(0, np.int64), *keys])
        return about, {**arrays, "keys": joined, "pairs": self.support.numbers(len(self.classes))}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        words, tags, sizes, keys = about.get("words"), about.get("tags"), about.get("n_keys"), arrays.get("keys")
        texts = [*words, *tags] if isinstance(words, list) and isinstance(tags, list) else [None]
        if not all(isinstance(text, str) for text in texts) or not isinstance(sizes, list) or keys is None:
            raise FormatError("it has no words, tags or features")
        if not all(type(n) is int and n >= 0 for n in sizes) or len(sizes) != len(TEMPLATES) or sum(sizes) != len(keys):
            raise FormatError("its features are not those of this version")
        pairs, n_labels = arrays.get("pairs"), len(about["classes"])
        if pairs is None or (len(pairs) and not 0 <= pairs.min() <= pairs.max() < len(keys) * n_labels):
            raise FormatError("its features go with labels that it does not have")
        parts = np.split(keys.astype(np.int64), np.cumsum(sizes)[:-1])
        features = SpanFeatures(tuple(words or ()), tuple(tags or ()), tuple(parts))
        support = LabelSupport.restored(np.unique(pairs.astype(np.int64)), len(keys), n_labels)
        return {"features": features, "support": support}


@dataclass(frozen=True, eq=False)
class SpanModel(FormModel):
    """Inputs are sentences as ``(word, tag)`` pairs, outputs are trees; see `SpanParser` for the settings."""

    direction: str = "right"
    min_count: int = 3
    min_word_count: int = 3

    def __post_init__(self) -> None:
        check_method(
            self, least={"min_count": 1, "min_word_count": 1}, choices={"direction": ("right", "left", "head")}
        )

    form_class: ClassVar[Any] = SpanTree
    shape_class: ClassVar[type[Shape]] = SpanShape

    def shape_of(self, X: Any, Y: Any) -> SpanShape:
        sentences = tagged_sentences(X)
        found = [self._spans(tree) for tree in checked_trees(Y, sentences)]
        labels = (NULL, *sorted({label for spans in found for label in spans.values()} - {NULL}))
        used = [np.array([_place(len(s), *span) for span in spans]) for s, spans in zip(sentences, found, strict=True)]
        counts = {"min_count": self.min_count, "min_word_count": self.min_word_count}
        features, rows = SpanFeatures.learned(sentences, used, **counts)
        number = {label: x for x, label in enumerate(labels)}
        given = np.array([number[label] for spans in found for label in spans.values()])
        support = LabelSupport.of(rows, given, features.n_features, len(labels))
        return SpanShape(labels, {"weights": support.n_weights}, features=features, support=support)

    @property
    def spans(self) -> SpanShape:
        """What has been read off trees."""
        known = self.known
        assert isinstance(known, SpanShape)
        return known

    def templates(self) -> Sequence[Template]:
        return [Template("spans", 1, self.spans.support.n_weights)]

    def inputs(self, X: Any) -> FormInputs:
        sentences = tagged_sentences(X)
        shape, n_labels = self.spans, self.n_classes
        spans = shape.features.spans(sentences)
        # What covers a sentence of several words must have a label.
        base = np.zeros((int(spans.offsets[-1]), n_labels))
        base[(spans.offsets[:-1] + spans.lengths - 1)[spans.lengths > 1], 0] = -np.inf
        operator = PairProduct(shape.features.rows(spans), shape.support, np.arange(n_labels), n_labels)
        return FormInputs(SpanTrees.of(spans.lengths, n_labels), (Block("spans", operator),), base.ravel(), sentences)

    def counted(self, inputs: FormInputs) -> npt.NDArray[np.bool_]:
        # Spans that only make trees binary are not brackets.
        return np.arange(inputs.family.n_cells) % self.n_classes != 0

    def _spans(self, tree: Tree) -> dict[tuple[int, int], str]:
        """First and last words of the spans of a tree made binary, and their labels."""
        way = Binarisation(self.direction, horizontal=0)  # type: ignore[arg-type]
        # Words whose tag is all that covers them have the null label.
        found = {(i, i): NULL for i in range(len(tree.leaves))}
        for label, i, j in way.transform(collapse_unaries(tree)).spans():
            found[i, j - 1] = NULL if label.startswith(NEW) else label
        return found

    def parts(self, Y: Any, inputs: FormInputs) -> Parts:
        number = {label: x for x, label in enumerate(self.classes)}
        offsets = inputs.family.cell_offsets.tolist()
        found: list[list[int]] = []
        for instance, tree in enumerate(checked_trees(Y, inputs.given)):
            spans, n = self._spans(tree), len(tree.leaves)
            if new := set(spans.values()) - number.keys():
                raise ModelError(f"tree {instance} has the label {min(new)!r}, which no tree had in training")
            at = offsets[instance]
            found.append([at + _place(n, *span) * len(number) + number[label] for span, label in spans.items()])
        return Parts.joined(found)

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Tree | None]:
        family: Any = inputs.family
        return [
            _tree(family.spans(i, parts.of(i)), sentence, self.classes) if len(parts.of(i)) else None
            for i, sentence in enumerate(inputs.given)
        ]

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        return bracket_report(Y, predicted).f1


def _place(n: int, i: int, j: int) -> int:
    """The position of words i to j among the spans of n words."""
    return i * n - i * (i - 1) // 2 + j - i


def _tree(spans: IntArray, sentence: Sequence[tuple[str, str]], labels: Sequence[str]) -> Tree:
    """The tree of binary spans: those with the null label go, and chains are made of joined labels."""
    order = sorted(spans.tolist(), key=lambda span: (-span[0], span[1]))
    done: list[list[Tree | str]] = []
    # From the last to the first in the order of a tree, so that the parts of a span are the last two that were made.
    for first, last, label in order:
        if first == last:
            word, tag = sentence[first]
            below: list[Tree | str] = [Tree(tag, [word])]
        else:
            below = done.pop() + done.pop()
        done.append([Tree(labels[label], below)] if labels[label] else below)
    (found,) = done[0]
    assert isinstance(found, Tree)
    return expand_unaries(found)
