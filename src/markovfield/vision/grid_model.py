"""Labels of pixels as a conditional random field on the grid: features of pixels, and of pairs of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import encoded_labels, example_count, known_classes
from markovfield.structured.models.graph import INTERACTIONS, interaction_states
from markovfield.vision.image_features import (
    DIRECTIONS,
    EDGE_KINDS,
    NODE_KINDS,
    GridEdges,
    Images,
    check_kinds,
    check_scales,
    edge_features,
    grid_edges,
    node_feature_names,
    node_features,
    stack_images,
)

__all__ = ["GridInputs", "GridModel"]

# Edges whose tables do not depend on the pixels but by which of them they read.
TABLES = ("constant", "binned")
MULTI_SCALE = ("values", "blurred", "gradient", "variance", "position")


@dataclass(frozen=True, eq=False)
class GridInputs(Inputs):
    """Inputs that know the rows and columns of each image, ``int64[n, 2]``."""

    shapes: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def example(self, i: int) -> GridInputs:
        """One image by itself."""
        alone = super().example(i)
        return GridInputs(**{f.name: getattr(alone, f.name) for f in fields(alone)}, shapes=self.shapes[[i]])


@dataclass(frozen=True, eq=False)
class GridModel(StructuredModel):
    """A label for each pixel of an image, joined to its neighbours (Murphy 19.6.2.1, 19.6.2.7).

    An input is an image, ``[rows, columns]`` or ``[rows, columns, channels]`` (bytes count from 0 to 1); images may
    differ in size. Or it is a pair ``(image, scores)``, where ``scores``, ``float[rows, columns, classes]`` or
    ``[rows, columns, classes, k]``, is what others say for each class, such as a classifier or a matching cost: each of
    the k gets one weight. An output is ``[rows, columns]`` labels.

    Tables of edges whose features differ take 8 K^2 bytes for each edge of K classes; those of ``"constant"`` and
    ``"binned"`` edges are shared.

    Parameters
    ----------
    connectivity
        4, or 8 with the diagonal neighbours.
    node_features
        ``"values"`` of channels, ``"neighbourhood"``, those of a window around the pixel, or ``"multi_scale"`` (values,
        blurred, gradient, variance, position), each with a constant; or a list of such kinds of `node_features`.
        None: nothing but the scores that come with images.
    edge_features
        ``"constant"``; ``"contrast"``, which is that and exp(-beta |difference|^2); ``"difference"`` or ``"values"`` of
        channels, each with a constant; or a list of such kinds of `edge_features`. ``"binned"``: a table of its own for
        each of ``n_bins`` equal parts of the contrast from 0 to 1. None: no edges, every pixel by itself.
    directional
        Whether each direction (right, down, and the diagonals) has weights of its own.
    interaction
        What is learned of two labels joined by an edge: ``"symmetric"`` a weight for each unordered pair,
        ``"directed"`` for each ordered pair, ``"equal"`` one for equal labels (Potts), ``"distance"`` one for each
        difference of labels that are integers, up to ``truncation`` (Murphy 19.69). None: directed where edges have
        directions or the values of both ends, else symmetric.
    scales, window
        Of `node_features`.
    beta
        Of the contrast; None for 1 / (2 mean |difference|^2) of each image.
    n_bins, truncation
        Of ``"binned"`` and ``"distance"``.
    unknown
        A label that says that none is known, such as -1; None itself always says so.

    Examples
    --------
    >>> import numpy as np
    >>> images, labels = [np.zeros((2, 3)), np.ones((4, 1))], [np.zeros((2, 3), int), np.ones((4, 1), int)]
    >>> model = GridModel(directional=True).shaped(images, labels)
    >>> model.encode(images, labels)
    Batch(2 examples, 10 variables, 20 factors, 20 weights)
    >>> {name: shape for name, (_, shape) in model.layout.items()}
    {'pixels': (2, 2), 'right': (2, 4), 'down': (2, 4)}
    """

    connectivity: int = 4
    node_features: str | Sequence[str] | None = "values"
    edge_features: str | Sequence[str] | None = "contrast"
    directional: bool = False
    interaction: str | None = None
    scales: Sequence[float] = (1, 2, 4)
    window: int = 3
    beta: float | None = None
    n_bins: int = 4
    truncation: int = 2
    unknown: Any = None

    name: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        check_method(self, least={"n_bins": 1, "truncation": 1, "beta": 0.0}, below={"beta": np.inf})
        if self.connectivity not in (4, 8):
            raise ModelError(f"connectivity of GridModel must be 4 or 8, got {self.connectivity!r}")
        if self.node_features is not None:
            check_kinds(self._node_kinds, NODE_KINDS, "node_features of GridModel")
        if self.edge_features is not None and self.edge_features not in TABLES:
            check_kinds(self._edge_kinds, EDGE_KINDS, "edge_features of GridModel")
        check_scales(self.scales, self.window)
        if self.interaction is not None and self.interaction not in (*INTERACTIONS, "distance"):
            raise ModelError(
                f"interaction of GridModel must be one of {', '.join(map(repr, (*INTERACTIONS, 'distance')))} or None, "
                f"got {self.interaction!r}"
            )

    # ---- what the settings mean -------------------------------------------------------------------------------

    @property
    def _node_kinds(self) -> tuple[str, ...]:
        given = self.node_features
        if not isinstance(given, str):
            return tuple(given or ())
        return ("constant", *(MULTI_SCALE if given == "multi_scale" else (given,)))

    @property
    def _edge_kinds(self) -> tuple[str, ...]:
        """Kinds of features that edges have; none where they have tables, or there are none."""
        given = self.edge_features
        if given is None or given in TABLES:
            return ()
        return ("constant", given) if isinstance(given, str) else tuple(given)

    @property
    def _edge_names(self) -> tuple[str, ...]:
        if self.edge_features is None:
            return ()
        return tuple(DIRECTIONS)[: self.connectivity // 2] if self.directional else ("edges",)

    def feature_names(self) -> list[str]:
        """Of the rows of the weights of pixels."""
        sizes = self.known.sizes
        if not self._node_kinds:
            return []
        return node_feature_names(sizes["channels"], self._node_kinds, scales=self.scales, window=self.window)

    def _pair_states(self) -> FloatArray | None:
        """Features of the cells of an edge's table."""
        interaction = self.interaction
        if interaction is None:
            interaction = "directed" if self.directional or "values" in self._edge_kinds else "symmetric"
        if interaction != "distance":
            return interaction_states(interaction, self.n_classes)
        values = np.asarray(self.classes)
        if values.dtype.kind not in "iu":
            raise ModelError(f"interaction='distance' of GridModel needs labels that are integers, got {values[0]!r}")
        apart = np.abs(values[:, None] - values[None, :]).ravel()
        return np.eye(self.truncation + 1)[np.minimum(apart, self.truncation)]

    # ---- the protocol -----------------------------------------------------------------------------------------

    @property
    def takes_hidden(self) -> bool:
        """Hidden states have no distance."""
        return self.interaction != "distance"

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels, and the numbers of channels and of scores of a class."""
        images, scores = _apart(X[:1])
        classes = known_classes(Y, self.unknown)
        sizes = {"channels": stack_images(images).values.shape[1]}
        if scores is not None:
            sizes["scores"] = _scores(scores, stack_images(images).shapes, len(classes)).shape[1]
        return Shape(classes, sizes)

    def templates(self) -> Sequence[Template]:
        """Pixels, scores where they are given, then edges, direction by direction where those differ."""
        k = self.n_classes
        found = [Template("pixels", k, len(self.feature_names()))]
        if "scores" in self.known.sizes:
            found.append(Template("scores", k, self.known.sizes["scores"], np.ones((k, 1))))
        if not self._edge_names:
            return found
        states = self._pair_states()
        n_features, n_tables = None, self.n_bins if self.edge_features == "binned" else 1
        if self._edge_kinds:
            channels = self.known.sizes["channels"]
            per = {"constant": 1, "contrast": 1, "difference": channels, "values": 2 * channels}
            n_features = sum(per[kind] for kind in self._edge_kinds)
        return [*found, *(Template(name, k * k, n_features, states, n_tables) for name in self._edge_names)]

    def inputs(self, X: Any) -> GridInputs:
        """Pixels and edges of all images, joined."""
        example_count(X)
        given, scores = _apart(X)
        sizes, k = self.known.sizes, self.n_classes
        images = stack_images(given, sizes["channels"])
        if (scores is not None) != ("scores" in sizes):
            raise ModelError(
                f"images came {'with' if 'scores' in sizes else 'without'} scores in training, unlike here"
            )
        n = len(images.values)
        rows = np.zeros((n, 0))
        if self._node_kinds:
            rows = node_features(images, self._node_kinds, scales=self.scales, window=self.window)
        placed = {"pixels": Placed(np.arange(n)[:, None], rows)}
        if scores is not None:
            terms = _scores(scores, images.shapes, k, sizes["scores"])
            placed["scores"] = Placed(np.arange(n)[:, None], terms=terms)
        if self._edge_names:
            placed |= self._edges(images, grid_edges(images.shapes, self.connectivity))
        return GridInputs(images.offsets, np.full(n, k, np.int32), placed, shapes=images.shapes)

    def _edges(self, images: Images, edges: GridEdges) -> dict[str, Placed]:
        features = table = None
        if self._edge_kinds:
            features = edge_features(images, edges, self._edge_kinds, beta=self.beta)
        elif self.edge_features == "binned":
            contrast = edge_features(images, edges, ["contrast"], beta=self.beta)[:, 0]
            table = np.minimum((contrast * self.n_bins).astype(np.int64), self.n_bins - 1)
        found = {}
        for number, name in enumerate(self._edge_names):
            own = np.flatnonzero(edges.direction == number) if self.directional else slice(None)
            found[name] = Placed(
                edges.ends[own],
                None if features is None else features[own],
                None if table is None else table[own],
            )
        return found

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Labels of all pixels as states, -1 where unknown."""
        assert isinstance(inputs, GridInputs)
        for i, (y, shape) in enumerate(zip(Y, inputs.shapes.tolist(), strict=True)):
            if np.shape(y) != tuple(shape):
                raise ModelError(f"labels[{i}] must be {shape[0]} x {shape[1]} as images[{i}] is, got {np.shape(y)}")
        return encoded_labels(Y, np.diff(inputs.variable_offsets), self.classes, self.unknown)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """Labels, ``[rows, columns]`` for each image."""
        assert isinstance(inputs, GridInputs)
        flat = super().outputs(states, inputs)
        return [part.reshape(shape) for part, shape in zip(flat, inputs.shapes.tolist(), strict=True)]


def _apart(X: Any) -> tuple[list[Any], list[Any] | None]:
    """Images, and the scores that come with them."""
    paired = [isinstance(x, tuple) for x in X]
    if not any(paired):
        return list(X), None
    for i, x in enumerate(X):
        if not paired[i] or len(x) != 2:
            raise ModelError(f"images[{i}] must be a pair (image, scores) as others are")
    return [x[0] for x in X], [x[1] for x in X]


def _scores(scores: list[Any], shapes: IntArray, n_classes: int, n_scores: int | None = None) -> FloatArray:
    """``float64[pixels * classes, k]``, checked image by image."""
    parts: list[FloatArray] = []
    for i, (given, (rows, columns)) in enumerate(zip(scores, shapes.tolist(), strict=True)):
        array = np.asarray(given, np.float64)
        wanted = (rows, columns, n_classes)
        if array.shape[:3] != wanted or array.ndim > 4:
            raise ModelError(
                f"scores of images[{i}] must be of shape {wanted} or {(*wanted, 'k')}, rows, columns and classes, "
                f"got {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ModelError(f"scores of images[{i}] must be finite, and {int((~np.isfinite(array)).sum())} are not")
        flat = array.reshape(rows * columns * n_classes, -1)
        expected = flat.shape[1] if n_scores is None else n_scores
        if flat.shape[1] != expected:
            raise ModelError(f"images[{i}] must come with {expected} scores of each class, got {flat.shape[1]}")
        n_scores = expected
        parts.append(flat)
    return np.concatenate(parts)


def image_shapes(X: Any) -> list[tuple[int, int]]:
    """Rows and columns of images, or of pairs of images and scores."""
    images, _ = _apart(X)
    return [np.shape(image)[:2] for image in images]
