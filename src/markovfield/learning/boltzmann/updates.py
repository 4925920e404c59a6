"""Training a restricted Boltzmann machine, on arrays: settings in, parameters out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.kernels.random_lanes import LANES, lanes
from markovfield.learning.boltzmann.divergence_kernel import AVERAGED, UPDATES, Layers, Machine, train_batches
from markovfield.learning.boltzmann.flow import minimise_flow, train_by_flow
from markovfield.learning.boltzmann.products import product_threads

__all__ = ["Run", "Trained", "Training", "train_rbm"]

# A parameter beyond this has frozen its units: weights have blown up, whatever they will be next.
BLOWN_UP = 1e3
# Multiply-adds of products between two looks at the clock: a tenth of a second at the least.
BETWEEN_CHECKS = 2e9


@dataclass(frozen=True)
class Training:
    """Settings of `train_rbm`.

    Parameters
    ----------
    kind
        ``"cd"``: contrastive divergence, whose Markov chains start at the rows of each mini-batch. ``"pcd"``: chains
        that persist, which is stochastic maximum likelihood (algorithm 19.1, ascending on the data's statistics less
        the model's). ``"mpf"``: minimum probability flow over single-bit flips, the hidden units summed out; of rows
        of 0 and 1.
    k
        Steps of block Gibbs sampling for each update.
    learning_rate
        Of an ascent on the mean log-likelihood of a row.
    batch_size
        Rows of a mini-batch. None takes all rows at once; for ``"mpf"`` it is L-BFGS then, for which learning rate,
        momentum, schedule and averaging mean nothing, and epochs are iterations.
    epochs
        How often all rows are gone through.
    momentum
        Share of an update that the next one repeats.
    l2
        Penalty on the weights, not on biases: ``l2 / 2`` times their sum of squares is added to minus the
        log-likelihood of all rows.
    schedule
        ``"constant"``, or ``"robbins_monro"``: in epoch t, learning_rate / (1 + t / tau).
    tau
        Epochs after which the learning rate is halved; None is all of them, so that it ends at half.
    averaging
        Share of the updates, the last ones, whose mean is the answer (Polyak and Ruppert); 0 takes the last parameters.
    n_chains
        Persistent Markov chains; None is as many as a mini-batch has rows.
    dtype
        ``"float32"`` or ``"float64"``, what training computes in; flow is in float64 always.

    Examples
    --------
    >>> Training(kind="cd", momentum=1.0)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: momentum of Training must be below 1, got 1.0
    """

    kind: str = "pcd"
    k: int = 1
    learning_rate: float = 0.1
    batch_size: int | None = 20
    epochs: int = 100
    momentum: float = 0.0
    l2: float = 0.0
    schedule: str = "robbins_monro"
    tau: float | None = None
    averaging: float = 0.5
    n_chains: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"k": 1, "batch_size": 1, "epochs": 1, "momentum": 0, "l2": 0, "averaging": 0, "n_chains": 1},
            above={"learning_rate": 0, "tau": 0},
            below={"learning_rate": np.inf, "momentum": 1, "l2": np.inf, "averaging": 1},
            choices={
                "kind": ("cd", "pcd", "mpf"),
                "schedule": ("constant", "robbins_monro"),
                "dtype": ("float32", "float64"),
            },
        )


@dataclass(frozen=True, eq=False)
class Trained:
    """What training came to.

    Attributes
    ----------
    weights, visible_biases, hidden_biases
        Finite, whatever happened.
    chains
        ``[n_chains, n_hidden]`` of 0 and 1: hidden units of the persistent Markov chains, to go on with.
    epochs, updates
        How many there were.
    converged, message
        Whether it came to its own end, and a sentence about it.
    blown_up
        Whether it ended because parameters left every reasonable range.
    history
        What ``record`` said after each epoch that it was asked for.
    objective, gradient_norm
        Of minimum probability flow over all rows; None otherwise.
    """

    weights: FloatArray
    visible_biases: FloatArray
    hidden_biases: FloatArray
    chains: npt.NDArray[Any]
    epochs: int
    updates: int
    converged: bool
    message: str
    blown_up: bool = False
    history: tuple[float, ...] = ()
    objective: float | None = None
    gradient_norm: float | None = None


def train_rbm(
    weights: npt.ArrayLike,
    visible_biases: npt.ArrayLike,
    hidden_biases: npt.ArrayLike,
    rows: npt.NDArray[Any],
    training: Training,
    *,
    rng: np.random.Generator,
    running: Running,
    row_weights: FloatArray | None = None,
    chains: npt.ArrayLike | None = None,
    record: Callable[[FloatArray, FloatArray, FloatArray], float] | None = None,
    record_every: int = 1,
    shuffle: bool = True,
) -> Trained:
    """Train from the parameters given, which stay as they are.

    Rows may hold probabilities (not for flow): the statistics of the data are then those of the probabilities
    themselves, which ascends on a lower bound of the expected log-likelihood of rows drawn with them, since the free
    energy is concave in the visible units. Time is bound by 3 + 2k products of each mini-batch with the weights, on one
    thread unless they are large (`product_threads`).

    Parameters
    ----------
    weights, visible_biases, hidden_biases
        ``[n_visible, n_hidden]``, ``[n_visible]``, ``[n_hidden]``.
    rows
        ``[n_rows, n_visible]`` of numbers in [0, 1], which are not checked here.
    row_weights
        ``float64[n_rows]``, how often each row counts.
    chains
        Hidden units of persistent chains from an earlier run; zeros when None.
    record
        Asked for a number after every ``record_every`` epochs, given weights and biases: a history.
    shuffle
        Whether every epoch has an order of its own.

    Examples
    --------
    >>> rows = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 50, axis=0)
    >>> start = np.random.default_rng(0).normal(0, 0.1, (4, 2)), np.zeros(4), np.zeros(2)
    >>> trained = train_rbm(*start, rows, Training(epochs=50), rng=np.random.default_rng(1), running=Running())
    >>> trained.weights.shape, trained.epochs, trained.updates
    ((4, 2), 50, 250)
    """
    run = Run(weights, visible_biases, hidden_biases, rows, training, row_weights, rng, running, record, record_every)
    if training.kind == "mpf" and training.batch_size is None:
        found = minimise_flow(run.machine.parameters, rows, run.row_weights, training.l2, training.epochs, running)
        run.machine.parameters[...] = found.weights.reshape(run.machine.parameters.shape)
        run.epochs = found.iterations
        run.updates = float(found.iterations)
        return run.result(found.converged, found.message, found.value, found.gradient_norm)
    if training.kind == "mpf":
        run.start_flow()
    else:
        run.start_chains(chains)
    return run.go(shuffle)


class Run:
    """Buffers of one training, and the loop over epochs."""

    def __init__(
        self,
        weights: npt.ArrayLike,
        visible_biases: npt.ArrayLike,
        hidden_biases: npt.ArrayLike,
        rows: npt.NDArray[Any],
        training: Training,
        row_weights: FloatArray | None,
        rng: np.random.Generator,
        running: Running,
        record: Callable[[FloatArray, FloatArray, FloatArray], float] | None,
        record_every: int,
    ) -> None:
        self.training, self.rng, self.running = training, rng, running
        self.record, self.record_every = record, record_every
        self.dtype = np.dtype("float64" if training.kind == "mpf" else training.dtype)
        self.rows = np.ascontiguousarray(rows, self.dtype)
        n = len(self.rows)
        self.row_weights = np.ones(n) if row_weights is None else np.asarray(row_weights, np.float64)
        w = np.asarray(weights, self.dtype)
        n_visible, n_hidden = w.shape
        parameters = np.zeros((n_visible + 1, n_hidden + 1), self.dtype)
        parameters[:-1, :-1], parameters[:-1, -1], parameters[-1, :-1] = w, visible_biases, hidden_biases
        self.machine = Machine(parameters, *(np.zeros_like(parameters) for _ in range(3)))
        self.batch = min(training.batch_size or n, n)
        per_epoch = -(-n // self.batch)
        total = per_epoch * training.epochs
        tau = per_epoch * (training.epochs if training.tau is None else training.tau)
        slowing = 0.0 if training.schedule == "constant" else 1.0 / tau
        begin = np.inf if training.averaging == 0 else np.floor((1 - training.averaging) * total)
        # The mean log-likelihood has the penalty over the number of rows, as their weights count them.
        decay = training.l2 / self.row_weights.sum()
        self.steering = np.array([training.learning_rate, slowing, training.momentum, decay, 0.0, begin, 0.0])
        self.scaled_weights = self.row_weights * (n / self.row_weights.sum())
        self.chains = np.zeros((0, n_hidden), self.dtype)
        self.epochs, self.updates = 0, 0.0
        self.history: list[float] = []
        self.value: float | None = None

    def start_flow(self) -> None:
        """Mini-batches of minimum probability flow."""
        n_visible, n_hidden = (size - 1 for size in self.machine.parameters.shape)
        self.work = n_visible * n_visible * n_hidden
        scalars = np.zeros(3)

        def step(order: npt.NDArray[Any]) -> None:
            train_by_flow(self.rows, self.scaled_weights, order, self.batch, self.machine, self.steering, scalars)

        self.step = step

    def start_chains(self, chains: npt.ArrayLike | None) -> None:
        """Mini-batches of contrastive divergence, with persistent chains or without."""
        training, (height, width), batch = self.training, self.machine.parameters.shape, self.batch
        persistent = training.kind == "pcd"
        m = (training.n_chains or batch) if persistent else batch
        state = np.ones((m, width), self.dtype)
        state[:, :-1] = 0 if chains is None else _fitting(chains, m, width - 1)
        units = m * max(height, width)
        layers = Layers(
            visible=np.zeros((m + batch, height), self.dtype),
            hidden=np.zeros((m + batch, width), self.dtype),
            chains=state,
            uniforms=np.zeros(units, self.dtype),
            words=np.zeros(-(-units // (2 * LANES)) * LANES, np.uint64),
            state=lanes(self.rng),
        )
        # Probabilities are compared with whole random numbers: 24 bits, exact in float32, or 31.
        shift = 8 if self.dtype == np.float32 else 1
        scalars = np.array([0, 0, 0, 2.0 ** (32 - shift)], self.dtype)
        self.work = height * width * (2 + 3 * training.k)
        self.chains = state[:, :-1]

        def step(order: npt.NDArray[Any]) -> None:
            train_batches(
                self.rows, self.scaled_weights, order, batch, self.machine, layers, self.steering, scalars,
                training.k, persistent, np.uint32(shift),
            )  # fmt: skip

        self.step = step

    def go(self, shuffle: bool) -> Trained:
        """All epochs, until the clock or somebody says stop, or weights blow up."""
        training, n = self.training, len(self.rows)
        part = max(1, int(BETWEEN_CHECKS / (self.work * self.batch))) * self.batch
        kept = [a.copy() for a in (self.machine.parameters, self.machine.average, self.steering)]
        converged, message, blown_up = True, "", False
        try:
            with product_threads(self.batch * self.machine.parameters.size, self.running):
                for epoch in range(training.epochs):
                    order = self.rng.permutation(n) if shuffle else np.arange(n)
                    for first in range(0, n, part):
                        self.step(order[first : first + part])
                        if not self._sound():
                            raise _BlownUpError
                        for old, new in zip(kept, (*self.machine[:3:2], self.steering), strict=True):
                            old[...] = new
                        self.running.check(self.value)
                    self.epochs = epoch + 1
                    if self.record is not None and self.epochs % self.record_every == 0:
                        self.value = self.record(*self._parts())
                        self.history.append(self.value)
        except _BlownUpError:
            self.machine.parameters[...], self.machine.average[...], self.steering[...] = kept
            converged, blown_up = False, True
            message = (
                f"a parameter passed {BLOWN_UP:g} in epoch {self.epochs + 1}, and training ended with what there was "
                f"before: lower the learning rate ({training.learning_rate:g})"
            )
        except STOPS as stop:
            converged, message = False, str(stop) or "interrupted"
        self.updates = self.steering[UPDATES]
        return self.result(converged, message, blown_up=blown_up)

    def _sound(self) -> bool:
        p = self.machine.parameters
        return bool(p.max() < BLOWN_UP and p.min() > -BLOWN_UP)

    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        chosen = self.machine.average if self.steering[AVERAGED] else self.machine.parameters
        p = np.asarray(chosen, np.float64)
        return p[:-1, :-1].copy(), p[:-1, -1].copy(), p[-1, :-1].copy()

    def result(
        self,
        converged: bool,
        message: str,
        objective: float | None = None,
        norm: float | None = None,
        blown_up: bool = False,
    ) -> Trained:
        """What there is."""
        return Trained(
            *self._parts(),
            chains=self.chains.astype(np.int8),
            epochs=self.epochs,
            updates=int(self.updates),
            converged=converged,
            message=message,
            blown_up=blown_up,
            history=tuple(self.history),
            objective=objective,
            gradient_norm=norm,
        )


class _BlownUpError(Exception):
    """Weights have left every reasonable range."""


def _fitting(chains: npt.ArrayLike, m: int, n_hidden: int) -> npt.NDArray[Any]:
    given = np.asarray(chains)
    if given.shape != (m, n_hidden):
        raise ModelError(f"chains must have shape ({m}, {n_hidden}), got {given.shape}")
    return given
