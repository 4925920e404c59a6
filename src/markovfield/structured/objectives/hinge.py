"""The hinge of structural SVMs (Murphy 19.7.2): the most violated output by loss-augmented decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.method import MethodLike, taken
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.problem import Planes
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.inference import choose_decoding
from markovfield.structured.core.operators import LinearTerms
from markovfield.structures.core.family import Parts

__all__ = ["Hinge", "MarginProblem"]


@dataclass(frozen=True)
class Hinge:
    """``max_y [loss(y) - score of the truth + score of y]``: margins that are as large as losses (19.82).

    Parameters
    ----------
    loss
        ``"hamming"``: labels that are wrong, not divided by their number; of structures, parts that one has and the
        other has not. Or a table ``[true, predicted]``, for models whose variables have the same labels.
    decoding
        What finds the most violated output of a factor graph: ``"auto"``, or a method of `markovfield.decode`. One that
        is not exact makes gaps estimates.
    """

    loss: Any = "hamming"
    decoding: MethodLike = "auto"

    name: ClassVar[str] = "hinge"

    def __post_init__(self) -> None:
        check_method(self)
        if isinstance(self.loss, str) and self.loss != "hamming":
            raise ModelError(f"loss must be 'hamming' or a table [true, predicted], got {self.loss!r}")

    def on(self, batch: Batch | FormBatch, *, running: Running, rng: Any = None) -> Any:
        """The oracle of a batch."""
        if isinstance(batch, FormBatch):
            if not isinstance(self.loss, str):
                raise ModelError("a table of losses is for labels of variables; structures have loss='hamming'")
            return FormOracle(batch, running)
        return GraphOracle(batch, self.loss, self.decoding, running)


class GraphOracle:
    """The most violated labels of a factor graph.

    Attributes
    ----------
    exact
        Whether every answer so far was proven to be the best.
    """

    def __init__(self, batch: Batch, loss: Any, decoding: MethodLike, running: Running) -> None:
        if not batch.is_labelled:
            raise ModelError("max-margin training needs every label; hidden ones are for the likelihood")
        self.batch, self.running, self.exact = batch, running, True
        self.losses = _losses(batch, loss)
        n = batch.structure.n_variables
        # Every variable has one more factor, without weights: its losses.
        kind = Factors(np.arange(n)[:, None], LinearTerms(np.zeros((len(self.losses), 0))), batch.n_weights)
        base = np.zeros(batch.structure.n_cells) if batch.base is None else batch.base
        self._base = batch.scores(base)
        if np.isneginf(self._base).any():
            bad = int(np.flatnonzero(np.isneginf(self._base))[0])
            raise ModelError(f"example {bad}: the model rules its labels out")
        self._augmented = Batch.of(
            batch.structure.cardinalities, batch.variable_offsets, [*batch.factors, kind], batch.n_weights,
            base=np.concatenate([base, self.losses]),
        )  # fmt: skip
        chosen = resolve(decoding, "decode") if decoding != "auto" else None
        self._methods = [chosen or choose_decoding(b.structure, b.variable_offsets, running) for b in self._both]

    @property
    def _both(self) -> tuple[Batch, Batch]:
        return self.batch, self._augmented

    def planes(self, w: FloatArray, *, losses: bool) -> tuple[Any, FloatArray]:
        """Features of the truth less those of the worst output, sparse rows; and its loss."""
        batch, method = self._both[losses], self._methods[losses]
        graph = FactorGraph(batch.structure, batch.pool(w), marks_hold=True)
        try:
            drawn = taken(method, rng=np.random.default_rng(0))
            answer = method.decode(graph, no_evidence(batch.structure), running=self.running.quiet, **drawn)
        except ImpossibleEvidenceError as refusal:
            raise ModelError(f"the model rules out every output of some example: {refusal}") from None
        graph.cache.clear()
        self.exact = self.exact and bool(answer.optimal)
        states = np.array(answer.states, np.int32)
        offsets = self.batch.structure.value_offsets[:-1]
        cost = np.zeros(self.batch.n_examples)
        np.add.at(cost, self.batch.example_of_variable, self.losses[offsets + states])
        if self.batch.base is not None:  # scores without weights are constants of planes
            cost += self.batch.scores(self.batch.base, states) - self._base
        return self.batch.differences(states), cost


class FormOracle:
    """The most violated structures."""

    exact = True

    def __init__(self, batch: FormBatch, running: Running) -> None:
        if batch.parts is None:
            raise ModelError("max-margin training needs outputs that are known; hidden ones are for the likelihood")
        self.batch, self.running = batch, running
        first = int(batch.family.cell_offsets[0])
        # Parts that only one of both has: those of the truth, one more for a wrong part, one less for a right one.
        self._added = np.ones(batch.family.n_cells)
        self._added[:first] = 0.0
        own = batch.parts.cells >= first
        self._added[batch.parts.cells[own]] = -1.0
        self._right = np.diff(np.concatenate([[0], np.cumsum(own)])[batch.parts.offsets]).astype(np.float64)

    def planes(self, w: FloatArray, *, losses: bool) -> tuple[Any, FloatArray]:
        """Features of the truth less those of the worst output, sparse rows; and its loss."""
        parts: Parts = self.batch.decode(
            self.batch.pool(w), loss=self._added if losses else None, running=self.running.quiet
        )
        if (np.diff(parts.offsets) == 0).any():
            raise ModelError(f"example {int(np.flatnonzero(np.diff(parts.offsets) == 0)[0])}: no structure is possible")
        cost = np.add.reduceat(self._added[parts.cells], parts.offsets[:-1]) + self._right
        if self.batch.base is not None and self.batch.parts is not None:
            cost = cost + parts.scores(self.batch.base) - self.batch.parts.scores(self.batch.base)
        return self.batch.differences(parts), cost


@dataclass(eq=False)
class MarginProblem:
    """Oracles of shards as one problem of planes."""

    oracles: Sequence[Any]
    costs: FloatArray
    n_weights: int
    shards: list[IntArray] = field(init=False)

    def __post_init__(self) -> None:
        sizes = [0, *(oracle.batch.n_examples for oracle in self.oracles)]
        self.shards = [np.arange(a, b) for a, b in pairwise(np.cumsum(sizes).tolist())]

    @property
    def exact(self) -> bool:
        """Whether every answer so far was proven to be the best."""
        return all(oracle.exact for oracle in self.oracles)

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each example of a shard; the truth itself where the oracle found nothing higher."""
        rows, cost = self.oracles[shard].planes(w, losses=losses)
        return Planes(self.shards[shard], rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, cost)


def _losses(batch: Batch, loss: Any) -> FloatArray:
    """``float64[total states]``: what each state of each variable costs, given its label."""
    cards, labels = batch.structure.cardinalities.astype(np.int64), batch.labels.astype(np.int64)
    offsets = batch.structure.value_offsets[:-1]
    if isinstance(loss, str):
        found = np.ones(int(cards.sum()))
        found[offsets + labels] = 0.0
        return found
    table: npt.NDArray[np.float64] = np.array(loss, np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not np.isfinite(table).all():
        raise ModelError(f"loss must be a square table of numbers, [true, predicted], got shape {table.shape}")
    if (cards != len(table)).any():
        raise ModelError(
            f"loss is a table of {len(table)} labels, and a variable has {int(cards[cards != len(table)][0])}"
        )
    if (table < 0).any() or np.diag(table).any():
        raise ModelError("losses must be at least 0, and 0 where the truth is predicted")
    return table[labels].ravel()
