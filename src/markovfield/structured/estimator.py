"""The estimator behind conditional models of factor graphs: what it can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.structured.conditional_estimator import ConditionalEstimator
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.core.reading import example_count
from markovfield.structured.prediction import (
    OutputMarginals,
    Outputs,
    best_outputs,
    constrained,
    least_loss,
    log_likelihoods,
    output_marginals,
    split_values,
)

__all__ = ["StructuredEstimator"]


class StructuredEstimator(ConditionalEstimator):
    """What all estimators of factor graphs can do; see `StructuredClassifier` for the settings they share."""

    inference: MethodLike
    decoding: MethodLike
    model_: StructuredModel

    def _batch(self, X: Any, fixed: Any = None, constraints: Any = None) -> tuple[Any, Any]:
        check_is_fitted(self, "model_")
        inputs = self.model_.inputs(X)
        if fixed is not None:
            example_count(X, fixed)
        batch = self.model_.encode_inputs(inputs, fixed)
        return inputs, batch if constraints is None else constrained(batch, constraints)

    @shows_progress
    def decode(
        self,
        X: Any,
        *,
        fixed: Any = None,
        constraints: Sequence[Any] | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Outputs:
        """The outputs of highest probability, with their scores and a guarantee for all of them together.

        Parameters
        ----------
        X
            A list of inputs.
        fixed
            Shaped like outputs: labels that are known, None where they are to be found.
        constraints
            For each example None or a list of ``(variables, allowed)``: positions within the example, and a table of
            truth values over their labels, or ``"equal"`` or ``"different"``.
        """
        running = Running(self.n_jobs, time_limit, callback)
        inputs, batch = self._batch(X, fixed, constraints)
        states, answer = best_outputs(batch, self.weights_, self.decoding, running)
        return Outputs(
            labels=self.model_.outputs(states, inputs),
            scores=batch.scores(batch.pool(self.weights_), states),
            gap=max(float(answer.gap), 0.0),
            states=states,
            method=answer.method,
            guarantee=answer.guarantee,
            converged=answer.converged,
            iterations=answer.iterations,
            seconds=running.seconds,
        )

    def predict(
        self, X: Any, *, decision: str = "map", loss: Any = None, fixed: Any = None,
        constraints: Sequence[Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Outputs of inputs.

        Parameters
        ----------
        decision
            ``"map"``: the most probable output as a whole. ``"mpm"``: the most probable label of every variable by
            itself, which makes the fewest errors among labels.
        loss
            With ``"mpm"``: a loss that adds up over variables, such as `Hamming` with weights of labels, or a table
            ``[true, predicted]``; labels of least expected loss are taken (Murphy 19.79).
        fixed, constraints
            As those of `decode`.
        """
        if decision == "map":
            if loss is not None:
                raise ModelError("loss is for decision='mpm', whose labels are chosen one by one")
            return self.decode(X, fixed=fixed, constraints=constraints).labels
        if decision != "mpm":
            raise ModelError(f"decision must be 'map' or 'mpm', got {decision!r}")
        inputs, batch = self._batch(X, fixed, constraints)
        values, _ = output_marginals(batch, self.weights_, self.inference, Running(self.n_jobs))
        values, sizes = self._of_labels(values, batch)
        return self.model_.labelled_outputs(least_loss(values, sizes, loss, self.model_.classes), inputs)

    def _of_labels(self, values: FloatArray, batch: Any) -> tuple[FloatArray, Any]:
        """Marginals of labels, and how many labels each variable has."""
        found, cards = self.model_.label_values(values), batch.structure.cardinalities
        return found, cards if len(found) == len(values) else cards // (len(values) // len(found))

    @shows_progress
    def marginals(
        self,
        X: Any,
        *,
        fixed: Any = None,
        constraints: Sequence[Any] | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> OutputMarginals:
        """Posterior probabilities of the labels of every variable, with a guarantee."""
        running = Running(self.n_jobs, time_limit, callback)
        _, batch = self._batch(X, fixed, constraints)
        values, answer = output_marginals(batch, self.weights_, self.inference, running)
        values, sizes = self._of_labels(values, batch)
        return OutputMarginals(
            values=split_values(values, sizes, batch.variable_offsets),
            log_partition=float(answer.log_partition),
            method=answer.method,
            guarantee=answer.guarantee,
            converged=answer.converged,
            iterations=answer.iterations,
            seconds=running.seconds,
        )

    def predict_marginals(self, X: Any, *, fixed: Any = None, constraints: Sequence[Any] | None = None) -> list[Any]:
        """For each example ``float64[n_variables, n_classes]``: probabilities of the labels of every variable."""
        return self.marginals(X, fixed=fixed, constraints=constraints).values

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[Any, float]]]:
        """For each example its ``n`` best outputs and their scores, best first; exact, for graphs that are narrow."""
        check_is_fitted(self, "model_")
        inputs = self.model_.inputs(X)
        tree = resolve("junction_tree", "decode")
        ranked = []
        for i in range(example_count(X)):
            batch = self.model_.encode_inputs(inputs.example(i))
            answer = tree.decode(
                batch.graph(self.weights_), no_evidence(batch.structure), n_best=n, running=Running(self.n_jobs)
            )
            ranked.append(answer.n_best)
        found: list[list[tuple[Any, float]]] = [[] for _ in ranked]
        for rank in range(max(map(len, ranked))):
            states = np.concatenate([best[min(rank, len(best) - 1)].states for best in ranked])
            for i, output in enumerate(self.model_.outputs(states, inputs)):
                if rank < len(ranked[i]):
                    found[i].append((output, ranked[i][rank].score))
        return found

    def log_likelihood(self, X: Any, y: Any, *, time_limit: float | None = None) -> FloatArray:
        """``float64[n_examples]``: the log-probability of each output given its input, by ``inference``."""
        running = Running(self.n_jobs, time_limit)
        check_is_fitted(self, "model_")
        batch = self.model_.encode(X, y)
        return log_likelihoods(batch, self.weights_, self.inference, running)

    def sample(self, X: Any, size: int = 1, *, method: MethodLike = "auto", rng: Any = None) -> list[list[Any]]:
        """For each example ``size`` outputs drawn from its posterior."""
        inputs, batch = self._batch(X)
        from markovfield.inference.verbs import sample

        drawn = sample(batch.graph(self.weights_), size, method=method, rng=rng, n_jobs=self.n_jobs)
        rows = [self.model_.outputs(np.ascontiguousarray(row, np.int32), inputs) for row in drawn.states]
        return [list(outputs) for outputs in zip(*rows, strict=True)]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of labels that are predicted right (where they are known), over all variables of all examples."""
        inputs, batch = self._batch(X)
        truth = self.model_.visible_labels(y, inputs)
        states, _ = best_outputs(batch, self.weights_, self.decoding, Running(self.n_jobs))
        known = truth >= 0
        right = self.model_.visible_labels(self.model_.outputs(states, inputs), inputs) == truth
        weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)[batch.example_of_variable]
        return float(np.average(right[known], weights=weights[known]))
