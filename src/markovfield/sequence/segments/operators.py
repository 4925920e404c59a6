"""From weights of the attributes of tokens to scores of segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray

__all__ = ["ROLES", "SegmentTokens"]

# What a token is to a segment. A segment of one token begins and ends with it.
ROLES = ("begin", "inside", "end")


@dataclass(frozen=True, eq=False)
class SegmentTokens:
    """The score of a segment is the sum over its tokens: the first begins it, others are inside, the last ends it.

    Weights are ``[attribute, role, label]``, cells ``[token, length - 1, label]``. Scores of tokens in their roles are
    products of attributes and weights, once for each token; those of segments are running sums.

    Attributes
    ----------
    features
        ``float64[n_tokens, n_attributes]``, sparse.
    max_length, n_labels
        Of segments. Cells of segments that go past the end of their sentence hold numbers that nobody reads.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> scores = SegmentTokens(csr_array(np.eye(3)), 2, 1)
    >>> w = np.array([[1.0, 10.0, 100.0]] * 3)  # begin, inside and end, for all attributes alike
    >>> scores.forward(w.ravel()).reshape(3, 2).tolist()
    [[101.0, 111.0], [101.0, 111.0], [101.0, 1.0]]
    """

    features: Any
    max_length: int
    n_labels: int

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return int(self.features.shape[1]) * len(ROLES) * self.n_labels

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return int(self.features.shape[0]) * self.max_length * self.n_labels

    def forward(self, w: FloatArray) -> FloatArray:
        """Scores of segments."""
        n, k = self.features.shape[0], self.n_labels
        scores = self.features @ w.reshape(-1, len(ROLES) * k)
        begin, inside, end = np.moveaxis(scores.reshape(n, len(ROLES), k), 1, 0)
        out = np.empty((n, self.max_length, k))
        so_far = begin.copy()
        for d in range(self.max_length):
            kept = max(n - d, 0)
            if d:
                so_far[:kept] += inside[d:]
            out[:, d] = so_far
            out[:kept, d] += end[d:]
        return out.ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of segments."""
        n, k = self.features.shape[0], self.n_labels
        counts = cells.reshape(n, self.max_length, k)
        roles = np.zeros((n, len(ROLES), k))
        longer = np.zeros((n, k))  # of segments from each token that are longer than d
        for d in range(self.max_length - 1, -1, -1):
            kept = max(n - d, 0)
            longer += counts[:, d]
            roles[d:, 2] += counts[:kept, d]
            if d:
                roles[d:, 1] += longer[:kept]
        roles[:, 0] = longer
        return np.asarray(self.features.T @ roles.reshape(n, len(ROLES) * k)).ravel()
