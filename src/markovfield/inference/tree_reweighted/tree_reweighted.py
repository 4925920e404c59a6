"""Tree-reweighted message passing: an upper bound on log Z that holds at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method, whole_number
from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.convergence import DAMPING, how_it_went, warn_not_converged
from markovfield.inference.core.counts import Rows
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.tree_reweighted.messages import ReweightedMessages
from markovfield.inference.tree_reweighted.spanning_trees import MOST_TREES, even_trees, given_trees
from markovfield.inference.tree_reweighted.stars import pair_graph
from markovfield.names import VariableName

__all__ = ["TreeReweighted"]


@dataclass(frozen=True)
class TreeReweighted:
    """An upper bound on log Z from a mixture of spanning trees (seed 004; Wainwright, Jaakkola and Willsky).

    The model's score is split among weighted spanning trees of the graph; by convexity the weighted mean of the trees'
    log Z is at least the model's. Messages move the split towards the one where all trees agree on their marginals,
    which is the best. The bound is computed from the trees themselves, so it holds after any number of iterations,
    converged or not, and to second order it does not feel an error in the messages. On a forest it is log Z itself.

    A factor of three or more variables becomes an auxiliary variable whose states are its cells above -inf. A sweep
    costs, for each edge, the product of its variables' states; the bound about as much as two sweeps.

    Parameters
    ----------
    trees
        ``"uniform"``: trees that use all edges as evenly as can be. ``"optimised"``: from there on, Frank-Wolfe over
        the spanning-tree polytope, each step adding the tree of greatest mutual information; never looser than the
        former. Or a sequence of trees, each a sequence of pairs of variable names, that together have every edge.
    tree_weights
        What given trees weigh; equal by default.
    frank_wolfe_iterations
        The most trees that ``"optimised"`` tries.
    max_iterations, tolerance, damping
        Sweeps for one choice of probabilities; the largest change of a log message at which they end; the share of the
        old message that is kept. Where messages do not converge, more damping is taken by itself.
    max_factor_cells
        The most cells of a factor of three or more variables.
    n_trees
        Of ``"uniform"``: so many trees, or as many more as cover the edges. None takes more trees in a smaller graph;
        with a number, a graph in a union of many has the bound that it has by itself, where both are covered.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.log_partition(net, method=mf.methods.TreeReweighted())
    >>> round(float(answer), 4), answer.guarantee, round(float(mf.log_partition(net)), 4)
    (4.341, 'upper', 4.2767)
    """

    trees: str | Sequence[Sequence[tuple[VariableName, VariableName]]] = "uniform"
    tree_weights: Sequence[float] | None = None
    frank_wolfe_iterations: int = 20
    max_iterations: int = 200
    tolerance: float = 1e-6
    damping: float = 0.0
    max_factor_cells: int = 2**16
    n_trees: int | None = None

    name: ClassVar[str] = "tree_reweighted"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"components", "init"})

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_iterations": 1, "frank_wolfe_iterations": 0, "max_factor_cells": 1, "damping": 0},
            above={"tolerance": 0},
            below={"damping": 1},
        )
        if self.n_trees is not None:
            whole_number(self.n_trees, "n_trees of TreeReweighted", 1)
            if not isinstance(self.trees, str):
                raise ModelError("n_trees of TreeReweighted goes with trees that are not given")
        if isinstance(self.trees, str):
            if self.trees not in ("uniform", "optimised"):
                raise ModelError(
                    f"trees of TreeReweighted must be 'uniform', 'optimised' or a sequence of trees, got {self.trees!r}"
                )
            if self.tree_weights is not None:
                raise ModelError("tree_weights of TreeReweighted go with trees that are given")
        elif not len(self.trees):
            raise ModelError("trees of TreeReweighted must not be empty")
        elif self.tree_weights is not None:
            weights = np.asarray(self.tree_weights, np.float64)
            if weights.shape != (len(self.trees),) or not (weights > 0).all() or not np.isfinite(weights).all():
                raise ModelError(
                    f"tree_weights of TreeReweighted must be {len(self.trees)} positive numbers, "
                    f"got {self.tree_weights!r}"
                )

    def log_partition(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Marginals | None = None
    ) -> LogPartition:
        """The bound alone."""
        run = self._run(prepare(graph, evidence, drop_barren=init is None), running, init)
        if not run.converged:
            warn_not_converged(self.name, len(run.residuals), run.last_residual, self.tolerance, DAMPING)
        return LogPartition(
            log_partition=run.value,
            guarantee="upper",
            **how_it_went(self.name, run, running),
        )

    def marginals(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Marginals | None = None
    ) -> Marginals:
        """Pseudo-marginals, on which all trees agree once messages have converged, and the bound."""
        problem = prepare(graph, evidence)
        run = self._run(problem, running, init)
        if not run.converged:
            warn_not_converged(self.name, len(run.residuals), run.last_residual, self.tolerance, DAMPING)
        beliefs = run.beliefs()
        values = problem.expand(run.of_variables(beliefs), 0.0)
        return Marginals(
            graph=graph,
            values=values,
            log_partition=run.value,
            guarantee="upper",
            log_partition_bounds=(-np.inf, run.value),
            **how_it_went(self.name, run, running),
            _components=run.components,
            _joint=lambda positions: run.joint(beliefs, positions),
            _counts=lambda: problem.counts(run.counts(beliefs)),
            _state=run,
        )

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Decoding | None = None
    ) -> Decoding:
        """The best assignment that a tree chooses, and the mean of the trees' best scores as an upper bound."""
        from markovfield.inference.local_search.incumbent import ScoreUnits
        from markovfield.inference.problem.feasible import best_of

        if init is not None:
            raise ModelError("decode by tree_reweighted takes no init")
        problem = prepare(graph, evidence)
        run = self._run(problem, running, None, maximise=True)
        if not run.converged:
            warn_not_converged(self.name, len(run.residuals), run.last_residual, self.tolerance, DAMPING)
        states, score = best_of(problem, run.tree_states(), run.of_variables(run.held))
        gap = max(0.0, run.value - score)
        return decoding_of_states(
            graph,
            [(problem.states(states), score)],
            gap=gap,
            # Both numbers are sums over the whole graph, rounded in different orders.
            tolerance=1e-9 * ScoreUnits.of(problem).size(score),
            guarantee="lower",
            **how_it_went(self.name, run, running),
        )

    def rows_that_join(self, graph: FactorGraph, clamps: Rows) -> IntArray | None:
        """All of them, where an even cover takes the same number of trees for a row and for a union of many."""
        s = graph.structure
        edges = np.diff(s.scope_offsets) > 1
        degree = np.bincount(s.scopes[np.repeat(edges, np.diff(s.scope_offsets))], minlength=s.n_variables)
        if self.trees != "uniform" or 2 * int(degree.max(initial=0)) > MOST_TREES:
            return None
        return np.zeros(len(clamps), np.int64)

    def _run(
        self, problem: Problem, running: Running, init: Marginals | None, *, maximise: bool = False
    ) -> ReweightedMessages:
        pairs = pair_graph(problem, max_factor_cells=self.max_factor_cells)
        if isinstance(self.trees, str):
            trees = even_trees(pairs, self.n_trees)
        else:
            trees = given_trees(pairs, self.trees, self.tree_weights)
        run = ReweightedMessages(
            pairs,
            trees,
            maximise=maximise,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            damping=self.damping,
        )
        if init is not None:
            run.start_from(init, with_trees=self.trees == "optimised")
        try:
            run.converge(running)
            if self.trees == "optimised" and not maximise:
                run.optimise(running, self.frank_wolfe_iterations)
        except STOPS as stop:
            # Sums may be part of a fit, which must hear of Ctrl-C.
            if isinstance(stop, KeyboardInterrupt) and not maximise:
                raise
            run.converged = False
        run.finish()
        return run
