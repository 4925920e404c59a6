"""Multiclass SVMs: the dual ascended an example at a time, with weights or with a kernel of inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.multiclass_kernel import dense_sweep, gram_sweep, hinges, sparse_sweep
from markovfield.learning.max_margin.problem import MarginMinimum, MarginPass

__all__ = ["ClassAscent", "Classes", "GramBlocks"]

# Sweeps of a pass: over all examples, and over those again that the one before moved by more than a little of their
# cost; with a kernel, over the examples of a block of inner products at each visit.
SWEEPS, LITTLE = 10, 1e-6
# Matrices of which less than this part is not zero are gone through as sparse ones.
SPARSE = 0.4


class Classes(NamedTuple):
    """Examples of one label each.

    Attributes
    ----------
    labels
        ``int64[n]``.
    losses
        ``float64[n_classes, n_classes]``: ``[true, predicted]``, 0 on the diagonal.
    costs
        ``float64[n]``: C times the weight of each example.
    """

    labels: IntArray
    losses: FloatArray
    costs: FloatArray


@dataclass(frozen=True)
class ClassAscent:
    """The dual of a multiclass SVM, all classes of an example at a time (Crammer and Singer 2001).

    The best masses of one example are a projection onto a simplex, so that no line search is needed and nothing is kept
    but the masses. With inputs as a matrix the weights are kept too, and a visit costs features times classes; with a
    kernel, inner products come in blocks, and a pass costs ``n_examples^2`` times classes.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all examples.

    Examples
    --------
    An RBF kernel, by rows of inner products:

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> classes = Classes(np.array([0, 1, 1, 0]), 1.0 - np.eye(2), np.full(4, 10.0))
    >>> gram = GramBlocks(lambda part: np.exp(-((X[part] - X.T) ** 2)), 4)
    >>> found = ClassAscent().run_kernel(gram, classes, rng=np.random.default_rng(0), running=Running())
    >>> (gram.block(0) @ found.weights.reshape(4, 2)).argmax(axis=1).tolist()
    [0, 1, 1, 0]
    """

    gap: float = 1e-3
    max_passes: int = 1000

    name: ClassVar[str] = "class_ascent"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "gap": 0.0})

    def run(self, X: Any, classes: Classes, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; ``X`` is a matrix, dense or sparse. Weights are ``float64[n_features * n_classes]``."""
        if isinstance(X, np.ndarray) and np.count_nonzero(X) < SPARSE * X.size:
            from scipy.sparse import csr_matrix

            X = csr_matrix(X)
        return self._solved(_Rows(X, classes), classes, rng, running)

    def run_kernel(
        self, gram: GramBlocks, classes: Classes, *, rng: np.random.Generator, running: Running
    ) -> MarginMinimum:
        """Minimise with inner products of a kernel. Weights are coefficients ``float64[n_examples * n_classes]``."""
        return self._solved(_Products(gram, classes), classes, rng, running)

    def _solved(
        self, side: _Rows | _Products, classes: Classes, rng: np.random.Generator, running: Running
    ) -> MarginMinimum:
        n = len(classes.labels)
        best, weights, dual = np.inf, side.weights.copy(), 0.0
        history: list[MarginPass] = []
        found, message = np.empty(n), "as many passes as were allowed"
        try:
            for _ in range(self.max_passes + 1):
                running.check(best if np.isfinite(best) else None, dual)
                hinges(side.scores(), classes.labels, classes.losses, found)
                square = side.square()
                primal = 0.5 * square + float(classes.costs @ found)
                dual = float((side.masses * classes.losses[classes.labels]).sum()) - 0.5 * square
                history.append(MarginPass(n * len(history), running.seconds, primal, dual))
                if primal < best:
                    best, weights = primal, side.weights.copy()
                if best - dual <= self.gap * best or len(history) > self.max_passes:
                    break
                side.sweep(rng)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        converged = best - dual <= self.gap * best
        return MarginMinimum(
            weights=weights.ravel(), primal=best, dual=dual, passes=len(history),
            oracle_calls=n * max(len(history) - 1, 0), oracle_seconds=0.0, seconds=running.seconds, converged=converged,
            message=f"the gap is below {self.gap:g} of the primal" if converged else message, history=tuple(history),
        )  # fmt: skip


def _first_masses(classes: Classes) -> FloatArray:
    """All mass on the true classes."""
    n = len(classes.labels)
    masses = np.zeros((n, len(classes.losses)))
    masses[np.arange(n), classes.labels] = classes.costs
    return masses


class _Rows:
    """Inputs as a matrix, with weights."""

    def __init__(self, X: Any, classes: Classes) -> None:
        self.X, self.classes, self.masses = X, classes, _first_masses(classes)
        self.weights = np.zeros((X.shape[1], len(classes.losses)))
        self._sparse = not isinstance(X, np.ndarray)
        if self._sparse:
            self._offsets, self._columns = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        self._squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if self._sparse else np.einsum("ij,ij->i", X, X)

    def scores(self) -> FloatArray:
        return np.ascontiguousarray(self.X @ self.weights)

    def square(self) -> float:
        return float((self.weights**2).sum())

    def sweep(self, rng: np.random.Generator) -> None:
        # Most examples are far from others' classes and stay as they are: after all of them, those that moved.
        order = rng.permutation(len(self.masses))
        for _ in range(SWEEPS):
            moved = self._sweep(order)
            order = rng.permutation(order[moved > LITTLE])
            if not len(order):
                return

    def _sweep(self, order: IntArray) -> FloatArray:
        c, moved = self.classes, np.empty(len(order))
        about = c.labels, c.losses, c.costs, self._squares, self.masses, self.weights, moved
        if self._sparse:
            sparse_sweep(order, self._offsets, self._columns, self.X.data, *about)
        else:
            dense_sweep(order, self.X, *about)
        return moved


@dataclass(eq=False)
class GramBlocks:
    """Inner products of all examples, in blocks of rows that are kept as long as there is room.

    Parameters
    ----------
    rows
        Gives the rows of some examples, a slice: ``float64[size, n]``.
    n
        How many examples there are.
    size
        Rows of a block.
    max_bytes
        Blocks that are kept; others are worked out again when they are needed.
    parts
        The blocks, slices one after the other; by ``size`` where they are not given.
    """

    rows: Callable[[slice], FloatArray]
    n: int
    size: int = 512
    max_bytes: float = 2**29
    parts: list[slice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = self.parts or [slice(a, min(a + self.size, self.n)) for a in range(0, self.n, self.size)]
        self._kept: dict[int, FloatArray] = {}
        self._bytes = 0

    def block(self, number: int) -> FloatArray:
        """The rows of one block."""
        if number in self._kept:
            return self._kept[number]
        part = self.parts[number]
        found = np.ascontiguousarray(self.rows(part), np.float64)
        if found.shape != (part.stop - part.start, self.n) or not np.isfinite(found).all():
            raise ModelError(
                f"the kernel must give finite numbers of shape {(part.stop - part.start, self.n)}, got {found.shape}"
            )
        if (found[np.arange(len(found)), np.arange(part.start, part.stop)] < 0.0).any():
            raise ModelError("the kernel is no inner product: an example has a negative product with itself")
        if self._bytes + found.nbytes <= self.max_bytes:
            self._kept[number], self._bytes = found, self._bytes + found.nbytes
        return found


class _Products:
    """Inputs by their inner products; ``weights`` are coefficients, cost of the truth less masses."""

    def __init__(self, gram: GramBlocks, classes: Classes) -> None:
        self.gram, self.classes, self.masses = gram, classes, _first_masses(classes)
        self._scores = np.zeros_like(self.masses)

    @property
    def weights(self) -> FloatArray:
        return _first_masses(self.classes) - self.masses

    def scores(self) -> FloatArray:
        found = self.weights
        for number, part in enumerate(self.gram.parts):
            self._scores[part] = self.gram.block(number) @ found
        return self._scores

    def square(self) -> float:
        # Scores are those of the masses as they are: this is asked after them.
        return float((self.weights * self._scores).sum())

    def sweep(self, rng: np.random.Generator) -> None:
        c = self.classes
        for number in rng.permutation(len(self.gram.parts)).tolist():
            part, rows = self.gram.parts[number], self.gram.block(number)
            scores, own = rows @ self.weights, np.ascontiguousarray(rows[:, part])
            masses = np.ascontiguousarray(self.masses[part])
            for _ in range(SWEEPS):
                order = rng.permutation(len(masses))
                gram_sweep(order, own, scores, c.labels[part], c.losses, c.costs[part], masses)
            self.masses[part] = masses
