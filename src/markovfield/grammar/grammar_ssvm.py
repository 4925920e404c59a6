"""Structural SVMs on trees of labelled spans, as an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markovfield.grammar.parser import TreeParser
from markovfield.grammar.span_model import SpanModel
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.structured.margin_estimator import MarginEstimator
from markovfield.structured.settings import MarginSettings

__all__ = ["GrammarSSVM"]

# A parse is dear and trees are many: a gap of two per cent parses as well as a smaller one.
TRAINING = BlockFrankWolfe(gap=0.02, max_passes=30)


@dataclass(kw_only=True, eq=False, repr=False)
class GrammarSSVM(MarginSettings, TreeParser, MarginEstimator):
    """A parser without a grammar, trained by margins (Taskar et al. 2004): trees of labelled spans.

    Features are those of `SpanParser`. Minimised is ``1/2 |w|^2 + C sum_i hinge_i`` over trees, the loss of a tree
    being the number of brackets that it or the truth has and the other has not.

    Parameters
    ----------
    C, rescaling, early_stopping, batch_size, rng, n_jobs
        As those of `GraphSSVM`.
    direction, min_count, min_word_count
        As those of `SpanParser`.
    loss
        ``"spans"`` counts missing and wrong brackets; ``"zero_one"``, or `PartLoss` with what each costs.
    solver
        Block-coordinate Frank-Wolfe to a gap of 2 % when nothing is given; ``"perceptron"`` is fast.

    Examples
    --------
    >>> import markovfield as mf
    >>> trees = mf.io.read_trees(
    ...     "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)))) (S (NP (NN rain)) (VP (VBD fell)))"
    ... )
    >>> parser = GrammarSSVM(1.0, min_count=1, min_word_count=1, rng=0).fit(trees)
    >>> print(parser.parse([("a", "DT"), ("dog", "NN"), ("fell", "VBD")]))
    (S (NP (DT a) (NN dog)) (VP (VBD fell)))
    """

    direction: str = "right"
    min_count: int = 3
    min_word_count: int = 3
    loss: Any = "spans"
    solver: Any = TRAINING

    def _model(self) -> SpanModel:
        return SpanModel(self.direction, self.min_count, self.min_word_count)
