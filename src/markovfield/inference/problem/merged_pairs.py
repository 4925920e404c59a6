"""Tables on the same two variables as one: a relaxation that keeps them apart is looser for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.factors.lattice import inherit_lattice
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.pairwise import pairwise
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.problem.reduction import Reduced, reduce

__all__ = ["merge_pairs", "prepare_merged"]


def prepare_merged(graph: FactorGraph, evidence: Evidence) -> Problem:
    """Like `prepare`, with no two factors on the same two variables.

    Together they may rule out states that neither does alone, so domains are shrunk again, until every state of every
    variable has a cell above -inf in each of its factors. Of the potentials only the logs are filled in.
    """
    problem = prepare(graph, evidence)
    while True:
        s = problem.structure
        structure, pool = merge_pairs(s, problem.potentials.log_tables)
        if structure is s:
            return problem
        problem = replace(problem, structure=structure, potentials=replace(problem.potentials, log_tables=pool))
        if not np.isneginf(pool[s.n_cells :]).any():
            return problem
        again = reduce(structure, pool, np.full(s.n_variables, -1, np.int32))
        if again.impossible:
            raise problem.impossible()
        if again.structure is structure:
            return problem
        problem = _shrunk(problem, again)


def _shrunk(problem: Problem, again: Reduced) -> Problem:
    """A problem after a second reduction, with the way back through both."""
    before = problem.reduced
    owner = np.repeat(np.arange(len(again.state_offsets) - 1), np.diff(again.state_offsets))
    states = again.states
    if before is not None:
        states = before.states[before.state_offsets[owner] + states]
        states.flags.writeable = False
    likelihood = problem.likelihood
    if len(likelihood):
        likelihood = likelihood[problem.structure.value_offsets[owner] + again.states]
    return replace(
        problem,
        structure=again.structure,
        potentials=replace(problem.potentials, log_tables=again.log_tables),
        reduced=replace(again, states=states),
        likelihood=likelihood,
    )


def merge_pairs(structure: Structure, log_tables: FloatArray) -> tuple[Structure, FloatArray]:
    """The structure with every such group replaced by one factor, and its pool with their sums at the end.

    What was given where there are none; the structural half is kept with the structure.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[0.0, 1.0], [2.0, 3.0]])
    >>> _ = net.add_factor(["B", "A"], log_table=[[0.0, 10.0], [20.0, 30.0]])
    >>> merged, pool = merge_pairs(net.compile().structure, net.compile().log_tables)
    >>> merged.n_factors, pool[-4:].tolist()
    (1, [0.0, 21.0, 12.0, 33.0])
    """
    s = structure
    merged, groups = _merged(s)
    if not groups:
        return s, log_tables
    sums = [np.asarray(sum(log_tables[cells] for cells in group)).ravel() for group in groups]
    pool = np.concatenate([log_tables, *sums])
    pool.flags.writeable = False
    return merged, pool


@remembered
def _merged(s: Structure) -> tuple[Structure, list[list[npt.NDArray[np.int64]]]]:
    view = pairwise(s)
    pairs = view.pairs[s.kind[view.pairs] == TABLE]
    axis = s.scope_offsets[pairs]
    low, high = np.minimum(s.scopes[axis], s.scopes[axis + 1]), np.maximum(s.scopes[axis], s.scopes[axis + 1])
    order = np.lexsort((pairs, high, low))
    new = np.ones(len(order), np.bool_)
    new[1:] = (low[order[1:]] != low[order[:-1]]) | (high[order[1:]] != high[order[:-1]])
    starts = np.append(np.flatnonzero(new), len(order))
    many = np.flatnonzero(np.diff(starts) > 1)
    if not len(many):
        return s, []
    gone = np.zeros(s.n_factors, np.bool_)
    scopes, strides, bases = s.scopes.copy(), s.table_strides.copy(), s.table_offsets.copy()
    groups, end = [], s.n_cells
    for k in many.tolist():
        members = pairs[order[starts[k] : starts[k + 1]]]
        lead = int(members[0])
        first = int(s.scope_offsets[lead])
        u, v = sorted(s.scope(lead).tolist())
        rows, columns = int(s.cardinalities[u]), int(s.cardinalities[v])
        i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
        group = []
        for f in members.tolist():
            one, two = s.strides(f).tolist() if s.scope(f)[0] == u else s.strides(f).tolist()[::-1]
            group.append(s.table_offsets[f] + one * i + two * j)
        groups.append(group)
        scopes[first], scopes[first + 1], strides[first], strides[first + 1] = u, v, columns, 1
        bases[lead] = end
        gone[members[1:]] = True
        end += rows * columns
    left = np.repeat(~gone, np.diff(s.scope_offsets))
    counts = np.diff(s.scope_offsets)[~gone]
    offsets = offsets_of(counts)
    structure = Structure.from_arrays(
        s.cardinalities, offsets, scopes[left], bases[~gone], strides[left], n_cells=end, kind=s.kind[~gone],
        names=s.names,
    )  # fmt: skip
    return inherit_lattice(structure, s), groups
