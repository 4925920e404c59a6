"""What every conditional model says, whatever its outputs are: its weights by name, and what it read off its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.structured.core.reading import example_count, numbered_from, some_examples

__all__ = ["ConditionalModel", "Shape", "Template", "example_weights"]


@dataclass(frozen=True, eq=False)
class Template:
    """Factors that are tied: all have the same weights.

    Parameters
    ----------
    name
        Of the weights.
    n_cells
        Cells of a table.
    n_features
        Features of inputs that each factor has; None for tables that do not depend on the input.
    states
        ``float64[n_cells, m]``: features of the states of a table; None is a weight for each cell.
    n_tables
        Tables, where they do not depend on the input.
    """

    name: str
    n_cells: int
    n_features: int | None = None
    states: Any = None
    n_tables: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Of its weights: features (or tables) by features of states."""
        rows = self.n_tables if self.n_features is None else self.n_features
        return rows, self.n_cells if self.states is None else self.states.shape[1]


@dataclass(frozen=True)
class Shape:
    """What a model has read off its training data.

    Attributes
    ----------
    classes
        The labels, in the order of states.
    sizes
        Numbers of features, and whatever else is a number.
    edges
        Pairs that were chosen, such as those of a tree of labels.
    wide_inference
        What infers where examples are too wide for exact inference and nobody says: ``"belief_propagation"``, or
        ``"tree_reweighted"`` where loopy messages misled training.
    """

    classes: tuple[Any, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    edges: tuple[tuple[int, int], ...] = ()
    wide_inference: str = "belief_propagation"

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shape as JSON can hold it, and its vectors."""
        about = {"classes": _listed(self.classes), "sizes": dict(self.sizes), "edges": list(map(list, self.edges))}
        return {**about, "wide_inference": self.wide_inference}, {}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Shape:
        """The shape that an archive describes."""
        classes, sizes, edges = (about.get(key) for key in ("classes", "sizes", "edges"))
        fits = isinstance(classes, list) and isinstance(sizes, dict) and isinstance(edges, list)
        if not fits or not all(isinstance(size, int) and 0 <= size < 2**40 for size in sizes.values()):  # type: ignore[union-attr]
            raise FormatError("its classes and sizes are not those of a model")
        pairs = tuple((int(a), int(b)) for a, b in edges or ())
        if about.get("wide_inference") not in ("belief_propagation", "tree_reweighted"):
            raise FormatError("it does not say what infers for wide graphs")
        more = {"wide_inference": about["wide_inference"], **cls._more(about, arrays)}
        return cls(_tupled(classes), {str(k): v for k, v in (sizes or {}).items()}, pairs, **more)

    @classmethod
    def _more(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        """What else a shape of some models has."""
        return {}


def _listed(classes: Any) -> Any:
    """Labels as JSON can hold them."""
    if isinstance(classes, tuple | list):
        return [_listed(label) for label in classes]
    label = classes.item() if isinstance(classes, np.generic) else classes
    if label is None or isinstance(label, str | int | bool) or (isinstance(label, float) and np.isfinite(label)):
        return label
    raise ModelError(f"label {label!r} cannot be saved; labels are texts or numbers")


def _tupled(classes: Any) -> Any:
    return tuple(_tupled(label) for label in classes) if isinstance(classes, list) else classes


@dataclass(frozen=True, eq=False)
class ConditionalModel(ABC):
    """What x and w mean. A model is settings, and a `Shape` once it has seen data (`shaped`)."""

    shape: Shape | None = field(default=None, repr=False, kw_only=True)

    name: ClassVar[str] = ""
    shape_class: ClassVar[type[Shape]] = Shape

    @abstractmethod
    def shape_of(self, X: Any, Y: Any) -> Shape:
        """Classes and sizes, from training data."""

    @abstractmethod
    def templates(self) -> Sequence[Template]:
        """Kinds of factors with their weights; needs a shape."""

    @abstractmethod
    def encode(self, X: Any, Y: Any = None, weights: npt.ArrayLike | None = None) -> Any:
        """Inputs, and outputs where they are known, as one batch: what objectives take."""

    def encode_parts(self, X: Any, Y: Any, parts: Sequence[slice], weights: Any = None) -> list[Any]:
        """The same of parts of the examples, a batch each; errors name examples by their number among all."""
        found = []
        for part in parts:
            with numbered_from(part.start):
                own = None if weights is None else weights[part]
                found.append(self.encode(some_examples(X, part), some_examples(Y, part), own))
        return found

    def shaped(self, X: Any, Y: Any) -> Self:
        """The model with the classes and sizes of training data."""
        example_count(X, Y)
        return replace(self, shape=self.shape_of(X, Y))

    def with_shape(self, shape: Shape | None) -> Self:
        """The model with another shape."""
        return replace(self, shape=shape)

    @property
    def known(self) -> Shape:
        """The shape; an error where there is none."""
        if self.shape is None:
            raise ModelError(f"{type(self).__name__} has seen no data: fit it, or call shaped(X, Y) first")
        return self.shape

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of states."""
        return self.known.classes

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.known.classes)

    @cached_property
    def layout(self) -> dict[str, tuple[slice, tuple[int, int]]]:
        """Where the weights of each template lie, and their shape."""
        at, found = 0, {}
        for template in self.templates():
            size = template.shape[0] * template.shape[1]
            found[template.name] = (slice(at, at + size), template.shape)
            at += size
        return found

    @property
    def n_weights(self) -> int:
        """Length of the vector of weights."""
        return max((part.stop for part, _ in self.layout.values()), default=0)

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Weights to start training from."""
        return np.zeros(self.n_weights)

    def named_weights(self, w: FloatArray) -> dict[str, FloatArray]:
        """A vector of weights as an array for each template: features (or tables) by features of states."""
        return {name: w[part].reshape(shape) for name, (part, shape) in self.layout.items()}


def example_weights(weights: npt.ArrayLike, n: int) -> FloatArray:
    """What examples weigh, checked."""
    try:
        given = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"sample_weight needs one number for each of {n} examples, got {weights!r:.60}") from None
    if given.shape != (n,):
        raise ModelError(f"sample_weight needs one number for each of {n} examples, got shape {given.shape}")
    if not np.isfinite(given).all() or (given < 0).any():
        bad = int(np.flatnonzero(~(given >= 0) | ~np.isfinite(given))[0])
        raise ModelError(f"sample_weight of example {bad} must be a number of at least 0, got {given[bad]}")
    return given
