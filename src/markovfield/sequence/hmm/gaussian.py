"""Gaussian observations of the states of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.sequence.chain.features import padded
from markovfield.sequence.hmm.emissions import Observations, sequence_offsets, sequences_of
from markovfield.sequence.hmm.hidden_markov_kernel import gaussian_moments, gaussian_scores

__all__ = ["COVARIANCES", "GaussianEmissions"]

COVARIANCES = ("full", "diag", "spherical")
# A start looks at no more tokens than this.
START_TOKENS = 20_000


@dataclass(frozen=True, eq=False)
class GaussianEmissions:
    """A Gaussian for each state.

    Attributes
    ----------
    means
        ``float64[n_states, d]``.
    covariances
        ``float64[n_states, d, d]``, whatever ``covariance`` restricts them to.
    origin
        ``float64[d]``: what is taken from observations before anything is summed, so that numbers far from zero lose no
        digits.
    covariance
        ``"full"``, ``"diag"`` or ``"spherical"``.
    """

    means: FloatArray
    covariances: FloatArray
    origin: FloatArray
    covariance: str = "full"

    kind = "gaussian"

    def __repr__(self) -> str:
        n_states, d = self.means.shape
        return f"GaussianEmissions({n_states} states, {d} dimensions, covariance={self.covariance!r})"

    @classmethod
    def learn(cls, X: Iterable[Any], covariance: str) -> GaussianEmissions:
        """How many dimensions some sequences have, without states yet."""
        sequences = sequences_of(X)
        if not sequences:
            raise ModelError("there is no observation to learn from: X is empty")
        d = _table(0, sequences[0], None).shape[1]
        values = np.concatenate([_table(s, sequence, d) for s, sequence in enumerate(sequences)])
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            raise ModelError("there is no observation to learn from: everything in X is missing")
        return cls(np.zeros((0, d)), np.zeros((0, d, d)), values.mean(axis=0), covariance)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return len(self.means)

    @property
    def dimensions(self) -> int:
        """Numbers in each observation."""
        return self.means.shape[1]

    @property
    def n_cells(self) -> int:
        """Moments of each state: a count, values, and products of values."""
        d = self.dimensions
        return 1 + d + (d * (d + 1) // 2 if self.covariance == "full" else d)

    def encode(self, X: Iterable[Any]) -> Observations:
        """Sequences of arrays as one; rows of nan are missing."""
        tables = [_table(s, sequence, self.dimensions) for s, sequence in enumerate(sequences_of(X))]
        offsets = sequence_offsets(map(len, tables))
        values = np.concatenate([np.zeros((0, self.dimensions)), *tables])
        gaps = np.isnan(values)
        missing = gaps.any(axis=1)
        bad = np.flatnonzero(np.where(missing, ~gaps.all(axis=1), ~np.isfinite(values).all(axis=1)))
        if len(bad):
            s = int(np.searchsorted(offsets, bad[0], side="right")) - 1
            raise ModelError(
                f"token {bad[0] - offsets[s]} of sequence {s} is {values[bad[0]].tolist()}: observations must be "
                "finite, or nan throughout where one is missing"
            )
        values -= self.origin
        values[missing] = 0.0
        return Observations(offsets, np.arange(len(values), dtype=np.int32), values, missing)

    @cached_property
    def _factors(self) -> FloatArray:
        """Lower Cholesky factors of the covariances."""
        try:
            return np.asarray(np.linalg.cholesky(self.covariances), np.float64)
        except np.linalg.LinAlgError:
            raise ModelError(
                "the covariance of a state is singular: give HMM a regularisation above 0, fewer states, or another "
                "covariance"
            ) from None

    def _kernel_layout(self, width: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Whitening matrices, whitened means and constants, states innermost (see `gaussian_scores`)."""
        d, k = self.dimensions, self.n_states
        inverses = np.linalg.inv(self._factors) if d else np.zeros((k, 0, 0))
        whitening, centres, constants = np.zeros((d, d, width)), np.zeros((d, width)), np.full(width, -np.inf)
        whitening[:, :, :k] = np.tril(inverses).transpose(1, 2, 0)
        centres[:, :k] = np.einsum("kij,kj->ik", inverses, self.means - self.origin)
        logs = np.log(np.diagonal(self._factors, axis1=1, axis2=2)).sum(axis=1)
        constants[:k] = -0.5 * d * np.log(2 * np.pi) - logs
        return whitening.ravel(), centres.ravel(), constants

    def log_table(self, observed: Observations, width: int) -> FloatArray:
        """``float64[n_tokens * width]``: log densities by token, zero where one is missing and -inf in the padding."""
        scores = np.empty(observed.n_tokens * width)
        self.fill(observed, width, 0, observed.n_tokens, scores)
        return scores

    def fill(self, observed: Observations, width: int, a: int, b: int, scores: FloatArray) -> None:
        """The same for tokens ``a`` to ``b``, into an array for all."""
        gaussian_scores(observed.values.ravel(), a, b, self.dimensions, width, *self._kernel_layout(width), scores)
        table = scores.reshape(-1, width)
        table[a:b][observed.missing[a:b], : self.n_states] = 0.0

    def moments(self, observed: Observations, posteriors: FloatArray, width: int, a: int, b: int) -> FloatArray:
        """Sums of tokens ``a`` to ``b`` weighted by their posteriors, ``float64[n_cells * width]``; see
        `gaussian_moments`. Posteriors of missing tokens become zero."""
        posteriors.reshape(-1, width)[a:b][observed.missing[a:b]] = 0.0
        found = np.zeros(self.n_cells * width)
        full = np.bool_(self.covariance == "full")
        gaussian_moments(observed.values.ravel(), posteriors, a, b, self.dimensions, width, full, found)
        return found

    def counted(self, observed: Observations, known: npt.NDArray[np.int32], width: int) -> FloatArray:
        """The same where states are known."""
        posteriors = np.zeros((len(known), width))
        at = np.flatnonzero(known >= 0)
        posteriors[at, known[at]] = 1.0
        return self.moments(observed, posteriors.ravel(), width, 0, len(known))

    def mean_start(self, observed: Observations, n_states: int, rng: np.random.Generator) -> GaussianEmissions:
        """Means from k-means with random first centres, and the covariances of its clusters."""
        from sklearn.cluster import KMeans

        points = observed.values[~observed.missing]
        if len(points) < n_states:
            raise ModelError(f"{n_states} states need at least as many observations, got {len(points)}")
        if len(points) > START_TOKENS:
            points = points[np.sort(rng.choice(len(points), START_TOKENS, replace=False))]
        spread = points.std(axis=0)
        scaled = points / np.where(spread > 0, spread, 1.0)
        seed = int(rng.integers(2**31))
        distinct = min(n_states, len(np.unique(scaled, axis=0)))
        fitted = KMeans(distinct, n_init=1, max_iter=20, random_state=seed).fit(scaled)
        known = np.zeros(len(points), np.int32)
        known[:] = fitted.labels_
        if distinct < n_states:  # too few different points: the states that are left share them
            known = rng.integers(0, n_states, len(points)).astype(np.int32)
        own = Observations(np.array([0, len(points)]), np.arange(len(points), dtype=np.int32), points,
                           np.zeros(len(points), np.bool_))  # fmt: skip
        begin = replace(self, means=self.means[:0], covariances=self.covariances[:0])
        # A cluster of few points is widened by one more that lies like all of them.
        prior = np.maximum(points.var(axis=0), 1e-12)
        return begin.updated(begin.counted(own, known, padded(n_states)), n_states, 0.0, prior)

    def updated(
        self, counts: FloatArray, n_states: int, smoothing: float, regularisation: FloatArray
    ) -> GaussianEmissions:
        """The Gaussians that fit moments ``[n_cells * width]`` best; a state without tokens keeps what it had.

        ``regularisation`` is added to the diagonal of each state's sum of squares: the maximum of the likelihood times
        ``exp(-trace(diag(regularisation) / covariance) / 2)``.
        """
        d = self.dimensions
        table = counts.reshape(self.n_cells, -1)[:, :n_states]
        totals = table[0]
        used = totals > 1e-8
        weight = np.where(used, totals, 1.0)
        means = (table[1 : 1 + d] / weight).T
        squares = np.zeros((n_states, d, d))
        if self.covariance == "full":
            i, j = np.tril_indices(d)
            squares[:, i, j] = squares[:, j, i] = (table[1 + d :] / weight).T
        else:
            squares[:, np.arange(d), np.arange(d)] = (table[1 + d :] / weight).T
        squares -= means[:, :, None] * means[:, None, :]
        if self.covariance != "full":
            squares *= np.eye(d)
        squares += np.diag(regularisation)[None] / weight[:, None, None]
        if self.covariance == "spherical":
            squares = np.einsum("kii->k", squares)[:, None, None] / d * np.eye(d)
        if self.n_states:
            old_means, old = self.means, self.covariances
        else:
            old_means, old = self.origin + np.zeros_like(means), np.broadcast_to(np.eye(d), squares.shape)
        return replace(
            self,
            means=np.where(used[:, None], self.origin + means, old_means),
            covariances=np.where(used[:, None, None], squares, old),
        )

    def finished(self, counts: FloatArray, smoothing: float) -> GaussianEmissions:
        """Nothing is left to do after training."""
        return self

    def log_prior(self, smoothing: float, regularisation: FloatArray) -> float:
        """What `updated` maximises beside the likelihood."""
        if not regularisation.any():
            return 0.0
        inverses = np.linalg.inv(self.covariances)
        return -0.5 * float(np.einsum("kii,i->", inverses, regularisation))

    def draw(self, states: npt.NDArray[Any], rng: np.random.Generator) -> FloatArray:
        """A vector for each state, ``float64[len(states), d]``."""
        noise = rng.normal(size=(len(states), self.dimensions))
        return self.means[states] + np.einsum("tij,tj->ti", self._factors[states], noise)


def _table(s: int, sequence: Any, d: int | None) -> FloatArray:
    """One sequence as an array of two dimensions."""
    try:
        table = np.array(sequence, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"sequence {s} is no array of numbers, which emissions='gaussian' needs") from None
    if table.ndim == 1 and (len(table) or d is not None):
        table = table.reshape(-1, 1) if len(table) or d is None else table.reshape(0, d)
    if table.ndim != 2 or not table.shape[1]:
        raise ModelError(f"sequence {s} must have a row of numbers for each token, got shape {table.shape}")
    if d is not None and table.shape[1] != d:
        raise ModelError(f"sequence {s} has {table.shape[1]} numbers for each token, and the model has {d}")
    return table
