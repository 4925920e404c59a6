"""Sentences cut into labelled segments: what is learned of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.conditional.links import words_of
from markovfield.sequence.conditional.tokens import TokenShape, attribute_matrix, learned_vectoriser
from markovfield.sequence.segments.operators import ROLES, SegmentTokens
from markovfield.sequence.segments.strings import KINDS, SegmentTexts
from markovfield.sequence.text.entities import entity_report
from markovfield.sequence.text.labels import spans
from markovfield.sequence.text.sequences import SequenceData, split_sequences
from markovfield.sequence.text.vectoriser import pack_strings, unpack_strings
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import TensorProduct
from markovfield.structures.core.family import Parts
from markovfield.structures.semi_markov.family import Segmentations
from markovfield.structures.semi_markov.semi_markov import SemiMarkov

__all__ = ["SegmentModel", "SegmentShape"]

OUTSIDE = "O"


@dataclass(frozen=True)
class SegmentShape(TokenShape):
    """What a model of segments has read off its training data: also the texts of segments."""

    texts: SegmentTexts | None = None

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shape as JSON can hold it, and its vectors."""
        assert self.texts is not None
        about, arrays = super().described()
        text, offsets = pack_strings(self.texts.texts)
        return about, {**arrays, "segment_text": text, "segment_offsets": offsets}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        if not {"segment_text", "segment_offsets"} <= set(arrays):
            raise FormatError("it has no texts of segments")
        texts = unpack_strings(arrays["segment_text"], arrays["segment_offsets"])
        return {**super()._more(about, arrays), "texts": SegmentTexts(texts)}


@dataclass(frozen=True, eq=False)
class SegmentModel(FormModel):
    """A sentence is cut into segments; those of label O have one token, others are chunks.

    An input is a sentence as `ChainCRF` takes it, an output its labels in IOB2 (others that `spans` reads are taken).
    Weights are for pairs of the label of a segment with an attribute of its first token, of those after it and of its
    last; with its length; with its words, and with their shapes, from end to end, as far as they were seen of chunks in
    training; and for labels of neighbouring segments, of the first and of the last.

    Parameters
    ----------
    max_length
        Tokens of the longest segment; None is the longest chunk in training. Longer chunks of outputs are read as
        several.
    neighbours
        Whether attributes of the tokens right before and right after a segment count, too. Where tokens have attributes
        of their neighbours, as those of `TokenFeatures` have, these are seen already.
    texts
        Whether to learn of words and shapes from end to end. Inputs must then have words.
    word
        The attribute that holds the word; by default the first there is of ``word``, ``w``, ``token`` and ``text``.
    min_count
        Attributes of tokens, and texts of segments, that come less often are left out.

    Examples
    --------
    >>> X, y = [[["w=in"], ["w=New"], ["w=York"]]], [["O", "B-LOC", "I-LOC"]]
    >>> model = SegmentModel().shaped(X, y)
    >>> model.known.texts.texts
    ['w:New York', 's:Xx Xx']
    >>> model.encode(X, y)
    FormBatch(1 example, semi_markov, 20 cells, 34 weights)
    """

    max_length: int | None = None
    neighbours: bool = False
    texts: bool = True
    word: str | None = None
    min_count: int = 1

    name: ClassVar[str] = "segments"
    shape_class: ClassVar[type[Shape]] = SegmentShape
    form_class: ClassVar[type[SemiMarkov]] = SemiMarkov

    def __post_init__(self) -> None:
        check_method(self, least={"max_length": 1, "min_count": 1})

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """Types of chunks, attributes, the longest segment and the texts of segments."""
        chunks = [_chunks(y, i) for i, y in enumerate(Y)]
        kinds = sorted({kind for sentence in chunks for kind, _, _ in sentence})
        if not kinds:
            raise ModelError("there is no segment to learn from: all labels are O")
        outside = any(sum(b - a for _, a, b in found) < len(y) for found, y in zip(chunks, Y, strict=True))
        lengths = [b - a for found in chunks for _, a, b in found]
        longest = max(lengths) if self.max_length is None else self.max_length
        begins = offsets_of([len(y) for y in Y])
        starts = np.array([begins[i] + a for i, found in enumerate(chunks) for _, a, _ in found], np.int64)
        words = words_of(X, self.word) if self.texts else [None] * int(begins[-1])
        if len(words) != begins[-1]:
            raise ModelError(f"sentences have {len(words)} tokens and {begins[-1]} labels")
        texts = SegmentTexts.seen(words, starts, np.minimum(lengths, longest), self.min_count)
        vectoriser = learned_vectoriser(X, self.min_count)
        sizes = {"attributes": vectoriser.n_attributes_, "max_length": longest, "outside": int(outside)}
        return SegmentShape((*[OUTSIDE] * outside, *kinds), sizes, vectoriser=vectoriser, texts=texts)

    def templates(self) -> Sequence[Template]:
        """Tokens by role, segments as wholes, transitions."""
        k, sizes = self.n_classes, self.known.sizes
        n_texts = len(self.known.texts)  # type: ignore[attr-defined]
        return [
            Template("tokens", self._n_roles * k, sizes["attributes"]),
            Template("segments", k, sizes["max_length"] + n_texts),
            Template("transitions", k * k),
            Template("first", k),
            Template("last", k),
        ]

    @property
    def _n_roles(self) -> int:
        return len(ROLES) if self.neighbours else len(ROLES) - 2

    def inputs(self, X: Any) -> FormInputs:
        """Attributes of tokens, and texts and lengths of all segments."""
        matrix, offsets = attribute_matrix(self.known, X)
        k, longest = self.n_classes, self.known.sizes["max_length"]
        family = Segmentations.of(np.diff(offsets), longest, k)
        shared, own = int(family.cell_offsets[0]), slice(int(family.cell_offsets[0]), None)
        n = matrix.shape[0]
        blocks = (
            Block("tokens", SegmentTokens(matrix, offsets, longest, k, self._n_roles), own),
            Block("segments", TensorProduct(n * longest, k, self._segments(X, offsets)), own),
            Block("transitions", TensorProduct(1, k * k), slice(0, k * k)),
            Block("first", TensorProduct(1, k), slice(k * k, shared - k)),
            Block("last", TensorProduct(1, k), slice(shared - k, shared)),
        )
        base = np.zeros(family.n_cells)
        if self.known.sizes["outside"]:
            base[own].reshape(n, longest, k)[:, 1:, 0] = -np.inf
        return FormInputs(family, blocks, base, given=offsets)

    def _segments(self, X: Iterable[Any], offsets: IntArray) -> Any:
        """Lengths and texts of all segments: a sparse matrix of segments by features."""
        from scipy.sparse import csr_array

        known, longest, n = self.known.texts, self.known.sizes["max_length"], int(offsets[-1])  # type: ignore[attr-defined]
        columns = [np.broadcast_to(np.arange(longest), (n, longest))]
        if self.texts and len(known) and not isinstance(X, SequenceData):
            words = words_of(X, self.word)
            for kind in KINDS:
                found = known.find(words, offsets, longest, kind)
                columns.append(np.where(found >= 0, found + longest, -1))
        table = np.stack(columns, axis=-1).reshape(n * longest, len(columns))
        there = table >= 0
        starts = offsets_of(there.sum(axis=1))
        return csr_array((np.ones(int(starts[-1])), table[there], starts), shape=(len(table), longest + len(known)))

    def parts(self, Y: Any, inputs: FormInputs) -> Parts:
        """The cells of the segments of outputs."""
        family, k = inputs.family, self.n_classes
        assert isinstance(family, Segmentations)
        number = {label: i for i, label in enumerate(self.classes)}
        found = []
        for i, (y, length) in enumerate(zip(Y, family.lengths.tolist(), strict=True)):
            chunks = _chunks(y, i)
            if len(y) != length:
                raise ModelError(f"example {i} has {length} tokens and {len(y)} labels")
            segments = self._segmented(chunks, length, family.max_length)
            unknown = next((label for _, _, label in segments if label not in number), None)
            if unknown is not None:
                raise ModelError(f"example {i}: no segment of label {unknown!r} was seen in training")
            labels = np.array([number[label] for _, _, label in segments], np.int64)
            where = np.array([a * family.max_length + b - a - 1 for a, b, _ in segments], np.int64)
            cells = [family.cell_offsets[i] + where * k + labels, labels[:-1] * k + labels[1:]]
            ends = [k * k + labels[:1], k * (k + 1) + labels[-1:]]
            found.append(np.concatenate([*cells, *ends]))
        return Parts.joined(found)

    @staticmethod
    def _segmented(chunks: list[tuple[str, int, int]], length: int, longest: int) -> list[tuple[int, int, str]]:
        """Segments from end to end of a sentence: chunks, cut where they are too long, and single tokens outside."""
        found: list[tuple[int, int, str]] = []
        for kind, a, b in [*chunks, (OUTSIDE, length, length)]:
            done = found[-1][1] if found else 0
            found += [(t, t + 1, OUTSIDE) for t in range(done, a)]
            found += [(t, min(t + longest, b), kind) for t in range(a, b, longest)]
        return found

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        """For each sentence its labels in IOB2; None where nothing is possible."""
        family, k, offsets = inputs.family, self.n_classes, inputs.given
        assert isinstance(family, Segmentations)
        first = int(family.cell_offsets[0])
        own = parts.cells[parts.cells >= first] - first
        tokens, lengths = np.divmod(own // k, family.max_length)
        states = np.zeros(int(offsets[-1]), np.int64)
        for d in range(family.max_length):
            longer = lengths >= d
            states[tokens[longer] + d] = own[longer] % k + (k if d else 0)
        names = [*(f"B-{label}" for label in self.classes), *(f"I-{label}" for label in self.classes)]
        if self.known.sizes["outside"]:
            names[0] = OUTSIDE
        labels = split_sequences([names[state] for state in states.tolist()], offsets)
        sizes = np.diff(parts.offsets).tolist()
        return [y if size or not y else None for y, size in zip(labels, sizes, strict=True)]

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        """F1 of chunks, see `entity_report`."""
        for i, y in enumerate(Y):
            _chunks(y, i)
        return entity_report(Y, predicted).f1


def _chunks(labels: Any, i: int) -> list[tuple[str, int, int]]:
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise ModelError(f"example {i}: labels must be a list of texts in IOB2, got {labels!r}")
    strange = next((label for label in labels if not isinstance(label, str)), None)
    if strange is not None:
        raise ModelError(f"example {i}: labels must be texts in IOB2, such as 'B-PER', got {strange!r}")
    found = spans(list(labels))
    bare = next((t for kind, t, _ in found if not kind), None)
    if bare is not None:
        raise ModelError(f"example {i}: labels must be O or have a type, as 'B-PER' has, got {labels[bare]!r}")
    return found
