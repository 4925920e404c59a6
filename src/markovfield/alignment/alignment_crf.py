"""Word alignment learnt from links: a conditional random field on matchings, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import number
from markovfield.alignment.alignment_model import AlignmentModel, AlignmentShape
from markovfield.alignment.link_features import ALONE, LINKS
from markovfield.alignment.links import gold_tables, links_above
from markovfield.alignment.sentences import checked_pairs
from markovfield.alignment.statistics import CorpusStatistics
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.structured.core.reading import example_count
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.settings import LikelihoodSettings

__all__ = ["AlignmentCRF"]


@dataclass(kw_only=True, eq=False, repr=False)
class AlignmentCRF(LikelihoodSettings, FormEstimator):
    """Word alignment as matching (Taskar, Lacoste-Julien and Klein 2005): links of sentence pairs, learnt from links.

    A word has one link at most, and the best links are an assignment. What a link scores is linear in what a corpus
    without links says of it (the Dice coefficient, posteriors of `IBM1` and `HMMAligner` in both directions, also those
    of the neighbours), how far it is from the diagonal, how both words are written and how rare they are; words without
    a link have scores, too. Inputs are pairs ``(source words, target words)``, outputs are links ``(i, j)``; ``score``
    is 1 less the alignment error rate.

    Parameters
    ----------
    objective
        ``"likelihood"``, or ``"hinge"``: a structural SVM, whose oracle is exact. Their links are as good as each
        other's, and probabilities of the first one are better.
    possible
        Of gold links that are only possible: ``"likeliest"`` takes those that models of the corpus find likelier than
        not, ``"hidden"`` sums over all matchings that go with the gold links (not for a hinge).
    exact_limit
        Sums are exact as long as their tables have so many numbers at most (about 11 words on the shorter side);
        beyond, they are Bethe's lower bound, and so are the probabilities of links approximate. Decoding is exact.
    l2, l1, solver, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Attributes
    ----------
    model_, weights_, report_
        What was learnt; ``named_weights()`` tells the weight of each feature.

    Notes
    -----
    Features take ``I J`` steps for a pair of I and J words after the posteriors of four models, decoding at most
    ``(I + J)^3``, and Bethe's sums ``I J`` for each of some tens of iterations.

    Examples
    --------
    >>> import markovfield as mf
    >>> pairs = [("the house".split(), "la maison".split()), ("a house".split(), "une maison".split())]
    >>> pairs += [("the old book".split(), "le vieux livre".split()), ("a book".split(), "un livre".split())]
    >>> links = [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]]
    >>> crf = mf.AlignmentCRF().fit(pairs, links)
    >>> crf.predict([("the old house".split(), "la vieille maison".split())])
    [[(0, 0), (1, 1), (2, 2)]]
    >>> crf.score(pairs, links)
    1.0
    """

    possible: str = "likeliest"
    exact_limit: float = 1e5
    _statistics: CorpusStatistics | None = field(default=None, init=False)

    def _model(self) -> AlignmentModel:
        shape = None if self._statistics is None else AlignmentShape(statistics=self._statistics)
        return AlignmentModel(self.possible, number(self.exact_limit, "exact_limit", least=0.0), shape=shape)

    @shows_progress
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        corpus: Any = None,
        init: FloatArray | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Any:
        """Learn weights from sentence pairs and their links.

        Parameters
        ----------
        X, y
            A list of ``(source words, target words)``, and for each its links: pairs ``(i, j)`` of positions, or a
            `GoldLinks` with those that are only possible.
        sample_weight
            What each pair weighs; one when None.
        corpus
            Sentence pairs without links, from which statistics of words are learnt, the more the better; or the
            ``statistics`` of another fit (``crf.model_.statistics``). X itself when None.
        init, time_limit, callback, progress
            As those of `StructuredClassifier.fit`; the time limit is for weights and for statistics apart.
        """
        pairs = checked_pairs(X)
        if y is None:
            raise ModelError("y must be a list with the links of each pair, got None")
        example_count(pairs, y)
        for k, (links, (source, target)) in enumerate(zip(y, pairs, strict=True)):
            gold_tables(links, k, len(source), len(target))
        self._model()
        if isinstance(corpus, CorpusStatistics):
            self._statistics = corpus
        else:
            given = pairs if corpus is None else checked_pairs(corpus, what="corpus")
            self._statistics = CorpusStatistics.learned(given, Running(self.n_jobs, time_limit, callback))
        try:
            words = {"init": init, "time_limit": time_limit, "callback": callback}
            return super().fit(pairs, list(y), sample_weight, **words)
        finally:
            self._statistics = None

    def predict(self, X: Any, *, decision: str = "map", threshold: float | None = None) -> list[Any]:
        """The links of each pair.

        Parameters
        ----------
        X
            Sentence pairs.
        decision
            ``"map"``: the likeliest matching. ``"mbr"``: the matching with the most links that are expected to be
            right, less those expected to be wrong.
        threshold
            All links of at least such a probability instead; a word may then have several where it is below 1/2.
        """
        if threshold is None:
            return super().predict(X, decision=decision)
        return links_above(self.predict_marginals(X), threshold)

    def predict_marginals(self, X: Any) -> list[FloatArray]:  # type: ignore[override]
        """For each pair ``float64[source words, target words]``: the probability of each link."""
        return [parts["links"] for parts in super().predict_marginals(X)]

    def _risk_scores(self, inputs: Any, pool: FloatArray, counts: FloatArray) -> FloatArray:
        # A link that is right gains what one that is wrong costs; words without one do neither.
        found = np.zeros(len(counts))
        for block in inputs.blocks:
            if block.name == "links":
                found[block.cells] = 2.0 * counts[block.cells] - 1.0
        return found

    def named_weights(self) -> dict[str, dict[str, float]]:
        """The weight of each feature by its name: of links, and of source and target words without one."""
        check_is_fitted(self, "model_")
        names: dict[str, Sequence[str]] = {"links": LINKS, "sources": ALONE, "targets": ALONE}
        found = self.model_.named_weights(self.weights_)
        return {kind: dict(zip(own, found[kind].ravel().tolist(), strict=True)) for kind, own in names.items()}
