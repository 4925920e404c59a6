"""Rules that outputs must keep: combinations of labels that are ruled out when a trained model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.operators import LinearTerms

__all__ = ["constrained"]

Table = npt.NDArray[np.bool_]


def constrained(batch: Batch, constraints: Sequence[Any], per_label: int = 1) -> Batch:
    """A batch in which some combinations of labels are ruled out.

    ``constraints`` has an entry for each example, None or a list of ``(variables, allowed)``: positions within the
    example, and a table of truth values over their labels, or ``"equal"`` or ``"different"``. A label stands for
    ``per_label`` states.
    """
    if not isinstance(constraints, list | tuple) or len(constraints) != batch.n_examples:
        many = f"{len(constraints)}" if isinstance(constraints, list | tuple) else repr(constraints)
        raise ModelError(f"constraints need a list with an entry for each of {batch.n_examples} examples, got {many}")
    added: dict[int, list[tuple[Any, Any]]] = {}
    cards = batch.structure.cardinalities
    for i, given in enumerate(constraints):
        first, last = int(batch.variable_offsets[i]), int(batch.variable_offsets[i + 1])
        for one in _listed(given, i):
            pair = isinstance(one, list | tuple) and len(one) == 2
            if not pair or not isinstance(one[1], str | list | tuple | np.ndarray):
                raise ModelError(f"example {i}: a constraint is a pair (variables, allowed), got {one!r:.60}")
            scope = first + _scope(one[0], last - first, i)
            table = _table(one[1], tuple((cards[scope] // per_label).tolist()), i)
            for axis in range(table.ndim):
                table = np.repeat(table, per_label, axis=axis)
            added.setdefault(len(scope), []).append((scope, np.where(table, 0.0, -np.inf).ravel()))
    kinds = list(batch.factors)
    base = [np.zeros(batch.structure.n_cells) if batch.base is None else batch.base]
    for _, found in sorted(added.items()):
        cells = np.concatenate([table for _, table in found])
        kinds.append(Factors(np.array([scope for scope, _ in found]), LinearTerms(np.zeros((len(cells), 0))), 0))
        base.append(cells)
    made = Batch.of(cards, batch.variable_offsets, kinds, batch.n_weights, batch.labels, base=np.concatenate(base))
    return replace(made, weights=batch.weights, possible=batch.possible, wide_inference=batch.wide_inference)


def _listed(given: Any, index: int) -> Sequence[Any]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise ModelError(
            f"example {index}: its constraints must be None or a list of (variables, allowed), got {given!r:.60}"
        )
    return given


def _array(given: Any, what: str, index: int) -> Any:
    try:
        return np.asarray(given)
    except ValueError:
        raise ModelError(f"example {index}: {what} of a constraint must be an array, got {given!r:.60}") from None


def _scope(variables: Any, n_variables: int, index: int) -> IntArray:
    """Positions of different variables of an example."""
    scope = np.atleast_1d(_array(variables, "variables", index))
    if scope.ndim != 1 or not len(scope) or scope.dtype.kind not in "iu" or len(np.unique(scope)) < len(scope):
        raise ModelError(f"example {index}: a constraint is on positions of different variables, got {variables!r:.60}")
    if scope.min() < 0 or scope.max() >= n_variables:
        raise ModelError(f"example {index}: a constraint is on {variables}, and there are {n_variables} variables")
    return scope.astype(np.int64)


def _table(allowed: Any, shape: tuple[int, ...], index: int) -> Table:
    """Truth values of combinations of labels."""
    if isinstance(allowed, str):
        if allowed not in ("equal", "different") or len(shape) != 2 or shape[0] != shape[1]:
            raise ModelError(f"example {index}: 'equal' and 'different' are constraints on two variables of a kind")
        same: Table = np.eye(shape[0], dtype=bool)
        return same if allowed == "equal" else ~same
    table = _array(allowed, "allowed", index)
    if table.shape != shape:
        raise ModelError(f"example {index}: a constraint needs a table of shape {shape}, got {table.shape}")
    if not np.isin(table, (0, 1)).all():
        raise ModelError(f"example {index}: a constraint needs a table of truth values, got {table.dtype}")
    return table.astype(bool)
