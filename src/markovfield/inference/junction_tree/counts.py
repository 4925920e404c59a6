"""Expected counts by the junction tree: one row of clamps by its own reduced problem, many rows side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.inference.core.counts import Counts
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.compiled import CompiledJunctionTree
from markovfield.inference.junction_tree.propagate import propagate

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["tree_counts"]

_TREES: Shelf[CompiledJunctionTree] = Shelf(1)


def tree_counts(
    method: JunctionTree,
    graph: FactorGraph,
    clamps: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    running: Running,
) -> Counts:
    """log Z of each row, and the weighted sum of their expected counts."""
    if len(clamps) == 1:
        try:
            problem = method.prepare(graph, Evidence(clamps[0]))
            result = propagate(method.plan(problem, running=running), problem, counts=True, running=running)
        except ImpossibleEvidenceError:
            nothing = np.zeros(graph.structure.n_cells)
            return Counts(log_partition=np.array([-np.inf]), counts=nothing, method=method.name)
        counts = weights[0] * problem.counts(result.counts)
        value = np.array([result.value])
        return Counts(log_partition=value, counts=counts, method=method.name, _components=result.components)
    # Domains must not shrink by zeros that other tables of the same structure need not have.
    tree = _TREES.get(
        graph.structure, method, lambda: CompiledJunctionTree(graph, replace(method, propagate_zeros=False))
    )
    values, counts = tree.with_tables(graph.log_tables).expected_counts(clamps, weights, running=running)
    return Counts(log_partition=values, counts=counts, method=method.name)
