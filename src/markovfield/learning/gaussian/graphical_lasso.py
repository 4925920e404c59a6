"""The graphical lasso: a sparse precision by a penalty on its entries, along a path of penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.core.penalties import ByPenalty, halvings, over_folds, penalties_for, what_stopped
from markovfield.learning.gaussian.lasso_path import (
    GaussianPath,
    LassoStep,
    ebic_of,
    follow,
    largest_penalty,
    noise_level,
    partial_correlations,
    path_of,
)
from markovfield.learning.gaussian.lasso_solver import ALIKE
from markovfield.learning.gaussian.learned import learned_graph, on_scale
from markovfield.learning.gaussian.moments import GaussianMoments, NumberTable, guard_dense, read_numbers
from markovfield.learning.structures.regressions import one_blas_thread

__all__ = ["GraphicalLasso"]


@dataclass(frozen=True)
class GraphicalLasso(ByPenalty):
    """Sparse precision matrices: maximum likelihood with a penalty on the absolute value of every entry.

    What is minimised over positive definite matrices X, for the covariance S of the data, is

        ``-log det X + tr(S X) + penalty * sum over i != j of w_ij |X_ij|``,

    minus twice the log-likelihood of a row, the sum going over both triangles (Friedman, Hastie and Tibshirani 2008;
    Murphy 19.4.4 on what the zeros mean). Variables that no covariance above the penalty joins are solved for by
    themselves; each component by Newton steps, coordinate descent finding their direction (Hsieh et al. 2014). An
    answer is within ``tolerance`` of the least value there is, which its dual problem proves: see ``details.gaps``.

    Parameters
    ----------
    penalty
        One penalty to take, in place of a choice.
    selection
        How to choose on a path of penalties. ``"ebic"``: the extended Bayesian information criterion (Foygel and Drton
        2010), each graph fitted without penalty: log-likelihood less log(rows) / 2 for each parameter less 2 gamma
        log(variables) for each edge. ``"cv"``: the density of held-out rows, which keeps many false edges.
        ``"stability"``: edges found in a share of at least `threshold` of subsamples of half the rows, at the penalty
        that EBIC chooses or a larger one. None: the end of the path.
    standardised
        Whether S is the correlation matrix, so that the penalty does not depend on units; the precision is given for
        the data as they are all the same. scikit-learn and R's glasso take the matrix that they are given.
    penalise_diagonal
        Whether the sum is over the diagonal as well, as in R's glasso; scikit-learn's is not.
    weights
        ``float64[n, n]`` in the order of the columns, symmetric, at least 0: the w_ij; ``inf`` forbids an edge, 0
        leaves it without penalty. All one when None.
    adaptive
        Above 0, a second path has ``w_ij`` multiplied by ``(1 + sqrt(rows) |r_ij|) ** -adaptive``, r the partial
        correlations that the first one chose: strong edges are shrunk less (Fan, Feng and Wu 2009).
    n_penalties, smallest
        Length of the path, and its end as a part of its start; None: a hundredth, or where noise alone would bring in
        an edge for each variable if that is more (half of that for cross-validation), at most a half.
    gamma
        Of EBIC: 0 is BIC; larger for fewer edges among many variables.
    refit
        Whether the EBIC is that of each graph's maximum-likelihood estimate, as it is defined, or of the penalised
        one, as some packages have it.
    folds, subsamples, threshold
        Of cross-validation and of stability selection.
    max_edges
        The path ends before a graph of more edges.
    tolerance
        The duality gap at which a minimum is reached.
    max_iterations
        Newton steps for one penalty.
    memory_limit
        For dense matrices: about six of n by n numbers are kept.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x = np.random.default_rng(0).standard_normal((500, 5))
    >>> for v in range(1, 5):
    ...     x[:, v] += 0.5 * x[:, v - 1]
    >>> rows = dict(zip("abcde", x.T))
    >>> learned = mf.learn_structure(rows, method=mf.methods.GraphicalLasso(penalty=0.15))
    >>> learned.precision.toarray()[0].round(2).tolist()
    [1.06, -0.26, 0.0, 0.0, 0.0]
    >>> mf.learn_structure(rows, method="graphical_lasso").edges
    (('a', 'b'), ('b', 'c'), ('c', 'd'), ('d', 'e'))
    """

    name: ClassVar[str] = "graphical_lasso"
    form: ClassVar[str] = "GaussianMoments"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    selection: Literal["ebic", "cv", "stability"] | None = "ebic"
    standardised: bool = True
    penalise_diagonal: bool = False
    weights: npt.ArrayLike | None = None
    adaptive: float = 0.0
    n_penalties: int = 30
    smallest: float | None = None
    gamma: float = 0.5
    refit: bool = True
    folds: int = 5
    subsamples: int = 50
    threshold: float = 0.8
    max_edges: int | None = None
    tolerance: float = 1e-8
    max_iterations: int = 100
    memory_limit: str | float | None = None

    def __post_init__(self) -> None:
        least = {
            "n_penalties": 1,
            "gamma": 0,
            "folds": 2,
            "subsamples": 2,
            "adaptive": 0,
            "max_edges": 0,
            "max_iterations": 1,
        }
        above = {"penalty": 0, "smallest": 0, "threshold": 0.5, "tolerance": 0}
        check_method(
            self,
            least=least,
            above=above,
            below={"smallest": 1, "penalty": math.inf},
            choices={"selection": ("ebic", "cv", "stability")},
        )
        memory_limit_bytes(self.memory_limit)
        self._check_threshold()

    def learn(self, data: Any, *, weights: Any, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Follow the path, choose; stopped after its first step, choose by EBIC among the steps made."""
        table = None if isinstance(data, GaussianMoments) else read_numbers(data, weights=weights, what=self.name)
        if table is None and weights is not None:
            raise ModelError("weights are of rows, and GaussianMoments have none")
        n = len(data.variables) if table is None else len(table.variables)
        guard_dense(n, "GraphicalLasso", 6, self.memory_limit)
        moments = data if table is None else table.moments(self.name)
        if table is None and self.penalty is None and self.selection in ("cv", "stability"):
            raise ModelError(f"selection={self.selection!r} of GraphicalLasso needs rows of data, got GaussianMoments")
        work = CELL * n**2 * 20 * (1 if self.penalty is not None else self.n_penalties)
        if self.penalty is None and self.selection in ("cv", "stability"):
            work *= self.folds + self.subsamples
        with small(work), one_blas_thread():
            factors = self._factors(n)
            learned = self._learn(moments, table, factors, running, rng)
            if not self.adaptive:
                return learned
            strength = np.zeros((n, n))
            pilot = partial_correlations(learned.precision)
            strength[pilot.coords[0], pilot.coords[1]] = np.abs(pilot.data)
            own = (1 + math.sqrt(moments.n_rows) * (strength + strength.T)) ** -self.adaptive
            return self._learn(moments, table, factors * own, running, rng)

    def _factors(self, n: int) -> FloatArray:
        if self.weights is None:
            return ALIKE
        what = "weights of GraphicalLasso"
        given = np.array(self.weights, np.float64)
        if given.shape != (n, n):
            raise ModelError(f"{what} need shape ({n}, {n}), got {given.shape}")
        if not (given >= 0).all() or not np.array_equal(given, given.T):
            raise ModelError(f"{what} must be symmetric numbers of at least 0")
        if not self.penalise_diagonal:
            np.fill_diagonal(given, 1.0)
        return given

    def _follow(
        self, s: FloatArray, penalties: FloatArray, factors: FloatArray, running: Running, *, relax: bool
    ) -> tuple[list[LassoStep], BaseException | None]:
        return follow(
            s,
            penalties,
            factors,
            diagonal=1.0 if self.penalise_diagonal else 0.0,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            max_edges=self.max_edges if self.penalty is None else None,
            relax=relax,
            running=running,
        )

    def _learn(
        self,
        moments: GaussianMoments,
        table: NumberTable | None,
        factors: FloatArray,
        running: Running,
        rng: np.random.Generator,
    ) -> LearnedGraph:
        n = moments.n_variables
        s = moments.correlation if self.standardised else np.ascontiguousarray(moments.covariance)
        scale = moments.deviations if self.standardised else np.ones(n)
        largest = largest_penalty(s, factors)
        if self.penalty is None:
            least = noise_level(moments.n_rows, n) * (0.5 if self.selection == "cv" else 1.0)
            if not self.standardised:
                least *= float(np.diag(s).mean())
            penalties = penalties_for(largest, least, self.n_penalties, self.smallest)
        else:
            # Warm starts pay off where a large part of the variables hangs together.
            few = largest <= 4 * self.penalty or len(factors) > 1
            penalties = np.array([self.penalty]) if few else halvings(min(largest, 4 * self.penalty), self.penalty)[-1:]
        relax = self.refit and self.penalty is None and self.selection in ("ebic", "stability")
        steps, stop = self._follow(s, penalties, factors, running, relax=relax)
        constant = n * math.log(2 * math.pi) + 2 * float(np.log(scale).sum())
        ebic = ebic_of(steps, moments.n_rows, n, self.gamma, constant)
        rows = table if self.penalty is None else None
        chosen, more, stop = self._choose(
            ebic,
            stop,
            None if rows is None else lambda n: self._held_out(rows, penalties[:n], factors, running, rng),
            None if rows is None else lambda n: self._frequencies(rows, penalties[:n], factors, running, rng),
        )
        path = path_of(
            moments.variables,
            steps,
            [partial_correlations(step.minimum.precision) for step in steps],
            chosen,
            n_rows=moments.n_rows,
            gamma=self.gamma,
            constant=constant,
            precisions=tuple(on_scale(step.minimum.precision, scale) for step in steps),
            **more,
        )
        return self._answer(moments, steps, path, stop)

    def _answer(
        self, moments: GaussianMoments, steps: list[LassoStep], path: GaussianPath, stop: BaseException | None
    ) -> LearnedGraph:
        taken, stopped = self._taken(path), what_stopped(stop)
        unfinished = [f"{step.penalty:.4g}" for step in steps if not step.minimum.converged]
        notes = []
        if unfinished:
            notes.append(f"max_iterations ended the search for the minimum at penalty {', '.join(unfinished[:6])}")
            stopped = stopped or "max_iterations"
        if moments.n_rows <= moments.n_variables:
            notes.append(f"{moments.n_rows:g} rows of {moments.n_variables} variables: only the penalty bounds it")
        notes += self._choice_notes(path)
        if not all(step.has_maximum for step in steps):
            notes.append("the largest graphs of the path have no maximum-likelihood estimate, and were not chosen from")
        return learned_graph(
            moments,
            path.precisions[path.chosen],
            [edge for edge, t in zip(path.edges, taken, strict=True) if t],
            [float(x) for x in path.strengths[path.chosen][taken]],
            method=self.name,
            **self._score(path),
            iterations=sum(step.minimum.iterations for step in steps),
            converged=stopped is None,
            stopped=stopped,
            notes=tuple(notes),
            details=path,
        )

    def _held_out(
        self,
        table: NumberTable,
        penalties: FloatArray,
        factors: FloatArray,
        running: Running,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """Log-density of a row of each fold by the others, and its standard error."""
        if table.n_rows < 2 * self.folds:
            raise ModelError(f"{table.n_rows} rows cannot be cut into {self.folds} folds of two or more")
        fold = rng.permutation(table.n_rows) % self.folds
        found, shares = np.full((self.folds, len(penalties)), -np.inf), np.empty(self.folds)
        for k in range(self.folds):
            out = table.rows(fold == k)
            moments = table.rows(fold != k).moments(self.name)
            shares[k] = out.weights.sum()
            scale = moments.deviations if self.standardised else np.ones(moments.n_variables)
            apart = (out.values - moments.mean) / scale
            test = (apart * out.weights[:, None]).T @ apart / shares[k]
            s = moments.correlation if self.standardised else np.ascontiguousarray(moments.covariance)
            steps, stop = self._follow(s, penalties, factors, running, relax=False)
            if stop is not None:
                raise stop
            constant = moments.n_variables * math.log(2 * math.pi) + 2 * float(np.log(scale).sum())
            for i, step in enumerate(steps):
                entries = step.minimum.precision.tocoo()
                fit = float((test[entries.coords[0], entries.coords[1]] * entries.data).sum())
                found[k, i] = 0.5 * (step.minimum.log_determinant - fit - constant)
        return over_folds(found, shares)

    def _frequencies(
        self,
        table: NumberTable,
        penalties: FloatArray,
        factors: FloatArray,
        running: Running,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, float]:
        """How often each pair is found in half of the rows, and the bound on false edges."""
        n = len(table.variables)
        times, edges = np.zeros((len(penalties), n, n), np.int32), 0
        for _ in range(self.subsamples):
            chosen = rng.permutation(table.n_rows)[: max(table.n_rows // 2, 2)]
            moments = table.rows(chosen).moments(f"{self.name} of half of the rows")
            s = moments.correlation if self.standardised else np.ascontiguousarray(moments.covariance)
            steps, stop = self._follow(s, penalties, factors, running, relax=False)
            if stop is not None:
                raise stop
            ever = np.zeros((n, n), np.bool_)
            for i, step in enumerate(steps):
                at = partial_correlations(step.minimum.precision).coords
                times[i][at] += 1
                ever[at] = True
            edges += int(ever.sum())
        return self._stability(times, edges)
