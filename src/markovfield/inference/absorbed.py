"""Preparing a problem whose virtual evidence rules states out: zeros of likelihoods shrink domains like any others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.factor_graph import FactorGraph, Structure
from markovfield.inference.evidence import Evidence
from markovfield.inference.problem import Problem, prepare

__all__ = ["prepare_absorbed"]


def prepare_absorbed(graph: FactorGraph, evidence: Evidence, *, drop_barren: bool = False) -> Problem:
    """Like `prepare`, but every state left has a finite score in every factor, likelihoods included.

    Likelihoods with a zero become factors of one variable before domains are shrunk, all others stay likelihoods.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 1.0]])
    >>> graph = net.compile()
    >>> problem = prepare_absorbed(graph, Evidence.parse(graph.structure, {"A": [0.0, 0.5]}))
    >>> problem.structure.cardinalities.tolist()
    [1, 1]
    """
    if not any(np.isneginf(vector).any() for _, vector in evidence.likelihoods):
        return prepare(graph, evidence, drop_barren=drop_barren)
    s = graph.structure
    hard = [(v, vector) for v, vector in evidence.likelihoods if np.isneginf(vector).any()]
    soft = tuple((v, vector) for v, vector in evidence.likelihoods if not np.isneginf(vector).any())
    sizes = np.array([len(vector) for _, vector in hard], np.int64)
    starts = s.n_cells + np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    more = len(hard)
    structure = Structure.from_arrays(
        s.cardinalities,
        np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 1 + np.arange(more)]),
        np.concatenate([s.scopes, np.array([v for v, _ in hard], np.int32)]),
        np.concatenate([s.table_offsets, starts[:-1]]),
        np.concatenate([s.table_strides, np.ones(more, np.int64)]),
        n_cells=int(starts[-1]),
        child=np.concatenate([s.child, np.full(more, -1, np.int32)]),
        kind=np.concatenate([s.kind, np.zeros(more, np.int8)]),
        names=s.names,
    )
    pool = np.concatenate([graph.log_tables, *(vector for _, vector in hard)])
    try:
        problem = prepare(FactorGraph(structure, pool), Evidence(evidence.states, soft), drop_barren=drop_barren)
    except ImpossibleEvidenceError:
        raise evidence.impossible(s) from None
    return replace(problem, graph=graph, evidence=evidence)
