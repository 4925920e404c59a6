"""Marginals from the trace of a count: probability flows from the whole formula down to its components.

Invariant: the trace lists, for each branch, the numbers that `components_kernel.note` defines.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.model_counting.state_kernel import NODES, SECOND_RECORD
from markovfield.kernels.compiler import kernel

__all__ = ["flow"]


@kernel
def _pour(f, trace, record, amount, flows, masses):  # type: ignore[no-untyped-def]
    """Hand a branch's probability to its literals, its free variables and its components."""
    n = len(f.group_of)
    for k in range(record + 1, record + 1 + trace[record]):
        entry = trace[k]
        if entry < 2 * n:
            masses[entry] += amount
        elif entry < 3 * n:
            v = entry - 2 * n
            true = f.mantissas[2 * v] * 2.0 ** np.float64(f.exponents[2 * v])
            false = f.mantissas[2 * v + 1] * 2.0 ** np.float64(f.exponents[2 * v + 1])
            masses[2 * v] += amount * true / (true + false)
            masses[2 * v + 1] += amount * false / (true + false)
        else:
            flows[entry - 3 * n] += amount


@kernel
def flow(f, s, masses):  # type: ignore[no-untyped-def]
    """The probability of every literal, added to ``masses``, after everything was counted with a trace.

    A component's number is higher than those it is split into, so that one pass downwards meets each after all that
    flows into it.
    """
    n_nodes = s.scalars[NODES]
    flows = np.zeros(n_nodes)
    trace, nodes, shares = s.trace, s.nodes, s.shares
    _pour(f, trace, s.level_numbers[0, SECOND_RECORD], 1.0, flows, masses)
    for node in range(n_nodes - 1, -1, -1):
        if flows[node] > 0.0:
            for branch in range(2):
                if nodes[node, branch] >= 0:
                    _pour(f, trace, nodes[node, branch], flows[node] * shares[node, branch], flows, masses)
