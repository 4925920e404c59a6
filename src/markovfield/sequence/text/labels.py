"""Labels of sequences: numbers for them, chunks marked by prefixes, and which label may follow which.

A *scheme* marks chunks by a prefix and a type, such as ``B-NP``; ``O`` is outside of all chunks.

========  ==========================================================================
scheme    prefixes
========  ==========================================================================
iob1      I inside, B only where a chunk follows one of the same type at once
iob2      B first token, I every other (also called BIO)
iobes     B first, I between, E last, S the only one (also called BIOES)
bilou     the same with L for E and U for S
========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import BoolArray
from markovfield.exceptions import ModelError

__all__ = [
    "LabelEncoder",
    "allowed_transitions",
    "chunk_borders",
    "iob1_to_iob2",
    "iob_to_iobes",
    "iobes_to_iob",
    "mark_chunks",
    "spans",
    "split_label",
]

Span = tuple[str, int, int]

_ALIASES = {"bio": "iob2", "iob": "iob2", "bioes": "iobes"}
_LETTERS = {"iob1": "BIO", "iob2": "BIO", "iobes": "BIOES", "bilou": "BILOU"}
# BILOU's letters as those of IOBES.
_SAME = {"L": "E", "U": "S"}
_OUTSIDE = ("O", "")


class LabelEncoder(BaseEstimator):
    """Numbers for the labels of sequences, in sorted order.

    Attributes
    ----------
    classes_ : list
        The labels; label k has number k.

    Examples
    --------
    >>> encoder = LabelEncoder().fit([["B-NP", "O"], ["O"]])
    >>> encoder.classes_
    ['B-NP', 'O']
    >>> encoder.transform([["O", "B-NP"], ["O"]])
    array([1, 0, 1], dtype=int32)
    >>> encoder.inverse_transform([1, 0, 1], [0, 2, 3])
    [['O', 'B-NP'], ['O']]
    """

    def fit(self, y: Iterable[Iterable[Any]]) -> LabelEncoder:
        """Learn the labels; None stands for one that is not known and is no label itself."""
        seen = set(chain.from_iterable(_listed(y)))
        seen.discard(None)
        try:
            self.classes_ = sorted(seen)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in seen}))
            raise ModelError(f"labels must be of types that can be sorted together, got {kinds}") from None
        self._numbers = {label: k for k, label in enumerate(self.classes_)}
        return self

    def transform(
        self,
        y: Iterable[Iterable[Any]],
        *,
        lengths: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
        missing: bool = False,
    ) -> npt.NDArray[np.int32]:
        """The numbers of all labels, one sequence after the other, ``int32[n_tokens]``.

        Parameters
        ----------
        y
            A list of labels for each sequence.
        lengths
            How many tokens each sequence has, to be checked.
        missing
            Whether None may stand for a label that is not known; its number is -1.
        """
        check_is_fitted(self, "classes_")
        listed = _listed(y)
        if lengths is not None:
            _check_lengths(listed, np.asarray(lengths).tolist())
        numbers = {None: -1, **self._numbers} if missing else self._numbers
        flat = chain.from_iterable(listed)
        try:
            return np.fromiter(map(numbers.__getitem__, flat), np.int32, sum(map(len, listed)))
        except (KeyError, TypeError):
            s, t, label = next(
                (s, t, label)
                for s, sequence in enumerate(listed)
                for t, label in enumerate(sequence)
                if not _known(label, numbers)
            )
            raise ModelError(
                f"token {t} of sequence {s} has the label {label!r}, none of the {len(self.classes_)} that are known"
            ) from None

    def fit_transform(self, y: Iterable[Iterable[Any]], **settings: Any) -> npt.NDArray[np.int32]:
        """Learn the labels, and the numbers of all of them."""
        listed = _listed(y)
        return self.fit(listed).transform(listed, **settings)

    def inverse_transform(
        self, numbers: Sequence[int] | npt.NDArray[Any], sequence_offsets: Sequence[int] | npt.NDArray[Any]
    ) -> list[list[Any]]:
        """The labels of numbers, as a list for each sequence; -1 gives None."""
        check_is_fitted(self, "classes_")
        names = [*self.classes_, None]
        flat = list(map(names.__getitem__, np.asarray(numbers).tolist()))
        return [flat[a:b] for a, b in pairwise(np.asarray(sequence_offsets).tolist())]


def _listed(y: Iterable[Iterable[Any]]) -> list[Sequence[Any]]:
    """Labels as a list for each sequence, of Python's own numbers where they came in arrays."""
    listed: list[Sequence[Any]] = []
    for s, sequence in enumerate(y):
        if isinstance(sequence, (list, tuple)):
            listed.append(sequence)
        elif isinstance(sequence, np.ndarray) and sequence.ndim == 1:
            listed.append(sequence.tolist())
        elif isinstance(sequence, (str, bytes)) or not isinstance(sequence, Iterable):
            raise ModelError(f"the labels of sequence {s} must be a list, one for each token, got {sequence!r}")
        else:
            listed.append(list(sequence))
    return listed


def _known(label: Any, numbers: dict[Any, int]) -> bool:
    try:
        return label in numbers
    except TypeError:
        return False


def _check_lengths(listed: list[Sequence[Any]], lengths: list[int]) -> None:
    if len(listed) != len(lengths):
        raise ModelError(f"there are {len(lengths)} sequences and labels for {len(listed)}")
    if list(map(len, listed)) != lengths:
        s = next(i for i, (sequence, n) in enumerate(zip(listed, lengths, strict=True)) if len(sequence) != n)
        raise ModelError(f"sequence {s} has {lengths[s]} tokens and {len(listed[s])} labels")


def split_label(label: str) -> tuple[str, str]:
    """Prefix and type of a label, cut at the first hyphen; without one, the type is empty."""
    prefix, _, kind = label.partition("-")
    return prefix, kind


def mark_chunks(labels: Iterable[Any]) -> bool:
    """Whether labels mark chunks: all are ``O`` or a prefix of some scheme with a type, and not all are ``O``.

    Examples
    --------
    >>> mark_chunks(["B-PER", "I-PER", "O"]), mark_chunks(["B-PER", "NOUN"]), mark_chunks(["O"])
    (True, False, False)
    """
    prefixes = {letter for letters in _LETTERS.values() for letter in letters if letter != "O"}
    marked = [label for label in labels if label != "O"]
    return bool(marked) and all(
        isinstance(label, str) and len(label) > 2 and label[1] == "-" and label[0] in prefixes for label in marked
    )


def chunk_borders(before: str, after: str) -> tuple[bool, bool]:
    """Whether a chunk ends, and whether one starts, between two labels that follow each other.

    These are the rules of the CoNLL shared tasks' scorer, which read IOB1, IOB2, IOE1 and IOE2 alike (Tjong Kim Sang
    and Veenstra 1999), and never fail: what no scheme allows is read in the most natural way. For IOBES there are two
    more, without which neighbouring chunks of one type would melt into one: S stands alone, and B after E starts.
    """
    (p, kind), (q, next_kind) = split_label(before), split_label(after)
    inside, next_inside = p not in ("O", "."), q not in ("O", ".")
    alone = ("S", "[", "]")
    border = p + q in ("BB", "IB", "EE", "EI", "EB")
    ends = border or p in alone or (q in alone and inside) or (p in ("B", "I", "E") and q == "O")
    starts = border or q in alone or (p in alone and next_inside) or (p == "O" and q in ("B", "I", "E"))
    return (
        ends or (inside and kind != next_kind),
        starts or (next_inside and kind != next_kind),
    )


def spans(labels: Sequence[str], scheme: str | None = None) -> list[Span]:
    """The chunks of one sequence as ``(type, first token, token after the last)``.

    Without a scheme, labels are read by the rules of `chunk_borders`, which take anything. With one, a label that the
    scheme does not allow in its place is a `ModelError`.

    Examples
    --------
    >>> spans(["B-NP", "I-NP", "O", "I-VP"])
    [('NP', 0, 2), ('VP', 3, 4)]
    """
    if scheme is not None:
        _check_scheme(labels, scheme)
        if _named(scheme) == "bilou":
            labels = [_SAME.get(label[:1], label[:1]) + label[1:] for label in labels]
    found: list[Span] = []
    start: int | None = None
    before = "O"
    for t, label in enumerate([*labels, "O"]):
        ends, starts = chunk_borders(before, label)
        if ends and start is not None:
            found.append((split_label(before)[1], start, t))
            start = None
        if starts:
            start = t
        before = label
    return found


def iob1_to_iob2(labels: Sequence[str]) -> list[str]:
    """Labels of one sequence in IOB2, from IOB1 or anything else that `spans` reads.

    Examples
    --------
    >>> iob1_to_iob2(["I-NP", "I-NP", "B-NP", "O", "I-VP"])
    ['B-NP', 'I-NP', 'B-NP', 'O', 'B-VP']
    """
    return _written(labels, "B", "I", "I", "B")


def iob_to_iobes(labels: Sequence[str]) -> list[str]:
    """Labels of one sequence in IOBES, from IOB1, IOB2 or anything else that `spans` reads.

    Examples
    --------
    >>> iob_to_iobes(["B-NP", "I-NP", "I-NP", "B-NP", "O"])
    ['B-NP', 'I-NP', 'E-NP', 'S-NP', 'O']
    """
    return _written(labels, "B", "I", "E", "S")


def iobes_to_iob(labels: Sequence[str], *, scheme: str = "iob2") -> list[str]:
    """Labels of one sequence in IOB2, or IOB1 where asked, from IOBES or anything else that `spans` reads.

    Examples
    --------
    >>> iobes_to_iob(["B-NP", "E-NP", "S-NP", "O"])
    ['B-NP', 'I-NP', 'B-NP', 'O']
    >>> iobes_to_iob(["B-NP", "E-NP", "S-NP", "O"], scheme="iob1")
    ['I-NP', 'I-NP', 'B-NP', 'O']
    """
    if _named(scheme) == "iob2":
        return _written(labels, "B", "I", "I", "B")
    if _named(scheme) != "iob1":
        raise ModelError(f"iobes_to_iob: scheme must be 'iob1' or 'iob2', got {scheme!r}")
    result = _written(labels, "I", "I", "I", "I")
    found = spans(labels)
    for (kind, _, end), (next_kind, start, _) in pairwise(found):
        if end == start and kind == next_kind:
            result[start] = "B" + result[start][1:]
    return result


def _written(labels: Sequence[str], first: str, middle: str, last: str, only: str) -> list[str]:
    result = ["O"] * len(labels)
    for kind, start, end in spans(labels):
        tail = f"-{kind}" if kind else ""
        if end - start == 1:
            result[start] = only + tail
            continue
        result[start:end] = [first + tail, *[middle + tail] * (end - start - 2), last + tail]
    return result


def allowed_transitions(labels: Sequence[str], scheme: str) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Which labels may follow each other, come first and come last in a scheme.

    Returns
    -------
    allowed : bool[K, K]
        Entry [i, j]: label j may follow label i.
    first, last : bool[K]
        Whether a sequence may start, and end, with each label.

    Examples
    --------
    >>> allowed, first, last = allowed_transitions(["B-NP", "I-NP", "O"], "iob2")
    >>> allowed
    array([[ True,  True,  True],
           [ True,  True,  True],
           [ True, False,  True]])
    >>> first
    array([ True, False,  True])
    """
    name = _named(scheme)
    pairs = [_prefix_and_type(label, name) for label in labels]
    allowed = np.array([[_may_follow(a, b, name) for b in pairs] for a in pairs], np.bool_)
    first = np.array([_may_follow(_OUTSIDE, b, name) for b in pairs], np.bool_)
    last = np.array([_may_follow(a, _OUTSIDE, name) for a in pairs], np.bool_)
    return allowed.reshape(len(pairs), len(pairs)), first, last


def _named(scheme: str) -> str:
    name = scheme.lower() if isinstance(scheme, str) else scheme
    name = _ALIASES.get(name, name)
    if name not in _LETTERS:
        raise ModelError(f"scheme must be one of {', '.join(map(repr, _LETTERS))}, got {scheme!r}")
    return name


def _prefix_and_type(label: Any, name: str) -> tuple[str, str]:
    prefix, kind = split_label(label) if isinstance(label, str) else ("", "")
    if prefix not in _LETTERS[name] or len(prefix) != 1 or (prefix == "O" and label != "O"):
        letters = ", ".join(_LETTERS[name])
        raise ModelError(f"the label {label!r} is none of scheme {name!r}, whose prefixes are {letters}")
    return _SAME.get(prefix, prefix), kind


def _may_follow(a: tuple[str, str], b: tuple[str, str], name: str) -> bool:
    (p, kind), (q, next_kind) = a, b
    continues = kind == next_kind
    if name == "iob1":
        return q != "B" or (p in "BI" and continues)
    if name == "iob2":
        return q != "I" or (p in "BI" and continues)
    # Inside a chunk, only more of it; outside, only what starts one.
    return q in "IE" and continues if p in "BI" else q in "OBS"


def _check_scheme(labels: Sequence[str], scheme: str) -> None:
    name = _named(scheme)
    pairs = [_prefix_and_type(label, name) for label in labels]
    for t, (a, b) in enumerate(zip([_OUTSIDE, *pairs], [*pairs, _OUTSIDE], strict=True)):
        if not _may_follow(a, b, name):
            label = labels[t] if t < len(labels) else "the end"
            before = labels[t - 1] if t else "the start"
            raise ModelError(f"in scheme {name!r}, {label!r} may not follow {before!r} as it does at token {t}")
