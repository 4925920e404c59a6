"""Markov chains that follow the parameters: stochastic maximum likelihood and contrastive divergence (Murphy 19.5.5).

Both climb along the features of the data less those of samples. Stochastic maximum likelihood (algorithm 19.1, with the
sign that ascends) lets its chains run on from step to step; contrastive divergence starts them at the data each time.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import STOPS, Running
from markovfield.kernels.interpreter import small
from markovfield.kernels.random import streams
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.undirected.fitting import penalty_of, reported
from markovfield.learning.undirected.local_fit import likelihood_if_cheap
from markovfield.learning.undirected.problem import Problem, site_layout
from markovfield.learning.undirected.sites_kernel import count_cells, gibbs_sweeps
from markovfield.learning.undirected.slice_chains import SliceMoves
from markovfield.models import LogLinear

__all__ = ["SAMPLERS", "fit_stochastic"]

# Chains are cut into so many shards, each with its own random streams, whatever the number of threads.
SHARDS = 4
SAMPLERS = ("gibbs", "mc_sat")
# Batches of rows whose moments say how much each feature varies, and of steps whose averages give standard errors.
BATCHES = 32
States = npt.NDArray[np.int16]


class Trace(NamedTuple):
    """Standard errors of averaged parameters, from averages of batches of steps, and the parameters at their ends."""

    standard_errors: FloatArray
    batch_means: FloatArray


class Chains:
    """Rows of states that Gibbs sweeps move, the same variables in each."""

    def __init__(
        self,
        problem: Problem,
        states: States,
        free: npt.NDArray[np.int64],
        steps: int,
        rng: np.random.Generator,
        sampler: str = "gibbs",
    ) -> None:
        self.problem, self.states, self.free = problem, np.ascontiguousarray(states), free
        self.layout = site_layout(problem.structure)
        n = states.shape[1]
        self.random = streams(rng, n)
        self.borders = np.unique(np.linspace(0, n, min(SHARDS, n) + 1).astype(np.int64))
        self.parts = [
            (np.ascontiguousarray(self.states[:, a:b]), self.random[a:b]) for a, b in pairwise(self.borders.tolist())
        ]
        degree = np.diff(self.layout.incident_offsets)[free].sum()
        # Of all steps together, so that kernels are compiled where plain Python would take long.
        self.work = 6.0 * float(degree) * n * steps
        self.slices = SliceMoves(problem.structure, free) if sampler == "mc_sat" else None

    def sweep(self, pool: FloatArray, sweeps: int, running: Running) -> None:
        """Move every row."""
        slices = self.slices
        if slices is not None:

            def move_slices(part: Any) -> int:
                slices.move(slices.at(pool), part[0], part[1], sweeps)
                return 0

            running.side_by_side([partial(move_slices, part) for part in self.parts])
            return

        def move(part: Any) -> int:
            gibbs_sweeps(self.layout, self.problem.structure.is_plain, pool, part[0], self.free, sweeps, part[1])
            return 0

        with small(self.work * sweeps):
            running.side_by_side([partial(move, part) for part in self.parts])

    def counts(self, weights: FloatArray) -> FloatArray:
        """Counts of cells over all rows; weights may be empty for ones."""
        total = np.zeros(self.problem.structure.n_cells)
        with small(self.work):
            for (states, _), a, b in zip(self.parts, self.borders[:-1], self.borders[1:], strict=True):
                count_cells(self.layout, states, weights[a:b].copy(), 0, states.shape[1], total)
        return total

    def restart(self, states: States) -> None:
        """Put the rows back to given states."""
        for (part, _), a, b in zip(self.parts, self.borders[:-1], self.borders[1:], strict=True):
            part[:] = states[:, a:b]


def _filled(table: DataTable, rng: np.random.Generator) -> States:
    """States with the missing ones drawn evenly."""
    drawn = (rng.random(table.codes.shape) * table.cardinalities[:, None]).astype(np.int16)
    return np.where(table.codes >= 0, table.codes, drawn).astype(np.int16)


def _clamped(problem: Problem, steps: int, rng: np.random.Generator, sampler: str) -> list[tuple[Chains, FloatArray]]:
    """Chains for incomplete rows, those with the same missing variables together, and their weights."""
    table = problem.incomplete
    if not table.n_rows:
        return []
    patterns, which = np.unique((table.codes < 0).T, axis=0, return_inverse=True)
    made = []
    for i, pattern in enumerate(patterns):
        rows = table.rows(np.flatnonzero(which.ravel() == i))
        assert rows.weights is not None
        made.append((Chains(problem, _filled(rows, rng), np.flatnonzero(pattern), steps, rng, sampler), rows.weights))
    return made


def _variances(problem: Problem) -> FloatArray:
    """How much each feature varies from row to row, from the moments of batches of rows."""
    table, model = problem.complete, problem.model
    n = table.n_rows
    if n < 2:
        return np.maximum(np.abs(problem.moments) / max(problem.total, 1.0), 1.0)
    weights = np.ones(n) if table.weights is None else np.array(table.weights)
    layout = site_layout(problem.structure)
    borders = np.unique(np.linspace(0, n, min(BATCHES, n) + 1).astype(np.int64))
    mean = problem.moments / weights.sum()
    spread = np.zeros(len(model.parameters))
    order = np.random.default_rng(0).permutation(n)
    codes, weights = np.ascontiguousarray(table.codes[:, order]), weights[order]
    for a, b in pairwise(borders.tolist()):
        counts = np.zeros(problem.structure.n_cells)
        with small((b - a) * len(layout.scopes)):
            count_cells(layout, codes, weights, a, b, counts)
        spread += np.square(model.moments(counts) - weights[a:b].sum() * mean)
    each: FloatArray = spread / float(np.square(weights).sum())
    return np.maximum(each, 1e-3 * max(float(each.max(initial=0.0)), 1e-12))


def _standard_errors(means: FloatArray) -> FloatArray:
    """Of the average of successive batch means, which follow each other like an autoregression of order one."""
    n = len(means)
    if n < 4:
        return np.full(means.shape[1:], np.nan)
    apart = means - means.mean(axis=0)
    variance = np.square(apart).sum(axis=0) / (n - 1)
    lag = (apart[1:] * apart[:-1]).sum(axis=0) / np.maximum(np.square(apart).sum(axis=0), 1e-300)
    # The estimate of a correlation from so few is too small by about (1 + 4 rho) / n.
    rho = np.clip(lag + (1.0 + 4.0 * lag) / n, 0.0, 0.97)
    return np.asarray(np.sqrt(variance / n * (1.0 + rho) / (1.0 - rho)))


def fit_stochastic(method: Any, given: Any, table: DataTable, *, persistent: bool, rng: Any, running: Running) -> Any:
    """A new model at the average of the parameters over the last half of the steps."""
    problem = Problem(LogLinear.of(given), table, running)
    model, total = problem.model, problem.total
    penalty = penalty_of(model, method, total)
    seen_moments = problem.moments / total
    clamped = _clamped(problem, method.n_steps, rng, method.sampler)
    everything = np.arange(problem.structure.n_variables)
    source = _filled(problem.table, rng)
    weights = problem.table.weights
    assert weights is not None
    picked = rng.choice(len(weights), method.n_chains, p=weights / weights.sum())
    chains = Chains(problem, source[:, picked], everything, method.n_steps, rng, method.sampler)
    variance = _variances(problem) if problem.complete.n_rows else np.ones(len(model.parameters))
    theta = np.array(model.parameters)
    planning = running.seconds
    half = method.n_steps // 2
    sums, batches, sizes = np.zeros(len(theta)), np.zeros((BATCHES, len(theta))), np.zeros(BATCHES)
    message, done, quiet = f"{method.n_steps} steps", 0, running.quiet
    history: list[float] = []
    try:
        for step in range(method.n_steps):
            pool = model.log_tables(theta)
            data = seen_moments
            for part, weight in clamped:
                part.sweep(pool, method.sweeps, quiet)
                data = data + model.moments(part.counts(weight)) / total
            if not persistent:
                picked = rng.choice(len(weights), method.n_chains, p=weights / weights.sum())
                chains.restart(source[:, picked])
            chains.sweep(pool, method.sweeps, quiet)
            drawn = model.moments(chains.counts(np.zeros(0))) / method.n_chains
            rate = method.learning_rate / (1.0 + step / method.decay) ** method.power
            slope = data - drawn - penalty.smooth(theta)[1]
            theta = penalty.prox(theta + rate * slope / variance, rate / variance)
            if not np.isfinite(theta).all() or np.abs(theta).max(initial=0.0) > 1e4:
                raise StoppedError("the parameters ran away: a smaller learning_rate, or a penalty l2, may help")
            done = step + 1
            if step >= half:
                sums += theta
                at = (step - half) * BATCHES // max(1, method.n_steps - half)
                batches[at] += theta
                sizes[at] += 1
            history.append(float(np.linalg.norm(slope)))
            running.check(-history[-1])
    except STOPS as stop:
        if done == 0:
            raise
        message = str(stop) or "stopped by the keyboard"
    ran_away = not np.isfinite(theta).all() or np.abs(theta).max(initial=0.0) > 1e4
    mean = sums / sizes.sum() if sizes.any() else (np.zeros(len(theta)) if ran_away else theta)
    whole = sizes > 0
    means = batches[whole] / sizes[whole, None]
    errors = _standard_errors(means)
    norm = float(np.mean(history[-max(1, len(history) // 10) :])) if history else float("nan")
    converged = done == method.n_steps
    found = Minimum(mean, float("nan"), norm, done, done, converged, message, (), running.seconds)
    return reported(
        method,
        given,
        problem,
        found,
        log_likelihood=likelihood_if_cheap(problem, mean),
        objective_name="none: steps follow estimates of the likelihood's gradient",
        guarantee="approximate",
        planning_seconds=planning,
        details=Trace(errors, means),
        notes=(method.meaning,),
    )
