"""Decoders: what finds outputs of highest score in a batch, something being added to scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.method import MethodLike, taken
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.inference import choose_decoding, choose_inference
from markovfield.structured.core.labels import check_labels
from markovfield.structured.core.operators import LinearTerms
from markovfield.structured.losses.counts import CountLoss
from markovfield.structured.losses.loss import TrueParts, Truth
from markovfield.structures.core.family import Parts

__all__ = ["Decoder", "FormDecoder", "GraphDecoder", "Rows", "most_by_counts"]

States = npt.NDArray[np.int32]


class Rows(NamedTuple):
    """Features as sparse rows, one for each example."""

    offsets: IntArray
    columns: IntArray
    values: FloatArray

    @classmethod
    def of(cls, matrix: Any) -> Rows:
        """The rows of a sparse matrix."""
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)

    def products(self, w: FloatArray) -> FloatArray:
        """``float64[n]``: each times the weights."""
        sums = np.concatenate([[0.0], np.cumsum(w[self.columns] * self.values)])
        return np.diff(sums[self.offsets])


class Decoder(Protocol):
    """Best outputs of some examples. An output is whatever the decoder makes of all of them together.

    Attributes
    ----------
    n_examples, n_weights
        Sizes.
    truth
        Labels of variables, or parts of structures.
    slots
        ``int64[n_slots]``: the example of each number that can be added to scores: states of variables, or cells.
    exact
        Whether every answer so far was proven to be the best.
    sure
        Whether every answer is the best by what finds it.
    gap
        By how much outputs of the last answer could score more, all together; infinite where nothing bounds it.
    """

    n_examples: int
    n_weights: int
    truth: Any
    slots: IntArray
    exact: bool
    sure: bool
    gap: float

    def best(self, w: FloatArray, added: FloatArray | None = None) -> Any:
        """The outputs of highest score, ``added[slot]`` being added."""
        ...

    def other(self, w: FloatArray, output: Any, which: IntArray) -> Any:
        """The same outputs, but for some examples the best one that is not the truth; the truth where none is."""
        ...

    def wrong(self, output: Any) -> npt.NDArray[np.bool_]:
        """``bool[n_examples]``: whether an output is not the truth."""
        ...

    def merged(self, first: Any, second: Any, which: npt.NDArray[np.bool_]) -> Any:
        """Outputs of the first, and of the second for some examples."""
        ...

    def total(self, slots: FloatArray, output: Any) -> FloatArray:
        """``float64[n_examples]``: the sum of numbers over the slots of each output."""
        ...

    def rows(self, output: Any) -> Rows:
        """Features of the truth less those of outputs."""
        ...

    def base(self, output: Any) -> FloatArray | None:
        """``float64[n_examples]``: scores without weights of outputs less those of the truth; None is none."""
        ...


class GraphDecoder:
    """Labels of factor graphs, by any method of `markovfield.decode`; see `Decoder`."""

    def __init__(self, batch: Batch, decoding: MethodLike, running: Running) -> None:
        check_labels(batch, "max-margin training")
        self.batch, self.running, self.exact, self.gap = batch, running, True, 0.0
        self.n_examples, self.n_weights = batch.n_examples, batch.n_weights
        s = batch.structure
        self.truth = Truth(
            batch.labels.astype(np.int64), s.cardinalities.astype(np.int64), batch.example_of_variable, batch.n_examples
        )
        self.slots = np.repeat(batch.example_of_variable, s.cardinalities)
        self._base = None if batch.base is None else batch.scores(batch.base)
        if self._base is not None and np.isneginf(self._base).any():
            bad = int(np.flatnonzero(np.isneginf(self._base))[0])
            raise ModelError(f"example {bad}: the model rules its labels out")
        # Variables that nothing joins are decoded one by one.
        self.apart = decoding == "auto" and bool((np.diff(s.scope_offsets) <= 1).all())
        self.sure = True
        if self.apart:
            return
        # Every variable has one more factor, without weights: what is added.
        kind = Factors(np.arange(s.n_variables)[:, None], LinearTerms(np.zeros((len(self.slots), 0))), batch.n_weights)
        augmented = Batch.of(s.cardinalities, batch.variable_offsets, [*batch.factors, kind], batch.n_weights)
        self._structures = (s, augmented.structure)
        chosen = resolve(decoding, "decode") if decoding != "auto" else None
        self._methods = [
            chosen or choose_decoding(one, batch.variable_offsets, running.quiet) for one in self._structures
        ]
        # Messages on forests and junction trees.
        self.sure = all(method.name in ("belief_propagation", "junction_tree") for method in self._methods)
        self.sure = self.sure and chosen is None

    @cached_property
    def _values(self) -> tuple[IntArray, IntArray]:
        """Of variables that nothing joins: the slot of every cell that a factor has, and the cell."""
        s = self.batch.structure
        variable = s.scopes.astype(np.int64)
        sizes = s.cardinalities[variable].astype(np.int64)
        state = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        slots = np.repeat(s.value_offsets[:-1][variable], sizes) + state
        cells = np.repeat(s.table_offsets, sizes) + np.repeat(s.table_strides, sizes) * state
        return slots, cells

    def slot_scores(self, w: FloatArray) -> FloatArray:
        """``float64[n_slots]``: scores of states of variables that nothing joins."""
        slots, cells = self._values
        return np.bincount(slots, self.batch.pool(w)[cells], len(self.slots)).astype(np.float64)

    def best(self, w: FloatArray, added: FloatArray | None = None) -> States:
        if self.apart:
            scores = self.slot_scores(w)
            return _largest(scores if added is None else scores + added, self.truth)
        return self._decoded(w, added, no_evidence(self.batch.structure))

    def _decoded(self, w: FloatArray, added: FloatArray | None, evidence: Evidence) -> States:
        structure, method = self._structures[added is not None], self._methods[added is not None]
        pool = self.batch.pool(w) if added is None else np.concatenate([self.batch.pool(w), added])
        graph = FactorGraph(structure, pool, marks_hold=True)
        try:
            drawn = taken(method, rng=np.random.default_rng(0))
            # The report says in the end what was not exact.
            with without_warnings():
                answer = method.decode(graph, evidence, running=self.running.quiet, **drawn)
        except ImpossibleEvidenceError as refusal:
            raise ModelError(f"the model rules out every output of some example: {refusal}") from None
        graph.cache.clear()
        self.exact, self.gap = self.exact and bool(answer.optimal), max(float(answer.gap), 0.0)
        return np.array(answer.states, np.int32)

    def other(self, w: FloatArray, output: States, which: IntArray) -> States:
        """By max-marginals: the best output that differs from the truth has another state at some variable."""
        values = self.slot_scores(w) if self.apart else self._max_marginals(w)
        truth = self.truth
        own = truth.offsets + truth.labels
        if self.apart:
            values = values - values[own][np.repeat(np.arange(len(own)), truth.cardinalities)]
        values[own] = -np.inf
        states, clamps = output.copy(), np.full(len(own), -1, np.int32)
        ends = np.concatenate([truth.offsets, [len(values)]])
        for i in which.tolist():
            first, last = self.batch.variable_offsets[i], self.batch.variable_offsets[i + 1]
            part = values[ends[first] : ends[last]]
            at = int(part.argmax()) + int(ends[first]) if len(part) else -1
            if at < 0 or not part.max() > -np.inf:
                continue
            variable = int(np.searchsorted(ends, at, "right")) - 1
            clamps[variable] = at - ends[variable]
        chosen = np.flatnonzero(clamps >= 0)
        if self.apart:
            states[chosen] = clamps[chosen]
            return states
        found = self._decoded(w, None, Evidence(clamps))
        inside = np.isin(truth.examples, truth.examples[chosen])
        return np.where(inside, found, states).astype(np.int32)

    def _max_marginals(self, w: FloatArray) -> FloatArray:
        s = self.batch.structure
        method: Any = choose_inference(s, self.batch.variable_offsets, self.running.quiet)
        graph = FactorGraph(s, self.batch.pool(w), marks_hold=True)
        answer = method.marginals(graph, no_evidence(s), running=self.running.quiet)
        if answer.guarantee != "exact":
            raise ModelError("the zero-one loss needs second best outputs, and this graph is too wide for exact ones")
        found = answer.max_marginals
        graph.cache.clear()
        return np.array(found if isinstance(found, np.ndarray) else np.concatenate(list(found.values())), np.float64)

    def by_counts(self, loss: CountLoss) -> Callable[[FloatArray], States]:
        """The outputs of highest score and loss of counts, of yes-or-no variables that nothing joins: by sorting."""
        truth = self.truth
        if not self.apart or (truth.cardinalities != 2).any():
            raise ModelError(
                f"loss {loss.name!r} has exact loss-augmented decoding for linear chains and for yes-or-no labels that "
                "do not depend on each other (MultiLabelModel('independent')); this model is neither"
            )
        offsets = self.batch.variable_offsets.tolist()
        positive = truth.labels != loss.negative
        tables = [loss.costs(int(positive[a:b].sum()), b - a) for a, b in pairwise(offsets)]

        def search(w: FloatArray) -> States:
            scores = self.slot_scores(w).reshape(-1, 2)
            gains = scores[:, 1 - loss.negative] - scores[:, loss.negative]
            states = np.full(len(gains), loss.negative, np.int32)
            for (a, b), table in zip(pairwise(offsets), tables, strict=True):
                states[a + most_by_counts(gains[a:b], positive[a:b], table)] = 1 - loss.negative
            return states

        return search

    def wrong(self, output: States) -> npt.NDArray[np.bool_]:
        return np.bincount(self.truth.examples, output != self.truth.labels, self.n_examples) > 0

    def merged(self, first: States, second: States, which: npt.NDArray[np.bool_]) -> States:
        return np.where(which[self.truth.examples], second, first).astype(np.int32)

    def total(self, slots: FloatArray, output: States) -> FloatArray:
        return np.bincount(self.truth.examples, slots[self.truth.offsets + output], self.n_examples).astype(np.float64)

    def rows(self, output: States) -> Rows:
        return Rows(*self.batch.difference_rows(output))

    def base(self, output: States) -> FloatArray | None:
        if self._base is None or self.batch.base is None:
            return None
        return np.asarray(self.batch.scores(self.batch.base, output) - self._base)


class FormDecoder:
    """Structures, by the dynamic program of their family; see `Decoder`."""

    exact, sure, gap = True, True, 0.0

    def __init__(self, batch: FormBatch, running: Running) -> None:
        if batch.parts is None:
            raise ModelError("max-margin training needs outputs that are known; hidden ones are for the likelihood")
        self.batch, self.running = batch, running
        self.n_examples, self.n_weights = batch.n_examples, batch.n_weights
        offsets = batch.family.cell_offsets
        first = int(offsets[0])
        self.slots = np.concatenate(
            [np.zeros(first, np.int64), np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))]
        )
        counted = np.arange(len(self.slots)) >= first
        if batch.counted is not None:
            counted &= batch.counted
        self.truth = TrueParts(batch.parts.cells, self.slots, counted, batch.n_examples)
        self._keys = [own.tobytes() for own in self._sorted(batch.parts)]

    def best(self, w: FloatArray, added: FloatArray | None = None) -> Parts:
        parts: Parts = self.batch.decode(self.batch.pool(w), loss=added, running=self.running.quiet)
        none = np.flatnonzero(np.diff(parts.offsets) == 0)
        if len(none):
            raise ModelError(f"example {int(none[0])}: no structure is possible")
        return parts

    def other(self, w: FloatArray, output: Parts, which: IntArray) -> Parts:
        family, where = self.batch.family.select(which)
        ranked = family.best(self.batch.pool(w)[where], 2, running=self.running.quiet)
        cells = [output.of(i) for i in range(self.n_examples)]
        for i, best in zip(which.tolist(), ranked, strict=True):
            for own in best:
                if np.sort(where[own]).tobytes() != self._keys[i]:
                    cells[i] = where[own]
                    break
        return Parts.joined(cells)

    @staticmethod
    def _sorted(parts: Parts) -> list[IntArray]:
        return [np.sort(parts.of(i).astype(np.int64)) for i in range(len(parts.offsets) - 1)]

    def wrong(self, output: Parts) -> npt.NDArray[np.bool_]:
        return np.array([own.tobytes() != key for own, key in zip(self._sorted(output), self._keys, strict=True)])

    def merged(self, first: Parts, second: Parts, which: npt.NDArray[np.bool_]) -> Parts:
        return Parts.joined([(second if changed else first).of(i) for i, changed in enumerate(which.tolist())])

    def total(self, slots: FloatArray, output: Parts) -> FloatArray:
        return output.scores(slots)

    def rows(self, output: Parts) -> Rows:
        return Rows.of(self.batch.differences(output))

    def base(self, output: Parts) -> FloatArray | None:
        if self.batch.base is None or self.batch.parts is None:
            return None
        return output.scores(self.batch.base) - self.batch.parts.scores(self.batch.base)


def most_by_counts(gains: FloatArray, positive: npt.NDArray[np.bool_], costs: FloatArray) -> IntArray:
    """Which to predict for the highest sum of gains and cost, ``costs[right, predicted]``, inf where not allowed.

    Of so many right and so many wrong ones the best are those of largest gain: sorted once, in all ``n^2 / 4`` pairs.
    """
    true, false = np.flatnonzero(positive), np.flatnonzero(~positive)
    true, false = true[np.argsort(-gains[true])], false[np.argsort(-gains[false])]
    sums = [np.concatenate([[0.0], np.cumsum(gains[own])]) for own in (true, false)]
    right, wrong = np.arange(len(true) + 1)[:, None], np.arange(len(false) + 1)[None, :]
    cost = costs[right, right + wrong]
    total = np.where(np.isinf(cost), -np.inf, sums[0][:, None] + sums[1] + np.where(np.isinf(cost), 0.0, cost))
    r, f = np.unravel_index(int(total.argmax()), total.shape)
    return np.concatenate([true[:r], false[:f]])


def _largest(scores: FloatArray, truth: Truth) -> States:
    """The state of largest score of each variable."""
    n = len(truth.cardinalities)
    if n and (truth.cardinalities == truth.cardinalities[0]).all():
        return np.asarray(scores.reshape(n, -1).argmax(axis=1), np.int32)
    return np.array([part.argmax() for part in np.split(scores, truth.offsets[1:])], np.int32)
