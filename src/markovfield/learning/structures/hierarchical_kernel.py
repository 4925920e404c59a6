"""All neighbours of a hierarchical log-linear model at once, on the joint table.

A set of variables is a number whose bit v says that variable v is in it. For every set that comes up, the margin of the
data and where each cell lies in it are kept, so that a step of a search only fits.
"""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["fit_model", "fit_neighbours", "holds"]

TINY = 1e-290


@kernel
def _prepare(mask, cardinalities, counts, filled, index, margin_at, margins):
    """The margin of a set, and the place of every cell in it."""
    if filled[mask]:
        return
    n = len(cardinalities)
    start = margin_at[mask]
    for cell in range(len(counts)):
        rest, place, stride = cell, 0, 1
        for v in range(n - 1, -1, -1):
            state = rest % cardinalities[v]
            rest //= cardinalities[v]
            if mask >> v & 1:
                place += state * stride
                stride *= cardinalities[v]
        index[mask, cell] = place
        margins[start + place] += counts[cell]
    filled[mask] = True


@kernel
def holds(generators, n, mask):
    """Whether a set is inside one of the first n generators."""
    found = False
    for g in range(n):
        found |= generators[g] & mask == mask
    return found


@kernel
def fit_model(generators, n, cardinalities, counts, filled, index, margin_at, margins, tolerance, sweeps, work, table):
    """Fit a table that is in the model to the margins of the first n generators; whether it came to an end.

    It ends when no margin is further from the data's than ``tolerance`` in Pearson's statistic, which is about twice
    what the log-likelihood still lacks.
    """
    for g in range(n):
        _prepare(generators[g], cardinalities, counts, filled, index, margin_at, margins)
    for _ in range(sweeps):
        worst = 0.0
        for g in range(n):
            place = index[generators[g]]
            start = margin_at[generators[g]]
            size = margin_at[generators[g] + 1] - start
            for c in range(size):
                work[c] = 0.0
            for cell in range(len(table)):
                work[place[cell]] += table[cell]
            gap = 0.0
            for c in range(size):
                now, wanted = work[c], margins[start + c]
                if now > TINY:
                    gap += (wanted - now) ** 2 / now
                    work[c] = wanted / now
                else:
                    work[c] = 0.0
            worst = max(worst, gap)
            for cell in range(len(table)):
                table[cell] *= work[place[cell]]
        if worst <= tolerance:
            return True
    return False


@kernel
def _without(mask, generators, n, out):
    """Generators of the model without a generator: the others, and its faces that are in none of them."""
    m = 0
    for g in range(n):
        if generators[g] != mask:
            out[m] = generators[g]
            m += 1
    others = m
    for v in range(64):
        bit = np.int64(1) << v
        if bit > mask:
            break
        face = mask & ~bit
        if mask & bit and face and not holds(out, others, face):
            out[m] = face
            m += 1
    return m


@kernel
def _with(mask, generators, n, out):
    """Generators of the model with a set more."""
    m = 0
    for g in range(n):
        if generators[g] & mask != generators[g]:
            out[m] = generators[g]
            m += 1
    out[m] = mask
    return m + 1


@kernel
def _less_interaction(mask, cardinalities, place, log_table, size, work, table):
    """The table without the interaction of a set: what is left of the mean of its logs over all other variables, after
    taking the mean over each of its own."""
    for c in range(size):
        work[c] = 0.0
    for cell in range(len(log_table)):
        work[place[cell]] += log_table[cell]
    for c in range(size):
        work[c] *= size / len(log_table)
    stride = 1
    for v in range(len(cardinalities) - 1, -1, -1):
        if not mask >> v & 1:
            continue
        card = cardinalities[v]
        for outer in range(0, size, stride * card):
            for inner in range(outer, outer + stride):
                mean = 0.0
                for s in range(card):
                    mean += work[inner + s * stride]
                mean /= card
                for s in range(card):
                    work[inner + s * stride] -= mean
        stride *= card
    for cell in range(len(table)):
        table[cell] = np.exp(log_table[cell] - work[place[cell]])


@kernel
def fit_neighbours(
    generators,
    n,
    terms,
    deleted,
    cardinalities,
    counts,
    filled,
    index,
    margin_at,
    margins,
    tolerance,
    sweeps,
    fitted,
    out,
):
    """Log-likelihoods of the models that differ from a fitted one by one term each, deleted or added.

    ``fitted`` is the fitted table of the model. A neighbour's fit starts from it, less the interaction that is deleted;
    where the table has zeros, from the uniform table.
    """
    cells = len(counts)
    total = 0.0
    least = fitted[0]
    for cell in range(cells):
        total += counts[cell]
        least = min(least, fitted[cell])
    positive = least > TINY
    log_table = np.empty(cells)
    for cell in range(cells):
        log_table[cell] = np.log(fitted[cell]) if positive else 0.0
    table, work = np.empty(cells), np.empty(cells)
    near = np.empty(n + 64, np.int64)
    for t in range(len(terms)):
        if deleted[t]:
            m = _without(terms[t], generators, n, near)
            if positive:
                _prepare(terms[t], cardinalities, counts, filled, index, margin_at, margins)
                size = margin_at[terms[t] + 1] - margin_at[terms[t]]
                _less_interaction(terms[t], cardinalities, index[terms[t]], log_table, size, work, table)
            else:
                table[:] = total / cells
        else:
            m = _with(terms[t], generators, n, near)
            table[:] = fitted
        fit_model(near, m, cardinalities, counts, filled, index, margin_at, margins, tolerance, sweeps, work, table)
        value = 0.0
        for cell in range(cells):
            if counts[cell] > 0.0:
                value += counts[cell] * np.log(table[cell] / total)
        out[t] = value
