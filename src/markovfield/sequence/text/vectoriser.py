"""From sequences of dicts, lists of texts, or arrays to the flat arrays of linear-chain models."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.text._encoding import (
    Chunk,
    Encoder,
    HashedNames,
    Names,
    chunks,
    is_matrix,
    lookup,
    shown,
)
from markovfield.sequence.text._expansion import TokenAttributes
from markovfield.sequence.text.sequences import SequenceData

__all__ = ["AttributeVectoriser", "pack_strings", "unpack_strings"]


class AttributeVectoriser(TransformerMixin, BaseEstimator):
    """Gives every attribute a number, and turns sequences into `SequenceData`.

    A sequence is a list of tokens. A token is

    * a dict, by python-crfsuite's rules: ``{"bias": 1.0}`` is attribute ``bias`` with that value, ``{"word": "He"}``
      is ``word:He``, True is one and False is zero, and a dict or list inside stands for attributes with the prefix
      ``key:``, as does a 1-d array for ``key:0``, ``key:1`` and so on;
    * a list, tuple or set of texts, each an attribute of value one;
    * a text, one attribute (python-crfsuite would take its letters).

    Or each sequence is a 2-d array or sparse matrix, tokens by attributes; attributes are then called ``0``, ``1``
    and so on. What `Template` and `TokenFeatures` make is taken by columns, faster than if it were lists. References
    of value zero are left out, for they add nothing to any score.

    Parameters
    ----------
    min_count
        Attributes with fewer references than this are left out (not for arrays).
    hashing
        None, or how many attributes there are: a name's number is then its CRC-32 modulo this, nothing is remembered,
        and names that collide share their weights. A power of two well above the number of names is usual.

    Attributes
    ----------
    n_attributes_ : int
        How many attributes there are.
    attributes_ : list of str or None
        Name of each attribute, by number, in the order they were first seen; None with ``hashing``.

    Notes
    -----
    Time is one lookup for each reference, memory four bytes for each (twelve with values other than one) beside the
    names. Sequences may come from a generator: they are taken some at a time, once. Where many lists of texts are
    transformed, names are looked up by their bytes, in a table that takes about thirty bytes for each name.

    Examples
    --------
    >>> vectoriser = AttributeVectoriser()
    >>> data = vectoriser.fit_transform([[{"word": "He", "upper": True}, {"word": "ran"}], [["word:He"]]])
    >>> vectoriser.attributes_
    ['word:He', 'upper', 'word:ran']
    >>> data.attributes
    array([0, 1, 2, 0], dtype=int32)
    >>> vectoriser.transform([[{"word": "swam", "upper": 0.5}]]).values
    array([0.5])
    """

    n_attributes_: int
    _names: dict[str, int]
    _pending: dict[str, int]
    _columns: int | None
    _kinds: set[str]
    _encoder: Encoder | None

    def __init__(self, min_count: int = 1, hashing: int | None = None) -> None:
        self.min_count = min_count
        self.hashing = hashing

    @property
    def attributes_(self) -> list[str] | None:
        """Name of each attribute, by number; None with ``hashing``."""
        check_is_fitted(self, "n_attributes_")
        if self._columns is not None:
            return [str(j) for j in range(self._columns)]
        return None if self.hashing is not None else list(self._names)

    def fit(self, X: Iterable[Any], y: Any = None) -> AttributeVectoriser:
        """Learn the attributes of sequences; what was learned before is forgotten."""
        self._reset()
        return self.partial_fit(X)

    def partial_fit(self, X: Iterable[Any], y: Any = None) -> AttributeVectoriser:
        """Learn the attributes of further sequences; those known already keep their numbers.

        With ``min_count``, references are counted over all calls.
        """
        if isinstance(X, TokenAttributes):
            X.encoded(self, fit=True)
        else:
            self._learn(X, None)
        return self

    def fit_transform(self, X: Iterable[Any], y: Any = None) -> SequenceData:  # type: ignore[override]
        """Learn the attributes and encode the same sequences, in one pass."""
        self._reset()
        if isinstance(X, TokenAttributes):
            return X.encoded(self, fit=True)
        builder = _Builder()
        numbers = self._learn(X, builder)
        return builder.finish(self.n_attributes_, numbers)

    def transform(self, X: Iterable[Any]) -> SequenceData:
        """Encode sequences; attributes that are not known are left out.

        Where all tokens that were learnt from were dicts, or none was, these must be alike.
        """
        if not hasattr(self, "n_attributes_"):  # scikit-learn's own check takes as long as a short sequence
            check_is_fitted(self, "n_attributes_")
        if isinstance(X, SequenceData):
            if X.n_attributes != self.n_attributes_:
                raise ModelError(
                    f"transform: these sequences have {X.n_attributes} attributes where {self.n_attributes_} are known"
                )
            return X
        if isinstance(X, TokenAttributes):
            return X.encoded(self, fit=False)
        builder = _Builder()
        columns = self._columns
        if self._encoder is None:
            self._encoder = Encoder(self._names, frozenset(self._kinds))
        for first, part in chunks(X):
            if columns is not None:
                builder.add(_matrix_chunk(part, first, columns))
            else:
                builder.add(self._encoder.chunk(part, first))
        return builder.finish(self.n_attributes_, None)

    def learn(self, names: Sequence[str], counts: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Learn names with how many references each has, and give their numbers; a name may come more than once."""
        if not hasattr(self, "n_attributes_"):
            self._reset()
        self._needs_names()
        self._kinds.add("list")
        if self.hashing is not None:
            return lookup(self._names, names)
        self._encoder = None
        numbers = self._merge(names, np.asarray(counts, np.int64))
        return np.arange(len(names), dtype=np.int32) if numbers is None else numbers

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.int32]:
        """The number of each name, ``int32[len(names)]``, -1 where unknown."""
        check_is_fitted(self, "n_attributes_")
        self._needs_names()
        return lookup(self._names, names)

    def described(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What an archive needs to hold of a fitted vectoriser: something for JSON, and vectors; see `restored`."""
        check_is_fitted(self, "n_attributes_")
        about: dict[str, Any] = {"min_count": self.min_count, "hashing": self.hashing, "columns": self._columns}
        about["kinds"] = sorted(self._kinds)
        if self.hashing is not None or self._columns is not None:
            return about, {}
        text, offsets = pack_strings(list(self._names))
        return about, {"attribute_text": text, "attribute_offsets": offsets}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> AttributeVectoriser:
        """The vectoriser that `described` described; counts of attributes still below ``min_count`` are lost."""
        self = cls(about["min_count"], about["hashing"])
        self._reset()
        kinds = about.get("kinds", [])  # files of earlier versions do not say
        if not isinstance(kinds, list) or any(kind not in ("dict", "list") for kind in kinds):
            raise FormatError(f"the kinds of its tokens are {shown(kinds)}")
        self._kinds = set(kinds)
        columns = about["columns"]
        if columns is not None:
            if type(columns) is not int or columns < 0:
                raise FormatError(f"the number of columns is {shown(columns)}")
            self._columns = self.n_attributes_ = columns
        elif self.hashing is None:
            names = unpack_strings(arrays["attribute_text"], arrays["attribute_offsets"])
            self._names = Names(names)
            if len(self._names) < len(names):
                raise FormatError("two attributes have the same name")
            self.n_attributes_ = len(names)
        return self

    def with_names(self, names: Sequence[str]) -> AttributeVectoriser:
        """One that knows these names instead, for tokens that are written as before."""
        other = AttributeVectoriser()
        other.learn(names, np.ones(len(names), np.int64))
        other._kinds = set(self._kinds)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # The encoder is a cache.
        return {**super().__getstate__(), **({"_encoder": None} if hasattr(self, "_encoder") else {})}

    def _reset(self) -> None:
        if type(self.min_count) is not int or self.min_count < 1:
            raise ModelError(f"AttributeVectoriser: min_count must be an integer from 1 on, got {self.min_count!r}")
        if self.hashing is not None and (type(self.hashing) is not int or not 1 <= self.hashing < 1 << 31):
            raise ModelError(
                f"AttributeVectoriser: hashing must be None or an integer from 1 to 2**31 - 1, got {self.hashing!r}"
            )
        self._names = Names() if self.hashing is None else HashedNames(self.hashing)
        self._pending = {}
        self._columns = None
        self._kinds = set()
        self._encoder = None
        self.n_attributes_ = self.hashing or 0

    def _learn(self, X: Iterable[Any], builder: _Builder | None) -> npt.NDArray[np.int32] | None:
        """Learn from sequences and hand their references to a builder, by numbers that the answer maps to ours."""
        if not hasattr(self, "n_attributes_"):
            self._reset()
        if isinstance(X, SequenceData):
            raise ModelError("a vectoriser learns from sequences of tokens, not from SequenceData, which has no names")
        start, parts = _peeked(chunks(X))
        if start is not None and is_matrix(start[1][0]):
            self._learn_columns(start[1][0])
            for first, part in parts:
                chunk = _matrix_chunk(part, first, self.n_attributes_)
                if builder is not None:
                    builder.add(chunk)
            return None
        if self._columns is not None:
            raise ModelError(
                "this vectoriser was fitted on arrays and cannot learn from other sequences; fit a new one"
            )
        local = Names(grows=True) if self.hashing is None else self._names
        encoder = Encoder(local)
        tally = _Tally()
        for first, part in parts:
            chunk = encoder.chunk(part, first)
            if builder is not None:
                builder.add(chunk)
            if self.hashing is None:
                tally.add(chunk.attributes)
        self._encoder = None
        self._kinds |= encoder.kinds
        if self.hashing is not None:
            return None
        counts = tally.finish(len(local))
        if isinstance(local, Names) and self._is_new(counts):
            local.grows = False
            self._names, self.n_attributes_ = local, len(local)
            return None
        return self._merge(list(local), counts)

    def _learn_columns(self, matrix: Any) -> None:
        if self.hashing is not None:
            raise ModelError("AttributeVectoriser: hashing is for named attributes; the columns of arrays have numbers")
        if self._names:
            raise ModelError(
                "this vectoriser was fitted on named attributes and cannot learn from arrays; fit a new one"
            )
        if self._columns is None:
            self._columns = self.n_attributes_ = matrix.shape[1] if matrix.ndim == 2 else 0

    def _merge(self, names: Sequence[str], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | None:
        """Take over what one pass has seen; the number of each of its names, or None where they are the same."""
        if self._is_new(counts):
            fresh = Names(names)
            if len(fresh) == len(names):
                self._names = fresh
                self.n_attributes_ = len(names)
                return None
        known, pending = self._names, self._pending
        for name, more in zip(names, counts.tolist(), strict=True):
            if more and name not in known:
                total = pending.pop(name, 0) + more
                if total >= self.min_count:
                    known[name] = len(known)
                else:
                    pending[name] = total
        self.n_attributes_ = len(known)
        return lookup(known, names)

    def _is_new(self, counts: npt.NDArray[np.int64]) -> bool:
        """Whether nothing was learned before, and everything counted is to be learned now."""
        return not self._names and not self._pending and bool((counts >= self.min_count).all())

    def _needs_names(self) -> None:
        if self._columns is not None:
            raise ModelError("this vectoriser was fitted on arrays, whose attributes have no names")


def _peeked(stream: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first item of a stream (None where there is none), and the stream with it."""
    first = next(stream, None)

    def again() -> Iterator[Any]:
        if first is not None:
            yield first
            yield from stream

    return first, again()


class _Tally:
    """Counts references by attribute, as many at a time as there are attributes, for that is what a count costs."""

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)
        self.waiting: list[npt.NDArray[np.int32]] = []
        self.n_waiting = 0

    def add(self, attributes: npt.NDArray[np.int32]) -> None:
        self.waiting.append(attributes)
        self.n_waiting += len(attributes)
        if self.n_waiting > max(1 << 16, len(self.counts)):
            self.finish(0)

    def finish(self, size: int) -> npt.NDArray[np.int64]:
        """The counts of so many attributes, or of as many as were seen."""
        if self.n_waiting:
            more = np.bincount(np.concatenate(self.waiting), minlength=max(size, len(self.counts)))
        else:
            more = np.zeros(max(size, len(self.counts)), np.int64)
        more[: len(self.counts)] += self.counts
        self.counts, self.waiting, self.n_waiting = more, [], 0
        return self.counts


class _Builder:
    """Gathers chunks; grows in place, so that the references are never held twice."""

    def __init__(self) -> None:
        self.lengths = array("q", [0])
        self.counts = array("q", [0])
        self.attributes = array("i")
        self.values: array[float] | None = None

    def add(self, chunk: Chunk) -> None:
        if chunk.values is not None or self.values is not None:
            if self.values is None:
                self.values = array("d")
                self.values.frombytes(np.ones(len(self.attributes)).tobytes())
            values = np.ones(len(chunk.attributes)) if chunk.values is None else chunk.values
            self.values.frombytes(np.ascontiguousarray(values).data.cast("B") if len(values) else b"")
        if len(chunk.attributes):
            self.attributes.frombytes(np.ascontiguousarray(chunk.attributes, np.int32).data.cast("B"))
        self.lengths.frombytes(chunk.lengths.tobytes())
        self.counts.frombytes(chunk.counts.tobytes())

    def finish(self, n_attributes: int, numbers: npt.NDArray[np.int32] | None) -> SequenceData:
        """The gathered references, renumbered where ``numbers`` says how (-1: left out)."""
        lengths = np.frombuffer(self.lengths, np.int64)
        counts = np.frombuffer(self.counts, np.int64)
        attributes = np.frombuffer(self.attributes, np.int32) if self.attributes else np.zeros(0, np.int32)
        values = np.frombuffer(self.values, np.float64) if self.values else None
        if numbers is not None:
            attributes = numbers[attributes]
            gone = attributes < 0
            if gone.any():
                chunk = Chunk(lengths, counts, attributes, values).without(gone)
                counts, attributes, values = chunk.counts, chunk.attributes, chunk.values
        return SequenceData(np.cumsum(lengths), np.cumsum(counts), attributes, values, n_attributes)


def _matrix_chunk(sequences: Sequence[Any], first: int, columns: int) -> Chunk:
    """References of sequences that are 2-d arrays or sparse matrices of so many columns."""
    counts, attributes, values = [np.zeros(0, np.int64)], [], []
    lengths = np.zeros(len(sequences), np.int64)
    for i, sequence in enumerate(sequences):
        if not is_matrix(sequence) or sequence.ndim != 2 or sequence.shape[1] != columns:
            shape = getattr(sequence, "shape", None)
            what = f"shape {shape}" if shape is not None else f"{shown(sequence)} of type {type(sequence).__name__}"
            raise ModelError(
                f"sequence {first + i} has {what} where a 2-d array of numbers with {columns} columns is expected"
            )
        lengths[i] = sequence.shape[0]
        if isinstance(sequence, np.ndarray):
            token, column = np.nonzero(sequence)
            value = sequence[token, column].astype(np.float64)
            counts.append(np.bincount(token, minlength=len(sequence)).astype(np.int64))
        else:
            csr = sequence.tocsr()
            column, value = csr.indices, csr.data.astype(np.float64)
            counts.append(np.diff(csr.indptr).astype(np.int64))
        if not np.isfinite(value).all():
            at = int(np.flatnonzero(~np.isfinite(value))[0])
            token_at = int(np.searchsorted(np.cumsum(counts[-1]), at, side="right"))
            raise ModelError(
                f"token {token_at} of sequence {first + i} has the value {value[at]} for attribute {column[at]}; "
                "values must be finite"
            )
        attributes.append(column.astype(np.int32))
        values.append(value)
    joined = np.concatenate([np.zeros(0), *values])
    chunk = Chunk(lengths, np.concatenate(counts), np.concatenate([np.zeros(0, np.int32), *attributes]), joined)
    zero = np.asarray(joined == 0)
    return chunk.without(zero) if zero.any() else chunk.plain()


def pack_strings(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Texts as bytes of UTF-8 one after the other, and where each starts (and the last one ends): for archives."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = offsets_of(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack_strings(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> list[str]:
    """The texts that `pack_strings` packed; a `FormatError` where the two vectors do not fit together."""
    borders = np.asarray(offsets)
    if (
        data.dtype != np.uint8
        or borders.dtype.kind != "i"
        or not len(borders)
        or borders[0] != 0
        or borders[-1] != len(data)
        or (np.diff(borders) < 0).any()
    ):
        raise FormatError("the packed texts and their offsets do not fit together")
    raw = data.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(borders.tolist())]
    except UnicodeDecodeError:
        raise FormatError("the packed texts are not UTF-8") from None
