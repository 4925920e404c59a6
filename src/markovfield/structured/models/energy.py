"""Few weights over given energies (Murphy 19.6.2.6), and binary labels with features of factors (Andres 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import example_count

__all__ = ["BinaryFactorModel", "EnergyModel"]


@dataclass(frozen=True, eq=False)
class EnergyModel(StructuredModel):
    """``p(y | x)`` proportional to ``exp(-sum_j theta_j E_j(x, y))``: a weight for each of a few energy terms.

    An input is ``(cardinalities, factors)``: the number of states of each variable, which may differ, and a list of
    ``(scope, energies)`` with energies ``float[*states, k]``, the contribution of the factor to each of the k terms. An
    output is the state of each variable.

    Parameters
    ----------
    terms
        Names of the terms; numbers when None.

    Examples
    --------
    >>> import numpy as np
    >>> clash = np.array([[[0.0], [1.0]], [[1.0], [0.0]], [[1.0], [2.0]]])
    >>> x = ([3, 2], [([0, 1], clash)])
    >>> model = EnergyModel().shaped([x], [[0, 1]])
    >>> model.encode([x], [[0, 1]]).pool(np.array([2.0])).tolist()
    [0.0, -2.0, -2.0, 0.0, -2.0, -4.0]
    """

    terms: Sequence[str] | None = None

    name: ClassVar[str] = "energy"

    @property
    def takes_hidden(self) -> bool:
        """Energies are given for each state."""
        return False

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The number of terms."""
        given = 0 if self.terms is None else len(self.terms)
        for i, x in enumerate(X):
            for _, energies in self._parts(x, i)[1]:
                given = given or int(np.shape(energies)[-1])
                break
        if not given:
            raise ModelError("no example has a factor, so there is nothing to learn")
        arities = sorted({np.size(scope) for i, x in enumerate(X) for scope, _ in self._parts(x, i)[1]})
        return Shape((), {"terms": given, **{f"arity{a}": a for a in arities}})

    def templates(self) -> Sequence[Template]:
        """The factors of each arity; all have the same weights."""
        return [Template(name, 1, self.known.sizes["terms"]) for name in self.known.sizes if name != "terms"]

    @property
    def layout(self) -> dict[str, tuple[slice, tuple[int, int]]]:  # type: ignore[override]
        """All factors share one vector of weights."""
        k = self.known.sizes["terms"]
        return {t.name: (slice(0, k), (k, 1)) for t in self.templates()}

    def named_weights(self, w: FloatArray) -> dict[str, FloatArray]:
        """The weight of each term."""
        names = self.terms or [str(j) for j in range(len(w))]
        return {name: w[j : j + 1] for j, name in enumerate(names)}

    def _parts(self, x: Any, index: int) -> tuple[npt.NDArray[np.int32], list[tuple[Any, Any]]]:
        if not isinstance(x, tuple | list) or len(x) != 2:
            raise ModelError(f"example {index}: an input is (cardinalities, factors), got {type(x).__name__}")
        cards = np.asarray(x[0])
        if cards.ndim != 1 or not len(cards) or cards.dtype.kind not in "iu" or cards.min() < 1:
            raise ModelError(f"example {index}: cardinalities must be numbers of states of at least 1, got {x[0]}")
        return cards.astype(np.int32), list(x[1])

    def inputs(self, X: Any) -> Inputs:
        """Energies of all factors, with the sign of log-potentials."""
        example_count(X)
        k = self.known.sizes["terms"]
        names = [t.name for t in self.templates()]
        scopes: dict[str, list[Any]] = {name: [] for name in names}
        tables: dict[str, list[Any]] = {name: [np.zeros((0, k))] for name in names}
        all_cards, at = [np.zeros(0, np.int32)], 0
        for i, x in enumerate(X):
            cards, factors = self._parts(x, i)
            for f, (scope, energies) in enumerate(factors):
                where = np.atleast_1d(np.asarray(scope))
                if where.dtype.kind not in "iu" or len(set(where.tolist())) < len(where):
                    raise ModelError(f"example {i}: the scope {scope} of factor {f} must be different variables")
                if where.min() < 0 or where.max() >= len(cards):
                    raise ModelError(f"example {i}: factor {f} is on {scope}, and there are {len(cards)} variables")
                name = f"arity{len(where)}"
                if name not in scopes:
                    raise ModelError(f"example {i}: factors of {len(where)} variables were not seen in training")
                table, shape = np.asarray(energies, np.float64), (*cards[where].tolist(), k)
                if table.shape != shape:
                    raise ModelError(f"example {i}: energies of factor {f} must have shape {shape}, got {table.shape}")
                if not np.isfinite(table).all():
                    raise ModelError(f"example {i}: energies of factor {f} must be finite")
                scopes[name].append(where + at)
                tables[name].append(table.reshape(-1, k))
            all_cards.append(cards)
            at += len(cards)
        placed = {}
        for name in names:
            arity = self.known.sizes[name]
            placed[name] = Placed(
                np.array(scopes[name], np.int64).reshape(-1, arity), terms=-np.concatenate(tables[name])
            )
        return Inputs(offsets_of([len(c) for c in all_cards[1:]]), np.concatenate(all_cards), placed)

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """States of all variables, -1 for None."""
        states = []
        lengths = np.diff(inputs.variable_offsets).tolist()
        for i, (y, length) in enumerate(zip(Y, lengths, strict=True)):
            own = np.array([-1 if v is None else v for v in np.asarray(y, object).ravel()])
            if len(own) != length:
                raise ModelError(f"example {i}: there are {length} variables and {len(own)} states")
            cards = inputs.cardinalities[inputs.variable_offsets[i] : inputs.variable_offsets[i + 1]]
            if own.dtype.kind not in "iub" or (own < -1).any() or (own >= cards).any():
                bad = next((v for v, c in zip(own.tolist(), cards.tolist(), strict=True) if not -1 <= v < c), own[0])
                raise ModelError(f"example {i}: state {bad!r} is out of range")
            states.append(own)
        return np.concatenate(states).astype(np.int32)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """For each example the state of each variable."""
        return np.split(states.astype(np.int64), inputs.variable_offsets[1:-1])


@dataclass(frozen=True, eq=False)
class BinaryFactorModel(EnergyModel):
    """The conditional graphical model of Andres 6.3: binary labels, factors of any arity with features of their own.

    ``H_theta(x, y) = sum_f <theta, phi_f(x_f, y_S(f))>`` is an energy: the most probable labels minimise it. An input
    is a list of ``(scope, features)`` with ``float[2, ..., 2, k]``, the features of the factor for each combination of
    its labels; or a dict with ``"factors"``, that list, and ``"n"``, the number of variables. The theory is convex
    (Lemma 8), so that ``solver="steepest_descent"``, its algorithm 1, and L-BFGS reach the same optimum.

    Examples
    --------
    >>> import numpy as np
    >>> different = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])
    >>> x = [([0, 1], different), ([1, 2], different)]
    >>> model = BinaryFactorModel().shaped([x], [[0, 0, 1]])
    >>> batch = model.encode([x], [[0, 0, 1]])
    >>> batch, batch.joint_features().tolist()
    (Batch(1 example, 3 variables, 2 factors, 1 weights), [-1.0])
    """

    name: ClassVar[str] = "binary_factor"

    def _parts(self, x: Any, index: int) -> tuple[npt.NDArray[np.int32], list[tuple[Any, Any]]]:
        factors = list(x["factors"] if isinstance(x, Mapping) else x)
        try:
            most = max((int(np.max(scope)) for scope, _ in factors), default=-1) + 1
        except (TypeError, ValueError):
            raise ModelError(f"example {index}: an input is a list of (scope, features)") from None
        n = int(x.get("n", most)) if isinstance(x, Mapping) else most
        if n < 1:
            raise ModelError(f"example {index}: there are no variables")
        return np.full(n, 2, np.int32), factors
