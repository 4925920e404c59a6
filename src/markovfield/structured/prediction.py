"""What a trained model says of new inputs: best outputs, marginals, samples, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.core.answers import Answer
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.method import MethodLike, taken
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.inference import choose_decoding, choose_inference
from markovfield.structured.losses.loss import Loss, loss_of

__all__ = [
    "OutputMarginals",
    "Outputs",
    "best_outputs",
    "impossible",
    "label_scores",
    "least_loss",
    "log_likelihoods",
    "output_marginals",
    "ranked_outputs",
    "split_values",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs(Answer):
    """Outputs of many inputs, and how far they can be trusted, all of them together.

    Attributes
    ----------
    labels
        For each example its output.
    scores
        ``float64[n_examples]``: the score of each output (its log-probability plus log Z).
    gap
        By how much better outputs of all examples together could score at most; infinite where nothing bounds it.
    guarantee
        ``"exact"`` where every output is proven to be the best, otherwise ``"lower"``.
    """

    labels: list[Any]
    scores: FloatArray
    gap: float = 0.0
    states: npt.NDArray[np.int32] | None = field(default=None, repr=False)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"example": np.arange(len(self.scores))[:limit], "score": self.scores[:limit]}

    def __repr__(self) -> str:
        n = len(self.scores)
        gap = "" if self.guarantee == "exact" else f", gap {self.gap:.4g}"
        return f"Outputs of {n} example{'s' * (n != 1)}: {self.guarantee}{gap}, {self.method}, {self.seconds:.3g} s"


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputMarginals(Answer):
    """Marginals of the outputs of many inputs.

    Attributes
    ----------
    values
        For each example ``float64[n_variables, n_classes]`` (a list of vectors where variables differ in their states).
    log_partition
        log Z of all examples together.
    """

    values: list[Any]
    log_partition: float

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        cells = (
            (e, v, k, float(p))
            for e, some in enumerate(self.values)
            for v, q in enumerate(some)
            for k, p in enumerate(q)
        )
        rows = list(islice(cells, limit))
        return {
            name: [row[i] for row in rows] for i, name in enumerate(("example", "variable", "state", "probability"))
        }

    @property
    def entropies(self) -> list[FloatArray]:
        """For each example the entropy of every variable, in nats: 0 where the model is sure."""
        return [
            _entropies(example) if isinstance(example, np.ndarray) else np.array([_entropies(p) for p in example])
            for example in self.values
        ]

    def __repr__(self) -> str:
        n = len(self.values)
        return (
            f"OutputMarginals of {n} example{'s' * (n != 1)}: log Z = {self.log_partition:.6g} ({self.guarantee}), "
            f"{self.method}, {self.seconds:.3g} s"
        )


def _entropies(p: FloatArray) -> FloatArray:
    """Of distributions along the last axis."""
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1))


def best_outputs(
    batch: Batch, w: FloatArray, method: MethodLike, running: Running
) -> tuple[npt.NDArray[np.int32], Any]:
    """The states of highest score of all examples, labels that are known staying as they are; and the answer."""
    graph = batch.restricted_graph(w)
    chosen: Any
    if method == "auto":
        chosen = choose_decoding(batch.structure, batch.variable_offsets, running)
    else:
        chosen = resolve(method, "decode")
    try:
        drawn = taken(chosen, rng=np.random.default_rng(0))
        answer = chosen.decode(graph, Evidence(batch.labels), running=running, **drawn)
    except ImpossibleEvidenceError:
        raise impossible() from None
    if not np.isfinite(answer.score):
        raise impossible()
    return answer.states, answer


def ranked_outputs(batch: Batch, w: FloatArray, n: int, running: Running) -> list[tuple[Any, float]]:
    """The n best states of one example and their scores, labels that are known staying as they are."""
    tree = resolve("junction_tree", "decode")
    try:
        answer = tree.decode(batch.restricted_graph(w), Evidence(batch.labels), n_best=n, running=running)
    except ImpossibleEvidenceError:
        raise impossible() from None
    return [(one.states, one.score) for one in answer.n_best]


def impossible() -> ModelError:
    """What is said where nothing is left to predict."""
    return ModelError("no output has all the labels that are fixed and keeps the constraints")


def _inference(batch: Batch, method: MethodLike, running: Running) -> Any:
    """The method that gives marginals, by its name or chosen."""
    if method != "auto":
        return resolve(method, "marginals")
    return choose_inference(batch.structure, batch.variable_offsets, running, batch.wide_inference)


def output_marginals(
    batch: Batch, w: FloatArray, method: MethodLike, running: Running, rng: Any = None
) -> tuple[FloatArray, Any]:
    """Marginals of all variables, one after the other, labels that are known clamped; and the answer."""
    chosen = _inference(batch, method, running)
    try:
        drawn = taken(chosen, rng=generator_of(rng))
        answer = chosen.marginals(batch.restricted_graph(w), Evidence(batch.labels), running=running, **drawn)
    except ImpossibleEvidenceError:
        raise impossible() from None
    return answer.values, answer


def log_likelihoods(batch: Batch, w: FloatArray, method: MethodLike, running: Running) -> FloatArray:
    """The log-probability of the labels of each example, those that are not known summed over."""
    chosen = _inference(batch, method, running)
    evidence, offsets = no_evidence(batch.structure), batch.variable_offsets
    free = counts_by_component(chosen, batch.graph(w), evidence, offsets, running=running).log_partition
    if np.isnan(free).any():
        raise ModelError(f"{chosen.name} does not estimate log Z, which a log-likelihood needs: use another inference")
    return label_scores(batch, w, chosen, running) - free


def label_scores(batch: Batch, w: FloatArray, method: MethodLike, running: Running) -> FloatArray:
    """The log of what the states that go with the labels of each example add to Z; with all known, their score."""
    if batch.is_labelled:
        return batch.scores(batch.pool(w))
    chosen, graph = _inference(batch, method, running), batch.restricted_graph(w)
    found = counts_by_component(chosen, graph, Evidence(batch.labels), batch.variable_offsets, running=running)
    return np.asarray(found.log_partition)


def least_loss(
    values: FloatArray, sizes: IntArray, loss: Any = None, classes: Sequence[Any] = ()
) -> npt.NDArray[np.int32]:
    """The label of each variable with the least expected loss (Murphy 19.79 for losses that add up over variables).

    ``sizes`` are the numbers of labels of all variables; ``loss`` is a loss, by name or as an object, or a table
    ``[true, predicted]``; None is ``"hamming"``, whose best label is the most probable one (maximum of posterior
    marginals).
    """
    k = int(sizes[0]) if len(sizes) else 0
    alike = bool((sizes == k).all())
    if isinstance(loss, str | Loss):
        given = loss_of(loss)
        if given.name == "zero_one":
            raise ModelError("the zero-one loss is least for the most probable output: decision='map'")
        loss = None if given == loss_of("hamming") else given.resolved(classes).table(k)
        if loss is None and given != loss_of("hamming"):
            raise ModelError(
                f"loss {given.name!r} does not add up over variables: decision='mpm' takes 'hamming' or a table"
            )
    if loss is not None:
        try:
            table = np.asarray(loss, np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"loss must be a table [true, predicted] of numbers, got {loss!r:.60}") from None
        if not alike or table.shape != (k, k):
            raise ModelError(f"loss must be a table [{k}, {k}] of true and predicted labels, got shape {table.shape}")
        if not np.isfinite(table).all():
            raise ModelError("loss must be finite")
        return np.asarray((values.reshape(-1, k) @ table).argmin(axis=1), np.int32)
    if alike:
        return np.asarray(values.reshape(-1, k).argmax(axis=1), np.int32)
    return np.array([part.argmax() for part in np.split(values, offsets_of(sizes)[1:-1])], np.int32)


def split_values(values: FloatArray, sizes: IntArray, variable_offsets: IntArray) -> list[Any]:
    """Marginals example by example: a matrix each, or a list of vectors where variables differ in their labels."""
    found: list[Any] = []
    ends = offsets_of(sizes)
    for first, last in pairwise(variable_offsets.tolist()):
        part, own = values[ends[first] : ends[last]], sizes[first:last]
        alike = len(own) and (own == own[0]).all()
        found.append(part.reshape(len(own), -1) if alike else np.split(part, offsets_of(own)[1:-1]))
    return found
