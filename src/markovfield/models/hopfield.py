"""Hopfield networks: a fully connected Ising model as an associative memory (Murphy 19.4.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._exports import NAMESPACES
from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray, short_repr
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Drawn, Tabular
from markovfield.models._pairwise_log_linear import Tied, pairwise_log_linear, split_parameters
from markovfield.models._parameters import Parameter
from markovfield.models._sites import SameStates, Sites, sigmoid
from markovfield.models.log_linear import LogLinear
from markovfield.names import Names

__all__ = ["Completion", "Hopfield"]

Spins = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False, repr=False)
class Completion(Tabular):
    """What a Hopfield network makes of a partial pattern.

    Attributes
    ----------
    state
        ``int8``, -1 and +1, in the shape of the neurons.
    energy
        Of that state; no change of a single neuron that was free lowers it where ``converged``.
    sweeps
        How often each free neuron was visited.
    converged
        Whether the last sweep changed nothing.
    history
        The states at the moments asked for with ``record``; 0 for neurons not visited yet.
    """

    state: Spins
    energy: float
    sweeps: int
    converged: bool
    history: tuple[Spins, ...] = ()

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        spins = self.state.ravel()[:limit]
        return {"neuron": list(range(len(spins))), "spin": spins}

    __repr__ = short_repr


class Hopfield(Drawn):
    """Spins -1 and +1, all joined to all by symmetric weights, which keep patterns in memory.

        log p(y) = 1/2 y'Wy + b'y - log Z,     p(y_s = +1 | rest) = sigm(2 (W y + b)_s)

    (Murphy 19.19 with the sign of 19.17, and 19.21 for spins -1 and +1.) `store` sets the weights; `complete` goes
    downhill in energy from part of a pattern, neuron after neuron (ICM), to the memory it reminds of.

    With Hebb's outer product, random patterns are fixed points, but for a few per cent of their neurons, up to about
    0.138 n of them (Amit, Gutfreund and Sompolinsky 1985), and far fewer when they resemble each other, as images do.
    Maximum pseudo-likelihood makes each neuron's conditional separate the patterns: more than n random ones become
    fixed points, and correlated ones too, since it also raises the energy of what is not stored. How far from a
    pattern one may start and still find it shrinks as the memory fills: to complete halves of patterns, stay well
    below n.

    Parameters
    ----------
    shape
        Number of neurons, or the shape of an image of them.

    Attributes
    ----------
    weights, biases
        ``float64[n, n]``, symmetric with zeros on the diagonal, and ``float64[n]``.
    patterns
        ``int8[P, *shape]``: what has been stored.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.models.hopfield import Hopfield
    >>> patterns = np.random.default_rng(0).choice([-1, 1], (3, 100))
    >>> memory = Hopfield(100).store(patterns)
    >>> memory
    Hopfield(100 neurons, 3 patterns)
    >>> seen = np.where(np.arange(100) < 30, patterns[1], np.nan)
    >>> found = memory.complete(seen)
    >>> bool((found.state == patterns[1]).all()), found.converged
    (True, True)
    """

    weights = Parameter("n_units", "n_units")
    biases = Parameter("n_units")

    def __init__(self, shape: int | Sequence[int]) -> None:
        given = tuple(shape) if isinstance(shape, (list, tuple, np.ndarray)) else (shape,)
        whole = all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) and x >= 1 for x in given)
        if not given or not whole:
            raise ModelError(f"Hopfield(shape) must be a number of neurons or an image's lengths, got {shape!r}")
        self.shape: tuple[int, ...] = tuple(int(x) for x in given)
        self.weights = self.biases = None
        self.patterns: Spins = np.zeros((0, *self.shape), np.int8)

    def __repr__(self) -> str:
        p = len(self.patterns)
        return f"Hopfield({' x '.join(map(str, self.shape))} neurons, {p} pattern{'s' * (p != 1)})"

    @property
    def n_units(self) -> int:
        """Number of neurons."""
        return math.prod(self.shape)

    def _current_names(self) -> Names:
        return Names(range(self.n_units), SameStates(self.n_units, (-1, 1)))

    def _count_states(self, position: int) -> int:
        return 2

    # ---- memory ---------------------------------------------------------------------------------------------

    def _rows(self, states: npt.ArrayLike, what: str) -> tuple[FloatArray, tuple[int, ...]]:
        """Spins as ``float64[rows, n]`` with the shape before that of the neurons; bools count as -1 and +1."""
        array = np.asarray(states)
        k = len(self.shape)
        if array.ndim >= k and array.shape[array.ndim - k :] == self.shape:
            before = array.shape[: array.ndim - k]
        elif array.shape[-1:] == (self.n_units,):
            before = array.shape[:-1]
        else:
            raise ModelError(f"{what} needs patterns of shape {self.shape}, got shape {array.shape}")
        if array.dtype == np.bool_:
            array = np.where(array, 1, -1)
        return np.array(array.reshape(math.prod(before), self.n_units), np.float64), before

    def _spins(self, states: npt.ArrayLike, what: str) -> tuple[FloatArray, tuple[int, ...]]:
        rows, before = self._rows(states, what)
        strange = np.abs(rows) != 1
        if strange.any():
            raise ModelError(f"{what} needs spins -1 and +1 (or bools), got {rows[strange][0]:g}")
        return rows, before

    def store(
        self,
        patterns: npt.ArrayLike,
        rule: str = "outer",
        *,
        l2: float = 0.01,
        biases: bool = False,
        max_iterations: int = 500,
        tolerance: float = 1e-4,
    ) -> Hopfield:
        """Keep patterns in memory, with those stored before; returns this network.

        Parameters
        ----------
        patterns
            ``[P, *shape]`` or one pattern, of -1 and +1 or bools.
        rule
            ``"outer"``: weights are the mean over neurons of the outer products, W = 1/n sum of y y' (Hopfield 1982),
            in O(P n^2). ``"pseudo_likelihood"``: weights that minimise minus the log-pseudo-likelihood of the
            patterns plus ``l2/2`` times the sum of their squares, by L-BFGS; each step O(P^2 n) or O(P n^2).
        l2, biases
            The penalty, and whether neurons get biases (penalised too); for pseudo-likelihood. With no penalty the
            minimum may be at infinity, and the iterations stop where the gradient is small.
        max_iterations, tolerance
            Of L-BFGS; the tolerance is of the gradient's largest entry, for each pattern.
        """
        rows, _ = self._spins(patterns, "store(patterns)")
        if rule not in ("outer", "pseudo_likelihood"):
            raise ModelError(f"store(rule=...) must be 'outer' or 'pseudo_likelihood', got {rule!r}")
        if not 0 <= number(l2, "store(l2=...)") < np.inf:
            raise ModelError(f"store(l2=...) must be at least zero, got {l2!r}")
        if not isinstance(biases, (bool, np.bool_)):
            raise ModelError(f"store(biases=...) must be True or False, got {biases!r}")
        whole_number(max_iterations, "store(max_iterations=...)", 1)
        number(tolerance, "store(tolerance=...)", above=0)
        if not len(rows):
            raise ModelError("store(patterns) needs at least one pattern")
        known = np.concatenate([self.patterns.reshape(-1, self.n_units), rows])
        if rule == "outer":
            weights = known.T @ known / self.n_units
            np.fill_diagonal(weights, 0.0)
            self.weights, self.biases = weights, np.zeros(self.n_units)
        else:
            # By its public name: learning is far above models.
            learned = import_module(NAMESPACES["learning"]["hopfield_weights"]).hopfield_weights
            self.weights, self.biases = learned(known, l2, biases, max_iterations, tolerance)
        self.patterns = known.astype(np.int8).reshape(-1, *self.shape)
        return self

    # ---- states ---------------------------------------------------------------------------------------------

    def energy(self, states: npt.ArrayLike) -> Any:
        """-1/2 y'Wy - b'y of each state."""
        rows, before = self._spins(states, "energy(states)")
        total = -0.5 * ((rows @ self.weights) * rows).sum(axis=1) - rows @ self.biases
        return total.reshape(before)[()]

    def full_conditional(self, states: npt.ArrayLike) -> FloatArray:
        """For each neuron, p(y_s = +1 | all others) = sigm(2 (W y + b)_s), in the shape of the neurons."""
        rows, before = self._spins(states, "full_conditional(states)")
        pull = rows @ self.weights + self.biases
        return sigmoid(2.0 * pull).reshape(*before, *self.shape)

    def complete(
        self,
        partial: npt.ArrayLike,
        known: npt.ArrayLike | None = None,
        *,
        max_sweeps: int = 100,
        order: str = "random",
        record: Sequence[float] = (),
        rng: int | np.random.Generator | None = None,
    ) -> Completion:
        """Complete one pattern by iterated conditional modes: each neuron takes its likelier state, in turn.

        Parameters
        ----------
        partial
            ``[*shape]`` of -1 and +1, with nan for neurons that are not known.
        known
            ``bool[*shape]``: neurons that are given and stay as they are; by default those that are not nan. Others
            that are not nan are where the search starts; a nan says nothing to its neighbours until it is first
            visited. To clean a noisy pattern up, pass ``known=np.zeros(shape, bool)``.
        max_sweeps
            Most visits to each free neuron.
        order
            ``"random"`` in every sweep, or ``"sequential"``: 0, 1, ...
        record
            Moments to keep, counted in sweeps, fractions allowed: ``[0.2, 1]`` keeps the state after a fifth of the
            first sweep and after all of it. After convergence the state stays the same.
        rng
            A seed or generator for the random order.
        """
        start, free = self._start(partial, known)
        if order not in ("random", "sequential"):
            raise ModelError(f"complete(order=...) must be 'random' or 'sequential', got {order!r}")
        whole_number(max_sweeps, "complete(max_sweeps=...)", 1)
        if not isinstance(record, (list, tuple, np.ndarray)):
            raise ModelError(f"complete(record=...) must be a list of moments, got {record!r}")
        for moment in record:
            if not number(moment, "complete(record=...)", least=0) <= max_sweeps:
                raise ModelError(
                    f"complete(record=...) needs moments from 0 to max_sweeps, here {max_sweeps}, got {moment!r}"
                )
        from markovfield.models.hopfield_kernel import update_units

        generator = generator_of(rng)
        states, n = start.copy(), len(free)
        fields = states @ self.weights + self.biases
        moments = sorted(round(moment * n) for moment in record)
        kept: list[Spins] = []
        sweeps, changed = 0, 1
        while changed and sweeps < max_sweeps:
            turn = generator.permutation(free) if order == "random" else free
            stops = [m - sweeps * n for m in moments[len(kept) :] if m < (sweeps + 1) * n]
            at = changed = 0
            for stop in [*stops, n]:
                changed += update_units(self.weights, fields, states, turn, at, stop)
                at = stop
                if len(kept) < len(moments) and sweeps * n + stop == moments[len(kept)]:
                    kept.append(states.astype(np.int8).reshape(self.shape))
            sweeps += 1
        state = states.astype(np.int8).reshape(self.shape)
        kept += [state] * (len(moments) - len(kept))
        # Back in the order asked for.
        places = np.argsort(np.argsort(np.asarray(record, np.float64), kind="stable"), kind="stable")
        history = tuple(kept[i] for i in places)
        return Completion(state, float(self.energy(state)), sweeps, not changed, history)

    def _start(self, partial: npt.ArrayLike, known: npt.ArrayLike | None) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Where `complete` starts, 0 for what is not known, and the neurons it may change."""
        rows, before = self._rows(partial, "complete(partial)")
        if len(rows) != 1:
            raise ModelError(f"complete(partial) takes one pattern of shape {self.shape}, got {before} of them")
        row = rows[0]
        missing = np.isnan(row)
        strange = ~missing & (np.abs(row) != 1)
        if strange.any():
            raise ModelError(f"complete(partial) needs -1, +1 or nan for the unknown, got {row[strange][0]:g}")
        fixed = ~missing
        if known is not None:
            mask = np.asarray(known)
            if mask.dtype != np.bool_ or mask.size != self.n_units:
                raise ModelError(
                    f"complete(known=...) needs bools of shape {self.shape}, got {mask.dtype}, {mask.shape}"
                )
            fixed = mask.ravel()
            if (fixed & missing).any():
                raise ModelError("complete(known=...) names a neuron as known that is nan")
        return np.where(missing, 0.0, row), np.flatnonzero(~fixed)

    def compile(self) -> FactorGraph:
        """A `FactorGraph` with a factor and a table for each pair of neurons: for small networks."""
        return self.log_linear().compile()

    def _tied(self) -> tuple[Tied, Tied]:
        weights = self.weights[np.triu_indices(self.n_units, 1)]
        pairs = Tied(weights[:, None], np.arange(len(weights)), np.array([[1.0], [-1.0], [-1.0], [1.0]]))
        return pairs, Tied(self.biases[:, None], np.arange(self.n_units), np.array([[-1.0], [1.0]]))

    def log_linear(self) -> LogLinear:
        """The log-linear form: a parameter for every weight above the diagonal, row by row, then for every bias."""
        n = self.n_units
        edges = np.stack(np.triu_indices(n, 1), axis=1).astype(np.int64)
        return pairwise_log_linear(Sites(range(n), None, (), edges), 2, self._current_names(), *self._tied())

    def with_parameters(self, parameters: npt.ArrayLike) -> Hopfield:
        """The same neurons and patterns with other weights and biases, those of `log_linear`."""
        given, biases = split_parameters(parameters, *self._tied())
        weights = np.zeros((self.n_units, self.n_units))
        weights[np.triu_indices(self.n_units, 1)] = given.ravel()
        made = Hopfield(self.shape)
        made.weights, made.biases, made.patterns = weights + weights.T, biases.ravel(), self.patterns
        return made
