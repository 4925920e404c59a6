"""Structural SVMs on images, as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markovfield.inference.core.method import MethodLike
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.margin_estimator import MarginEstimator
from markovfield.structured.settings import MarginSettings
from markovfield.vision.grid_model import GridModel

__all__ = ["GridSSVM"]


@dataclass(kw_only=True, eq=False, repr=False)
class GridSSVM(MarginSettings, StructuredEstimator, MarginEstimator):
    """Labels of pixels from features of pixels and of neighbours, by a structural SVM (Murphy 19.7).

    Minimised is ``1/2 |w|^2 + C sum_i hinge_i`` over images. On all but narrow images the most violated labels come
    from sequential tree-reweighted messages, which say how far from the best they can be; the report tells whether its
    gap is proven.

    Parameters
    ----------
    C, loss, rescaling, class_weight, l1, associative, solver, decoding, early_stopping, batch_size, rng, n_jobs
        As those of `GraphSSVM`.
    connectivity, node_features, edge_features, directional, interaction
        Of `GridModel`: which pixels are neighbours, what is looked at, and what is learned of it.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> rng = np.random.default_rng(0)
    >>> labels = [(np.arange(n) > n // 2).astype(int) * np.ones((6, 1), int) for n in (8, 10, 12)]
    >>> images = [label + rng.normal(scale=0.6, size=label.shape) for label in labels]
    >>> svm = mf.vision.GridSSVM(1.0, edge_features="constant", rng=0).fit(images[:2], labels[:2])
    >>> svm.score(images[2:], labels[2:]) > 0.95
    True
    """

    connectivity: int = 4
    node_features: str | Sequence[str] | None = "values"
    edge_features: str | Sequence[str] | None = "contrast"
    directional: bool = False
    interaction: str | None = None
    class_weight: Any = None
    l1: float = 0.0
    associative: bool = False
    decoding: MethodLike = "auto"

    def _model(self) -> GridModel:
        return GridModel(
            connectivity=self.connectivity,
            node_features=self.node_features,
            edge_features=self.edge_features,
            directional=self.directional,
            interaction=self.interaction,
        )
