"""Minimum probability flow (Sohl-Dickstein, Battaglino and DeWeese 2011) of restricted Boltzmann machines.

Learning asks that probability which starts at the data should hardly flow away. Between states that differ in one bit,
the flow out of row x is the sum over its flips x' of exp((F(x) - F(x')) / 2), with F the free energy. There is no log Z
in it, and its gradient is exact. Flow towards states that are data themselves counts too: the minimum is then the
distribution of the data wherever the machine can express it, also when every state has been seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.divergence_kernel import RATE, SLOWING, UPDATES, Machine, update
from markovfield.learning.boltzmann.flow_kernel import add_flow
from markovfield.learning.boltzmann.products import product_threads
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.quasi_newton import minimise

__all__ = ["minimise_flow", "probability_flow", "train_by_flow"]

# Operations between two looks at the clock.
BETWEEN_CHECKS = 1e8


def probability_flow(
    parameters: FloatArray,
    rows: FloatArray,
    weights: FloatArray,
    running: Running | None = None,
    order: npt.NDArray[Any] | None = None,
) -> tuple[float, FloatArray]:
    """The flow out of rows, each as often as it weighs, and its gradient.

    Parameters
    ----------
    parameters
        ``float64[n_visible + 1, n_hidden + 1]``: weights, visible biases as last column, hidden biases as last row.
    rows
        ``float64[n_rows, n_visible]`` of 0 and 1.
    order
        Positions of the rows to take; None is all.

    Examples
    --------
    >>> value, gradient = probability_flow(np.zeros((3, 2)), np.array([[0.0, 1.0]]), np.ones(1))
    >>> value, gradient[:2, -1].tolist()
    (2.0, [0.5, -0.5])
    """
    gradient = np.zeros_like(parameters)
    n_visible, n_hidden = (size - 1 for size in parameters.shape)
    inner = np.ascontiguousarray(parameters[:-1, :-1])
    with np.errstate(over="ignore"):
        up, down = np.exp(inner), np.exp(-inner)
    every = np.arange(len(rows)) if order is None else order
    part = max(1, int(BETWEEN_CHECKS / (n_visible * n_hidden)))
    value = 0.0
    for first in range(0, len(every), part):
        value += add_flow(parameters, inner, up, down, rows, weights, every[first : first + part], gradient)
        if running is not None:
            running.check()
    gradient[-1, -1] = 0.0
    return value, gradient


def minimise_flow(
    parameters: FloatArray, rows: FloatArray, weights: FloatArray, l2: float, iterations: int, running: Running
) -> Minimum:
    """The flow of all rows plus the penalty, by L-BFGS; ``weights`` of the answer are the parameters in a row."""
    shape = parameters.shape
    rows = np.ascontiguousarray(rows, np.float64)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        p = flat.reshape(shape)
        value, gradient = probability_flow(p, rows, weights, running)
        value += 0.5 * l2 * float((p[:-1, :-1] ** 2).sum())
        gradient[:-1, :-1] += l2 * p[:-1, :-1]
        return value, gradient.ravel()

    with product_threads(rows.size, running):
        return minimise(objective, parameters.ravel(), max_iterations=iterations, tolerance=1e-7)


def train_by_flow(
    rows: FloatArray,
    weights: FloatArray,
    order: npt.NDArray[Any],
    batch: int,
    machine: Machine,
    steering: FloatArray,
    scalars: FloatArray,
) -> None:
    """Mini-batches of descent on the mean flow of a row."""
    for first in range(0, len(order), batch):
        chosen = order[first : first + batch]
        _, gradient = probability_flow(machine.parameters, rows, weights, order=chosen)
        rate = steering[RATE] / (1.0 + steering[SLOWING] * steering[UPDATES])
        np.multiply(gradient, -rate / len(chosen), out=machine.gradient)
        update(machine, steering, scalars)
