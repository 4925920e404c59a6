"""Depth from two views: a disparity for each pixel, smooth but for jumps (Murphy 19.6.2.7)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.method import MethodLike
from markovfield.inference.verbs import Callback, decode, marginals
from markovfield.models._sites import Sites, pair_graph, sites_of
from markovfield.names import Names
from markovfield.progress import shows_progress
from markovfield.vision._labels import Settings, labels_of

__all__ = ["StereoMatching", "disparity_error"]

SMOOTHNESS = ("gaussian", "truncated_quadratic", "truncated_linear", "potts")
DATA = ("absolute", "squared", "birchfield_tomasi")
# Up to here a pair is a plain table, on which messages may run variable by variable and converge soonest; above, it is
# a distance potential, whose messages take O(K).
MOST_STATES = 32
# Weights that give way to contrast are rounded to so many steps, so that pairs share few tables.
STEPS = 32


@dataclass(eq=False)
class StereoMatching(Settings):
    """The disparity of each pixel of a left view: how far left its match lies in the right view.

        log p(y) = - sum over pixels of cost[s, y_s] - sum over neighbours of weight f(y_s - y_t) - log Z

    The cost compares the pixel at column x of the left view with that at column x - y of the right one (Murphy 19.68);
    f is one of the ``smoothness`` below. Views are rectified: matches lie in the same row. A view is
    ``[rows, columns]`` or ``[rows, columns, channels]``, of numbers from 0 to 1 or of bytes. Pixels are the variables
    0, 1, ... in row order of `to_factor_graph`; their states are the disparities 0 to ``max_disparity``.

    There is nothing to fit; `predict` finds the likeliest disparities as a whole by any method of `markovfield.decode`,
    and `decode` says how good they are.

    Parameters
    ----------
    max_disparity
        The largest one; each pixel has one state more.
    smoothness
        With d the difference of neighbours' disparities and t the truncation, ``"gaussian"``: d^2 (19.69), which blurs
        jumps. ``"truncated_quadratic"``: min(d^2, t^2) (19.70), a semi-metric, for which swaps are made.
        ``"truncated_linear"``: min(|d|, t), a metric, for which expansions are made. ``"potts"``: [d != 0].
    weight
        Of the smoothness; 1 / (2 gamma^2) in Murphy's terms.
    truncation
        The difference of disparities above which a larger one costs no more; Murphy's delta_0.
    data
        ``"absolute"``: |a - b| / noise. ``"squared"``: (a - b)^2 / (2 noise^2), which is 19.68.
        ``"birchfield_tomasi"``: as absolute, but against the range that each view takes within half a pixel, which
        forgives sampling (Birchfield and Tomasi 1998). Channels are averaged.
    noise
        What differences of a pixel and its match are like, in units of the views' numbers (bytes count as 255ths).
    data_truncation
        Most that a pixel can cost, so that what is hidden in one view or shines does not mislead; inf for no limit.
    window
        Costs are averaged over so many rows and columns, an odd number; 1 for single pixels. Only pixels that have a
        match count.
    contrast
        Above zero, neighbours of different colours in the left view are tied less: the weight is multiplied by
        exp(-contrast d / (2 mean d)), where d is the squared distance of colours, rounded to one of 32 steps.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.vision.stereo import StereoMatching
    >>> scene = np.random.default_rng(0).random((8, 24))
    >>> right = np.roll(scene, -3, axis=1)
    >>> model = StereoMatching(4, smoothness="truncated_linear")
    >>> found = model.predict(scene, right, method="alpha_expansion")
    >>> found[:2, 4:16].tolist()
    [[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3], [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]]
    """

    max_disparity: int
    _: KW_ONLY
    smoothness: str = "truncated_quadratic"
    weight: float = 0.8
    truncation: float = 2.0
    data: str = "absolute"
    noise: float = 0.025
    data_truncation: float = 3.0
    window: int = 1
    contrast: float = 0.0

    # ---- the model ------------------------------------------------------------------------------------------

    def costs(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
        """What each disparity of each pixel costs by itself, ``float64[rows, columns, max_disparity + 1]``.

        A disparity whose match would lie outside the right view costs ``data_truncation``; where that is infinite, the
        mean of all costs.
        """
        self._check()
        one, two = _views(left, right)
        rows, columns = one.shape[:2]
        if self.max_disparity >= columns:
            raise ModelError(f"max_disparity {self.max_disparity} needs views of more columns than that, got {columns}")
        volume = np.empty((rows, columns, self.max_disparity + 1))
        ranges = (_half_pixels(one), _half_pixels(two)) if self.data == "birchfield_tomasi" else None
        for d in range(self.max_disparity + 1):
            a, b = one[:, d:], two[:, : columns - d]
            if ranges is not None:
                near_a, near_b = ranges[0][:, :, d:], ranges[1][:, :, : columns - d]
                apart = np.minimum(_outside(a, near_b), _outside(b, near_a)) / self.noise
            elif self.data == "absolute":
                apart = np.abs(a - b) / self.noise
            else:
                apart = (a - b) ** 2 / (2 * self.noise**2)
            volume[:, d:, d] = _window_means(np.minimum(apart.mean(axis=2), self.data_truncation), self.window)
        outside = np.arange(columns)[:, None] < np.arange(self.max_disparity + 1)
        missing = self.data_truncation if np.isfinite(self.data_truncation) else float(volume[:, ~outside].mean())
        volume[:, outside] = missing
        return volume

    def to_factor_graph(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FactorGraph:
        """The posterior of the disparities: pairs of neighbours share tables, each pixel has its costs."""
        costs = self.costs(left, right)
        rows, columns, n_states = costs.shape
        sites = sites_of((rows, columns), False, "StereoMatching")
        cells = self._distances(n_states)
        as_distance = n_states > MOST_STATES
        if not as_distance:
            states = np.arange(n_states)
            apart = np.minimum(np.abs(states[:, None] - states), len(cells) - 1)
            cells = cells[apart].ravel()
        weights, which = self._weights(left, sites)
        unary = (-costs.reshape(-1, n_states), np.arange(rows * columns))
        pairs = (0.0 - weights[:, None] * cells, which)
        return pair_graph(sites, n_states, Names(sites.variables), pairs, unary, distance=as_distance)

    def _distances(self, n_states: int) -> FloatArray:
        """The cost of each difference of disparities, up to the first from which on it stays the same."""
        apart = np.arange(max(n_states, 2), dtype=np.float64)
        power = 1 if self.smoothness == "truncated_linear" else 2
        most = {"gaussian": np.inf, "potts": 1.0}.get(self.smoothness, self.truncation)
        first = int(np.argmax(apart >= most)) or len(apart) - 1
        return np.asarray(np.minimum(apart, most)[: first + 1] ** power)

    def _weights(self, left: npt.ArrayLike, sites: Sites) -> tuple[FloatArray, IntArray]:
        """The distinct weights, and which of them each edge has."""
        edges = sites.edges
        if self.contrast == 0 or not len(edges):
            return np.array([float(self.weight)]), np.zeros(len(edges), np.int64)
        colours = _numbers(left).reshape(sites.n, -1)
        squared = ((colours[edges[:, 0]] - colours[edges[:, 1]]) ** 2).sum(axis=1)
        mean = float(squared.mean())
        share = np.exp(-self.contrast * squared / (2 * mean)) if mean > 0 else np.ones(len(edges))
        steps, which = np.unique(np.rint(STEPS * share), return_inverse=True)
        return self.weight * steps / STEPS, which.reshape(-1).astype(np.int64)

    # ---- answers --------------------------------------------------------------------------------------------

    def decode(
        self, left: npt.ArrayLike, right: npt.ArrayLike, method: MethodLike = "auto", **settings: Any
    ) -> Decoding:
        """The likeliest disparities as a whole, with their score, its gap to a bound, and whether that has converged.

        ``method`` and settings are those of `markovfield.decode`; ``states.reshape(left.shape[:2])`` is the picture.
        """
        return decode(self.to_factor_graph(left, right), method=method, **settings)

    @shows_progress
    def predict(
        self,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        method: MethodLike = "auto",
        *,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
        **settings: Any,
    ) -> IntArray:
        """The likeliest disparities as a whole, ``int64[rows, columns]``; ``method`` and settings as for `decode`.

        Issues a ``ConvergenceWarning`` where the method was stopped far from its bound, or without any.
        """
        settings |= {"time_limit": time_limit, "callback": callback}
        return labels_of(lambda: self.decode(left, right, method, **settings), np.shape(left)[:2])

    @shows_progress
    def predict_marginals(
        self,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        method: MethodLike = "auto",
        *,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
        **settings: Any,
    ) -> FloatArray:
        """Probability of each disparity at each pixel, ``float64[rows, columns, max_disparity + 1]``.

        Times the disparities and summed, these are means between whole ones.
        """
        graph = self.to_factor_graph(left, right)
        found = marginals(graph, method=method, time_limit=time_limit, callback=callback, **settings)
        return found.values.reshape(*np.shape(left)[:2], -1)

    def _check(self) -> None:
        whole = isinstance(self.max_disparity, (int, np.integer)) and not isinstance(self.max_disparity, bool)
        odd = isinstance(self.window, (int, np.integer)) and self.window >= 1 and self.window % 2 == 1
        rules = [
            ("max_disparity", whole and self.max_disparity >= 1, "an integer of at least 1"),
            ("smoothness", self.smoothness in SMOOTHNESS, f"one of {', '.join(map(repr, SMOOTHNESS))}"),
            ("weight", 0 <= self.weight < np.inf, "a number of at least zero"),
            ("truncation", self.truncation > 0, "above zero"),
            ("data", self.data in DATA, f"one of {', '.join(map(repr, DATA))}"),
            ("noise", 0 < self.noise < np.inf, "a number above zero"),
            ("data_truncation", self.data_truncation > 0, "above zero"),
            ("window", odd, "an odd number of at least 1"),
            ("contrast", 0 <= self.contrast < np.inf, "a number of at least zero"),
        ]
        for name, fits, rule in rules:
            if not fits:
                raise ModelError(f"StereoMatching({name}=...) must be {rule}, got {getattr(self, name)!r}")


def disparity_error(
    found: npt.ArrayLike, truth: npt.ArrayLike, *, scale: float | None = None, threshold: float = 1.0
) -> float:
    """The share of pixels whose disparity is off by more than ``threshold``, among those whose truth is known.

    Parameters
    ----------
    found
        Disparities, ``[rows, columns]``.
    truth
        Disparities, nan where they are not known; with ``scale``, an image of grey values that are disparities times
        ``scale``, 0 where they are not known (the way of the Middlebury pairs; Scharstein and Szeliski 2002).

    Examples
    --------
    >>> disparity_error([[3, 5, 0]], [[3.5, 7.25, float("nan")]])
    0.5
    >>> disparity_error([[3, 5, 0]], [[56, 116, 0]], scale=16)
    0.5
    """
    mine, right = np.asarray(found, np.float64), np.asarray(truth, np.float64)
    if mine.shape != right.shape:
        raise ModelError(f"found and true disparities need one shape, got {mine.shape} and {right.shape}")
    if scale is not None:
        if not 0 < scale < np.inf:
            raise ModelError(f"disparity_error(scale=...) must be a number above zero, got {scale!r}")
        right = np.where(right > 0, right / scale, np.nan)
    known = np.isfinite(right)
    if not known.any():
        raise ModelError("no pixel's true disparity is known")
    return float((np.abs(mine - right)[known] > threshold).mean())


# ---- views -------------------------------------------------------------------------------------------------


def _numbers(view: npt.ArrayLike) -> FloatArray:
    """A view as numbers; whole ones are bytes."""
    array = np.asarray(view)
    if array.ndim not in (2, 3) or not array.size:
        raise ModelError(f"a view is [rows, columns] or [rows, columns, channels], got shape {array.shape}")
    values = np.asarray(array, np.float64)
    if not np.isfinite(values).all():
        raise ModelError("a view needs finite numbers, from 0 to 1, or bytes")
    if np.issubdtype(array.dtype, np.integer):
        values = values / 255.0
    return values


def _views(left: npt.ArrayLike, right: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both views as ``float64[rows, columns, channels]``."""
    one, two = _numbers(left), _numbers(right)
    if one.shape != two.shape:
        raise ModelError(f"both views need one shape, got {one.shape} on the left and {two.shape} on the right")
    shape = (*one.shape[:2], -1)
    return one.reshape(shape), two.reshape(shape)


def _half_pixels(view: FloatArray) -> FloatArray:
    """The least and most that a view takes from half a pixel to the left to half a pixel to the right, ``[2, ...]``."""
    before = (view + np.concatenate([view[:, :1], view[:, :-1]], axis=1)) / 2
    after = (view + np.concatenate([view[:, 1:], view[:, -1:]], axis=1)) / 2
    near = np.stack([before, view, after])
    return np.stack([near.min(axis=0), near.max(axis=0)])


def _outside(value: FloatArray, near: FloatArray) -> FloatArray:
    """How far a value is from a range, its least and its most."""
    return np.maximum(0.0, np.maximum(value - near[1], near[0] - value))


def _window_means(values: FloatArray, window: int) -> FloatArray:
    """Means over a square around each entry, of those within the array."""
    if window == 1:
        return values
    half = window // 2
    out = values
    for axis in (0, 1):
        length = values.shape[axis]
        sums = np.cumsum(out, axis=axis)
        sums = np.concatenate([np.zeros_like(np.take(sums, [0], axis)), sums], axis=axis)
        at = np.arange(length)
        low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, length)
        count = (high - low).reshape((-1, 1) if axis == 0 else (1, -1))
        out = (np.take(sums, high, axis) - np.take(sums, low, axis)) / count
    return out
