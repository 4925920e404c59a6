"""Binary trees of labelled spans over one sentence."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.core.form import StructureForm, listed, place, score_array
from markovfield.structures.span_tree.family import SpanTrees

__all__ = ["SpanTree"]


class SpanTree(StructureForm):
    """Binary trees in which every span has a label, and a score.

    A structure is a list of spans ``(first, last, label)``, the whole sentence first, then the left part of each span
    before the right one. A sentence of n words has ``2 n - 1`` of them.

    Parameters
    ----------
    scores
        ``float[n, n, labels]`` (or ``[n, n]`` for one label): ``scores[i, j, l]`` of words i to j, both included, with
        label l. What is below the diagonal is not read. -inf rules a span out.

    Examples
    --------
    >>> import markovfield as mf
    >>> scores = np.zeros((4, 4))
    >>> scores[1, 2] = 1.0
    >>> trees = mf.structures.SpanTree(scores)
    >>> trees.n_structures()
    5.0
    >>> mf.marginals(trees)["spans"][1, 2, 0].round(3)
    np.float64(0.644)
    >>> mf.decode(trees).structure[:3]
    [(0, 3, 0), (0, 0, 0), (1, 3, 0)]
    """

    parts: ClassVar[tuple[str, ...]] = ("spans",)
    family: SpanTrees

    def __init__(self, scores: npt.ArrayLike) -> None:
        given = np.asarray(scores)
        array = score_array(given[:, :, None] if given.ndim == 2 else given, "scores of spans", 3)
        if array.shape[0] != array.shape[1]:
            raise ModelError(f"scores of spans must be square, words by words, got shape {given.shape}")
        if not array.size:
            raise ModelError(f"scores of spans need a word and a label at least, got shape {given.shape}")
        self.family = SpanTrees.of(np.array([len(array)]), array.shape[2])
        self.pool = np.ascontiguousarray(array[np.triu_indices(len(array))]).ravel()

    def __repr__(self) -> str:
        return f"SpanTree of {int(self.family.lengths[0])} words, {self.family.n_labels} labels"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        n, labels = int(self.family.lengths[0]), self.family.n_labels
        found = np.zeros((n, n, labels))
        found[np.triu_indices(n)] = values.reshape(-1, labels)
        return {"spans": found}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        n, labels = int(self.family.lengths[0]), self.family.n_labels
        span = place(index)
        if len(span) == 2 and labels == 1:
            span = (*span, 0)
        if not (len(span) == 3 and 0 <= span[0] <= span[1] < n and 0 <= span[2] < labels):
            raise ModelError(
                f"a span is (first, last, label) with 0 <= first <= last < {n} and a label below {labels}, got {index}"
            )
        return self.family.span_cell(0, span[0], span[1]) + span[2]

    def structure(self, cells: IntArray) -> list[tuple[int, int, int]]:
        spans = sorted(map(tuple, self.family.spans(0, cells).tolist()), key=lambda span: (span[0], -span[1]))
        return [(first, last, label) for first, last, label in spans]

    def cells(self, structure: Any) -> IntArray:
        spans = [(*span, 0)[:3] for span in listed(structure, (2, 3), "spans (first, last, label)")]
        n = int(self.family.lengths[0])
        found = np.array([self.cell("spans", span) for span in spans], np.int64)
        crossing = any(a < c <= b < d for a, b, _ in spans for c, d, _ in spans)
        if len({span[:2] for span in spans}) != 2 * n - 1 or len(spans) != 2 * n - 1 or crossing:
            raise ModelError(f"a binary tree of {n} words has {2 * n - 1} different spans that do not cross")
        return found
