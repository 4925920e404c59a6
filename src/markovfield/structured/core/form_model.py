"""What every conditional model of structures says: a family, operators for its scores, and the cells of outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import ConditionalModel, example_weights
from markovfield.structured.core.form_batch import Block, FormBatch
from markovfield.structured.core.reading import example_count
from markovfield.structures.core.family import Family, Parts
from markovfield.structures.core.form import StructureForm

__all__ = ["FormInputs", "FormModel"]


@dataclass(frozen=True, eq=False)
class FormInputs:
    """Inputs of all examples as a family and operators.

    Attributes
    ----------
    family
        The structures that each example may have.
    blocks
        How weights make scores; blocks may add to the same cells.
    base
        ``float64[n_cells]``: scores without weights, or None.
    given
        Whatever the model wants to keep of the inputs, to write outputs with.
    """

    family: Family
    blocks: tuple[Block, ...]
    base: FloatArray | None = None
    given: Any = None


@dataclass(frozen=True, eq=False)
class FormModel(ConditionalModel):
    """A model whose outputs are structures of a form."""

    form_class: ClassVar[type[StructureForm]]

    @abstractmethod
    def inputs(self, X: Any) -> FormInputs:
        """Inputs as a family and operators, checked: errors name the example."""

    @abstractmethod
    def parts(self, Y: Any, inputs: FormInputs) -> Parts | None:
        """The cells of outputs, checked: errors name the example. None where outputs are hidden (see `mask`)."""

    @abstractmethod
    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        """Structures as a user wants them; None where an example has no cells, as nothing was possible."""

    @abstractmethod
    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        """What `score` tells: a share of what is right, the higher the better."""

    def mask(self, Y: Any, inputs: FormInputs) -> FloatArray | None:
        """What leaves the structures that go with outputs, where these are hidden in part; see `FormBatch.mask`."""
        return None

    def clamped(self, Y: Any, inputs: FormInputs) -> Family | None:
        """The structures that go with outputs as a family of their own, where `mask` cannot say which they are."""
        return None

    def counted(self, inputs: FormInputs) -> npt.NDArray[np.bool_] | None:
        """The cells whose parts count in losses; see `FormBatch.counted`."""
        return None

    def form(self, inputs: FormInputs, i: int, pool: FloatArray) -> StructureForm:
        """The form of one example, with its scores."""
        family, where = inputs.family.select(np.array([i]))
        return self.form_class.of(family, pool[where])

    def encode(self, X: Any, Y: Any = None, weights: npt.ArrayLike | None = None) -> FormBatch:
        """Inputs, and outputs where they are known, as one batch."""
        if Y is not None:
            example_count(X, Y)
        return self.encode_inputs(self.inputs(X), Y, weights)

    def encode_inputs(self, inputs: FormInputs, Y: Any = None, weights: npt.ArrayLike | None = None) -> FormBatch:
        """The same for inputs that have been read."""
        family = inputs.family
        parts = None if Y is None else self.parts(Y, inputs)
        hidden = Y is not None and parts is None
        mask, clamped = (self.mask(Y, inputs), self.clamped(Y, inputs)) if hidden else (None, None)
        if hidden and mask is None and clamped is None:
            raise ModelError(
                f"{type(self).__name__} needs outputs that are known, or a mask of those that are possible"
            )
        return FormBatch(
            family,
            inputs.blocks,
            tuple(self.layout[block.name][0].start for block in inputs.blocks),
            self.n_weights,
            parts,
            base=inputs.base,
            weights=None if weights is None else example_weights(weights, family.n_instances),
            mask=mask,
            clamped=clamped,
            counted=None if Y is None else self.counted(inputs),
        )
