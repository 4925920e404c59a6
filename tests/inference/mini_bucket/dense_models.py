"""Random dense models for mini-buckets, and the check that their bounds hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from tests.graphs.independence_cases import sizes
from tests.strategies import Spec, Table, random_evidence

TOLERANCE = 1e-9
seeds = st.integers(0, 2**32 - 1)


def slack(value: float) -> float:
    return TOLERANCE * (1.0 + abs(value))


def dense_spec(seed: int, n: int, scale: float, zeros: float) -> Spec:
    """A frustrated model that a small i_bound must cut: mixed arities and cardinalities, fields, hard zeros."""
    rng = np.random.default_rng(seed)
    cards = rng.choice([2, 2, 3, 4], size=n)
    while np.prod(cards) > 20_000:
        cards[np.argmax(cards)] -= 1
    scopes = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    scopes += [tuple(rng.permutation(n)[: rng.integers(3, 5)].tolist()) for _ in range(3) if n > 4]
    alive = rng.integers(cards, size=(4, n))
    tables = []
    for scope in scopes:
        table = scale * rng.normal(size=[cards[v] for v in scope])
        table[rng.random(table.shape) < zeros] = -np.inf
        # Four assignments stay possible, so that hard zeros leave something to sum over.
        table[tuple(alive[:, list(scope)].T)] = scale * rng.normal(size=4)
        tables.append(Table((scope,), table))
    return Spec(tuple(cards.tolist()), tuple(tables), tuple(f"x{i}" for i in range(n)))


@st.composite
def dense(draw: Any) -> tuple[Spec, dict[int, Any]]:
    n = draw(sizes(9))
    spec = dense_spec(draw(seeds), n, draw(st.sampled_from([2.0, 0.5, 8.0])), draw(st.sampled_from([0.0, 0.2, 0.5])))
    evidence = random_evidence(draw(seeds), spec) if draw(st.booleans()) else {}
    return spec, evidence


def check_bounds(spec: Spec, evidence: dict[int, Any], **options: Any) -> None:
    """Bounds on log Z and on the best score, and that the score is that of the assignment."""
    oracle = spec.oracle(evidence)
    model, known, method = spec.build(), spec.named(evidence), MiniBucket(**options)
    try:
        value = mf.log_partition(model, known, method=method)
        answer = mf.marginals(model, known, method=method)
        best = mf.decode(model, known, method=method)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return
    if oracle.impossible:
        assert value.log_partition_bounds[0] == answer.log_partition_bounds[0] == best.score == -np.inf
        return
    truth = oracle.log_partition
    for found in (value, answer):
        low, high = found.log_partition_bounds
        assert low <= truth + slack(truth) and high >= truth - slack(truth) and high < np.inf
        assert found.log_partition == high
        if found.guarantee == "exact":
            assert low == high
        else:
            assert found.guarantee == "upper"
    assert (best.gap >= 0.0 and best.score + best.gap >= oracle.best_score - slack(truth)) or best.score == -np.inf
    score = oracle.score(spec.states(best.assignment))
    assert best.score == score or best.score == pytest.approx(score, abs=slack(score))
    if best.optimal:
        assert best.score == pytest.approx(oracle.best_score, abs=2 * slack(truth))
    for label in spec.labels:
        assert answer[label].sum() == pytest.approx(1.0, abs=TOLERANCE) and (answer[label] >= 0).all()
