"""The estimator behind conditional models of factor graphs: what it can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.structured.conditional_estimator import ConditionalEstimator
from markovfield.structured.constraints import constrained
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.conditional import example_weights
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.core.reading import example_count, some_examples
from markovfield.structured.hidden_labels import best_labels
from markovfield.structured.prediction import (
    OutputMarginals,
    Outputs,
    best_outputs,
    label_scores,
    least_loss,
    log_likelihoods,
    output_marginals,
    ranked_outputs,
    split_values,
)

__all__ = ["StructuredEstimator"]


class StructuredEstimator(ConditionalEstimator):
    """What all estimators of factor graphs can do; see `StructuredClassifier` for the settings they share."""

    inference: MethodLike
    decoding: MethodLike
    model_: StructuredModel
    # Where labels stand for hidden states, best outputs sum over them, as the likelihood does.
    sums_hidden: ClassVar[bool] = True

    def _batch(self, X: Any, fixed: Any = None, constraints: Any = None) -> tuple[Any, Any]:
        check_is_fitted(self, "model_")
        if fixed is not None:
            example_count(X, fixed)
        inputs = self.model_.inputs(X)
        return inputs, self._encoded(inputs, fixed, constraints)

    def _encoded(self, inputs: Any, fixed: Any, constraints: Any) -> Batch:
        batch = self.model_.encode_inputs(inputs, fixed)
        return batch if constraints is None else constrained(batch, constraints, self.model_.hidden_per_label)

    @property
    def _summed(self) -> int:
        """How many states of a label best outputs sum over."""
        return self.model_.hidden_per_label if self.sums_hidden else 1

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
        if self._summed > 1:
            return self._decode_labels(inputs, batch, running)
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

    def _decode_labels(self, inputs: Any, batch: Batch, running: Running) -> Outputs:
        """The most probable labels; where that takes too long, those of the most probable hidden states."""
        found, per_label = None, self._summed
        exact = self.decoding == "auto" or getattr(resolve(self.decoding, "decode"), "exact", False)
        if exact:
            found = best_labels(batch, self.weights_, per_label, running)
        if found is None:
            states, answer = best_outputs(batch, self.weights_, self.decoding, running)
            labels, method, gap = states // per_label, answer.method, np.inf
        else:
            labels, method, gap = found[0][0], "junction_tree", 0.0
        outputs = self.model_.labelled_outputs(labels, inputs)
        scored = self.model_.encode_inputs(inputs, outputs)
        return Outputs(
            labels=outputs,
            scores=label_scores(scored, self.weights_, "auto", running),
            gap=gap,
            method=method,
            guarantee="lower" if found is None else "exact",
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
        values, _ = output_marginals(batch, self.weights_, self.inference, Running(self.n_jobs), self.rng)
        values, sizes = self._of_labels(values, batch)
        return self.model_.labelled_outputs(least_loss(values, sizes, loss, self.model_.classes), inputs)

    def _of_labels(self, values: FloatArray, batch: Any) -> tuple[FloatArray, Any]:
        """Marginals of labels, and how many labels each variable has."""
        per_label, cards = self.model_.hidden_per_label, batch.structure.cardinalities
        if per_label == 1:
            return values, cards
        return values.reshape(-1, per_label).sum(axis=1), cards // per_label

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
        values, answer = output_marginals(batch, self.weights_, self.inference, running, self.rng)
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

    def predict_n_best(
        self, X: Any, n: int = 5, *, fixed: Any = None, constraints: Sequence[Any] | None = None
    ) -> list[list[tuple[Any, float]]]:
        """For each example its ``n`` best outputs and their scores, best first; exact, for graphs that are narrow.

        ``fixed`` and ``constraints`` are those of `decode`.
        """
        n, per_label = whole_number(n, "n", 1), self._summed if hasattr(self, "model_") else 1
        inputs, _ = self._batch(X, fixed, constraints)
        running, ranked = Running(self.n_jobs), []
        for i in range(example_count(X)):
            own = slice(i, i + 1)
            batch = self._encoded(
                inputs.example(i),
                None if fixed is None else some_examples(fixed, own),
                None if constraints is None else constraints[own],
            )
            if per_label == 1:
                ranked.append(ranked_outputs(batch, self.weights_, n, running))
                continue
            best = best_labels(batch, self.weights_, per_label, running, n)
            if best is None:
                raise ModelError(f"example {i}: its hidden states join too many labels to rank outputs")
            ranked.append(best)
        made = self.model_.outputs if per_label == 1 else self.model_.labelled_outputs
        found: list[list[tuple[Any, float]]] = [[] for _ in ranked]
        for rank in range(max(map(len, ranked))):
            states = np.concatenate([best[min(rank, len(best) - 1)][0] for best in ranked])
            for i, output in enumerate(made(states, inputs)):
                if rank < len(ranked[i]):
                    found[i].append((output, ranked[i][rank][1]))
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
        return [[row[i] for row in rows] for i in range(batch.n_examples)]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of labels that are predicted right (where they are known), over all variables of all examples."""
        check_is_fitted(self, "model_")
        n = example_count(X, y)
        inputs = self.model_.inputs(X)
        truth = self.model_.visible_labels(y, inputs)
        right = self.model_.visible_labels(self.decode(X).labels, inputs) == truth
        weights = np.ones(n) if sample_weight is None else example_weights(sample_weight, n)
        counted = np.where(truth >= 0, np.repeat(weights, np.diff(inputs.variable_offsets)), 0.0)
        if not counted.sum() > 0:
            raise ModelError("there is nothing to score: no label of y is known in an example that counts")
        return float(np.average(right, weights=counted))
