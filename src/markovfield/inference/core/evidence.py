"""What is known about some variables: a state each, or how likely each state makes what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen
from markovfield.columns import code_column, named_columns, read_column, single_row
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure

__all__ = ["Evidence", "no_evidence", "rows"]


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "__array__") and not isinstance(value, np.generic))


def _log_likelihood(structure: Structure, position: int, value: Any) -> FloatArray:
    variable = structure.names.variables[position]
    card = int(structure.cardinalities[position])
    try:
        likelihood = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"the likelihood of variable {variable!r} must be {card} numbers, got {value!r}") from None
    if likelihood.shape != (card,):
        raise ModelError(
            f"the likelihood of variable {variable!r} needs one number for each of its {card} states, "
            f"got shape {likelihood.shape}"
        )
    if not ((likelihood >= 0) & (likelihood < np.inf)).all():
        raise ModelError(
            f"the likelihood of variable {variable!r} must be finite and not negative, got {likelihood.tolist()}"
        )
    if not likelihood.any():
        raise ModelError(f"the likelihood of variable {variable!r} is zero in every state")
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(likelihood)
    log_likelihood.setflags(write=False)
    return log_likelihood


@dataclass(frozen=True, eq=False)
class Evidence(Frozen):
    """Evidence by position.

    Attributes
    ----------
    states
        ``int32[n]``, read-only: the observed state of each variable, or -1.
    likelihoods
        Virtual evidence: pairs of a position and ``float64[cardinality]``, the log-likelihood of what was
        seen under each state.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": ["low", "high"], "B": 3, "C": 2})
    >>> structure = net.compile().structure
    >>> evidence = Evidence.parse(structure, {"A": "high", "C": [0.2, 0.8]})
    >>> evidence.states.tolist()
    [1, -1, -1]
    >>> evidence.describe(structure)
    "A='high', C~[0.2, 0.8]"
    """

    states: npt.NDArray[np.int32]
    likelihoods: tuple[tuple[int, FloatArray], ...] = ()

    @classmethod
    def parse(cls, structure: Structure, evidence: Mapping[Any, Any] | Evidence | None) -> Evidence:
        """Read a dict from variable name to a state or to a likelihood vector (a list or an array).

        A state is given by its name, or by its index where no state name is an int. A pandas Series, or a frame of one
        row, does as well as a dict; what is missing there (NaN, None, pandas.NA) was not seen.
        """
        empty = no_evidence(structure)
        if evidence is None or (isinstance(evidence, Mapping) and not evidence):
            return empty
        if isinstance(evidence, Evidence):
            if len(evidence.states) != structure.n_variables:
                raise ModelError(
                    f"the evidence speaks of {len(evidence.states)} variables, the model has {structure.n_variables}"
                )
            return evidence
        if not isinstance(evidence, Mapping):
            row = single_row(evidence)
            if row is None:
                raise ModelError(f"evidence must be a dict from variable to state, got {type(evidence).__name__}")
            evidence = row
        names, cards = structure.names, structure.cardinalities
        states = empty.states.copy()
        likelihoods = []
        for variable, value in evidence.items():
            position = names.position(variable)
            if type(value) is not str and type(value) is not int:
                if isinstance(value, np.ndarray) and not value.ndim:
                    value = value[()]
                elif _is_vector(value) and not (isinstance(value, tuple) and value in names.states.get(position, ())):
                    likelihoods.append((position, _log_likelihood(structure, position, value)))
                    continue
            states[position] = names.state(position, value, int(cards[position]))
        states.setflags(write=False)
        return cls(states, tuple(likelihoods))

    @classmethod
    def from_clamps(cls, structure: Structure, clamps: npt.ArrayLike | None) -> Evidence:
        """Read an array of state indices, one per variable, -1 for free ones."""
        if clamps is None:
            return cls.parse(structure, None)
        states = np.array(clamps, np.int32)
        cards = structure.cardinalities
        if states.shape != cards.shape:
            raise ModelError(f"clamps must have shape {cards.shape}, got {states.shape}")
        bad = np.flatnonzero((states < -1) | (states >= cards))
        if len(bad):
            v = int(bad[0])
            name = structure.names.variables[v]
            raise ModelError(f"clamp {states[v]} of variable {name!r} is not -1 to {cards[v] - 1}")
        states.flags.writeable = False
        return cls(states)

    def impossible(self, structure: Structure) -> ImpossibleEvidenceError:
        """The error for probability zero, naming the evidence."""
        if self:
            return ImpossibleEvidenceError(
                f"the model gives probability zero to the evidence {self.describe(structure)}"
            )
        return ImpossibleEvidenceError("the model gives probability zero to every assignment, even without evidence")

    def log_likelihood(self, states: npt.NDArray[np.integer[Any]]) -> float:
        """What virtual evidence adds to the score of an assignment of all variables."""
        return sum(float(vector[states[v]]) for v, vector in self.likelihoods)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.likelihoods) or bool((self.states >= 0).any())

    def describe(self, structure: Structure, limit: int = 8) -> str:
        """The evidence in words, at most ``limit`` variables of it."""
        names, cards = structure.names, structure.cardinalities
        observed = np.flatnonzero(self.states >= 0)
        parts = []
        for v in observed[:limit].tolist():
            state = names.state_names(v, int(cards[v]))[int(self.states[v])]
            parts.append(f"{names.variables[v]}={state!r}")
        for v, log_likelihood in self.likelihoods[: limit - len(parts)]:
            shown = ", ".join(f"{x:.4g}" for x in np.exp(log_likelihood[:6]))
            parts.append(f"{names.variables[v]}~[{shown}{', ...' if len(log_likelihood) > 6 else ''}]")
        more = len(observed) + len(self.likelihoods) - len(parts)
        if more:
            parts.append(f"... ({more} more)")
        return ", ".join(parts) if parts else "no evidence"


@remembered
def no_evidence(structure: Structure) -> Evidence:
    """Evidence about nothing: one object for each structure."""
    states = np.full(structure.n_variables, -1, np.int32)
    states.setflags(write=False)
    return Evidence(states)


def _coded(structure: Structure, columns: dict[Any, Any]) -> npt.NDArray[np.int32]:
    """Columns of states by name as rows of state indices: variables without a column are missing in every row."""
    names, read = structure.names, {name: read_column(name, column) for name, column in columns.items()}
    lengths = {len(column) for column in read.values()} or {0}
    if len(lengths) > 1:
        raise ModelError(f"columns of evidence need one number of rows, got {sorted(lengths)}")
    coded = np.full((lengths.pop(), structure.n_variables), -1, np.int32)
    for name, column in read.items():
        v = names.position(name)
        coded[:, v] = code_column(name, tuple(names.state_names(v, int(structure.cardinalities[v]))), column)
    return coded


def rows(structure: Structure, array: Any) -> npt.NDArray[np.int32]:
    """Check a batch of evidence: ``int[rows, n_variables]`` state indices, -1 for missing; read-only int32.

    A frame or a dict of columns has states by name, where NaN, None and pandas.NA are missing; a column that is no
    variable is an error.

    Examples
    --------
    >>> import markovfield as mf
    >>> structure = mf.MarkovNetwork({"A": 2, "B": 3}).compile().structure
    >>> rows(structure, [[0, 2], [-1, 1]]).tolist()
    [[0, 2], [-1, 1]]
    >>> rows(structure, {"B": [2, None]}).tolist()
    [[-1, 2], [-1, -1]]
    """
    n = structure.n_variables
    columns = named_columns(array)
    if columns is not None:
        array = _coded(structure, columns)
    try:
        given = np.asarray(array)
    except ValueError:
        raise ModelError(f"evidence rows need shape (rows, {n}), got rows of different lengths") from None
    if given.ndim != 2 or given.shape[1] != n:
        raise ModelError(f"evidence rows need shape (rows, {n}), got {given.shape}")
    if given.dtype.kind not in "iub" and given.size:
        raise ModelError(f"evidence rows must be integers, -1 for missing, got dtype {given.dtype}")
    if len(given):
        bad = np.flatnonzero((given.min(axis=0) < -1) | (given.max(axis=0) >= structure.cardinalities))
        if len(bad):
            v = int(bad[0])
            card = int(structure.cardinalities[v])
            row = int(np.flatnonzero((given[:, v] < -1) | (given[:, v] >= card))[0])
            raise ModelError(
                f"row {row} has state {given[row, v]} for variable {structure.names.variables[v]!r}, "
                f"expected -1 to {card - 1}"
            )
    result = np.ascontiguousarray(given, np.int32)
    if result.flags.writeable:
        if result is array:
            result = result.view()
        result.setflags(write=False)
    return result
