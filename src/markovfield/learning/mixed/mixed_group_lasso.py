"""Which variables of a data frame with both kinds of columns interact, along a path of penalties."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.core.penalties import ByPenalty, GraphPath, penalties_for, what_stopped
from markovfield.learning.mixed.columns import MixedTable
from markovfield.learning.mixed.pseudo_likelihood import MixedProblem
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import solve
from markovfield.learning.structures.penalty_path import noise_level
from markovfield.models.mixed.mixed_graphical_model import MixedGraphicalModel

__all__ = ["MixedGroupLasso", "MixedPath"]

# The ridge of fits without penalty, by the weight of the rows: tables of dependent states have no other minimum.
RIDGE = 1e-4


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MixedPath(Frozen, GraphPath):
    """Graphs along a path of penalties, and the model at the chosen one: ``details`` of what `MixedGroupLasso` learns.

    Attributes
    ----------
    penalties
        ``float64[P]``, falling.
    n_edges, log_likelihoods, df, ebic
        ``[P]``: edges; log-pseudo-likelihood; parameters of all full conditionals; the criterion, to be maximised.
    held_out
        ``float64[P]``: log-pseudo-likelihood of held-out rows, by their weight; None without cross-validation.
    chosen
        Which penalty was chosen.
    model
        `MixedGraphicalModel` at the chosen penalty, shrunk by it.
    refitted
        The same graph fitted with hardly any penalty.
    """

    model: MixedGraphicalModel = field(repr=False)
    refitted: MixedGraphicalModel = field(repr=False)

    columns: ClassVar[tuple[str, ...]] = ("penalties", "n_edges", "log_likelihoods", "df", "ebic")


@dataclass(frozen=True)
class MixedGroupLasso(ByPenalty):
    """Pairwise graphs of discrete and real-valued variables, by pseudo-likelihood with a penalty on every edge.

    The model is `MixedGraphicalModel`: given all others a real-valued variable is a linear regression, a discrete one a
    multinomial logistic regression, and both directions share their parameters. What is minimised is minus the
    log-pseudo-likelihood plus ``penalty`` times the sum over edges of the norm of their parameters, each multiplied by
    the spread of both variables (standard deviations; the root of the sum of p (1 - p) over states) as Lee and Hastie
    (2013) weigh them. It is convex; edges come and go as a whole. Columns of text, truth values and few whole numbers
    have states, other columns are numbers.

    Parameters
    ----------
    penalty
        One penalty to take, in place of a choice.
    selection
        ``"ebic"``: the extended Bayesian information criterion, each graph fitted with hardly any penalty: log-pseudo-
        likelihood less log(rows) / 2 for each parameter (an edge's count twice) less 2 gamma log(variables) for each
        edge. ``"cv"``: the pseudo-likelihood of held-out rows. None: the end of the path.
    n_penalties, smallest
        Length of the path, and its end as a part of its start; None: where noise alone would bring in edges.
    gamma
        Of EBIC.
    folds
        Of cross-validation.
    tolerance
        A minimum is reached when no subgradient, by the weight of the rows, is longer.
    max_iterations
        Proximal steps for one penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.choice(["a", "b"], 600)
    >>> size = np.where(kind == "a", -1.0, 1.0) + rng.normal(size=600)
    >>> weight = 0.8 * size + rng.normal(size=600)
    >>> data = {"kind": kind, "size": size, "weight": weight, "luck": rng.normal(size=600)}
    >>> learned = mf.learn_structure(data, method="mixed_group_lasso")
    >>> learned.edges
    (('kind', 'size'), ('size', 'weight'))
    >>> learned.details.model
    MixedGraphicalModel(1 discrete, 3 real-valued, 2 edges)
    """

    name: ClassVar[str] = "mixed_group_lasso"
    form: ClassVar[str] = "MixedTable"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    selection: Literal["ebic", "cv"] | None = "ebic"
    n_penalties: int = 20
    smallest: float | None = None
    gamma: float = 0.5
    folds: int = 5
    tolerance: float = 1e-6
    max_iterations: int = 2000

    def __post_init__(self) -> None:
        least = {"n_penalties": 1, "gamma": 0, "folds": 2, "max_iterations": 1}
        check_method(self, least=least, above={"penalty": 0, "smallest": 0, "tolerance": 0}, below={"smallest": 1})
        if self.selection not in ("ebic", "cv", None):
            raise ModelError(f"selection of MixedGroupLasso must be 'ebic', 'cv' or None, got {self.selection!r}")

    def learn(self, data: Any, *, weights: Any = None, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Follow the path, choose; stopped after its first step, choose by EBIC among the steps made."""
        table = MixedTable.of(data, self.name, weights)
        table.check_complete(self.name)
        problem = MixedProblem.of(table)
        penalties = self._penalties(problem)
        steps, relaxed, stop = self._follow(problem, penalties, running)
        df = np.array([problem.n_own + 2 * sum(problem.degrees(g) for g in s[1]) for s in steps])
        names = max(len(problem.variables), 1)
        edges = np.array([len(s[1]) for s in steps])
        total = float(table.weights.sum())
        fitted = np.array([relaxed[s[1]][0] for s in steps])
        ebic = fitted - 0.5 * df * np.log(max(total, 1.0)) - 2 * self.gamma * edges * np.log(names)
        chosen, held_out = self._likeliest(ebic, stop), None
        if self.penalty is None and self.selection == "cv" and stop is None:
            held_out = self._held_out(problem, penalties, running, rng)
            chosen = int(np.argmax(held_out))
        theta, active = steps[chosen]
        path = MixedPath(
            penalties=penalties[: len(steps)],
            n_edges=edges,
            log_likelihoods=np.array([-problem(s[0])[0] for s in steps]),
            df=df,
            ebic=ebic,
            chosen=chosen,
            held_out=held_out,
            model=problem.model(theta),
            refitted=problem.model(relaxed[active][1]),
        )
        return self._answer(table, problem, path, (theta, active), stop)

    def _answer(self, table: MixedTable, problem: MixedProblem, path: MixedPath, step: Any, stop: Any) -> LearnedGraph:
        import networkx as nx

        theta, active = step
        order = (*problem.real, *problem.discrete)
        groups, scale = problem.cells[2], problem.cells[3]
        graph = nx.Graph()
        for v in table.variables:
            graph.add_node(v, states=list(table.states.get(v, ())))
        at = {v: i for i, v in enumerate(table.variables)}
        found = []
        for g in active:
            i, j = sorted((order[k] for k in problem.pairs[g]), key=at.__getitem__)
            mine = groups == g
            found.append((i, j, float(np.linalg.norm((theta[problem.n_own :] * scale)[mine]))))
        for i, j, strength in sorted(found, key=lambda e: (at[e[0]], at[e[1]])):
            graph.add_edge(i, j, weight=strength)
        last = self._searches and path.chosen == len(path.penalties) - 1 and len(active) > 0
        score = path.ebic if path.held_out is None else path.held_out
        return LearnedGraph(
            variables=table.variables,
            states=tuple(table.states.get(v, ()) for v in table.variables),
            graph=graph,
            method=self.name,
            score=float(score[path.chosen]),
            score_name="ebic" if path.held_out is None else "held_out",
            iterations=len(path.penalties),
            converged=stop is None,
            stopped=what_stopped(stop),
            notes=("the last penalty of the path was chosen: smaller ones might be better",) if last else (),
            details=path,
        )

    def _penalties(self, problem: MixedProblem) -> FloatArray:
        if self.penalty is not None:
            return np.array([float(self.penalty)])
        start = problem.start()
        groups = np.concatenate([np.full(problem.n_own, -1), problem.cells[2]])
        largest = Penalty(groups=groups).max_group_penalty(problem(start)[1])
        n = len(problem.variables)
        return penalties_for(largest, noise_level(float(problem.weights.sum()), n), self.n_penalties, self.smallest)

    def _minimum(self, problem: MixedProblem, penalty: float, start: FloatArray, running: Running) -> FloatArray:
        total = float(problem.weights.sum())
        groups = np.concatenate([np.full(problem.n_own, -1), problem.cells[2]])

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = problem(theta)
            return value / total, gradient / total

        solver = ProximalGradient(
            max_iterations=self.max_iterations, tolerance=1e-13, gradient_tolerance=self.tolerance
        )
        # A hair of a ridge on own parameters: fields are told up to a constant only.
        ridge = np.where(groups < 0, 1e-9, 0.0)
        found = solve(
            objective,
            start,
            solver=solver,
            penalty=Penalty(groups=groups, group_l1=penalty / total, l2=ridge),
            running=running,
        )
        return found.weights

    def _follow(
        self, problem: MixedProblem, penalties: FloatArray, running: Running
    ) -> tuple[list[tuple[FloatArray, tuple[int, ...]]], dict[tuple[int, ...], tuple[float, FloatArray]], Any]:
        steps: list[tuple[FloatArray, tuple[int, ...]]] = []
        relaxed: dict[tuple[int, ...], tuple[float, FloatArray]] = {}
        theta = problem.start()
        try:
            for penalty in penalties:
                theta = self._minimum(problem, float(penalty), theta, running)
                used = np.bincount(problem.cells[2], (theta[problem.n_own :] != 0).astype(float), len(problem.pairs))
                active = tuple(np.flatnonzero(used).tolist())
                if active not in relaxed:
                    relaxed[active] = _relaxed(problem, active, theta, running)
                steps.append((theta, active))
        except STOPS as caught:
            if not steps:
                raise
            return steps, relaxed, caught
        return steps, relaxed, None

    def _held_out(
        self, problem: MixedProblem, penalties: FloatArray, running: Running, rng: np.random.Generator
    ) -> FloatArray:
        n = len(problem.weights)
        if n < self.folds:
            raise ModelError(f"{n} rows cannot be cut into {self.folds} folds")
        fold = rng.permutation(n) % self.folds
        total = float(problem.weights.sum())
        found = np.zeros(len(penalties))
        for k in range(self.folds):
            inside = problem.of_rows(np.where(fold != k, problem.weights, 0.0))
            outside = problem.of_rows(np.where(fold == k, problem.weights, 0.0))
            theta = inside.start()
            for i, penalty in enumerate(penalties * (float(inside.weights.sum()) / total)):
                theta = self._minimum(inside, float(penalty), theta, running)
                # The scales of parameters are those of the fold's own shares of states.
                moved = theta.copy()
                moved[problem.n_own :] *= inside.cells[3] / outside.cells[3]
                found[i] -= outside(moved)[0] / total
        return found


def _relaxed(
    problem: MixedProblem, active: tuple[int, ...], theta: FloatArray, running: Running
) -> tuple[float, FloatArray]:
    """Log-pseudo-likelihood and parameters of a graph fitted with hardly any penalty."""
    total = float(problem.weights.sum())
    kept = np.concatenate([np.ones(problem.n_own, np.bool_), np.isin(problem.cells[2], active)])

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        whole = np.zeros(len(kept))
        whole[kept] = free
        value, gradient = problem(whole)
        return value / total, gradient[kept] / total

    ridge = np.full(int(kept.sum()), RIDGE)
    ridge[: problem.n_own] = 1e-9
    found = solve(objective, theta[kept], penalty=Penalty(l2=ridge), running=running)
    whole = np.zeros(len(kept))
    whole[kept] = found.weights
    return -problem(whole)[0], whole
