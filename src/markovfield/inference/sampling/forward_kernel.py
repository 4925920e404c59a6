"""Drawing rows of a directed model, parents before children.

Invariant: the variable's own axis is the fastest of its cumulative table, and variable ``order[i]`` uses row i of the
uniform numbers.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["draw_forward"]


@kernel
def draw_forward(
    order, parent_offsets, parents, steps, table_at, cardinalities, cumulative, log_probability, clamped, weighted,
    uniforms, states, log_weights,
):  # fmt: skip
    """Fill ``states[variable, row]`` from the cumulative tables of the variables in ``order``.

    ``order[i]`` is drawn with ``uniforms[i, row]`` from the row of its table that starts at ``table_at[i]`` plus, over
    ``parents[parent_offsets[i]:parent_offsets[i + 1]]``, step times state. Where ``clamped`` is not -1 the variable
    takes that state, and where it is ``weighted`` the log of its probability is added to the row's ``log_weights``.
    """
    n_rows = states.shape[1]
    for i in range(len(order)):
        v = order[i]
        first, last, base = parent_offsets[i], parent_offsets[i + 1], table_at[i]
        if clamped[v] >= 0:
            for row in range(n_rows):
                states[v, row] = clamped[v]
            if weighted[v]:
                for row in range(n_rows):
                    at = base + clamped[v]
                    for j in range(first, last):
                        at += steps[j] * states[parents[j], row]
                    log_weights[row] += log_probability[at]
            continue
        beyond = cardinalities[v] - 1
        for row in range(n_rows):
            at = base
            for j in range(first, last):
                at += steps[j] * states[parents[j], row]
            u = uniforms[i, row]
            # Counting the steps passed has no branch to guess wrong; long tables are searched by halves.
            state = 0
            if beyond <= 16:
                for k in range(beyond):
                    state += u >= cumulative[at + k]
            else:
                high = beyond
                while state < high:
                    middle = (state + high) // 2
                    if u >= cumulative[at + middle]:
                        state = middle + 1
                    else:
                        high = middle
            states[v, row] = state
