"""The hinge of structural SVMs (Murphy 19.7.2): margins or slacks that grow with the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.losses.loss import Loss, keep_loss, loss_of
from markovfield.structured.marginals.relaxed import RelaxedDecoder
from markovfield.structured.oracles.decoders import Decoder, FormDecoder, GraphDecoder
from markovfield.structured.oracles.oracles import AdditiveOracle, Oracle, oracle_of
from markovfield.structured.oracles.problem import MarginProblem
from markovfield.structured.oracles.slack import SlackOracle

__all__ = ["Hinge", "MarginProblem"]


@dataclass(frozen=True)
class Hinge:
    """``max_y [loss(y) - score of the truth + score of y]``: margins that are as large as losses (19.82).

    Parameters
    ----------
    loss
        ``"hamming"`` (labels that are wrong, not divided by their number; of structures, parts that only one has),
        ``"zero_one"``, ``"f1"``, ``"spans"``, ``"arcs"``, ``"links"``, a table ``[true, predicted]``, or an object:
        `Hamming`, `TableLoss`, `ZeroOne`, `F1`, `PrecisionAtK`, `PartLoss`.
    rescaling
        ``"margin"``, or ``"slack"``: ``max_y loss(y) [1 - score of the truth + score of y]`` (19.83), for losses that
        add up. It is found by a search that says whether its answer is proven to be the best.
    decoding
        What finds the most violated output of a factor graph: ``"auto"``, or a method of `markovfield.decode`. One that
        is not exact makes gaps estimates.
    relaxed
        Whether outputs may be fractional: the best point of the local polytope, by a linear program. The hinge is then
        no less than the true one, also where decoding is hard; for losses that add up, on small graphs.
    nonnegative
        Kinds of factors whose weights are kept at 0 or above, such as ``("edges",)``. With ``interaction="equal"`` and
        features of edges that are not negative, neighbours then attract each other whatever the data: associative
        networks, which graph cuts decode (Taskar, Chatalbashev and Koller 2004).

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]
    >>> model = mf.structured.MulticlassModel()
    >>> svm = mf.StructuredClassifier(model, objective=Hinge(rescaling="slack"), l2=0.1).fit(X, y)
    >>> svm.predict(X).tolist()
    ['a', 'a', 'b', 'b']
    """

    loss: Any = "hamming"
    rescaling: str = "margin"
    decoding: MethodLike = "auto"
    nonnegative: tuple[str, ...] = ()
    relaxed: bool = False

    name: ClassVar[str] = "hinge"

    def __post_init__(self) -> None:
        check_method(self, choices={"rescaling": ("margin", "slack")})
        if isinstance(self.nonnegative, str) or not all(isinstance(name, str) for name in self.nonnegative):
            raise ModelError(f"nonnegative of Hinge must be names of kinds of factors, got {self.nonnegative!r}")
        object.__setattr__(self, "nonnegative", tuple(self.nonnegative))
        if self.relaxed and self.rescaling != "margin":
            raise ModelError("relaxed=True of Hinge is for rescaling='margin': fractional outputs have no slack")
        keep_loss(self)

    def resolved(self, classes: Sequence[Any]) -> Self:
        """The same with labels as states, where the loss names labels."""
        return replace(self, loss=loss_of(self.loss).resolved(classes))

    def on(self, batch: Any, *, running: Running, rng: Any = None) -> Oracle:
        """The oracle of a batch."""
        decoder: Decoder
        if self.relaxed:
            if self.decoding != "auto":
                raise ModelError("relaxed=True of Hinge decodes by linear programs: leave decoding 'auto'")
            decoder = RelaxedDecoder(batch, running)
        elif hasattr(batch, "margin_decoder"):
            decoder = batch.margin_decoder(running)
        elif isinstance(batch, FormBatch):
            decoder = FormDecoder(batch, running)
        else:
            decoder = GraphDecoder(batch, self.decoding, running)
        return self.oracle(decoder)

    def oracle(self, decoder: Decoder) -> Oracle:
        """The oracle of a decoder."""
        loss: Loss = loss_of(self.loss)
        found = oracle_of(loss, decoder)
        if self.rescaling == "margin" or loss.name == "zero_one":  # the same, where all losses are one
            return found
        if not isinstance(found, AdditiveOracle):
            raise ModelError(f"slack rescaling is for losses that add up, such as 'hamming', and not for {loss.name!r}")
        return SlackOracle(found)
