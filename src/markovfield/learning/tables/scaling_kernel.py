"""Iterative proportional fitting on a tree of cliques, and on one table as the tree of one clique.

The clique where the walk stands holds a marginal of the fitted table; every other clique holds the right conditional
distribution given its separator towards that clique. To move on, the separator is summed and the next clique
multiplied by what changed in it; to fit a margin, the clique is multiplied by the ratio of what the margin should be to
what it is (Murphy 19.60; Jirousek and Preucil 1995). Margins of a large clique are fitted in blocks: the clique is
summed onto a few of its variables, all margins inside those are fitted there, and the clique is multiplied once.
"""

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.learning.tables.projection_kernel import multiply_by, sum_onto

__all__ = ["BLOCK", "DEVIATION", "LEFT", "MESSAGE", "STEP", "SWEEPS", "UNREACHABLE", "calibrate", "run_sweeps"]

MESSAGE, BLOCK = 0, 1
# Entries of the state: where in the program, sweeps done, the largest deviation of this sweep, a margin that nothing
# can reach (its cell, or -1), and cells of work left.
STEP, SWEEPS, DEVIATION, UNREACHABLE, LEFT = 0, 1, 2, 3, 4
# Less than this is zero: a ratio to it would overflow.
TINY = 1e-290


@kernel
def calibrate(parents, separators, up, down, projections, index, set_at, tables):
    """Collect from the leaves to the roots, so that the walk may begin at the roots.

    Clique k, the set k, has the separator ``separators[k]`` towards its parent, and projections ``up[k]`` and
    ``down[k]`` of itself and of the parent onto it; a parent's number is below its children's. Returns for each clique
    the log of what its table was divided by, and whether every table has a cell that is not zero.
    """
    n = len(parents)
    scale = np.zeros(n)
    for k in range(n - 1, -1, -1):
        table = tables[set_at[k] : set_at[k + 1]]
        total = 0.0
        for c in range(len(table)):
            total += table[c]
        if not 0.0 < total < np.inf:
            return scale, False
        scale[k] = np.log(total)
        for c in range(len(table)):
            table[c] /= total
        if parents[k] >= 0:
            s = separators[k]
            message = tables[set_at[s] : set_at[s + 1]]
            sum_onto(table, projections[up[k]], index, message)
            above = parents[k]
            multiply_by(tables[set_at[above] : set_at[above + 1]], projections[down[k]], index, message)
    return scale, True


@kernel
def _pass_message(step, projections, index, set_at, tables, ratio):
    """Move from one clique to its neighbour."""
    source = tables[set_at[step[1]] : set_at[step[1] + 1]]
    target = tables[set_at[step[2]] : set_at[step[2] + 1]]
    separator = tables[set_at[step[3]] : set_at[step[3] + 1]]
    new = ratio[: len(separator)]
    sum_onto(source, projections[step[4]], index, new)
    for c in range(len(new)):
        old = separator[c]
        separator[c] = new[c]
        new[c] = new[c] / old if old > 0.0 else 0.0
    multiply_by(target, projections[step[5]], index, new)


@kernel
def _fit_margin(table, where, index, target, log_factor, margin, first, state):
    """Multiply a table so that its margin becomes the target; the ratio is added to the factor's logs."""
    sum_onto(table, where, index, margin)
    for c in range(len(margin)):
        now = margin[c]
        state[DEVIATION] = max(state[DEVIATION], abs(target[c] - now))
        if now > TINY:
            margin[c] = target[c] / now
        else:
            margin[c] = 0.0
            if target[c] > 0.0 and state[UNREACHABLE] < 0.0:
                state[UNREACHABLE] = first + c
        if margin[c] > 0.0:
            log_factor[c] += np.log(margin[c])
        else:
            log_factor[c] = -np.inf
    multiply_by(table, where, index, margin)


@kernel
def run_sweeps(
    program, fits, projections, index, set_at, tables, targets, factor_at, log_factors, tolerance, history, state
):
    """Go on with the walk until its deviation is within the tolerance, the history is full, or the work is done.

    Rows of ``program`` are (MESSAGE, from, to, separator, projection of from, projection of to, work) and (BLOCK,
    clique, block, projection or -1 where the block is the clique, first fit, last fit, work); those of ``fits`` are
    (generator's set, projection, number of the generator, where the target begins). ``targets`` has one row for each
    sweep of this call, or one row for all. ``history`` receives the largest deviation of each sweep; returns how many.
    """
    largest = 0
    for s in range(len(set_at) - 1):
        largest = max(largest, set_at[s + 1] - set_at[s])
    ratio = np.empty(largest)
    done = 0
    while done < len(history) and state[LEFT] > 0.0:
        row = min(done, len(targets) - 1)
        at = int(state[STEP])
        while at < len(program) and state[LEFT] > 0.0:
            step = program[at]
            if step[0] == MESSAGE:
                _pass_message(step, projections, index, set_at, tables, ratio)
            else:
                clique = tables[set_at[step[1]] : set_at[step[1] + 1]]
                block = tables[set_at[step[2]] : set_at[step[2] + 1]]
                change = ratio[: len(block)]
                if step[3] >= 0:
                    sum_onto(clique, projections[step[3]], index, block)
                    change[:] = block
                for f in range(step[4], step[5]):
                    g, first = fits[f, 0], fits[f, 3]
                    margin = tables[set_at[g] : set_at[g + 1]]
                    target = targets[row, first : first + len(margin)]
                    a = factor_at[fits[f, 2]]
                    factor = log_factors[a : a + len(margin)]
                    _fit_margin(block, projections[fits[f, 1]], index, target, factor, margin, first, state)
                if step[3] >= 0:
                    for c in range(len(block)):
                        change[c] = block[c] / change[c] if change[c] > 0.0 else 0.0
                    multiply_by(clique, projections[step[3]], index, change)
            state[LEFT] -= step[6]
            at += 1
        state[STEP] = at
        if at == len(program):
            history[done] = state[DEVIATION]
            done += 1
            state[STEP] = 0.0
            state[SWEEPS] += 1.0
            if state[DEVIATION] <= tolerance or state[UNREACHABLE] >= 0.0:
                return done
            state[DEVIATION] = 0.0
    return done
