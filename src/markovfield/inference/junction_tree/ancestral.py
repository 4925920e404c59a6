"""Marginals of a directed model without evidence, ancestor set by ancestor set.

Without evidence the marginal of a variable depends on its ancestors alone. Each sink and its ancestors form a network
of their own, in which all marginals are those of the whole; together they cover everything. Where one tree of all
variables would be wide only because many sinks are moralised at once, these small trees cost far less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.plan import NANOSECONDS_PER_STATE, grow_tree, lay_out_tree
from markovfield.inference.junction_tree.propagate import propagate
from markovfield.inference.problem.problem import Problem

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["by_ancestors"]

# Networks of fewer cells have no wide trees worth a second look; planning and running one sink costs about this much.
FEWEST_CELLS = 10_000
NANOSECONDS_PER_SINK = 3e5


@remembered
def sinks(structure: Structure) -> npt.NDArray[np.int64] | None:
    """Variables that are nobody's parent, when every factor is the one distribution of its child; else None."""
    if not np.array_equal(np.sort(structure.child), np.arange(structure.n_variables)):
        return None
    own = np.repeat(structure.child, np.diff(structure.scope_offsets))
    is_parent = np.zeros(structure.n_variables, np.bool_)
    is_parent[structure.scopes[structure.scopes != own]] = True
    return np.flatnonzero(~is_parent)


def by_ancestors(
    method: JunctionTree, problem: Problem, running: Running
) -> tuple[npt.NDArray[np.float64], float, int] | None:
    """All single marginals (over the user's states), log Z and the width; None where one tree is the better way.

    The choice is made by predicted work: a greedy tree of the whole against a fixed cost for every sink.
    """
    whole = problem.as_tables.structure
    if whole.n_cells < FEWEST_CELLS or not method.drop_barren:
        return None
    ends = sinks(whole)
    if ends is None:
        return None
    log2_states = grow_tree(problem.structure, search=0.0).log2_states
    if NANOSECONDS_PER_STATE * 2.0 ** min(log2_states, 100.0) < NANOSECONDS_PER_SINK * len(ends):
        return None
    graph: FactorGraph = problem.as_tables
    values = np.zeros(int(whole.value_offsets[-1]))
    filled = np.zeros(whole.n_variables, np.bool_)
    value, width = 0.0, 0
    for end in ends.tolist():
        keep = np.zeros(whole.n_variables, np.bool_)
        keep[end] = True
        part = method.prepare(graph, Evidence.parse(whole, None), drop_barren=True, keep=keep)
        tree = grow_tree(part.structure, search=method.search, seed=method.seed)
        plan = lay_out_tree(part.structure, tree, memory_limit_bytes(method.memory_limit))
        result = propagate(plan, part, running=running)
        fresh = ~filled if part.reduced is None else ~filled & ~part.reduced.barren
        at = np.repeat(fresh, whole.cardinalities)
        values[at] = part.expand(result.marginals, 0.0)[at]
        filled |= fresh
        value, width = result.value, max(width, plan.width)
    n: Any = problem.graph.structure.value_offsets[-1]
    return values[: int(n)], value, width
