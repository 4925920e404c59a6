"""The compiled form of everything discrete and factored: a frozen structure and a pool of log-potentials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.factors.conditional_marks import true_marks
from markovfield.factors.factor_kinds import (
    NOISY_MAX,
    cell_reader,
    check_size,
    table_cells,
)
from markovfield.factors.structure import Structure, frozen
from markovfield.frames import Drawn
from markovfield.names import Names

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["FactorGraph"]


@dataclass(frozen=True, eq=False)
class FactorGraph(Drawn, Frozen):
    """A structure and the log-potentials in its cells. Scores are sums of log-potentials and are maximised.

    ``-inf`` is a hard constraint and is exact.

    Parameters
    ----------
    structure, log_tables
        Where the structure marks a factor as a conditional distribution that the tables do not make one, the mark is
        dropped: `structure` is then another, kept with the one given.
    marks_hold
        Whoever makes distributions himself may vouch for them, and spare the check.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> graph = net.compile()
    >>> graph
    FactorGraph(2 variables, 1 factor, 4 cells)
    >>> round(float(graph.score({"A": 0, "B": 0})), 4)
    1.0986
    """

    structure: Structure
    log_tables: FloatArray
    marks_hold: InitVar[bool] = False
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self, marks_hold: bool) -> None:
        tables = frozen(self.log_tables, np.float64)
        if tables.shape != (self.structure.n_cells,):
            raise ModelError(f"log_tables must have shape ({self.structure.n_cells},), got {tables.shape}")
        object.__setattr__(self, "log_tables", tables)
        if not marks_hold:
            object.__setattr__(self, "structure", true_marks(self.structure, tables))

    def __repr__(self) -> str:
        s = self.structure
        return (
            f"FactorGraph({s.n_variables} variable{'s' * (s.n_variables != 1)}, "
            f"{s.n_factors} factor{'s' * (s.n_factors != 1)}, {s.n_cells} cells)"
        )

    def compile(self) -> FactorGraph:
        """Itself: a factor graph is already in its compiled form."""
        return self

    @property
    def names(self) -> Names:
        """Names of variables and states."""
        return self.structure.names

    def _count_states(self, position: int) -> int:
        return int(self.structure.cardinalities[position])

    def _current_names(self) -> Names:
        return self.structure.names

    @property
    def variables(self) -> Sequence[str | int]:
        """Variable names in position order."""
        return self.structure.names.variables

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.structure.n_variables

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.structure.n_factors

    def check_finite(self) -> None:
        """Raise when a log-potential is nan or +inf."""
        bad = np.flatnonzero(np.isnan(self.log_tables) | (self.log_tables == np.inf))
        if len(bad):
            raise ModelError(f"log-potential {self.log_tables[bad[0]]} in cell {bad[0]} is not a number below +inf")

    def with_tables(self, log_tables: npt.ArrayLike) -> FactorGraph:
        """The same structure with other log-potentials; O(1) for a read-only float64 array, plans are kept.

        Factors that were conditional distributions are looked at (a pass over their cells): those that no longer sum to
        one lose their mark, and those that do again have it back.
        """
        declared = self.structure.declared
        return FactorGraph(declared, np.asarray(log_tables, np.float64))

    def cells(self, factor: int) -> npt.NDArray[np.int64]:
        """Pool index of every cell of a factor, shaped like its table (axes as in its scope).

        Costs the size of the table; for a factor of more than 64 axes the result is flat, last axis fastest.
        """
        flat = table_cells(self.structure, factor)
        cards = self.structure.cardinalities[self.structure.scope(factor)]
        return flat.reshape(cards) if len(cards) <= 64 else flat

    def table(self, factor: int) -> FloatArray:
        """Log-potentials of one factor as an array with the axes of its scope (a copy).

        That of a structured factor is computed, and refused beyond 2^24 cells.
        """
        s = self.structure
        if s.kind[factor] != NOISY_MAX:
            return self.log_tables[self.cells(factor)]
        from markovfield.factors.to_tables import noisy_max_table

        shape = [int(c) for c in s.cardinalities[s.scope(factor)]]
        check_size(factor, NOISY_MAX, shape)
        table = noisy_max_table(*self.noisy_max(factor))
        return table.reshape(shape) if len(shape) <= 64 else table.ravel()

    def noisy_max(self, factor: int) -> tuple[list[FloatArray], FloatArray]:
        """Log-probabilities of a noisy-max: for each parent ``[its states, K]``, and those of the leak, ``[K]``."""
        s = self.structure
        if s.kind[factor] != NOISY_MAX:
            raise ModelError(f"factor {factor} is no noisy-max")
        cards = s.cardinalities[s.scope(factor)].tolist()
        starts = (s.table_offsets[factor] + s.strides(factor)).tolist()
        k = cards[-1]
        blocks = [self.log_tables[a : a + c * k].reshape(c, k) for a, c in zip(starts[:-1], cards[:-1], strict=True)]
        return blocks, self.log_tables[starts[-1] : starts[-1] + k]

    def score(self, assignment: dict[Any, Any] | npt.ArrayLike) -> Any:
        """Sum of log-potentials of an assignment: a dict of every variable, or ``int[..., n]`` state indices."""
        s = self.structure
        if isinstance(assignment, dict):
            states = np.full(s.n_variables, -1, np.int64)
            for name, state in assignment.items():
                position = s.names.position(name)
                states[position] = s.names.state(position, state, int(s.cardinalities[position]))
            if (states < 0).any():
                missing = s.names.variables[int(np.flatnonzero(states < 0)[0])]
                raise ModelError(f"the assignment says nothing of variable {missing!r}")
        else:
            states = np.asarray(assignment, np.int64)
            if states.shape[-1:] != (s.n_variables,):
                raise ModelError(f"states need a last axis of {s.n_variables} variables, got shape {states.shape}")
            if states.size and (
                states.min() < 0 or np.any(states.max(axis=tuple(range(states.ndim - 1))) >= s.cardinalities)
            ):
                raise ModelError("a state index is outside its variable's range")
        from markovfield.factors.to_tables import noisy_max_scores

        rows = states.reshape(math.prod(states.shape[:-1]), s.n_variables)
        read = cell_reader(s)
        plain = s.kind != NOISY_MAX if s.has_latent else None
        total = np.empty(len(rows))
        for i, row in enumerate(rows):
            values = self.log_tables[read(row)]
            total[i] = (values if plain is None else values[plain]).sum()
        for f in np.flatnonzero(s.kind == NOISY_MAX).tolist():
            total += noisy_max_scores(*self.noisy_max(f), rows[:, s.scope(f)])
        return total.reshape(states.shape[:-1])[()]

    @staticmethod
    def union(graphs: Iterable[FactorGraph]) -> FactorGraph:
        """Disjoint union: variable ``v`` of the i-th graph becomes ``"i/v"``. Pools are joined, nothing is tied anew.

        Where a graph has both a number and the text of that number as names, the text is quoted: ``"i/'1'"``.
        """
        parts = list(graphs)
        structures = [g.structure for g in parts]
        variable_at = np.cumsum([0] + [s.n_variables for s in structures])
        cell_at = np.cumsum([0] + [s.n_cells for s in structures])
        axis_at = np.cumsum([0] + [len(s.scopes) for s in structures])

        def join(arrays: list[Any], dtype: Any) -> Any:
            return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)

        names: list[str | int] = []
        for i, s in enumerate(structures):
            numbers = (
                set()
                if isinstance(s.names.variables, range)
                else {str(v) for v in s.names.variables if not isinstance(v, str)}
            )
            names += [f"{i}/{v!r}" if isinstance(v, str) and v in numbers else f"{i}/{v}" for v in s.names.variables]
        states = {int(variable_at[i]) + p: t for i, s in enumerate(structures) for p, t in s.names.states.items()}
        structure = Structure.from_arrays(
            join([s.cardinalities for s in structures], np.int32),
            join([np.zeros(1)] + [s.scope_offsets[1:] + axis_at[i] for i, s in enumerate(structures)], np.int64),
            join([s.scopes + variable_at[i] for i, s in enumerate(structures)], np.int32),
            join([s.table_offsets + cell_at[i] for i, s in enumerate(structures)], np.int64),
            join([s.table_strides for s in structures], np.int64),
            n_cells=int(cell_at[-1]),
            child=join(
                [np.where(s.child >= 0, s.child + variable_at[i], -1) for i, s in enumerate(structures)],
                np.int32,
            ),
            kind=join([s.kind for s in structures], np.int8),
            names=Names(names, states),
        )
        return FactorGraph(structure, join([g.log_tables for g in parts], np.float64), marks_hold=True)

    def to_tables(self) -> FactorGraph:
        """An equivalent graph of plain tables only; itself when it has no structured factor.

        Auxiliary variables come after the model's own, so the first ``n_variables`` marginals are those of this graph.
        After the model's own cells come constant tables, and the tables of distance potentials, copied from its cells;
        `own_counts` adds up expected counts. The structural half is done once and kept with the structure.
        """
        return self if self.structure.is_plain else self._as_tables

    @cached_property
    def _as_tables(self) -> FactorGraph:
        structure, constants, origin = self.structure.as_tables
        rest = np.where(origin >= 0, self.log_tables[np.maximum(origin, 0)], constants) if len(origin) else constants
        return FactorGraph(structure, np.concatenate([self.log_tables, rest]), marks_hold=True)

    def _copied(self) -> npt.NDArray[np.int64]:
        """Which of this graph's cells each cell that rewriting appended is a copy of; -1 for constants."""
        return np.zeros(0, np.int64) if self.structure.is_plain else self.structure.as_tables[2]

    def own_counts(self, counts: FloatArray) -> FloatArray:
        """Expected counts of the graph of tables's pool as those of this graph's: copies add to their originals."""
        n, origin = self.structure.n_cells, self._copied()
        copies = np.flatnonzero(origin >= 0)
        if not len(copies) or len(counts) == n:
            return counts[:n]
        return counts[:n] + np.bincount(origin[copies], counts[n + copies], n)

    def reads_own_cells(self) -> npt.NDArray[np.bool_]:
        """For each factor of the graph of tables, whether it reads this graph's cells (or copies), not constants."""
        start = self.to_tables().structure.table_offsets - self.structure.n_cells
        origin = self._copied()
        if not len(origin):
            return np.asarray(start < 0)
        return (start < 0) | (origin[np.maximum(start, 0)] >= 0)

    def to_networkx(self) -> nx.Graph:
        """The bipartite graph: variables by name (``bipartite=0``), factors as ``("factor", i)`` (``bipartite=1``).

        A factor carries its ``log_table`` and its ``scope``, the variables in the order of the table's axes.
        """
        import networkx as nx

        s = self.structure
        graph = nx.Graph()
        for i, name in enumerate(s.names.variables):
            graph.add_node(name, bipartite=0, states=list(s.names.state_names(i, int(s.cardinalities[i]))))
        for f in range(s.n_factors):
            scope = tuple(s.names.variables[v] for v in s.scope(f).tolist())
            graph.add_node(("factor", f), bipartite=1, log_table=self.table(f), scope=scope)
            graph.add_edges_from((("factor", f), v) for v in scope)
        return graph
