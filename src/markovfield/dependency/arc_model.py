"""Dependency trees of sentences: a score for each arc, linear in its features; and for each label of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.dependency.arc_features import TEMPLATES, ArcFeatures
from markovfield.dependency.scoring import dependency_report
from markovfield.dependency.trees import checked_heads, crossing_arcs, heads_and_labels, tagged_words
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.pairs import FeatureRows, LabelSupport, PairProduct
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structures.core.family import Parts
from markovfield.structures.core.form import StructureForm
from markovfield.structures.projective_tree.family import ProjectiveTrees
from markovfield.structures.projective_tree.projective_tree import ProjectiveTree
from markovfield.structures.spanning_tree.arcs import ArcTrees
from markovfield.structures.spanning_tree.family import SpanningTrees
from markovfield.structures.spanning_tree.spanning_tree import SpanningTree

__all__ = ["ArcModel", "ArcShape"]


@dataclass(frozen=True)
class ArcShape(Shape):
    """What a model of arcs has read off its trees.

    Attributes
    ----------
    features
        Which combinations of words and tags are features.
    support
        Which labels they were seen with.
    """

    features: ArcFeatures = field(default_factory=lambda: ArcFeatures((), (), (), np.zeros(0, np.int64)))
    support: LabelSupport = field(default_factory=lambda: LabelSupport(np.zeros(1, np.int64), np.zeros(0, np.int64)))

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        about, arrays = super().described()
        own = self.features
        about |= {"words": list(own.words), "tags": list(own.tags), "prefixes": list(own.prefixes)}
        about["templates"] = [" ".join(names) for names in TEMPLATES]
        return about, {**arrays, "keys": own.keys, "pairs": self.support.numbers(len(self.classes))}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        texts = [about.get(name) for name in ("words", "tags", "prefixes")]
        if not all(isinstance(own, list) and all(isinstance(text, str) for text in own) for own in texts):
            raise FormatError("it has no words, tags or prefixes")
        if about.get("templates") != [" ".join(names) for names in TEMPLATES]:
            raise FormatError("its features are not those of this version")
        keys, pairs, n_labels = arrays.get("keys"), arrays.get("pairs"), len(about["classes"])
        if keys is None or (np.diff(keys) <= 0).any() or (len(keys) and keys[0] < 0):
            raise FormatError("it has no features")
        if pairs is None or (len(pairs) and not 0 <= pairs.min() <= pairs.max() < len(keys) * n_labels):
            raise FormatError("its features go with labels that it does not have")
        words, tags, prefixes = (tuple(own or ()) for own in texts)
        features = ArcFeatures(words, tags, prefixes, keys.astype(np.int64))
        support = LabelSupport.restored(np.unique(pairs.astype(np.int64)), len(keys), n_labels)
        return {"features": features, "support": support}


@dataclass(frozen=True, eq=False)
class ArcModel(FormModel):
    """Inputs are sentences as ``(word, tag)`` pairs, outputs are heads or pairs (head, label); see `DependencyParser`.

    Examples
    --------
    >>> X, y = [[("Rain", "NN"), ("fell", "VBD")]], [[2, 0]]
    >>> model = ArcModel(min_count=1).shaped(X, y)
    >>> model.encode(X, y).family.n_cells
    9
    """

    projective: bool = False
    labelled: bool = False
    single_root: bool = True
    min_count: int = 2
    min_word_count: int = 2

    name: ClassVar[str] = "arcs"
    shape_class: ClassVar[type[Shape]] = ArcShape

    def __post_init__(self) -> None:
        check_method(self, least={"min_count": 1, "min_word_count": 1})

    def shape_of(self, X: Any, Y: Any) -> ArcShape:
        sentences = tagged_words(X)
        trees = self._checked(Y, [len(sentence) for sentence in sentences])
        names = sorted({label for _, labels in trees for label in labels}) if self.labelled else []
        used = [_cells(heads) for heads, _ in trees]
        counts = {"min_count": self.min_count, "min_word_count": self.min_word_count}
        features = ArcFeatures.learned(sentences, used, **counts)
        support = LabelSupport.restored(np.zeros(0, np.int64), features.n_features, 1)
        if names:
            number = {label: x for x, label in enumerate(names)}
            support = self._support(features, sentences, trees, number)
        return ArcShape(tuple(names), {"weights": support.n_weights}, features=features, support=support)

    @staticmethod
    def _support(features: ArcFeatures, sentences: Any, trees: Any, number: dict[str, int]) -> LabelSupport:
        """The labels that features were seen with, for templates that go with labels."""
        arcs = features.arcs(sentences)
        used = [_cells(heads) for heads, _ in trees]
        rows = features.rows(arcs, features.cells(arcs.lengths, used))
        labels = np.zeros(arcs.n_cells, np.int64)
        starts = offsets_of((arcs.lengths + 1) ** 2).tolist()
        for start, own, (_, names) in zip(starts, used, trees, strict=False):
            labels[start + own] = [number[name] for name in names]
        kept = features.goes_with_labels[rows.features]
        begins = offsets_of(kept)[rows.rows].astype(np.int64)
        return LabelSupport.of(FeatureRows(begins, rows.features[kept]), labels, features.n_features, len(number))

    @property
    def arcs(self) -> ArcShape:
        """What has been read off trees."""
        known = self.known
        assert isinstance(known, ArcShape)
        return known

    @property
    def n_labels(self) -> int:
        """Labels of arcs; one where they have none."""
        return max(self.n_classes, 1)

    def templates(self) -> Sequence[Template]:
        return [Template("arcs", 1, self.arcs.support.n_weights)]

    def inputs(self, X: Any) -> FormInputs:
        sentences = tagged_words(X)
        features = self.arcs.features
        arcs = features.arcs(sentences)
        kind: type[ArcTrees] = ProjectiveTrees if self.projective else SpanningTrees
        family = kind.of(arcs.lengths, self.n_labels, single_root=self.single_root)
        operator = PairProduct(features.rows(arcs), self.arcs.support, np.arange(self.n_labels), self.n_labels)
        return FormInputs(family, (Block("arcs", operator),), given=sentences)

    def form(self, inputs: FormInputs, i: int, pool: FloatArray) -> StructureForm:
        family, where = inputs.family.select(np.array([i]))
        side = int(family.lengths[0]) + 1  # type: ignore[attr-defined]
        scores = pool[where].reshape(side, side, self.n_labels)
        kind: Any = ProjectiveTree if self.projective else SpanningTree
        return kind(scores if self.labelled else scores[:, :, 0], single_root=self.single_root)  # type: ignore[no-any-return]

    def _checked(self, Y: Any, lengths: Sequence[int]) -> list[tuple[list[int], list[Any]]]:
        """Heads and labels of outputs, which must be trees that the model has."""
        found = []
        for i, (tree, n) in enumerate(zip(Y, lengths, strict=True)):
            heads, labels = heads_and_labels(tree, i, labelled=self.labelled)
            checked_heads(heads, n, i, single_root=self.single_root)
            if self.projective and (crossing := crossing_arcs(heads)) is not None:
                (a, b), (c, d) = crossing
                raise ModelError(
                    f"tree {i} has arcs that cross, {a} -> {b} and {c} -> {d}: say projective=False, or give "
                    "mf.dependency.projectivised(tree)"
                )
            found.append((heads, labels))
        return found

    def parts(self, Y: Any, inputs: FormInputs) -> Parts:
        family: Any = inputs.family
        trees = self._checked(Y, family.lengths.tolist())
        heads = np.array([head for own, _ in trees for head in own], np.int64)
        if not self.labelled:
            return family.cells_of(heads)  # type: ignore[no-any-return]
        number = {label: x for x, label in enumerate(self.classes)}
        for i, (_, labels) in enumerate(trees):
            if new := set(labels) - number.keys():
                raise ModelError(f"tree {i} has the label {min(new)!r}, which no tree had in training")
        numbers = np.array([number[label] for _, own in trees for label in own], np.int64)
        return family.cells_of(heads, numbers)  # type: ignore[no-any-return]

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        family: Any = inputs.family
        heads, labels = (array.tolist() for array in family.heads_of(parts))
        found: list[Any] = []
        for first, last in zip(parts.offsets[:-1].tolist(), parts.offsets[1:].tolist(), strict=True):
            own = heads[first:last]
            if self.labelled:
                own = list(zip(own, (self.classes[label] for label in labels[first:last]), strict=True))
            found.append(own or None)
        return found

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        trees = [heads_and_labels(tree, i, labelled=False)[0] for i, tree in enumerate(Y)]
        words = [[("", "")] * len(tree) for tree in trees]
        return dependency_report(words, Y, predicted).uas


def _cells(heads: Sequence[int]) -> IntArray:
    """Cells ``head * (n + 1) + modifier`` of the arcs of a tree."""
    n = len(heads)
    return np.array(heads, np.int64) * (n + 1) + np.arange(1, n + 1)
