"""Skip chains: a linear chain with links between tokens further apart (Murphy 19.6.2.3; Sutton and McCallum 2004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.sequence.conditional.links import LINKS, equal_pairs, ruled_pairs, words_of
from markovfield.sequence.conditional.tokens import (
    TokenShape,
    attribute_matrix,
    learned_vectoriser,
    neighbours,
)
from markovfield.sequence.text.sequences import split_sequences
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import known_classes
from markovfield.structured.models.graph import INTERACTIONS, interaction_states

__all__ = ["SkipChainModel"]

Link = str | Callable[[Any], npt.ArrayLike] | None


@dataclass(frozen=True, eq=False)
class SkipChainModel(StructuredModel):
    """A label for each token: a linear chain, and links between tokens that should be labelled alike.

    An input is a sentence as `ChainCRF` takes it: tokens that are dicts, lists of texts or texts, or an array. An
    output is a label for each token. Without links it is the linear chain with weights for all pairs of attributes and
    labels, seen or not.

    Parameters
    ----------
    link
        ``"equal_capitalised"`` links equal words with a capital, ``"equal"`` all equal words; or a function of a
        sentence that gives pairs of positions, ``int[n, 2]``; None is no links. Neighbours, which the chain joins, are
        not linked by name.
    interaction
        What is learned of two labels that are linked: ``"symmetric"`` a weight for each unordered pair, ``"directed"``
        for each ordered pair, ``"equal"`` one for equal labels.
    link_features
        Whether links have features: the attributes of either token. The interaction then has weights for each.
    max_links
        To how many equal tokens before it a token is linked, the nearest first; None is all.
    max_distance
        How far apart equal tokens may be; None is any distance.
    word
        The attribute that holds the word; by default the first there is of ``word``, ``w``, ``token`` and ``text``.
    min_count
        Attributes with fewer references are left out.

    Examples
    --------
    >>> model = SkipChainModel("equal")
    >>> X = [[["w=Ana"], ["w=met"], ["w=Ana"]], [["w=met"]]]
    >>> y = [["PER", "O", "PER"], ["O"]]
    >>> model = model.shaped(X, y)
    >>> model.encode(X, y)
    Batch(2 examples, 4 variables, 7 factors, 11 weights)
    >>> {name: shape for name, (_, shape) in model.layout.items()}
    {'tokens': (2, 2), 'transitions': (1, 4), 'links': (1, 3)}
    """

    link: Link = "equal_capitalised"
    interaction: str = "symmetric"
    link_features: bool = False
    max_links: int | None = 5
    max_distance: int | None = None
    word: str | None = None
    min_count: int = 1

    name: ClassVar[str] = "skip_chain"
    shape_class: ClassVar[type[Shape]] = TokenShape

    def __post_init__(self) -> None:
        check_method(self, least={"max_links": 1, "max_distance": 2, "min_count": 1})
        if not (self.link is None or callable(self.link) or (isinstance(self.link, str) and self.link in LINKS)):
            names = ", ".join(map(repr, LINKS))
            raise ModelError(f"SkipChainModel: link must be {names}, a function or None, got {self.link!r}")
        if self.interaction not in INTERACTIONS:
            names = ", ".join(map(repr, INTERACTIONS))
            raise ModelError(f"SkipChainModel: interaction must be one of {names}, got {self.interaction!r}")

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels and the attributes."""
        vectoriser = learned_vectoriser(X, self.min_count)
        return TokenShape(known_classes(Y), {"attributes": vectoriser.n_attributes_}, vectoriser=vectoriser)

    def templates(self) -> Sequence[Template]:
        """Tokens, transitions, links."""
        k, n = self.n_classes, self.known.sizes["attributes"]
        found = [Template("tokens", k, n), Template("transitions", k * k)]
        if self.link is not None:
            states = interaction_states(self.interaction, k)
            found.append(Template("links", k * k, n if self.link_features else None, states))
        return found

    def inputs(self, X: Any) -> Inputs:
        """Attributes, neighbours and links of all sentences."""
        matrix, offsets = attribute_matrix(self.known, X)
        placed = {
            "tokens": Placed(np.arange(matrix.shape[0])[:, None], matrix),
            "transitions": Placed(neighbours(offsets)),
        }
        if self.link is not None:
            pairs = self.links(X, offsets)
            either = matrix[pairs[:, 0]].maximum(matrix[pairs[:, 1]]) if self.link_features else None
            placed["links"] = Placed(pairs, either)
        return Inputs(offsets, np.full(matrix.shape[0], self.n_classes, np.int32), placed)

    def links(self, X: Any, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """``int64[n, 2]``: the tokens that are linked, numbered through all sentences."""
        if self.link is None:
            return np.zeros((0, 2), np.int64)
        if not isinstance(self.link, str):
            return ruled_pairs(X, offsets, self.link)
        words = words_of(X, self.word)
        return equal_pairs(words, offsets, LINKS[self.link], max_links=self.max_links, max_distance=self.max_distance)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """For each sentence a list of labels."""
        return split_sequences([self.classes[k] for k in states.tolist()], inputs.variable_offsets)
