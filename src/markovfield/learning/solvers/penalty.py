"""Penalties on weights: squares, absolute values, and norms of groups, with their proximal steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError

__all__ = ["Penalty"]

# Newton's method on the norm of a group rises to it, by more digits at every step.
MOST_NEWTON = 100


@dataclass(frozen=True, eq=False)
class Penalty:
    """What is added to an objective f of weights w, minimised as

    ``f(w) + l2/2 |(w - mean)/scale|^2 + l1 |w|_1 + group_l1 sum_g sqrt(size_g) |w_g|_2``.

    Parameters
    ----------
    l2, l1
        Numbers of at least zero, or one for each weight.
    groups
        ``int[n_weights]``: the group of each weight, from zero; -1 is in none. Weights of a group become zero together
        (the group lasso of Yuan and Lin 2006; with ``l1`` the sparse group lasso).
    group_l1
        What the norms of groups are multiplied with, each times the root of its size.
    scale, mean
        Of the Gaussian prior that ``l2`` stands for: numbers, or one for each weight; one and zero when None.

    Examples
    --------
    >>> import numpy as np
    >>> penalty = Penalty(l1=1.0, groups=np.array([-1, 0, 0]), group_l1=1.0)
    >>> round(penalty.value(np.array([-2.0, 3.0, 4.0])), 6)
    16.071068
    >>> penalty.prox(np.array([-2.0, 1.5, 1.1]), 1.0).tolist()
    [-1.0, 0.0, 0.0]
    """

    l2: float | FloatArray = 0.0
    l1: float | FloatArray = 0.0
    groups: npt.NDArray[np.int64] | None = None
    group_l1: float = 0.0
    scale: float | FloatArray | None = None
    mean: float | FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("l2", "l1", "scale", "mean"):
            value = getattr(self, name)
            if value is None:
                continue
            array = np.array(value, np.float64)
            if array.ndim > 1 or not np.isfinite(array).all():
                raise ModelError(f"{name} of Penalty must be a finite number or a vector of them, got {value!r}")
            if name != "mean" and ((array < 0).any() or (name == "scale" and not array.all())):
                least = "positive" if name == "scale" else "at least 0"
                raise ModelError(f"{name} of Penalty must be {least}, got {array.min():g}")
            array.setflags(write=False)
            object.__setattr__(self, name, float(array) if array.ndim == 0 else array)
        if not np.isfinite(number(self.group_l1, "group_l1 of Penalty", least=0.0)):
            raise ModelError(f"group_l1 of Penalty must be finite, got {self.group_l1}")
        if self.groups is None and self.group_l1 > 0:
            raise ModelError("group_l1 of Penalty needs groups, the group of each weight")
        if self.groups is not None:
            groups = np.array(self.groups)
            if groups.ndim != 1 or groups.dtype.kind not in "iu" or (len(groups) and groups.min() < -1):
                raise ModelError("groups of Penalty must be a vector of integers of at least -1")
            groups = groups.astype(np.int64)
            groups.setflags(write=False)
            object.__setattr__(self, "groups", groups)

    def check(self, n: int) -> None:
        """Raise where a part is not for so many weights."""
        for name in ("l2", "l1", "groups", "scale", "mean"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and len(value) != n:
                raise ModelError(f"{name} of Penalty has {len(value)} entries, and there are {n} weights")

    @cached_property
    def has_l2(self) -> bool:
        """Whether there is a quadratic part."""
        return bool(np.any(np.asarray(self.l2) > 0))

    @cached_property
    def has_l1(self) -> bool:
        """Whether absolute values are penalised."""
        return bool(np.any(np.asarray(self.l1) > 0))

    @cached_property
    def has_groups(self) -> bool:
        """Whether norms of groups are penalised."""
        return self.group_l1 > 0 and bool(len(self._members))

    @cached_property
    def _precision(self) -> float | FloatArray:
        return self.l2 if self.scale is None else self.l2 / np.square(self.scale)

    @cached_property
    def _members(self) -> npt.NDArray[np.int64]:
        """Positions of weights in groups."""
        return np.flatnonzero(np.zeros(0) if self.groups is None else self.groups >= 0)

    @cached_property
    def _of(self) -> npt.NDArray[np.int64]:
        """The group of each of them."""
        assert self.groups is not None
        return self.groups[self._members]

    @cached_property
    def _roots(self) -> FloatArray:
        """The square root of each group's size."""
        return np.sqrt(np.bincount(self._of))

    def _norms(self, members: FloatArray) -> FloatArray:
        """The norm of each group, of a vector of the weights in groups."""
        return np.sqrt(np.bincount(self._of, members * members, len(self._roots)))

    def value(self, w: FloatArray) -> float:
        """The whole penalty."""
        return self.smooth(w)[0] + self.kinked(w)

    def kinked(self, w: FloatArray) -> float:
        """The penalty without its quadratic part."""
        total = float(np.sum(self.l1 * np.abs(w))) if self.has_l1 else 0.0
        return total + self.group_l1 * float(self._roots @ self._norms(w[self._members])) if self.has_groups else total

    def smooth(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The quadratic part and its gradient."""
        away = w if self.mean is None else w - self.mean
        gradient = self._precision * away
        return 0.5 * float(away @ gradient), gradient

    def prox(self, w: FloatArray, step: float | FloatArray) -> FloatArray:
        """The v that minimises ``sum((v - w)^2 / (2 step))`` plus the penalty without its quadratic part.

        ``step`` is a number or one for each weight. Absolute values shrink first and then norms of groups, which
        together is exact; where steps differ within a group, its norm is found by Newton's method.
        """
        result = np.sign(w) * np.maximum(np.abs(w) - step * self.l1, 0.0) if self.has_l1 else w.copy()
        if self.has_groups:
            inside = result[self._members]
            strength = self.group_l1 * self._roots
            if np.ndim(step):
                result[self._members] = self._shrunk(inside, np.asarray(step)[self._members], strength)
            else:
                norms = np.maximum(self._norms(inside), 1e-300)
                result[self._members] = inside * np.maximum(1 - step * strength / norms, 0.0)[self._of]
        return result

    def _shrunk(self, inside: FloatArray, steps: FloatArray, strength: FloatArray) -> FloatArray:
        """Weights in groups after a proximal step of its own length for each.

        The norm n of a group that stays solves ``|v / (n + step * strength)| = 1``. One over the left side is concave
        in n, so that Newton's method rises to the solution from below.
        """
        kept = self._norms(inside / steps) > strength
        norms = np.zeros(len(strength))
        shift = steps * strength[self._of]
        for _ in range(MOST_NEWTON):
            parts = inside / np.maximum(norms[self._of] + shift, 1e-300)
            left = np.bincount(self._of, parts * parts, len(norms))
            slope = np.bincount(self._of, parts * parts / np.maximum(norms[self._of] + shift, 1e-300), len(norms))
            rise = np.where(kept, left * (np.sqrt(left) - 1.0) / np.maximum(slope, 1e-300), 0.0)
            norms = np.maximum(norms + rise, 0.0)
            if (rise <= 1e-15 * norms).all():
                break
        return np.where(kept[self._of], inside * norms[self._of] / np.maximum(norms[self._of] + shift, 1e-300), 0.0)

    def subgradient(self, w: FloatArray, gradient: FloatArray) -> FloatArray:
        """The shortest subgradient at w, where ``gradient`` is that of the objective and of the quadratic part.

        It is zero exactly at a minimum.
        """
        slope = gradient
        if self.has_l1:
            at_zero = np.sign(slope) * np.maximum(np.abs(slope) - self.l1, 0.0)
            slope = np.where(w == 0, at_zero, slope + self.l1 * np.sign(w))
        if self.has_groups:
            slope = slope.copy()
            inside, own = slope[self._members], w[self._members]
            strength, norms, slopes = self.group_l1 * self._roots, self._norms(own), self._norms(inside)
            shrink = np.maximum(1 - strength / np.maximum(slopes, 1e-300), 0.0)
            pull = strength / np.where(norms > 0, norms, 1.0)
            nonzero = norms[self._of] > 0
            slope[self._members] = np.where(nonzero, inside + pull[self._of] * own, inside * shrink[self._of])
        return slope

    def optimality(self, w: FloatArray, gradient: FloatArray) -> float:
        """The norm of the shortest subgradient: how far w is from a minimum."""
        return float(np.linalg.norm(self.subgradient(w, gradient)))

    def max_group_penalty(self, gradient: FloatArray) -> float:
        """The smallest ``group_l1`` at which all groups are zero.

        ``gradient`` is that of the objective and of the quadratic part where they are zero and all other weights are at
        their minimum.

        Examples
        --------
        >>> round(Penalty(groups=np.array([-1, 0, 0])).max_group_penalty(np.array([0.0, 3.0, 4.0])), 6)
        3.535534
        """
        if not len(self._members):
            return 0.0
        soft = np.maximum(np.abs(gradient) - self.l1, 0.0)[self._members]
        return float(np.max(self._norms(soft) / np.maximum(self._roots, 1e-300)))
