"""Trees of a grammar whose rules have weights, and whose spans have features: a discriminative CFG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binarisation import ABOVE, NEW, Binarisation, collapse_unaries, expand_unaries
from markovfield.grammar.binary_grammar import BinaryGrammar
from markovfield.grammar.discriminative.symbol_scores import SymbolScores
from markovfield.grammar.pairs import LabelSupport, PairProduct
from markovfield.grammar.parser import checked_trees, tagged_sentences
from markovfield.grammar.scoring import bracket_report
from markovfield.grammar.span_features import SpanFeatures
from markovfield.grammar.span_model import NULL, SpanShape
from markovfield.grammar.treebank import TreebankGrammar, with_start
from markovfield.grammar.trees import Tree, rebuilt
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import TensorProduct
from markovfield.structures.chart.chart import Chart
from markovfield.structures.chart.family import Charts
from markovfield.structures.core.family import Parts
from markovfield.structures.core.form import StructureForm

__all__ = ["GrammarModel", "GrammarShape"]


@dataclass(frozen=True)
class TaggedWay:
    """Trees as the grammar has them: chains of single children are one node, and a tag below one names it."""

    way: Binarisation

    def transform(self, tree: Tree) -> Tree:
        """The binary tree."""

        def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
            only = below[0]
            if len(below) == 1 and isinstance(only, Tree) and only.is_preterminal:
                below = [Tree(f"{only.label}{ABOVE}{node.label.partition(ABOVE)[0]}", only.children)]
            return [Tree(node.label, below)]

        (found,) = rebuilt(self.way.transform(collapse_unaries(tree)), make)
        assert isinstance(found, Tree)
        return found


@dataclass(frozen=True)
class GrammarShape(SpanShape):
    """What a discriminative grammar has read off its trees: symbols and rules besides features of spans.

    Attributes
    ----------
    grammar
        Symbols and rules.
    rule_scores
        ``float64[n_rules]``: logs of the shares that rules have among those of their parent.
    """

    grammar: BinaryGrammar = field(default_factory=lambda: BinaryGrammar.of([], [], start=NEW))
    rule_scores: FloatArray = field(default_factory=lambda: np.zeros(0))

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        about, arrays = super().described()
        grammar, rules = self.grammar.described()
        return {**about, "grammar": grammar}, {**arrays, **rules, "rule_scores": self.rule_scores}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        found = super()._more(about, arrays)
        described, scores = about.get("grammar"), arrays.get("rule_scores")
        if not isinstance(described, dict):
            raise FormatError("it has no grammar")
        grammar = BinaryGrammar.restored(described, arrays)
        if scores is None or scores.dtype != np.float64 or scores.shape != (grammar.table.n_rules,):
            raise FormatError("it has no scores of rules")
        if not np.isfinite(scores).all():
            raise FormatError("its scores of rules are not finite")
        classes = set(about["classes"])
        if NULL not in classes or not {label_of(symbol, is_tag=False) for symbol in grammar.symbols} & classes:
            raise FormatError("its grammar has other labels than its spans")
        return {**found, "grammar": grammar, "rule_scores": scores}


def label_of(symbol: str, *, is_tag: bool) -> str:
    """The label that a symbol puts over its words: of a tag that of the node above it, and none of new nodes."""
    name, _, above = symbol.partition(ABOVE)
    return above if is_tag else NULL if symbol.startswith(NEW) else name


@dataclass(frozen=True, eq=False)
class GrammarModel(FormModel):
    """Inputs are sentences as ``(word, tag)`` pairs, outputs are trees; see `GrammarCRF` for the settings."""

    direction: str = "right"
    horizontal: int | None = 1
    vertical: int = 1
    min_count: int = 3
    min_word_count: int = 3

    form_class: ClassVar[Any] = Chart
    shape_class: ClassVar[type[Shape]] = GrammarShape

    def __post_init__(self) -> None:
        check_method(self, least={"min_count": 1, "min_word_count": 1})
        self._way()

    def _way(self) -> TaggedWay:
        return TaggedWay(Binarisation(self.direction, self.horizontal, self.vertical))  # type: ignore[arg-type]

    def shape_of(self, X: Any, Y: Any) -> GrammarShape:
        sentences = tagged_sentences(X)
        trees = checked_trees(Y, sentences)
        for i, tree in enumerate(trees):
            if tree.is_preterminal:
                raise ModelError(f"tree {i} is a tag alone, and a grammar has rules above tags: {tree}")
        found = TreebankGrammar.read(trees, self._way())
        grammar, table = found.grammar, found.grammar.table
        totals = np.bincount(grammar.parents, found.rule_counts, table.n_symbols)
        scores = np.log(found.rule_counts / totals[grammar.parents])
        spans = [_labels(found.binary(tree)) for tree in trees]
        labels = (NULL, *sorted({label for own in spans for label in own.values()} - {NULL}))
        used = [np.array([_place(len(s), *span) for span in own]) for s, own in zip(sentences, spans, strict=True)]
        counts = {"min_count": self.min_count, "min_word_count": self.min_word_count}
        features, rows = SpanFeatures.learned(sentences, used, **counts)
        number = {label: x for x, label in enumerate(labels)}
        given = np.array([number[label] for own in spans for label in own.values()])
        support = LabelSupport.of(rows, given, features.n_features, len(labels))
        sizes = {"rules": table.n_rules, "weights": support.n_weights}
        return GrammarShape(
            labels, sizes, features=features, support=support, grammar=grammar, rule_scores=np.asarray(scores)
        )

    @property
    def rules(self) -> GrammarShape:
        """What has been read off trees."""
        known = self.known
        assert isinstance(known, GrammarShape)
        return known

    def templates(self) -> Sequence[Template]:
        shape = self.rules
        return [Template("rules", shape.grammar.table.n_rules), Template("spans", 1, shape.support.n_weights)]

    @cached_property
    def _columns(self) -> tuple[IntArray, IntArray]:
        """The label of each symbol that a word can be, and of each that a binary rule makes."""
        grammar, number = self.rules.grammar, {label: x for x, label in enumerate(self.classes)}
        above = [grammar.symbols[s] for s in grammar.table.branching.tolist()]
        tokens = np.array([number[label_of(symbol, is_tag=True)] for symbol in grammar.tokens], np.int64)
        return tokens, np.array([number[label_of(symbol, is_tag=False)] for symbol in above], np.int64)

    @cached_property
    def _tag_columns(self) -> dict[str, FloatArray]:
        """For each tag the scores of the columns: 0 of those that have it, -inf of others."""
        tags = [symbol.partition(ABOVE)[0] for symbol in self.rules.grammar.tokens]
        return {tag: np.where([tag == own for own in tags], 0.0, -np.inf) for tag in tags}

    def inputs(self, X: Any) -> FormInputs:
        sentences = tagged_sentences(X)
        shape, n_labels = self.rules, self.n_classes
        spans = shape.features.spans(sentences)
        family = shape.grammar.family(spans.lengths, spans=True)
        base = np.zeros(family.n_cells)
        base[: shape.grammar.table.n_rules] = shape.rule_scores
        anything = np.zeros(len(shape.grammar.tokens))
        for sentence, begin in zip(sentences, family.cell_offsets.tolist(), strict=False):
            rows = [self._tag_columns.get(tag, anything) for _, tag in sentence]
            base[begin : begin + len(rows) * len(anything)] = np.concatenate(rows)
        labels = PairProduct(shape.features.rows(spans), shape.support, np.arange(n_labels), n_labels)
        n_rules = shape.grammar.table.n_rules
        blocks = (
            Block("rules", TensorProduct(1, n_rules), slice(0, n_rules)),
            Block("spans", SymbolScores(labels, spans.lengths, *self._columns), slice(n_rules, None)),
        )
        return FormInputs(family, blocks, base, sentences)

    def form(self, inputs: FormInputs, i: int, pool: FloatArray) -> StructureForm:
        family: Any = inputs.family
        grammar = self.rules.grammar
        n, n_rules, columns = int(family.lengths[i]), grammar.table.n_rules, len(grammar.tokens)
        own = pool[family.cell_offsets[i] : family.cell_offsets[i + 1]]
        tokens = own[: n * columns].reshape(n, columns)
        return grammar.form(pool[:n_rules], tokens, own[n * columns :])

    def parts(self, Y: Any, inputs: FormInputs) -> Parts:
        family, grammar, way = inputs.family, self.rules.grammar, self._way()
        assert isinstance(family, Charts)
        trees = checked_trees(Y, inputs.given)
        found = [with_start(way.transform(tree), grammar.start) for tree in trees]
        return Parts.joined([grammar.cells(tree, family, i) for i, tree in enumerate(found)])

    def counted(self, inputs: FormInputs) -> npt.NDArray[np.bool_]:
        """Brackets: symbols of words and spans that have a label."""
        scores = self.operator(inputs)
        table = np.ones((len(scores.labels.given.rows) - 1, scores.labels.n_columns))
        table[:, 0] = 0.0
        first = int(inputs.family.cell_offsets[0])
        return np.concatenate([np.zeros(first, np.bool_), scores.spread(table) > 0])

    @staticmethod
    def operator(inputs: FormInputs) -> SymbolScores:
        """From labels of spans to symbols."""
        found = inputs.blocks[1].operator
        assert isinstance(found, SymbolScores)
        return found

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Tree | None]:
        family, grammar = inputs.family, self.rules.grammar
        assert isinstance(family, Charts)
        found: list[Tree | None] = []
        for i, sentence in enumerate(inputs.given):
            tree = grammar.tree(parts.of(i), family, i, [word for word, _ in sentence])
            found.append(None if tree is None else _retagged(expand_unaries(tree), sentence))
        return found

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        return bracket_report(Y, predicted).f1


def _labels(binary: Tree) -> dict[tuple[int, int], str]:
    """First and last words of the spans of a binary tree, and their labels."""
    found = {}
    for node, i, j in binary.constituents():
        if node.is_preterminal or j - i > 1:
            name = label_of(node.label, is_tag=node.is_preterminal)
            # A start symbol of its own stands over the whole like the node below it.
            if len(node.children) == 2 or node.is_preterminal:
                found[i, j - 1] = name
    return found


def _place(n: int, i: int, j: int) -> int:
    """The position of words i to j among the spans of n words."""
    return i * n - i * (i - 1) // 2 + j - i


def _retagged(tree: Tree, sentence: Sequence[tuple[str, str]]) -> Tree:
    """A tree with the tags of its sentence, which differ where one was never seen."""
    tags = iter([tag for _, tag in sentence])

    def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
        return [Tree(next(tags), below) if node.is_preterminal else Tree(node.label, below)]

    (found,) = rebuilt(tree, make)
    assert isinstance(found, Tree)
    return found
