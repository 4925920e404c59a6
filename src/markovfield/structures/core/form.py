"""A form: the structures of one instance with their scores, which the verbs take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import small
from markovfield.structures.core.family import Family

__all__ = ["StructureForm", "listed", "place", "score_array"]

# Steps of plain Python for an operation that a family counts.
STEPS = 20.0


class StructureForm(Tabular, ABC):
    """Structures of one instance, each with the sum of the scores of its parts.

    `markovfield.log_partition`, `marginals`, `decode` and `sample` take a form. ``decode`` answers with ``structure``,
    the best one as users write it; evidence fixes parts, ``{"arcs": {(0, 2): True, (2, 1): False}}``.

    Attributes
    ----------
    family
        The family, with this one instance.
    pool
        ``float64[n_cells]``: scores of parts; -inf rules a part out.
    """

    family: Family
    pool: FloatArray

    answered_by: ClassVar[str] = "markovfield.structures.core.verbs"
    # Names of the kinds of parts, the main one first.
    parts: ClassVar[tuple[str, ...]]

    @classmethod
    def of(cls, family: Any, pool: FloatArray) -> Self:
        """The form of a family of one instance, with its scores."""
        form = cls.__new__(cls)
        form.family, form.pool = family, pool
        return form

    @abstractmethod
    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        """Values of cells as an array for each kind of part, indexed as scores were given; 0 where there is no cell."""

    @abstractmethod
    def cell(self, part: str, index: tuple[int, ...]) -> int:
        """The cell of a part; a `ModelError` in one sentence where there is none."""

    @abstractmethod
    def structure(self, cells: IntArray) -> Any:
        """The structure of some cells as a user wants it."""

    @abstractmethod
    def cells(self, structure: Any) -> IntArray:
        """The cells of a structure that a user gives, checked."""

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows = [
            (part, tuple(cell), float(scores[tuple(cell)]))
            for part, scores in self.shaped(self.pool).items()
            for cell in np.argwhere((scores != 0) & np.isfinite(scores))[:limit].tolist()
        ][:limit]
        return {name: [row[i] for row in rows] for i, name in enumerate(("part", "index", "score"))}

    def score(self, structure: Any) -> float:
        """The score of a structure."""
        return float(np.sum(self.pool[self.cells(structure)]))

    def n_structures(self) -> float:
        """How many structures there are whose parts are all possible: sums with a score of 0 for every part.

        A float, exact below 2**53; a `ModelError` where sums are bounds.
        """
        return self.counted(self.pool, Running())

    def counted(self, pool: FloatArray, running: Running) -> float:
        """The same of the structures that scores, which may have been given evidence, leave possible."""
        zeros = np.where(np.isneginf(pool), -np.inf, 0.0)
        with self.work():
            sums = self.family.sums(zeros, running=running)
        if sums.guarantee != "exact":
            raise ModelError(f"the structures of this {type(self).__name__} are too many to count exactly")
        found = np.exp(sums.log_partition[0])
        return float(np.round(found)) if found < 2.0**52 else float(found)

    def work(self, times: int = 1) -> small:
        """What kernels are told of their work, ``times`` over: where none is compiled yet, they run as plain Python."""
        return small(STEPS * times * float(self.family.work().sum()))

    def given(self, evidence: Mapping[str, Any] | None) -> FloatArray:
        """The pool in which only structures are possible that have, or lack, the parts that evidence names."""
        required: list[int] = []
        forbidden: list[int] = []
        for part, fixed in self._evidence(evidence).items():
            if part not in self.parts:
                raise ModelError(f"evidence names {part!r}; {self.family.name} has {' and '.join(self.parts)}")
            if not isinstance(fixed, Mapping):
                raise ModelError(f"evidence of {part} must be a dict from a part to True or False, got {fixed!r}")
            for index, present in fixed.items():
                if not isinstance(present, bool | np.bool_):
                    raise ModelError(f"evidence of {part} {index} must be True or False, got {present!r}")
                where = tuple(index) if isinstance(index, tuple | list) else (index,)
                (required if present else forbidden).append(self.cell(part, where))
        if not required and not forbidden:
            return self.pool
        return self.family.conditioned(self.pool, 0, np.array(required, np.int64), np.array(forbidden, np.int64))

    def _evidence(self, evidence: Any) -> Mapping[str, Any]:
        if evidence is None:
            return {}
        if not isinstance(evidence, Mapping):
            raise ModelError(
                f"evidence must be a dict, as {{{self.parts[0]!r}: {{(0, 1): True}}}}, got {type(evidence).__name__}"
            )
        return evidence


def place(index: Any) -> tuple[int, ...]:
    """The index of a part as ints; nothing where one of its numbers is not whole, so that no part has it.

    Examples
    --------
    >>> place((np.int64(2), 1)), place((0.5, 1)), place(("a",)), place((True,))
    ((2, 1), (), (), ())
    """
    given = tuple(index) if isinstance(index, tuple | list | np.ndarray) else (index,)
    whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in given)
    return tuple(map(int, given)) if whole else ()


def listed(structure: Any, width: tuple[int, ...], what: str) -> list[tuple[int, ...]]:
    """A structure that is a list of numbers, or of tuples of as many as ``width`` allows; a `ModelError` if not.

    Examples
    --------
    >>> listed([(0, 1), (2, 2)], (2,), "links (row, column)")
    [(0, 1), (2, 2)]
    >>> listed([0, "a"], (1,), "heads")
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: a structure is a list of heads in whole numbers, got [0, 'a']
    """
    given = isinstance(structure, list | tuple | np.ndarray)
    found = [place(one) for one in structure] if given else []
    if not given or not all(len(one) in width for one in found):
        raise ModelError(f"a structure is a list of {what} in whole numbers, got {structure!r}")
    return found


def score_array(scores: Any, what: str, n_axes: int) -> FloatArray:
    """Scores as an array of so many axes: numbers or -inf."""
    try:
        found = np.array(scores, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be an array of numbers, got {type(scores).__name__}") from None
    if found.ndim != n_axes:
        raise ModelError(f"{what} must have {n_axes} axes, got shape {found.shape}")
    bad = np.isnan(found) | np.isposinf(found)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ModelError(f"{what} must be numbers or -inf, got {found[where]} at {where}")
    return found
