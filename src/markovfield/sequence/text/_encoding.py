"""From tokens as users write them to numbers of attributes: whole chunks at C speed, odd ones token by token.

A chunk is some sequences. Where its tokens are all lists of texts, all texts, or all dicts of texts and numbers with
mostly the same keys, the work is one lookup for each reference, driven by ``map``. Everything else, and everything
wrong, goes through `careful_pairs`, which knows all ways to write tokens and can say where something is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, repeat
from operator import getitem, itemgetter
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from markovfield.arrays import offsets_of
from markovfield.exceptions import ModelError

__all__ = [
    "Chunk",
    "Encoder",
    "HashedNames",
    "Names",
    "PackedNames",
    "chunks",
    "is_matrix",
    "lookup",
    "shown",
]

# Few enough for the tokens of a chunk to stay in the cache.
SEQUENCES_AT_ONCE = 192
_CACHE_LIMIT = 1 << 20
_UNKNOWN = -1
_ZERO = "\0"
# References after which packing the names pays, and compiling what looks them up.
_MANY = 1 << 17
_SEPARATOR = ":"
# Dict tokens are taken by columns where so many of them, on average, have the same keys.
_TOKENS_PER_GROUP = 8
_PLAIN_NUMBERS = {bool, int, float}
_NESTED = (list, tuple, set, frozenset)
_NUMBERS = (int, float, np.number, np.bool_)


class _UnusualError(Exception):
    """What the fast paths do not take."""


class Names(dict[str, int]):
    """Names with numbers. A text that is none of them is unknown, or, while ``grows``, becomes one."""

    __slots__ = ("grows",)

    def __init__(self, names: Iterable[str] = (), *, grows: bool = False) -> None:
        super().__init__(zip(names, count()))
        self.grows = grows

    def __missing__(self, name: str) -> int:
        if not isinstance(name, str):
            raise _UnusualError
        if not self.grows:
            return _UNKNOWN
        number = self[name] = len(self)
        return number


class HashedNames(dict[str, int]):
    """A number for every name by a hash that is the same on every machine and in every run; a cache of those seen."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __missing__(self, name: str) -> int:
        if not isinstance(name, str):
            raise _UnusualError
        number = crc32(name.encode("utf-8", "surrogatepass")) % self.size
        if len(self) < _CACHE_LIMIT:
            self[name] = number
        return number


class _Texts(dict[str, int]):
    """Text to number for one key of dict tokens, so that ``key:text`` is put together once and not for every token."""

    __slots__ = ("key", "names")

    def __init__(self, key: str, names: dict[str, int]) -> None:
        super().__init__()
        self.key = key
        self.names = names

    def __missing__(self, text: str) -> int:
        if not isinstance(text, str):
            raise _UnusualError
        number = self.names[self.key + _SEPARATOR + text]
        if number != _UNKNOWN and len(self) < _CACHE_LIMIT:
            self[text] = number
        return number


class _Keys(dict[str, _Texts]):
    """Key of dict tokens to its texts."""

    __slots__ = ("names",)

    def __init__(self, names: dict[str, int]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, key: str) -> _Texts:
        if not isinstance(key, str):
            raise _UnusualError
        table = self[key] = _Texts(key, self.names)
        return table


class PackedNames:
    """The numbers of names that grow no more, by their bytes: a fraction of the time of a dictionary's lookups.

    They come one text after the other, so that nothing waits for memory, and make no objects. A text with a zero byte
    cannot be told from two: then `numbers` is None.
    """

    def __init__(self, names: Iterable[str], size: int) -> None:
        from markovfield.sequence.text.packed_names_kernel import fill_slots

        self.known = _bytes_of(names)
        self.starts = np.zeros(size, np.int64)
        self.slots = np.zeros(1 << (2 * size).bit_length(), np.uint64)
        self.whole = self.known.count(0) == size
        self.text = np.frombuffer(self.known, np.uint8)
        if self.whole:
            fill_slots(self.text, self.starts, self.slots)

    def numbers(self, texts: Iterable[str], size: int) -> npt.NDArray[np.int32] | None:
        """The number of each of so many texts, -1 where it is unknown."""
        from markovfield.sequence.text.packed_names_kernel import look_up

        wanted = _bytes_of(texts)
        found = np.empty(size, np.int32)
        end = look_up(np.frombuffer(wanted, np.uint8), self.text, self.starts, self.slots, found)
        return found if self.whole and end == len(wanted) else None


def _bytes_of(texts: Iterable[str]) -> bytes:
    """Texts one after the other, each with a zero byte after it."""
    return _ZERO.join(chain(texts, ("",))).encode("utf-8", "surrogatepass")


@dataclass
class Chunk:
    """The references of some sequences, in order.

    ``values`` is None where all are one. Unknown attributes and zero values are left out.
    """

    lengths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64] | None

    def without(self, gone: npt.NDArray[np.bool_]) -> Chunk:
        """The chunk without some of its references."""
        kept = ~gone
        before = offsets_of(kept)
        ends = np.cumsum(self.counts)
        counts = before[ends] - before[ends - self.counts]
        return Chunk(
            self.lengths, counts, self.attributes[kept], None if self.values is None else self.values[kept]
        ).plain()

    def plain(self) -> Chunk:
        """The same, with None for values that are all one."""
        if self.values is not None and (self.values == 1).all():
            self.values = None
        return self


class Encoder:
    """Turns chunks of sequences into numbers by a table of names, which may grow."""

    def __init__(self, names: dict[str, int], kinds: frozenset[str] = frozenset()) -> None:
        self.names = names
        self.expected = kinds
        self.kinds: set[str] = set()
        self.keys = _Keys(names)
        self.packed: PackedNames | None = None
        self.n_seen = 0

    def chunk(self, sequences: Sequence[Any], first: int) -> Chunk:
        """The references of some sequences; ``first`` is the number of the first one, for errors."""
        if len(self.keys) > _CACHE_LIMIT >> 4:
            self.keys.clear()
        sequences = [_listed(sequence, first + i) for i, sequence in enumerate(sequences)]
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        tokens = list(chain.from_iterable(sequences))
        types = set(map(type, tokens))
        self._see(types, sequences, first)
        try:
            counts, codes, values = self._fast(tokens, types)
        except (_UnusualError, TypeError):
            counts, codes, values = self._careful(sequences, first)
        chunk = Chunk(lengths, counts, codes, values).plain()
        gone = codes < 0
        if chunk.values is not None:
            gone |= chunk.values == 0
        return chunk.without(gone) if gone.any() else chunk

    def _see(self, types: set[type[Any]], sequences: Sequence[Any], first: int) -> None:
        """Remember how tokens are written; refuse those that are not written as they were in training."""
        kinds = set(map(_kind, types))
        self.kinds |= kinds
        if not self.expected or kinds <= self.expected:
            return
        s, t, kind = next(
            (s, t, _kind(type(token)))
            for s, sequence in enumerate(sequences, first)
            for t, token in enumerate(sequence)
            if _kind(type(token)) not in self.expected
        )
        if kind:  # what is neither is told of later
            raise ModelError(
                f"token {t} of sequence {s} is a {kind} where training had only {next(iter(self.expected))}s: write "
                "tokens as they were written there"
            )

    def _fast(self, tokens: list[Any], kinds: set[type[Any]]) -> Any:
        if kinds == {dict}:
            return self._dicts(tokens)
        if kinds == {str}:
            return np.ones(len(tokens), np.int64), self._numbers([tokens], len(tokens)), None
        if kinds <= {set, frozenset}:  # in sorted order, so that numbers do not depend on the run
            tokens = list(map(sorted, tokens))
        elif not kinds <= {list, tuple}:
            raise _UnusualError
        counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
        return counts, self._numbers(tokens, int(counts.sum())), None

    def _numbers(self, tokens: list[Any], size: int) -> npt.NDArray[np.int32]:
        """The numbers of so many names in lists of them."""
        self.n_seen += size
        if self.packed is None and self.n_seen > _MANY and isinstance(self.names, Names) and not self.names.grows:
            self.packed = PackedNames(self.names, len(self.names))
        if self.packed is not None:
            found = self.packed.numbers(chain.from_iterable(tokens), size)
            if found is not None:
                return found
        return np.fromiter(map(self.names.__getitem__, chain.from_iterable(tokens)), np.int32, size)

    def _dicts(self, tokens: list[dict[Any, Any]]) -> Any:
        counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
        total = int(counts.sum())
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, keys in enumerate(map(tuple, tokens)):
            groups.setdefault(keys, []).append(i)
        if _TOKENS_PER_GROUP * len(groups) <= len(tokens):
            try:
                codes, values = self._grouped(tokens, groups, counts)
            except _UnusualError:
                codes, values = self._mixed(tokens, total)
        elif set(map(type, chain.from_iterable(map(dict.values, tokens)))) <= _PLAIN_NUMBERS:
            codes = np.fromiter(map(self.names.__getitem__, chain.from_iterable(tokens)), np.int32, total)
            values = np.fromiter(chain.from_iterable(map(dict.values, tokens)), np.float64, total)
        else:
            codes, values = self._mixed(tokens, total)
        if not np.isfinite(values).all():
            raise _UnusualError
        return counts, codes, values

    def _grouped(
        self, tokens: list[dict[Any, Any]], groups: dict[tuple[Any, ...], list[int]], counts: npt.NDArray[np.int64]
    ) -> Any:
        """Tokens with the same keys in the same order make columns; a column needs one lookup for each of its texts."""
        starts = np.cumsum(counts) - counts
        codes, values = np.empty(int(counts.sum()), np.int32), np.ones(int(counts.sum()))
        for keys, members in groups.items():
            at = starts[members]
            mine = [tokens[i] for i in members]
            for j, key in enumerate(keys):
                # Not dict.values(): so many views alive at once would wake the garbage collector.
                column = list(map(itemgetter(key), mine))
                if type(column[0]) is str:  # what is no text is not found there, and found out
                    codes[at + j] = np.fromiter(map(self.keys[key].__getitem__, column), np.int32, len(column))
                elif set(map(type, column)) <= _PLAIN_NUMBERS:
                    codes[at + j] = self.names[key]
                    values[at + j] = np.fromiter(column, np.float64, len(column))
                else:
                    raise _UnusualError
        return codes, values

    def _mixed(self, tokens: list[dict[Any, Any]], total: int) -> Any:
        if not set(map(type, chain.from_iterable(map(dict.values, tokens)))) <= _PLAIN_NUMBERS | {str}:
            raise _UnusualError
        names, keys = self.names, self.keys
        codes: list[int] = []
        append = codes.append
        values = np.ones(total)
        for token in tokens:
            for key, value in token.items():
                if type(value) is str:
                    append(keys[key][value])
                elif value is True:
                    append(names[key])
                elif value is False:  # left out later, so that no attribute is made for it
                    append(_UNKNOWN)
                else:
                    values[len(codes)] = value
                    append(names[key])
        return np.fromiter(codes, np.int32, total), values

    def _careful(self, sequences: Sequence[Any], first: int) -> Any:
        counts, codes, values = [], [], []
        for number, sequence in enumerate(sequences, first):
            for at, token in enumerate(sequence):
                pairs = list(careful_pairs(token, f"token {at} of sequence {number}"))
                counts.append(len(pairs))
                for name, value in pairs:
                    codes.append(self.names[name] if value else _UNKNOWN)
                    values.append(value)
        return np.array(counts, np.int64), np.array(codes, np.int32), np.array(values, np.float64)


def _kind(token: type[Any]) -> str:
    """Whether tokens of some type name attributes with keys, or list them (a text being a list of one)."""
    return "list" if issubclass(token, (str, *_NESTED)) else "dict" if issubclass(token, Mapping) else ""


def careful_pairs(token: Any, where: str, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of one token by python-crfsuite's rules; what is wrong is a `ModelError` that says where."""
    if isinstance(token, str):
        yield prefix + token, 1.0
    elif isinstance(token, Mapping):
        for key, value in token.items():
            yield from _pair(prefix + _checked(key, where), value, where)
    elif isinstance(token, _NESTED):
        for name in sorted(token, key=str) if isinstance(token, (set, frozenset)) else token:
            yield prefix + _checked(name, where), 1.0
    else:
        raise ModelError(
            f"{where} is {shown(token)} of type {type(token).__name__}; give a dict, a list of str or a str, "
            "or each sequence as one 2-d array"
        )


def _checked(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise ModelError(
            f"{where} has the attribute {shown(name)} of type {type(name).__name__}; attributes are named by str"
        )
    return str(name)


def _pair(key: str, value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield key + _SEPARATOR + value, 1.0
    elif isinstance(value, _NUMBERS):
        number = float(value)
        if not np.isfinite(number):
            raise ModelError(f"{where} has the value {number} for attribute {shown(key)}; values must be finite")
        yield key, number
    elif isinstance(value, (Mapping, *_NESTED)):
        yield from careful_pairs(value, where, key + _SEPARATOR)
    elif isinstance(value, np.ndarray) and value.ndim == 1:
        for i, entry in enumerate(value.tolist()):
            yield from _pair(f"{key}{_SEPARATOR}{i}", entry, where)
    else:
        raise ModelError(
            f"{where} has the value {shown(value)} of type {type(value).__name__} for attribute {shown(key)}; "
            "values are numbers, str, or a dict or list of further attributes"
        )


def shown(value: Any) -> str:
    """A value as it may be quoted in an error: never long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def is_matrix(sequence: Any) -> bool:
    """Whether a sequence is a 2-d array or a sparse matrix of numbers, tokens by attributes."""
    return hasattr(sequence, "tocsr") or (isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biuf")


def _listed(sequence: Any, number: int) -> Any:
    if isinstance(sequence, (list, tuple)):
        return sequence
    if isinstance(sequence, (str, bytes, Mapping)) or is_matrix(sequence):
        raise ModelError(
            f"sequence {number} is {shown(sequence)} of type {type(sequence).__name__}; "
            "a sequence is a list of tokens, and each token a dict, a list of str or a str"
        )
    try:
        return list(sequence)
    except TypeError:
        raise ModelError(
            f"sequence {number} is {shown(sequence)} of type {type(sequence).__name__}; a sequence is a list of tokens"
        ) from None


def chunks(sequences: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Some sequences at a time, with the number of the first of them; one pass, so a generator will do."""
    if not isinstance(sequences, Iterable):
        raise ModelError(f"X must be a list of sequences, got {sequences!r}")
    stream, first = iter(sequences), 0
    while part := list(islice(stream, SEQUENCES_AT_ONCE)):
        yield first, part
        first += len(part)


def lookup(names: dict[str, int], wanted: Sequence[str]) -> npt.NDArray[np.int32]:
    """Numbers of names; -1 for the unknown ones."""
    return np.fromiter(map(getitem, repeat(names), wanted), np.int32, len(wanted))
