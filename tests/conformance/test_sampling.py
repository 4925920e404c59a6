"""Samples of every registered method: frequencies, seeds, independence; directed models have methods of their own."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.conformance.asking import (
    KINDS,
    Refused,
    ask,
    check_frequencies,
    check_impossible,
    directed,
    for_every,
    for_exact,
    registered,
    subset,
)
from tests.strategies import (
    random_evidence,
    random_spec,
)


class TestSample:
    @for_every("sample")
    @pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
    def test_same_seed_same_samples(self, method: str, kind: str):
        spec = random_spec(21, kind, **({} if kind == "bayesian" else {"hard": False}))
        try:
            first = ask("sample", method, spec, {}, kind, size=50, rng=7)
            again = ask("sample", method, spec, {}, kind, size=50, rng=np.random.default_rng(7))
            other = ask("sample", method, spec, {}, kind, size=50, rng=8)
        except Refused:
            return
        np.testing.assert_array_equal(first.states, again.states)
        assert first.states.shape == (50, spec.n_variables) and first.states.dtype == np.int32
        if spec.oracle().entropy > 0.5:
            assert (first.states != other.states).any()

    @for_exact("sample")
    @KINDS
    @pytest.mark.parametrize("seed", range(4))
    def test_frequencies(self, method: str, kind: str, seed: int):
        """Chi-square of every variable and of one triple, each at a level of 1e-6."""
        spec = random_spec(seed + 40, kind)
        evidence = random_evidence(seed, spec)
        oracle = spec.oracle(evidence)
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("sample", method, spec, evidence, kind, size=5, rng=1))
                return
            size = 4000
            answer = ask("sample", method, spec, evidence, kind, size=size, rng=seed)
        except Refused:
            return
        assert answer.guarantee == "exact"
        scores = oracle.scores[np.ravel_multi_index(answer.states.T, oracle.cardinalities)]
        assert np.isfinite(scores).all(), "an impossible assignment was drawn"
        triple = subset(np.random.default_rng(seed), spec.n_variables, 3)
        for group in [*([v] for v in range(spec.n_variables)), triple]:
            expected = oracle.joint(group).ravel() * size
            cells = np.ravel_multi_index(answer.states[:, group].T, [spec.cardinalities[v] for v in group])
            seen = np.bincount(cells, minlength=len(expected))
            check_frequencies(seen, expected)

    @for_exact("sample")
    def test_draws_are_independent(self, method: str):
        """Successive draws of a fair coin agree half of the time."""
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[3, 1], [1, 3]])
        states = mf.sample(net, 4000, rng=0, method=method).states
        agree = int((states[1:, 0] == states[:-1, 0]).sum())
        check_frequencies(np.array([agree, 3999 - agree]), np.array([3999 / 2, 3999 / 2]))

    @for_every("sample")
    def test_no_samples(self, method: str):
        spec = random_spec(3, "forest", hard=False)
        assert ask("sample", method, spec, {}, "forest", size=0, rng=0).states.shape == (0, spec.n_variables)


@pytest.mark.parametrize("method", directed("sample"))
class TestDirectedSample:
    """Methods for directed models alone; one may refuse evidence, or evidence that is too improbable for it."""

    @pytest.mark.parametrize("seed", range(8))
    def test_frequencies(self, method: str, seed: int):
        spec = random_spec(seed + 40, "bayesian")
        evidence = random_evidence(seed, spec) if seed % 2 else {}
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            with pytest.raises((Refused, mf.ImpossibleEvidenceError)):
                ask("sample", method, spec, evidence, "bayesian", size=5, rng=1)
            return
        try:
            answer = ask("sample", method, spec, evidence, "bayesian", size=4000, rng=seed)
        except Refused:
            assert evidence
            return
        weights = answer.weights
        assert weights.sum() == pytest.approx(1.0)
        scores = oracle.scores[np.ravel_multi_index(answer.states.T, oracle.cardinalities)]
        assert np.isfinite(scores[weights > 0]).all(), "an impossible assignment was drawn"
        for v, label in enumerate(spec.labels):
            expected = oracle.marginal(v)
            if registered("sample")[method].exact:
                assert answer.guarantee == "exact"
                check_frequencies(np.bincount(answer.states[:, v], minlength=len(expected)), expected * 4000)
            found, errors = answer.frequencies(label)
            spread = np.sqrt(expected * (1 - expected) / answer.effective_sample_size)
            slack = 6 * np.maximum(errors, spread) + 6 / answer.effective_sample_size
            assert (np.abs(found - expected) <= slack).all()

    def test_seeds_and_threads(self, method: str):
        spec = random_spec(21, "bayesian")
        first, again, alone, other = (
            ask("sample", method, spec, {}, "bayesian", size=9000, rng=seed, n_jobs=jobs).states
            for seed, jobs in ((7, 4), (7, 4), (7, 1), (8, 4))
        )
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first, alone)
        assert first.dtype == np.int32 and first.shape == (9000, spec.n_variables)
        assert (first != other).any()

    def test_other_models_are_refused(self, method: str):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[3, 1], [1, 3]])
        with pytest.raises(mf.ModelError, match=r"needs a directed model.*junction_tree"):
            mf.sample(net, 10, rng=0, method=method)

    def test_no_samples(self, method: str):
        spec = random_spec(3, "bayesian")
        assert ask("sample", method, spec, {}, "bayesian", size=0, rng=0).states.shape == (0, spec.n_variables)
