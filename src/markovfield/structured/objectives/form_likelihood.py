"""The conditional likelihood of structures, by the dynamic programs of their family (Murphy 19.72, 19.6.2.4)."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.running import Running
from markovfield.structured.core.form_batch import FormBatch

__all__ = ["FormLikelihood"]


class FormLikelihood:
    """Minus the log-likelihood of a batch and its gradient, as a function of weights.

    Where outputs are hidden in part, their features are expectations too, over the structures that go with them.
    """

    method = None
    converged = True

    def __init__(self, batch: FormBatch, running: Running) -> None:
        self.batch, self.running = batch, running
        self.guarantee: Guarantee = "exact"
        if batch.parts is None:
            if not batch.hidden:
                raise ModelError("the likelihood needs outputs")
            return
        if batch.base is not None and np.isneginf(scores := batch.parts.scores(batch.base)).any():
            raise ModelError(f"example {int(np.flatnonzero(np.isneginf(scores))[0])}: the model rules its output out")

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        pool = self.batch.pool(w)
        free, expected = self._sums(pool, clamped=False)
        if (parts := self.batch.parts) is not None:
            # Features of the outputs are not kept: there may be many weights, and many batches.
            scores, weights = parts.scores(pool), self.batch.weights
            found = float(scores.sum() if weights is None else weights @ scores)
            expected -= parts.counts(len(pool), weights)
            return free - found, self.batch.adjoint(expected)
        clamped, seen = self._sums(pool, clamped=True)
        return free - clamped, self.batch.adjoint(expected - seen)

    def _sums(self, pool: FloatArray, *, clamped: bool) -> tuple[float, FloatArray]:
        found = self.batch.sums(pool, clamped=clamped, running=self.running.quiet)
        assert found.counts is not None
        values, weights = found.log_partition, self.batch.weights
        if np.isneginf(values).any():
            bad = int(np.flatnonzero(np.isneginf(values))[0])
            raise ModelError(f"example {bad}: the model rules out {'its output' if clamped else 'every structure'}")
        if not clamped:
            self.guarantee = found.guarantee
        return float(values.sum() if weights is None else weights @ values), found.counts
