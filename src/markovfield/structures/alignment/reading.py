"""What paths of CTC read as, and the labels that all their paths together make the most probable."""

from __future__ import annotations

from math import exp, log1p
from typing import Any

import numpy as np

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray

__all__ = ["collapsed", "read_labels"]


def collapsed(path: Any, blank: int = 0) -> list[int]:
    """What a path of symbols reads as: runs are one, blanks are dropped.

    Examples
    --------
    >>> collapsed([0, 1, 1, 0, 1, 2])
    [1, 1, 2]
    """
    symbols = np.asarray(path, np.int64)
    new = np.diff(symbols, prepend=-1) != 0
    return [int(symbol) for symbol in symbols[new & (symbols != blank)]]


def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)); numpy's takes ten times as long for two numbers."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + log1p(exp(low - high))


def read_labels(scores: FloatArray, *, blank: int = 0, beam: int = 16) -> list[tuple[list[int], float]]:
    """Labels and the log of the sum over the paths that read as them and were kept, best first (prefix beam search).

    Frame after frame the ``beam`` best beginnings of labels go on, each with the sums over its paths that end with a
    blank and that end with its last label (Graves 2012; Hannun et al. 2014). With a beam of 1 it differs from the best
    path where several paths read the same. Sums are lower bounds, and exact where the beam holds all beginnings; the
    search is not proven to find the best labels otherwise.

    Parameters
    ----------
    scores
        ``float64[frames, symbols]``; log-probabilities where sums should be.

    Examples
    --------
    The best path reads as nothing, but more paths read as one label:

    >>> read_labels(np.log([[0.6, 0.4], [0.6, 0.4]]))[0][0]
    [1]
    """
    size = whole_number(beam, "beam", 1)
    kept: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, -np.inf)}
    for frame in scores.tolist():
        found: dict[tuple[int, ...], list[float]] = {}

        def add(labels: tuple[int, ...], which: int, score: float, found: dict[Any, list[float]] = found) -> None:
            own = found.setdefault(labels, [-np.inf, -np.inf])
            own[which] = _log_add(own[which], score)

        for labels, (ends_blank, ends_label) in kept.items():
            total = _log_add(ends_blank, ends_label)
            for symbol, score in enumerate(frame):
                if score == -np.inf:
                    continue
                if symbol == blank:
                    add(labels, 0, total + score)
                elif labels and symbol == labels[-1]:
                    add(labels, 1, ends_label + score)
                    add((*labels, symbol), 1, ends_blank + score)
                else:
                    add((*labels, symbol), 1, total + score)
        best = sorted(found.items(), key=lambda one: -_log_add(*one[1]))[:size]
        kept = {labels: (own[0], own[1]) for labels, own in best}
    ranked = ((list(labels), _log_add(*own)) for labels, own in kept.items())
    return sorted((one for one in ranked if one[1] > -np.inf), key=lambda one: -one[1])
