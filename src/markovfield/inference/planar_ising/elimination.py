"""The Pfaffian behind a planar Ising model: its logarithm, and what is read off its inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.inference.planar_ising.layout_kernel import PIECE
from markovfield.inference.planar_ising.pfaffian_kernel import eliminate, invert, parity, solve
from markovfield.inference.planar_ising.plan import LEAF, PlanarPlan

__all__ = ["Elimination", "eliminate_all"]

WORK = 4e8
"""Multiplications of one call of a kernel: about 0.2 s."""
ROUNDS = 12
"""Of scaling; each halves what the largest entry of a row is away from one, in logs."""


@dataclass(frozen=True, eq=False)
class Elimination:
    """A factored matrix; ``factor`` is empty where only the Pfaffian was asked for.

    Attributes
    ----------
    log_pivots, sign
        The Pfaffian of the scaled matrix, zero where the sign is; its log is the sum of those of all regions.
    log_scale, weight
        Logs of what multiplied rows and columns, and the scaled entry of each edge.
    """

    plan: PlanarPlan
    log_pivots: FloatArray
    sign: int
    log_scale: FloatArray
    weight: FloatArray
    rest: IntArray
    eliminated: IntArray
    starts: IntArray
    factor: FloatArray
    factor_modes: npt.NDArray[np.int32]

    def alike(self, running: Running) -> tuple[FloatArray, FloatArray, float]:
        """Probabilities that the ends of each edge are alike and that they differ, and how far both are from one.

        They are computed from different parts of the inverse, so that a small one is not the rest of a large one.
        """
        plan = self.plan
        entries, cut = np.zeros(plan.n_edges), np.zeros(2 * plan.n_edges)
        place = np.zeros(2 * plan.n_edges, np.int32)
        tops = np.zeros(5, np.int64)
        largest = int((self.rest + self.eliminated).max(initial=0))
        stack = np.zeros(4 * largest**2 + 64)
        node = len(plan.children) - 1
        while node >= 0:
            running.check()
            before = node
            node = invert(
                node,
                WORK,
                plan.children,
                plan.leaf_faces,
                plan.face_offsets,
                plan.face_darts,
                plan.edge_offsets,
                plan.node_edges,
                self.log_scale,
                place,
                self.rest,
                self.eliminated,
                self.starts,
                stack,
                self.factor,
                self.factor_modes,
                tops,
                entries,
                cut,
            )
            if node == before:
                stack = np.concatenate([stack, np.zeros(len(stack))])
        # The derivative of log Pf by the entry at (i, j) is the inverse's entry at (j, i).
        alike = -self.weight * entries
        wrong = np.abs(np.repeat(alike, 2) + cut - 1.0).max(initial=0.0)
        return alike, (cut[::2] + cut[1::2]) / 2, float(wrong) if np.isfinite(wrong) else np.inf

    def solve(self, columns: FloatArray) -> FloatArray:
        """The scaled matrix's inverse times some columns."""
        x = np.ascontiguousarray(columns, np.float64)
        solve(self.rest, self.eliminated, self.starts, self.factor, self.factor_modes, x)
        return x


def _scaling(plan: PlanarPlan, coupling: FloatArray) -> FloatArray:
    """Logs of the factors that bring the largest entry of every row near one."""
    log_scale = -np.repeat(coupling, 2)
    there = plan.corners >= 0
    inside = np.maximum(plan.corners, 0)
    darts = plan.corners[there]
    most = np.empty(len(log_scale))
    for _ in range(ROUNDS):
        table = np.where(there, log_scale[inside], -np.inf)
        # The largest of the others in the same face: the largest, or for that one itself the second largest.
        two = np.sort(np.concatenate([table, np.full((len(table), 2), -np.inf)], axis=1), axis=1)[:, -2:]
        alone = (table == two[:, 1:]) & (two[:, :1] < two[:, 1:])
        others = np.where(alone, two[:, :1], two[:, 1:])
        most[darts] = others[there]
        both = 2 * coupling + log_scale[::2] + log_scale[1::2]
        most = np.maximum(most + log_scale, np.repeat(both, 2))
        log_scale = log_scale - most / 2
    return log_scale


def _grown(array: npt.NDArray[Any], needed: int) -> npt.NDArray[Any]:
    """The array, or a longer one that begins with it."""
    if needed <= len(array):
        return array
    longer = np.empty(needed + needed // 2, array.dtype)
    longer[: len(array)] = array
    return longer


def eliminate_all(
    plan: PlanarPlan,
    coupling: FloatArray,
    sign: FloatArray,
    *,
    keep: bool,
    threshold: float,
    backwards: bool,
    running: Running,
) -> Elimination:
    """Factor the matrix of a plan; ``coupling`` and ``sign`` are given for every edge of the plan."""
    n, nodes = 2 * plan.n_edges, len(plan.children)
    log_scale = _scaling(plan, coupling)
    weight = sign * np.exp(2 * coupling + log_scale[::2] + log_scale[1::2])
    joined, place = np.zeros(n, np.bool_), np.zeros(n, np.int32)
    rest, eliminated = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    starts, tops, sequence = np.zeros((nodes, 2), np.int64), np.zeros(5, np.int64), np.zeros(n, np.int32)
    log_pivots, signs = np.zeros(nodes), np.ones(nodes, np.int8)
    stack, stack_modes = np.empty(64 * n + 1024), np.empty(2 * n + 64, np.int32)
    factor = np.empty(32 * n + 1024 if keep else 0)
    factor_modes = np.empty(4 * n + 64 if keep else 0, np.int32)
    node = 0
    while node < nodes:
        running.check()
        before = node
        node = eliminate(
            node,
            nodes,
            WORK,
            plan.children,
            plan.leaf_faces,
            plan.face_offsets,
            plan.face_darts,
            plan.edge_offsets,
            plan.node_edges,
            log_scale,
            weight,
            threshold,
            np.bool_(backwards),
            np.bool_(keep),
            joined,
            place,
            rest,
            eliminated,
            starts,
            stack,
            stack_modes,
            factor,
            factor_modes,
            tops,
            sequence,
            log_pivots,
            signs,
        )
        if node == before:
            left, right = plan.children[node]
            size = int(rest[left] + rest[right]) if left >= 0 else LEAF * PIECE
            stack = _grown(stack, tops[0] + size**2)
            stack_modes = _grown(stack_modes, tops[1] + size)
            if keep:
                factor = _grown(factor, tops[2] + size**2)
                factor_modes = _grown(factor_modes, tops[3] + size)
    return Elimination(
        plan,
        log_pivots,
        int(np.prod(signs)) * int(parity(sequence)) if tops[4] == n else 0,
        log_scale,
        weight,
        rest,
        eliminated,
        starts,
        factor,
        factor_modes,
    )
