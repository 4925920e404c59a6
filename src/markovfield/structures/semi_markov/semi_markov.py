"""One sequence with scores of its labelled segments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.core.form import StructureForm, listed, place, score_array
from markovfield.structures.semi_markov.family import Segmentations

__all__ = ["SemiMarkov"]

Segment = tuple[int, int, int]


class SemiMarkov(StructureForm):
    """Segmentations of a sequence, with a label on each segment (Sarawagi and Cohen 2004).

    A structure is a list of segments ``(start, stop, label)`` that follow each other from 0 to the end of the sequence,
    ``stop`` being the next one's start. Its score is the sum of the scores of its segments, of the transitions between
    neighbours, of its first and of its last label. Marginals have ``"segments"``, the probability of each segment,
    indexed as ``segment_scores``, and expected counts of ``"transitions"``, ``"start"`` and ``"end"``. Evidence
    requires or forbids segments, ``{"segments": {(start, length - 1, label): True}}``, and the first and the last label
    (``"start"``, ``"end"``); transitions it can forbid.

    Parameters
    ----------
    segment_scores
        ``float[n, max_length, n_labels]``: entry [i, d, k] is the score of a segment of label k at the positions i to
        i + d, both included; those past the end are not looked at, -inf rules a segment out.
    transitions
        ``float[n_labels, n_labels]``: entry [j, k] is the score of a segment of label k right after one of label j.
        None is 0.
    start, end
        ``float[n_labels]``: scores of the first and of the last segment's label. None is 0.

    Notes
    -----
    log Z with marginals, the best and a draw take ``n (max_length n_labels + n_labels^2)`` steps.

    Examples
    --------
    Two positions with one label: two segments, or one that is worth twice as much as the two together.

    >>> import math
    >>> import markovfield as mf
    >>> form = mf.structures.SemiMarkov([[[0.0], [math.log(2)]], [[0.0], [0.0]]])
    >>> float(np.exp(mf.log_partition(form).log_partition).round(9))
    3.0
    >>> mf.decode(form).structure
    [(0, 2, 0)]
    >>> mf.marginals(form)["segments"][:, :, 0].round(3).tolist()
    [[0.333, 0.667], [0.333, 0.0]]
    """

    parts: ClassVar[tuple[str, ...]] = ("segments", "transitions", "start", "end")
    family: Segmentations

    def __init__(
        self,
        segment_scores: npt.ArrayLike,
        transitions: npt.ArrayLike | None = None,
        *,
        start: npt.ArrayLike | None = None,
        end: npt.ArrayLike | None = None,
    ) -> None:
        segments = score_array(segment_scores, "segment_scores", 3)
        n, longest, k = segments.shape
        if not segments.size:
            raise ModelError(f"segment_scores need a position, a length and a label at least, got {segments.shape}")
        shared = [
            _shared(transitions, "transitions", (k, k)),
            _shared(start, "start", (k,)),
            _shared(end, "end", (k,)),
        ]
        self.family = Segmentations.of([n], longest, k)
        self.pool = np.concatenate([*shared, segments.ravel()])

    @property
    def _shape(self) -> tuple[int, int, int]:
        return int(self.family.lengths[0]), self.family.max_length, self.family.n_labels

    def __repr__(self) -> str:
        n, longest, k = self._shape
        return f"SemiMarkov of {n} positions, {k} labels, segments of at most {longest} positions"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        n, longest, k = self._shape
        moves, first, last, own = np.split(values, [k * k, k * (k + 1), k * (k + 2)])
        past = np.arange(n)[:, None] + np.arange(longest) >= n
        segments = np.where(past[:, :, None], 0.0, own.reshape(self._shape))
        return {"segments": segments, "transitions": moves.reshape(k, k), "start": first, "end": last}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        n, _, k = self._shape
        shape = {"segments": self._shape, "transitions": (k, k)}.get(part, (k,))
        where = place(index)
        if len(where) != len(shape) or any(not 0 <= i < m for i, m in zip(where, shape, strict=True)):
            raise ModelError(f"{part} of SemiMarkov are indexed by whole numbers below {shape}, got {index}")
        if part == "segments" and where[0] + where[1] >= n:
            raise ModelError(f"segment {index} goes past the end of the sequence of {n} positions")
        base = {"segments": k * (k + 2), "transitions": 0, "start": k * k, "end": k * (k + 1)}[part]
        return base + int(np.ravel_multi_index(where, shape))

    def structure(self, cells: IntArray) -> list[Segment]:
        first = int(self.family.cell_offsets[0])
        starts, lengths, labels = np.unravel_index(np.sort(cells[cells >= first]) - first, self._shape)
        return list(zip(starts.tolist(), (starts + lengths + 1).tolist(), labels.tolist(), strict=True))

    def cells(self, structure: Iterable[Segment]) -> IntArray:
        n, longest, _ = self._shape
        found, position, before = [], 0, -1
        for segment in listed(structure, (3,), "segments (start, stop, label)"):
            if segment[0] != position or not position < segment[1] <= position + longest:
                raise ModelError(
                    f"a segment (start, stop, label) that starts at {position} and has at most {longest} positions was "
                    f"expected, got {segment!r}"
                )
            _, stop, label = segment
            found.append(self.cell("segments", (position, stop - position - 1, label)))
            found.append(self.cell("start", (label,)) if before < 0 else self.cell("transitions", (before, label)))
            position, before = stop, label
        if position != n:
            raise ModelError(f"segments end at {position}, the sequence has {n} positions")
        return np.array([*found, self.cell("end", (before,))], np.int64)


def _shared(scores: Any, what: str, shape: tuple[int, ...]) -> FloatArray:
    if scores is None:
        return np.zeros(int(np.prod(shape)))
    found = score_array(scores, what, len(shape))
    if found.shape != shape:
        raise ModelError(f"{what} must have shape {shape}, as labels of segment_scores say, got {found.shape}")
    return found.ravel()
