"""The joint distribution of a few discrete variables as one table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, fresh_name

__all__ = ["JointTable", "as_joint_table"]

MAX_STATES = 2**20
"""Largest joint table made from a model."""
MAX_AXES = 64
"""Most axes a NumPy array can have."""


class JointTable(Tabular):
    """A joint distribution: a table with one axis per variable; it cannot be changed.

    Parameters
    ----------
    table
        ``float[K_1, ..., K_n]``, not negative, in the order of the variables; it is divided by its sum
        where that is not one.
    variables
        Names of the axes, all different.

    Attributes
    ----------
    probabilities
        ``float64[K_1, ..., K_n]``, read-only, sums to one.
    variables
        Names of the axes, a tuple.

    Examples
    --------
    >>> joint = JointTable([[0.4, 0.1], [0.1, 0.4]], ["A", "B"])
    >>> joint.variables, joint.is_positive
    (('A', 'B'), True)
    """

    probabilities: npt.NDArray[np.float64]
    variables: tuple[Any, ...]
    _axes: dict[Any, int]
    __slots__ = ("_axes", "probabilities", "variables")

    def __init__(self, table: npt.ArrayLike, variables: Sequence[Hashable]) -> None:
        array = np.array(table, np.float64)
        names = tuple(variables)
        if array.ndim != len(names):
            raise ModelError(
                f"table of JointTable needs one axis per variable, got {array.ndim} axes for {len(names)} variables"
            )
        if len(set(names)) != len(names):
            raise ModelError(f"variables of JointTable must be different, got {list(names)!r}")
        total = array.sum() if np.isfinite(array).all() else np.nan
        if not (array.size and array.min() >= 0 and 0 < total < np.inf):
            raise ModelError("table of JointTable must hold finite numbers, none negative and not all zero")
        # A table that sums to one but for rounding is kept to the bit.
        if abs(total - 1.0) > 1e-12:
            array /= total
        array.flags.writeable = False
        object.__setattr__(self, "probabilities", array)
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "_axes", {v: i for i, v in enumerate(names)})

    @classmethod
    def of(cls, model: Any) -> JointTable:
        """The joint table of a model of at most ``2**20`` joint states (anything with ``compile()``).

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
        >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
        >>> JointTable.of(net).probabilities
        array([[0.375, 0.125],
               [0.125, 0.375]])
        """
        graph = model.compile()
        structure = getattr(graph, "structure", None)
        if structure is None:
            raise ModelError(f"a joint table needs a discrete model, got one that compiles to {type(graph).__name__}")
        cards = structure.cardinalities.tolist()
        if math.prod(cards) > MAX_STATES or len(cards) > MAX_AXES:
            raise ModelError(
                f"a joint table is made of models of up to 2**{int(math.log2(MAX_STATES))} joint states and {MAX_AXES} "
                f"variables, got 2**{sum(map(math.log2, cards)):.1f} states of {len(cards)} variables"
            )
        graph.check_finite()
        log_joint = np.zeros(cards)
        for f in range(structure.n_factors):
            scope = structure.scope(f)
            # Axes in the order of the variables, with length one for those not in the scope.
            table = graph.table(f).transpose(np.argsort(scope))
            log_joint += table.reshape([card if i in scope else 1 for i, card in enumerate(cards)])
        highest = log_joint.max()
        if highest == -np.inf:
            raise ModelError("a joint table needs a model in which some configuration is possible")
        return cls(np.exp(log_joint - highest), list(graph.variables))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a JointTable cannot be changed; make a new one instead of setting {name}")

    def __reduce__(self) -> Any:
        return JointTable, (self.probabilities, self.variables)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __contains__(self, variable: object) -> bool:
        return variable in self._axes

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        cells = list(islice(np.ndindex(self.probabilities.shape), limit))
        columns = {name: [cell[i] for cell in cells] for i, name in enumerate(self.variables)}
        return columns | {fresh_name("probability", self.variables): [float(self.probabilities[c]) for c in cells]}

    def __repr__(self) -> str:
        shown = ", ".join(f"{v}: {k}" for v, k in zip(self.variables, self.probabilities.shape, strict=True))
        return f"JointTable({shown})"

    @property
    def is_positive(self) -> bool:
        """Whether every configuration is possible."""
        return bool(self.probabilities.min() > 0)

    def grouped(self, *groups: Sequence[Any]) -> npt.NDArray[np.float64]:
        """Marginal table with one axis per group of variables, the last variable of a group fastest."""
        axes = [self._axes[v] for group in groups for v in group]
        rest = tuple(i for i in range(len(self.variables)) if i not in axes)
        marginal = self.probabilities.sum(axis=rest)
        # Axes left, in the table's order, are moved to the order asked for.
        rank = {axis: i for i, axis in enumerate(sorted(axes))}
        sizes = [math.prod(self.probabilities.shape[self._axes[v]] for v in group) for group in groups]
        return np.transpose(marginal, [rank[axis] for axis in axes]).reshape(sizes)


def as_joint_table(distribution: Any, caller: str) -> JointTable:
    """A `JointTable` as it is, a model as its table."""
    if isinstance(distribution, JointTable):
        return distribution
    if callable(getattr(distribution, "compile", None)):
        return JointTable.of(distribution)
    raise ModelError(
        f"{caller} needs a JointTable or a model with compile() as distribution, got {type(distribution).__name__}"
    )
