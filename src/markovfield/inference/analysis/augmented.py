"""Decoding the same model again and again with other scores of single states: loss-augmented and diverse decoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.method import MethodLike
from markovfield.inference.verbs import decode, graph_of

__all__ = ["AugmentedDecoder", "diverse_best"]


class AugmentedDecoder:
    """A model whose variables each have one more table, to be filled in anew for every decoding.

    This is what max-margin training asks for at every step (Murphy 19.7): the assignment that maximises score plus
    loss. The structure, and with it every plan, is made once; a decoding makes nothing of the size of the model but the
    log-potentials it decodes, which stay with its answer, and that answer.

    Parameters
    ----------
    model
        Anything that compiles to a factor graph.
    method
        As for `markovfield.decode`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[0.0, 0.0], [0.0, 1.0]])
    >>> decoder = AugmentedDecoder(net)
    >>> loss = decoder.hamming({"A": 1, "B": 1})
    >>> decoder.decode(loss).assignment, decoder.decode().assignment
    ({'A': 0, 'B': 0}, {'A': 1, 'B': 1})
    """

    def __repr__(self) -> str:
        return f"AugmentedDecoder({self.graph!r}, {self.method!r})"

    def __init__(self, model: Any, method: MethodLike = "auto") -> None:
        self.graph = graph_of(model)
        self.method = method
        s = self.graph.structure
        n, cells = s.n_variables, s.n_cells
        starts = cells + s.value_offsets[:-1]
        self._structure = Structure.from_arrays(
            s.cardinalities,
            np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 1 + np.arange(n)]),
            np.concatenate([s.scopes, np.arange(n, dtype=np.int32)]),
            np.concatenate([s.table_offsets, starts]),
            np.concatenate([s.table_strides, np.ones(n, np.int64)]),
            n_cells=cells + int(s.value_offsets[-1]),
            kind=np.concatenate([s.kind, np.zeros(n, np.int8)]),
            names=s.names,
        )
        self._log_tables = self.graph.log_tables

    def decode(
        self, unaries: npt.ArrayLike | None = None, log_tables: npt.ArrayLike | None = None, **keywords: Any
    ) -> Decoding:
        """The best assignment of the model with ``unaries`` added.

        Parameters
        ----------
        unaries
            ``float64[sum of cardinalities]``: what to add to the score of each state of each variable; none is zero.
        log_tables
            Other log-potentials for the model itself; None keeps those of the last call.
        keywords
            Those of `markovfield.decode`. The score of the answer holds what was added.
        """
        if log_tables is not None:
            self._log_tables = self.graph.with_tables(log_tables).log_tables
        added = np.zeros(int(self.graph.structure.value_offsets[-1]))
        if unaries is not None:
            added[:] = unaries
        if np.isnan(added).any():
            raise ModelError("unaries must be numbers, got nan")
        # Read-only, so that the graph takes it as it is; no later decoding writes to what this answer's graph reads.
        pool = np.concatenate([self._log_tables, added])
        pool.flags.writeable = False
        return decode(FactorGraph(self._structure, pool), method=self.method, **keywords)

    def hamming(self, truth: Mapping[Any, Any] | npt.ArrayLike, scale: float = 1.0) -> FloatArray:
        """The Hamming loss as unaries: ``scale`` for every state but the true one, of the variables that have one.

        ``truth`` is a dict of states by name, or ``int[n]`` state indices, -1 where unknown.
        """
        s = self.graph.structure
        states = np.full(s.n_variables, -1, np.int64)
        if isinstance(truth, Mapping):
            for name, state in truth.items():
                v = s.names.position(name)
                states[v] = s.names.state(v, state, int(s.cardinalities[v]))
        else:
            states[:] = truth
        known = np.flatnonzero(states >= 0)
        result = np.where(np.repeat(states >= 0, s.cardinalities), scale, 0.0)
        result[s.value_offsets[known] + states[known]] = 0.0
        return result


def diverse_best(
    model: Any,
    n: int,
    *,
    penalty: float,
    evidence: Mapping[Any, Any] | None = None,
    method: MethodLike = "auto",
    **keywords: Any,
) -> tuple[Decoding, ...]:
    """Good assignments that differ: each maximises its score less a penalty for every state it shares with one before.

    The *n* best assignments of a large model differ in a pixel or two. These are the diverse *M* best of Batra,
    Yadollahpour, Guzman-Rivera and Shakhnarovich (2012): the first is the best, and the penalty says how many points
    of score a variable in another state is worth.

    Parameters
    ----------
    n
        How many; fewer come back where an assignment repeats itself.
    penalty
        What sharing the state of one variable with one earlier assignment costs, positive.
    keywords
        Those of `markovfield.decode`.

    Returns
    -------
    tuple of Decoding
        Scores are those of the model itself; the gap of the first is proven, those of the others are infinite.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((4, 4), coupling=0.5)
    >>> first, second = mf.analysis.diverse_best(model, 2, penalty=1.0)
    >>> sorted([sum(first.assignment.values()), sum(second.assignment.values())])
    [-16, 16]
    """
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ModelError(f"n must be an integer of at least 1, got {n!r}")
    if not 0 < penalty < np.inf:
        raise ModelError(f"penalty must be positive and finite, got {penalty!r}")
    graph = graph_of(model)
    decoder = AugmentedDecoder(graph, method)
    offsets = graph.structure.value_offsets[:-1]
    unaries = np.zeros(int(graph.structure.value_offsets[-1]))
    found: list[Decoding] = []
    seen: set[bytes] = set()
    while len(found) < n:
        answer = decoder.decode(unaries, evidence=evidence, **keywords)
        if answer.states.tobytes() in seen:
            break
        seen.add(answer.states.tobytes())
        if found:
            score = answer.score - float(unaries[offsets + answer.states].sum())
            own = replace(answer.n_best[0], score=score)
            answer = replace(answer, score=score, gap=np.inf, guarantee="lower", n_best=(own,))
        found.append(replace(answer, graph=graph))
        unaries[offsets + answer.states] -= penalty
    return tuple(found)
