"""Handwritten words, letter by letter: those of Kassel and Taskar from the reference data."""

from __future__ import annotations

import string
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, short_repr
from markovfield.datasets.reference import reference_arrays
from markovfield.exceptions import FormatError

__all__ = ["HandwrittenWords", "handwritten_words"]

HEIGHT, WIDTH = 16, 8


class HandwrittenWords(NamedTuple):
    """Words without their first letters, which were capitals.

    Attributes
    ----------
    images
        ``uint8[letters, 16, 8]`` of 0 and 1, for each word.
    labels
        ``int64[letters]``, from 0 for a to 25 for z, for each word.
    words
        The labels as text.
    folds
        ``int64[words]``, from 0 to 9. Taskar et al. (2003) trained on one fold and tested on the other nine.
    """

    images: list[npt.NDArray[np.uint8]]
    labels: list[IntArray]
    words: list[str]
    folds: IntArray

    def __repr__(self) -> str:
        return short_repr(self)


def handwritten_words() -> HandwrittenWords:
    """Read the OCR letters of Kassel (1995) and Taskar et al. (2003): 6,877 words of 52,152 letters in ten folds.

    The file is ``letters/letters.npz`` of the reference data.

    Examples
    --------
    >>> try:
    ...     data = handwritten_words()
    ...     print(data.words[0], data.images[0].shape)
    ... except FileNotFoundError:
    ...     print("ommanding (9, 16, 8)")
    ommanding (9, 16, 8)
    """
    file = ("letters", "letters.npz")
    names = ("pixels_packed", "labels", "word_offsets", "folds")
    packed, letters, offsets, folds = reference_arrays(
        *file, names=names, instead="words drawn by letters() and noisy_letters()"
    )
    n, at = len(letters), offsets.astype(np.int64)
    rises = len(at) == len(folds) + 1 and at[0] == 0 and at[-1] == n and bool((np.diff(at) > 0).all())
    if packed.shape != (n, HEIGHT * WIDTH // 8) or not rises or (n and letters.max() >= 26):
        raise FormatError(f"{'/'.join(file)}: the numbers of letters, words and folds do not agree")
    images = np.unpackbits(packed.astype(np.uint8), axis=1).reshape(n, HEIGHT, WIDTH)
    text = "".join(np.array(list(string.ascii_lowercase))[letters.astype(np.int64)])
    return HandwrittenWords(
        np.split(images, at[1:-1]),
        np.split(letters.astype(np.int64), at[1:-1]),
        [text[start:end] for start, end in pairwise(at.tolist())],
        folds.astype(np.int64),
    )
