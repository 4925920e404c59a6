"""Decodings, n-best lists, marginal MAP and least expected losses of every exact method against the oracle."""

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
    check_impossible,
    close_logs,
    exact,
    for_exact,
    subset,
)
from tests.strategies import (
    random_spec,
    specs_with_evidence,
)


class TestDecode:
    @for_exact("decode")
    @KINDS
    @settings(max_examples=EXAMPLES)
    @given(data=st.data())
    def test_agrees_with_the_oracle(self, method: str, kind: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("decode", method, spec, evidence, kind))
                return
            answer = ask("decode", method, spec, evidence, kind)
        except Refused:
            return
        close_logs(answer.score, oracle.best_score)
        close_logs(oracle.score(spec.states(answer.assignment)), oracle.best_score)
        assert answer.states.tolist() == spec.states(answer.assignment)
        assert answer.optimal and answer.guarantee == "exact"
        assert len(answer.n_best) == 1 and answer.n_best[0].assignment == answer.assignment

    @for_exact("decode")
    @settings(max_examples=15)
    @given(data=st.data())
    def test_extreme_potentials(self, method: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(scale=1000.0))
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        try:
            answer = ask("decode", method, spec, evidence)
        except Refused:
            return
        close_logs(answer.score, oracle.best_score)
        close_logs(oracle.score(spec.states(answer.assignment)), oracle.best_score)

    @for_exact("decode")
    @KINDS
    @settings(max_examples=12)
    @given(data=st.data(), k=st.integers(1, 12))
    def test_n_best(self, method: str, kind: str, data: Any, k: int):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        try:
            answer = ask("decode", method, spec, evidence, n_best=k)  # may be refused, on forests too
        except Refused:
            return
        expected = oracle.n_best(k)
        close_logs([s.score for s in answer.n_best], expected)
        rows = [tuple(spec.states(s.assignment)) for s in answer.n_best]
        assert len(set(rows)) == len(rows), "an assignment is listed twice"
        close_logs([oracle.score(row) for row in rows], expected)
        assert answer.n_best[0].assignment == answer.assignment

    @for_exact("decode")
    @KINDS
    @settings(max_examples=15)
    @given(data=st.data(), seed=st.integers(0, 2**16))
    def test_marginal_map(self, method: str, kind: str, data: Any, seed: int):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        wanted = subset(np.random.default_rng(seed), spec.n_variables, 5)
        names = [spec.labels[v] for v in wanted]
        try:
            if oracle.impossible:
                check_impossible(lambda: ask("decode", method, spec, evidence, variables=names))
                return
            answer = ask("decode", method, spec, evidence, variables=names)
        except Refused:
            return
        score, maximisers = oracle.marginal_map(wanted)
        close_logs(answer.score, score)
        assert list(answer.assignment) == names
        assert tuple(int(answer.assignment[name]) for name in names) in maximisers
        summed = np.ones(spec.n_variables, bool)
        summed[wanted] = False
        assert (answer.states[summed] == -1).all() and (answer.states[~summed] >= 0).all()

    @for_exact("decode")
    @settings(max_examples=12)
    @given(data=st.data(), seed=st.integers(0, 2**16))
    def test_least_expected_loss(self, method: str, data: Any, seed: int):
        """Every variable's state minimises its expected cost under its marginal (Murphy 19.79)."""
        if method not in exact("marginals"):
            pytest.skip("needs marginals")
        spec, evidence = data.draw(specs_with_evidence())
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        rng = np.random.default_rng(seed)
        costs = {v: rng.random((spec.cardinalities[v],) * 2) for v in subset(rng, spec.n_variables, 4)}
        hamming = {v: 1.0 - np.eye(card) for v, card in enumerate(spec.cardinalities)}
        for loss, matrices in (("hamming", hamming), (spec.named(costs), hamming | costs)):
            try:
                answer = ask("decode", method, spec, evidence, loss=loss)
            except Refused:
                return
            for v, matrix in matrices.items():
                expected = oracle.marginal(v) @ matrix  # entry [true, decoded]
                assert expected[answer.states[v]] <= expected.min() + TOLERANCE

    @for_exact("decode")
    def test_all_variables_is_the_plain_question(self, method: str):
        spec = random_spec(7, "forest", hard=False)
        whole = ask("decode", method, spec, {}, "forest")
        named = ask("decode", method, spec, {}, "forest", variables=list(spec.labels))
        assert named.score == pytest.approx(whole.score, abs=TOLERANCE)
