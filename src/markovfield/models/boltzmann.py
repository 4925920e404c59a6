"""Boltzmann machines: visible and hidden units of 0 and 1 (Murphy 19.4.2)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Drawn
from markovfield.models._pairwise_log_linear import Tied, pairwise_log_linear, split_parameters
from markovfield.models._parameters import Parameter
from markovfield.models._sites import Sites, sigmoid, softplus_sum
from markovfield.models.log_linear import LogLinear
from markovfield.names import Names

__all__ = ["BoltzmannMachine", "RestrictedBoltzmannMachine", "Statistics"]

Bits = npt.NDArray[np.int8]
# 2^this many states of the smaller layer are summed at most, 2^CHUNK at a time.
MOST_SUMMED, CHUNK = 24, 12


def _bits(states: npt.ArrayLike, n: int, what: str) -> FloatArray:
    """Neurons of 0 and 1 as float64, the last axis theirs."""
    array = np.asarray(states)
    if array.shape[-1:] != (n,):
        raise ModelError(f"{what} needs a last axis of {n} units, got shape {array.shape}")
    strange = (array != 0) & (array != 1)
    if strange.any():
        raise ModelError(f"{what} needs units of 0 and 1, got {array[strange].flat[0]}")
    return array.astype(np.float64)


def _unit_names(n_visible: int, n_hidden: int) -> Names:
    return Names([f"v{i}" for i in range(n_visible)] + [f"h{j}" for j in range(n_hidden)])


def _tied(weights: FloatArray, biases: FloatArray) -> tuple[Tied, Tied]:
    """A parameter for every weight and bias."""
    pairs = Tied(weights.reshape(-1, 1), np.arange(weights.size), np.array([[0.0], [0.0], [0.0], [1.0]]))
    return pairs, Tied(biases[:, None], np.arange(len(biases)), np.array([[0.0], [1.0]]))


class BoltzmannMachine(Drawn):
    """Neurons of 0 and 1, all joined to all, some of them visible and some hidden.

        log p(y) = 1/2 y'Wy + b'y - log Z,     p(y_s = 1 | rest) = sigm((W y + b)_s)      (Murphy 19.21)

    A state y has the visible units first, then the hidden ones; they are named v0, v1, ..., h0, h1, ... The model has
    n (n - 1) / 2 factors: exact inference is for small ones, sampling for others. Setting `weights` or `biases` anew is
    seen by the next `compile`.

    Parameters
    ----------
    n_visible, n_hidden
        Numbers of units.
    weights
        ``[n, n]``, symmetric with zeros on the diagonal; all zero when None.
    biases
        ``[n]``; all zero when None.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.models.boltzmann import BoltzmannMachine
    >>> machine = BoltzmannMachine(2, 1, weights=[[0, 0, 2], [0, 0, 2], [2, 2, 0]], biases=[0, 0, -2])
    >>> mf.marginals(machine, {"v0": 1})["v1"].round(4).tolist()
    [0.1925, 0.8075]
    >>> machine.full_conditional([1, 0, 1]).round(3).tolist()
    [0.881, 0.881, 0.5]
    """

    weights = Parameter("n_units", "n_units", symmetric=True)
    biases = Parameter("n_units")
    fit_report: Any = None

    def __init__(self, n_visible: int, n_hidden: int = 0, weights: Any = None, biases: Any = None) -> None:
        self.n_visible = whole_number(n_visible, "BoltzmannMachine(n_visible=...)", 1)
        self.n_hidden = whole_number(n_hidden, "BoltzmannMachine(n_hidden=...)", 0)
        self.weights, self.biases = weights, biases

    def __repr__(self) -> str:
        return f"BoltzmannMachine({self.n_visible} visible, {self.n_hidden} hidden units)"

    def _current_names(self) -> Names:
        return _unit_names(self.n_visible, self.n_hidden)

    def _count_states(self, position: int) -> int:
        return 2

    @property
    def n_units(self) -> int:
        """Visible and hidden units together."""
        return self.n_visible + self.n_hidden

    def energy(self, states: npt.ArrayLike) -> Any:
        """-1/2 y'Wy - b'y of each state ``[..., n]``."""
        y = _bits(states, self.n_units, "energy(states)")
        return (-0.5 * ((y @ self.weights) * y).sum(axis=-1) - y @ self.biases)[()]

    def full_conditional(self, states: npt.ArrayLike) -> FloatArray:
        """For each neuron, p(y_s = 1 | all others), in the shape of ``states``."""
        return sigmoid(_bits(states, self.n_units, "full_conditional(states)") @ self.weights + self.biases)

    def compile(self) -> FactorGraph:
        """A `FactorGraph` with a factor for each pair of neurons, then a unary one for each."""
        return self.log_linear().compile()

    def _sites(self) -> Sites:
        return Sites(
            self._current_names().variables,
            None,
            (),
            np.stack(np.triu_indices(self.n_units, 1), axis=1).astype(np.int64),
        )

    def log_linear(self) -> LogLinear:
        """The log-linear form: a parameter for every weight above the diagonal, row by row, then for every bias."""
        sites, upper = self._sites(), np.triu_indices(self.n_units, 1)
        return pairwise_log_linear(sites, 2, sites.names, *_tied(self.weights[upper], self.biases))

    def with_parameters(self, parameters: npt.ArrayLike) -> BoltzmannMachine:
        """The same machine with other weights and biases, those of `log_linear`."""
        upper = np.triu_indices(self.n_units, 1)
        given, biases = split_parameters(parameters, *_tied(self.weights[upper], self.biases))
        weights = np.zeros((self.n_units, self.n_units))
        weights[upper] = given.ravel()
        return BoltzmannMachine(self.n_visible, self.n_hidden, weights + weights.T, biases.ravel())


class Statistics(NamedTuple):
    """Means over rows of what a restricted Boltzmann machine's parameters multiply.

    Attributes
    ----------
    weights
        ``float64[n_visible, n_hidden]``: v_i p(h_j = 1 | v).
    visible, hidden
        ``float64[n_visible]`` and ``float64[n_hidden]``: v_i and p(h_j = 1 | v).
    """

    weights: FloatArray
    visible: FloatArray
    hidden: FloatArray


class RestrictedBoltzmannMachine(Drawn):
    """Visible and hidden units of 0 and 1, each joined only to units of the other layer.

        log p(v, h) = v'Wh + a'v + c'h - log Z

    Given one layer, the units of the other are independent: sampling alternates between whole layers, and the hidden
    one is summed out in closed form, which gives the `free_energy` of a visible state. Arrays may have any axes before
    that of the units.

    Parameters
    ----------
    n_visible, n_hidden
        Numbers of units.
    weights, visible_biases, hidden_biases
        W ``[n_visible, n_hidden]``, a ``[n_visible]``, c ``[n_hidden]``; all zero when None.

    Attributes
    ----------
    fit_report
        Of a machine that was fitted, how it was; None otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.models.boltzmann import RestrictedBoltzmannMachine
    >>> weights = np.random.default_rng(0).normal(size=(6, 3))
    >>> machine = RestrictedBoltzmannMachine(6, 3, weights)
    >>> visible, hidden = machine.gibbs(np.zeros((4, 6)), steps=10, rng=0)
    >>> visible.shape, hidden.shape
    ((4, 6), (4, 3))
    >>> round(float(machine.log_likelihood([1, 0, 0, 1, 1, 0])), 4)
    -5.1243
    """

    weights = Parameter("n_visible", "n_hidden")
    visible_biases = Parameter("n_visible")
    hidden_biases = Parameter("n_hidden")
    fit_report: Any = None

    def __init__(
        self,
        n_visible: int,
        n_hidden: int,
        weights: Any = None,
        visible_biases: Any = None,
        hidden_biases: Any = None,
    ) -> None:
        name = "RestrictedBoltzmannMachine"
        self.n_visible = whole_number(n_visible, f"{name}(n_visible=...)", 1)
        self.n_hidden = whole_number(n_hidden, f"{name}(n_hidden=...)", 1)
        self.weights, self.visible_biases, self.hidden_biases = weights, visible_biases, hidden_biases

    def __repr__(self) -> str:
        return f"RestrictedBoltzmannMachine({self.n_visible} visible, {self.n_hidden} hidden units)"

    def _current_names(self) -> Names:
        return _unit_names(self.n_visible, self.n_hidden)

    def _count_states(self, position: int) -> int:
        return 2

    # ---- one layer given the other --------------------------------------------------------------------------

    def hidden_probabilities(self, visible: npt.ArrayLike) -> FloatArray:
        """p(h_j = 1 | v), ``float64[..., n_hidden]``."""
        v = _bits(visible, self.n_visible, "hidden_probabilities(visible)")
        return sigmoid(v @ self.weights + self.hidden_biases)

    def visible_probabilities(self, hidden: npt.ArrayLike) -> FloatArray:
        """p(v_i = 1 | h), ``float64[..., n_visible]``."""
        h = _bits(hidden, self.n_hidden, "visible_probabilities(hidden)")
        return sigmoid(h @ self.weights.T + self.visible_biases)

    def sample_hidden(self, visible: npt.ArrayLike, *, rng: int | np.random.Generator | None = None) -> Bits:
        """Hidden units drawn given visible ones, ``int8[..., n_hidden]``."""
        p = self.hidden_probabilities(visible)
        return (generator_of(rng).random(p.shape) < p).astype(np.int8)

    def sample_visible(self, hidden: npt.ArrayLike, *, rng: int | np.random.Generator | None = None) -> Bits:
        """Visible units drawn given hidden ones, ``int8[..., n_visible]``."""
        p = self.visible_probabilities(hidden)
        return (generator_of(rng).random(p.shape) < p).astype(np.int8)

    def gibbs(
        self, visible: npt.ArrayLike, steps: int = 1, *, rng: int | np.random.Generator | None = None
    ) -> tuple[Bits, Bits]:
        """Go on from visible states by so many steps of block Gibbs: hidden given visible, visible given hidden.

        Returns the last visible states and hidden states drawn given them. All rows move at once, each a Markov
        chain; a step costs two products of matrices.
        """
        steps = whole_number(steps, "gibbs(steps=...)", 0)
        generator = generator_of(rng)
        v = _bits(visible, self.n_visible, "gibbs(visible)").astype(np.int8)
        h = self.sample_hidden(v, rng=generator)
        for _ in range(steps):
            v = self.sample_visible(h, rng=generator)
            h = self.sample_hidden(v, rng=generator)
        return v, h

    # ---- energies -------------------------------------------------------------------------------------------

    def energy(self, visible: npt.ArrayLike, hidden: npt.ArrayLike) -> Any:
        """-(v'Wh + a'v + c'h)."""
        v = _bits(visible, self.n_visible, "energy(visible, ...)")
        h = _bits(hidden, self.n_hidden, "energy(..., hidden)")
        return -(((v @ self.weights) * h).sum(axis=-1) + v @ self.visible_biases + h @ self.hidden_biases)[()]

    def free_energy(self, visible: npt.ArrayLike) -> Any:
        """-log of the sum over hidden states of exp(-energy): -a'v - sum over j of log(1 + exp(c_j + (v'W)_j))."""
        v = _bits(visible, self.n_visible, "free_energy(visible)")
        return -(v @ self.visible_biases + softplus_sum(v @ self.weights + self.hidden_biases))[()]

    def log_partition_exact(self) -> float:
        """log Z by summing over all states of the smaller layer, the other summed in closed form.

        Takes 2^k terms for a layer of k units; refused above 24 units.
        """
        k = min(self.n_visible, self.n_hidden)
        if k > MOST_SUMMED:
            raise ModelError(
                f"log_partition_exact sums the 2^{k} states of the smaller layer, and stops at {MOST_SUMMED} units; "
                "estimate log Z by annealed importance sampling"
            )
        weights, own, other = self.weights, self.visible_biases, self.hidden_biases
        if self.n_hidden < self.n_visible:
            weights, own, other = weights.T, other, own
        low = min(k, CHUNK)
        first = (np.arange(2**low)[:, None] >> np.arange(low)) & 1
        sums = first @ weights[:low] + other
        scores = first @ own[:low]
        parts = []
        for rest in range(2 ** (k - low)):
            bits = (rest >> np.arange(k - low)) & 1
            inner = softplus_sum(sums + bits @ weights[low:]) + scores + bits @ own[low:]
            top = inner.max()
            parts.append(top + math.log(np.exp(inner - top).sum()))
        return float(np.logaddexp.reduce(parts))

    def log_likelihood(self, visible: npt.ArrayLike) -> Any:
        """Log-probability of visible states, with the exact log Z: for small machines."""
        return -self.free_energy(visible) - self.log_partition_exact()

    def statistics(self, visible: npt.ArrayLike) -> Statistics:
        """Means over rows of the expected sufficient statistics given the visible units.

        Their mean over data less that over the model is the gradient of the mean log-likelihood.
        """
        v = _bits(visible, self.n_visible, "statistics(visible)").reshape(-1, self.n_visible)
        if not len(v):
            raise ModelError("statistics(visible) needs at least one row")
        h = self.hidden_probabilities(v)
        return Statistics(v.T @ h / len(v), v.mean(axis=0), h.mean(axis=0))

    def compile(self) -> FactorGraph:
        """A `FactorGraph` with a factor for each pair of a visible and a hidden unit, then a unary one for each
        unit.
        """
        return self.log_linear().compile()

    def _biases(self) -> FloatArray:
        return np.concatenate([self.visible_biases, self.hidden_biases])

    def _sites(self) -> Sites:
        v, h = np.divmod(np.arange(self.weights.size, dtype=np.int64), self.n_hidden)
        return Sites(self._current_names().variables, None, (), np.stack([v, self.n_visible + h], axis=1))

    def log_linear(self) -> LogLinear:
        """The log-linear form: a parameter for every weight, row by row, then for every visible and hidden bias."""
        sites = self._sites()
        return pairwise_log_linear(sites, 2, sites.names, *_tied(self.weights, self._biases()))

    def with_parameters(self, parameters: npt.ArrayLike) -> RestrictedBoltzmannMachine:
        """The same machine with other weights and biases, those of `log_linear`."""
        weights, biases = split_parameters(parameters, *_tied(self.weights, self._biases()))
        v, h = self.n_visible, self.n_hidden
        return RestrictedBoltzmannMachine(v, h, weights.reshape(v, h), biases[:v, 0], biases[v:, 0])
