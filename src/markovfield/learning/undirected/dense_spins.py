"""Maximum pseudo-likelihood of fully connected machines of two-state units, by products of matrices.

With fewer patterns than units by far, weights are sought in the space that the patterns span.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.solve import solve
from markovfield.learning.undirected.fitting import checkpoint_of
from markovfield.models import BoltzmannMachine, Hopfield

__all__ = ["DensePseudoLikelihood", "dense_model", "fit_dense", "hopfield_weights"]

# With fewer patterns than units by this factor, weights are sought in the space that the patterns span: it is worse
# conditioned, so that it has to be much smaller to be the quicker way.
FEWER = 8


class DensePseudoLikelihood:
    """Minus the log-pseudo-likelihood of patterns, plus (l2/2) times the sum of squares of all weights and biases.

    The log-odds of a unit are ``gap * a_s`` with a = y W + b and ``gap`` the difference of its two values, so the loss
    is the sum over patterns and units of log(1 + exp(-gap * sign_s * a_s)): convex in W and b.

    The parameters are the weights themselves, each pair once, where there are many patterns. Where there are few, P
    patterns of n units, they are P n numbers A with W = A'Y + Y'A without its diagonal: gradients and the penalty stay
    in that space, so the minimum lies there too, and an evaluation costs O(P^2 n) instead of O(P n^2).

    Parameters
    ----------
    patterns
        ``float64[P, n]`` of the two values, distinct; the larger is 1.
    counts
        ``float64[P]``: how often each occurs.
    l2
        At least zero.
    biases
        Whether units have biases too.
    few
        Whether to take the second kind of parameters; None to choose by the numbers.
    low
        The smaller value: -1 or 0.
    """

    def __init__(
        self,
        patterns: FloatArray,
        counts: FloatArray,
        l2: float,
        *,
        biases: bool = True,
        few: bool | None = None,
        low: float = -1.0,
    ) -> None:
        self.y, self.counts, self.l2, self.biases = patterns, counts, l2, biases
        self.gap = 1.0 - low
        self.signs = np.where(patterns == 1.0, 1.0, -1.0)
        p, n = patterns.shape
        self.few = p * FEWER <= n if few is None else few
        self.n_weights = p * n if self.few else n * (n - 1) // 2
        self.gram = patterns @ patterns.T if self.few else np.zeros((0, 0))
        self.upper = None if self.few else np.triu_indices(n, 1)

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters: weights, then biases."""
        return self.n_weights + self.y.shape[1] * self.biases

    def weights(self, parameters: FloatArray) -> FloatArray:
        """``float64[n, n]``, symmetric, with a diagonal of zeros."""
        n = self.y.shape[1]
        if self.few:
            half = parameters[: self.n_weights].reshape(-1, n).T @ self.y
            full = half + half.T
            np.fill_diagonal(full, 0.0)
            return full
        full = np.zeros((n, n))
        full[self.upper] = parameters[: self.n_weights]
        return full + full.T

    def bias(self, parameters: FloatArray) -> FloatArray:
        """``float64[n]``."""
        return parameters[self.n_weights :] if self.biases else np.zeros(self.y.shape[1])

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """The loss and its gradient."""
        y = self.y
        if self.few:
            a = parameters[: self.n_weights].reshape(y.shape)
            fields = self._times(a)
            # Sum of squares over pairs = half of <W, W> = <A, Y W>.
            squares = float((a * fields).sum())
            penalty = fields
        else:
            w = parameters[: self.n_weights]
            fields = y @ self.weights(parameters)
            squares, penalty = float(w @ w), w
        b = self.bias(parameters)
        margins = self.gap * self.signs * (fields + b)
        value = float(self.counts @ np.logaddexp(0.0, -margins).sum(axis=1))
        # Derivative by the fields; tanh does not overflow.
        slope = -0.5 * self.gap * self.signs * (1.0 - np.tanh(margins / 2)) * self.counts[:, None]
        if self.few:
            gradient = [(self._times(slope) + self.l2 * penalty).ravel()]
        else:
            both = slope.T @ y
            gradient = [(both + both.T)[self.upper] + self.l2 * penalty]
        if self.biases:
            gradient.append(slope.sum(axis=0) + self.l2 * b)
            squares += float(b @ b)
        return value + 0.5 * self.l2 * squares, np.concatenate(gradient)

    def _times(self, a: FloatArray) -> FloatArray:
        """Y times (A'Y + Y'A without its diagonal), without forming the matrix; it is symmetric as a map of A."""
        diagonal = 2.0 * (a * self.y).sum(axis=0)
        return np.asarray((self.y @ a.T) @ self.y + self.gram @ a - self.y * diagonal)


def dense_model(model: Any) -> bool:
    """Whether a model is fully connected, of two-state units, and all visible."""
    return isinstance(model, Hopfield) or (isinstance(model, BoltzmannMachine) and not model.n_hidden)


def hopfield_weights(
    patterns: FloatArray, l2: float, biases: bool, max_iterations: int, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Weights and biases of a Hopfield network that keeps patterns of -1 and +1.

    ``tolerance`` is of the largest entry of the gradient for each pattern.
    """
    distinct, counts = np.unique(patterns, axis=0, return_counts=True)
    loss = DensePseudoLikelihood(distinct, counts / len(patterns), l2 / len(patterns), biases=biases)
    solver = LBFGS(max_iterations=max_iterations, tolerance=0.0, gradient_tolerance=tolerance)
    found = solve(loss, np.zeros(loss.n_parameters), solver=solver)
    return loss.weights(found.weights), loss.bias(found.weights).copy()


def fit_dense(method: Any, model: Any, table: DataTable, *, running: Running) -> Any:
    """A new machine with the estimated weights and biases."""
    if table.has_missing:
        v = int(np.flatnonzero((table.codes < 0).any(axis=1))[0])
        raise ModelError(
            f"method {method.name!r} needs complete data, but unit {table.variables[v]!r} has missing values"
        )
    distinct = table.distinct()
    low = -1.0 if isinstance(model, Hopfield) else 0.0
    values = np.where(distinct.codes.T == 1, 1.0, low)
    assert distinct.weights is not None
    total = table.total_weight
    loss = DensePseudoLikelihood(values, distinct.weights / total, method.l2 / total, low=low)
    solver = LBFGS(tolerance=1e-13, gradient_tolerance=1e-8) if method.solver == "auto" else method.solver
    planning = running.seconds
    checkpoint = checkpoint_of(method)
    found = solve(loss, np.zeros(loss.n_parameters), solver=solver, running=running, checkpoint=checkpoint)
    made = type(model)(model.shape) if low else type(model)(model.n_visible)
    made.weights, made.biases = loss.weights(found.weights), loss.bias(found.weights)
    made.fit_report = FitReport(
        method=method.name,
        log_likelihood=float("nan"),
        n_rows=table.n_rows,
        total_weight=total,
        n_parameters=model.n_units * (model.n_units + 1) // 2,
        converged=found.converged,
        iterations=found.iterations,
        evaluations=found.evaluations,
        message=found.message,
        history=tuple(-total * value for value in found.history),
        objective=total * found.value,
        objective_name="minus the log-pseudo-likelihood, with penalties",
        gradient_norm=total * found.gradient_norm,
        guarantee="approximate",
        notes=("weights sought in the span of the patterns",) if loss.few else (),
        planning_seconds=planning,
        seconds=running.seconds,
    )
    if low:
        made.patterns = values.astype(np.int8).reshape(-1, *model.shape)
    return made
