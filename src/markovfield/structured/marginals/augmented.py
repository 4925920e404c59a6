"""Batches of factor graphs with what labels cost."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.operators import LinearTerms

__all__ = ["with_losses"]


def with_losses(batch: Batch, costs: FloatArray) -> Batch:
    """A batch with one more factor for every variable, without weights: what its states cost; cells come last."""
    n = batch.structure.n_variables
    kind = Factors(np.arange(n)[:, None], LinearTerms(np.zeros((len(costs), 0))), batch.n_weights)
    base = np.zeros(batch.structure.n_cells) if batch.base is None else batch.base
    return Batch.of(
        batch.structure.cardinalities, batch.variable_offsets, [*batch.factors, kind], batch.n_weights, batch.labels,
        base=np.concatenate([base, costs]), weights=batch.weights, wide_inference=batch.wide_inference,
    )  # fmt: skip
