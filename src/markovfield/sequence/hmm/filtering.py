"""A hidden Markov model that watches a stream: filtering, prediction and fixed-lag smoothing (Murphy 17.4)."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, log_sum
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.sequence.hmm.emissions import is_missing
from markovfield.sequence.hmm.model import HiddenMarkov

__all__ = ["HMMFilter"]


class HMMFilter:
    """What a hidden Markov model believes of its present state, observation by observation.

    Messages are kept as logs, so that streams may be of any length. An update takes ``n_states**2`` operations, a
    question after the last ``lag`` states ``lag`` times as many. `HMM.filter` makes one.

    Parameters
    ----------
    lag
        How many past states `smoothed` can still look back at.

    Attributes
    ----------
    posterior
        ``float64[n_states]``: probabilities of the present state given everything seen; of the first state before
        anything is.
    log_likelihood
        Of what was seen so far.
    n_seen
        How many observations there were.
    """

    def __init__(self, model: HiddenMarkov, lag: int = 0) -> None:
        if isinstance(lag, bool) or not isinstance(lag, (int, np.integer)) or lag < 0:
            raise ModelError(f"HMM.filter: lag must be an integer from 0 on, got {lag!r}")
        self._model, self.lag = model, int(lag)
        with np.errstate(divide="ignore"):
            self._log_start, self._log_moves = np.log(model.start), np.log(model.transitions)
        self.reset()

    def reset(self) -> HMMFilter:
        """Forget everything seen: a new sequence starts."""
        self.n_seen, self.log_likelihood = 0, 0.0
        self._message = self._log_start
        # Log messages and log-potentials of the last tokens, the present one last.
        self._window: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=self.lag + 1)
        return self

    @property
    def posterior(self) -> FloatArray:
        """Probabilities of the present state."""
        return np.exp(self._message)

    def update(self, x: Any) -> FloatArray:
        """Take in an observation (None where it is missing); the posterior of the present state.

        Raises `ImpossibleEvidenceError`, and stays as it was, where the observation has probability zero.
        """
        model = self._model
        scores = np.zeros(model.n_states)
        if not is_missing(x):
            one = model.emissions.encode([[x]] if model.emissions.kind == "categorical" else [np.atleast_2d(x)])
            if one.n_tokens != 1:
                raise ModelError(f"HMM.filter: update takes one observation, got {one.n_tokens}")
            table = model.emissions.log_table(one, model.width).reshape(-1, model.width)
            scores = table[int(one.rows[0]), : model.n_states]
        ahead = log_sum(self._message[:, None] + self._log_moves, 0) if self.n_seen else self._message
        joint = ahead + scores
        total = float(log_sum(joint, 0))
        if total == -np.inf:
            raise ImpossibleEvidenceError(f"observation {x!r} has probability zero after the {self.n_seen} before it")
        self._message = joint - total
        self._window.append((self._message, scores))
        self.log_likelihood += total
        self.n_seen += 1
        return self.posterior

    def predict(self, steps: int = 1) -> FloatArray:
        """Probabilities of the state ``steps`` observations from now, ``float64[n_states]``.

        Before anything is seen, the first observation is one step away.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise ModelError(f"HMM.filter: steps must be an integer from 0 on, got {steps!r}")
        moves = int(steps) - (0 if self.n_seen else min(1, int(steps)))
        return self.posterior @ np.linalg.matrix_power(self._model.transitions, moves)

    def smoothed(self) -> FloatArray:
        """Posteriors of the last states given everything seen, ``float64[min(lag + 1, n_seen), n_states]``.

        The last row is the present state; the first one looks ``lag`` states back.
        """
        rows = list(self._window)
        found = np.zeros((len(rows), self._model.n_states))
        backward = np.zeros(self._model.n_states)
        for i in range(len(rows) - 1, -1, -1):
            message, scores = rows[i]
            logs = message + backward
            found[i] = np.exp(logs - log_sum(logs, 0))
            backward = log_sum(self._log_moves + scores + backward, 1)
        return found
