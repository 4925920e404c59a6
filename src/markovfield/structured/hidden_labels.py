"""The best labels where labels stand for hidden states: what they stand for is summed over (marginal MAP)."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.inference import MOST_STEPS
from markovfield.structured.prediction import impossible

__all__ = ["best_labels"]

# Hidden states that are joined join the labels they belong to, all of them; with more labels it is not even tried.
MOST_LABELS = 64


def best_labels(
    batch: Batch, w: FloatArray, per_label: int, running: Running, n_best: int = 1
) -> list[tuple[Any, float]] | None:
    """The n most probable labels of all variables and their scores; None where finding them would take too long.

    Every label stands for ``per_label`` states, one after the other. A variable more for each label, which is what its
    states say, makes it marginal MAP: the junction tree sums states out first, so that its cliques hold all labels
    whose states are joined, and it takes the number of their combinations.
    """
    n = batch.structure.n_variables
    if int(np.diff(batch.variable_offsets).max(initial=0)) > MOST_LABELS:
        return None
    state = np.arange(int(batch.structure.cardinalities.max(initial=0)))
    says = (state // per_label)[:, None] == np.arange(len(state) // per_label)
    tables = np.where(says, 0.0, -np.inf).ravel()
    pool = np.concatenate([batch.restricted(batch.pool(w)), tables])
    graph = FactorGraph(_with_labels(batch.structure, len(state), per_label), pool)
    labels = Evidence(np.concatenate([batch.labels, np.full(n, -1, np.int32)]))
    tree = JunctionTree(search=0.0, work_limit=MOST_STEPS)
    try:
        answer = tree.decode(graph, labels, variables=range(n, 2 * n), n_best=n_best, running=running)
    except MemoryLimitError:
        return None
    except ImpossibleEvidenceError:
        raise impossible() from None
    if not np.isfinite(answer.score):
        raise impossible()
    return [(np.ascontiguousarray(one.states[n:], np.int32), one.score) for one in answer.n_best]


def _with_labels(s: Structure, n_states: int, per_label: int) -> Structure:
    """The structure with a variable for each label behind the others, joined to its states by one table for all."""
    n = s.n_variables
    return Structure.from_arrays(
        np.concatenate([s.cardinalities, s.cardinalities // per_label]),
        np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 2 + 2 * np.arange(n)]),
        np.concatenate([s.scopes, np.column_stack([np.arange(n), n + np.arange(n)]).ravel()]),
        np.concatenate([s.table_offsets, np.full(n, s.n_cells)]),
        np.concatenate([s.table_strides, np.tile([n_states // per_label, 1], n)]),
        n_cells=s.n_cells + n_states * (n_states // per_label),
        kind=np.concatenate([s.kind, np.zeros(n, np.int8)]),
    )
