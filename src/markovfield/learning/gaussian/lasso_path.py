"""Gaussian graphs along a path of penalties: the steps, their scores, and what is shown of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.penalties import GraphPath, entering
from markovfield.learning.gaussian.lasso_solver import ALIKE, LassoMinimum, dense, minimise
from markovfield.learning.gaussian.newton_on_graph import newton_on_graph
from markovfield.names import VariableName

__all__ = ["GaussianPath", "LassoStep", "follow", "largest_penalty", "noise_level", "partial_correlations", "path_of"]

# Newton steps for the maximum on a graph; where there is none, they do not end.
MOST_REFIT = 60


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GaussianPath(GraphPath):
    """Graphs from the empty one to a dense one, and which was chosen: ``details`` of what `GraphicalLasso` learns.

    Attributes
    ----------
    penalties
        ``float64[P]``, falling.
    edges
        Every edge of any of the graphs, in the order in which they come in.
    strengths
        ``float64[P, m]``: partial correlations, as the penalised precisions have them; for a joint graphical lasso the
        root mean square over the classes, with the sign of the mean.
    n_edges, objectives, gaps
        ``[P]``: edges; what was minimised, for one row; how far above the least value that can be, a proven bound.
    log_likelihoods, df, ebic
        ``[P]``: of the rows, under the maximum-likelihood estimate on each graph (under the penalised one with
        ``refit=False``, or where a graph has no maximum: there ``ebic`` is -inf); means, variances and edges; the
        extended Bayesian information criterion, to be maximised.
    held_out, held_out_error
        ``float64[P]``: log-density of a held-out row, and its standard error over folds; None without cross-validation.
    frequencies
        ``float64[m]``: share of subsamples in which an edge was found at the chosen penalty or a larger one; None
        without stability selection. ``expected_false`` bounds the number of false edges among those taken, under the
        conditions of Meinshausen and Buehlmann (2010).
    chosen
        Which penalty was chosen.
    precisions
        SciPy CSC arrays, on the scale of the data (for a joint graphical lasso, a tuple of them for each penalty).
    """

    edges: tuple[tuple[VariableName, VariableName], ...]
    strengths: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    held_out_error: FloatArray | None = None
    frequencies: FloatArray | None = None
    expected_false: float | None = None
    precisions: tuple[Any, ...] = field(repr=False)

    columns: ClassVar[tuple[str, ...]] = ("penalties", "n_edges", "objectives", "gaps", "log_likelihoods", "df", "ebic")


class LassoStep(NamedTuple):
    """The minimum for one penalty, and minus twice the log-likelihood of a row on its graph (less a constant)."""

    penalty: float
    minimum: LassoMinimum
    n_edges: int
    loss: float
    has_maximum: bool


def largest_penalty(s: FloatArray, weights: FloatArray = ALIKE) -> float:
    """The least penalty that leaves no edge."""
    largest = np.abs(s)
    np.fill_diagonal(largest, 0.0)
    if len(weights) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.where(largest > 0, largest / weights, 0.0)
        if not np.isfinite(largest).all():
            largest = np.where(np.isfinite(largest), largest, 0.0)
    return float(largest.max(initial=0.0))


def noise_level(n_rows: float, n_variables: int) -> float:
    """The correlation that independent columns exceed about once for each of them."""
    from scipy.special import ndtri

    return max(1.0, -float(ndtri(0.5 / max(n_variables - 1, 2)))) / math.sqrt(max(n_rows, 1.0))


def edge_count(precision: Any) -> int:
    """How many pairs are joined."""
    return int((precision.nnz - precision.shape[0]) // 2)


def _loss(s: FloatArray, precision: Any, log_determinant: float) -> float:
    entries = precision.tocoo()
    return float((s[entries.coords[0], entries.coords[1]] * entries.data).sum()) - log_determinant


def refit(s: FloatArray, found: LassoMinimum) -> float | None:
    """Minus twice the log-likelihood of a row, less a constant, at the maximum on a graph; None where it has none."""
    from scipy import sparse

    precision = sparse.csr_array(found.precision)
    total = 0.0
    for block in found.components:
        at = np.ix_(block, block)
        if len(block) == 1:
            total += math.log(s[at][0, 0]) + 1.0
            continue
        start = dense(precision[block][:, block])
        edges = np.argwhere(np.triu(start, 1))
        part = np.ascontiguousarray(s[at])
        _, _, converged, history = newton_on_graph(part, edges, start=start, tolerance=1e-6, max_iterations=MOST_REFIT)
        if not converged:
            return None
        total -= 2 * history[-1]
    return total


def follow(
    s: FloatArray,
    penalties: FloatArray,
    weights: FloatArray,
    *,
    diagonal: float,
    tolerance: float,
    max_iterations: int,
    max_edges: int | None,
    relax: bool,
    running: Running,
) -> tuple[list[LassoStep], BaseException | None]:
    """Minima for falling penalties, each from the one before; what stopped them, if anything did after the first."""
    steps: list[LassoStep] = []
    known: tuple[bytes, float | None] = (b"", None)
    try:
        for penalty in penalties:
            found = minimise(
                s,
                float(penalty),
                weights,
                diagonal=diagonal,
                start=steps[-1].minimum.precision if steps else None,
                tolerance=tolerance,
                max_iterations=max_iterations,
                running=running,
            )
            count = edge_count(found.precision)
            if max_edges is not None and steps and count > max_edges:
                break
            loss, there = _loss(s, found.precision, found.log_determinant), True
            if relax and steps and not steps[-1].has_maximum:
                there = False  # a graph of more edges has no maximum either, as a rule
            elif relax:
                key = found.precision.indptr.tobytes() + found.precision.indices.tobytes()
                if key != known[0]:
                    known = key, refit(s, found)
                loss, there = (loss, False) if known[1] is None else (known[1], True)
            steps.append(LassoStep(float(penalty), found, count, loss, there))
    except (*STOPS, MemoryLimitError) as stop:
        if not steps:
            raise
        return steps, stop
    return steps, None


def partial_correlations(precision: Any) -> Any:
    """Of a sparse precision, its off-diagonal entries as partial correlations, above the diagonal, in COO."""
    from scipy import sparse

    entries = sparse.triu(precision, 1, format="coo")
    diagonal = precision.diagonal()
    i, j = entries.coords
    entries.data = -entries.data / np.sqrt(diagonal[i] * diagonal[j])
    return entries


def path_of(
    variables: tuple[VariableName, ...],
    steps: list[LassoStep],
    strengths: list[Any],
    chosen: int,
    *,
    n_rows: float,
    gamma: float,
    constant: float,
    precisions: tuple[Any, ...],
    **more: Any,
) -> GaussianPath:
    """What a path shows: ``strengths`` are COO arrays, ``constant`` what a row's log-likelihood adds to the loss."""
    n = len(variables)
    keys = [entries.coords[0].astype(np.int64) * n + entries.coords[1] for entries in strengths]
    every, table = entering(keys, [entries.data for entries in strengths])
    pairs = np.column_stack(np.divmod(every, n)) if n else np.zeros((0, 2), np.int64)
    if more.get("frequencies") is not None:
        more["frequencies"] = more["frequencies"][pairs[:, 0], pairs[:, 1]]
    n_edges = np.array([step.n_edges for step in steps])
    likelihoods = np.array([-0.5 * n_rows * (step.loss + constant) for step in steps])
    return GaussianPath(
        penalties=np.array([step.penalty for step in steps]),
        edges=tuple((variables[a], variables[b]) for a, b in pairs.tolist()),
        strengths=table,
        n_edges=n_edges,
        objectives=np.array([step.minimum.objective for step in steps]),
        gaps=np.array([step.minimum.gap for step in steps]),
        log_likelihoods=likelihoods,
        df=n_edges + 2 * n,
        ebic=ebic_of(steps, n_rows, n, gamma, constant),
        chosen=chosen,
        precisions=precisions,
        **more,
    )


def ebic_of(steps: list[LassoStep], n_rows: float, n: int, gamma: float, constant: float) -> FloatArray:
    """Log-likelihood less log(rows) / 2 for each parameter and 2 gamma log(variables) for each edge."""
    found = [
        -0.5 * n_rows * (step.loss + constant)
        - 0.5 * (step.n_edges + 2 * n) * math.log(max(n_rows, 1.0))
        - 2 * gamma * step.n_edges * math.log(max(n, 1))
        if step.has_maximum
        else -math.inf
        for step in steps
    ]
    return np.array(found)
