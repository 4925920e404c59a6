"""The hyper-inverse-Wishart distribution: the conjugate prior and posterior of decomposable Gaussian models.

The cliques' covariances have inverse Wishart distributions that agree on the separators (Dawid and Lauritzen 1993), so
normalising constants, means and draws are products over cliques, by those of separators (Murphy 19.5.7.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.learning.gaussian.goodness import log_determinant
from markovfield.learning.gaussian.graph_maximum import positions_of
from markovfield.learning.gaussian.learned import field_of
from markovfield.learning.gaussian.moments import GaussianMoments, not_definite, read_moments

if TYPE_CHECKING:
    pass

__all__ = ["HyperInverseWishart", "hyper_inverse_wishart", "log_constant", "prior_scale"]


def log_constant(degrees: float, log_det: float, size: int) -> float:
    """log of the normalising constant of an inverse Wishart density of ``size`` variables, in Dawid's degrees."""
    from scipy.special import multigammaln

    if size == 0:
        return 0.0
    half = 0.5 * (degrees + size - 1)
    return half * (log_det - size * math.log(2)) - float(multigammaln(half, size))


def prior_scale(moments: GaussianMoments, degrees: float, scale: npt.ArrayLike | float | None) -> FloatArray:
    """The scale matrix of the prior: given, a multiple of the identity, or the data's variances as its mean."""
    n = moments.n_variables
    if scale is None:
        return np.diag(np.diag(moments.covariance) * max(degrees - 2.0, 1.0))
    given = np.asarray(scale, np.float64)
    if given.ndim == 0:
        return np.eye(n) * number(float(given), "scale of the inverse Wishart distribution", above=0)
    if given.shape != (n, n) or not np.isfinite(given).all() or not np.allclose(given, given.T):
        raise ModelError(
            f"scale of the inverse Wishart distribution is a number or a symmetric matrix ({n}, {n}), got shape "
            f"{given.shape}"
        )
    if log_determinant(given) == -math.inf:
        raise ModelError(not_definite(given, moments.variables, "scale of the inverse Wishart distribution"))
    return (given + given.T) / 2


@dataclass(frozen=True, eq=False)
class HyperInverseWishart(Tabular):
    """The distribution of the covariance of a decomposable Gaussian model, given data; made by `hyper_inverse_wishart`.

    Attributes
    ----------
    cliques, separators
        Positions, in an order with running intersection; the separator of a clique is what it shares with those before.
    degrees, scale
        Of the prior: the covariance of a clique of k variables has density proportional to ``|V|^-(degrees / 2 + k)
        exp(-tr(V^-1 scale) / 2)`` there.
    moments
        Of the data. Their mean is integrated out under a flat prior, which takes one row.
    """

    cliques: tuple[tuple[int, ...], ...]
    separators: tuple[tuple[int, ...], ...]
    degrees: float
    scale: FloatArray = field(repr=False)
    moments: GaussianMoments

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names, mean = self.moments.variables, self.mean_precision()
        pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names)) if mean[i, j] != 0][:limit]
        return {
            "first": [names[i] for i, _ in pairs],
            "second": [names[j] for _, j in pairs],
            "mean_precision": [float(mean[i, j]) for i, j in pairs],
        }

    @property
    def posterior_degrees(self) -> float:
        """Of the posterior distribution."""
        return self.degrees + self.moments.n_rows - 1

    @property
    def posterior_scale(self) -> FloatArray:
        """``float64[n, n]``: that of the prior and the sum of squares of the data."""
        return self.scale + self.moments.n_rows * self.moments.covariance

    def _sum(self, degrees: float, scale: FloatArray) -> float:
        """Of the constants of cliques less those of separators."""
        total = 0.0
        for members, sign in self._signed():
            log_det = log_determinant(scale[np.ix_(members, members)]) if members else 0.0
            total += sign * log_constant(degrees, log_det, len(members))
        return total

    def _signed(self) -> list[tuple[tuple[int, ...], float]]:
        return [(c, 1.0) for c in self.cliques] + [(s, -1.0) for s in self.separators if s]

    @property
    def log_marginal_likelihood(self) -> float:
        """Log-density of the rows with the covariance integrated out, and the mean under a flat density of one."""
        n, rows = self.moments.n_variables, self.moments.n_rows
        own = self._sum(self.degrees, self.scale) - self._sum(self.posterior_degrees, self.posterior_scale)
        return own - 0.5 * n * ((rows - 1) * math.log(2 * math.pi) + math.log(rows))

    def mean_precision(self) -> FloatArray:
        """``float64[n, n]``, the posterior mean of the precision, which has the zeros of the graph."""
        scale = self.posterior_scale
        found = np.zeros_like(scale)
        for members, sign in self._signed():
            at = np.ix_(members, members)
            found[at] += sign * (self.posterior_degrees + len(members) - 1) * np.linalg.inv(scale[at])
        return (found + found.T) / 2

    def draw(self, size: int, rng: int | np.random.Generator | None = None) -> list[GaussianField]:
        """Fields drawn from the posterior distribution, independently; their means as well.

        Examples
        --------
        >>> import markovfield as mf
        >>> moments = mf.learning.GaussianMoments([[1.0, 0.5], [0.5, 1.0]], 50)
        >>> posterior = mf.learning.hyper_inverse_wishart([(0, 1)], moments)
        >>> len(posterior.draw(10, rng=0))
        10
        """
        generator = generator_of(rng)
        return [self._draw(generator) for _ in range(size)]

    def _draw(self, generator: np.random.Generator) -> GaussianField:
        """Clique by clique: what is new in it given its separator is a regression with inverse Wishart noise."""
        moments, scale = self.moments, self.posterior_scale
        precision = np.zeros_like(scale)
        for clique, separator in zip(self.cliques, self.separators, strict=True):
            new = [v for v in clique if v not in separator]
            known = list(separator)
            rest = scale[np.ix_(new, new)]
            slopes: FloatArray = np.zeros((len(new), len(known)))
            if known:
                inner = scale[np.ix_(known, known)]
                slopes = np.asarray(np.linalg.solve(inner, scale[np.ix_(known, new)]).T)
                rest = rest - slopes @ scale[np.ix_(known, new)]
            noise = _wishart(self.posterior_degrees + len(clique) - 1, rest, generator)
            if known:
                # Slopes vary as the noise does between variables, as the inverse of the separator's scale among them.
                left = np.linalg.cholesky(np.linalg.inv(noise))
                right = np.linalg.cholesky(np.linalg.inv(inner))
                slopes = slopes + left @ generator.standard_normal(slopes.shape) @ right.T
            whole = np.zeros((len(new), len(scale)))
            whole[:, new] = np.eye(len(new))
            whole[:, known] = -slopes
            precision += whole.T @ noise @ whole
        precision = (precision + precision.T) / 2
        white = generator.standard_normal(len(scale))
        shift = np.linalg.solve(np.linalg.cholesky(precision).T, white) / math.sqrt(moments.n_rows)
        moved = GaussianMoments.trusted(moments.covariance, moments.n_rows, moments.mean + shift, moments.variables)
        return field_of(moved, precision)


def _wishart(degrees: float, scale: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A precision whose covariance is inverse Wishart with this scale, by Bartlett's decomposition."""
    n = len(scale)
    root = np.linalg.cholesky(np.linalg.inv(scale))
    lower = np.tril(generator.standard_normal((n, n)), -1)
    lower[np.diag_indices(n)] = np.sqrt(generator.chisquare(degrees - np.arange(n)))
    half = root @ lower
    return np.asarray(half @ half.T)


def hyper_inverse_wishart(
    graph: Any,
    data: Any,
    *,
    degrees: float = 3.0,
    scale: npt.ArrayLike | float | None = None,
    weights: Any = None,
) -> HyperInverseWishart:
    """The posterior of a decomposable Gaussian model's covariance, with its marginal likelihood.

    Parameters
    ----------
    graph
        A chordal networkx graph, pairs of variables, or a `GaussianMarkovField`; variables of the data that it does not
        have are left out where it has nodes of its own.
    data
        Columns of numbers, rows of an array, or `GaussianMoments`.
    degrees
        Of the prior, above 0; the prior's mean covariance is ``scale / (degrees - 2)`` where they are above 2.
    scale
        Of the prior: a number times the identity, or a matrix. None takes the variances of the data for the prior's
        mean covariance, with no correlations: a stated use of the data for the prior.
    weights
        Of rows.

    Examples
    --------
    >>> import markovfield as mf
    >>> s = [[1.0, 0.6, 0.36], [0.6, 1.0, 0.6], [0.36, 0.6, 1.0]]
    >>> moments = mf.learning.GaussianMoments(s, 100, variables="abc")
    >>> chain = mf.learning.hyper_inverse_wishart([("a", "b"), ("b", "c")], moments)
    >>> complete = mf.learning.hyper_inverse_wishart([("a", "b"), ("b", "c"), ("a", "c")], moments)
    >>> chain.log_marginal_likelihood > complete.log_marginal_likelihood
    True
    """
    import networkx as nx

    from markovfield.graphs.decomposable import perfect_sequence
    from markovfield.graphs.triangulation import is_chordal

    number(degrees, "degrees of the inverse Wishart distribution", above=0)
    moments = read_moments(data, weights=weights, what="hyper_inverse_wishart")
    own = graph.to_networkx() if hasattr(graph, "to_networkx") else graph
    if not hasattr(own, "edges"):
        own = nx.Graph([tuple(pair) for pair in own])
        own.add_nodes_from(moments.variables)
    moments = moments.among([v for v in moments.variables if v in own] + [v for v in own if v not in moments.variables])
    placed = positions_of(own, moments.variables)
    if not is_chordal(placed):
        raise ModelError("hyper_inverse_wishart needs a decomposable (chordal) graph; triangulate it first")
    steps = perfect_sequence(placed)
    return HyperInverseWishart(
        cliques=tuple(tuple(sorted(step.clique)) for step in steps),
        separators=tuple(tuple(sorted(step.separator)) for step in steps),
        degrees=float(degrees),
        scale=prior_scale(moments, degrees, scale),
        moments=moments,
    )


def members_of(mask: int) -> Sequence[int]:
    """The positions whose bits are set."""
    found = []
    while mask:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return found
