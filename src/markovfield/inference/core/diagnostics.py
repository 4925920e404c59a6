"""How far averages over samples can be trusted: effective sample sizes, split R-hat, standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen, short_repr
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import Running

if TYPE_CHECKING:
    from markovfield.inference.core.answers import Samples

__all__ = [
    "MonteCarlo",
    "autocorrelation_time",
    "diagnose",
    "effective_sample_size",
    "error_floor",
    "own_draws",
    "split_r_hat",
    "standard_error",
]

# Below this many steps a chain has no halves with a variance.
LEAST_STEPS = 4
# Entries of samples that one task looks at.
GRAIN = 2**20
# A state that never came up in n draws has a probability below 3 / n (with 95 %): the rule of three. An error of as
# much keeps six standard errors honest for rare states, which a few draws more or less say little of.
UNSEEN = 3.0
# Times that a state came up, and did not, from which its own series says what it is worth.
OFTEN = 9.0


@dataclass(frozen=True, eq=False, repr=False)
class MonteCarlo(Frozen, Tabular):
    """What the samples behind an estimate say of its error; arrays over all variables' states, one after the other.

    Attributes
    ----------
    standard_errors
        Of the estimated probability of each state.
    effective_sample_sizes
        How many independent samples would estimate it as well.
    r_hats
        Split R-hat: near one where the Markov chains agree with each other and with themselves; nan where it cannot be
        said.
    n_samples, n_chains
        Samples behind the estimate, over all chains.
    doubts
        Why the answer says that it has not converged, in sentences; empty where nothing was found to be wrong.
    """

    standard_errors: FloatArray
    effective_sample_sizes: FloatArray
    r_hats: FloatArray
    n_samples: int
    n_chains: int
    doubts: tuple[str, ...] = ()

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {
            "standard_error": self.standard_errors[:limit],
            "effective_sample_size": self.effective_sample_sizes[:limit],
            "r_hat": self.r_hats[:limit],
        }

    __repr__ = short_repr


def _chains(x: npt.ArrayLike) -> FloatArray:
    """Series as ``float64[chains, steps]``."""
    series = np.asarray(x, np.float64)
    if series.ndim == 1:
        series = series[None, :]
    if series.ndim != 2 or series.shape[0] < 1 or series.shape[1] < LEAST_STEPS:
        raise ModelError(
            f"a series needs the shape [chains, steps] with at least {LEAST_STEPS} steps, got {np.shape(x)}: draw more"
        )
    if not np.isfinite(series).all():
        raise ModelError("a series must be of finite numbers, got an infinite one or nan")
    return series


def summarise(x: FloatArray) -> FloatArray:
    """``float64[series, 3]`` from ``[chains, steps, series]``: effective size, split R-hat, squared error."""
    from markovfield.inference.core.autocovariance_kernel import summarise_series

    out = np.empty((x.shape[2], 3))
    summarise_series(np.ascontiguousarray(x), out)
    return out


def error_floor(draws: float | FloatArray) -> Any:
    """What the standard error of a frequency in so many effective draws is at least: three draws' worth.

    Were it zero for a state that never came up, or always did, it would claim that nothing else can. Of few draws it is
    that of a fair coin, which is the most there is.

    Examples
    --------
    >>> float(error_floor(1000.0)), float(error_floor(4.0))
    (0.003, 0.25)
    """
    draws = np.maximum(1.0, draws)
    return np.minimum(UNSEEN / draws, 0.5 / np.sqrt(draws))


def effective_sample_size(x: npt.ArrayLike) -> float:
    """How many independent draws would estimate the mean of a series as well.

    Autocovariances of the halves of Markov chains are averaged and summed up to where Geyer's initial monotone sequence
    ends (Vehtari and others 2021). Time is linear in the steps for each lag summed. A constant series has as many as
    steps.

    Parameters
    ----------
    x
        ``float[chains, steps]``, or ``float[steps]`` for one chain; at least four steps.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 3000 < effective_sample_size(x) < 5000
    True
    >>> effective_sample_size(np.repeat(x, 10, axis=1)) < 5000
    True
    """
    return float(summarise(_chains(x)[:, :, None])[0, 0])


def split_r_hat(x: npt.ArrayLike) -> float:
    """Split R-hat: the pooled standard deviation over that within halves of Markov chains; near one where they agree.

    nan for a constant series, inf where every half is constant and they differ.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(split_r_hat(x), 1), split_r_hat(x + np.arange(4)[:, None]) > 1.4
    (1.0, True)
    """
    return float(summarise(_chains(x)[:, :, None])[0, 1])


def standard_error(x: npt.ArrayLike) -> float:
    """Standard error of the mean of a series, allowing for what each step remembers of the last.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 0.012 < standard_error(x) < 0.02
    True
    """
    return float(np.sqrt(summarise(_chains(x)[:, :, None])[0, 2]))


def autocorrelation_time(x: npt.ArrayLike) -> float:
    """Integrated autocorrelation time: how many steps are worth one independent draw, ``1 + 2 sum of rho(t)``.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 0.8 < autocorrelation_time(x) < 1.25
    True
    """
    series = _chains(x)
    return series.size / effective_sample_size(series)


def diagnose(samples: Samples) -> MonteCarlo:
    """Errors of the frequencies of every variable's states.

    For Markov chains each state's indicator is a series, and the functions above speak of it; rows that make the
    longer chains longer are left out. For independent rows, weighted or not, the error is that of a ratio of averages
    and R-hat is nan. No error is below the `error_floor` of a state's own effective samples where it came up often, and
    of the fewest of any state otherwise. A state that every row has, or none, has as many effective samples as there
    are rows, and R-hat nan; where chains have fewer than four rows, all three are nan. A variable of one state has
    error 0.

    Time is linear in the entries of the samples; each lag summed costs an eighth of a byte an entry.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], [1.0, 1.0])
    >>> found = diagnose(mf.sample(net, 400, rng=0))
    >>> found.effective_sample_sizes.round(6).tolist(), found.standard_errors.round(3).tolist()
    ([400.0, 400.0], [0.025, 0.025])
    """
    s = samples.graph.structure
    n_values = int(s.value_offsets[-1])
    out = np.full((n_values, 3), np.nan)
    size, chains = len(samples), samples.n_chains
    if size and (chains == 0 or samples.log_weights is not None):
        out[:, 0], out[:, 2] = _of_independent(samples)
    elif size and size // chains >= LEAST_STEPS:
        _of_chains(samples, out)
    elif not size:
        out[:, 0] = 0.0
    sizes, r_hats = out[:, 0].copy(), out[:, 1].copy()
    if size:
        values = _frequencies(samples)
        draws = own_draws(values, sizes, _draws(samples, sizes, out[:, 2]), float(size))
        least = np.where(np.repeat(s.cardinalities > 1, s.cardinalities), error_floor(draws), 0.0)
        out[:, 2] = np.maximum(out[:, 2], least**2)
    errors = np.sqrt(out[:, 2])
    for array in (errors, sizes, r_hats):
        array.flags.writeable = False
    return MonteCarlo(errors, sizes, r_hats, size, chains, samples._cache.get("doubts", ()))


def _frequencies(samples: Samples) -> FloatArray:
    """Weighted frequencies of all states."""
    s, weights = samples.graph.structure, samples.weights
    parts = [np.bincount(samples.states[:, v], weights, card) for v, card in enumerate(s.cardinalities.tolist())]
    return np.concatenate([np.zeros(0), *parts])


def own_draws(values: FloatArray, sizes: FloatArray, least: float, count: float) -> FloatArray:
    """The effective draws that an `error_floor` is taken of: a state's own, or, where it came up seldom, the least.

    Of a state that came up seldom, or seldom did not, its own series says little.
    """
    often = values * (1.0 - values) * least >= OFTEN
    return np.asarray(np.where(often, np.minimum(sizes, count), least))


def _draws(samples: Samples, sizes: FloatArray, variance: FloatArray) -> float:
    """Independent draws that samples are worth: by their weights, or by the state that Markov chains estimate worst."""
    if not samples.n_chains or samples.log_weights is not None:
        return 1.0 / float(np.square(samples.weights).sum())
    return float(np.min(sizes[variance > 0.0], initial=float(len(samples))))


def _blocks(samples: Samples) -> list[tuple[int, int]]:
    """Ranges of variables, cut where no thread count matters."""
    n = samples.graph.n_variables
    step = max(1, GRAIN // max(1, len(samples)))
    return [(first, min(first + step, n)) for first in range(0, n, step)]


def _of_chains(samples: Samples, out: FloatArray) -> None:
    from markovfield.inference.core.autocovariance_kernel import summarise_indicators

    s = samples.graph.structure
    lengths = np.array([len(rows) for rows in samples.chains])
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    steps = int(lengths.min())
    half = steps // 2
    starts = np.stack([begins, begins + steps - half], axis=1).ravel().astype(np.int64)
    offsets = s.value_offsets

    def task(first: int, last: int) -> int:
        columns = np.ascontiguousarray(samples.states[:, first:last].T)
        cards = s.cardinalities[first:last]
        summarise_indicators(columns, starts, half, cards, float(len(samples)), out[offsets[first] : offsets[last]])
        return 0

    Running().side_by_side([partial(task, *block) for block in _blocks(samples)])


def _of_independent(samples: Samples) -> tuple[Any, Any]:
    """Effective sizes and squared errors of weighted frequencies."""
    s = samples.graph.structure
    weights = samples.weights
    squared = np.square(weights)
    total = float(squared.sum())
    probability, squares = np.zeros((2, int(s.value_offsets[-1])))
    for v, at in enumerate(s.value_offsets[:-1].tolist()):
        card, column = int(s.cardinalities[v]), samples.states[:, v]
        probability[at : at + card] = np.bincount(column, weights, card)
        squares[at : at + card] = np.bincount(column, squared, card)
    # The sum over samples of (weight * (indicator - probability))^2, state by state.
    variance = np.maximum(squares * (1 - probability) ** 2 + (total - squares) * probability**2, 0.0)
    sure = (squares <= 0.0) | (squares >= total * (1 - 1e-12))
    variance[sure] = 0.0
    sizes = np.full(len(probability), 1.0 / total)
    sizes[~sure] = probability[~sure] * (1 - probability[~sure]) / variance[~sure]
    return sizes, variance
