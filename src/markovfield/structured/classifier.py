"""A model, an objective and a solver, composed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from markovfield.exceptions import ModelError
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.settings import GraphSettings

__all__ = ["StructuredClassifier"]


@dataclass(eq=False, repr=False)
class StructuredClassifier(GraphSettings, StructuredEstimator):
    """Any conditional model with any objective and solver.

    Minimises ``objective + l1 |w|_1 + l2/2 |w|^2 + group_l1 sum_g sqrt(size_g) |w_g|``, the objective summed over
    examples.

    Parameters
    ----------
    model
        What x and w mean: a model of `markovfield.structured`, `markovfield.sequence` or `markovfield.vision`.
    objective
        ``"likelihood"``, ``"pseudo_likelihood"``, ``"piecewise"``, ``"expected_loss"``, ``"marginal_likelihood"``, or
        such an object with settings.
    solver
        ``"auto"`` is L-BFGS (OWL-QN where there is an l1); ``"sgd"``, ``"adagrad"`` and ``"adam"`` go through
        mini-batches; ``"steepest_descent"`` is algorithm 1 of Andres 6.3.6; or an object of `markovfield.learning`.
    inference
        What gives expectations in training, and marginals: ``"auto"`` is exact where that is cheap, loopy belief
        propagation elsewhere, or tree-reweighted messages where that misleads training; or a method of
        `markovfield.marginals`.
    decoding
        What finds best outputs: ``"auto"`` is exact where that is cheap, sequential tree-reweighted messages elsewhere;
        or a method of `markovfield.decode`.
    l2, l1
        Penalties: numbers, or by kind of factor, as ``l1={"edges": 0.1}`` (Murphy 19.77); kinds that a dict does not
        name cost nothing.
    group_l1
        On norms of groups, each times the root of its size, in the same way: a feature of the input, with the weights
        of all its labels, or a table is in or out as a whole.
    batch_size
        Examples of a mini-batch; None is 16.
    rng
        Seed or generator, for what is random: stochastic solvers, samplers, starts of hidden states.
    n_jobs
        Threads; None is all cores.

    Attributes
    ----------
    model_, weights_, coef_
        The model with its classes and sizes, the weights, and these by kind of factor.
    report_ : FitReport
        How training went.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> X = [(np.array([[1.0], [-1.0], [0.1]]), [[0, 1], [1, 2]]), (np.array([[-1.0], [-2.0]]), [[0, 1]])]
    >>> y = [[1, 0, 1], [0, 0]]
    >>> clf = mf.StructuredClassifier(mf.structured.GraphModel(), l2=0.1).fit(X, y)
    >>> [labels.tolist() for labels in clf.predict(X)], clf.report_.guarantee
    ([[1, 0, 1], [0, 0]], 'exact')
    """

    model: StructuredModel
    _: KW_ONLY
    group_l1: float | Mapping[str, float] = 0.0

    def _model(self) -> StructuredModel:
        if not isinstance(self.model, StructuredModel):
            raise ModelError(
                "model of StructuredClassifier must be one of markovfield.structured, such as GraphModel(), "
                f"got {self.model!r}"
            )
        return self.model
