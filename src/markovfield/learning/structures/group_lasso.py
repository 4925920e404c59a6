"""Sparse pairwise models by pseudo-likelihood with a penalty on every edge, along a path of penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_graph import LearnedGraph, undirected_graph
from markovfield.learning.core.penalties import ByPenalty, halvings, over_folds, penalties_for, what_stopped
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.penalty_path import Step, follow, noise_level, path_of
from markovfield.learning.structures.regressions import Regressions, one_blas_thread

__all__ = ["GroupLasso"]


@dataclass(frozen=True)
class GroupLasso(ByPenalty):
    """Which pairs interact, by pseudo-likelihood with a penalty on the norm of each pair's table.

    The model is pairwise: a table for each variable and one for each edge. What is minimised is minus the
    log-pseudo-likelihood, summed over rows (by their weights) and variables (Murphy 19.49), plus

        ``penalty`` times the sum over pairs of sqrt((K - 1)(L - 1)) times the root mean square of their table's K L
        cells,

    plus ``l2 / 2`` times the sum over variables of (K - 1) times the mean square of their own table; all tables add up
    to zero along each axis. The norm of a table is zero only if all of it is, so edges come and go as a whole. Of two
    states -1 and +1 a pair's term is ``penalty * |coupling|`` in the convention of `Ising`, and a variable's ``l2 / 2 *
    field**2``. The penalty belongs to the data set: twice the rows want twice the penalty for the same graph.

    Penalties fall from the least that leaves no edge (known from the gradient of the independent model), each minimum
    starting from the one before. For r rows, n variables and graphs of d neighbours, a penalty takes about r n^2
    multiplications and a few times r n d^2; memory is 16 bytes for each row and state (less one for each variable).

    Parameters
    ----------
    penalty
        One penalty to take, in place of a choice; the path then has only the steps that lead there.
    selection
        How to choose on the path. ``"ebic"``: the extended Bayesian information criterion, summed over the full
        conditionals (Barber and Drton 2015), each graph fitted with hardly any penalty: log-pseudo-likelihood less
        log(rows) / 2 for each parameter (an edge's count twice, as it is in two conditionals) less 2 gamma
        log(variables) for each edge. ``"cv"``: the pseudo-likelihood of held-out rows, which predicts well and keeps
        many false edges. ``"stability"``: edges found in a share of at least `threshold` of subsamples of half the
        rows, at the penalty that EBIC chooses or a larger one (Meinshausen and Buehlmann 2010). None: the end of the
        path.
    n_penalties, smallest
        Length of the path, and its end as a part of its start; None: a hundredth, or where noise alone would bring in
        an edge for each variable if that is more, at most a half; for cross-validation 2 sqrt(rows) in place of the
        second.
    gamma
        Of EBIC: 0 is BIC; larger for fewer edges among many variables.
    folds
        Of cross-validation.
    subsamples, threshold
        Of stability selection.
    l2
        See above.
    max_edges
        The path ends before a graph of more edges.
    tolerance
        A minimum is reached when no subgradient, by the weight of the rows, is longer.
    max_iterations
        Newton steps for one penalty.

    Examples
    --------
    >>> import markovfield as mf
    >>> ring = mf.Ising([(i, (i + 1) % 6) for i in range(6)], coupling=0.3)
    >>> learned = mf.learn_structure(mf.sample(ring, 2000, rng=0), method="group_lasso")
    >>> sorted(learned.edges)
    [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]
    >>> learned.details
    PenaltyPath(30 penalties, 0 to 10 edges; chosen 204.9 with 6)
    """

    name: ClassVar[str] = "group_lasso"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    selection: Literal["ebic", "cv", "stability"] | None = "ebic"
    n_penalties: int = 30
    smallest: float | None = None
    gamma: float = 0.5
    folds: int = 5
    subsamples: int = 50
    threshold: float = 0.8
    l2: float = 0.0
    max_edges: int | None = None
    tolerance: float = 1e-7
    max_iterations: int = 100

    def __post_init__(self) -> None:
        least = {
            "n_penalties": 1,
            "gamma": 0,
            "folds": 2,
            "subsamples": 2,
            "l2": 0,
            "max_edges": 0,
            "max_iterations": 1,
        }
        above = {"penalty": 0, "smallest": 0, "threshold": 0.5, "tolerance": 0}
        check_method(self, least=least, above=above, below={"smallest": 1})
        if self.selection not in ("ebic", "cv", "stability", None):
            raise ModelError(
                f"selection of GroupLasso must be 'ebic', 'cv', 'stability' or None, got {self.selection!r}"
            )
        self._check_threshold()

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Follow the path, choose; stopped after its first step, choose by EBIC among the steps made."""
        rows = CodedRows.of(table, "group_lasso")
        work = CELL * rows.features.size * 10 * self.n_penalties
        if self.selection in ("cv", "stability"):
            work *= self.folds + self.subsamples
        with small(work), one_blas_thread():
            return self._learn(rows, running, rng)

    def _fit(self, rows: CodedRows, running: Running, weights: FloatArray | None = None) -> Regressions:
        return Regressions(
            rows, weights, l2=self.l2, tolerance=self.tolerance, max_iterations=self.max_iterations, running=running
        )

    def _learn(self, rows: CodedRows, running: Running, rng: np.random.Generator) -> LearnedGraph:
        fit = self._fit(rows, running)
        largest = fit.largest_penalty
        if self.penalty is None:
            # What predicts best may have many weak edges, all of them wrong.
            least = noise_level(fit.total, 2 if self.selection == "cv" else len(rows.kept))
            penalties = penalties_for(largest, least, self.n_penalties, self.smallest)
        else:
            penalties = halvings(largest, self.penalty)
        steps, stop = follow(fit, penalties, self.max_edges, relax=self.penalty is None)
        df = np.array([_parameters(rows, step) for step in steps])
        ebic = np.array([_ebic(rows, s, d, fit.total, self.gamma) for s, d in zip(steps, df, strict=True)])
        chosen, more, stop = self._choose(
            ebic,
            stop,
            (lambda n: self._held_out(rows, penalties[:n], running, rng)) if self.penalty is None else None,
            lambda n: self._frequencies(rows, penalties[:n], running, rng),
        )
        path = path_of(rows, steps, ebic, df, chosen, **more)
        return self._answer(rows, steps, path, fit, stop)

    def _answer(
        self, rows: CodedRows, steps: list[Step], path: Any, fit: Regressions, stop: BaseException | None
    ) -> LearnedGraph:
        table, taken = rows.table, self._taken(path)
        names = {v: i for i, v in enumerate(table.variables)}
        kept = [(names[a], names[b]) for (a, b), t in zip(path.edges, taken, strict=True) if t]
        stopped = what_stopped(stop)
        unfinished = [f"{step.penalty:.4g}" for step in steps if not step.converged]
        if unfinished and stopped is None:
            stopped = "max_iterations"
        return LearnedGraph(
            variables=table.variables,
            states=table.states,
            graph=undirected_graph(table, kept, [float(x) for x in path.strengths[path.chosen][taken]]),
            method=self.name,
            **self._score(path),
            iterations=fit.iterations,
            converged=stopped is None,
            stopped=stopped,
            notes=(*_notes(rows, unfinished), *self._choice_notes(path)),
            details=path,
        )

    def _held_out(
        self, rows: CodedRows, penalties: FloatArray, running: Running, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Log-pseudo-likelihood of the rows of each fold by the others, and its standard error."""
        if rows.n_draws < self.folds:
            raise ModelError(f"{rows.n_draws} rows cannot be cut into {self.folds} folds")
        fold = rng.permutation(rows.n_draws) % self.folds
        found = np.empty((self.folds, len(penalties)))
        shares = np.empty(self.folds)
        for k in range(self.folds):
            weights, out = rows.weights_of(fold != k), rows.weights_of(fold == k)
            fit = self._fit(rows, running, weights)
            scaled = penalties * (fit.total / rows.weights.sum())
            for i, penalty in enumerate(scaled):
                fit.minimise(float(penalty), float(scaled[i - 1]) if i else None)
                found[k, i] = fit.held_out(out) / out.sum()
            shares[k] = out.sum()
        return over_folds(found, shares)

    def _frequencies(
        self, rows: CodedRows, penalties: FloatArray, running: Running, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """How often each pair is found in half of the rows, and the bound on false edges."""
        p = len(rows.kept)
        times, edges = np.zeros((len(penalties), p, p)), 0
        for _ in range(self.subsamples):
            chosen = rng.permutation(rows.n_draws)[: max(rows.n_draws // 2, 1)]
            fit = self._fit(rows, running, rows.weights_of(chosen))
            ever = np.zeros((p, p), np.bool_)
            before = None
            for i, penalty in enumerate(penalties * (fit.total / rows.weights.sum())):
                fit.minimise(float(penalty), before)
                before = float(penalty)
                inside = np.triu(fit.norms) > 0
                times[i] += inside
                ever |= inside
            edges += int(ever.sum())
        return self._stability(times, edges)


def _parameters(rows: CodedRows, step: Step) -> int:
    """Parameters of all full conditionals: a variable's own, and those of an edge in both of its."""
    w = rows.widths
    return int(w.sum() + 2 * (w[step.pairs[:, 0]] * w[step.pairs[:, 1]]).sum())


def _ebic(rows: CodedRows, step: Step, df: int, total: float, gamma: float) -> float:
    likelihood = step.log_likelihood if math.isnan(step.relaxed) else step.relaxed
    p = max(len(rows.kept), 1)
    return likelihood - 0.5 * df * math.log(max(total, 1.0)) - 2 * gamma * len(step.pairs) * math.log(p)


def _notes(rows: CodedRows, unfinished: list[str]) -> list[str]:
    names = rows.table.variables
    constant = [names[v] for v in range(len(names)) if v not in rows.kept]
    notes = []
    if constant:
        notes.append(f"{', '.join(map(repr, constant[:6]))} never change{'s' * (len(constant) == 1)}: no edges")
    if unfinished:
        notes.append(f"max_iterations ended the search for the minimum at penalty {', '.join(unfinished[:6])}")
    return notes
