"""Marginals, joints and log Z of every exact method against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.asking import (
    EXAMPLES,
    KINDS,
    TOLERANCE,
    Refused,
    ask,
    check_counts,
    check_impossible,
    check_marginals,
    check_max_marginals,
    close,
    close_logs,
    close_probabilities,
    for_every,
    for_exact,
    registered,
    subset,
)
from tests.strategies import (
    Spec,
    random_spec,
    specs_with_evidence,
)


class TestMarginals:
    @for_exact("marginals")
    @KINDS
    @settings(max_examples=EXAMPLES)
    @given(data=st.data())
    def test_agree_with_the_oracle(self, method: str, kind: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("marginals", method, spec, evidence, kind))
                return
            answer = ask("marginals", method, spec, evidence, kind)
        except Refused:
            return
        check_marginals(answer, spec, oracle)
        check_max_marginals(answer, spec, oracle)
        check_counts(answer, spec, oracle)
        best = answer.mpm()
        for v, label in enumerate(spec.labels):
            assert oracle.marginal(v)[best[label]] >= oracle.marginal(v).max() - TOLERANCE

    @for_exact("marginals")
    @settings(max_examples=15)
    @given(specs_with_evidence(), st.integers(0, 2**16))
    def test_joints(self, method: str, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        wanted = subset(np.random.default_rng(seed), spec.n_variables, 3)
        names = [spec.labels[v] for v in wanted]
        try:
            answer = ask("marginals", method, spec, evidence)
            asked = ask("marginals", method, spec, evidence, targets=[names])
        except Refused:
            return
        for each in (answer, asked):
            close_probabilities(each.joint(names), oracle.joint(wanted))
        for f, (scope, _) in enumerate(spec.factors):
            if answer.graph.structure.kind[f] == 0 and len(scope) <= 3:
                close(answer.factor_marginal(f), oracle.joint(list(dict.fromkeys(scope))))

    @for_exact("marginals")
    @settings(max_examples=20)
    @given(data=st.data())
    def test_extreme_potentials(self, method: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(scale=1000.0))
        oracle = spec.oracle(evidence)
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("marginals", method, spec, evidence))
                return
            answer = ask("marginals", method, spec, evidence)
        except Refused:
            return
        # Scores of 1e4 carry errors of 1e-12, and so do the logs of probabilities.
        check_marginals(answer, spec, oracle, total=TOLERANCE)
        check_max_marginals(answer, spec, oracle)
        check_counts(answer, spec, oracle)

    @for_exact("marginals")
    @settings(max_examples=10)
    @given(specs_with_evidence("forest", scale=400.0))
    def test_extreme_forests(self, method: str, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            check_impossible(lambda: ask("marginals", method, spec, evidence, "forest"))
            return
        check_marginals(ask("marginals", method, spec, evidence, "forest"), spec, oracle, total=TOLERANCE)

    @for_exact("log_partition")
    @KINDS
    @settings(max_examples=EXAMPLES)
    @given(data=st.data())
    def test_log_partition(self, method: str, kind: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("log_partition", method, spec, evidence, kind))
                return
            close_logs(float(ask("log_partition", method, spec, evidence, kind)), oracle.log_partition)
        except Refused:
            return

    @for_every("marginals")
    @pytest.mark.parametrize("seed", range(3))
    def test_answers_say_how_they_were_got(self, method: str, seed: int):
        spec = random_spec(seed, "forest", hard=False)
        answer = ask("marginals", method, spec, {}, "forest")
        assert answer.method == method
        assert answer.seconds >= 0 and isinstance(answer.converged, bool)
        lower, upper = answer.log_partition_bounds
        assert lower <= upper
        if registered("marginals")[method].exact:
            assert answer.guarantee == "exact"
        assert not answer.values.flags.writeable
        assert repr(answer)
