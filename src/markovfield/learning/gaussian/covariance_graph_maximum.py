"""Maximum likelihood of a Gaussian with zeros in its covariance, by iterative conditional fitting, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.goodness import log_determinant
from markovfield.learning.gaussian.moments import GaussianMoments

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["covariance_graph_maximum"]


def covariance_graph_maximum(
    moments: GaussianMoments,
    graph: nx.Graph,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 5000,
    running: Running | None = None,
) -> tuple[FloatArray, list[float], bool]:
    """The covariance, the log-likelihoods of one row (less a constant) after each sweep, and convergence.

    Variable by variable, the joint distribution of the others stays and the variable's conditional distribution is
    fitted: its covariances with its siblings are the coefficients of a regression on ``Z = inverse(Sigma of the
    others) x others``, of the siblings' entries only (Chaudhuri, Drton and Richardson 2007). The likelihood never
    falls, but may have several maxima. A sweep takes about n^3 operations for each of n variables' siblings' share.
    """
    deviations, s = moments.deviations, moments.correlation
    n = len(s)
    near = [np.array(sorted(graph.adj[v]), np.int64) for v in range(n)]
    sigma = np.eye(n)
    history: list[float] = []
    converged = False
    for _ in range(max_iterations):
        precision = np.linalg.inv(sigma)
        worst = 0.0
        for i in range(n):
            siblings = near[i]
            others = np.delete(np.arange(n), i)
            if not len(siblings):
                worst = max(worst, abs(sigma[i, i] - s[i, i]))
                sigma[i, i], precision[i, i] = s[i, i], 1 / s[i, i]
                continue
            # Of the others alone: the precision with i integrated out.
            inverse = precision[siblings] - np.outer(precision[siblings, i], precision[i]) / precision[i, i]
            rows = inverse[:, others]
            to_others = rows @ s[np.ix_(others, others)]
            slopes = np.linalg.solve(to_others @ rows.T, rows @ s[others, i])
            noise = s[i, i] - slopes @ (rows @ s[others, i])
            column = np.zeros(n)
            column[siblings] = slopes
            # The precision that has these covariances: Q of the others, and q = Q column.
            q = inverse.T @ slopes
            q[i] = 0.0
            column[i] = noise + slopes @ inverse[:, siblings] @ slopes
            worst = max(worst, float(np.abs(column - sigma[i]).max()))
            precision -= np.outer(precision[:, i], precision[i]) / precision[i, i]
            precision += np.outer(q, q) / noise
            precision[i] = precision[:, i] = -q / noise
            precision[i, i] = 1 / noise
            sigma[i] = sigma[:, i] = column
        history.append(-0.5 * (log_determinant(sigma) + float((np.linalg.inv(sigma) * s).sum())))
        if running is not None:
            running.check(history[-1])
        if worst <= tolerance:
            converged = True
            break
    return sigma * deviations[:, None] * deviations, history, converged
