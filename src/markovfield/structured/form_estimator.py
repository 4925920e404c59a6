"""The estimator behind conditional models of structures: trees, segmentations, alignments; what it can be asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.structured.conditional_estimator import ConditionalEstimator
from markovfield.structured.core.form_model import FormModel
from markovfield.structured.core.reading import example_count
from markovfield.structured.losses.loss import loss_of
from markovfield.structured.losses.parts import PartLoss
from markovfield.structured.prediction import Outputs
from markovfield.structures.core.family import Parts
from markovfield.structures.core.form import StructureForm

__all__ = ["FormEstimator"]


class FormEstimator(ConditionalEstimator):
    """What all estimators of structures can do. Subclasses say settings, and the `FormModel` that they make.

    An example for which the model rules every structure out is answered with None; the others are not lost.
    """

    model_: FormModel

    def _scored(self, X: Any) -> tuple[Any, FloatArray]:
        """Inputs, and the scores of their parts."""
        check_is_fitted(self, "model_")
        inputs = self.model_.inputs(X)
        return inputs, self.model_.encode_inputs(inputs).pool(self.weights_)

    def form(self, x: Any) -> StructureForm:
        """The structures of one input with their scores, as a form: any verb can be asked of it."""
        inputs, pool = self._scored([x])
        return self.model_.form(inputs, 0, pool)

    @shows_progress
    def decode(
        self,
        X: Any,
        *,
        decision: str = "map",
        loss: Any = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Outputs:
        """The outputs of highest probability, with their scores.

        Parameters
        ----------
        X
            A list of inputs.
        decision
            ``"map"``: the most probable structure as a whole. ``"mbr"``: the one with the most parts that are expected
            to be right (minimum Bayes risk).
        loss
            With ``"mbr"``: what parts cost that are missing or wrong, a `PartLoss` or its name; the structure of least
            expected loss is then taken (Murphy 19.79).
        """
        running = Running(self.n_jobs, time_limit, callback)
        inputs, pool = self._scored(X)
        family = inputs.family
        guarantee: Guarantee
        if loss is not None and decision != "mbr":
            raise ModelError("loss is for decision='mbr', which takes the structure of least expected loss")
        if decision == "map":
            parts = family.maxima(pool, running=running)
            guarantee = family.proof(pool, parts.cells)[0]
        elif decision == "mbr":
            sums = family.sums(pool, counts=True, running=running)
            gains = self._gains(loss, inputs, pool, sums.counts)
            parts = family.maxima(gains, running=running)
            guarantee = sums.guarantee
        else:
            raise ModelError(f"decision must be 'map' or 'mbr', got {decision!r}")
        scores = parts.scores(pool)
        scores[np.diff(parts.offsets) == 0] = -np.inf
        return Outputs(
            labels=self.model_.outputs(parts, inputs),
            scores=scores,
            method=family.name,
            guarantee=guarantee,
            seconds=running.seconds,
        )

    def _gains(self, loss: Any, inputs: Any, pool: FloatArray, counts: Any) -> FloatArray:
        """What each part gains in expected loss."""
        if loss is None:
            return self._risk_scores(inputs, pool, counts)
        found = PartLoss() if loss == "hamming" else loss_of(loss)
        if not isinstance(found, PartLoss) or found.normalised:
            raise ModelError(f"decision='mbr' takes a PartLoss that is not normalised, got loss={loss!r}")
        counted = self.model_.counted(inputs)
        if counted is None:
            counted = np.arange(len(pool)) >= inputs.family.cell_offsets[0]
        gain = np.where(counted, found.missing * counts - found.wrong * (1.0 - counts), 0.0)
        return np.where(np.isneginf(pool), -np.inf, gain)

    def _risk_scores(self, inputs: Any, pool: FloatArray, counts: FloatArray) -> FloatArray:
        """What ``decision="mbr"`` adds up: probabilities of parts. Models for which other parts count change this."""
        return np.where(np.isneginf(pool), -np.inf, counts)

    def predict(self, X: Any, *, decision: str = "map") -> list[Any]:
        """Outputs of inputs; see `decode`."""
        return self.decode(X, decision=decision).labels

    def predict_marginals(self, X: Any) -> list[dict[str, FloatArray]]:
        """For each example the probabilities of its parts, by kind of part."""
        inputs, pool = self._scored(X)
        family, running = inputs.family, Running(self.n_jobs)
        if family.cell_offsets[0]:  # counts of cells that all examples share would be those of all
            asked = [self.model_.form(inputs, i, pool) for i in range(example_count(X))]
            counted = [form.family.sums(form.pool, counts=True, running=running).counts for form in asked]
            return [form.shaped(counts) for form, counts in zip(asked, counted, strict=True)]  # type: ignore[arg-type]
        counts = family.sums(pool, counts=True, running=running).counts
        forms = [self.model_.form(inputs, i, counts) for i in range(example_count(X))]
        return [form.shaped(form.pool) for form in forms]

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[Any, float]]]:
        """For each example its ``n`` best outputs and their scores, best first."""
        inputs, pool = self._scored(X)
        ranked = inputs.family.best(pool, whole_number(n, "n", 1), running=Running(self.n_jobs))
        none = np.zeros(0, np.int64)
        found: list[list[tuple[Any, float]]] = [[] for _ in ranked]
        for rank in range(max(map(len, ranked), default=0)):
            parts = Parts.joined([best[rank] if rank < len(best) else none for best in ranked])
            for i, output in enumerate(self.model_.outputs(parts, inputs)):
                if rank < len(ranked[i]):
                    found[i].append((output, float(pool[ranked[i][rank]].sum())))
        return found

    def sample(self, X: Any, size: int = 1, *, rng: Any = None) -> list[list[Any]]:
        """For each example ``size`` outputs drawn from its posterior."""
        inputs, pool = self._scored(X)
        n = whole_number(size, "size", 1)
        drawn = inputs.family.draws(pool, n, rng=generator_of(rng), running=Running(self.n_jobs))
        rows = [
            self.model_.outputs(Parts.joined([drawn.of(i * n + k) for i in range(example_count(X))]), inputs)
            for k in range(n)
        ]
        return [list(outputs) for outputs in zip(*rows, strict=True)]

    def log_likelihood(self, X: Any, y: Any) -> FloatArray:
        """``float64[n_examples]``: the log-probability of each output given its input."""
        check_is_fitted(self, "model_")
        batch = self.model_.encode(X, y)
        pool, running = batch.pool(self.weights_), Running(self.n_jobs)
        log_z = batch.family.sums(pool, running=running).log_partition
        if batch.parts is not None:
            return np.asarray(batch.parts.scores(pool) - log_z)
        return np.asarray(batch.sums(pool, clamped=True, running=running).log_partition - log_z)

    def score(self, X: Any, y: Any) -> float:
        """How much of the outputs is predicted right; the model says what is counted."""
        found = self.predict(X)  # which says so where nothing was fitted
        return self.model_.accuracy(y, found)
