"""What objectives ask of the labels of a batch."""

from __future__ import annotations

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.structured.core.batch import Batch

__all__ = ["check_labels"]


def check_labels(batch: Batch, objective: str) -> None:
    """Raise where a label is not known, or where the model rules labels out, naming the example."""
    if not batch.is_labelled:
        v = int(np.flatnonzero(batch.labels < 0)[0])
        i = int(batch.example_of_variable[v])
        raise ModelError(
            f"example {i}: label {v - int(batch.variable_offsets[i])} is not known, and {objective} needs all labels; "
            "use the likelihood, which sums over what is not known"
        )
    if batch.base is not None:
        out = np.flatnonzero(np.isneginf(batch.scores(batch.base)))
        if len(out):
            raise ModelError(f"example {int(out[0])}: the model rules its labels out")
