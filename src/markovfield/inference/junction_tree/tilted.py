"""A model tilted by a loss, p(y) * loss(y) / E[loss], as a model with one more binary variable for each costly one.

A loss that adds up over variables is a choice: of which variable the loss is counted. The new variables say whether
that one has come by yet, one after the other; the state of the last is known, it has. Each joins the one before, the
variable and itself in a table that is 1 where nothing changes and the loss where it does: the sum over the choices is
the loss. In the order of a clique tree from above, each clique is passed at most twice, so the width grows by few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.factors.structure import Structure, c_order_strides
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.propagate import propagate

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["tilted_counts"]


class _Choices(NamedTuple):
    """The larger structure, and where the losses go.

    Attributes
    ----------
    own, cells
        ``int64``: for each number of a loss that is used, its place in the vector over all variables' states, and the
        cell that it goes to; so for every cell it goes to.
    zeros
        ``int64``: cells of what cannot be.
    last
        ``int64``: the variables that say whether a choice was made, one for each example that has a loss.
    """

    structure: Structure
    own: IntArray
    cells: IntArray
    zeros: IntArray
    last: IntArray


_CHOICES: Shelf[_Choices] = Shelf(2)


def tilted_counts(
    method: JunctionTree,
    graph: FactorGraph,
    evidence: Evidence,
    losses: FloatArray,
    offsets: IntArray,
    running: Running,
) -> FloatArray:
    """Expected counts of the tilted model (see `TiltingMethod`)."""
    s = graph.structure
    # Domains must not shrink by zeros that other losses need not have: the plan is for all of them.
    method = replace(method, propagate_zeros=False, order=None)
    costly = np.add.reduceat(losses, s.value_offsets[:-1]) > 0.0 if s.n_variables else np.zeros(0, np.bool_)
    key = (method, costly.tobytes(), offsets.tobytes())
    made = _CHOICES.get(s, key, lambda: _choices(method, graph, costly, offsets))
    pool = np.zeros(made.structure.n_cells)
    pool[: s.n_cells] = graph.log_tables
    with np.errstate(divide="ignore"):
        pool[made.cells] = np.log(losses[made.own])
    pool[made.zeros] = -np.inf
    states = np.full(made.structure.n_variables, -1, np.int32)
    states[: s.n_variables] = evidence.states
    states[made.last] = 1
    larger = FactorGraph(made.structure, pool, marks_hold=True)
    problem = method.prepare(larger, Evidence(states, evidence.likelihoods))
    result = propagate(method.plan(problem, running=running), problem, counts=True, running=running)
    counts: FloatArray = problem.counts(result.counts)[: s.n_cells]
    larger.cache.clear()  # what was worked out for it refers to it
    return counts


def _choices(method: JunctionTree, graph: FactorGraph, costly: BoolArray, offsets: IntArray) -> _Choices:
    s = graph.structure
    example = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    place = _places(method, graph)
    chosen = np.flatnonzero(costly)
    chosen = chosen[np.lexsort((place[chosen], example[chosen]))]
    scopes: list[tuple[int, ...]] = []
    tables: list[npt.NDArray[np.int64]] = []
    own, cells, zeros, last = [], [], [], []
    end, new, before = s.n_cells, s.n_variables, -1
    for i, v in enumerate(chosen.tolist()):
        k = int(s.cardinalities[v])
        values = int(s.value_offsets[v]) + np.arange(k)
        if before < 0:
            # The loss is counted here, or will be.
            scopes.append((v, new))
            tables.append(np.arange(end, end + 2 * k).reshape(k, 2))
            cells.append(tables[-1][:, 1])
        else:
            scopes.append((before, v, new))
            tables.append(np.arange(end, end + 4 * k).reshape(2, k, 2))
            cells.append(tables[-1][0, :, 1])
            zeros.append(tables[-1][1, :, 0])
        own.append(values)
        end += tables[-1].size
        before = new
        if i + 1 == len(chosen) or example[chosen[i + 1]] != example[v]:
            last.append(new)
            before = -1
        new += 1
    arities = np.array([len(scope) for scope in scopes], np.int64)
    joined = [np.array(scope, np.int32) for scope in scopes]
    starts = np.array([table.flat[0] for table in tables], np.int64)
    n_new = len(chosen)
    cards = np.concatenate([s.cardinalities, np.full(n_new, 2, np.int32)])
    more = np.cumsum(arities)
    new_offsets = np.concatenate([np.zeros(1, np.int64), more])
    new_scopes = np.concatenate([np.zeros(0, np.int32), *joined])
    structure = Structure.from_arrays(
        cards,
        np.concatenate([s.scope_offsets, s.scope_offsets[-1] + more]),
        np.concatenate([s.scopes, new_scopes]),
        np.concatenate([s.table_offsets, starts]),
        np.concatenate([s.table_strides, c_order_strides(cards, new_offsets, new_scopes)]),
        n_cells=end,
        kind=np.concatenate([s.kind, np.zeros(n_new, np.int8)]),
    )
    nothing = [np.zeros(0, np.int64)]
    own_places, loss_cells, zero_cells = (np.concatenate(nothing + part) for part in (own, cells, zeros))
    return _Choices(structure, own_places, loss_cells, zero_cells, np.array(last, np.int64))


def _places(method: JunctionTree, graph: FactorGraph) -> IntArray:
    """For each variable, the highest clique that has it; cliques are numbered from above, branch after branch."""
    tree = method.tree(method.prepare(graph, no_evidence(graph.structure)))
    place = np.zeros(graph.to_tables().structure.n_variables, np.int64)
    clique = np.repeat(np.arange(len(tree.parent)), np.diff(tree.offsets))
    place[tree.members[::-1]] = clique[::-1]
    return place[: graph.n_variables]
