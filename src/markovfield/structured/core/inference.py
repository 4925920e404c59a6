"""Which method infers for a batch of examples, where nobody says."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation
from markovfield.inference.belief_propagation.forest import is_forest
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.tree_reweighted.tree_reweighted import TreeReweighted
from markovfield.inference.trws.trws import TRWS

__all__ = ["choose_decoding", "choose_inference", "convex_inference"]

# Steps of a pass of the junction tree that an evaluation may take, about a second; and variables of an example above
# which no order is searched for, since a picture of that size is too wide.
MOST_STEPS, MOST_VARIABLES = 2e9, 2_000
# Messages are sent until they move by less than this: gradients are then good to about as many digits.
TOLERANCE, SWEEPS = 1e-5, 100
# The tree-reweighted bound does not feel an error in the messages to first order.
BOUND_TOLERANCE, BOUND_SWEEPS = 1e-3, 100
# Spanning trees of the bound. A number makes the bound of an example the same alone and in a union of any size; more
# trees are tighter by some percent, cost half a sweep each, and have not made better predictions.
BOUND_TREES = 4
# Passes of sequential tree-reweighted messages, which end before that where the best is proven.
PASSES = 100


def choose_inference(
    structure: Structure, variable_offsets: IntArray, running: Running, wide_inference: str = "belief_propagation"
) -> Any:
    """Messages for forests, the junction tree for what is narrow, both exact; for the rest loopy messages.

    Loopy belief propagation is fast, and good where loops are few or labels well told by the input. Where neighbours
    attract each other its fixed points are several, and training that follows them gets stuck: it then goes on with
    tree-reweighted messages, whose objective is convex (see `training`).
    """
    if is_forest(structure, no_evidence(structure).states):
        return resolve("belief_propagation", "marginals")
    tree = _narrow(structure, variable_offsets, running)
    if tree is not None:
        return tree
    if wide_inference == "tree_reweighted":
        return convex_inference()
    return BeliefPropagation(tolerance=TOLERANCE, max_iterations=SWEEPS)


def convex_inference() -> TreeReweighted:
    """Tree-reweighted messages, as sharp as training needs them."""
    return TreeReweighted(tolerance=BOUND_TOLERANCE, max_iterations=BOUND_SWEEPS, n_trees=BOUND_TREES)


def choose_decoding(structure: Structure, variable_offsets: IntArray, running: Running) -> Any:
    """The same for best outputs, with sequential tree-reweighted messages for what is wide, which bound the best."""
    if is_forest(structure, no_evidence(structure).states):
        return resolve("belief_propagation", "decode")
    tree = _narrow(structure, variable_offsets, running)
    return TRWS(max_iterations=PASSES) if tree is None else tree


def _narrow(s: Structure, variable_offsets: IntArray, running: Running) -> JunctionTree | None:
    """A junction tree that is planned already, where a pass is cheap."""
    if int(np.diff(variable_offsets).max(initial=0)) > MOST_VARIABLES:
        return None
    tree = JunctionTree(search=0.0, work_limit=MOST_STEPS)
    problem = tree.prepare(FactorGraph(s, np.zeros(s.n_cells), marks_hold=True), no_evidence(s))
    try:
        tree.plan(problem, running=running.quiet)
    except MemoryLimitError:
        return None
    return tree
