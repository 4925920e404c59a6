"""Pseudo-likelihood: every variable given the labels of all others (Murphy 19.49; Besag 1975)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.undirected.local_objective import Cases, LocalLoss
from markovfield.learning.undirected.sites_kernel import PSEUDO
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.labels import check_labels

__all__ = ["PseudoLikelihood"]


@dataclass(frozen=True)
class PseudoLikelihood:
    """Minus the sum over variables of log p(label | labels of its neighbours, inputs), summed over examples.

    It needs no inference: an evaluation costs the states of each variable times its factors, whatever cycles the graph
    has, and it is convex. Where the model is true its minimum tends to the true weights; it trusts labels of neighbours
    that at prediction are not known, so that learned interactions tend to be too strong. All labels must be known.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = PseudoLikelihood().on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (2.0794, (9,))
    """

    name: ClassVar[str] = "pseudo_likelihood"

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> PseudoLikelihoodValue:
        """The function of weights."""
        return PseudoLikelihoodValue(batch, running)


class PseudoLikelihoodValue:
    """Minus the log-pseudo-likelihood of a batch and its gradient, as a function of weights."""

    guarantee, converged = "approximate", True

    def __init__(self, batch: Batch, running: Running) -> None:
        s, labels = batch.structure, batch.labels
        check_labels(batch, PseudoLikelihood.name)
        if s.cardinalities.max(initial=0) > np.iinfo(np.int16).max:
            raise ModelError(f"pseudo_likelihood takes variables of at most 32767 states, not {s.cardinalities.max()}")
        n = s.n_variables
        weights = np.zeros(int(s.value_offsets[-1]))
        weights[s.value_offsets[:-1] + labels] = (
            1.0 if batch.weights is None else batch.weights[batch.example_of_variable]
        )
        states = np.ascontiguousarray(labels[:, None], np.int16)
        states.flags.writeable = False
        cases = Cases(np.arange(n + 1), np.zeros(n, np.int64), np.array(s.value_offsets), weights)
        self.batch, self.loss = batch, LocalLoss(s, states, cases, PSEUDO, running)

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        value, gradient = self.loss(self.batch.pool(w))
        return value, self.batch.adjoint(gradient)
