"""Skip chains and factorial chains as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.sequence.conditional.factorial_chain import FactorialChainModel
from markovfield.sequence.conditional.skip_chain import Link, SkipChainModel
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.settings import GraphSettings

__all__ = ["FactorialCRF", "SkipChainCRF"]


@dataclass(eq=False, repr=False)
class SkipChainCRF(GraphSettings, StructuredEstimator):
    """A linear-chain CRF with links between tokens further apart, such as equal words (Sutton and McCallum 2004).

    Inputs and outputs are those of `ChainCRF`. Training minimises ``objective + l1 |w|_1 + l2/2 |w|^2``.

    Parameters
    ----------
    link, interaction, link_features, max_links, max_distance, word, min_count
        Which tokens are linked and what is learned of them, see `SkipChainModel`.
    l2, l1, objective, solver, inference, decoding, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> X = [[["w=Rome"], ["w=is"], ["w=Rome"]], [["w=Ana"], ["w=is"], ["w=Ana"]]]
    >>> y = [["LOC", "O", "LOC"], ["PER", "O", "PER"]]
    >>> crf = SkipChainCRF(l2=0.1).fit(X, y)
    >>> crf.predict(X), crf.report_.guarantee
    ([['LOC', 'O', 'LOC'], ['PER', 'O', 'PER']], 'exact')
    """

    link: Link = "equal_capitalised"
    _: KW_ONLY
    interaction: str = "symmetric"
    link_features: bool = False
    max_links: int | None = 5
    max_distance: int | None = None
    word: str | None = None
    min_count: int = 1

    def _model(self) -> SkipChainModel:
        return SkipChainModel(
            self.link,
            self.interaction,
            self.link_features,
            self.max_links,
            self.max_distance,
            self.word,
            self.min_count,
        )


@dataclass(eq=False, repr=False)
class FactorialCRF(GraphSettings, StructuredEstimator):
    """Several layers of labels over the same tokens, predicted together (Sutton, McCallum and Rohanimanesh 2007).

    Inputs are those of `ChainCRF`. An output is a dict with a list of labels for each layer; tables with a column for
    each layer are taken, too. Training minimises ``objective + l1 |w|_1 + l2/2 |w|^2``.

    Parameters
    ----------
    layers, across, pair_features, min_count
        The layers and how they are joined, see `FactorialChainModel`.
    l2, l1, objective, solver, inference, decoding, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"], ["w=ran"]], [["w=a"], ["w=dog"]]]
    >>> Y = [{"tag": ["D", "N", "V"], "chunk": ["B", "I", "O"]}, {"tag": ["D", "N"], "chunk": ["B", "I"]}]
    >>> crf = FactorialCRF(["tag", "chunk"], l2=0.1).fit(X, Y)
    >>> crf.predict([[["w=the"], ["w=dog"]]])
    [{'tag': ['D', 'N'], 'chunk': ['B', 'I']}]
    """

    layers: Sequence[str]
    _: KW_ONLY
    across: bool = False
    pair_features: bool = False
    min_count: int = 1

    def _model(self) -> FactorialChainModel:
        return FactorialChainModel(self.layers, self.across, self.pair_features, self.min_count)

    def predict_marginals(self, X: Any, *, fixed: Any = None, constraints: Any = None) -> list[dict[str, FloatArray]]:
        """For each sentence a dict with ``float64[length, n_labels]`` for each layer."""
        values = self.marginals(X, fixed=fixed, constraints=constraints).values
        layers, depth = list(zip(self.layers, self.model_.classes, strict=True)), len(self.layers)
        return [
            {name: np.reshape(own[i::depth], (-1, len(labels))) for i, (name, labels) in enumerate(layers)}
            for own in values
        ]
