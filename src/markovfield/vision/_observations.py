"""How pixels of each class look: densities of colours, from weighted pixels in closed form (Murphy 19.23)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray

__all__ = ["GaussianDensities", "HistogramDensities", "Observation"]

# Variance, relative to that of the whole image, below which no class goes: a flat region would have none.
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class GaussianDensities:
    """A normal distribution of colours for each class.

    ``fit`` gives the maximum of the likelihood times an inverse Wishart prior that is worth ``shrinkage`` pixels of the
    whole image's covariance.

    Attributes
    ----------
    means, covariances
        ``float64[K, C]`` and ``float64[K, C, C]``.
    log_prior
        Log of the prior at these covariances, up to a constant.
    """

    means: FloatArray
    covariances: FloatArray
    log_prior: float

    @classmethod
    def fit(cls, pixels: FloatArray, weights: FloatArray, *, image: FloatArray, shrinkage: float) -> GaussianDensities:
        """From ``pixels[n, C]`` with ``weights[n, K]``; ``image[m, C]`` are all pixels that are known."""
        channels = pixels.shape[1]
        whole = np.cov(image, rowvar=False, bias=True).reshape(channels, channels)
        scale = float(np.trace(whole)) / channels
        whole = whole + FLOOR * (scale if scale > 0 else 1.0) * np.eye(channels)
        totals = weights.sum(axis=0)
        means = (weights.T @ pixels) / np.maximum(totals, 1e-300)[:, None]
        means[totals <= 0] = image.mean(axis=0)
        covariances = np.empty((len(means), channels, channels))
        for k, mean in enumerate(means):
            centred = pixels - mean
            scatter = (weights[:, k, None] * centred).T @ centred
            covariances[k] = (scatter + (shrinkage + FLOOR) * whole) / (totals[k] + shrinkage + FLOOR)
        determinants = np.linalg.slogdet(covariances)[1]
        traces = np.trace(np.linalg.solve(covariances, np.broadcast_to(whole, covariances.shape)), axis1=1, axis2=2)
        log_prior = -0.5 * (shrinkage + FLOOR) * float((determinants + traces).sum())
        return cls(means, covariances, log_prior)

    @property
    def channels(self) -> int:
        """Channels of the images."""
        return self.means.shape[1]

    def log_density(self, pixels: FloatArray) -> FloatArray:
        """``float64[n, K]``: log p(x | class)."""
        channels = pixels.shape[1]
        out = np.empty((len(pixels), len(self.means)))
        for k, mean in enumerate(self.means):
            root = np.linalg.cholesky(self.covariances[k])
            white = np.linalg.solve(root, (pixels - mean).T)
            log_root = float(np.log(np.diagonal(root)).sum())
            out[:, k] = -0.5 * (white**2).sum(axis=0) - log_root - 0.5 * channels * np.log(2 * np.pi)
        return out


@dataclass(frozen=True, eq=False)
class HistogramDensities:
    """For each class, how often colours fall into each cell of a grid: any shape of density, given enough pixels.

    ``fit`` gives the maximum of the likelihood times a Dirichlet prior that is worth ``shrinkage`` pixels spread as
    those of the whole image are, and a little evenly.

    Attributes
    ----------
    low, width
        ``float64[C]``: where the cells of each channel start, and how wide they are.
    log_cells
        ``float64[K, n_bins ** C]``: log-density in each cell.
    log_prior
        Log of the prior at these densities, up to a constant.
    """

    low: FloatArray
    width: FloatArray
    n_bins: int
    log_cells: FloatArray
    log_prior: float

    @classmethod
    def fit(
        cls, pixels: FloatArray, weights: FloatArray, *, image: FloatArray, shrinkage: float, n_bins: int
    ) -> HistogramDensities:
        """From ``pixels[n, C]`` with ``weights[n, K]``; ``image[m, C]`` are all pixels that are known."""
        low, high = image.min(axis=0), image.max(axis=0)
        width = np.where(high > low, (high - low) / n_bins, 1.0)
        n_cells, n_classes = n_bins ** pixels.shape[1], weights.shape[1]
        cell = _cells(pixels, low, width, n_bins)
        whole = np.bincount(_cells(image, low, width, n_bins), minlength=n_cells) / len(image)
        # A hundredth spread evenly: no colour is impossible.
        whole = 0.99 * whole + 0.01 / n_cells
        counts = np.stack([np.bincount(cell, weights[:, k], n_cells) for k in range(n_classes)])
        logs = np.log((counts + shrinkage * whole) / (counts.sum(axis=1, keepdims=True) + shrinkage))
        log_prior = float(shrinkage * (logs @ whole).sum())
        return cls(low, width, n_bins, logs - float(np.log(width).sum()), log_prior)

    @property
    def channels(self) -> int:
        """Channels of the images."""
        return len(self.low)

    def log_density(self, pixels: FloatArray) -> FloatArray:
        """``float64[n, K]``: log p(x | class); colours outside the grid count to its border."""
        return np.asarray(self.log_cells[:, _cells(pixels, self.low, self.width, self.n_bins)].T)


Observation = GaussianDensities | HistogramDensities


def _cells(pixels: FloatArray, low: FloatArray, width: FloatArray, n_bins: int) -> npt.NDArray[np.int64]:
    """The cell of the grid each pixel falls into."""
    at = np.clip(np.floor((pixels - low) / width), 0, n_bins - 1).astype(np.int64)
    place = n_bins ** np.arange(pixels.shape[1])[::-1]
    return np.asarray(at @ place)
