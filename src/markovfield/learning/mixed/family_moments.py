"""Moments of a variable with its parents, summed over rows, and the distribution that fits them best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.strong_junction_tree.potential import Moments
from markovfield.models.mixed.conditional_gaussian import ConditionalGaussianNetwork
from markovfield.names import VariableName

__all__ = ["FamilyMoments", "give"]


@dataclass(eq=False)
class FamilyMoments:
    """Of one variable: weight, sum and sum of squares for each configuration of the family's discrete variables.

    Sums are of numbers less ``centre``, so that large offsets cost no digits.
    """

    weight: FloatArray
    total: FloatArray
    square: FloatArray
    centre: FloatArray

    @classmethod
    def empty(cls, shape: tuple[int, ...], centre: FloatArray) -> FamilyMoments:
        """Nothing yet."""
        c = len(centre)
        return cls(np.zeros(shape), np.zeros((*shape, c)), np.zeros((*shape, c, c)), centre)

    def add(self, found: Moments, weights: FloatArray) -> None:
        """Rows with what is believed of each; a moment's first axis is rows."""
        share = found.probability * weights.reshape(-1, *[1] * (found.probability.ndim - 1))
        away = found.mean - self.centre
        self.weight += share.sum(axis=0)
        self.total += np.einsum("r...,r...i->...i", share, away)
        spread = found.covariance + away[..., :, None] * away[..., None, :]
        self.square += np.einsum("r...,r...ij->...ij", share, spread)

    def regression(self, least: float, where: Any) -> tuple[FloatArray, FloatArray, FloatArray, list[int]]:
        """Weights, bias and variance of the first number on the others, for each configuration.

        ``least`` is the smallest variance there may be, 0 to refuse one that vanishes; ``where(i)`` names a
        configuration for messages. Also: configurations without rows, which get the regression of all rows.
        """
        shape, c = self.weight.shape, len(self.centre)
        weight, total = self.weight.reshape(-1), self.total.reshape(-1, c)
        square = self.square.reshape(-1, c, c)
        slopes, bias, variance = np.zeros((len(weight), c - 1)), np.zeros(len(weight)), np.zeros(len(weight))
        empty = [i for i in range(len(weight)) if weight[i] <= 1e-12 * max(weight.sum(), 1.0)]
        for i in range(len(weight)):
            n, t, s = (
                (weight.sum(), total.sum(axis=0), square.sum(axis=0))
                if i in empty
                else (weight[i], total[i], square[i])
            )
            mean = t / n
            spread = s / n - np.outer(mean, mean)
            scale = np.sqrt(np.maximum(np.diag(spread), 1e-300))
            inner = spread[1:, 1:] / np.outer(scale[1:], scale[1:])
            if c > 1 and np.linalg.eigvalsh(inner)[0] <= 1e-11:
                raise ModelError(
                    f"the parents of {where(i)} are linearly dependent, or too few rows tell their weights apart"
                )
            w = np.linalg.solve(inner, spread[1:, 0] / scale[1:]) / scale[1:] if c > 1 else np.zeros(0)
            left = spread[0, 0] - w @ spread[1:, 0]
            if left <= max(least, 1e-12 * spread[0, 0], 1e-300):
                if not least:
                    raise ModelError(
                        f"the variance of {where(i)} is zero: its rows lie on a line, or there are no more of them "
                        "than weights"
                    )
                left = least
            slopes[i], variance[i] = w, left
            bias[i] = mean[0] + self.centre[0] - w @ (mean[1:] + self.centre[1:])
        return slopes.reshape(*shape, c - 1), bias.reshape(shape), variance.reshape(shape), empty


def give(network: ConditionalGaussianNetwork, variable: VariableName, found: FamilyMoments, least: float) -> list[str]:
    """Give a variable the distribution that fits its moments; sentences about what the data do not tell."""
    above = network.parents(variable)
    if network.cardinality(variable):
        table = found.weight
        rows = table.sum(axis=-1, keepdims=True)
        unseen = int((rows <= 0).sum())
        uniform = np.full(table.shape, 1.0 / table.shape[-1])
        network.add_cpt(variable, above, np.where(rows > 0, table / np.where(rows > 0, rows, 1.0), uniform))
        return [f"{unseen} configurations of the parents of {variable!r} were not seen: uniform"] if unseen else []
    discrete = [p for p in above if network.cardinality(p)]

    def where(i: int) -> str:
        at = np.unravel_index(i, found.weight.shape) if discrete else ()
        said = ", ".join(f"{p}={network.states(p)[int(k)]}" for p, k in zip(discrete, at, strict=True))
        return f"{variable!r} given {said}" if said else f"{variable!r}"

    slopes, bias, variance, empty = found.regression(least, where)
    network.add_cpd(variable, above, slopes, bias=bias, variance=variance)
    return [f"{len(empty)} configurations of the parents of {variable!r} were not seen: as all others"] if empty else []
