"""Maximum pseudo-likelihood of a fully connected network of spins -1 and +1 (Hopfield, Murphy 19.4.2 and 19.5.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["PseudoLikelihood", "fit_weights"]

FloatArray = npt.NDArray[np.float64]
# With fewer patterns than neurons by this factor, weights are sought in the space that the patterns span: it is worse
# conditioned, so that it has to be much smaller to be the quicker way.
FEWER = 8


class PseudoLikelihood:
    """Minus the log-pseudo-likelihood of patterns, plus (l2/2) times the sum of squares of all weights and biases.

    Each neuron's full conditional is sigm(2 y_s a_s) with a = y W + b, so the loss is the sum over patterns and
    neurons of log(1 + exp(-2 y_s a_s)): convex in W and b.

    The parameters are the weights themselves, each pair once, where there are many patterns. Where there are few, P
    patterns of n neurons, they are P n numbers A with W = A'Y + Y'A without its diagonal: gradients and the penalty
    stay in that space, so the minimum lies there too, and an evaluation costs O(P^2 n) instead of O(P n^2).

    Parameters
    ----------
    patterns
        ``float64[P, n]`` of -1 and +1, distinct.
    counts
        ``float64[P]``: how often each occurs.
    l2
        At least zero.
    biases
        Whether neurons have biases too.
    few
        Whether to take the second kind of parameters; None to choose by the numbers.
    """

    def __init__(
        self, patterns: FloatArray, counts: FloatArray, l2: float, *, biases: bool, few: bool | None = None
    ) -> None:
        self.y, self.counts, self.l2, self.biases = patterns, counts, l2, biases
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
            full = self.weights(parameters)
            fields = y @ full
            squares, penalty = float(w @ w), w
        b = self.bias(parameters)
        margins = 2.0 * y * (fields + b)
        value = float(self.counts @ np.logaddexp(0.0, -margins).sum(axis=1))
        # Derivative by the fields; tanh does not overflow.
        slope = -y * (1.0 - np.tanh(margins / 2)) * self.counts[:, None]
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


class Fitted(NamedTuple):
    """Weights, biases, and what the minimiser says."""

    weights: FloatArray
    biases: FloatArray
    loss: float
    iterations: int
    converged: bool


def fit_weights(patterns: FloatArray, l2: float, *, biases: bool, max_iterations: int, tolerance: float) -> Fitted:
    """The minimum by L-BFGS; ``tolerance`` is of the largest entry of the gradient, for each pattern."""
    from scipy.optimize import minimize

    distinct, counts = np.unique(patterns, axis=0, return_counts=True)
    loss = PseudoLikelihood(distinct, counts.astype(np.float64), l2, biases=biases)
    options = {"maxiter": max_iterations, "gtol": tolerance * len(patterns), "ftol": 0.0}
    found = minimize(loss, np.zeros(loss.n_parameters), jac=True, method="L-BFGS-B", options=options)
    weights, bias = loss.weights(found.x), loss.bias(found.x).copy()
    return Fitted(weights, bias, float(found.fun), int(found.nit), bool(found.success))
