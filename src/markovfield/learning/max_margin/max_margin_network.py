"""Max-margin Markov networks: the dual over marginals as one quadratic program (Taskar, Guestrin and Koller 2003)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.extras import check_installed
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch

__all__ = ["MaxMarginMarkovNetwork", "Polytope", "PolytopeProblem"]


class Polytope(NamedTuple):
    """Marginals of all blocks, each times its cost: ``equations @ marginals = right``, none below 0.

    Attributes
    ----------
    features
        ``float64[n_weights, n]``, sparse: what a marginal adds to features.
    truth
        ``float64[n_weights]``: features of the truth, with costs.
    losses
        ``float64[n]``: what a marginal adds to the loss.
    constant
        Added to all losses.
    equations, right
        ``float64[m, n]``, sparse, and ``float64[m]``: they add up to costs, and agree where they overlap.
    tight
        Whether every point of it stands for a distribution over outputs.
    """

    features: Any
    truth: FloatArray
    losses: FloatArray
    constant: float
    equations: Any
    right: FloatArray
    tight: bool


class PolytopeProblem(HingeProblem, Protocol):
    """A problem of planes that can say what its marginals are."""

    def polytope(self, relaxation: str, max_cells: int) -> Polytope:
        """The polytope of marginals: ``"cliques"`` of triangulated graphs, or ``"local"`` ones of factors."""
        ...


@dataclass(frozen=True)
class MaxMarginMarkovNetwork:
    """All of a structural SVM as one quadratic program over marginals, solved to the end by clarabel.

    ``max_m losses m - 1/2 |features of the truth - features m|^2`` over marginals that agree with each other: as many
    numbers as tables of cliques have cells, in place of one for each output. It is for small problems, as the check on
    all other solvers. clarabel comes with ``pip install "markovfield[qp]"``.

    Parameters
    ----------
    relaxation
        ``"cliques"``: marginals of the cliques of a triangulated graph, which is exact. ``"local"``: those of factors,
        which agree on single variables. On trees that is the same; on other graphs there are more points, so that the
        optimum of the program is no less than that of the SVM, and the primal at its weights lies between both.
    max_cells
        More cells than this are refused.

    Notes
    -----
    The answer has the value of a program that is not tight as ``relaxed``, and then no dual: it bounds nothing from
    below.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=MaxMarginMarkovNetwork(), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    relaxation: Literal["cliques", "local"] = "cliques"
    max_cells: int = 200_000

    name: ClassVar[str] = "max_margin_network"

    def __post_init__(self) -> None:
        check_method(self, least={"max_cells": 1}, choices={"relaxation": ("cliques", "local")})

    def run(self, problem: PolytopeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it before the program is solved leaves no weights but zeros."""
        watch, w, value = Watch(problem, running), np.zeros(problem.n_weights), np.nan
        polytope = problem.polytope(self.relaxation, self.max_cells)
        dual, message = np.nan, "the quadratic program was solved"
        try:
            watch.look()
            value, w = solved(polytope, running.seconds_left)
            dual = value if polytope.tight else np.nan
            watch.note(watch.everywhere(w)[1], dual)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if not len(watch.weights):
            watch.weights = w
        # Interior points end some 1e-8 of the value away.
        found = watch.ended(min(dual, watch.primal), 1e-5, message)
        return replace(found, relaxed=value)


def solved(polytope: Polytope, seconds: float | None = None) -> tuple[float, FloatArray]:
    """The optimum of the program, and its weights."""
    check_installed("MaxMarginMarkovNetwork", "clarabel")
    import clarabel  # type: ignore[import-untyped]
    from scipy.sparse import block_diag, bmat, csc_matrix, eye

    k, n = polytope.features.shape
    # Weights and marginals: 1/2 |w|^2 - losses m, w + features m = features of the truth.
    P = block_diag([eye(k), csc_matrix((n, n))], format="csc")
    rows = bmat([[eye(k), polytope.features], [None, polytope.equations], [None, -eye(n)]], format="csc")
    right = np.concatenate([polytope.truth, polytope.right, np.zeros(n)])
    cones = [clarabel.ZeroConeT(k + len(polytope.right)), clarabel.NonnegativeConeT(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if seconds is not None:
        settings.time_limit = seconds
    goal = np.concatenate([np.zeros(k), -polytope.losses])
    answer = clarabel.DefaultSolver(P, goal, rows, right, cones, settings).solve()
    status = str(answer.status)
    if status == "MaxTime":
        raise TimeoutError("no answer of the quadratic program within the time limit")
    if status not in ("Solved", "AlmostSolved"):
        raise ModelError(f"the quadratic program of marginals was not solved: clarabel says {status}")
    return polytope.constant - float(answer.obj_val), np.array(answer.x[:k])
