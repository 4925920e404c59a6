"""What loopy belief propagation knows of a structure, and of the numbers on it, before the first message is sent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, IntArray, offsets_of, sealed
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.beliefs_kernel import (
    linear_tables,
    table_ranges,
    unary_potentials,
    walk_components,
)
from markovfield.inference.belief_propagation.edges_kernel import MessageLayout, factor_sizes, link_edges
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes

__all__ = ["LoopyGraph", "Numbers", "Unary", "loopy_graph", "numbers", "unary_of"]

Pieces = tuple[tuple[int, int], ...]
# Work, in about nanoseconds, of the largest task: the time limit and Ctrl-C are heard between tasks.
GRAIN = 2.0**26
# Tasks below this are not worth another thread.
LEAST = 2.0**17
# A belief whose logs are spread further than this may vanish in linear space.
SPREAD = 600.0
# Log-potentials beyond this are brought to zero first; further from zero than FAR they stay out of linear space.
HARMLESS = 30.0
FAR = 200.0


def _pieces(cost: FloatArray) -> Pieces:
    """Where to cut a list of work, by its cost alone, so that threads change nothing."""
    if not len(cost):
        return ()
    done = np.cumsum(cost)
    grain = min(max(float(done[-1]) / 4, LEAST), GRAIN)
    ends = np.searchsorted(done, np.arange(grain, done[-1], grain), side="right")
    return tuple(pairwise(np.unique(np.concatenate([[0], ends, [len(cost)]])).tolist()))


@dataclass(frozen=True, eq=False)
class LoopyGraph:
    """The structure without its factors of one variable or none: edges, connected components, tasks.

    Attributes
    ----------
    layout
        Edges of the factors kept: the plain tables first, then the structured ones.
    factors, kind
        Position in the structure, and kind, of each factor kept.
    unary_factors, unary_variable, unary_offset, unary_stride
        The plain tables of one variable: their position, variable, base and stride.
    constants
        Pool cells of factors of no variable.
    component, n_components, order
        The connected component of each variable, how many there are, and the variables breadth first.
    variable_tasks, table_tasks, structured_tasks
        Where the variables, the tables and the structured factors are cut.
    """

    layout: MessageLayout
    factors: IntArray
    kind: npt.NDArray[np.int8]
    n_tables: int
    unary_factors: IntArray
    unary_variable: IntArray
    unary_offset: IntArray
    unary_stride: IntArray
    constants: IntArray
    component: npt.NDArray[np.int32]
    n_components: int
    order: IntArray
    variable_tasks: Pieces
    table_tasks: Pieces
    structured_tasks: Pieces

    @property
    def edge_component(self) -> npt.NDArray[np.int32]:
        """The component of each edge."""
        return self.component[self.layout.edge_variable]

    def by_component(self, components: BoolArray) -> BoolArray:
        """Which entries of all messages lie in some of the components."""
        counts = np.diff(self.layout.message_offsets)
        chosen: BoolArray = np.repeat(components[self.edge_component], counts)
        return chosen


@remembered
def loopy_graph(s: Structure) -> LoopyGraph:
    """Work out the layout of a structure once and keep it there; evidence and tables do not matter."""
    arity = np.diff(s.scope_offsets)
    plain = s.kind == TABLE
    unary = np.flatnonzero(plain & (arity == 1))
    tables = np.flatnonzero(plain & (arity > 1))
    structured = np.flatnonzero(~plain & (arity > 0))
    factors = np.concatenate([tables, structured])
    at = s.scope_offsets[unary]
    offsets = offsets_of(arity[factors])
    # The axes of the factors kept, in their new order.
    axes = np.repeat(s.scope_offsets[factors] - offsets[:-1], arity[factors]) + np.arange(offsets[-1])
    scopes, strides = s.scopes[axes], s.table_strides[axes]
    del axes
    edge_factor, variable_offsets, variable_edges = link_edges(s.n_variables, offsets, scopes)
    cards = s.cardinalities[scopes]
    message_offsets = offsets_of(cards)
    n_tables = len(tables)
    axes_of_tables = offsets[n_tables]
    sizes = factor_sizes(s.cardinalities, offsets[: n_tables + 1], scopes[:axes_of_tables])
    largest = float(sizes.max(initial=1.0))
    needed = 16 * largest + 16 * float(message_offsets[-1])
    if needed > memory_limit_bytes(None):
        raise MemoryLimitError(
            f"belief propagation would need {format_bytes(float(np.log2(needed)))} for its messages and for a table of "
            f"2^{np.log2(largest):.1f} cells"
        )
    limits = [int(arity[factors].max(initial=0)), int(s.cardinalities.max(initial=1)), int(largest)]
    for array in (offsets, scopes, strides, edge_factor, variable_offsets, variable_edges, message_offsets):
        array.setflags(write=False)
    layout = MessageLayout(
        offsets,
        scopes,
        edge_factor,
        variable_offsets,
        variable_edges,
        message_offsets,
        s.value_offsets,
        sealed(s.table_offsets[factors]),
        strides,
        sealed(np.array(limits, np.int64)),
        sealed(message_offsets[variable_edges]),
    )
    order, component, n_components = walk_components(layout)
    spread = np.add.reduceat(np.append(cards, 0), offsets[:-1]) if len(factors) else np.zeros(0)
    found = LoopyGraph(
        layout,
        factors,
        sealed(s.kind[factors]),
        n_tables,
        unary,
        sealed(s.scopes[at].astype(np.int64)),
        sealed(s.table_offsets[unary]),
        sealed(s.table_strides[at]),
        s.table_offsets[arity == 0],
        sealed(component),
        int(n_components),
        sealed(order),
        _pieces(10.0 + 5.0 * np.diff(variable_offsets) * s.cardinalities),
        _pieces(10.0 + sizes * arity[tables]),
        _pieces(50.0 + 50.0 * spread[n_tables:]),
    )
    return found


@dataclass(frozen=True, eq=False)
class Numbers:
    """The pool in linear space, and where that will not do.

    Attributes
    ----------
    linear, shift
        exp(log_tables - shift).
    spread
        ``float64[n]``: how far apart, in logs, the messages to each variable can pull its states.
    log_components
        Components of the graph that must run in log space from the start.
    floor
        Smallest entry of a message that linear space may keep; 0 where there are no zeros to tell from small numbers.
    widest
        The largest difference of two log-potentials of one table.
    """

    linear: FloatArray
    shift: float
    spread: FloatArray
    log_components: BoolArray
    floor: float
    widest: float


@remembered
def numbers(graph: FactorGraph) -> Numbers:
    """Linear potentials of a graph and what is known of their range; computed once per graph."""
    s, g = graph.structure, loopy_graph(graph.structure)
    low, high, zero = table_ranges(g.layout, g.n_tables, graph.log_tables)
    # As it is where that does no harm, so that conditional probabilities stay what they are.
    shift = float(high.max(initial=0.0)) if len(high) and np.abs(high).max() > HARMLESS else 0.0
    within = (np.abs(low - shift) <= FAR) & (np.abs(high - shift) <= FAR)
    if not within.all():
        shift = 0.0
        within = (np.abs(low) <= FAR) & (np.abs(high) <= FAR)
    linear = np.empty(s.n_cells)
    linear_tables(graph.log_tables, shift, linear)
    sealed(linear)
    zeros = g.n_tables < len(g.factors) or bool(zero.any())
    first = g.layout.factor_offsets[: g.n_tables]
    arity = np.diff(g.layout.factor_offsets[: g.n_tables + 1])
    edges = g.layout.edge_variable[: int(g.layout.factor_offsets[g.n_tables])]
    spread = np.bincount(edges, np.repeat(high - low, arity), s.n_variables).astype(np.float64)
    log_components = np.zeros(g.n_components, np.bool_)
    log_components[g.component[g.layout.edge_variable[first[~within]]]] = True
    # Products of as many entries as the widest table has axes must stay above the smallest float.
    floor = 10.0 ** (-250.0 / max(5, int(arity.max(initial=0)))) if zeros else 0.0
    return Numbers(linear, shift, spread, log_components, floor, float((high - low).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Unary:
    """What each variable knows without its neighbours: factors of it alone, and evidence.

    ``log`` holds logs, ``linear`` the same with the largest entry of each variable one, ``scales`` what was taken out.
    """

    log: FloatArray
    linear: FloatArray
    scales: FloatArray

    def log_components(self, g: LoopyGraph, known: Numbers) -> BoolArray:
        """Components of the graph in which a belief might vanish in linear space."""
        offsets = g.layout.value_offsets
        components = known.log_components.copy()
        if len(offsets) > 1:
            lowest = np.minimum.reduceat(np.where(self.log > -np.inf, self.log, np.inf), offsets[:-1])
            components[g.component[self.scales - lowest + known.spread > SPREAD]] = True
        return components


def unary_of(graph: FactorGraph, evidence: Evidence) -> Unary:
    """Enter evidence; raises where it leaves a variable without a state."""
    s, g = graph.structure, loopy_graph(graph.structure)
    offsets = s.value_offsets
    log = np.zeros(int(offsets[-1]))
    for v, likelihood in evidence.likelihoods:
        log[offsets[v] : offsets[v + 1]] += likelihood
    states = evidence.states
    if len(states) < s.n_variables:
        states = np.concatenate([states, np.full(s.n_variables - len(states), -1, np.int32)])
        states.setflags(write=False)
    linear, scales = np.empty(len(log)), np.empty(s.n_variables)
    where = (g.unary_variable, g.unary_offset, g.unary_stride)
    dead = unary_potentials(offsets, *where, graph.log_tables, states, log, linear, scales)
    if dead >= 0:
        raise evidence.impossible(s)
    return Unary(log, linear, scales)
