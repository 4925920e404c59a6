"""What trees of arcs share, crossing or not: cells by head, modifier and label; evidence; labels summed first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Family, Parts, Sums, in_shards
from markovfield.structures.core.form import StructureForm, listed, place, score_array

__all__ = ["ArcForm", "ArcTrees"]

# Kernels take less than a nanosecond for an operation: shards of about 0.2 ms.
SHARD = 5e5


@dataclass(frozen=True, eq=False)
class ArcTrees(Family):
    """Dependency trees over sentences of some lengths.

    Cells of a sentence of n words are ``[n + 1, n + 1, labels]``: head (0 is the root), modifier, label. Those into the
    root and from a word to itself are no arcs: what stands in the pool there is not read, and their counts are zero.
    """

    lengths: IntArray
    n_labels: int
    single_root: bool

    @classmethod
    def of(cls, lengths: npt.ArrayLike, n_labels: int = 1, *, single_root: bool = True) -> Self:
        """Sentences of some lengths; one without words has one tree, the empty one."""
        sizes = np.array(lengths, np.int64)
        return cls(offsets_of((sizes + 1) ** 2 * n_labels), sizes, n_labels, single_root)

    def work(self) -> FloatArray:
        n = self.lengths.astype(np.float64)
        return n**3 + n**2 * self.n_labels

    @abstractmethod
    def _sums(self, arcs: FloatArray, log_z: FloatArray, counts: FloatArray, running: Running) -> None:
        """log Z and marginals of arcs, from scores of arcs without labels."""

    @abstractmethod
    def _heads(self, arcs: FloatArray, size: int, best: bool, rng: Any, running: Running) -> IntArray:
        """Heads of all words in ``size`` trees of each instance, best or drawn, from scores of arcs; -1: none."""

    def _arc_offsets(self) -> IntArray:
        return self.cell_offsets // self.n_labels

    def _run(self, kernel: Callable[..., Any], arcs: FloatArray, words: tuple[Any, ...], running: Running) -> None:
        offsets = self._arc_offsets()
        if self.n_instances == 1:
            running.check()
            kernel(arcs, offsets, self.lengths, 0, 1, self.single_root, *words)
            return

        def task(shard: int, first: int, last: int) -> int:
            kernel(arcs, offsets, self.lengths, first, last, self.single_root, *words)
            return 0

        in_shards(self.work(), task, running, SHARD)

    def _without_labels(self, pool: FloatArray) -> FloatArray:
        """log of the sum of exp over labels."""
        given = np.ascontiguousarray(pool, np.float64)
        if self.n_labels == 1:
            return given if given.flags.writeable else given.copy()  # kernels are compiled for arrays that are
        table = given.reshape(-1, self.n_labels)
        top = table.max(axis=1)
        shift = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            return np.asarray(shift + np.log(np.exp(table - shift[:, None]) @ np.ones(self.n_labels)))

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        arcs = self._without_labels(pool)
        log_z = np.zeros(self.n_instances)
        found = np.zeros(len(arcs) if counts else 0)
        self._sums(arcs, log_z, found, running)
        if not counts:
            return Sums(log_z)
        if weights is not None:
            found *= np.repeat(np.asarray(weights, np.float64), (self.lengths + 1) ** 2)
        if self.n_labels > 1:
            shift = np.where(np.isneginf(arcs), 0.0, arcs)[:, None]
            # What is no arc may have any score.
            share = np.exp(np.minimum(np.reshape(pool, (-1, self.n_labels)) - shift, 0.0))
            found = (found[:, None] * share).ravel()
        return Sums(log_z, found)

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        table = np.reshape(pool, (-1, self.n_labels))
        best = table.max(axis=1) if self.n_labels > 1 else self._without_labels(pool)
        heads = self._heads(best, 1, True, None, running)
        offsets, arcs = self._arcs_of(heads, 1)
        labels = table[arcs].argmax(axis=1) if self.n_labels > 1 else 0
        return Parts(offsets, np.where(arcs < 0, -1, arcs * self.n_labels + labels)).possible()

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        heads = self._heads(self._without_labels(pool), size, False, rng, running)
        offsets, arcs = self._arcs_of(heads, size)
        labels: Any = 0
        if self.n_labels > 1:
            rows = np.reshape(pool, (-1, self.n_labels))[arcs]
            top = rows.max(axis=1, keepdims=True)
            sums = np.cumsum(np.exp(rows - np.where(np.isneginf(top), 0.0, top)), axis=1)
            labels = (sums <= rng.random((len(rows), 1)) * sums[:, -1:]).sum(axis=1)
        return Parts(offsets, np.where(arcs < 0, -1, arcs * self.n_labels + labels)).possible()

    def _arcs_of(self, heads: IntArray, size: int) -> tuple[IntArray, IntArray]:
        """Where each structure begins, and arcs (cells, were there one label) of words; -1 where there is no tree."""
        lengths = np.repeat(self.lengths, size)
        offsets = offsets_of(lengths)
        word = np.arange(len(heads)) - np.repeat(offsets[:-1], lengths) + 1
        begin = np.repeat(np.repeat(self._arc_offsets()[:-1], size), lengths)
        return offsets, np.where(heads < 0, -1, begin + heads * (np.repeat(lengths, lengths) + 1) + word)

    def cells_of(self, heads: IntArray, labels: IntArray | None = None) -> Parts:
        """The cells of one tree for each instance: heads (and labels) of all words, sentence after sentence."""
        offsets, arcs = self._arcs_of(heads, 1)
        return Parts(offsets, arcs * self.n_labels + (0 if labels is None else labels))

    def heads_of(self, parts: Parts, instances: IntArray | None = None) -> tuple[IntArray, IntArray]:
        """Heads and labels of words, structure after structure, of structures with all their words in order.

        ``instances`` says of which instance each structure is; without it structure i is of instance i.
        """
        which = np.arange(self.n_instances) if instances is None else instances
        sizes = np.diff(parts.offsets)
        inside, labels = np.divmod(parts.cells - np.repeat(self.cell_offsets[which], sizes), self.n_labels)
        heads, words = np.divmod(inside, np.repeat(self.lengths[which] + 1, sizes))
        order = np.lexsort((words, np.repeat(np.arange(len(which)), sizes)))
        return heads[order], labels[order]

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        side, first = int(self.lengths[instance]) + 1, int(self.cell_offsets[instance])
        own = pool[first : int(self.cell_offsets[instance + 1])].reshape(side, side * self.n_labels)
        for cell in cells.tolist():
            head, rest = divmod(cell - first, side * self.n_labels)
            kept = own[head, rest]
            word = rest - rest % self.n_labels
            own[:, word : word + self.n_labels] = -np.inf
            own[head, rest] = kept

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(self.lengths[instances], self.n_labels, single_root=self.single_root)


class ArcForm(StructureForm):
    """Dependency trees over one sentence. Subclasses say which family.

    A structure is the list of the heads of words 1, ..., n; with labels, of pairs (head, label).
    """

    parts: ClassVar[tuple[str, ...]] = ("arcs",)
    family: ArcTrees

    def _read(self, scores: npt.ArrayLike, family: type[ArcTrees], single_root: bool) -> None:
        given = np.asarray(scores)
        array = score_array(given[:, :, None] if given.ndim == 2 else given, "scores of arcs", 3)
        if array.shape[0] != array.shape[1]:
            raise ModelError(
                f"scores of arcs must be square, heads by modifiers with the root first, got shape {given.shape}"
            )
        if len(array) < 2 or not array.size:
            raise ModelError(f"scores of arcs need the root, a word and a label at least, got shape {given.shape}")
        if not isinstance(single_root, bool | np.bool_):
            raise ModelError(f"single_root must be True or False, got {single_root!r}")
        array[:, 0] = array[np.arange(len(array)), np.arange(len(array))] = -np.inf
        self.family = family.of([len(array) - 1], array.shape[2], single_root=bool(single_root))
        self.pool = array.ravel()
        self._shape = given.shape

    def __repr__(self) -> str:
        labels = f", {self.family.n_labels} labels" if len(self._shape) == 3 else ""
        roots = "one arc" if self.family.single_root else "any number of arcs"
        return f"{type(self).__name__} of {int(self.family.lengths[0])} words{labels}, {roots} from the root"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        found = np.array(values, np.float64).reshape(self._shape)
        found[:, 0] = found[np.arange(len(found)), np.arange(len(found))] = 0.0
        return {"arcs": found}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        side, labels = self._shape[0], self.family.n_labels
        arc = place(index)
        if len(arc) == 2 and labels == 1:
            arc = (*arc, 0)
        if len(arc) == 2:
            raise ModelError(f"an arc with labels is (head, modifier, label), got {index}")
        if not (
            len(arc) == 3 and 0 <= arc[0] < side and 0 < arc[1] < side and arc[0] != arc[1] and 0 <= arc[2] < labels
        ):
            raise ModelError(
                f"an arc is (head, modifier{', label' * (labels > 1)}) with a head from 0, the root, to {side - 1} and "
                f"another word from 1 to {side - 1} as modifier, got {index}"
            )
        return int((arc[0] * side + arc[1]) * labels + arc[2])

    def structure(self, cells: IntArray) -> list[Any]:
        heads, labels = self.family.heads_of(Parts(np.array([0, len(cells)]), cells))
        found = heads.tolist()
        return list(zip(found, labels.tolist(), strict=True)) if len(self._shape) == 3 else found

    def cells(self, structure: Any) -> IntArray:
        n = int(self.family.lengths[0])
        what, width = ("pairs (head, label)", (2,)) if len(self._shape) == 3 else ("heads", (1,))
        arcs = [(h[0], m, *h[1:]) for m, h in enumerate(listed(structure, width, what), 1)]
        if len(arcs) != n:
            raise ModelError(f"a tree of {n} words has as many heads, got {len(arcs)}")
        found = np.array([self.cell("arcs", arc) for arc in arcs], np.int64)
        heads = [0, *(arc[0] for arc in arcs)]
        for word in range(1, n + 1):
            at, steps = word, 0
            while at and steps <= n:
                at, steps = heads[at], steps + 1
            if at:
                raise ModelError(f"heads must lead to the root, which those of word {word} do not: {heads[1:]}")
        if self.family.single_root and heads[1:].count(0) != 1:
            raise ModelError(f"one word hangs on the root (or say single_root=False), got heads {heads[1:]}")
        return found
