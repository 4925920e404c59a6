"""Expected counts weighted by a loss, for learning that minimises it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.counts import Counts, resolve_counts, together
from markovfield.inference.core.evidence import Evidence, rows
from markovfield.inference.core.loss_counts import LossCounter
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback
from markovfield.progress import shows_progress

__all__ = ["WeightedCounts", "loss_counts"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class WeightedCounts(Counts):
    """What `loss_counts` answers: log Z and expected counts, and what the loss has to do with them.

    Attributes
    ----------
    expected_loss
        A number, or ``float64[rows]`` where many rows of clamps were given: nan for a row of probability zero.
    weighted, covariance
        ``float64[cells]``, summed over the rows with their weights: the expectation of the loss times the count of each
        cell; and the same less the product of both expectations, which is the derivative of ``expected_loss``.
    """

    expected_loss: Any
    weighted: FloatArray
    covariance: FloatArray


@shows_progress
def loss_counts(
    structure: Structure,
    log_tables: npt.ArrayLike,
    loss: npt.ArrayLike,
    clamps: npt.ArrayLike | None = None,
    method: MethodLike | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> WeightedCounts:
    """log Z, the expected loss, and how often each cell is read in expectation, also weighted by the loss.

    Parameters
    ----------
    structure, log_tables, clamps, weights
        As for `markovfield.expected_counts`.
    loss
        ``float64[sum of cardinalities]``: what each state of each variable costs; of either sign. The loss of an
        assignment is their sum, also over clamped variables.
    method
        Any method of `marginals` whose answers have expected counts; None is the junction tree. The junction tree and
        enumeration are exact, others take the difference of two runs. What samples is refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [3.0, 4.0]])
    >>> graph = net.compile()
    >>> wrong = [0.0, 1.0, 0.0, 1.0]  # both should be in their first states
    >>> found = mf.analysis.loss_counts(graph.structure, graph.log_tables, wrong)
    >>> round(found.expected_loss, 6), found.weighted.round(6).tolist()
    (1.3, [0.0, 0.2, 0.3, 0.8])
    >>> found.covariance.round(6).tolist()
    [-0.13, -0.06, -0.09, 0.28]
    """
    s = structure
    graph = FactorGraph(s, np.asarray(log_tables, np.float64))
    losses = np.ascontiguousarray(loss, np.float64)
    if losses.shape != (int(s.value_offsets[-1]),) or not np.isfinite(losses).all():
        raise ModelError(
            f"loss needs a finite number for each of {int(s.value_offsets[-1])} states of all variables, "
            f"got shape {losses.shape}"
        )
    one = clamps is None or np.ndim(clamps) < 2  # type: ignore[arg-type]
    given = Evidence.from_clamps(s, clamps).states[None] if one else rows(s, clamps)  # type: ignore[arg-type]
    weight = np.ones(len(given)) if weights is None else np.ascontiguousarray(np.atleast_1d(weights), np.float64)
    if weight.shape != (len(given),) or not np.isfinite(weight).all():
        raise ModelError(f"loss_counts needs a finite weight for each of {len(given)} rows, got shape {weight.shape}")
    running = Running(n_jobs, time_limit, callback)
    chosen = resolve_counts("junction_tree" if method is None else method)
    counter = LossCounter(chosen, graph.structure, [0, s.n_variables], running=running)
    values, expected = np.full(len(given), -np.inf), np.full(len(given), np.nan)
    totals = np.zeros((3, s.n_cells))
    guarantee: Guarantee = "exact"
    for i, row in enumerate(given):
        running.check()
        try:
            counter.expect(graph.log_tables, Evidence(row))
        except ImpossibleEvidenceError:
            if one:
                raise
            continue
        found = counter.weigh(losses)
        values[i], expected[i] = counter.log_partition, found.expected_loss[0]
        totals += weight[i] * np.stack([counter.counts, found.weighted, found.covariance])
        guarantee = together(guarantee, counter.guarantee)
    counts, weighted, covariance = totals
    return WeightedCounts(
        log_partition=float(values[0]) if one else values,
        expected_loss=float(expected[0]) if one else expected,
        counts=counts,
        weighted=weighted,
        covariance=covariance,
        method=chosen.name,
        guarantee=guarantee,
        converged=counter.converged,
        seconds=running.seconds,
    )
