"""Clusters of variables, each a tree, over which a mean field factorises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.mean_field.clusters_kernel import grow_chains, join_clusters, root_clusters
from markovfield.inference.mean_field.mean_field_kernel import ClusterLayout, fill_shifts
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.problem import Problem
from markovfield.names import VariableName

__all__ = ["STRUCTURES", "cluster_layout", "clusters_of"]

STRUCTURES = ("naive", "chains", "trees")


def clusters_of(problem: Problem, structure: str | Sequence[Sequence[VariableName]]) -> IntArray:
    """``int64[n]``: the cluster of each variable of a prepared problem.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> graph = net.compile()
    >>> problem = prepare(graph, Evidence.parse(graph.structure, None))
    >>> clusters_of(problem, "trees").tolist(), clusters_of(problem, [["A", "B"], ["C", "D"]]).tolist()
    ([0, 0, 1, 0], [0, 0, 1, 1])
    """
    s = problem.structure
    n = s.n_variables
    if isinstance(structure, str):
        if structure == "naive":
            return np.arange(n)
        offsets, factors = factors_of_variables(n, s.scope_offsets, s.scopes)
        grown: IntArray = grow_chains(s.scope_offsets, s.scopes, offsets, factors)
        if structure == "trees":
            starts, listed = offsets_of(np.bincount(grown)), np.argsort(grown, kind="stable")
            grown = join_clusters(s.scope_offsets, s.scopes, offsets, factors, grown, starts, listed)
        return grown
    cluster = np.full(n, -1, np.int64)
    names = problem.graph.names
    for c, members in enumerate(structure):
        for v in names.positions(members):
            if cluster[v] >= 0:
                raise ModelError(f"variable {names.variables[v]!r} is in two of the sets of MeanField's structure")
            cluster[v] = c
    alone = np.flatnonzero(cluster < 0)
    cluster[alone] = len(structure) + np.arange(len(alone))
    return np.unique(cluster, return_inverse=True)[1].astype(np.int64)


def cluster_layout(problem: Problem, cluster: IntArray) -> ClusterLayout:
    """The parts of all factors in all clusters; raises where a cluster is no tree."""
    s = problem.structure
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    own = cluster[s.scopes]
    order = np.lexsort((np.arange(len(factor)), own, factor))
    factor, own = factor[order], own[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (factor[1:] != factor[:-1]) | (own[1:] != own[:-1])
    first = np.flatnonzero(new)
    member_offsets = np.append(first, len(order)).astype(np.int64)
    members = s.scopes[order]
    cards = s.cardinalities[members].astype(np.int64)
    _guard(np.multiply.reduceat(cards.astype(np.float64), first) if len(first) else np.zeros(0))
    sizes = np.multiply.reduceat(cards, first) if len(first) else np.zeros(0, np.int64)
    cell_offsets = offsets_of(sizes)
    shifts = np.empty(int(cell_offsets[-1]), np.int64)
    fill_shifts(member_offsets, cards, s.table_strides[order], cell_offsets, shifts)

    n, n_clusters = s.n_variables, int(cluster.max(initial=-1)) + 1
    count = np.diff(member_offsets)
    single = np.flatnonzero(count == 1)
    holder = members[first[single]] if len(first) else np.zeros(0, np.int32)
    several = np.repeat(count > 1, count)
    multi_member = members[several]
    multi_part = np.repeat(np.arange(len(first)), count)[several]
    degree = np.bincount(multi_member, minlength=n)
    part_offsets, cluster_parts = np.empty(n_clusters + 1, np.int64), np.empty(int((count > 1).sum()), np.int64)
    parent_member, is_root = np.zeros(len(first), np.int64), np.zeros(n, np.bool_)
    cluster_offsets = offsets_of(np.bincount(cluster, minlength=n_clusters))
    cluster_variables = np.argsort(cluster, kind="stable")
    cycle = root_clusters(
        cluster_offsets, cluster_variables, member_offsets, members, offsets_of(degree),
        multi_part[np.argsort(multi_member, kind="stable")], part_offsets, cluster_parts, parent_member, is_root,
    )  # fmt: skip
    if cycle >= 0:
        v = cycle if cycle < problem.graph.n_variables else -1
        where = f"through variable {problem.graph.variables[v]!r}" if v >= 0 else "through an auxiliary variable"
        raise ModelError(f"a set of MeanField's structure holds a cycle of the factor graph, {where}: cut it")
    to_parent = cards[first + parent_member] if len(first) else np.zeros(0, np.int64)
    most_parts = int(np.bincount(factor[first], minlength=1).max(initial=0)) if len(first) else 0
    limits = [most_parts, int(sizes.max(initial=1)), int(s.cardinalities.max(initial=1))]
    return ClusterLayout(
        s.value_offsets,
        s.table_offsets,
        np.searchsorted(factor[first], np.arange(s.n_factors + 1)).astype(np.int64),
        factor[first].astype(np.int64),
        member_offsets,
        members,
        cell_offsets,
        shifts,
        offsets_of(np.bincount(holder, minlength=n)),
        single[np.argsort(holder, kind="stable")].astype(np.int64),
        cluster_offsets,
        cluster_variables.astype(np.int64),
        part_offsets,
        cluster_parts,
        parent_member,
        offsets_of(np.where(count > 1, to_parent, 0)),
        is_root,
        degree.astype(np.int64),
        np.array(limits, np.int64),
    )


def _guard(sizes: npt.NDArray[np.float64]) -> None:
    """Refuse before the cells of parts are allocated: 24 bytes each."""
    needed = 24.0 * float(sizes.sum())
    if needed > memory_limit_bytes(None):
        raise MemoryLimitError(
            f"mean field would need {format_bytes(float(np.log2(needed)))} for the joint distributions inside its "
            "clusters: use structure='naive'"
        )
