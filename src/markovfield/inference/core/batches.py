"""Marginals for many rows of evidence at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, Frozen
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular, fresh_name
from markovfield.names import VariableName

__all__ = ["MarginalsBatch", "prediction_columns"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MarginalsBatch(Frozen, Tabular):
    """Marginals for many rows of evidence.

    As a frame it has a row for each row of evidence: each variable's likeliest state, the probabilities of its states
    (``P(X=state)``), and log Z.

    Attributes
    ----------
    values
        ``float64[rows, sum of cardinalities]``; ``batch["X"]`` is X's part, ``[rows, cardinality]``.
    log_partition
        ``float64[rows]``.
    """

    graph: FactorGraph
    values: FloatArray
    log_partition: FloatArray
    guarantee: str = "exact"
    method: str = "junction_tree"
    seconds: float = 0.0

    def __getitem__(self, variable: VariableName) -> FloatArray:
        offsets = self.graph.structure.value_offsets
        v = self.graph.names.position(variable)
        return self.values[:, offsets[v] : offsets[v + 1]]

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self.graph.variables)

    def __len__(self) -> int:
        return self.graph.n_variables

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns: dict[Any, Any] = {}
        for name in self:
            columns |= prediction_columns(self.graph, name, self[name][:limit])
        return columns | {fresh_name("log_partition", list(columns)): self.log_partition[:limit]}

    def __repr__(self) -> str:
        rows, by = len(self.values), f"{self.guarantee}, {self.method}, {self.seconds:.3g} s"
        return f"{type(self).__name__}({rows} rows of {len(self)} variables, {by})"


def prediction_columns(graph: FactorGraph, variable: VariableName, p: FloatArray) -> dict[Any, Any]:
    """Columns of a variable from ``p[row, state]``: its likeliest state, None for rows of nan; its probabilities."""
    states = graph.names.state_names(graph.names.position(variable), p.shape[1])
    named = [*states, None]
    best = np.where(np.isnan(p).any(axis=1), len(states), np.argmax(np.nan_to_num(p), axis=1))
    columns: dict[Any, Any] = {variable: [named[k] for k in best.tolist()]}
    return columns | {f"P({variable}={state})": p[:, k] for k, state in enumerate(states)}
