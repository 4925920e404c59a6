"""Labels for sequences of frames as a scikit-learn estimator: connectionist temporal classification."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from markovfield._validation import whole_number
from markovfield.sequence.strings.frame_labels import FrameLabels
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.settings import LikelihoodSettings
from markovfield.structures.alignment.reading import read_labels

__all__ = ["CTCLabeller"]


@dataclass(eq=False, repr=False)
class CTCLabeller(LikelihoodSettings, FormEstimator):
    """Strings of labels for frames of features, learned without knowing which frames are whose (Graves et al. 2006).

    Every frame takes a label or a blank, by a softmax that is linear in the features of the frames around it; a path of
    such choices reads as the labels that are left when runs are one and blanks are dropped. Training minimises
    ``-log p(labels | frames) + l1 |w|_1 + l2/2 |w|^2``, with the sum over all paths that read as the labels; that is
    not convex.

    Parameters
    ----------
    window
        How many frames before and after a frame it sees.
    beam
        Beginnings of labels that prediction keeps at each frame; see `read_labels`.
    l2, l1, objective, solver, batch_size, rng, n_jobs
        As those of `StructuredClassifier`; the objective must be ``"likelihood"``.

    Notes
    -----
    An iteration takes T F K steps for T frames of F features in the window and K labels, and T (2 L + 1) for strings of
    L labels. ``score`` is one less the edit distance of all labels, for each label. ``form(x)`` has the paths of an
    input, of which any verb can be asked.

    Examples
    --------
    >>> import numpy as np
    >>> letters = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "-": [0.0, 0.0, 1.0]}
    >>> X = [[letters[x] for x in frames] for frames in ("aa-bb", "-a--a", "bbb-a", "b-b--")]
    >>> labeller = CTCLabeller(l2=0.1).fit(X, ["ab", "aa", "ba", "bb"])
    >>> labeller.predict([[letters[x] for x in "a-aab-b"]])
    ['aabb']
    """

    window: int = 0
    _: KW_ONLY
    beam: int = 8
    model_: FrameLabels = field(init=False)

    def _model(self) -> FrameLabels:
        return FrameLabels(self.window)

    def predict(self, X: Any, *, decision: str = "labels") -> list[Any]:
        """The labels of inputs.

        Parameters
        ----------
        X
            A list of ``float[frames, features]``.
        decision
            ``"labels"``: the best labels by all paths that a beam keeps. ``"map"``: what the best path reads as, which
            is faster.
        """
        if decision != "labels":
            return super().predict(X, decision=decision)
        return [best[0][0] for best in self.predict_n_best(X, 1)]

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[Any, float]]]:
        """For each example its best labels with log-probabilities, as far as the beam finds them; best first."""
        whole_number(n, "n", 1)
        inputs, pool = self._scored(X)
        scores = pool.reshape(-1, self.model_.n_symbols)
        scores = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
        found = []
        for own in np.split(scores, np.cumsum(inputs.family.frames)[:-1]):
            best = read_labels(own, beam=max(self.beam, n))[:n]
            found.append([(self.model_.written(labels), score) for labels, score in best])
        return found
