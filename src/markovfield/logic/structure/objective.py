"""Pseudo-likelihood of the atoms of a query, over cases that agree in all that their log-odds depend on.

The log-odds of an atom given all others are linear in the weights: what the atom changes in the true groundings of each
formula. So the objective is a logistic regression with few columns, and atoms with the same row are one case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Cases", "Fit", "maximise"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Newton steps, and the decrement at which they end.
MOST_STEPS, CLOSE = 60, 1e-10


@dataclass(frozen=True)
class Cases:
    """Atoms by what their log-odds depend on.

    Attributes
    ----------
    features
        ``float64[cases, k]``: what an atom of a case changes in the true groundings of each formula.
    offsets
        ``float64[cases]``: log-odds that are fixed.
    of
        ``int64[atoms]``: the case of each atom, -1 of those that hard formulas decide.
    true, false
        ``float64[atoms]``: the weight of each atom where it is true, else zero; the other way round.
    """

    features: FloatArray
    offsets: FloatArray
    of: IntArray
    true: FloatArray
    false: FloatArray

    @classmethod
    def of_rows(
        cls, features: FloatArray, offsets: FloatArray, truth: npt.NDArray[np.bool_], weights: FloatArray
    ) -> Cases:
        """Cases of single rows; rows whose offset is infinite are decided, and left out."""
        free = np.isfinite(offsets)
        rows = np.column_stack([offsets, features])[free]
        found, inverse = np.unique(rows, axis=0, return_inverse=True)
        of = np.full(len(offsets), -1, np.int64)
        of[free] = inverse.ravel()
        weights = np.where(free, weights, 0.0)
        return cls(
            np.ascontiguousarray(found[:, 1:]), found[:, 0], of, np.where(truth, weights, 0.0),
            np.where(truth, 0.0, weights),
        )  # fmt: skip

    @property
    def n_columns(self) -> int:
        """Number of formulas."""
        return self.features.shape[1]

    def with_column(self, at: IntArray, value: FloatArray) -> Cases:
        """With one formula more, in which some atoms change something."""
        at, value = at[self.of[at] >= 0], value[self.of[at] >= 0]
        pairs, inverse = np.unique(np.column_stack([self.of[at], value]), axis=0, return_inverse=True)
        old = pairs[:, 0].astype(np.int64)
        of = self.of.copy()
        of[at] = len(self.features) + inverse.ravel()
        features = np.vstack([self.features, self.features[old]])
        column = np.concatenate([np.zeros(len(self.features)), pairs[:, 1]])
        offsets = np.concatenate([self.offsets, self.offsets[old]])
        # Cases that no atom is left of go.
        seen = np.zeros(len(offsets), np.bool_)
        seen[of[of >= 0]] = True
        place = np.cumsum(seen) - 1
        of[of >= 0] = place[of[of >= 0]]
        return Cases(np.column_stack([features, column])[seen], offsets[seen], of, self.true, self.false)

    def without_column(self, column: int) -> Cases:
        """With one formula less."""
        return Cases(np.delete(self.features, column, axis=1), self.offsets, self.of, self.true, self.false)

    def counts(self) -> tuple[FloatArray, FloatArray]:
        """``float64[cases]`` each: the weight of true atoms and of false ones."""
        inside = self.of >= 0
        n = len(self.offsets)
        true = np.bincount(self.of[inside], self.true[inside], n)
        false = np.bincount(self.of[inside], self.false[inside], n)
        return np.asarray(true, np.float64), np.asarray(false, np.float64)


@dataclass(frozen=True)
class Fit:
    """The best weights of some cases.

    Attributes
    ----------
    weights, value
        ``float64[k]``, and the log-pseudo-likelihood less the penalty there.
    log_pseudo_likelihood
        Without the penalty.
    covariance
        ``float64[k, k]``: the inverse of the negative second derivative.
    """

    weights: FloatArray
    value: float
    log_pseudo_likelihood: float
    covariance: FloatArray

    def screen(self, cases: Cases, at: IntArray, value: FloatArray, l2: float) -> float:
        """What one Newton step says that a further formula would gain, other weights following."""
        case = cases.of[at]
        at, value, case = at[case >= 0], value[case >= 0], case[case >= 0]
        odds = cases.features @ self.weights + cases.offsets
        share = (0.5 * (1.0 + np.tanh(0.5 * odds)))[case]
        total = cases.true[at] + cases.false[at]
        slope = float(value @ (cases.true[at] - total * share))
        bend = value * total * share * (1.0 - share)
        both = bend @ cases.features[case]
        curvature = float(bend @ value) + l2 - float(both @ self.covariance @ both)
        return 0.5 * slope * slope / max(curvature, l2)


def maximise(cases: Cases, l2: float, start: FloatArray) -> Fit:
    """The weights of the largest pseudo-likelihood less ``l2/2`` times their squares: Newton's method, safeguarded."""
    true, false = cases.counts()
    total = true + false
    x, w = cases.features, np.array(start)

    def value(w: FloatArray) -> tuple[float, FloatArray]:
        odds = x @ w + cases.offsets
        plain = -float(true @ np.logaddexp(0.0, -odds) + false @ np.logaddexp(0.0, odds))
        return plain, odds

    plain, odds = value(w)
    now = plain - 0.5 * l2 * float(w @ w)
    inverse: FloatArray = np.eye(len(w)) / l2
    for _ in range(MOST_STEPS):
        share = 0.5 * (1.0 + np.tanh(0.5 * odds))
        slope = x.T @ (true - total * share) - l2 * w
        bend = (x * (total * share * (1.0 - share))[:, None]).T @ x + l2 * np.eye(len(w))
        inverse = np.asarray(np.linalg.inv(bend), np.float64)
        step = inverse @ slope
        gain = float(slope @ step)
        if gain <= CLOSE * max(1.0, abs(now)):
            break
        length = 1.0
        while True:
            new = w + length * step
            new_plain, new_odds = value(new)
            new_now = new_plain - 0.5 * l2 * float(new @ new)
            if new_now >= now + 1e-4 * length * gain or length < 1e-8:
                break
            length *= 0.5
        if new_now <= now:
            break
        w, plain, odds, now = new, new_plain, new_odds, new_now
    return Fit(w, now, plain, inverse)
