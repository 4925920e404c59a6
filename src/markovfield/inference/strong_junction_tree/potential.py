"""Tables of canonical forms over discrete and real-valued variables, one for each row of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from markovfield.arrays import FloatArray, IntArray, log_sum
from markovfield.gaussian.mixed_field import CanonicalFactor

__all__ = ["Moments", "Potential", "absorbed", "multiply", "table"]

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Potential:
    """``exp(g + h.x - x.K.x / 2)``; axes are rows (one where all are alike), discrete variables, real-valued ones.

    ``discrete`` and ``continuous`` are rising positions; ``constant`` is g ``[rows, cards]``, ``linear`` h ``[rows,
    cards, c]`` and ``precision`` K ``[rows, cards, c, c]``.
    """

    discrete: tuple[int, ...]
    continuous: tuple[int, ...]
    constant: FloatArray
    linear: FloatArray
    precision: FloatArray

    def regression(self, variable: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of a real-valued variable on the others: weights ``[..., c - 1]``, bias and variance ``[...]``."""
        a = self.continuous.index(variable)
        rest = [i for i in range(len(self.continuous)) if i != a]
        pivot = self.precision[..., a, a]
        return -self.precision[..., a, rest] / pivot[..., None], self.linear[..., a] / pivot, 1.0 / pivot

    def eliminated(self, variable: int, *, maximise: bool) -> Potential:
        """A real-valued variable integrated, or maximised, out of every configuration."""
        a = self.continuous.index(variable)
        rest = [i for i in range(len(self.continuous)) if i != a]
        pivot, own = self.precision[..., a, a], self.linear[..., a]
        cross = self.precision[..., rest, a]
        constant = self.constant + 0.5 * own**2 / pivot
        if not maximise:
            constant = constant + 0.5 * (LOG_2PI - np.log(pivot))
        linear = self.linear[..., rest] - cross * (own / pivot)[..., None]
        precision = self.precision[..., rest, :][..., rest]
        precision = precision - cross[..., :, None] * cross[..., None, :] / pivot[..., None, None]
        return Potential(self.discrete, tuple(self.continuous[i] for i in rest), constant, linear, precision)

    def summed(self, variable: int, *, maximise: bool) -> Potential:
        """A discrete variable summed, or maximised, out of a table without real-valued variables."""
        axis = 1 + self.discrete.index(variable)
        rest = tuple(v for v in self.discrete if v != variable)
        constant = self.constant.max(axis=axis) if maximise else log_sum(self.constant, axis)
        return table(rest, constant)


def absorbed(factor: CanonicalFactor, states: Mapping[int, IntArray], numbers: Mapping[int, FloatArray]) -> Potential:
    """A factor once some variables are known, row by row: ``states`` and ``numbers`` hold one entry for each row."""
    discrete = tuple(v for v in factor.discrete if v not in states)
    constant, linear, precision = factor.constant, factor.linear, factor.precision
    if len(discrete) < len(factor.discrete):
        free = iter(range(1, 1 + len(discrete)))
        index = []
        for v, n in zip(factor.discrete, constant.shape, strict=True):
            shape = [1] * (1 + len(discrete))
            axis = 0 if v in states else next(free)
            shape[axis] = -1
            index.append((states[v] if v in states else np.arange(n)).reshape(shape))
        constant, linear, precision = (array[tuple(index)] for array in (constant, linear, precision))
    else:
        constant, linear, precision = constant[None], linear[None], precision[None]
    seen = [i for i, v in enumerate(factor.continuous) if v in numbers]
    if seen:
        rest = [i for i, v in enumerate(factor.continuous) if v not in numbers]
        x = np.stack([numbers[factor.continuous[i]] for i in seen], axis=-1)
        x = x.reshape(len(x), *[1] * len(discrete), len(seen))
        inner = np.einsum("...ij,...j->...i", precision[..., seen, :][..., seen], x)
        constant = constant + np.sum(linear[..., seen] * x, axis=-1) - 0.5 * np.sum(inner * x, axis=-1)
        linear = linear[..., rest] - np.einsum("...ij,...j->...i", precision[..., rest, :][..., seen], x)
        precision = precision[..., rest, :][..., rest]
    continuous = tuple(v for v in factor.continuous if v not in numbers)
    return Potential(discrete, continuous, constant, linear, precision)


def table(discrete: tuple[int, ...], constant: FloatArray) -> Potential:
    """A potential of discrete variables only."""
    return Potential(discrete, (), constant, np.zeros((*constant.shape, 0)), np.zeros((*constant.shape, 0, 0)))


def ordered(potential: Potential) -> Potential:
    """The same with variables in rising order."""
    d, c = np.argsort(potential.discrete, kind="stable"), np.argsort(potential.continuous, kind="stable")
    axes = [0, *(1 + d).tolist()]
    k = len(axes)
    return Potential(
        tuple(potential.discrete[i] for i in d),
        tuple(potential.continuous[i] for i in c),
        potential.constant.transpose(axes),
        potential.linear.transpose([*axes, k])[..., c],
        potential.precision.transpose([*axes, k, k + 1])[..., c, :][..., c],
    )


def multiply(parts: Sequence[Potential], scope: Iterable[int], cardinalities: IntArray) -> Potential:
    """The product of potentials over a scope that holds all their variables."""
    listed = sorted(scope)
    discrete = tuple(v for v in listed if cardinalities[v])
    continuous = tuple(v for v in listed if not cardinalities[v])
    rows = max((len(p.constant) for p in parts), default=1)
    shape = (rows, *(int(cardinalities[v]) for v in discrete))
    c = len(continuous)
    constant, linear, precision = np.zeros(shape), np.zeros((*shape, c)), np.zeros((*shape, c, c))
    for part in parts:
        own = ordered(part)
        axes = [len(own.constant), *(shape[1 + i] if v in own.discrete else 1 for i, v in enumerate(discrete))]
        constant += own.constant.reshape(axes)
        if own.continuous:
            at = np.array([continuous.index(v) for v in own.continuous])
            linear[..., at] += own.linear.reshape(*axes, len(at))
            precision[..., at[:, None], at] += own.precision.reshape(*axes, len(at), len(at))
    return Potential(discrete, continuous, constant, linear, precision)


@dataclass(frozen=True, eq=False)
class Moments:
    """Probabilities of configurations ``[rows, cards]``, and mean and covariance of the real-valued ones in each."""

    discrete: tuple[int, ...]
    continuous: tuple[int, ...]
    probability: FloatArray
    mean: FloatArray
    covariance: FloatArray

    def on(self, discrete: Sequence[int], continuous: Sequence[int]) -> Moments:
        """Of fewer variables, in the order asked: a mixture keeps its mean and covariance."""
        gone = tuple(1 + i for i, v in enumerate(self.discrete) if v not in discrete)
        at = [self.continuous.index(v) for v in continuous]
        p, mean = self.probability, self.mean[..., at]
        covariance = self.covariance[..., at, :][..., at]
        left = [v for v in self.discrete if v in discrete]
        if gone:
            total = p.sum(axis=gone)
            safe = np.where(total > 0, total, 1.0)
            share = p / np.expand_dims(safe, gone)
            middle = np.sum(share[..., None] * mean, axis=gone)
            away = mean - np.expand_dims(middle, gone)
            spread = covariance + away[..., :, None] * away[..., None, :]
            covariance = np.sum(share[..., None, None] * spread, axis=gone)
            p, mean = total, middle
        order = [left.index(v) for v in discrete]
        axes = [0, *(1 + i for i in order)]
        k = len(axes)
        return Moments(
            tuple(discrete),
            tuple(continuous),
            p.transpose(axes),
            mean.transpose([*axes, k]),
            covariance.transpose([*axes, k, k + 1]),
        )
