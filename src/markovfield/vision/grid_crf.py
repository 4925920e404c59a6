"""Conditional random fields on images, as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markovfield.arrays import FloatArray
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.settings import GraphSettings
from markovfield.vision.grid_model import GridModel, image_shapes

__all__ = ["GridCRF"]


@dataclass(kw_only=True, eq=False, repr=False)
class GridCRF(GraphSettings, StructuredEstimator):
    """Labels of pixels from features of pixels and of neighbours, all weights learned (Murphy 19.6.2.1, 19.6.3).

        log p(y | x) = sum over pixels of f(x, s) . w[y_s] + sum over neighbours of g(x, s, t) . v[y_s, y_t] - log Z(x)

    Training minimises ``-log-likelihood + l1 |w|_1 + l2/2 |w|^2``. Images of different sizes are one batch: inference
    runs for all of them at once. On all but narrow images log Z and its gradient come from loopy belief
    propagation, or, where that misleads training, from tree-reweighted messages, a bound that keeps training convex. An
    iteration is linear in pixels times the square of the number of classes.

    Parameters
    ----------
    connectivity, node_features, edge_features, directional, interaction
        Of `GridModel`: which pixels are neighbours, what is looked at, and what is learned of it.
    scales, window, beta, n_bins, truncation, unknown
        More settings of `GridModel`.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        Of `StructuredClassifier`: how it is trained, and what infers.

    Attributes
    ----------
    model_, weights_, coef_
        The model with its classes and sizes, the weights, and these by kind of factor: ``"pixels"`` and ``"edges"``, or
        a direction.
    report_ : FitReport
        How training went.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> rng = np.random.default_rng(0)
    >>> labels = [(np.arange(n) > n // 2).astype(int) * np.ones((6, 1), int) for n in (8, 10, 12)]
    >>> images = [label + rng.normal(scale=0.6, size=label.shape) for label in labels]
    >>> crf = mf.GridCRF(edge_features="constant", l2=0.1).fit(images[:2], labels[:2])
    >>> crf.score(images[2:], labels[2:]), crf.predict_marginals(images)[2].shape
    (1.0, (6, 12, 2))
    """

    connectivity: int = 4
    node_features: str | Sequence[str] | None = "values"
    edge_features: str | Sequence[str] | None = "contrast"
    directional: bool = False
    interaction: str | None = None
    scales: Sequence[float] = (1, 2, 4)
    window: int = 3
    beta: float | None = None
    n_bins: int = 4
    truncation: int = 2
    unknown: Any = None

    def _model(self) -> GridModel:
        return GridModel(
            connectivity=self.connectivity,
            node_features=self.node_features,
            edge_features=self.edge_features,
            directional=self.directional,
            interaction=self.interaction,
            scales=self.scales,
            window=self.window,
            beta=self.beta,
            n_bins=self.n_bins,
            truncation=self.truncation,
            unknown=self.unknown,
        )

    def predict_marginals(self, X: Any, *, fixed: Any = None, constraints: Sequence[Any] | None = None) -> list[Any]:
        """For each image ``float64[rows, columns, n_classes]``: probabilities of the labels of every pixel."""
        found = self.marginals(X, fixed=fixed, constraints=constraints).values
        return [p.reshape(*shape, -1) for p, shape in zip(found, image_shapes(X), strict=True)]

    def predict_entropy(
        self, X: Any, *, fixed: Any = None, constraints: Sequence[Any] | None = None
    ) -> list[FloatArray]:
        """For each image ``float64[rows, columns]``: entropy of every pixel's label in nats, 0 where the model is sure.

        The most is the log of the number of classes, where it knows nothing.
        """
        found = self.marginals(X, fixed=fixed, constraints=constraints).entropies
        return [entropy.reshape(shape) for entropy, shape in zip(found, image_shapes(X), strict=True)]
