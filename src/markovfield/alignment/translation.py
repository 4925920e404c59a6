"""Probabilities of target words given source words, for the pairs of words that stand opposite each other somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.alignment.sentences import EncodedPairs, Vocabulary
from markovfield.alignment.translation_kernel import count_pairs, fill_pairs, find_pairs, normalise_rows
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError
from markovfield.frames import Tabular
from markovfield.sequence.text.vectoriser import pack_strings, unpack_strings

__all__ = ["TranslationTable"]


@dataclass(frozen=True, eq=False, repr=False)
class TranslationTable(Tabular):
    """A sparse table ``t(target word | source word)``.

    Attributes
    ----------
    source, target
        The words of both sides.
    row_starts, columns
        ``int64[n + 1]`` and ``int32[pairs]``: the target words that stood opposite each source word, ascending.
    values
        ``float64[pairs]``: their probabilities.
    rest
        ``float64[n + 1]``: of a target word that never stood opposite; the last entry is for source words unknown.
    null_values
        ``float64[m + 1]``: of target words after none; the last entry is for those unknown.
    """

    source: Vocabulary
    target: Vocabulary
    row_starts: IntArray
    columns: npt.NDArray[np.int32]
    values: FloatArray
    rest: FloatArray
    null_values: FloatArray

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        n = len(self.values) if limit is None else min(limit, len(self.values))
        rows = np.searchsorted(self.row_starts, np.arange(n), side="right") - 1
        return {
            "source": [self.source.words[i] for i in rows],
            "target": [self.target.words[j] for j in self.columns[:n]],
            "probability": self.values[:n],
        }

    def __repr__(self) -> str:
        return f"TranslationTable({len(self.values)} pairs of {len(self.source)} and {len(self.target)} words)"

    @classmethod
    def over(
        cls, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]
    ) -> tuple[TranslationTable, EncodedPairs, IntArray]:
        """A uniform table over the words of sentence pairs; the pairs, encoded; sentences that have both words."""
        source, target = (Vocabulary.of(pair[side] for pair in pairs) for side in (0, 1))
        encoded = EncodedPairs.of(pairs, source, target)
        arrays = encoded.arrays
        order = np.argsort(arrays.sources, kind="stable")
        starts = offsets_of(np.bincount(arrays.sources, minlength=len(source)))
        sentence_of = np.repeat(np.arange(len(encoded)), encoded.source_lengths)
        n = len(target)
        size = count_pairs(tuple(arrays), order, starts, sentence_of, np.full(n, -1))
        row_starts, columns = np.empty(len(source) + 1, np.int64), np.empty(size, np.int32)
        together = np.zeros(size, np.int64)
        room = np.full(n, -1), np.empty(n, np.int64)
        fill_pairs(tuple(arrays), order, starts, sentence_of, *room, row_starts, columns, np.full(size, -1), together)
        share = 1.0 / (n + 1)
        uniform = np.full(size, share), np.full(len(source) + 1, share), np.full(n + 1, share)
        return cls(source, target, row_starts, columns, *uniform), encoded, together

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What kernels read."""
        return self.values, self.rest, self.null_values

    def encoded(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> EncodedPairs:
        """Other sentence pairs in flat arrays, with the cells of this table."""
        found: EncodedPairs = EncodedPairs.of(pairs, self.source, self.target)
        find_pairs(tuple(found.arrays), self.row_starts, self.columns)
        return found

    def updated(self, counts: FloatArray, null_counts: FloatArray, smoothing: float) -> TranslationTable:
        """The table that fits expected counts best (see `IBM1` for smoothing)."""
        values, rest = self.values.copy(), self.rest.copy()
        n = len(self.target) + 1
        normalise_rows(self.row_starts, counts, smoothing, n, values, rest)
        nulls = np.append(null_counts, 0.0) + smoothing
        rest[-1] = 1.0 / n
        null_values = nulls / nulls.sum() if nulls.sum() > 0.0 else self.null_values
        return replace(self, values=values, rest=rest, null_values=null_values)

    def log_prior(self, smoothing: float) -> float:
        """The log-density of the Dirichlet prior that smoothing stands for, up to a constant: what EM adds."""
        if not smoothing:
            return 0.0
        unseen = len(self.target) + 1 - np.diff(self.row_starts)
        total = np.log(self.values).sum() + unseen @ np.log(self.rest[:-1]) + np.log(self.null_values).sum()
        return smoothing * float(total)

    def with_values(self, values: FloatArray) -> TranslationTable:
        """The same pairs with other values, and none for pairs that were never seen."""
        return replace(self, values=values, rest=np.zeros_like(self.rest), null_values=np.zeros_like(self.null_values))

    def pruned(self, least: float) -> TranslationTable:
        """Without pairs of a probability below ``least``: these are as good as never seen."""
        kept = self.values >= least
        row_starts = offsets_of(kept)[self.row_starts]
        return replace(self, row_starts=row_starts, columns=self.columns[kept], values=self.values[kept])

    def translations(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The likeliest target words of a source word; none where it is not known."""
        k = self.source.number(word)
        if k < 0:
            return []
        own = slice(int(self.row_starts[k]), int(self.row_starts[k + 1]))
        order = np.argsort(-self.values[own], kind="stable")[:n]
        return [(self.target.words[self.columns[own][at]], float(self.values[own][at])) for at in order.tolist()]

    def described(self, prefix: str = "") -> dict[str, Any]:
        """The table as vectors of an archive."""
        found: dict[str, Any] = {
            "row_starts": self.row_starts, "columns": self.columns, "values": self.values, "rest": self.rest,
            "null_values": self.null_values,
        }  # fmt: skip
        for side, words in (("source", self.source), ("target", self.target)):
            found[f"{side}_text"], found[f"{side}_offsets"] = pack_strings(words.words)
        return {f"{prefix}{name}": array for name, array in found.items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, Any], prefix: str = "") -> TranslationTable:
        """The table that an archive holds: kernels index memory with its numbers, so all are checked."""
        names = ["row_starts", "columns", "values", "rest", "null_values", "source_text", "source_offsets"]
        names += ["target_text", "target_offsets"]
        own = {name: arrays.get(f"{prefix}{name}") for name in names}
        if any(array is None for array in own.values()):
            raise FormatError("a table of translations is not complete")
        source = Vocabulary(unpack_strings(own["source_text"], own["source_offsets"]))  # type: ignore[arg-type]
        target = Vocabulary(unpack_strings(own["target_text"], own["target_offsets"]))  # type: ignore[arg-type]
        rows, columns = np.asarray(own["row_starts"]), np.asarray(own["columns"])
        floats = [np.asarray(own[name]) for name in ("values", "rest", "null_values")]
        fits = rows.dtype == np.int64 and columns.dtype == np.int32 and all(f.dtype == np.float64 for f in floats)
        fits = fits and len(rows) == len(source) + 1 and len(columns) == len(floats[0])
        fits = fits and len(floats[1]) == len(source) + 1 and len(floats[2]) == len(target) + 1
        fits = fits and rows[0] == 0 and rows[-1] == len(columns) and not (np.diff(rows) < 0).any()
        fits = fits and (not len(columns) or (columns.min() >= 0 and columns.max() < len(target)))
        if not fits or not all(np.isfinite(f).all() and (f >= 0).all() for f in floats):
            raise FormatError("a table of translations does not fit together")
        return cls(source, target, rows, columns, *floats)
