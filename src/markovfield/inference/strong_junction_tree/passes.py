"""Up the tree by exact integrals and sums, and down by moments, draws or maximisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.strong_junction_tree.plan import Plan
from markovfield.inference.strong_junction_tree.potential import Moments, Potential, multiply

__all__ = ["Collected", "collect", "distribute", "draw", "maximisers"]


@dataclass(frozen=True, eq=False)
class Collected:
    """Potentials of all cliques once everything below them is summed, what each sent up, and log Z of each row."""

    plan: Plan
    potentials: tuple[Potential, ...]
    messages: tuple[Potential, ...]
    log_partition: FloatArray


def collect(
    plan: Plan,
    parts: Sequence[Potential],
    cardinalities: IntArray,
    *,
    rows: int = 1,
    maximise: Callable[[int], bool] = lambda v: False,
    check: Callable[[], None] | None = None,
) -> Collected:
    """Eliminate variable after variable, by a maximum where ``maximise`` says so and by a sum or integral elsewhere."""
    place = {v: i for i, v in enumerate(plan.order)}
    waiting: list[list[Potential]] = [[] for _ in plan.order]
    total = np.zeros(rows)

    def hand(part: Potential) -> FloatArray:
        scope = part.discrete + part.continuous
        if not scope:
            return total + part.constant
        waiting[min(place[v] for v in scope)].append(part)
        return total

    for part in parts:
        total = hand(part)
    potentials, messages = [], []
    for i, v in enumerate(plan.order):
        if check is not None:
            check()
        made = multiply(waiting[i], (v, *plan.separators[i]), cardinalities)
        waiting[i] = []
        if cardinalities[v]:
            sent = made.summed(v, maximise=maximise(v))
        else:
            sent = made.eliminated(v, maximise=maximise(v))
        potentials.append(made)
        messages.append(sent)
        total = hand(sent)
    return Collected(plan, tuple(potentials), tuple(messages), total)


def distribute(collected: Collected, cardinalities: IntArray) -> dict[int, Moments]:
    """Moments of the clique of every variable, from the last eliminated to the first.

    A real-valued variable is a regression on the rest of its clique, a discrete one has a probability given it: both
    are read off what was collected, so that nothing is divided by a message.
    """
    plan, rows = collected.plan, len(collected.log_partition)
    found: dict[int, Moments] = {}
    for i in range(len(plan.order) - 1, -1, -1):
        v, near, made = plan.order[i], plan.separators[i], collected.potentials[i]
        if near:
            discrete = [u for u in made.discrete if u != v]
            around = found[near[0]].on(discrete, [u for u in made.continuous if u != v])
        else:
            around = Moments((), (), np.ones(rows), np.zeros((rows, 0)), np.zeros((rows, 0, 0)))
        if cardinalities[v]:
            axis = 1 + made.discrete.index(v)
            share = _share(made, collected.messages[i], axis)
            p = share * np.expand_dims(around.probability, axis)
            empty = np.zeros((*p.shape, 0))
            found[v] = Moments(made.discrete, (), p, empty, np.zeros((*p.shape, 0, 0)))
        else:
            found[v] = _with_number(made, v, around)
    return found


def _share(made: Potential, sent: Potential, axis: int) -> FloatArray:
    """Probabilities of a variable's states given the rest of its clique; zero where that is impossible."""
    below = np.expand_dims(sent.constant, axis)
    return np.asarray(np.exp(made.constant - np.where(np.isneginf(below), 0.0, below)))


def _with_number(made: Potential, v: int, around: Moments) -> Moments:
    weights, bias, variance = made.regression(v)
    crossed = np.einsum("...j,...jk->...k", weights, around.covariance)
    rest = len(around.continuous)
    shape = np.broadcast_shapes(bias.shape, around.probability.shape)
    mean, covariance = np.empty((*shape, rest + 1)), np.empty((*shape, rest + 1, rest + 1))
    mean[..., :rest], covariance[..., :rest, :rest] = around.mean, around.covariance
    mean[..., rest] = bias + np.sum(weights * around.mean, axis=-1)
    covariance[..., rest, :rest] = covariance[..., :rest, rest] = crossed
    covariance[..., rest, rest] = variance + np.sum(weights * crossed, axis=-1)
    p = np.broadcast_to(around.probability, shape)
    return Moments(made.discrete, (*around.continuous, v), p, mean, covariance)


def draw(
    collected: Collected, cardinalities: IntArray, size: int, rng: np.random.Generator
) -> tuple[dict[int, IntArray], dict[int, FloatArray]]:
    """Independent draws given the one row of a batch, variable by variable from the last eliminated to the first."""
    states: dict[int, IntArray] = {}
    numbers: dict[int, FloatArray] = {}
    plan = collected.plan
    for i in range(len(plan.order) - 1, -1, -1):
        v, made = plan.order[i], collected.potentials[i]
        if cardinalities[v]:
            axis = made.discrete.index(v)
            rest = tuple(states[u] for u in made.discrete if u != v)
            share = np.moveaxis(_share(made, collected.messages[i], 1 + axis)[0], axis, -1)[rest]
            bounds = np.cumsum(np.broadcast_to(share, (size, share.shape[-1])), axis=-1)
            drawn = (bounds < rng.random(size)[:, None] * bounds[:, -1:]).sum(axis=-1)
            states[v] = drawn.astype(np.int64)
        else:
            weights, bias, variance = (a[0][tuple(states[u] for u in made.discrete)] for a in made.regression(v))
            around = [numbers[u] for u in made.continuous if u != v]
            mean = bias + (np.sum(weights * np.stack(around, axis=-1), axis=-1) if around else 0.0)
            numbers[v] = mean + np.sqrt(variance) * rng.standard_normal(size)
    return states, numbers


def maximisers(
    collected: Collected, cardinalities: IntArray, wanted: Callable[[int], bool]
) -> tuple[Mapping[int, int], Mapping[int, float]]:
    """The best states and numbers, where maxima were sent up."""
    states: dict[int, Any] = {}
    numbers: dict[int, float] = {}
    plan = collected.plan
    for i in range(len(plan.order) - 1, -1, -1):
        v, made = plan.order[i], collected.potentials[i]
        if not wanted(v):
            continue
        at = tuple(0 if u == -1 else states[u] if u != v else slice(None) for u in (-1, *made.discrete))
        if cardinalities[v]:
            states[v] = int(np.argmax(made.constant[at]))
        else:
            weights, bias, _ = made.regression(v)
            rest = np.array([numbers[u] for u in made.continuous if u != v])
            numbers[v] = float(bias[at] + weights[at] @ rest)
    return states, numbers
