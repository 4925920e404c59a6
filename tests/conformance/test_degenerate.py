"""Impossible evidence, and models with next to nothing in them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import markovfield as mf
from tests.conformance.asking import (
    GENERAL,
    ask,
    check_impossible,
    check_marginals,
    exact,
    for_exact,
)
from tests.strategies import (
    Cpt,
    Spec,
    random_spec,
)


class TestImpossible:
    net = mf.MarkovNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"], "other": 2})
    net.add_factor(["rain", "wet"], [[1, 0], [0, 1]])
    net.add_factor(["other"], [1, 2])

    @pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
    def test_the_evidence_is_named(self, verb: str):
        for method in [*exact(verb)]:
            size = {"size": 4, "rng": 0} if verb == "sample" else {}
            with pytest.raises(mf.ImpossibleEvidenceError, match=r"rain.*no.*wet.*yes"):
                getattr(mf, verb)(self.net, evidence={"rain": "no", "wet": "yes"}, method=method, **size)

    def test_virtual_evidence_is_named(self):
        for method in exact("marginals"):
            with pytest.raises(mf.ImpossibleEvidenceError, match=r"rain.*wet"):
                mf.marginals(self.net, evidence={"rain": [1.0, 0.0], "wet": [0.0, 1.0]}, method=method)

    def test_a_model_without_any_possible_assignment(self):
        net = mf.MarkovNetwork({"A": 2})
        net.add_factor(["A"], [0, 0])
        for method in exact("marginals"):
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.marginals(net, method=method)

    def test_zeros_that_only_a_cycle_reveals(self):
        """Three variables pairwise different with two states: every pair is possible, the triangle is not."""
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        for a, b in ("AB", "BC", "CA"):
            net.add_factor([a, b], [[0, 1], [1, 0]])
        for method in set(exact("marginals")) & GENERAL:
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.marginals(net, method=method)


class TestDegenerate:
    @for_exact("marginals")
    def test_nothing_at_all(self, method: str):
        answer = mf.marginals(mf.MarkovNetwork(), method=method)
        assert answer.log_partition == 0.0 and len(answer) == 0

    @for_exact("marginals")
    def test_variables_without_factors(self, method: str):
        answer = mf.marginals(mf.MarkovNetwork({"A": 3, "B": 1}), method=method)
        assert answer.log_partition == pytest.approx(math.log(3))
        np.testing.assert_allclose(answer["A"], np.full(3, 1 / 3))

    @for_exact("marginals")
    def test_a_constant_factor(self, method: str):
        net = mf.MarkovNetwork({"A": 2})
        net.add_factor([], log_table=-700.25)
        net.add_factor([], log_table=-700.25)
        answer = mf.marginals(net, method=method)
        assert answer.log_partition == pytest.approx(-1400.5 + math.log(2))
        net.add_factor([], 0.0)
        check_impossible(lambda: mf.marginals(net, method=method))

    @for_exact("marginals")
    def test_everything_observed(self, method: str):
        spec = random_spec(9, "forest", hard=False)
        states = [0] * spec.n_variables
        answer = ask("marginals", method, spec, dict(enumerate(states)), "forest")
        assert answer.log_partition == pytest.approx(spec.oracle().score(states))
        for label in spec.labels:
            assert answer[label][0] == 1.0

    @pytest.mark.parametrize("method", sorted(set(exact("decode")) & GENERAL))
    def test_ties_are_listed_apart(self, method: str):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 3))
        answer = mf.decode(net, method=method, n_best=5)
        assert [s.score for s in answer.n_best] == [0.0] * 5
        assert len({tuple(s.assignment.values()) for s in answer.n_best}) == 5

    @for_exact("marginals")
    def test_state_names(self, method: str):
        net = mf.MarkovNetwork({"A": ["low", "high"], "B": [10, 20]})
        net.add_factor(["A", "B"], [[1, 2], [3, 4]])
        answer = mf.marginals(net, evidence={"B": 20}, method=method)
        np.testing.assert_allclose(answer["A"], [2 / 6, 4 / 6])
        assert answer.mpm() == {"A": "high", "B": 20}
        assert answer.probability_of("A", "low") == pytest.approx(1 / 3)
        with pytest.raises(mf.ModelError, match="variable 'B' has no state 1"):
            mf.marginals(net, evidence={"B": 1}, method=method)
        with pytest.raises(mf.ModelError, match=r"did you mean 'A'|its variables are"):
            mf.marginals(net, evidence={"a": "low"}, method=method)

    def test_unknown_method(self):
        with pytest.raises(mf.ModelError, match="junction_tree"):
            mf.marginals(mf.MarkovNetwork({"A": 2}), method="junction_treee")

    @for_exact("marginals")
    def test_barren_variables_still_have_marginals(self, method: str):
        spec = Spec(
            (2, 2, 3),
            (
                Cpt(0, (), np.array([0.3, 0.7])),
                Cpt(1, (0,), np.array([[0.9, 0.1], [0.4, 0.6]])),
                Cpt(2, (1,), np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])),
            ),
            ("A", "B", "C"),
        )
        check_marginals(ask("marginals", method, spec, {0: 1}, "forest"), spec, spec.oracle({0: 1}))
