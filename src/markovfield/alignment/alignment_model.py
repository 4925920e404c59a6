"""Links of sentence pairs as matchings, with scores that are linear in features of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.alignment.link_features import ALONE, LINKS, PairFeatures, features_of
from markovfield.alignment.links import gold_tables
from markovfield.alignment.scoring import alignment_error_rate
from markovfield.alignment.sentences import checked_pairs
from markovfield.alignment.statistics import CorpusStatistics
from markovfield.arrays import BoolArray, FloatArray
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import LinearTerms
from markovfield.structures.core.family import Parts
from markovfield.structures.matching.assignment import best_assignment
from markovfield.structures.matching.family import Matchings
from markovfield.structures.matching.matching import Matching

__all__ = ["AlignmentModel", "AlignmentShape"]


@dataclass(frozen=True)
class AlignmentShape(Shape):
    """What a model of links knows: the statistics of a corpus."""

    statistics: CorpusStatistics | None = None

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert self.statistics is not None
        about, arrays = super().described()
        own, vectors = self.statistics.described()
        return {**about, "statistics": own}, {**arrays, **vectors}

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        own = about.get("statistics")
        return {"statistics": CorpusStatistics.restored(own if isinstance(own, dict) else {}, arrays)}


@dataclass(frozen=True, eq=False)
class AlignmentModel(FormModel):
    """Inputs are sentence pairs, outputs are links of which a word has one at most; see `AlignmentCRF`.

    Parameters
    ----------
    possible
        What possible links, which annotators leave open, are in training: ``"likeliest"``: there where models of the
        corpus think so, or ``"hidden"``: summed over.
    exact_limit
        Largest tables of exact sums, in numbers; above it they are Bethe's, a lower bound (see `Matching`).
    """

    possible: str = "likeliest"
    exact_limit: float = 1e5

    def __post_init__(self) -> None:
        check_method(self, choices={"possible": ("hidden", "likeliest")})

    form_class: ClassVar[Any] = Matching
    shape_class: ClassVar[type[Shape]] = AlignmentShape

    @property
    def statistics(self) -> CorpusStatistics:
        """Those of the corpus."""
        known = self.known
        assert isinstance(known, AlignmentShape) and known.statistics is not None
        return known.statistics

    def shape_of(self, X: Any, Y: Any) -> AlignmentShape:
        return AlignmentShape(statistics=self.statistics)

    def templates(self) -> Sequence[Template]:
        return [
            Template("links", 1, len(LINKS)),
            Template("sources", 1, len(ALONE)),
            Template("targets", 1, len(ALONE)),
        ]

    def inputs(self, X: Any) -> FormInputs:
        pairs = checked_pairs(X)
        found = features_of(pairs, self.statistics)
        rows = np.array([len(pair[0]) for pair in pairs])
        columns = np.array([len(pair[1]) for pair in pairs])
        family = Matchings.of(rows, columns, None, self.exact_limit)
        ends = family.cell_offsets[:-1] + rows * columns
        kinds = (
            ("links", family.cell_offsets[:-1], rows * columns),
            ("sources", ends, rows),
            ("targets", ends + rows, columns),
        )
        blocks = tuple(
            Block(name, LinearTerms(np.concatenate([getattr(own, name) for own in found])), _ranges(begins, sizes))
            for name, begins, sizes in kinds
        )
        return FormInputs(family, blocks, given=found)

    def parts(self, Y: Any, inputs: FormInputs) -> Parts | None:
        if self.possible == "hidden":
            return None
        family: Any = inputs.family
        cells = []
        for k, (links, features) in enumerate(zip(Y, inputs.given, strict=True)):
            table = _mask(*gold_tables(links, k, int(family.rows[k]), int(family.columns[k])))
            best = best_assignment(
                *(part + own for part, own in zip(_likely(features, table[0].shape), table, strict=True))
            )
            assert best is not None
            cells.append(family.cells_of(k, best))
        return Parts.joined(cells)

    def mask(self, Y: Any, inputs: FormInputs) -> FloatArray:
        family: Any = inputs.family
        sizes = zip(family.rows.tolist(), family.columns.tolist(), strict=True)
        tables = [_mask(*gold_tables(links, k, n, m)) for k, (links, (n, m)) in enumerate(zip(Y, sizes, strict=True))]
        return np.concatenate([part.ravel() for table in tables for part in table])

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        family: Any = inputs.family
        found = []
        for k in range(family.n_instances):
            m = int(family.columns[k])
            own = np.sort(parts.of(k)) - family.cell_offsets[k]
            found.append([divmod(cell, m) for cell in own[own < int(family.rows[k]) * m].tolist()])
        return found

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        return 1.0 - alignment_error_rate(Y, predicted)


def _ranges(begins: Any, sizes: Any) -> Any:
    """Numbers of several ranges, one after the other."""
    shift = np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
    return shift + np.arange(int(sizes.sum()))


def _mask(sure: BoolArray, allowed: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """0 and -inf for links and for words without one: the matchings that go with gold links.

    A word whose sure links are with words that have no other sure link must have one of them; where sure links compete
    (a word may have only one), those that lose stay alone or take a possible link.
    """
    row_degree, column_degree = sure.sum(axis=1), sure.sum(axis=0)
    rows = (row_degree > 0) & ~(sure & (column_degree > 1)).any(axis=1)
    columns = (column_degree > 0) & ~(sure & (row_degree > 1)[:, None]).any(axis=0)
    there = allowed & (sure | (~rows[:, None] & ~columns))
    return tuple(np.where(one, 0.0, -np.inf) for one in (there, ~rows, ~columns))  # type: ignore[return-value]


def _likely(features: PairFeatures, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores by which possible links are chosen: how much likelier than not a link is by both models."""
    mean = features.links[:, LINKS.index("hmm mean")].reshape(shape)
    return 2.0 * mean - 1.0, np.zeros(shape[0]), np.zeros(shape[1])
