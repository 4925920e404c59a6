"""Running a plan: choose the algebra, collect, distribute, and fall back to log space where linear space underflows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.core.answers import Components
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.blocks_kernel import IMPOSSIBLE, LINEAR, LOG_MAX, LOG_SUM, UNDERFLOW
from markovfield.inference.junction_tree.collect_kernel import collect, messages_needed
from markovfield.inference.junction_tree.distribute_kernel import distribute
from markovfield.inference.junction_tree.plan import Plan
from markovfield.inference.junction_tree.queries_kernel import clique_table
from markovfield.inference.problem.potentials_kernel import scale_likelihoods
from markovfield.inference.problem.problem import Problem
from markovfield.kernels.interpreter import small

__all__ = ["Propagation", "propagate"]

LN2 = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Propagation:
    """A collected, and where asked for distributed, clique tree.

    Attributes
    ----------
    value
        log of the total (sum), or the best score (max).
    marginals
        ``float64``: probabilities (sum) or max-marginals less the score (max) of the reduced variables' states;
        empty after an upward pass alone.
    counts
        Expected counts of the reduced pool's cells; empty unless asked for.
    message, ratio
        Upward messages; beliefs of separators over them.
    totals, exponents
        For roots (linear space): the total is ``totals[c] * 2 ** exponents[c]``.
    """

    plan: Plan
    problem: Problem
    log_space: bool
    value: float
    marginals: FloatArray
    counts: FloatArray
    pool: FloatArray
    likelihood: FloatArray
    active: npt.NDArray[np.bool_]
    needed: npt.NDArray[np.bool_]
    message: FloatArray
    ratio: FloatArray
    totals: FloatArray
    exponents: npt.NDArray[np.int64]

    def count(self) -> int:
        """The total as an integer: exact where no partial sum had more than 53 significant bits."""
        assert not self.log_space
        result = 1
        for c in self.plan.roots.tolist():
            result *= round(Fraction(float(self.totals[c])) * Fraction(2) ** int(self.exponents[c]))
        return result

    def components(self) -> Components:
        """The connected components, each with the log of its total."""
        plan, problem, s = self.plan, self.problem, self.problem.structure
        of_variables, of_factors = np.zeros(s.n_variables), np.zeros(s.n_factors)
        root = plan.layout.axis_variable[plan.layout.axis_offsets[plan.roots]]
        totals = self.totals[plan.roots]
        of_variables[root] = totals if self.log_space else np.log(totals) + self.exponents[plan.roots] * LN2
        if not self.log_space:
            of_factors[plan.layout.home >= 0] = problem.potentials.shift
        of_factors[plan.homeless] = problem.base_values[plan.homeless]
        if len(problem.likelihood):
            # What scaling took out of likelihoods; those of variables with one state are in no clique.
            taken = problem.active & ((s.cardinalities == 1) | (not self.log_space))
            of_variables[taken] += np.maximum.reduceat(problem.likelihood, plan.value_offsets[:-1])[taken]
        return problem.components(of_factors, of_variables)

    def belief(self, clique: int) -> FloatArray:
        """Joint distribution of a clique's variables, axes in the clique's order, normalised."""
        lay = self.plan.layout
        table = np.empty(int(lay.size[clique]))
        with small(self.plan.operations):
            clique_table(
                lay, clique, self.log_space, self.pool, self.problem.potentials.high, self.message, self.likelihood,
                self.active, self.needed, self.ratio, True, table,
            )  # fmt: skip
        if self.log_space:
            table = np.exp(table - table.max())
        table /= table.sum()
        return table.reshape(lay.axis_card[lay.axis_offsets[clique] : lay.axis_offsets[clique + 1]])


class _Steps:
    """The passes cut into kernel calls: subtrees side by side on threads, then the top of the trees."""

    def __init__(self, plan: Plan, running: Running) -> None:
        self.plan, self.running = plan, running

    def up(self, run: Callable[[Any], int]) -> int:
        """Collect: subtrees first, the top after them."""
        parts, top = self.plan.parts(upward=True)
        status = self.running.side_by_side([partial(run, part) for part in parts])
        for piece in top:
            status = status or self.running.alone(partial(run, piece))
        return status

    def down(self, run: Callable[[Any, FloatArray], int], tallies: FloatArray) -> int:
        """Distribute: the top first. Every part tallies counts for itself; they are added up in order."""
        parts, top = self.plan.parts(upward=False)
        status = 0
        for piece in top:
            status = status or self.running.alone(partial(run, piece, tallies))
        # Where no two parts read a cell, as in a union of many graphs, one array serves all of them.
        one = not len(tallies) or self.plan.parts_read_apart
        own = [tallies if one else np.zeros(len(tallies)) for _ in parts]
        tasks = [partial(run, part, tally) for part, tally in zip(parts, own, strict=True)]
        status = status or self.running.side_by_side(tasks)
        for tally in [] if one else own:
            tallies += tally
        return status


def propagate(
    plan: Plan,
    problem: Problem,
    *,
    operation: str = "sum",
    downward: bool = True,
    counts: bool = False,
    log_space: bool = False,
    decode: npt.NDArray[np.bool_] | None = None,
    running: Running | None = None,
) -> Propagation:
    """Run a plan on a problem.

    Parameters
    ----------
    operation
        ``"sum"``, or ``"max"`` (log space).
    decode
        With ``"max"``: ``bool[variables]``, which variables are maximised; the others are summed (marginal MAP).
    log_space
        Go to log space at once; otherwise only where linear space would underflow.
    running
        Threads, time limit and callback.
    """
    steps = _Steps(plan, running or Running())
    constant = _constants(plan, problem)
    with small(plan.operations):
        if operation == "sum" and not log_space and problem.potentials.safe:
            result = _linear(plan, problem, steps, constant, downward, counts)
            if result is not None:
                return result
        return _logarithmic(plan, problem, steps, constant, operation, downward, counts, decode)


def _constants(plan: Plan, problem: Problem) -> float:
    """Sum of the factors that no free variable is left in, and of the likelihoods of variables with one state."""
    constant = 0.0
    if len(plan.homeless):
        constant = float(problem.potentials.log_tables[problem.structure.table_offsets[plan.homeless]].sum())
    if len(problem.likelihood):
        alone = np.flatnonzero(problem.active & (problem.structure.cardinalities == 1))
        constant += float(problem.likelihood[plan.value_offsets[alone]].sum())
    if constant == -np.inf:
        raise problem.impossible()
    return constant


def _linear(
    plan: Plan, problem: Problem, steps: _Steps, constant: float, downward: bool, counts: bool
) -> Propagation | None:
    lay = plan.layout
    n = plan.n_cliques
    pool = problem.potentials
    active = problem.active
    if len(problem.likelihood):
        likelihood = np.empty(len(problem.likelihood))
        variable_low = np.zeros(problem.structure.n_variables)
        active = active & (problem.structure.cardinalities > 1)
        taken, safe = scale_likelihoods(problem.likelihood, plan.value_offsets, active, likelihood, variable_low)
        if taken == -np.inf:
            raise problem.impossible()
        if not safe:
            return None
    else:
        likelihood, variable_low, taken = problem.likelihood, pool.low, 0.0
    needed = messages_needed(lay, active) if pool.shift == 0.0 else np.ones(n, np.bool_)
    message = np.empty(int(lay.message_offset[-1]))
    message_low, totals, exponents = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    operations = np.zeros(n, np.int8)
    roots = not downward or counts
    status = steps.up(
        lambda cliques: collect(
            lay, cliques, operations, False, roots, pool.linear, pool.low, pool.high, likelihood, active,
            variable_low, needed, message, message_low, totals, exponents,
        )
    )  # fmt: skip
    marginals = ratio = tallies = np.zeros(0)
    if status == 0 and downward:
        marginals = np.zeros(int(plan.value_offsets[-1]))
        ratio = np.zeros(len(message))
        tallies = np.zeros(len(pool.linear) if counts else 0)
        status = steps.down(
            lambda cliques, tally: distribute(
                lay, cliques, LINEAR, pool.linear, pool.low, pool.high, likelihood, active, variable_low, needed,
                message, message_low, ratio, totals, exponents, not roots, marginals, tally, counts,
            ),
            tallies,
        )  # fmt: skip
        if len(plan.fixed_values):
            marginals[plan.fixed_values] = 1.0
    # Totals near the smallest float have no reciprocal: what was divided by one of them is done again in logs.
    if status == UNDERFLOW or (counts and not math.isfinite(float(tallies.sum()))):
        return None
    if status == IMPOSSIBLE:
        raise problem.impossible()
    n_inside = int(np.count_nonzero(lay.home >= 0)) if pool.shift else 0
    roots_at = plan.roots
    if len(roots_at) == 1:
        value, exponent = math.log(totals[roots_at[0]]), int(exponents[roots_at[0]])
    else:
        value, exponent = float(np.log(totals[roots_at]).sum()), int(exponents[roots_at].sum())
    value += exponent * LN2 + n_inside * pool.shift + taken + constant
    if counts:
        np.add.at(tallies, problem.structure.table_offsets[plan.homeless], 1.0)
    return Propagation(
        plan,
        problem,
        False,
        value,
        marginals,
        tallies,
        pool.linear,
        likelihood,
        active,
        needed,
        message,
        ratio,
        totals,
        exponents,
    )


def _logarithmic(
    plan: Plan,
    problem: Problem,
    steps: _Steps,
    constant: float,
    operation: str,
    downward: bool,
    counts: bool,
    decode: npt.NDArray[np.bool_] | None,
) -> Propagation:
    lay = plan.layout
    n = plan.n_cliques
    pool = problem.potentials
    active = problem.active & (problem.structure.cardinalities > 1)
    algebra = LOG_SUM if operation == "sum" else LOG_MAX
    operations = np.full(n, algebra, np.int8)
    if decode is not None and n:
        first = lay.axis_variable[lay.axis_offsets[:-1]]
        operations[~decode[first]] = LOG_SUM
    needed = np.ones(n, np.bool_)
    message = np.empty(int(lay.message_offset[-1]))
    message_low, totals, exponents = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    likelihood: Any = problem.likelihood
    status = steps.up(
        lambda cliques: collect(
            lay, cliques, operations, True, True, pool.log_tables, pool.low, pool.high, likelihood, active,
            pool.low, needed, message, message_low, totals, exponents,
        )
    )  # fmt: skip
    if status == IMPOSSIBLE:
        raise problem.impossible()
    marginals = ratio = tallies = np.zeros(0)
    if downward:
        fill = 0.0 if algebra == LOG_SUM else -np.inf
        marginals = np.full(int(plan.value_offsets[-1]), fill)
        ratio = np.full(len(message), fill)
        tallies = np.zeros(len(pool.log_tables) if counts else 0)
        steps.down(
            lambda cliques, tally: distribute(
                lay, cliques, algebra, pool.log_tables, pool.low, pool.high, likelihood, active, pool.low, needed,
                message, message_low, ratio, totals, exponents, False, marginals, tally, counts,
            ),
            tallies,
        )  # fmt: skip
        if algebra == LOG_MAX:
            _subtract_tree_scores(plan, totals, marginals)
        marginals[plan.fixed_values] = 1.0 if algebra == LOG_SUM else 0.0
        if counts:
            np.add.at(tallies, problem.structure.table_offsets[plan.homeless], 1.0)
    value = float(totals[plan.roots].sum()) + constant
    return Propagation(
        plan,
        problem,
        True,
        value,
        marginals,
        tallies,
        pool.log_tables,
        likelihood,
        active,
        needed,
        message,
        ratio,
        totals,
        exponents,
    )


def _subtract_tree_scores(plan: Plan, totals: FloatArray, marginals: FloatArray) -> None:
    """Make max-marginals relative to the best score of their own tree, so that one number places them all."""
    lay = plan.layout
    roots = plan.roots
    root_of = roots[np.searchsorted(roots, np.arange(plan.n_cliques), side="right") - 1] if plan.n_cliques else roots
    offsets, variables = lay.axis_offsets, lay.axis_variable
    clique_of_axis = np.repeat(np.arange(plan.n_cliques), np.diff(offsets))
    best = np.zeros(plan.structure.n_variables)
    best[variables] = totals[root_of[clique_of_axis]]
    marginals -= np.repeat(best, plan.structure.cardinalities)
