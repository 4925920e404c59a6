"""Learning hidden Markov models: by counting where states are known, by Baum-Welch where they are not (Murphy 17.5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.frames import OneRow
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.sequence.chain.features import padded
from markovfield.sequence.hmm.emissions import Observations
from markovfield.sequence.hmm.model import NONE_KNOWN, Emissions, Expected, HiddenMarkov, Known

__all__ = ["HMMReport", "Learning", "count_labels", "learn_hidden"]

# Every start runs for so many iterations; the best one goes on.
SHORT_RUN = 10


@dataclass(frozen=True)
class HMMReport(OneRow):
    """How an `HMM` was learnt.

    Attributes
    ----------
    method
        ``"counting"`` where every state was known, else ``"baum_welch"``.
    log_likelihood
        Of all sequences, with the states that were known.
    objective
        The same and the log-density of the priors that smoothing and regularisation stand for, up to a constant: what
        never falls.
    history
        The objective of the start and after each iteration.
    """

    method: str
    log_likelihood: float
    objective: float
    iterations: int
    converged: bool
    message: str
    seconds: float
    n_sequences: int
    n_tokens: int
    restarts: int = 1
    history: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "history": list(self.history)}

    _row = ("method", "log_likelihood", "iterations", "converged", "n_sequences", "n_tokens", "seconds")

    def __repr__(self) -> str:
        return f"HMMReport: {self}"

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"{self.method}: log-likelihood {self.log_likelihood:.8g} after {self.iterations} iterations in "
            f"{self.seconds:.3g} s ({end}: {self.message})"
        )


@dataclass(frozen=True, eq=False)
class Learning:
    """Observations, the states that are known, and the priors.

    Attributes
    ----------
    smoothing, emission_smoothing
        Added to the counts of starts and transitions, and of symbols.
    regularisation
        ``float64[d]``, added to the sums of squares of Gaussian emissions.
    """

    observed: Observations
    known: Known
    smoothing: float
    emission_smoothing: float
    regularisation: FloatArray
    running: Running

    def objective(self, model: HiddenMarkov, expected: Expected) -> float:
        """Log-likelihood and log-priors."""
        value = float(expected.log_likelihoods.sum())
        value += model.emissions.log_prior(self.emission_smoothing, self.regularisation)
        if self.smoothing:
            value += self.smoothing * float(np.log(model.start).sum() + np.log(model.transitions).sum())
        return value

    def maximised(self, model: HiddenMarkov, expected: Expected) -> HiddenMarkov:
        """The model that fits expected counts best (the M step)."""
        return HiddenMarkov(
            _shares(expected.start + self.smoothing, model.start),
            _shares(expected.moves + self.smoothing, model.transitions),
            model.emissions.updated(expected.emissions, model.n_states, self.emission_smoothing, self.regularisation),
        )

    def iterate(
        self, model: HiddenMarkov, history: list[float], n: int, tolerance: float
    ) -> tuple[HiddenMarkov, Expected, str]:
        """Up to ``n`` iterations of EM from a model; why they ended."""
        expected = model.expected(self.observed, self.known, self.running)
        history.append(self.objective(model, expected))
        for _ in range(n):
            try:
                better = self.maximised(model, expected)
                found = better.expected(self.observed, self.known, self.running)
                self.running.check(history[-1])
            except (StoppedError, TimeoutError) as error:
                return model, expected, str(error)
            value = self.objective(better, found)
            gain = value - history[-1]
            if not gain >= 0:
                # At the top, rounding alone moves the objective.
                return model, expected, "the objective no longer rises"
            model, expected = better, found
            history.append(value)
            if gain <= tolerance * max(self.observed.n_tokens, 1):
                return model, expected, "the objective no longer rises"
        return model, expected, ""


def _shares(counts: FloatArray, before: FloatArray) -> FloatArray:
    """Rows that add up to one; those without any count stay as they were."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), before)


def count_labels(emissions: Emissions, observed: Observations, known: Known, n_states: int) -> Expected:
    """Counts of the states that are known, of steps where both are, and of what they show."""
    firsts = observed.offsets[:-1][observed.lengths > 0]
    start = known[firsts]
    inside = np.ones(len(known), np.bool_)
    inside[firsts] = False
    before, after = np.concatenate([[-1], known[:-1]])[: len(known)], known
    steps = inside & (before >= 0) & (after >= 0)
    codes = before[steps].astype(np.int64) * n_states + after[steps]
    moves = np.bincount(codes, minlength=n_states**2).reshape(n_states, n_states).astype(np.float64)
    shown = emissions.counted(observed, known, padded(n_states))
    begun = np.bincount(start[start >= 0], minlength=n_states).astype(np.float64)
    return Expected(np.zeros(observed.n_sequences), begun, moves, shown)


def learn_hidden(
    emissions: Emissions,
    task: Learning,
    n_states: int,
    *,
    begin: HiddenMarkov | None,
    restarts: int,
    max_iterations: int,
    tolerance: float,
    rng: np.random.Generator,
) -> tuple[HiddenMarkov, HMMReport]:
    """A model that fits observations and known states, and how it was found."""
    started = clock()
    blank = HiddenMarkov(np.full(n_states, 1 / n_states), np.full((n_states, n_states), 1 / n_states), emissions)
    history: list[float] = []
    about: dict[str, Any] = {}
    if len(task.known) and (task.known >= 0).all():
        counts = count_labels(emissions, task.observed, task.known, n_states)
        model = task.maximised(blank, counts)
        fitted = model.emissions.finished(counts.emissions, task.emission_smoothing)
        model = HiddenMarkov(model.start, model.transitions, fitted)
        sums = model.log_likelihoods(task.observed, task.known, task.running)
        counts = Expected(sums, counts.start, counts.moves, counts.emissions)
        about = {"method": "counting", "iterations": 0, "converged": True, "message": "every state is known"}
        value = task.objective(model, counts)
    else:
        if begin is None and (task.known >= 0).any():
            begin = _from_labels(blank, task)
        tries: list[tuple[HiddenMarkov, list[float]]] = []
        for _ in range(1 if begin is not None else restarts):
            own: list[float] = []
            first = begin or _random_start(emissions, task.observed, n_states, rng)
            if begin is None and restarts > 1:
                first, _, _ = task.iterate(first, own, min(SHORT_RUN, max_iterations), tolerance)
                own.pop()  # where it ends is where the long run starts
            tries.append((first, own))
        values = [own[-1] if own else -np.inf for _, own in tries]
        model, history = tries[int(np.argmax(values))]
        left = max_iterations - len(history)
        model, counts, said = task.iterate(model, history, left, tolerance)
        value = history[-1]
        fitted = model.emissions.finished(counts.emissions, task.emission_smoothing)
        model = HiddenMarkov(model.start, model.transitions, fitted)
        about = {
            "method": "baum_welch",
            "iterations": len(history) - 1,
            "converged": said.startswith("the objective"),
            "message": said or f"{max_iterations} iterations were made",
            "restarts": len(tries),
        }
    report = HMMReport(
        log_likelihood=float(counts.log_likelihoods.sum()),
        objective=value,
        seconds=clock() - started,
        n_sequences=task.observed.n_sequences,
        n_tokens=task.observed.n_tokens,
        history=tuple(history),
        **about,
    )
    return model, report


def _from_labels(blank: HiddenMarkov, task: Learning) -> HiddenMarkov:
    """Where EM starts when some states are known: their counts, with no door closed."""
    counts = count_labels(blank.emissions, task.observed, task.known, blank.n_states)
    spread = _variances(task.observed)
    return HiddenMarkov(
        _shares(counts.start + 1.0, blank.start),
        _shares(counts.moves + 1.0, blank.transitions),
        blank.emissions.updated(counts.emissions, blank.n_states, 0.1, spread),
    )


def _random_start(
    emissions: Emissions, observed: Observations, n_states: int, rng: np.random.Generator
) -> HiddenMarkov:
    """States that differ at random in how they follow each other, and by clusters or at random in what they show."""
    moves = 0.5 / n_states + 0.5 * rng.dirichlet(np.ones(n_states), size=n_states)
    start = 0.5 / n_states + 0.5 * rng.dirichlet(np.ones(n_states))
    return HiddenMarkov(start, moves, emissions.mean_start(observed, n_states, rng))


def _variances(observed: Observations) -> FloatArray:
    """The variance of each dimension of what was observed, or one where there is none."""
    if not len(observed.values):
        return np.zeros(0)
    spread = observed.values[~observed.missing].var(axis=0)
    return np.where(spread > 0, spread, 1.0)


def learning(
    observed: Observations,
    known: Known | None,
    running: Running,
    *,
    smoothing: float | None,
    emission_smoothing: float | None,
    regularisation: float,
) -> Learning:
    """The task with its defaults: Laplace's smoothing where every state is known, none for Baum-Welch."""
    labels = NONE_KNOWN if known is None else known
    counted = len(labels) > 0 and bool((labels >= 0).all())
    usual = (1.0 if counted else 0.0) if smoothing is None else float(smoothing)
    shown = usual if emission_smoothing is None else float(emission_smoothing)
    return Learning(observed, labels, usual, shown, regularisation * _variances(observed), running)
