"""From weights of the attributes of tokens to scores of segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray

__all__ = ["ROLES", "SegmentTokens"]

# What a token is to a segment; one of one token begins and ends with it. The last two are its neighbours.
ROLES = ("begin", "inside", "end", "before", "after")


@dataclass(frozen=True, eq=False)
class SegmentTokens:
    """The score of a segment is the sum over its tokens: the first begins it, others are inside, the last ends it.

    With ``n_roles`` 5, the token before it and the one after it count, too, where the sentence has them. Weights are
    ``[attribute, role, label]``, cells ``[token, length - 1, label]``. Scores of tokens in their roles are products of
    attributes and weights, once for each token; those of segments are running sums.

    Attributes
    ----------
    features
        ``float64[n_tokens, n_attributes]``, sparse.
    offsets
        ``int64[n_sentences + 1]``: where the tokens of each sentence begin.
    max_length, n_labels
        Of segments. Cells of segments that go past the end of their sentence hold numbers that nobody reads.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> scores = SegmentTokens(csr_array(np.eye(3)), np.array([0, 3]), 2, 1)
    >>> w = np.array([[1.0, 10.0, 100.0]] * 3)  # begin, inside and end, for all attributes alike
    >>> scores.forward(w.ravel()).reshape(3, 2).tolist()
    [[101.0, 111.0], [101.0, 111.0], [101.0, 0.0]]
    """

    features: Any
    offsets: IntArray
    max_length: int
    n_labels: int
    n_roles: int = 3

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return int(self.features.shape[1]) * self.n_roles * self.n_labels

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return int(self.features.shape[0]) * self.max_length * self.n_labels

    def forward(self, w: FloatArray) -> FloatArray:
        """Scores of segments."""
        n, k = self.features.shape[0], self.n_labels
        scores = (self.features @ w.reshape(-1, self.n_roles * k)).reshape(n, self.n_roles, k)
        begin, inside, end, *around = np.ascontiguousarray(np.moveaxis(scores, 1, 0))
        if around:
            later = self._followers
            begin[later] += around[0][later - 1]
            end[later - 1] += around[1][later]
        out = np.zeros((n, self.max_length, k))
        for d in range(min(self.max_length, n)):
            if d:
                begin[: n - d] += inside[d:]
            np.add(begin[: n - d], end[d:], out=out[: n - d, d])
        return out.ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of segments."""
        n, k = self.features.shape[0], self.n_labels
        counts = cells.reshape(n, self.max_length, k)
        begin, inside, end, *around = roles = np.zeros((self.n_roles, n, k))
        for d in range(min(self.max_length, n) - 1, -1, -1):
            own = np.ascontiguousarray(counts[: n - d, d])
            end[d:] += own
            begin[: n - d] += own  # those of this length, and of all that are longer
            if d:
                inside[d:] += begin[: n - d]
        if around:
            later = self._followers
            around[0][later - 1] = begin[later]
            around[1][later] = end[later - 1]
        by_token = np.moveaxis(roles, 0, 1).reshape(n, self.n_roles * k)
        return np.asarray(self.features.T @ by_token).ravel()

    @cached_property
    def _followers(self) -> IntArray:
        """Tokens that are not the first of their sentence."""
        first = np.zeros(int(self.offsets[-1]) + 1, np.bool_)
        first[self.offsets] = True
        return np.flatnonzero(~first)
