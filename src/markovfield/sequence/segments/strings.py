"""What segments say from end to end, found in a list of known texts without making the text of every segment.

The code of a segment is a polynomial in the codes of its words, modulo 2^64, so that the codes of all segments of some
length follow from those that are shorter by one in a single pass over the tokens. Codes of words are cryptographic, so
two texts of a corpus share one about as often as a bit of memory flips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.sequence.text.token_features import short_shape

__all__ = ["KINDS", "SegmentTexts"]

Codes = npt.NDArray[np.uint64]
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


# What a segment's words are written as, by the letter that its texts start with; spaces separate words.
KINDS: dict[str, Callable[[str], str]] = {
    "w": lambda word: word.replace(" ", "_"),
    "s": lambda word: short_shape(word.replace(" ", "_")),
}


class SegmentTexts:
    """Known texts of segments, each with a number.

    Parameters
    ----------
    texts
        ``"w:Banco de España"`` for words, ``"s:Xx x Xx"`` for their shapes.

    Examples
    --------
    >>> known = SegmentTexts(["w:New York", "s:Xx"])
    >>> known.find(["in", "New", "York"], np.array([0, 3]), 2, "w").tolist()
    [[-1, -1], [-1, 0], [-1, -1]]
    >>> known.find(["in", "New", "York"], np.array([0, 3]), 2, "s").tolist()
    [[-1, -1], [1, -1], [1, -1]]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        codes = np.array([_code_of(text[:1], text[2:].split(" ")) for text in self.texts], np.uint64)
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    @classmethod
    def seen(cls, words: Sequence[str | None], starts: IntArray, lengths: IntArray, min_count: int) -> SegmentTexts:
        """The texts of some segments, of both kinds, that come ``min_count`` times at least."""
        counts: dict[str, int] = {}
        for kind, written in KINDS.items():
            forms = {word: written(word) for word in set(words) if word is not None}
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                inside = words[start : start + length]
                if None not in inside:
                    text = f"{kind}:{' '.join(forms[word] for word in inside)}"  # type: ignore[index]
                    counts[text] = counts.get(text, 0) + 1
        return cls(text for text, count in counts.items() if count >= min_count)

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, words: Sequence[str | None], offsets: IntArray, max_length: int, kind: str) -> IntArray:
        """``int64[n_tokens, max_length]``: the text that tokens t to t + d are, as entry [t, d]; -1 for none.

        ``offsets`` says where the tokens of each sentence begin. A token without a word is in no text.
        """
        n = len(words)
        codes, known = _token_codes(words, kind)
        ends = np.repeat(offsets[1:], np.diff(offsets))  # of the sentence of each token
        found = np.full((n, max_length), -1, np.int64)
        if not len(self):
            return found
        alive = np.flatnonzero(known)
        so_far = np.full(len(alive), _seed(kind), np.uint64)
        for d in range(max_length):
            at = alive + d
            stays = at < ends[alive]
            stays[stays] &= known[at[stays]]
            alive, so_far = alive[stays], so_far[stays]
            so_far = so_far * _FACTOR + codes[alive + d]
            place = np.minimum(np.searchsorted(self._codes, so_far), len(self._codes) - 1)
            right = self._codes[place] == so_far
            found[alive[right], d] = self._order[place[right]]
        return found


def _word_code(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _seed(kind: str) -> np.uint64:
    return np.uint64(_word_code(f"kind {kind}"))


def _code_of(kind: str, words: Sequence[str]) -> int:
    code = int(_seed(kind))
    for word in words:
        code = (code * int(_FACTOR) + _word_code(word)) % 2**64
    return code


def _token_codes(words: Sequence[str | None], kind: str) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """The code of every token's word, and whether it has one; each distinct word is coded once."""
    written = KINDS[kind]
    numbers = {word: _word_code(written(word)) for word in set(words) if word is not None}
    codes = np.fromiter((0 if word is None else numbers[word] for word in words), np.uint64, len(words))
    return codes, np.fromiter((word is not None for word in words), np.bool_, len(words))
