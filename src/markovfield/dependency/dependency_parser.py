"""Parsers that find the head of every word: a conditional random field on dependency trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from markovfield.dependency.arc_model import ArcModel
from markovfield.dependency.scoring import PUNCTUATION, DependencyReport, dependency_report
from markovfield.learning.solvers.stochastic import AdaGrad
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.objectives.registry import MARGINS
from markovfield.structured.settings import LikelihoodSettings

__all__ = ["DependencyParser"]

# Weights are many and trees are few: some passes with steps for each weight of its own, averaged over the last half.
TRAINING = AdaGrad(eta0=0.1, passes=8)


@dataclass(kw_only=True, eq=False, repr=False)
class DependencyParser(LikelihoodSettings, FormEstimator):
    """A conditional random field on dependency trees whose score is a sum over arcs (McDonald et al. 2005).

    The score of an arc is a sum of weights of its features: words, tags and prefixes of head and modifier, the tags
    beside them and between them, how far apart they are and on which side. Sums over all trees are exact, by the
    matrix-tree theorem (Koo et al. 2007) where arcs may cross and by Eisner's algorithm where they may not. Sentences
    are lists of ``(word, tag)``, or of dicts with a word and a tag; outputs are lists of heads, 0 being the root, or of
    pairs (head, label). Every sentence has a parse.

    Parameters
    ----------
    projective
        Whether trees have no crossing arcs. Trees that have some are then refused; `projectivised` changes them.
    labelled
        Whether arcs have labels. Labels are part of the random field, whose parts are then arcs with labels: weights of
        most features are also for pairs of a feature and a label. When False, labels of given trees are not read.
    single_root
        Whether only one word hangs on the root.
    min_count
        In how many arcs of training trees a feature must occur to have weights; one of tags alone may occur in ten
        times as many arcs of any kind instead.
    min_word_count
        How often a word must occur to be told from others that are written like it.
    objective
        ``"likelihood"``, or ``"hinge"``, whose loss is the number of words with a wrong head (or label); another loss
        is `markovfield.structured.Hinge` with it.
    solver
        ``"auto"`` is AdaGrad with eight passes for the likelihood, and Frank-Wolfe steps for the hinge. `LBFGS` finds
        the optimum of the likelihood itself.
    l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Notes
    -----
    A sentence of n words takes n^3 operations for its sums, n^2 times labels times features for its scores, and about
    200 bytes for each of its n^2 arcs while it is held.

    Examples
    --------
    >>> X = [[("the", "DT"), ("dog", "NN"), ("barked", "VBD")], [("rain", "NN"), ("fell", "VBD")]]
    >>> parser = DependencyParser(min_count=1, min_word_count=1, l2=0.1, rng=0).fit(X, [[2, 3, 0], [2, 0]])
    >>> parser.parse([("the", "DT"), ("rain", "NN"), ("fell", "VBD")])
    [2, 3, 0]
    >>> parser.predict_marginals(X)[1]["arcs"].shape
    (3, 3)
    """

    projective: bool = False
    labelled: bool = False
    single_root: bool = True
    min_count: int = 2
    min_word_count: int = 2
    model_: ArcModel = field(init=False)

    def _model(self) -> ArcModel:
        return ArcModel(self.projective, self.labelled, self.single_root, self.min_count, self.min_word_count)

    def _chosen_objective(self) -> Any:
        return Hinge(loss="arcs") if self.objective == "hinge" else self.objective

    def _chosen_solver(self, objective: Any) -> Any:
        return TRAINING if self.solver == "auto" and objective.name not in MARGINS else self.solver

    def parse(self, sentence: Iterable[Any]) -> list[Any]:
        """The tree of one sentence: heads, or pairs (head, label)."""
        found: list[Any] = self.predict([list(sentence)])[0]
        return found

    def report(
        self, X: Any, y: Any, *, decision: str = "map", punctuation: Collection[str] = PUNCTUATION
    ) -> DependencyReport:
        """Heads and labels of predicted trees against given ones, with punctuation and without."""
        return dependency_report(X, y, self.predict(X, decision=decision), punctuation=punctuation)

    def score(self, X: Any, y: Any) -> float:
        """The share of words that get the right head (unlabelled attachment score), punctuation included."""
        return super().score(X, y)
