"""Minimise an objective with penalties by a solver of choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.solvers.checkpoint import Checkpoint, Keeper
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.minimum import Callback, Minimum
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.problem import Problem
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.steepest_descent import SteepestDescent
from markovfield.learning.solvers.stochastic import AdaGrad, Adam, StochasticGradient

__all__ = ["SOLVERS", "Solver", "solve", "solver_of"]

Solver = LBFGS | SteepestDescent | ProximalGradient | StochasticGradient | AdaGrad | Adam
SOLVERS: dict[str, type[Solver]] = {
    "lbfgs": LBFGS,
    "owlqn": LBFGS,
    "steepest_descent": SteepestDescent,
    "proximal_gradient": ProximalGradient,
    "fista": ProximalGradient,
    "sgd": StochasticGradient,
    "adagrad": AdaGrad,
    "adam": Adam,
}
# A last step below this share of the weights is that of weights which have arrived.
ARRIVED = 1e-3
# How much farther than they are weights are moved to see whether the objective goes on falling; not before so many
# iterations, unless it seems to have converged.
PROBES, SOME = (30.0, 1e6), 20


def solver_of(solver: Any) -> Solver:
    """A solver by its name, or itself.

    Examples
    --------
    >>> solver_of("lbfgs").memory
    10
    >>> solver_of("newton")
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: solver must be one of 'lbfgs', 'owlqn', ..., or such an object, got 'newton'
    """
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if isinstance(solver, Solver):
        return solver
    names = ", ".join(map(repr, SOLVERS))
    raise ModelError(f"solver must be one of {names}, or such an object, got {solver!r}")


def solve(
    objective: Any,
    start: npt.ArrayLike,
    *,
    solver: str | Solver = "lbfgs",
    penalty: Penalty | None = None,
    rng: Any = None,
    running: Running | None = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> Minimum:
    """Minimise ``objective`` with ``penalty``, from ``start``.

    Whatever goes wrong with an objective, the weights of the answer are finite and its message says what happened: a
    line search that fails, values that are not finite, weights that run away because there is no minimum.

    Parameters
    ----------
    objective
        ``objective(w) -> (value, gradient)``. What it raises to stop (`TimeoutError`, `StoppedError`,
        `KeyboardInterrupt`) ends the work with the weights after the last iteration. Stochastic solvers take a
        `NoisyObjective`, or a function of weights and a generator that gives a noisy gradient.
    solver
        A name (``"lbfgs"``, ``"steepest_descent"``, ``"proximal_gradient"``; ``"sgd"``, ``"adagrad"``, ``"adam"``) or
        an object with settings.
    rng
        For stochastic solvers: a seed, a generator or None.
    running
        Threads, a time limit, and a callback that is told a `Progress` after each iteration.
    callback
        Told the iteration, the objective and the weights after each iteration; a true answer stops.
    checkpoint
        A file to write the state to now and then, and to go on from when it is there.

    Examples
    --------
    >>> import numpy as np
    >>> found = solve(lambda w: (float(((w - 1) ** 2).sum()), 2 * (w - 1)), np.zeros(3), penalty=Penalty(l2=2.0))
    >>> found.weights.round(6).tolist(), found.message
    ([0.5, 0.5, 0.5], 'the gradient vanishes')
    """
    chosen = solver_of(solver)
    w = np.array(start, np.float64)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ModelError(f"start must be a vector of finite numbers, got shape {w.shape}")
    penalty = Penalty() if penalty is None else penalty
    penalty.check(len(w))
    problem = Problem(
        objective, w, penalty, running or Running(1), Keeper(checkpoint, chosen.name), generator_of(rng), callback
    )
    found = chosen.run(problem)
    if problem.ending:
        return replace(found, converged=False, message=problem.ending)
    return found if isinstance(chosen, StochasticGradient | AdaGrad | Adam) else _with_diagnosis(problem, found)


def _with_diagnosis(problem: Problem, found: Minimum) -> Minimum:
    """Say so where the objective goes on falling in the direction of the last step, however far."""
    assert problem.last is not None
    new, old = problem.last
    moved = new - old
    largest = float(np.abs(moved).max(initial=0.0))
    size = max(1.0, float(np.linalg.norm(found.weights)))
    early = found.iterations < (2 if found.converged else SOME)
    if early or not np.isfinite(found.value) or largest < ARRIVED * size:
        return found
    # What has all but arrived does not belong to the direction of those that run away.
    moved = np.where(np.abs(moved) < ARRIVED * largest, 0.0, moved)
    try:
        for far in PROBES:
            farther = found.weights + far * size * moved / np.linalg.norm(moved)
            with np.errstate(all="ignore"):
                value = problem.smooth(farther)[0] + problem.penalty.kinked(farther)
            if not value <= found.value:
                return found
    except STOPS:
        return found
    message = "the objective has no minimum: it goes on falling as weights grow (a penalty l2 gives it one)"
    return replace(found, converged=False, message=message)
