"""How the conformance tests ask every registered method, and how they compare what it says with the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.oracle import Oracle
from tests.strategies import (
    Spec,
)

TOLERANCE = 1e-9
# These take every model; another exact method may refuse one with a ModelError, unless the model is a forest.
GENERAL = {"enumeration", "variable_elimination", "junction_tree", "auto"}
EXAMPLES = 25


def registered(verb: str) -> dict[str, Any]:
    """Methods of a verb; none where they cannot be imported (which `test_methods_are_registered` reports)."""
    try:
        from markovfield.inference.core.registry import methods

        return dict(methods(verb))
    except ImportError:
        return {}


def needs(method: Any) -> str:
    """What sort of model a method takes; nothing where it takes any."""
    return str(getattr(method, "needs", ""))


def exact(verb: str) -> list[str]:
    return [
        *(["auto"] if registered(verb) else []),
        *(n for n, m in sorted(registered(verb).items()) if m.exact and not needs(m)),
    ]


def every(verb: str) -> list[str]:
    return sorted(n for n, m in registered(verb).items() if not needs(m))


def directed(verb: str) -> list[str]:
    """Methods that take directed models only."""
    return sorted(n for n, m in registered(verb).items() if needs(m) == "directed")


for_exact: Callable[[str], pytest.MarkDecorator] = lambda verb: pytest.mark.parametrize("method", exact(verb))  # noqa: E731
for_every: Callable[[str], pytest.MarkDecorator] = lambda verb: pytest.mark.parametrize("method", every(verb))  # noqa: E731
KINDS = pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])


class Refused(Exception):
    """The method does not take this model, and says so."""


def ask(verb: str, method: str, spec: Spec, evidence: Mapping[int, Any], kind: str = "graph", **settings: Any) -> Any:
    """Put a question to a fresh model, by the names a user would use."""
    function = getattr(mf, verb)
    try:
        return function(spec.build(), evidence=spec.named(evidence), method=method, **settings)
    except mf.ModelError:
        if method in GENERAL or (kind == "forest" and not moves_single_sites(verb, method)):
            raise
        raise Refused from None


def moves_single_sites(verb: str, method: str) -> bool:
    """Markov chains refuse hard constraints that keep single changes from reaching every assignment."""
    found = registered(verb).get(method)
    return found is not None and not found.exact and "sample" in found.verbs


def check_impossible(call: Callable[[], Any]) -> None:
    with pytest.raises(mf.ImpossibleEvidenceError):
        call()


def close(ours: Any, theirs: Any, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=tolerance)


def close_logs(ours: Any, theirs: Any) -> None:
    """Logs: equal to 1e-9 (relative once they are large), and -inf exactly where it must be."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    np.testing.assert_array_equal(np.isneginf(ours), np.isneginf(theirs))
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-11, atol=TOLERANCE)


def close_probabilities(ours: np.ndarray, theirs: np.ndarray) -> None:
    close(ours, theirs)
    assert (ours >= 0).all()
    assert (ours[theirs > 1e-290] > 0).all(), "a possible state was given probability zero"
    assert (ours[theirs == 0] == 0).all(), "an impossible state was given a positive probability"


def check_marginals(answer: mf.Marginals, spec: Spec, oracle: Oracle, total: float = 1e-12) -> None:
    close_logs(answer.log_partition, oracle.log_partition)
    assert answer.guarantee == "exact"
    close_logs(answer.log_partition_bounds, [oracle.log_partition] * 2)
    assert list(answer) == list(spec.labels)
    for v, label in enumerate(spec.labels):
        close_probabilities(answer[label], oracle.marginal(v))
        assert answer[label].sum() == pytest.approx(1.0, abs=total)


def check_max_marginals(answer: mf.Marginals, spec: Spec, oracle: Oracle) -> None:
    try:
        maxima = answer.max_marginals
    except mf.ModelError:  # "ask junction_tree for them"
        assert answer.method not in {"enumeration", "junction_tree"}
        return
    for v, label in enumerate(spec.labels):
        close_logs(maxima[label], oracle.max_marginal(v))


def check_counts(answer: mf.Marginals, spec: Spec, oracle: Oracle) -> None:
    try:
        counts = answer.expected_counts
    except mf.ModelError:
        assert answer.method not in {"enumeration", "junction_tree"}
        return
    close(counts, spec.pool_counts(oracle))


def subset(rng: np.random.Generator, n: int, at_most: int) -> list[int]:
    return rng.permutation(n)[: rng.integers(1, at_most + 1)].tolist()


def check_frequencies(seen: np.ndarray, expected: np.ndarray) -> None:
    from scipy.stats import chi2

    assert (seen[expected == 0] == 0).all()
    # Cells expected fewer than five times are counted together.
    rare = expected < 5
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    if keep.sum() < 2:
        return
    statistic = ((seen[keep] - expected[keep]) ** 2 / np.maximum(expected[keep], 1e-9)).sum()
    if expected[-1] > 0 and expected[-1] < 5:
        # The rest cell is still rare: allow its Poisson tail instead of the chi-square approximation.
        statistic -= (seen[-1] - expected[-1]) ** 2 / expected[-1]
        assert seen[-1] < 40
    assert statistic < chi2.isf(1e-6, keep.sum() - 1)
