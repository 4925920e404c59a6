"""A factor graph made ready for inference under some evidence: in plain tables, reduced, potentials linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf, remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.answers import Components
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.potentials_kernel import factor_ranges, linear_pool
from markovfield.inference.problem.reduction import Reduced, hard_zeros, reduce
from markovfield.kernels.interpreter import CELL, small

__all__ = ["Potentials", "Problem", "component_labels", "prepare"]


_NOTHING = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Potentials:
    """A pool in both spaces.

    Attributes
    ----------
    linear
        exp(log_tables - shift).
    low, high
        log2 of each factor's smallest positive and largest linear potential.
    safe
        Whether every supported cell survived in linear space.
    """

    log_tables: FloatArray
    linear: FloatArray
    shift: float
    low: FloatArray
    high: FloatArray
    safe: bool


@remembered
def potentials(graph: FactorGraph) -> Potentials:
    """The linear potentials of a graph of plain tables; computed once per graph."""
    s = graph.structure
    linear = np.empty(s.n_cells)
    shift, safe = linear_pool(graph.log_tables, linear)
    linear.flags.writeable = False
    low, high = factor_ranges(s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, linear)
    return Potentials(graph.log_tables, linear, shift, low, high, safe)


@dataclass(frozen=True, eq=False)
class Problem:
    """What exact methods solve: a reduced structure of plain tables, its potentials, virtual evidence.

    Attributes
    ----------
    graph
        The graph as the user gave it; answers speak of it.
    reduced
        The reduced problem and the way back; None when nothing was reduced.
    likelihood, active
        Log-likelihood of every variable's states (reduced), and which variables have one.
    """

    graph: FactorGraph
    as_tables: FactorGraph
    evidence: Evidence
    structure: Structure
    potentials: Potentials
    reduced: Reduced | None
    likelihood: FloatArray
    active: npt.NDArray[np.bool_]

    def impossible(self) -> ImpossibleEvidenceError:
        """The error for probability zero, naming the evidence."""
        return self.evidence.impossible(self.graph.structure)

    def expand(self, values: FloatArray, fill: float) -> FloatArray:
        """Values per state of the reduced variables, put where they belong among all states of the user's graph."""
        n_values = int(self.graph.structure.cardinalities.sum()) if self.as_tables is not self.graph else -1
        if self.reduced is None:
            return values if n_values < 0 else values[:n_values]
        offsets = self.as_tables.structure.value_offsets
        out = np.full(int(offsets[-1]), fill)
        counts = self.structure.cardinalities
        out[np.repeat(offsets[:-1], counts) + self.reduced.states] = values
        return out if n_values < 0 else out[:n_values]

    def expand_joint(self, table: FloatArray, variables: Sequence[int]) -> FloatArray:
        """A joint table over the reduced variables' states, put where it belongs among all of theirs."""
        if self.reduced is None:
            return table
        r = self.reduced
        full = np.zeros([int(self.as_tables.structure.cardinalities[v]) for v in variables])
        if len(variables) == 1:
            v = variables[0]
            full[r.states[r.state_offsets[v] : r.state_offsets[v + 1]]] = table
            return full
        full[np.ix_(*(r.states[r.state_offsets[v] : r.state_offsets[v + 1]] for v in variables))] = table
        return full

    def states(self, reduced_states: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """State indices ``[..., n]`` of the reduced problem as those of the user's graph."""
        states = reduced_states
        if self.reduced is not None:
            states = self.reduced.states[self.reduced.state_offsets[:-1] + states]
        return states[..., : self.graph.n_variables].astype(np.int32)

    @property
    def base_values(self) -> FloatArray:
        """``float64[factors]``: the first cell of each factor, which is all of one that no free variable is left in."""
        return self.potentials.log_tables[self.structure.table_offsets]

    def components(
        self, of_factors: FloatArray, of_variables: FloatArray, *, converged: bool = True, iterations: int = 1
    ) -> Components:
        """The connected components of the user's graph, from what each reduced factor and variable adds to log Z."""
        s = self.as_tables.structure
        label, n = component_labels(s)
        first, last = s.scope_offsets[:-1], s.scope_offsets[1:]
        if self.reduced is not None:
            first, last = first[self.reduced.factors], last[self.reduced.factors]
        some = first < last
        value: FloatArray = np.bincount(label, of_variables, n).astype(np.float64)
        value += np.bincount(label[s.scopes[first[some]]], of_factors[some], n)
        return Components(
            label[: self.graph.n_variables], value, np.full(n, converged), np.full(n, iterations, np.int64)
        )

    def counts(self, counts: FloatArray) -> FloatArray:
        """Expected counts of the reduced pool, added up in the cells of the user's graph."""
        if self.reduced is None or not len(self.reduced.cell_origin):
            return self.graph.own_counts(counts)
        out = counts[: self.as_tables.structure.n_cells].copy()
        np.add.at(out, self.reduced.cell_origin, counts[self.as_tables.structure.n_cells :])
        return self.graph.own_counts(out)


def _extend(evidence: Evidence, structure: Structure, reducing: bool) -> npt.NDArray[np.int32]:
    """Observed states of a graph of tables; where domains may shrink, one state is as good as observed."""
    n, states = structure.n_variables, evidence.states
    if len(states) < n:
        states = np.concatenate([states, np.full(n - len(states), -1, np.int32)])
    if not reducing:
        return states
    single = _one_state(structure)
    if len(single):
        states = states.copy()
        states[single] = 0
        states.flags.writeable = False
    return states


@remembered
def component_labels(structure: Structure) -> tuple[npt.NDArray[np.int32], int]:
    """The connected component of each variable, in the order of their first variables, and how many there are.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factor(["A", "C"], [[3.0, 1.0], [1.0, 3.0]])
    >>> component_labels(net.compile().structure)[0].tolist()
    [0, 1, 0, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    s, n = structure, structure.n_variables
    arity = np.diff(s.scope_offsets)
    first = np.repeat(s.scopes[s.scope_offsets[:-1][arity > 0]], arity[arity > 0])
    joined = coo_array((np.ones(len(first), np.int8), (first, s.scopes)), shape=(n, n)).tocsr()
    count, label = connected_components(joined, directed=False)
    return label.astype(np.int32), int(count)


@remembered
def _one_state(structure: Structure) -> npt.NDArray[np.int64]:
    return np.flatnonzero(structure.cardinalities == 1)


def _possible(structure: Structure, likelihoods: Sequence[tuple[int, FloatArray]]) -> npt.NDArray[np.bool_] | None:
    """The states that no likelihood of zero rules out; None where there is none."""
    possible = None
    for v, vector in likelihoods:
        ruled_out = np.isneginf(vector)
        if ruled_out.any():
            if possible is None:
                possible = np.ones(int(structure.value_offsets[-1]), np.bool_)
            possible[structure.value_offsets[v] : structure.value_offsets[v + 1]] &= ~ruled_out
    return possible


_PREPARED: Shelf[Problem] = Shelf(4)


def prepare(
    graph: FactorGraph,
    evidence: Evidence,
    *,
    propagate_zeros: bool = True,
    drop_barren: bool = False,
    drop_separated: bool = False,
    keep: npt.NDArray[np.bool_] | None = None,
) -> Problem:
    """Rewrite a graph in plain tables and reduce it under evidence; settings as for `reduce`.

    Remembered for the last few evidence objects and settings, so that methods that ask each other prepare once.
    """
    # Where no factor is a conditional distribution, none can be dropped as barren.
    drop_barren = drop_barren and (graph.structure.is_marked or drop_separated or keep is not None)
    # Where nothing can be propagated, the problem is the same one.
    propagate_zeros = propagate_zeros or _keeps_domains(graph, evidence)
    key = (propagate_zeros, drop_barren, drop_separated, None if keep is None else keep.tobytes())
    make = partial(_prepare, graph, evidence, propagate_zeros, drop_barren, drop_separated, keep)
    # The problem holds the evidence, so that no other can have its id.
    return _PREPARED.get(graph, (id(evidence), *key), make)


def _keeps_domains(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether no state is ruled out but by what is observed."""
    tables = graph.to_tables()
    return not (evidence.likelihoods or len(_one_state(tables.structure)) or hard_zeros(tables).any())


def _prepare(
    graph: FactorGraph,
    evidence: Evidence,
    propagate_zeros: bool,
    drop_barren: bool,
    drop_separated: bool,
    keep: npt.NDArray[np.bool_] | None,
) -> Problem:
    with small(CELL * graph.to_tables().structure.cells_read):
        return _reduce(graph, evidence, propagate_zeros, drop_barren, drop_separated, keep)


def _reduce(
    graph: FactorGraph,
    evidence: Evidence,
    propagate_zeros: bool,
    drop_barren: bool,
    drop_separated: bool,
    keep: npt.NDArray[np.bool_] | None,
) -> Problem:
    as_tables = graph.to_tables()
    s = as_tables.structure
    pool = potentials(as_tables)
    likelihoods = evidence.likelihoods
    if keep is not None and len(keep) < s.n_variables:
        keep = np.concatenate([keep, np.zeros(s.n_variables - len(keep), np.bool_)])
    if likelihoods and drop_barren:
        keep = np.zeros(s.n_variables, np.bool_) if keep is None else keep.copy()
        keep[[v for v, _ in likelihoods]] = True
    has_zeros = hard_zeros(as_tables) if propagate_zeros else None
    reduced = reduce(
        s,
        as_tables.log_tables,
        _extend(evidence, s, propagate_zeros),
        propagate_zeros=propagate_zeros,
        drop_barren=drop_barren,
        drop_separated=drop_separated,
        keep=keep,
        has_zeros=has_zeros,
        possible=_possible(s, likelihoods) if propagate_zeros else None,
    )
    if reduced.impossible:
        raise evidence.impossible(graph.structure)
    changed = reduced.structure is not s
    structure = reduced.structure
    if changed:
        linear = pool.linear
        if len(reduced.cell_origin):
            linear = np.concatenate([linear, linear[reduced.cell_origin]])
            linear.flags.writeable = False
        factors = reduced.factors
        pool = Potentials(reduced.log_tables, linear, pool.shift, pool.low[factors], pool.high[factors], pool.safe)
    active = np.zeros(structure.n_variables, np.bool_)
    likelihood = _NOTHING
    if likelihoods:
        offsets = structure.value_offsets
        likelihood = np.zeros(int(offsets[-1]))
        for v, vector in likelihoods:
            possible = reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]]
            likelihood[offsets[v] : offsets[v + 1]] += vector[possible]
            active[v] = True
    return Problem(graph, as_tables, evidence, structure, pool, reduced if changed else None, likelihood, active)
