"""Solving an Ising model on the plane or a torus: the Pfaffians, their sum, and the check of their digits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.inference.planar_ising.elimination import eliminate_all
from markovfield.inference.planar_ising.moments import ENOUGH, MOST, PlanarSolution
from markovfield.inference.planar_ising.pfaffian_kernel import anneal
from markovfield.inference.planar_ising.plan import PlanarPlan
from markovfield.kernels.random import streams

__all__ = ["solve_plan"]

ATTEMPTS = 8
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Of a Pfaffian, relative, times the square root of how many edges there are: errors of pivots add up at random."""
SMALLEST = 1e-300


def _spins(plan: PlanarPlan, coupling: FloatArray, attempt: int) -> FloatArray:
    """An assignment of low energy to count flips from: strong couplings then cancel least."""
    n = plan.n_vertices
    spins = np.ones(n)
    size = np.abs(coupling[coupling != 0])
    if not len(size) or (size.max() <= 1.0 and not attempt):
        return spins
    order = np.argsort(plan.tails, kind="stable")
    offsets = offsets_of(np.bincount(plan.tails, minlength=n))
    stream = streams(np.random.default_rng(attempt), 1)[0]
    sweeps = 100 if attempt < ATTEMPTS // 2 else 1000
    anneal(offsets, plan.tails[order ^ 1], coupling[order // 2], spins, stream, size.max(), 0.05 * size.mean(), sweeps)
    return spins


def _attempted(
    plan: PlanarPlan, coupling: FloatArray, attempt: int, keep: bool, running: Running
) -> tuple[PlanarSolution | None, float]:
    """One solution, None where nothing is left of it, and the error that no other attempt would be without.

    On a torus, each of the four Pfaffians is a sum over four sorts of cuts, by how often they cross either loop, odd
    or even; all four have those that cut the vertices in two with a plus, and the other three sorts twice with a plus
    and twice with a minus, so that a quarter of their sum is what is wanted (Kasteleyn 1961; Galluccio and Loebl 1999;
    Thomas and Middleton 2009). The other sorts are the same model with the couplings across a loop turned.
    """
    spins = _spins(plan, coupling, attempt)
    turned = coupling * spins[plan.tails[::2]] * spins[plan.tails[1::2]]
    terms, signs, parts = [], [], []
    for sign in plan.signs:
        found = eliminate_all(
            plan,
            turned,
            sign,
            keep=True,
            threshold=0.5 if attempt % 2 else 0.1,
            backwards=attempt % 2 == 1,
            running=running,
        )
        # The term in which nothing is cut has the sign of all edges together; it counts as plus.
        signs.append(found.sign * float(np.prod(sign)))
        if found.sign:
            parts.append(found.alike(running))
        terms.append(found if keep else replace(found, factor=np.empty(0), factor_modes=np.empty(0, np.int32)))
    if len(parts) < len(terms):
        return None, 0.0
    top = max((term.log_pivots for term in terms), key=math.fsum)
    # Rows and columns of all terms are scaled alike. The logs are large, and what they differ by is wanted in full.
    sizes = np.array(signs) * np.exp([math.fsum((*term.log_pivots, *-top)) for term in terms])
    total = float(sizes.sum())
    each = np.array([p[2] for p in parts])
    certain = 0.0
    if len(terms) > 1:
        least = ROUNDING * np.sqrt(plan.n_edges)
        certain = least * np.abs(sizes).sum() / max(abs(total), SMALLEST) if each.max() <= ENOUGH else 0.0
        each = np.maximum(each, least)
    if not total > 0.0:
        return None, certain
    shares = sizes / total
    alike, differ = (np.einsum("t,te->e", shares, np.array([p[side] for p in parts])) for side in range(2))
    # Where one Pfaffian is nearly zero its inverse is large, and its share makes up for that.
    wrong = float(np.abs(shares) @ each)
    value = math.fsum((*top, *-terms[0].log_scale, *-turned, math.log(2.0 * total / len(terms))))
    solution = PlanarSolution(
        tuple(terms), shares, coupling, lambda c: solve_plan(plan, c, Running()), value, spins, alike, differ, wrong
    )
    return solution, certain


def solve_plan(plan: PlanarPlan, coupling: FloatArray, running: Running, *, keep: bool = True) -> PlanarSolution:
    """Eliminate until two computations of the same probabilities agree, from other assignments if need be.

    ``coupling`` has one for every edge of the plan. Without ``keep``, moments of spins without an edge between them
    cannot be asked for, and less memory is held.
    """
    best = None
    for attempt in range(ATTEMPTS):
        found, certain = _attempted(plan, coupling, attempt, keep, running)
        if certain > MOST:
            raise ModelError(
                f"method 'planar' loses its digits on this torus with couplings as strong as "
                f"{np.abs(coupling).max():.3g}: with those across a row or column turned, Z would be so much larger "
                f"that the four Pfaffians cancel; scale the couplings down, or take junction_tree or mini_bucket"
            )
        if found is not None and (best is None or found.wrong < best.wrong):
            best = found
        if best is not None and best.wrong <= max(ENOUGH, 2.0 * certain):
            break
    if best is None or not best.wrong <= MOST:
        raise ModelError(
            f"method 'planar' loses its digits on couplings as strong as {np.abs(coupling).max():.3g} "
            f"(its check is off by {np.inf if best is None else best.wrong:.1g}): scale them down, or take "
            f"junction_tree or mini_bucket"
        )
    return best
