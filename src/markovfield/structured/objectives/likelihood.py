"""Conditional likelihood: the gradient is expected features less those of the labels (Murphy 19.71 to 19.73).

Where labels are hidden or unknown, the features of the labels are expectations too, with what is known clamped
(19.6.3, last paragraph). Expectations come from any method of inference: exact ones give the likelihood itself,
tree-reweighted messages a lower bound on it that is concave, others an approximation with the gradient of *their* log
Z, and samplers a noisy gradient.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.inference import choose_inference, convex_inference
from markovfield.structured.objectives.form_likelihood import FormLikelihood

__all__ = ["ConditionalLikelihood"]

# Training has come to rest where the gradient is below this for each example, give or take.
STUCK = 1e-2


@dataclass(frozen=True)
class ConditionalLikelihood:
    """Minus the log-probability of the labels given the inputs, summed over examples.

    Parameters
    ----------
    inference
        A method of `markovfield.marginals`, or of `sample`; ``"auto"`` is exact where that is cheap, and
        loopy belief propagation elsewhere; ``"tree_reweighted"`` keeps the objective convex, in more time.
    n_samples
        Of each expectation, for methods that sample.
    """

    inference: MethodLike = "auto"
    n_samples: int = 1000

    name: ClassVar[str] = "likelihood"

    def __post_init__(self) -> None:
        check_method(self, least={"n_samples": 1})

    def on(self, batch: Batch | FormBatch, *, running: Running, rng: Any = None) -> LikelihoodValue | FormLikelihood:
        """The function of weights."""
        if isinstance(batch, FormBatch):
            if self.inference != "auto":
                raise ModelError(f"{batch.family.name} has its own dynamic program: leave inference at 'auto'")
            return FormLikelihood(batch, running)
        if self.inference == "auto":
            method = choose_inference(batch.structure, batch.variable_offsets, running, batch.wide_inference)
            return LikelihoodValue(batch, method, self.n_samples, running, rng, chosen=True)
        return LikelihoodValue(batch, resolve_counts(self.inference), self.n_samples, running, rng)


class LikelihoodValue:
    """Minus the log-likelihood of a batch and its gradient, as a function of weights.

    Attributes
    ----------
    method, guarantee, converged
        What infers; the guarantee of the last log Z; whether all inference so far came to its end.
    """

    def __init__(
        self, batch: Batch, method: Any, n_samples: int, running: Running, rng: Any, *, chosen: bool = False
    ) -> None:
        self.batch, self.method, self.n_samples, self.running, self.rng = batch, method, n_samples, running, rng
        self.guarantee, self.converged, self.chosen = "exact", True, chosen
        self.hidden = not batch.is_labelled
        self._last: list[Any] = [None, None]
        if not self.hidden:
            counts = batch.counts()
            self._features = batch.adjoint(counts)
            self._constant = 0.0 if batch.base is None else float(batch.base[counts > 0] @ counts[counts > 0])
            if batch.base is not None and not np.isfinite(self._constant):
                bad = int(np.flatnonzero(np.isneginf(batch.scores(batch.base)))[0])
                raise ModelError(f"example {bad}: the model rules its labels out")

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        pool = self.batch.pool(w)
        free, expected = self.expectations(pool)
        if not self.hidden:
            value = free - self._constant - float(self._features @ w)
            return value, self.batch.adjoint(expected) - self._features
        clamped, seen = self.expectations(pool, clamped=True)
        return free - clamped, self.batch.adjoint(expected - seen)

    def misled(self, value: float, gradient_norm: float) -> bool:
        """Whether loopy messages that nobody asked for have misled training, which ended so.

        A log-likelihood above zero is none, and a gradient that is far from zero where no step helps is not that of the
        objective.
        """
        loopy = self.chosen and self.method.name == "belief_propagation" and self.guarantee != "exact"
        return loopy and (value < 0 or gradient_norm > STUCK * self.batch.n_examples)

    def convex(self) -> None:
        """Go on with tree-reweighted messages."""
        self.method = convex_inference()
        self._last = [None, None]
        self.converged = True

    def expectations(self, pool: FloatArray, *, clamped: bool = False) -> tuple[float, FloatArray]:
        """log Z and expected counts, summed over examples with their weights; with the labels clamped or free."""
        batch = self.batch
        evidence = no_evidence(batch.structure)
        if clamped:
            evidence = Evidence(batch.labels)
            pool = batch.restricted(pool)
        graph = FactorGraph(batch.structure, pool, marks_hold=True)
        # Only where examples weigh differently need their log Z be told apart.
        offsets = [0, batch.structure.n_variables] if batch.weights is None else batch.variable_offsets
        try:
            with warnings.catch_warnings():
                # Whether inference converged is said once, in the report.
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = counts_by_component(
                    self.method, graph, evidence, offsets, running=self.running.quiet, weights=batch.weights,
                    init=self._last[clamped], n_samples=self.n_samples, rng=self.rng,
                )  # fmt: skip
        except ImpossibleEvidenceError as refusal:
            raise ModelError(f"the model rules out the labels of some example: {refusal}") from None
        # What was worked out for this graph refers to it: left there, it would stay until Python looks for circles.
        graph.cache.clear()
        self._last[clamped] = found.answer if "init" in self.method.abilities else None
        self.converged = self.converged and found.answer.converged
        if not clamped:
            self.guarantee = found.answer.guarantee
        values = found.log_partition
        return float(values.sum() if batch.weights is None else batch.weights @ values), found.counts
