"""Limited-memory BFGS for smooth objectives, and OWL-QN where weights are also to be few (an l1 penalty).

The two-loop recursion runs on inner products instead of vectors (Chen, Wang and Zhou 2014): an iteration reads the
history twice, once to add to it and for all inner products, once to combine it, on threads where vectors are long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import STOPS, Running
from markovfield.kernels.compilations import clock
from markovfield.learning.solvers.checkpoint import State, check_same
from markovfield.learning.solvers.history_products_kernel import add_pair, combine
from markovfield.learning.solvers.minimum import Callback, Minimum, Objective

__all__ = ["DECREASE", "line_search", "minimise"]

# Sufficient decrease and curvature: the constants of strong Wolfe conditions for quasi-Newton steps.
DECREASE, CURVATURE = 1e-4, 0.9
MOST_STEPS = 20
# Entries of vectors handled by one thread at a time.
PART = 2**16


class _History:
    """The last steps and changes of the gradient, and their inner products."""

    def __init__(self, n: int, memory: int, running: Running) -> None:
        self.vectors = np.zeros((2 * memory, n))  # steps, then changes
        self.products = np.zeros((2 * memory, 2 * memory))
        self.along = np.zeros(2 * memory)  # inner products with the slope
        self.memory, self.running = memory, running
        self.length = 0
        self.newest = -1
        self.parts = [(a, min(a + PART, n)) for a in range(0, n, PART)]

    def add(
        self, new: FloatArray, old: FloatArray, gradients: tuple[FloatArray, FloatArray], slope: FloatArray
    ) -> None:
        """Remember a step and the change of the gradient, in place of the oldest.

        A pair without positive curvature is of no use; the oldest is then gone all the same.
        """
        m = self.memory
        at = (self.newest + 1) % m
        found = np.empty((len(self.parts), 3, 2 * m))

        def part(i: int) -> int:
            add_pair(self.vectors, at, new, old, *gradients, slope, *self.parts[i], found[i])
            return 0

        self.running.side_by_side([partial(part, i) for i in range(len(self.parts))])
        with_step, with_change, self.along = found.sum(axis=0)
        self.products[at] = self.products[:, at] = with_step
        self.products[m + at] = self.products[:, m + at] = with_change
        if with_step[m + at] > 1e-300:
            self.newest, self.length = at, min(self.length + 1, m)
        else:
            self.length = min(self.length, m - 1)

    def state(self) -> State:
        """What is remembered."""
        numbers = {"length": self.length, "newest": self.newest, "memory": self.memory}
        return {**numbers, "vectors": self.vectors, "products": self.products, "along": self.along}

    def restore(self, state: State) -> None:
        """Remember what was; another number of steps to remember begins anew."""
        if state["memory"] != self.memory:
            return
        self.length, self.newest = state["length"], state["newest"]
        self.vectors[:] = state["vectors"].reshape(self.vectors.shape)
        self.products[:] = state["products"].reshape(self.products.shape)
        self.along = state["along"].copy()

    def direction(self, slope: FloatArray) -> FloatArray:
        """Minus the inverse Hessian's estimate times the slope that came with the last pair."""
        if not self.length:
            return -slope
        m, products, along = self.memory, self.products, self.along
        # The vector of the recursion is a combination of the history and the slope; only its coefficients move.
        mix, own = np.zeros(2 * m), 1.0
        order = [(self.newest - i) % m for i in range(self.length)]
        alphas = {}
        for i in order:
            alphas[i] = (mix @ products[i] + own * along[i]) / products[i, m + i]
            mix[m + i] -= alphas[i]
        newest = order[0]
        scale = products[newest, m + newest] / products[m + newest, m + newest]
        mix, own = mix * scale, own * scale
        for i in reversed(order):
            beta = (mix @ products[m + i] + own * along[m + i]) / products[i, m + i]
            mix[i] += alphas[i] - beta
        result = np.empty_like(slope)

        def part(a: int, b: int) -> int:
            combine(self.vectors, mix, own, slope, a, b, result)
            return 0

        self.running.side_by_side([partial(part, a, b) for a, b in self.parts])
        return result


def _pseudo_gradient(weights: FloatArray, gradient: FloatArray, l1: FloatArray) -> FloatArray:
    """The steepest one-sided slope of the penalised objective (Andrew and Gao 2007)."""
    right, left = gradient + l1, gradient - l1
    at_zero = np.where(right < 0, right, np.where(left > 0, left, 0.0))
    return np.where(weights > 0, right, np.where(weights < 0, left, at_zero))


def minimise(
    objective: Objective,
    start: FloatArray,
    *,
    l1: float | FloatArray = 0.0,
    memory: int = 6,
    max_iterations: int = 1000,
    tolerance: float = 1e-5,
    gradient_tolerance: float = 1e-5,
    period: int = 10,
    most_steps: int = MOST_STEPS,
    callback: Callback | None = None,
    n_jobs: int | None = 1,
    resume: State | None = None,
    keep: Callable[[Callable[[], State]], None] | None = None,
) -> Minimum:
    """Minimise ``objective(w)[0] + sum(l1 * |w|)``, where the objective gives a value and its gradient.

    An objective that raises `StoppedError` ends it where it is, be it at the start (whose value is nan if it is not
    known yet); one that raises `TimeoutError` or `KeyboardInterrupt` does so from the first iteration on.

    Parameters
    ----------
    l1
        Penalty on the absolute value of each weight, a number or one for each; where it is positive, many weights
        end at exactly zero.
    memory
        Steps remembered; an iteration costs an evaluation and reading 4 * memory vectors.
    tolerance, period
        Converged when the objective fell by less than this, relative to itself, over the last ``period`` iterations.
    gradient_tolerance
        Converged when the gradient's norm is below this times the larger of one and the weights' norm.
    most_steps
        Trials of one line search.
    callback
        Told the iteration, the objective and the weights; a true answer stops.
    n_jobs
        Threads for what is done with long vectors between evaluations; None is all cores. Answers do not depend on it.
    resume, keep
        A state to go on from exactly, and who is offered such states after each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> answer = minimise(lambda w: (float(((w - 1) ** 2).sum()), 2 * (w - 1)), np.zeros(3))
    >>> answer.weights.round(6).tolist(), answer.converged
    ([1.0, 1.0, 1.0], True)
    >>> minimise(lambda w: (float(((w - 1) ** 2).sum()), 2 * (w - 1)), np.zeros(3), l1=1.0).weights.round(6).tolist()
    [0.5, 0.5, 0.5]
    """
    started = clock()
    w = np.array(start, np.float64)
    running = Running(n_jobs)
    penalty = np.broadcast_to(np.asarray(l1, np.float64), w.shape)
    sparse = bool((penalty > 0).any())
    history = _History(len(w), memory, running)
    try:
        value, gradient = objective(w)
    except StoppedError as stop:
        return Minimum(w, float("nan"), float("nan"), 0, 0, False, str(stop), (), clock() - started)
    if sparse:
        value += float(penalty @ np.abs(w))
    evaluations, values = 1, [value]
    message, converged, iteration = f"{max_iterations} iterations", False, 0
    if resume is not None:
        history.restore(resume)
        values, iteration = resume["values"].tolist(), resume["iteration"]
        check_same(value, values)
    slope = _pseudo_gradient(w, gradient, penalty) if sparse else gradient
    norm = float(np.linalg.norm(slope))

    def state() -> State:
        return {"weights": w, "iteration": iteration, "values": np.array(values), **history.state()}

    try:
        if not np.isfinite(value + norm):
            message, max_iterations = "the objective or its gradient is not finite at the start", 0
        while iteration < max_iterations:
            if norm <= gradient_tolerance * max(1.0, float(np.linalg.norm(w))):
                message, converged = "the gradient vanishes", True
                break
            direction = history.direction(slope)
            if sparse:
                direction[direction * slope >= 0] = 0.0
            first = 1.0 if history.length else min(1.0, 1.0 / max(norm, 1e-300))
            if sparse:
                found = _orthant(objective, w, value, slope, direction, first, penalty, most_steps)
            else:
                found = line_search(objective, w, value, gradient, direction, first, most_steps)
            if found is None and history.length:
                history = _History(len(w), memory, running)  # forget a history that leads uphill, and try the gradient
                continue
            if found is None:
                # After some iterations that is what rounding leaves; at the start it is a failure.
                message, converged = "no step lowers the objective further", iteration > 0
                if not converged:
                    message = "no step lowers the objective: its gradient is not that of its value"
                break
            new, new_value, new_gradient, used = found
            evaluations += used
            new_slope = _pseudo_gradient(new, new_gradient, penalty) if sparse else new_gradient
            new_norm = float(np.linalg.norm(new_slope))
            if not np.isfinite(new_value + new_norm):
                message = "the objective or its gradient is not finite where the next step leads"
                break
            history.add(new, w, (new_gradient, gradient), new_slope)
            w, value, gradient, slope, norm = new, new_value, new_gradient, new_slope, new_norm
            iteration += 1
            values.append(value)
            if keep is not None:
                keep(state)
            if callback is not None and callback(iteration, value, w):
                message = "stopped by the callback"
                break
            if iteration >= period and values[-1 - period] - value <= tolerance * abs(value):
                message, converged = f"the objective fell by less than {tolerance:g} in {period} iterations", True
                break
    except STOPS as stop:
        if iteration == 0 and not isinstance(stop, StoppedError):
            raise
        message = str(stop) or "interrupted"
    seconds = clock() - started
    return Minimum(w, value, norm, iteration, evaluations, converged, message, tuple(values[1:]), seconds)


def line_search(
    objective: Objective,
    w: FloatArray,
    value: float,
    gradient: FloatArray,
    direction: FloatArray,
    step: float,
    most_steps: int,
    *,
    curvature: float = CURVATURE,
) -> tuple[FloatArray, float, FloatArray, int] | None:
    """A step of sufficient decrease and curvature: by growing, then by cubic interpolation in a bracket."""
    along = float(gradient @ direction)
    if not along < 0:
        return None
    low, low_value, low_along = 0.0, value, along
    high: tuple[float, float, float] | None = None
    best = None
    for used in range(1, most_steps + 1):
        new = w + step * direction
        new_value, new_gradient = objective(new)
        new_along = float(new_gradient @ direction)
        enough = new_value <= value + DECREASE * step * along and np.isfinite(new_along)
        if not enough or (new_value >= low_value and low > 0):
            high = (step, new_value, new_along)
        else:
            best = (new, new_value, new_gradient, used)
            if abs(new_along) <= curvature * abs(along):
                return best
            if new_along >= 0:
                high = (low, low_value, low_along)
            low, low_value, low_along = step, new_value, new_along
        if high is None:
            step *= 2.0
        else:
            step = _between(low, low_value, low_along, *high)
    # A step so short that nothing falls is none.
    return None if best is None or not best[1] < value else (*best[:3], most_steps)


def _between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """The minimum of the cubic through two values and slopes, kept away from the ends; the middle where it has none."""
    if np.isfinite(fb) and np.isfinite(db) and a != b:
        d1 = da + db - 3 * (fa - fb) / (a - b)
        square = d1 * d1 - da * db
        if square >= 0:
            d2 = np.sign(b - a) * np.sqrt(square)
            below = db - da + 2 * d2
            if below != 0:
                step = b - (b - a) * (db + d2 - d1) / below
                low, high = min(a, b), max(a, b)
                margin = 0.1 * (high - low)
                return float(min(max(step, low + margin), high - margin))
    return (a + b) / 2


def _orthant(
    objective: Objective,
    w: FloatArray,
    value: float,
    slope: FloatArray,
    direction: FloatArray,
    step: float,
    penalty: FloatArray,
    most_steps: int,
) -> tuple[FloatArray, float, FloatArray, int] | None:
    """A step that stays in the orthant the slope points into: weights that would change sign stop at zero."""
    orthant = np.where(w != 0, np.sign(w), -np.sign(slope))
    orthant[penalty == 0] = 0.0
    held = penalty > 0
    for used in range(1, most_steps + 1):
        new = w + step * direction
        new[held & (new * orthant < 0)] = 0.0
        moved = float(slope @ (new - w))
        if not moved < 0:
            return None
        new_value, new_gradient = objective(new)
        new_value += float(penalty @ np.abs(new))
        if new_value <= value + DECREASE * moved:
            return new, new_value, new_gradient, used
        step *= 0.5
    return None
