"""What must not change an answer: names, orders, threads, preprocessing, how evidence is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.conformance.asking import (
    EXAMPLES,
    Refused,
    ask,
    check_impossible,
    check_marginals,
    close,
    close_logs,
    every,
    for_every,
    for_exact,
    registered,
)
from tests.strategies import (
    Spec,
    Table,
    random_evidence,
    random_spec,
    specs_with_evidence,
)


class TestInvariance:
    @for_exact("marginals")
    @settings(max_examples=12)
    @given(specs_with_evidence("forest"), st.randoms(use_true_random=False))
    def test_relabelling_forests(self, method: str, case: tuple[Spec, dict], random: Any):
        self.check_relabelling(method, *case, random, "forest")

    @for_exact("marginals")
    @settings(max_examples=12)
    @given(specs_with_evidence("graph"), st.randoms(use_true_random=False))
    def test_relabelling_graphs(self, method: str, case: tuple[Spec, dict], random: Any):
        self.check_relabelling(method, *case, random, "graph")

    def check_relabelling(self, method: str, spec: Spec, evidence: dict, random: Any, kind: str) -> None:
        if spec.oracle(evidence).impossible:
            return
        order = list(range(spec.n_variables))
        random.shuffle(order)
        new = {old: i for i, old in enumerate(order)}
        try:
            one = ask("marginals", method, spec, evidence, kind)
            two = ask("marginals", method, spec.permuted(order), {new[v]: e for v, e in evidence.items()}, kind)
        except Refused:
            return
        close_logs(one.log_partition, two.log_partition)
        for label in spec.labels:
            close(one[label], two[label])

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(), st.randoms(use_true_random=False))
    def test_any_elimination_order(self, case: tuple[Spec, dict], random: Any):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        order = list(spec.labels)
        random.shuffle(order)
        for method in (
            mf.methods.JunctionTree(order=tuple(order)),
            mf.methods.JunctionTree(search=0.0),
            mf.methods.JunctionTree(seed=5),
        ):
            answer = mf.marginals(spec.build(), evidence=spec.named(evidence), method=method)
            check_marginals(answer, spec, oracle)
            best = mf.decode(spec.build(), evidence=spec.named(evidence), method=method)
            close_logs(best.score, oracle.best_score)

    @pytest.mark.parametrize("step", ["propagate_zeros", "drop_barren", "simplicial", "almost_simplicial"])
    @pytest.mark.parametrize("kind", ["graph", "bayesian"])
    @settings(max_examples=10)
    @given(data=st.data())
    def test_every_preprocessing_step_is_safe_to_leave_out(self, step: str, kind: str, data: Any):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        method = mf.methods.JunctionTree(**{step: False})
        if oracle.impossible:
            check_impossible(lambda: mf.marginals(spec.build(), evidence=spec.named(evidence), method=method))
            return
        answer = mf.marginals(spec.build(), evidence=spec.named(evidence), method=method)
        check_marginals(answer, spec, oracle)
        close(answer.expected_counts, spec.pool_counts(oracle))

    @for_exact("marginals")
    @settings(max_examples=12)
    @given(specs_with_evidence("forest"))
    def test_evidence_is_clamping(self, method: str, case: tuple[Spec, dict]):
        """Evidence says the same as a factor on the variable: 0 and -inf, or the log-likelihood."""
        spec, evidence = case
        if spec.oracle(evidence).impossible:
            return
        extra, soft = [], {}
        for v, e in evidence.items():
            soft[v] = np.asarray(e, float) if np.ndim(e) else np.eye(spec.cardinalities[v])[e]
            with np.errstate(divide="ignore"):
                extra.append(Table(((v,),), np.log(soft[v])))
        clamped = Spec(spec.cardinalities, (*spec.operations, *extra), spec.labels)
        given_ = ask("marginals", method, spec, evidence, "forest")
        for other in (
            ask("marginals", method, clamped, {}, "forest"),
            ask("marginals", method, spec, soft, "forest"),
        ):
            close_logs(other.log_partition, given_.log_partition)
            for label in spec.labels:
                close(other[label], given_[label])

    @for_every("marginals")
    @pytest.mark.parametrize("seed", range(3))
    def test_threads_do_not_change_the_answer(self, method: str, seed: int):
        spec = random_spec(seed + 60, "forest")
        evidence = random_evidence(seed, spec)
        if spec.oracle(evidence).impossible:
            evidence = {}
        if spec.oracle(evidence).impossible:
            return
        try:
            answers = [ask("marginals", method, spec, evidence, "forest", n_jobs=n, rng=0) for n in (1, 2, 3)]
        except Refused:
            return
        for other in answers[1:]:
            np.testing.assert_array_equal(other.values, answers[0].values)
            np.testing.assert_array_equal(other.log_partition, answers[0].log_partition)

    @for_every("marginals")
    def test_asking_twice_gives_the_same_bits(self, method: str):
        spec = random_spec(31, "forest", hard=False)
        model = spec.build()
        seed = {} if registered("marginals")[method].exact else {"rng": 0}
        first, second = (mf.marginals(model, method=method, **seed) for _ in range(2))
        np.testing.assert_array_equal(first.values, second.values)
        np.testing.assert_array_equal(first.log_partition, second.log_partition)

    @pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
    @pytest.mark.parametrize("seed", range(4))
    def test_inputs_are_never_changed(self, verb: str, seed: int):
        spec = random_spec(seed + 80, "forest", hard=False)
        graph = spec.build().compile()
        evidence = random_evidence(seed, spec)
        named = spec.named(evidence)
        kept = {name: np.array(e) for name, e in named.items()}
        s = graph.structure
        arrays = [
            s.cardinalities,
            s.scopes,
            s.scope_offsets,
            s.table_offsets,
            s.table_strides,
            s.child,
            s.kind,
        ]
        arrays.append(graph.log_tables)
        before = [a.copy() for a in arrays]
        for method in every(verb):
            size = {"size": 4, "rng": 0} if verb == "sample" else {}
            getattr(mf, verb)(graph, evidence=named, method=method, **size)
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)
        assert list(named) == list(kept)
        for name, e in named.items():
            np.testing.assert_array_equal(e, kept[name])

    @for_exact("marginals")
    def test_an_answer_cannot_be_written(self, method: str):
        answer = ask("marginals", method, random_spec(2, "forest", hard=False), {}, "forest")
        with pytest.raises(ValueError, match="read-only"):
            answer.values[0] = 0.5
        with pytest.raises(AttributeError):
            answer.log_partition = 0.0
