"""Problems of single variables and pairs, prepared for cuts: who is joined to whom, and where the cells lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import DISTANCE, NOISY_MAX, TABLE
from markovfield.factors.lattice import inherit_lattice
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.pairwise import pairwise, unary_scores
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["PairProblem", "pair_problem"]


@dataclass(frozen=True, eq=False)
class PairProblem:
    """A prepared problem without factors of three or more variables.

    Attributes
    ----------
    unary
        ``float64[n, most states]``: the score of each state of each variable by itself, with likelihoods; -inf where
        it is ruled out or beyond the variable's states.
    low, high
        ``int64[m]``: the variables of each factor of two, ``low < high``.
    base, low_stride, high_stride
        ``int64[m]``: the factor's cell in the pool is base plus, for either variable, stride times state.
    constant
        Score of the factors that have no variable left.
    """

    problem: Problem
    unary: FloatArray
    low: IntArray
    high: IntArray
    base: IntArray
    low_stride: IntArray
    high_stride: IntArray
    constant: float

    @property
    def n_variables(self) -> int:
        """How many variables the problem has, observed ones included."""
        return len(self.unary)

    @property
    def pool(self) -> FloatArray:
        """The log-potentials."""
        return self.problem.potentials.log_tables

    def cells(self, states: npt.NDArray[Any]) -> IntArray:
        """The cell that each factor of two reads."""
        cells: IntArray = self.base + self.low_stride * states[self.low] + self.high_stride * states[self.high]
        return cells

    def score(self, states: npt.NDArray[Any]) -> float:
        """Sum of the log-potentials and log-likelihoods of an assignment of the problem."""
        unary = self.unary[np.arange(len(states)), states]
        return float(unary.sum() + self.pool[self.cells(states)].sum()) + self.constant


@remembered
def _small_tables(graph: FactorGraph) -> FactorGraph:
    """Structured factors of at most two variables as plain tables: otherwise they would join three."""
    s = graph.structure
    arity = np.diff(s.scope_offsets)
    small = np.flatnonzero((s.kind != TABLE) & (s.kind != DISTANCE) & (s.kind != NOISY_MAX) & (arity <= 2))
    if not len(small):
        return graph
    offsets, strides, kind = s.table_offsets.copy(), s.table_strides.copy(), s.kind.copy()
    pool, end = [graph.log_tables], s.n_cells
    for f in small.tolist():
        table = graph.table(f)
        offsets[f], kind[f] = end, TABLE
        for axis, step in enumerate(table.strides):
            strides[s.scope_offsets[f] + axis] = step // table.itemsize
        pool.append(table.ravel())
        end += table.size
    structure = Structure.from_arrays(
        s.cardinalities, s.scope_offsets, s.scopes, offsets, strides,
        n_cells=end, child=s.child, kind=kind, names=s.names,
    )  # fmt: skip
    return FactorGraph(inherit_lattice(structure, s), np.concatenate(pool), marks_hold=True)


def _check_arity(method: str, problem: Problem) -> None:
    s = problem.structure
    arity = np.diff(s.scope_offsets)
    if not (arity > 2).any():
        return
    f = int(np.argmax(arity > 2))
    own = [problem.graph.variables[v] for v in s.scope(f).tolist() if v < problem.graph.n_variables]
    named = ", ".join(repr(v) for v in own[:4]) + (", ..." if len(own) > 4 else "")
    raise ModelError(
        f"{method} takes factors of at most two free variables, and one joins {int(arity[f])} ({named}): "
        "use tree_reweighted or junction_tree"
    )


def pair_problem(method: str, graph: FactorGraph, evidence: Evidence, *, shrink: bool) -> PairProblem:
    """Prepare a model for cuts; ``shrink`` removes the states that hard zeros rule out.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["B", "A"], log_table=[[1.0, 2.0], [3.0, 4.0]])
    >>> graph = net.compile()
    >>> pairs = pair_problem("graph_cut", graph, Evidence.parse(graph.structure, None), shrink=True)
    >>> pairs.low.tolist(), pairs.high.tolist(), pairs.score(np.array([0, 1]))
    ([0], [1], 3.0)
    """
    plain = _small_tables(graph)
    problem = prepare(plain, evidence) if shrink else prepare(plain, evidence, propagate_zeros=False)
    problem = replace(problem, graph=graph)
    _check_arity(method, problem)
    s = problem.structure
    view = pairwise(s)
    scores, constant = unary_scores(problem)
    unary = np.full((s.n_variables, int(s.cardinalities.max(initial=1))), -np.inf)
    unary[np.arange(unary.shape[1]) < s.cardinalities[:, None]] = scores
    if constant == -np.inf or np.isneginf(unary.max(axis=1, initial=-np.inf)).any():
        raise problem.impossible()
    base = s.table_offsets[view.pairs]
    return PairProblem(problem, unary, view.low, view.high, base, view.low_stride, view.high_stride, constant)
