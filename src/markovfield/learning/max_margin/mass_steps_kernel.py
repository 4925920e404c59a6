"""Ascent of the dual over the planes of one block, by their inner products.

Invariant: masses are at least 0 and their sum stays, and the dual never falls. Free to change: how many steps.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["mass_steps"]


@kernel
def mass_steps(gram, heights, masses, n_steps, enough):
    """Mass moves from the lowest plane that has some to the highest, in place; the rise of the dual."""
    n, rise = len(masses), 0.0
    for _ in range(n_steps):
        best, worst = 0, -1
        for j in range(n):
            if heights[j] > heights[best]:
                best = j
            if masses[j] > 0.0 and (worst < 0 or heights[j] < heights[worst]):
                worst = j
        if worst < 0 or worst == best:
            break
        gain = heights[best] - heights[worst]
        if not gain * masses[worst] > enough:
            break
        curve = gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst]
        step = masses[worst]
        if curve * step > gain:
            step = gain / curve
        rise += step * gain - 0.5 * step * step * curve
        masses[best] += step
        # What is left of a mass must not be less than nothing by rounding.
        masses[worst] = max(masses[worst] - step, 0.0)
        for j in range(n):
            heights[j] -= step * (gram[j, best] - gram[j, worst])
    return rise
