"""The semi-Markov conditional random field as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from markovfield.sequence.segments.segment_model import SegmentModel
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.settings import LikelihoodSettings

__all__ = ["SemiMarkovCRF"]


@dataclass(eq=False, repr=False)
class SemiMarkovCRF(LikelihoodSettings, FormEstimator):
    """Segments of sentences with their labels, such as names: a semi-Markov CRF (Sarawagi and Cohen 2004).

    Inputs are those of `ChainCRF`, and outputs are labels in IOB2; but what is scored are segments as wholes: the
    attributes of their first token, of those after it and of their last, their length, and what they say from end to
    end. Training minimises ``-log-likelihood + l1 |w|_1 + l2/2 |w|^2``. ``score`` is the F1 of chunks.

    Parameters
    ----------
    max_length, neighbours, texts, word, min_count
        What is looked at, see `SegmentModel`.
    l2, l1, solver, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Notes
    -----
    An iteration takes T (L K + K^2) steps for T tokens, K labels and segments of at most L tokens, and memory for
    three times T L K numbers. ``predict_marginals`` has the probability of every segment, ``form(x)`` the
    segmentations of a sentence, of which any verb can be asked.

    Examples
    --------
    >>> X = [[["w=in"], ["w=New"], ["w=York"]], [["w=Ann"], ["w=ran"]], [["w=York"], ["w=ran"]]]
    >>> y = [["O", "B-LOC", "I-LOC"], ["B-PER", "O"], ["B-PER", "O"]]
    >>> crf = SemiMarkovCRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["w=in"], ["w=York"]], [["w=New"], ["w=York"], ["w=ran"]]])
    [['O', 'B-PER'], ['B-LOC', 'I-LOC', 'O']]
    >>> crf.predict_marginals([[["w=New"], ["w=York"]]])[0]["segments"].shape  # first token, length - 1, label
    (2, 2, 3)
    """

    max_length: int | None = None
    _: KW_ONLY
    neighbours: bool = False
    texts: bool = True
    word: str | None = None
    min_count: int = 1

    def _model(self) -> SegmentModel:
        return SegmentModel(self.max_length, self.neighbours, self.texts, self.word, self.min_count)
