"""Which method infers for a batch of examples, where nobody says."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.forest import is_forest
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.tree_reweighted.tree_reweighted import TreeReweighted

__all__ = ["choose_inference"]

# Steps of a pass of the junction tree that an evaluation may take, about a second; and variables of an example above
# which no order is searched for, since a picture of that size is too wide.
MOST_STEPS, MOST_VARIABLES = 2e9, 2_000
# Messages are sent until they move by less than this: gradients are then good to about as many digits.
TOLERANCE, SWEEPS = 1e-5, 100


def choose_inference(structure: Structure, variable_offsets: IntArray, running: Running) -> Any:
    """Belief propagation for forests and the junction tree for what is narrow, both exact; else tree-reweighted."""
    s = structure
    if is_forest(s, no_evidence(s).states):
        return resolve("belief_propagation", "marginals")
    if int(np.diff(variable_offsets).max(initial=0)) <= MOST_VARIABLES:
        tree = JunctionTree(search=0.0, work_limit=MOST_STEPS)
        problem = tree.prepare(FactorGraph(s, np.zeros(s.n_cells), marks_hold=True), no_evidence(s))
        try:
            tree.plan(problem, running=running.quiet)
        except MemoryLimitError:
            pass
        else:
            return tree
    return TreeReweighted(tolerance=TOLERANCE, max_iterations=SWEEPS)
