"""Sentences as flat arrays: attributes of tokens as one sparse matrix, and which tokens are neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import FormatError
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser
from markovfield.structured.core.conditional import Shape

__all__ = ["TokenShape", "attribute_matrix", "learned_vectoriser", "neighbours"]


@dataclass(frozen=True)
class TokenShape(Shape):
    """What a model of sequences has read off its training data: also the numbers of attributes."""

    vectoriser: AttributeVectoriser | None = None

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shape as JSON can hold it, and its vectors: also the names of attributes."""
        assert self.vectoriser is not None
        about, arrays = self.vectoriser.described()
        return {**super().described()[0], "vectoriser": about}, arrays

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(about.get("vectoriser"), dict):
            raise FormatError("it has no names of attributes")
        return {"vectoriser": AttributeVectoriser.restored(about["vectoriser"], arrays)}


def learned_vectoriser(X: Iterable[Any], min_count: int) -> AttributeVectoriser:
    """The numbers of the attributes of some sentences."""
    if isinstance(X, SequenceData):
        return AttributeVectoriser().fit([np.zeros((0, X.n_attributes))])
    return AttributeVectoriser(min_count=min_count).fit(X)


def attribute_matrix(shape: Shape, X: Iterable[Any]) -> tuple[Any, IntArray]:
    """``float64[n_tokens, n_attributes]`` as a sparse matrix, and the tokens of each sentence, from entry to entry."""
    assert isinstance(shape, TokenShape)
    assert shape.vectoriser is not None
    data = shape.vectoriser.transform(X)
    return data.to_csr(), np.asarray(data.sequence_offsets, np.int64)


def neighbours(offsets: IntArray) -> IntArray:
    """``int64[n, 2]``: the tokens of each step from one to the next, numbered through all sentences."""
    n = int(offsets[-1])
    last = np.zeros(n, np.bool_)
    ends = offsets[1:][np.diff(offsets) > 0]
    last[ends - 1] = True
    first = np.flatnonzero(~last)
    return np.column_stack([first, first + 1])
