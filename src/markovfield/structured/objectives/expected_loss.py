"""Objectives of marginals: the loss expected of predictions (Murphy 19.80), and the likelihood of single labels.

The gradient of a function of marginals is a covariance: the Hessian of log Z times the derivative by the marginals. It
is had by perturbation, from any method whose counts are the gradient of its own log Z (Domke 2010): with v the
derivative, (counts at t + e v - counts at t - e v) / 2e. An evaluation is three runs of inference. Exact methods give
gradients to about nine digits; where a label has a small probability p, to (1e-16 / p)^(2/3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.component_counts import counts_by_component, set_apart
from markovfield.inference.core.counts import is_sampler, resolve_counts
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.inference import choose_inference

__all__ = ["ExpectedLoss", "MarginalLikelihood"]

# How far log-potentials may be moved either way, and how far off counts are by rounding.
SHORTEST, LONGEST = 1e-5, 0.1
ROUNDING = 1e-16
# Messages are the difference of two runs, so they must be sharper than a likelihood needs.
TOLERANCE, SWEEPS = 1e-9, 1000
# Below this an expected loss is as good as none, and its log no better.
SMALLEST = 1e-300

# The value, and the derivative by all marginals.
Slope = tuple[float, FloatArray]


@dataclass(frozen=True)
class ExpectedLoss:
    """The loss expected of an output drawn from the model, of each example; the sum of their logs (Murphy 19.80).

    The loss of an output adds up over variables. Variables whose label is not known cost nothing, whatever they are.
    It is not convex: start from the weights of a likelihood where that is cheap.

    Parameters
    ----------
    loss
        ``"hamming"``: one for each wrong variable. A vector: what a wrong variable costs, by its true class. A matrix:
        ``loss[true, predicted]``, at least 0.
    log
        Whether to sum logs of expected losses, as Murphy does, or the expected losses themselves, the risk.
    inference
        A method of `markovfield.marginals` that has expected counts; ``"auto"`` as for `ConditionalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = ExpectedLoss(log=False).on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (1.5, (9,))
    """

    loss: str | npt.ArrayLike = "hamming"
    log: bool = True
    inference: MethodLike = "auto"

    name: ClassVar[str] = "expected_loss"

    def __post_init__(self) -> None:
        if isinstance(self.loss, str):
            check_method(self, choices={"loss": ("hamming",)})
            return
        table = np.array(self.loss, np.float64)
        if table.ndim == 1:
            table = table[:, None] * (1.0 - np.eye(len(table)))
        square = table.ndim == 2 and table.shape[0] == table.shape[1] and len(table) > 1
        if not square or not np.isfinite(table).all() or (table < 0).any():
            raise ModelError(
                "loss of ExpectedLoss must be 'hamming', a cost for each class, or a square matrix of costs "
                f"[true, predicted] of at least 0, got shape {np.shape(self.loss)}"
            )
        # As tuples: a frozen dataclass is compared and hashed.
        object.__setattr__(self, "loss", tuple(map(tuple, table.tolist())))

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> ValueOfMarginals:
        """The function of weights."""
        costs = self._costs(batch)
        example = np.repeat(batch.example_of_variable, batch.structure.cardinalities)
        weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights
        costly = np.bincount(example, costs, batch.n_examples) > 0

        def value(marginals: FloatArray) -> Slope:
            risks = np.bincount(example, costs * marginals, batch.n_examples)
            if not self.log:
                return float(weights @ risks), weights[example] * costs
            some = risks > SMALLEST
            logs = np.log(risks, where=some, out=np.full(len(risks), np.log(SMALLEST)))
            logs[~costly] = 0.0
            slopes = np.divide(weights, risks, where=some, out=np.zeros(len(risks)))
            return float(weights @ logs), slopes[example] * costs

        return ValueOfMarginals(batch, _method_of(self.inference, batch, running), value, running, rng)

    def _costs(self, batch: Batch) -> FloatArray:
        """What each state of each variable costs, given its label."""
        s, labels = batch.structure, batch.labels
        known = np.repeat(labels >= 0, s.cardinalities)
        state = np.arange(len(known)) - np.repeat(s.value_offsets[:-1], s.cardinalities)
        true = np.repeat(labels, s.cardinalities)
        if isinstance(self.loss, str):
            return (known & (state != true)).astype(np.float64)
        table = np.array(self.loss)
        other = np.flatnonzero((s.cardinalities != len(table)) & (labels >= 0))
        if len(other):
            i = int(batch.example_of_variable[other[0]])
            raise ModelError(
                f"example {i}: a variable has {int(s.cardinalities[other[0]])} states, and the loss is a table of "
                f"{len(table)} classes"
            )
        return np.where(known, table[np.maximum(true, 0), np.minimum(state, len(table) - 1)], 0.0)


@dataclass(frozen=True)
class MarginalLikelihood:
    """Minus the sum over variables of the log-probability of the label of each by itself.

    It trains the marginals that predictions variable by variable are made from (Kakade, Teh and Roweis 2002). Variables
    whose label is not known are summed over and count for nothing. With one variable in each example it is the
    likelihood.

    Parameters
    ----------
    inference
        A method of `markovfield.marginals` that has expected counts; ``"auto"`` as for `ConditionalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = MarginalLikelihood().on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (2.0794, (9,))
    """

    inference: MethodLike = "auto"

    name: ClassVar[str] = "marginal_likelihood"

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> ValueOfMarginals:
        """The function of weights."""
        s = batch.structure
        known = np.flatnonzero(batch.labels >= 0)
        at = s.value_offsets[known] + batch.labels[known]
        weights = np.ones(len(known)) if batch.weights is None else batch.weights[batch.example_of_variable[known]]

        def value(marginals: FloatArray) -> Slope:
            seen = np.maximum(marginals[at], SMALLEST)
            slope = np.zeros(len(marginals))
            slope[at] = -weights / seen
            return -float(weights @ np.log(seen)), slope

        return ValueOfMarginals(batch, _method_of(self.inference, batch, running), value, running, rng)


def _method_of(inference: MethodLike, batch: Batch, running: Running) -> Any:
    if inference == "auto":
        method = choose_inference(batch.structure, batch.variable_offsets, running, batch.wide_inference)
        if not hasattr(method, "tolerance"):
            return method
        return replace(method, tolerance=TOLERANCE, max_iterations=SWEEPS)
    method = resolve_counts(inference)
    if is_sampler(method):
        raise ModelError(
            f"{method.name} samples, and a difference of two sampled expectations is noise; "
            "use a method with messages, such as tree_reweighted"
        )
    return method


class ValueOfMarginals:
    """A function of the marginals of a batch and its gradient by the weights.

    Attributes
    ----------
    method, guarantee, converged
        What infers; the guarantee of the last log Z; whether all inference so far came to its end.
    """

    def __init__(
        self, batch: Batch, method: Any, value: Callable[[FloatArray], Slope], running: Running, rng: Any
    ) -> None:
        self.batch, self.method, self.value, self.running, self.rng = batch, method, value, running, rng
        if batch.possible is not None:
            raise ModelError("hidden states of labels are summed over by the likelihood alone: objective='likelihood'")
        self.guarantee, self.converged = "exact", True
        # Each example is moved by a step of its own, so that no two may share a cell.
        examples = np.arange(batch.n_examples)
        self.apart = set_apart(batch.structure, batch.variable_offsets, examples)
        self.structure = _with_marginals(self.apart.structure)
        self._example = np.repeat(batch.example_of_variable, batch.structure.cardinalities)
        self._last: Any = None

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        batch, apart = self.batch, self.apart
        n_cells = apart.structure.n_cells
        pool = np.concatenate([batch.pool(w)[apart.origin], np.zeros(len(self._example))])
        counts, self._last = self._counts(pool, self._last)
        value, slope = self.value(counts[n_cells:])
        steps = self._steps(slope)
        moved = []
        for sign in (1.0, -1.0):
            pool[n_cells:] = sign * steps[self._example] * slope
            moved.append(self._counts(pool, self._last)[0][:n_cells])
        cells = (moved[0] - moved[1]) / (2.0 * steps[apart.marks.astype(np.int64)])
        return value, batch.adjoint(apart.joined(cells, batch.structure.n_cells))

    def _steps(self, slope: FloatArray) -> FloatArray:
        """How far each example is moved along its slope.

        A difference of counts is off by the square of how far log-potentials move, and by rounding over the step. Where
        a slope is large, it is that of a probability that is small and takes longer steps: the best is a cube root.
        """
        largest = np.zeros(self.batch.n_examples)
        np.maximum.at(largest, self._example, np.abs(slope))
        blur = ROUNDING if self.guarantee == "exact" else max(ROUNDING, getattr(self.method, "tolerance", 0.0))
        moved = np.clip(np.cbrt(blur * np.maximum(1.0, largest)), SHORTEST, LONGEST)
        return np.divide(moved, largest, where=largest > 0, out=np.ones(len(largest)))

    def _counts(self, pool: FloatArray, init: Any) -> tuple[FloatArray, Any]:
        """Expected counts, with the marginals behind them, and the answer to start the next run from."""
        s = self.structure
        graph = FactorGraph(s, pool, marks_hold=True)
        found = counts_by_component(
            self.method, graph, no_evidence(s), [0, s.n_variables], running=self.running.quiet, init=init, rng=self.rng
        )
        graph.cache.clear()  # what was worked out for it refers to it
        self.guarantee, self.converged = found.answer.guarantee, self.converged and found.answer.converged
        return found.counts, found.answer if "init" in self.method.abilities else None


def _with_marginals(s: Structure) -> Structure:
    """The structure with a factor more for each variable, whose counts are its marginals, behind the others' cells."""
    n, values = s.n_variables, s.value_offsets
    return Structure.from_arrays(
        s.cardinalities,
        np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 1 + np.arange(n)]),
        np.concatenate([s.scopes, np.arange(n)]),
        np.concatenate([s.table_offsets, s.n_cells + values[:-1]]),
        np.concatenate([s.table_strides, np.ones(n, np.int64)]),
        n_cells=s.n_cells + int(values[-1]),
        kind=np.concatenate([s.kind, np.zeros(n, np.int8)]),
    )
