"""Connectionist temporal classification: labels for frames, without knowing which frames are whose."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.alignment.ctc_family import CTCPaths
from markovfield.structures.alignment.free_paths import FreePaths
from markovfield.structures.alignment.reading import collapsed, read_labels
from markovfield.structures.core.form import StructureForm, listed, place, score_array

__all__ = ["CTC"]


class CTC(StructureForm):
    """Paths of symbols, one for each frame, that read as given labels when runs are one and blanks are dropped.

    With log-probabilities as scores, ``log_partition`` is the log-likelihood of the labels: minus the loss of Graves et
    al. (2006). A structure is a list of symbols, one for each frame.

    Parameters
    ----------
    log_probs
        ``float[frames, symbols]``: of each symbol at each frame; any scores will do.
    labels
        ``int[L]``: symbols without blanks. L labels need L frames at least, and one more for each repetition. None:
        paths that read as anything, in which every frame chooses for itself; `read` tells which labels are the best.
    blank
        The symbol that says nothing.

    Examples
    --------
    >>> import markovfield as mf
    >>> paths = mf.structures.CTC(np.log(np.full((3, 3), 1 / 3)), [1, 2])
    >>> paths.n_structures()  # 112, 122, 012, 102, 120
    5.0
    >>> round(float(np.exp(mf.log_partition(paths).log_partition)), 4)
    0.1852
    """

    parts: ClassVar[tuple[str, ...]] = ("symbols",)
    family: CTCPaths | FreePaths

    def __init__(self, log_probs: npt.ArrayLike, labels: npt.ArrayLike | None, *, blank: int = 0) -> None:
        scores = score_array(log_probs, "scores of symbols", 2)
        frames, symbols = scores.shape
        if not frames or not symbols:
            raise ModelError(f"CTC needs a frame and a symbol at least, got shape {scores.shape}")
        if not whole_number(blank, "blank", 0) < symbols:
            raise ModelError(f"blank must be a symbol below {symbols}, got {blank}")
        self.pool = np.ascontiguousarray(scores).ravel()
        if labels is None:
            self.family = FreePaths.of(np.array([frames]), symbols, blank)
            return
        given = np.asarray(labels)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ModelError(f"labels must be a list of symbols as whole numbers, got {labels!r}")
        wrong = (given < 0) | (given >= symbols) | (given == blank)
        if wrong.any():
            raise ModelError(f"labels must be symbols from 0 to {symbols - 1} but not blank, got {given[wrong][0]}")
        needed = len(given) + int(np.sum(given[1:] == given[:-1]))
        if needed > frames:
            raise ModelError(f"{len(given)} labels need {needed} frames at least, got {frames}")
        self.family = CTCPaths.of(np.array([frames]), symbols, [given], blank)

    @property
    def labels(self) -> IntArray | None:
        """What every path reads as; None where that is open."""
        return self.family.states[1::2].copy() if isinstance(self.family, CTCPaths) else None

    def __repr__(self) -> str:
        what = "any labels" if self.labels is None else f"{len(self.labels)} labels"
        return f"CTC of {int(self.family.frames[0])} frames and {what}"

    def read(self, beam: int = 16) -> list[tuple[list[int], float]]:
        """The best labels whatever the path, with log-probabilities, best first; see `read_labels`."""
        return read_labels(self.pool.reshape(-1, self.family.n_symbols), blank=self.family.blank, beam=beam)

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        return {"symbols": values.reshape(-1, self.family.n_symbols).copy()}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        frames, symbols = int(self.family.frames[0]), self.family.n_symbols
        where = place(index)
        if not (len(where) == 2 and 0 <= where[0] < frames and 0 <= where[1] < symbols):
            raise ModelError(
                f"a part is (frame, symbol) with frames below {frames} and symbols below {symbols}, got {index}"
            )
        return where[0] * symbols + where[1]

    def structure(self, cells: IntArray) -> list[int]:
        return [int(c) % self.family.n_symbols for c in np.sort(cells)]

    def cells(self, structure: Any) -> IntArray:
        path = [symbol for (symbol,) in listed(structure, (1,), "symbols, one for each frame,")]
        found = np.array([self.cell("symbols", (t, symbol)) for t, symbol in enumerate(path)], np.int64)
        frames, read = int(self.family.frames[0]), collapsed(path, self.family.blank)
        if len(path) != frames:
            raise ModelError(f"a path has {frames} symbols, one for each frame, got {len(path)}")
        if self.labels is not None and read != self.labels.tolist():
            raise ModelError(f"a path reads as {self.labels.tolist()}, got {path}, which reads as {read}")
        return found
