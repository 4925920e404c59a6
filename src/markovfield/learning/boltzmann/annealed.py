"""log Z of a restricted Boltzmann machine: exact, or by annealed importance sampling over the visible layer.

The hidden units are summed out, so that weights scatter less than over both layers, and a move draws a whole layer
(Salakhutdinov and Murray 2008).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.products import product_threads
from markovfield.models._sites import softplus_sum
from markovfield.models.boltzmann import RestrictedBoltzmannMachine

__all__ = ["annealed_log_partition", "log_partition"]

# Layers of at most so many units are summed exactly when nobody says how: a fifth of a second for 64 others.
SUMMED = 18
# Fewer equally good chains than this, and a standard error means nothing.
LEAST_CHAINS = 5.0


def _sigmoid(x: FloatArray) -> FloatArray:
    """Of moderate numbers: clipped where nothing would change."""
    found: FloatArray = 1.0 / (1.0 + np.exp(np.clip(-x, -700.0, 700.0)))
    return found


def annealed_log_partition(
    model: RestrictedBoltzmannMachine,
    *,
    base_rates: npt.ArrayLike | None = None,
    n_chains: int = 100,
    n_temperatures: int = 1000,
    rng: int | np.random.Generator | None = None,
    running: Running | None = None,
) -> LogPartition:
    """Estimate log Z, with its standard error, by annealing from independent visible units to the machine.

    At inverse temperature b a visible state has the log-probability, up to a constant,
    (1 - b) a0'v + b a'v + sum over j of log(1 + exp(b (c_j + (v'W)_j))).

    Parameters
    ----------
    base_rates
        ``[n_visible]``, strictly between 0 and 1: the independent units' probabilities, best the means of the data; one
        half when None.
    n_chains
        Independent Markov chains. The standard error falls with the square root of their number.
    n_temperatures
        Steps of the path; each costs every chain two products with the weights.

    Returns
    -------
    LogPartition
        ``converged`` is False where a few chains carry all the weight: the error cannot be trusted then. The estimate
        of Z is unbiased, so that log Z comes out too low more often than too high, and a likelihood too high.

    Examples
    --------
    >>> import numpy as np
    >>> machine = RestrictedBoltzmannMachine(8, 5, np.random.default_rng(0).normal(size=(8, 5)))
    >>> answer = annealed_log_partition(machine, rng=0)
    >>> bool(abs(float(answer) - machine.log_partition_exact()) < 4 * answer.standard_error)
    True
    """
    n_chains = whole_number(n_chains, "annealed_log_partition(n_chains=...)", 2)
    n_temperatures = whole_number(n_temperatures, "annealed_log_partition(n_temperatures=...)", 1)
    generator, running = generator_of(rng), running or Running()
    rates = np.full(model.n_visible, 0.5) if base_rates is None else np.asarray(base_rates, np.float64)
    if rates.shape != (model.n_visible,) or not ((rates > 0) & (rates < 1)).all():
        raise ModelError(
            f"base_rates must be {model.n_visible} probabilities strictly between 0 and 1, got shape {rates.shape}"
        )
    weights, own, hidden = model.weights, model.visible_biases, model.hidden_biases
    base = np.log(rates) - np.log1p(-rates)
    v = (generator.random((n_chains, model.n_visible)) < rates).astype(np.float64)
    log_weights = np.zeros(n_chains)
    betas = np.linspace(0.0, 1.0, n_temperatures + 1)
    with product_threads(n_chains * weights.size, running):
        for step, (last, beta) in enumerate(pairwise(betas)):
            z = v @ weights + hidden
            log_weights += (beta - last) * (v @ (own - base)) + softplus_sum(beta * z) - softplus_sum(last * z)
            h = (generator.random(z.shape, np.float32) < _sigmoid(beta * z)).astype(np.float64)
            z = base + beta * (h @ weights.T + (own - base))
            v = (generator.random(z.shape, np.float32) < _sigmoid(z)).astype(np.float64)
            if step % 8 == 0:
                running.check()
    top = log_weights.max()
    shares = np.exp(log_weights - top)
    mean = shares.mean()
    start = softplus_sum(base) + model.n_hidden * np.log(2.0)
    return LogPartition(
        log_partition=float(top + np.log(mean) + start),
        standard_error=float(shares.std(ddof=1) / mean / np.sqrt(n_chains)),
        guarantee="approximate",
        method="annealed_importance",
        converged=bool(shares.sum() ** 2 / (shares**2).sum() >= LEAST_CHAINS),
        iterations=n_temperatures,
        seconds=running.seconds,
    )


def log_partition(
    model: RestrictedBoltzmannMachine,
    method: str = "auto",
    *,
    base_rates: npt.ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    running: Running | None = None,
) -> LogPartition:
    """log Z by summing over the smaller layer (``"exact"``), by annealing (``"annealed"``), or as fits (``"auto"``).

    Examples
    --------
    >>> log_partition(RestrictedBoltzmannMachine(3, 2)).guarantee
    'exact'
    """
    if method not in ("auto", "exact", "annealed"):
        raise ModelError(f"the likelihood is had by 'auto', 'exact' or 'annealed', got {method!r}")
    running = running or Running()
    if method == "annealed" or (method == "auto" and min(model.n_visible, model.n_hidden) > SUMMED):
        return annealed_log_partition(model, base_rates=base_rates, rng=rng, running=running)
    return LogPartition(log_partition=model.log_partition_exact(), method="enumeration", seconds=running.seconds)
