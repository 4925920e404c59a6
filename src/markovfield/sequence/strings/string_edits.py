"""Which word was meant by a string: one of its candidates, by all alignments of their letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.strings.edit_features import EDITS, EditFeatures
from markovfield.sequence.strings.lexicon import Lexicon, checked_strings
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block, FormBatch
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import LinearTerms
from markovfield.structured.core.reading import example_count
from markovfield.structures.alignment.choice import AlignmentChoice
from markovfield.structures.alignment.choice_family import AlignmentChoices
from markovfield.structures.alignment.family import MonotoneAlignments
from markovfield.structures.core.family import Parts

__all__ = ["StringEdits", "StringShape"]


@dataclass(frozen=True)
class StringShape(Shape):
    """What a model of edits has read off its training data: classes are the words of the lexicon."""

    alphabet: str = ""
    log_shares: FloatArray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def lexicon(self) -> Lexicon:
        """The words, with how often they come."""
        return Lexicon(dict(zip(self.classes, np.exp(self.log_shares).tolist(), strict=True)))

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shape as JSON can hold it, and its vectors."""
        about, arrays = super().described()
        return {**about, "alphabet": self.alphabet}, {**arrays, "log_shares": self.log_shares}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        alphabet, shares, words = about.get("alphabet"), arrays.get("log_shares"), about.get("classes")
        if not isinstance(alphabet, str) or len(set(alphabet)) < len(alphabet):
            raise FormatError("it has no alphabet")
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise FormatError("its lexicon is not one of words")
        if shares is None or shares.shape != (len(words),) or not np.isfinite(shares).all() or (shares > 0).any():
            raise FormatError("its words have no frequencies")
        return {"alphabet": alphabet, "log_shares": np.asarray(shares, np.float64)}


class Given(NamedTuple):
    """What is kept of inputs: the words that each string is compared with, by their numbers."""

    candidates: list[IntArray]


@dataclass(frozen=True, eq=False)
class StringEdits(FormModel):
    """An input is a string, an output the word of a lexicon that was meant; their alignment is hidden.

    Parameters
    ----------
    lexicon
        Words, or a dict from words to how often they come; None: those of training, each as often as another.
    n_candidates
        Words that a string is compared with: those that share the most letters and pairs of letters with it, and in
        training the right one.
    """

    lexicon: Any = None
    n_candidates: int = 10

    name: ClassVar[str] = "string_edits"
    shape_class: ClassVar[type[Shape]] = StringShape
    form_class: ClassVar[Any] = AlignmentChoice

    def __post_init__(self) -> None:
        check_method(self, least={"n_candidates": 1})

    def shape_of(self, X: Any, Y: Any) -> StringShape:
        """The lexicon and the alphabet."""
        strings, words = checked_strings(X, "example"), checked_strings(Y, "output")
        known = Lexicon(sorted(set(words)) if self.lexicon is None else self.lexicon)
        alphabet = "".join(sorted({letter for text in (*strings, *words) for letter in text}))
        return StringShape(known.words, {}, alphabet=alphabet, log_shares=known.log_shares)

    @property
    def strings(self) -> StringShape:
        """What has been read off training data."""
        known = self.known
        assert isinstance(known, StringShape)
        return known

    @property
    def features(self) -> EditFeatures:
        """Which features edits have."""
        return EditFeatures(self.strings.alphabet)

    def templates(self) -> Sequence[Template]:
        """Kinds of edits, pairs of letters, and letters without a partner."""
        letters = self.features.n_letters
        return [
            Template("edits", 1, len(EDITS)),
            Template("pairs", 1, letters**2),
            Template("gaps", 1, 2 * letters),
        ]

    def inputs(self, X: Any) -> FormInputs:
        """Strings and their candidates."""
        strings = checked_strings(X, "example")
        example_count(strings)
        return self._paired(strings, self.strings.lexicon.candidates(strings, self.n_candidates))

    def encode(self, X: Any, Y: Any = None, weights: npt.ArrayLike | None = None) -> FormBatch:
        """Inputs, and outputs where they are known, as one batch; outputs are candidates."""
        if Y is None:
            return super().encode(X, Y, weights)
        example_count(X, Y)
        strings, lexicon = checked_strings(X, "example"), self.strings.lexicon
        found = []
        chosen = lexicon.candidates(strings, self.n_candidates)
        for own, right in zip(chosen, self._numbers(Y), strict=True):
            found.append(own if right in own else np.concatenate([own[:-1] if len(own) > 1 else own, [right]]))
        return self.encode_inputs(self._paired(strings, found), Y, weights)

    def _numbers(self, Y: Any) -> list[int]:
        """The numbers of words."""
        known = self.strings.lexicon.number
        words = checked_strings(Y, "output")
        new = next((i for i, word in enumerate(words) if word not in known), None)
        if new is not None:
            raise ModelError(f"example {new}: the word {words[new]!r} is not in the lexicon")
        return [known[word] for word in words]

    def pair(self, string: str, word: str) -> FormInputs:
        """A string and the one word that it is compared with, which may be any."""
        strings, words = checked_strings([string], "string"), checked_strings([word], "word")
        return self._inputs(strings, words, np.array([0, 1]), np.zeros(1), Given([]))

    def _paired(self, strings: Sequence[str], candidates: list[IntArray]) -> FormInputs:
        lexicon = self.strings.lexicon
        numbers = np.concatenate(candidates)
        words = [lexicon.words[k] for k in numbers.tolist()]
        repeated = [string for string, own in zip(strings, candidates, strict=True) for _ in own]
        choices = offsets_of([len(own) for own in candidates])
        return self._inputs(repeated, words, choices, lexicon.log_shares[numbers], Given(candidates))

    def _inputs(
        self, strings: Sequence[str], words: Sequence[str], choices: IntArray, log_shares: FloatArray, given: Given
    ) -> FormInputs:
        sizes = (np.array([len(text) for text in texts], np.int64) for texts in (strings, words))
        family = AlignmentChoices.of(MonotoneAlignments.of(*sizes), choices)
        terms = self.features.terms(family, strings, words, log_shares)
        blocks = tuple(Block(name, LinearTerms(matrix)) for name, matrix in terms.items())
        return FormInputs(family, blocks, None, given)

    def parts(self, Y: Any, inputs: FormInputs) -> None:
        """Alignments are hidden."""
        return

    def mask(self, Y: Any, inputs: FormInputs) -> FloatArray:
        """All alignments with the right word."""
        family: Any = inputs.family
        mask = np.zeros(family.n_cells)
        mask[family.choice_cells] = -np.inf
        for i, (own, right) in enumerate(zip(inputs.given.candidates, self._numbers(Y), strict=True)):
            place = np.flatnonzero(own == right)
            if not len(place):
                raise ModelError(f"example {i}: the word {Y[i]!r} is no candidate of its string")
            mask[family.choice_cells[family.choices[i] + place[0]]] = 0.0
        return mask

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        """The words that were chosen."""
        family: Any = inputs.family
        found: list[Any] = []
        for i, own in enumerate(inputs.given.candidates):
            cells = parts.of(i)
            first, last = int(family.choices[i]), int(family.choices[i + 1])
            place = int(np.searchsorted(family.choice_cells[first:last], cells.min(), "right")) - 1 if len(cells) else 0
            found.append(self.classes[own[place]] if len(cells) else None)
        return found

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        """The share of words that are right."""
        return float(np.mean([a == b for a, b in zip(Y, predicted, strict=True)]))
