"""A region graph laid out flat for the kernels: cells, messages, and which outer region reads which table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.structure import Structure
from markovfield.inference.core.limits import format_bytes
from markovfield.inference.generalized_bp.messages_kernel import RegionLayout, RegionTables, home_regions
from markovfield.inference.generalized_bp.regions import Region, RegionGraph

__all__ = ["RegionPlan", "lay_out_regions"]


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """What depends on the structure alone.

    Attributes
    ----------
    tables
        Where the outer regions read their potentials.
    value_map
        Where the map of each variable's home region to its states starts.
    holders
        For each inner region the number of outer ones around it.
    forward, backward
        Inner regions in the order of even and of odd sweeps.
    """

    graph: RegionGraph
    layout: RegionLayout
    tables: RegionTables
    value_map: IntArray
    holders: npt.NDArray[np.float64]
    forward: IntArray
    backward: IntArray

    @property
    def n_outer_cells(self) -> int:
        """Cells of the outer regions together."""
        return int(self.layout.cell_offsets[-1])

    @property
    def n_inner_cells(self) -> int:
        """Cells of the inner regions together."""
        return int(self.layout.inner_offsets[-1])

    @property
    def n_messages(self) -> int:
        """Entries of all messages together."""
        return int(self.layout.message_offsets[-1])

    def region_holding(self, variables: list[int]) -> int | None:
        """An outer region that holds some variables, the smallest, or None."""
        wanted = set(variables)
        found = [r for r, region in enumerate(self.graph.outer) if wanted.issubset(region)]
        return min(found, key=lambda r: len(self.graph.outer[r]), default=None)


def lay_out_regions(structure: Structure, graph: RegionGraph, memory_limit: float) -> RegionPlan:
    """Lay out a region graph over the variables of a structure of plain tables."""
    cards = structure.cardinalities.astype(np.int64).tolist()
    outer_log2 = _log2_states(graph.outer, structure)
    inner_log2 = _log2_states(graph.inner, structure)
    message_log2 = np.repeat(inner_log2, np.diff(graph.holder_offsets))
    _check_memory(outer_log2, message_log2, memory_limit)
    outer_cells = np.rint(2.0**outer_log2).astype(np.int64)
    inner_cells = np.rint(2.0**inner_log2).astype(np.int64)
    message_cells = np.repeat(inner_cells, np.diff(graph.holder_offsets))
    maps = _Maps([tuple([cards[v] for v in r]) for r in graph.outer], graph.outer)
    parts = np.repeat(np.arange(len(graph.inner)), np.diff(graph.holder_offsets)).tolist()
    message_map = [maps.start(r, graph.inner[b]) for r, b in zip(graph.holders.tolist(), parts, strict=True)]
    tables = _tables(structure, graph)
    value_map = [maps.start(r, (v,)) if r >= 0 else 0 for v, r in enumerate(tables.variable_home.tolist())]
    busiest = np.diff(graph.holder_offsets) * inner_cells
    layout = RegionLayout(
        offsets_of(outer_cells),
        offsets_of(inner_cells),
        graph.holder_offsets,
        graph.holders,
        offsets_of(np.bincount(graph.holders, minlength=len(graph.outer))),
        np.argsort(graph.holders, kind="stable"),
        offsets_of(message_cells),
        np.array(message_map, np.int64),
        maps.flat(),
        np.array([outer_cells.max(initial=1), busiest.max(initial=1)], np.int64),
    )
    forward, backward = _orders(graph)
    holders = np.diff(graph.holder_offsets).astype(np.float64)
    return RegionPlan(graph, layout, tables, np.array(value_map, np.int64), holders, forward, backward)


def _log2_states(regions: tuple[Region, ...], structure: Structure) -> npt.NDArray[np.float64]:
    """log2 of the joint states of each region."""
    owner = np.repeat(np.arange(len(regions)), [len(r) for r in regions])
    log2_cards = np.log2(structure.cardinalities)[[v for r in regions for v in r]]
    return np.bincount(owner, log2_cards, minlength=len(regions)).astype(np.float64)


def _check_memory(outer: npt.NDArray[np.float64], messages: npt.NDArray[np.float64], memory_limit: float) -> None:
    # Potentials, log-beliefs, beliefs and maps of the outer regions; messages.
    needed = float(np.logaddexp2.reduce(np.concatenate([outer + 5.0, messages + 3.0]), initial=-np.inf))
    if needed > np.log2(memory_limit):
        raise MemoryLimitError(
            f"generalized_bp would need {format_bytes(needed)} for {len(outer)} outer regions, the largest of "
            f"2^{outer.max():.1f} states, above the limit of {format_bytes(float(np.log2(memory_limit)))}: "
            "give smaller regions, or use belief_propagation or mini_bucket"
        )


class _Maps:
    """For each shape of region and each part of it: the part's cell under every cell. Few shapes, so few maps."""

    def __init__(self, shapes: list[tuple[int, ...]], regions: tuple[Region, ...]) -> None:
        self.shapes, self.regions = shapes, regions
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.parts: list[npt.NDArray[np.int32]] = []
        self.total = 0

    def start(self, region: int, part: Region) -> int:
        """Where the map from an outer region's cells to those of a part of it starts."""
        position = self.regions[region].index
        axes = tuple([position(v) for v in part])
        shape = self.shapes[region]
        found = self.known.get((shape, axes))
        if found is None:
            found = self.known[shape, axes] = self.total
            kept = [shape[a] if a in axes else 1 for a in range(len(shape))]
            cells = np.arange(int(np.prod(kept)), dtype=np.int32).reshape(kept)
            self.parts.append(np.broadcast_to(cells, shape).ravel())
            self.total += self.parts[-1].size
        return found

    def flat(self) -> npt.NDArray[np.int32]:
        """All maps, one after the other."""
        return np.concatenate([np.zeros(0, np.int32), *self.parts])


def _tables(s: Structure, graph: RegionGraph) -> RegionTables:
    """Give each factor and each variable a home among the outer regions."""
    member_offsets = offsets_of(np.array([len(r) for r in graph.outer], np.int64))
    members = np.array([v for r in graph.outer for v in r], np.int32)
    with_scope = np.flatnonzero(np.diff(s.scope_offsets))
    first = s.scopes[s.scope_offsets[with_scope]]
    by_first = with_scope[np.argsort(first, kind="stable")].astype(np.int64)
    first_offsets = offsets_of(np.bincount(first, minlength=s.n_variables))
    home = home_regions(member_offsets, members, s.scope_offsets, s.scopes, first_offsets, by_first)
    variable_home = np.full(s.n_variables, -1, np.int64)
    owner = np.repeat(np.arange(len(graph.outer)), np.diff(member_offsets))
    variable_home[members[::-1]] = owner[::-1]
    return RegionTables(
        s.cardinalities,
        member_offsets,
        members,
        home,
        variable_home,
        s.scope_offsets,
        s.scopes,
        s.table_offsets,
        s.table_strides,
        s.value_offsets,
    )


def _orders(graph: RegionGraph) -> tuple[IntArray, IntArray]:
    """Inner regions by the first outer region around them, one way and then the other.

    On a junction tree that is from the leaves to the roots and back, what is inside each outer region at once, so that
    two sweeps carry everything everywhere.
    """
    inside: list[list[int]] = [[] for _ in graph.outer]
    parts = np.repeat(np.arange(len(graph.inner)), np.diff(graph.holder_offsets))
    for r, b in zip(graph.holders.tolist(), parts.tolist(), strict=True):
        inside[r].append(b)
    if graph.join_order is None:
        forward = list(dict.fromkeys(b for r in range(len(graph.outer)) for b in inside[r]))
        return np.array(forward, np.int64), np.array(forward[::-1], np.int64)
    down = [b for r in graph.join_order for b in inside[r]]
    up = [b for r in graph.join_order[::-1] for b in inside[r]]
    return np.array(down, np.int64), np.array(up, np.int64)
