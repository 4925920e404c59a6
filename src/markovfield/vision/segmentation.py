"""Segmenting images: a Potts prior on labels, and a density of colours for each class (Murphy 19.23)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback, decode, marginals
from markovfield.models.potts import Potts
from markovfield.progress import shows_progress
from markovfield.vision._labels import Settings, labels_of
from markovfield.vision._observations import GaussianDensities, HistogramDensities, Observation

__all__ = ["ImageSegmentation"]

MOST_CELLS = 2**20
# Pixels, drawn at random, that k-means looks at.
MOST_CLUSTERED = 2**14
# Sweeps of messages in an E step, at first and in the end.
SWEEPS = (2, 50)
# For EM, a class this much less likely than another in logs, beyond what all neighbours could say, is as good as
# impossible; farther off, messages would have to be in logs, which takes them three times as long.
IMPOSSIBLE = 100.0


@dataclass(eq=False)
class ImageSegmentation(Settings):
    """Labels for the pixels of an image: each class has its colours, and neighbours tend to be of one class.

        p(y, x) = p(y) prod over pixels of p(x_t | y_t),  log p(y) = sum over neighbours of w_st [y_s = y_t] - log Z

    (Murphy 19.23.) ``fit`` finds the densities of colours, from a few labelled pixels or from none; ``predict`` finds
    the labels by any method of `markovfield.decode`. The couplings are given, not learned.

    The manners are scikit-learn's: constructors only store, ``fit`` returns the object, what it found ends in ``_``.
    An image is ``[rows, columns]`` or ``[rows, columns, channels]`` of numbers; a pixel that is nan in a channel says
    nothing about its label. Pixels are the variables 0, 1, ... in row order of `to_factor_graph`.

    Parameters
    ----------
    n_classes
        At least two. Two classes make a denoiser of binary images.
    coupling
        What it is worth that two neighbours have the same label.
    observation
        ``"gaussian"``: a normal distribution for each class. ``"histogram"``: any shape, on a grid of ``n_bins`` cells
        for each channel.
    connectivity
        4, or 8 with the diagonal neighbours, whose couplings are divided by the square root of two, their distance.
    contrast
        Above zero, neighbours of different colours are coupled less: times exp(-contrast d / (2 mean d)), where d is
        the squared distance of their colours and its mean is over all neighbours of the image.
    n_bins
        Cells for each channel of a histogram.
    shrinkage
        How many pixels the prior is worth: a class's density is drawn that much towards that of the whole image.
    inference
        How ``fit`` without labels finds marginals: a method of `markovfield.marginals`; None for belief propagation,
        two sweeps in each E step, which go on from those before, and more once the objective has settled.
    max_iterations, tolerance
        Of EM: it ends when the objective gains less than ``tolerance`` for each pixel.
    rng
        Seed of the start without labels (k-means of the colours).

    Attributes
    ----------
    observation_
        The densities: ``means`` and ``covariances``, or cells of a grid; ``log_density(pixels)`` is ``[n, n_classes]``.
    objective_
        Without labels: after each E step, log Z of the labels given the image as the method has it (a bound, an
        approximation or exact), plus the log-prior of the densities. It never falls where that is exact or a bound
        from below, as mean field's is.
    n_iter_, converged_
        Iterations of EM, and whether it and its last E step came to their ends; 0 and True with labels.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.vision.segmentation import ImageSegmentation
    >>> truth = (np.arange(20) > 8).astype(int) * np.ones((6, 1), int)
    >>> image = truth + np.random.default_rng(0).normal(scale=0.5, size=truth.shape)
    >>> labels = np.full(truth.shape, -1)
    >>> labels[:, 0], labels[:, -1] = 0, 1
    >>> found = ImageSegmentation(coupling=1.5).fit(image, labels).predict(image)
    >>> int((found != truth).sum()), int(((image > 0.5) != truth).sum())
    (0, 22)
    """

    n_classes: int = 2
    coupling: float = 1.0
    observation: str = "gaussian"
    connectivity: int = 4
    contrast: float = 0.0
    n_bins: int = 8
    shrinkage: float = 2.0
    inference: Any = None
    max_iterations: int = 30
    tolerance: float = 1e-4
    rng: int | np.random.Generator | None = None

    # ---- fitting --------------------------------------------------------------------------------------------

    @shows_progress
    def fit(
        self,
        image: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> ImageSegmentation:
        """Find the density of each class.

        Parameters
        ----------
        image
            ``[rows, columns]`` or ``[rows, columns, channels]``.
        labels
            ``int[rows, columns]`` classes, -1 for pixels without; then only the labelled pixels count, and every class
            needs one. None: EM from a k-means of the colours, classes in order of brightness.
        time_limit, callback
            Of EM: past so many seconds, or where the callback, which is told of the objective between steps, answers
            true, the densities so far are kept, ``converged_`` is False and a warning says so.
        progress
            Show a line that tells how it goes, in a terminal or a notebook.
        """
        running = Running(None, time_limit, callback)
        self._check()
        pixels, shape, known = _pixels(image)
        if not known.any():
            raise ModelError("ImageSegmentation.fit(image) needs pixels that are not nan")
        if labels is None:
            self._fit_alone(image, pixels, shape, known, running)
            return self
        given = self._labels(labels, shape).ravel()
        given = np.where(known, given, -1)
        seen = np.flatnonzero(given >= 0)
        missing = np.setdiff1d(np.arange(self.n_classes), given[seen])
        if len(missing):
            raise ModelError(f"fit(labels=...) has no pixel of class {missing[0]}; label at least one of each")
        weights = np.eye(self.n_classes)[given[seen]]
        self.observation_ = self._densities(pixels[seen], weights, pixels[known])
        self.objective_, self.n_iter_, self.converged_ = np.zeros(0), 0, True
        return self

    def _fit_alone(
        self,
        image: npt.ArrayLike,
        pixels: FloatArray,
        shape: tuple[int, int],
        known: npt.NDArray[np.bool_],
        running: Running,
    ) -> None:
        """EM: marginals of the labels, then densities from pixels weighted by them."""
        from sklearn.cluster import KMeans

        seen = pixels[known]
        distinct = len(np.unique(seen, axis=0))
        if distinct < self.n_classes:
            raise ModelError(
                f"an image of {distinct} different colours cannot start {self.n_classes} classes; label some"
            )
        seed = int(generator_of(self.rng).integers(2**31))
        few = seen[np.random.default_rng(seed).permutation(len(seen))[:MOST_CLUSTERED]]
        if len(np.unique(few, axis=0)) < self.n_classes:
            few = seen
        start = KMeans(self.n_classes, n_init=4, random_state=seed).fit(few).predict(seen)
        bright = [float(seen[start == k].mean()) for k in range(self.n_classes)]
        weights = np.eye(self.n_classes)[np.argsort(np.argsort(bright))[start]]
        # Messages go on from one E step to the next: few sweeps each are enough until the objective settles.
        methods = [BeliefPropagation(max_iterations=n, tolerance=1e-3) for n in SWEEPS]
        methods = methods if self.inference is None else [self.inference]
        prior = self._prior(image, shape)
        objective: list[float] = []
        self.converged_ = False
        answer: Marginals | None = None
        for _ in range(self.max_iterations):
            self.observation_ = self._densities(seen, weights, seen)
            try:
                posterior = self._posterior(prior, pixels, known, IMPOSSIBLE + 8 * abs(self.coupling))
                answer = _expect(posterior, methods[0], answer, running, objective)
            except (StoppedError, TimeoutError) as stop:
                warn_caller(f"ImageSegmentation.fit kept the densities of {len(objective)} iterations of EM: {stop}")
                break
            if np.isnan(answer.log_partition):
                raise ModelError(
                    f"EM follows log Z, and inference method {answer.method!r} does not estimate it: use "
                    "belief_propagation, mean_field or annealed_importance, or give labels to fit"
                )
            objective.append(float(answer.log_partition) + self.observation_.log_prior)
            weights = answer.values.reshape(-1, self.n_classes)[known]
            if len(objective) > 1 and objective[-1] - objective[-2] < self.tolerance * len(seen):
                if len(methods) > 1:
                    methods = methods[1:]
                    continue
                self.converged_ = answer.converged
                break
        self.objective_, self.n_iter_ = np.array(objective), len(objective)

    def _densities(self, pixels: FloatArray, weights: FloatArray, image: FloatArray) -> Observation:
        if self.observation == "gaussian":
            return GaussianDensities.fit(pixels, weights, image=image, shrinkage=self.shrinkage)
        if self.n_bins ** image.shape[1] > MOST_CELLS:
            raise ModelError(
                f"a histogram of {self.n_bins} bins in {image.shape[1]} channels has more than {MOST_CELLS} cells; "
                "lower n_bins or take observation='gaussian'"
            )
        return HistogramDensities.fit(
            pixels, weights, image=image, shrinkage=max(self.shrinkage, 1e-6), n_bins=self.n_bins
        )

    # ---- the model of an image ------------------------------------------------------------------------------

    def _prior(self, image: npt.ArrayLike, shape: tuple[int, int]) -> FactorGraph:
        """The Potts model of the labels, with a table of zeros for each pixel at the end of the pool."""
        edges, apart = _neighbours(shape, self.connectivity)
        couplings = self.coupling / apart
        if self.contrast > 0 and len(edges):
            colours = np.asarray(image, np.float64).reshape(shape[0] * shape[1], -1)
            squared = ((colours[edges[:, 0]] - colours[edges[:, 1]]) ** 2).sum(axis=1)
            mean = np.nanmean(squared) if not np.isnan(squared).all() else 0.0
            if mean > 0:
                couplings = couplings * np.exp(-self.contrast * np.nan_to_num(squared) / (2 * mean))
        field = np.zeros((shape[0] * shape[1], self.n_classes))
        if self.connectivity == 4 or min(shape) == 1:
            # As a lattice, which some methods know how to use.
            return Potts(shape, self.n_classes, couplings if self.contrast > 0 else self.coupling, field).compile()
        return Potts(edges, self.n_classes, couplings, field).compile()

    def _posterior(
        self, prior: FactorGraph, pixels: FloatArray, known: npt.NDArray[np.bool_], most: float = np.inf
    ) -> FactorGraph:
        """The same structure with the log-densities of the pixels, none ``most`` below another; unknown ones say
        nothing."""
        field = np.zeros((len(pixels), self.n_classes))
        field[known] = self.observation_.log_density(pixels[known])
        field = np.maximum(field, field.max(axis=1, keepdims=True) - most)
        return prior.with_tables(np.concatenate([prior.log_tables[: -field.size], field.ravel()]))

    def to_factor_graph(self, image: npt.ArrayLike) -> FactorGraph:
        """The posterior of the labels of an image: variables 0, 1, ... are its pixels in row order."""
        self._check()
        if not hasattr(self, "observation_"):
            raise ModelError("this ImageSegmentation is not fitted yet; call fit(image, labels) first")
        pixels, shape, known = _pixels(image)
        channels = self.observation_.channels
        if pixels.shape[1] != channels:
            raise ModelError(f"fitted to images of {channels} channels, got one of {pixels.shape[1]}")
        return self._posterior(self._prior(image, shape), pixels, known)

    def decode(
        self, image: npt.ArrayLike, method: MethodLike = "auto", *, labels: npt.ArrayLike | None = None, **settings: Any
    ) -> Decoding:
        """The likeliest labels as a whole, with their score, its gap to a bound, and whether that has converged.

        Parameters are those of `predict`; ``states.reshape(image.shape[:2])`` is the picture.
        """
        evidence = self._evidence(labels, _pixels(image)[1])
        return decode(self.to_factor_graph(image), evidence, method=method, **settings)

    @shows_progress
    def predict(
        self,
        image: npt.ArrayLike,
        method: MethodLike = "auto",
        *,
        labels: npt.ArrayLike | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
        **settings: Any,
    ) -> IntArray:
        """The likeliest labels as a whole, ``int64[rows, columns]``.

        Issues a ``ConvergenceWarning`` where the method was stopped far from its bound, or without any.

        Parameters
        ----------
        image
            As for ``fit``; another one with as many channels, or the same.
        method, time_limit, callback, progress, settings
            As for `markovfield.decode`.
        labels
            ``int[rows, columns]``: pixels whose labels are known and stay, -1 for others.
        """
        settings |= {"time_limit": time_limit, "callback": callback}
        return labels_of(lambda: self.decode(image, method, labels=labels, **settings), np.shape(image)[:2])

    @shows_progress
    def predict_marginals(
        self,
        image: npt.ArrayLike,
        method: MethodLike = "auto",
        *,
        labels: npt.ArrayLike | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
        **settings: Any,
    ) -> FloatArray:
        """Probability of each class at each pixel, ``float64[rows, columns, n_classes]``; as `predict`."""
        graph = self.to_factor_graph(image)
        _, shape, _ = _pixels(image)
        settings |= {"time_limit": time_limit, "callback": callback}
        found = marginals(graph, self._evidence(labels, shape), method=method, **settings)
        return found.values.reshape(*shape, self.n_classes)

    def score(self, image: npt.ArrayLike, labels: npt.ArrayLike, method: MethodLike = "auto") -> float:
        """The share of labelled pixels (those not -1) that `predict` gets right without seeing their labels."""
        found = self.predict(image, method)
        truth = self._labels(labels, found.shape)
        return float((found == truth)[truth >= 0].mean())

    # ---- checks ---------------------------------------------------------------------------------------------

    def _evidence(self, labels: npt.ArrayLike | None, shape: tuple[int, int]) -> dict[Any, Any] | None:
        if labels is None:
            return None
        flat = self._labels(labels, shape).ravel()
        return {int(p): int(flat[p]) for p in np.flatnonzero(flat >= 0)}

    def _labels(self, labels: npt.ArrayLike, shape: tuple[int, ...]) -> IntArray:
        given = np.asarray(labels)
        if given.shape != shape:
            raise ModelError(f"labels must have the image's shape {shape}, got {given.shape}")
        whole = given.astype(np.int64)
        strange = (whole != given) | (whole < -1) | (whole >= self.n_classes)
        if strange.any():
            raise ModelError(
                f"labels must be -1 (none) or classes 0 to {self.n_classes - 1}, got {given[strange].flat[0]}"
            )
        return whole

    def _check(self) -> None:
        rules = [
            ("n_classes", isinstance(self.n_classes, (int, np.integer)) and self.n_classes >= 2, "at least 2"),
            ("coupling", np.isfinite(self.coupling), "a finite number"),
            ("observation", self.observation in ("gaussian", "histogram"), "'gaussian' or 'histogram'"),
            ("connectivity", self.connectivity in (4, 8), "4 or 8"),
            ("contrast", self.contrast >= 0, "at least zero"),
            ("n_bins", self.n_bins >= 2, "at least 2"),
            ("shrinkage", self.shrinkage >= 0, "at least zero"),
            ("max_iterations", self.max_iterations >= 1, "at least 1"),
        ]
        for name, fits, rule in rules:
            if not fits:
                raise ModelError(f"ImageSegmentation({name}=...) must be {rule}, got {getattr(self, name)!r}")


def _pixels(image: npt.ArrayLike) -> tuple[FloatArray, tuple[int, int], npt.NDArray[np.bool_]]:
    """``float64[n, channels]``, rows and columns, and which pixels are known."""
    array = np.asarray(image, np.float64)
    if array.ndim not in (2, 3) or not array.size:
        raise ModelError(f"an image is [rows, columns] or [rows, columns, channels], got shape {array.shape}")
    if np.isinf(array).any():
        raise ModelError("an image needs finite numbers, or nan for pixels that are not known")
    rows, columns = array.shape[:2]
    pixels = array.reshape(rows * columns, -1)
    return pixels, (rows, columns), np.asarray(~np.isnan(pixels).any(axis=1))


def _neighbours(shape: tuple[int, int], connectivity: int) -> tuple[IntArray, FloatArray]:
    """Pairs of pixels and their distances: down, right, and the diagonals."""
    pixel = np.arange(shape[0] * shape[1]).reshape(shape)
    parts = [(pixel[:-1], pixel[1:], 1.0), (pixel[:, :-1], pixel[:, 1:], 1.0)]
    if connectivity == 8:
        root = float(np.sqrt(2.0))
        parts += [(pixel[:-1, :-1], pixel[1:, 1:], root), (pixel[:-1, 1:], pixel[1:, :-1], root)]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b, _ in parts])
    return edges, np.concatenate([np.full(a.size, distance) for a, _, distance in parts])


def _expect(
    graph: FactorGraph, method: Any, before: Marginals | None, running: Running, objective: list[float]
) -> Marginals:
    """Marginals, going on from those of the iteration before where the method can."""
    from sklearn.exceptions import ConvergenceWarning

    settings: dict[str, Any] = {}
    if before is not None and "init" in getattr(method, "abilities", ()):
        settings["init"] = before
    with warnings.catch_warnings():
        # An iteration that is not at its end goes on in the next E step.
        warnings.simplefilter("ignore", ConvergenceWarning)
        running.check(objective[-1] if objective else None)
        return marginals(
            graph, method=method, callback=lambda _: running.check(objective[-1] if objective else None), **settings
        )
