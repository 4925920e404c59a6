"""Gibbs sampling of Gaussian fields: a colouring, and sweeps over the colours.

Edges are given as in `messages_kernel`: rows of entries off the diagonal.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["colour_sites", "sweep_sites"]


@kernel
def colour_sites(indptr, indices, colours, taken):
    """Give each site the least colour that no neighbour before it has; returns the number of colours.

    ``colours`` (``int64[n]``) starts at -1; ``taken`` is ``int64[largest degree + 2]``, -1 everywhere.
    """
    most = 0
    for i in range(len(colours)):
        for e in range(indptr[i], indptr[i + 1]):
            c = colours[indices[e]]
            if c >= 0:
                taken[c] = i
        c = 0
        while taken[c] == i:
            c += 1
        colours[i] = c
        most = max(most, c + 1)
    return most


@kernel
def sweep_sites(order, indptr, indices, values, diagonal, information, white, x, total, squares):
    """One sweep of one chain for each row of ``white``, in place in ``x``, ``float64[n]``.

    ``total`` and ``squares`` (``float64[n]``) gather each site's mean given its neighbours and its square.
    """
    for row in range(len(white)):
        for step in range(len(order)):
            i = order[step]
            pull = information[i]
            for e in range(indptr[i], indptr[i + 1]):
                pull -= values[e] * x[indices[e]]
            mean = pull / diagonal[i]
            x[i] = mean + white[row, i] / diagonal[i] ** 0.5
            total[i] += mean
            squares[i] += mean * mean
    return 0
