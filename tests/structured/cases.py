"""A small example of every conditional model there is, for tests that run over all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import markovfield as mf
from markovfield._exports import names_in
from markovfield.structured.core.model import StructuredModel

__all__ = ["CASES", "Case", "all_models"]

st = mf.structured


class Case(NamedTuple):
    """A model, and data that it is trained on: every example small enough to enumerate."""

    model: StructuredModel
    X: Any
    Y: Any

    @property
    def n(self) -> int:
        return len(self.X)

    def some(self, rows: list[int]) -> tuple[Any, Any]:
        """Some of the examples."""

        def of(values: Any) -> Any:
            return values[rows] if isinstance(values, np.ndarray) else [values[i] for i in rows]

        return of(self.X), of(self.Y)


def _graphs(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    X, Y = [], []
    for n in (2, 3, 4, 3):
        edges = [[i, i + 1] for i in range(n - 1)] + ([[n - 1, 0]] if n > 2 else [])
        X.append((rng.normal(size=(n, 2)), edges, rng.normal(size=(len(edges), 2))))
        Y.append(rng.integers(0, 3, n))
    Y[2][:3] = [0, 1, 2]
    return X, Y


def _typed(rng: np.random.Generator) -> list[Any]:
    return [
        (rng.normal(size=(3, 2)), {"near": [[0, 1]], "far": ([[1, 2], [0, 2]], rng.normal(size=(2, 1)))}),
        (rng.normal(size=(2, 2)), {"near": [[0, 1]]}),
        (rng.normal(size=(3, 2)), {"far": ([[0, 2]], rng.normal(size=(1, 1)))}),
    ]


def _factors(rng: np.random.Generator) -> tuple[Any, list[Any], list[Any]]:
    templates = [
        st.FactorTemplate("word", "word", bias=True),
        st.FactorTemplate("pair", ("word", "topic")),
        st.FactorTemplate("triple", ("word",) * 3, states="equal"),
        st.FactorTemplate("step", ("word", "word"), states="symmetric"),
    ]
    X, Y = [], []
    for n in (3, 2, 3):
        x = {
            "kinds": ["word"] * n + ["topic"],
            "word": ([[i] for i in range(n)], rng.normal(size=(n, 2))),
            "pair": [[i, n] for i in range(n)],
            "step": [[i, i + 1] for i in range(n - 1)],
        }
        if n == 3:
            x["triple"] = [[0, 1, 2]]
        X.append(x)
        Y.append([*rng.choice(["a", "b", "c"], n).tolist(), None if n == 2 else int(rng.integers(2))])
    Y[0][:3] = ["a", "b", "c"]
    return st.FactorModel(templates, {"topic": 2}), X, Y


def _energies(rng: np.random.Generator, binary: bool) -> tuple[list[Any], list[Any]]:
    X, Y = [], []
    for n in (3, 2, 4):
        cards = [2] * n if binary else rng.integers(2, 4, n).tolist()
        scopes = [[i] for i in range(n)] + [[i, i + 1] for i in range(n - 1)] + ([[0, 1, 2]] if n > 2 else [])
        factors = [(s, rng.normal(size=(*[cards[v] for v in s], 3))) for s in scopes]
        X.append(factors if binary else (cards, factors))
        Y.append([int(rng.integers(c)) for c in cards])
    return X, Y


def _cases() -> dict[str, Case]:
    rng = np.random.default_rng(7)
    X, Y = _graphs(rng)
    plain = [(nodes, edges) for nodes, edges, _ in X]
    rows, labels = rng.normal(size=(6, 3)), ["cat", "dog", "car", "dog", "cat", "car"]
    several = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 1, 0]])
    factor_model, FX, FY = _factors(rng)
    EX, EY = _energies(rng, False)
    BX, BY = _energies(rng, True)
    sentences = [[["w=Ana"], ["w=met"], ["w=Ana"]], [["w=Bo"], ["w=met"]], [["w=Ana", "c"], ["w=Bo"], ["w=Ana"]]]
    tags = [["P", "O", "P"], ["P", "O"], ["P", "Q", "P"]]
    layers = [{"t": t, "u": ["x" if tag == "O" else "y" for tag in t]} for t in tags]
    images = [rng.normal(size=shape) for shape in ((2, 2), (1, 3), (2, 2))]
    maps = [rng.integers(0, 2, image.shape) for image in images]
    maps[0][0] = [0, 1]
    taxonomy = {"cat": "animal", "dog": "animal", "car": "thing", "animal": "thing"}
    return {
        "graph": Case(st.GraphModel("directed"), X, Y),
        "graph_symmetric": Case(st.GraphModel("symmetric", bias=False), plain, Y),
        "graph_equal": Case(st.GraphModel("equal"), X, Y),
        "graph_typed": Case(
            st.GraphModel({"near": "equal", "far": "directed"}), _typed(rng), [[0, 1, 1], [1, 0], [0, 0, 1]]
        ),
        "factor": Case(factor_model, FX, FY),
        "multiclass": Case(st.MulticlassModel(), rows, labels),
        "hierarchy": Case(st.HierarchyModel(taxonomy), rows, labels),
        "multi_label": Case(st.MultiLabelModel("independent"), rows, several),
        "multi_label_tree": Case(st.MultiLabelModel("tree"), rows, several),
        "multi_label_full": Case(st.MultiLabelModel("full", cardinality=True), rows, several),
        "energy": Case(st.EnergyModel(), EX, EY),
        "binary_factor": Case(st.BinaryFactorModel(), BX, BY),
        "latent": Case(st.LatentModel(st.GraphModel(), n_hidden=2), X[:2], [[0, 1], [1, 0, 1]]),
        "latent_multiclass": Case(st.LatentModel(st.MulticlassModel(), n_hidden=3), rows, labels),
        "neural": Case(st.NeuralFeatures(st.GraphModel("equal"), scores=np.tanh, keep=True), X, Y),
        "skip_chain": Case(mf.sequence.SkipChainModel("equal", link_features=True), sentences, tags),
        "factorial_chain": Case(mf.sequence.FactorialChainModel(["t", "u"]), sentences, layers),
        "items": Case(st.ItemModel(bias=False), [x for x, _ in plain], [np.minimum(y, 1) for y in Y]),
        "grid": Case(mf.vision.GridModel(), images, maps),
    }


CASES = _cases()


def all_models() -> set[type[StructuredModel]]:
    """Every conditional model that is public."""
    found = set()
    for space in ("structured", "sequence", "vision"):
        for name in names_in(space):
            one = getattr(getattr(mf, space), name)
            if isinstance(one, type) and issubclass(one, StructuredModel) and one is not StructuredModel:
                found.add(one)
    return found
