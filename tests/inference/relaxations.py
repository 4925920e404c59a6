"""What the tests of relaxations share: checks against the oracle, and models that are hard to relax."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.oracle import Oracle
from tests.strategies import Spec

__all__ = ["StopAfter", "check", "decoded", "frustrated_lattice", "lattice"]


def decoded(spec: Spec, evidence: Mapping[int, Any], method: Any, **keywords: Any) -> mf.Decoding | None:
    """The answer, checked against the oracle; None where the evidence is impossible, and the method must say so.

    A method may fail to find any assignment free of hard zeros, and then says that.
    """
    oracle = spec.oracle(evidence)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        try:
            answer = mf.decode(spec.build(), evidence=spec.named(evidence), method=method, **keywords)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return None
    assert not oracle.impossible
    check(answer, oracle, spec.states(answer.assignment))
    return answer


def check(answer: mf.Decoding, oracle: Oracle, states: list[int]) -> None:
    """The score is the assignment's, the bound holds, and what is called optimal is."""
    # Solvers see scores less each table's best, and state what they can tell of those.
    constants = sum(float(table.max(initial=-np.inf)) for _, table in oracle.factors)
    room = 1e-6 * max(1.0, abs(oracle.best_score), abs(oracle.best_score - constants))
    assert answer.score == pytest.approx(oracle.score(states), abs=1e-8)
    assert answer.score <= oracle.best_score + 1e-8
    assert answer.upper_bound >= oracle.best_score - max(1e-8, answer.tolerance)
    assert answer.gap >= 0
    if answer.optimal:
        assert answer.score >= oracle.best_score - max(answer.tolerance, 1e-8)
        assert answer.tolerance <= 1.01 * room


def frustrated_lattice(
    rng: np.random.Generator, height: int, width: int, n_states: int, *, field: float = 0.3
) -> tuple[mf.MarkovNetwork, list[tuple[tuple[int, ...], np.ndarray]]]:
    """A lattice of random tables, which no relaxation by pairs solves for sure."""
    n = height * width
    net, factors = mf.MarkovNetwork(dict.fromkeys(range(n), n_states)), []
    for i in range(n):
        factors.append(((i,), field * rng.normal(size=n_states)))
        for j in ([i + 1] if i % width < width - 1 else []) + ([i + width] if i + width < n else []):
            factors.append(((i, j), rng.normal(size=(n_states, n_states))))
    for scope, table in factors:
        net.add_factor(list(scope), log_table=table)
    return net, factors


def lattice(
    rng: np.random.Generator, height: int, width: int, n_states: int, form: str, *, turned: bool = False
) -> mf.FactorGraph:
    """A lattice whose edges are Potts or truncated linear ones of their own weights, one table for each axis, or
    multiples of one."""
    n = height * width
    net = mf.MarkovNetwork(dict.fromkeys(range(n), n_states))
    apart = np.abs(np.arange(n_states)[:, None] - np.arange(n_states))
    right = [(i, i + 1) for i in range(n) if i % width < width - 1]
    below = [(i, i + width) for i in range(n - width)]
    for i in range(n):
        net.add_factor([i], log_table=rng.normal(size=n_states))
    for edges in (right, below):
        if form == "table":
            table = rng.normal(size=(n_states, n_states))
            net.add_factors([e[::-1] if turned else e for e in edges], log_table=table.T if turned else table)
            continue
        if form == "scaled":
            common = -rng.integers(0, 4, size=(n_states, n_states)).astype(float)
            for edge in edges:
                table = float(rng.integers(0, 4)) / 3 * (common - common.max())
                net.add_factor(edge[::-1] if turned else edge, log_table=table.T if turned else table)
            continue
        for edge in edges:
            weight = rng.random()
            table = -weight * (apart > 0) if form == "potts" else -np.minimum(weight * apart, 0.5 + rng.random())
            table += rng.normal()
            net.add_factor(edge[::-1] if turned else edge, log_table=table)
    return net.compile()


class StopAfter:
    """A callback that asks to stop, or raises what Ctrl-C raises, when it is called for the n-th time."""

    def __init__(self, calls: int, *, interrupt: bool = False) -> None:
        self.left, self.interrupt = calls, interrupt

    def __call__(self, progress: mf.answers.Progress) -> bool:
        self.left -= 1
        if self.left <= 0 and self.interrupt:
            raise KeyboardInterrupt
        return self.left <= 0
