"""Every registered method of every verb against the oracle: a new method is tested by being registered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.oracle import Oracle
from tests.strategies import (
    Clause,
    Cpt,
    Spec,
    Table,
    random_evidence,
    random_spec,
    specs,
    specs_with_evidence,
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
    """What sort of model a method takes; nothing where it takes any (tests/test_special_models.py has the others)."""
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


@pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
def test_methods_are_registered(verb: str):
    from markovfield.inference.core.registry import methods

    found = methods(verb)
    assert {"enumeration", "junction_tree"} <= set(found)
    if verb == "marginals":
        assert {"belief_propagation", "variable_elimination"} <= set(found)
    for name, method in found.items():
        assert method.name == name and verb in method.verbs and isinstance(method.exact, bool)
        assert method() == method(), "methods are frozen dataclasses, equal when their settings are"


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


class TestProbability:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(), st.integers(0, 2**16))
    def test_agrees_with_the_oracle(self, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        rng = np.random.default_rng(seed)
        event: dict[int, Any] = {}
        for v in subset(rng, spec.n_variables, 3):
            card = spec.cardinalities[v]
            states = rng.permutation(card)[: rng.integers(1, card + 1)].tolist()
            event[v] = states if rng.random() < 0.6 else states[0]
        wanted = {v: (s if isinstance(s, list) else [s]) for v, s in event.items()}

        def call() -> float:
            return mf.probability(spec.build(), spec.named(event), evidence=spec.named(evidence))

        if oracle.impossible:
            check_impossible(call)
            return
        close(float(call()), oracle.probability(wanted))

    def test_of_an_event_the_evidence_rules_out(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[1, 0], [0, 1]])
        assert mf.probability(net, {"A": 0}, evidence={"B": 1}) == 0.0
        assert mf.probability(net, {"A": [0, 1]}, evidence={"B": 1}) == 1.0


class TestAggregate:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False), st.integers(1, 6))
    def test_semirings(self, case: tuple[Spec, dict], k: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return

        def aggregate(semiring: Any) -> Any:
            return mf.analysis.aggregate(spec.build(), semiring, evidence=spec.named(evidence))

        close_logs(aggregate("sum_product"), oracle.log_partition)
        close_logs(aggregate("max_sum"), oracle.best_score)
        np.testing.assert_allclose(aggregate("max_product"), math.exp(oracle.best_score), rtol=1e-9)
        count = aggregate("counting")
        assert isinstance(count, int) and count == oracle.count
        close(aggregate("entropy"), oracle.entropy)
        close_logs(aggregate(mf.semirings.KBest(k)), oracle.n_best(k))

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False, hard=False))
    def test_lowest_score(self, case: tuple[Spec, dict]):
        spec, evidence = case
        lowest = mf.analysis.aggregate(spec.build(), "min_sum", evidence=spec.named(evidence))
        close_logs(lowest, spec.oracle(evidence).lowest_score)

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(), st.integers(0, 2**16))
    def test_expectation(self, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        values = np.random.default_rng(seed).normal(size=spec.n_cells)
        ours = mf.analysis.aggregate(spec.build(), mf.semirings.Expectation(values), evidence=spec.named(evidence))
        close(ours, oracle.expectation(spec.from_pool(values)))

    @pytest.mark.parametrize(("n", "card"), [(12, 2), (33, 3), (22, 5), (53, 2)])
    def test_counts_below_two_to_the_53_are_exact(self, n: int, card: int):
        net = mf.MarkovNetwork(dict.fromkeys(range(n), card))
        net.add_factors([(i, i + 1) for i in range(0, n - 1, 2)], np.ones((card, card)))
        assert mf.analysis.aggregate(net, "counting") == card**n

    def test_counts_that_floats_hold_exactly(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(200), 3))
        net.add_factors([(i, i + 1) for i in range(199)], 1 - np.eye(3))
        assert mf.analysis.aggregate(net, "counting") == 3 * 2**199  # proper colourings of a path

    def test_counting_nothing(self):
        net = mf.MarkovNetwork({"A": 2})
        net.add_factor(["A"], [0, 1])
        assert mf.analysis.aggregate(net, "counting", evidence={"A": 0}) == 0


class TestCompiled:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence())
    def test_run(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:  # where even no evidence is possible, compiling says so already
            check_impossible(lambda: mf.methods.JunctionTree.compile(spec.build()).run(spec.named(evidence)))
            return
        tree = mf.methods.JunctionTree.compile(spec.build())
        check_marginals(tree.run(spec.named(evidence)), spec, oracle)
        check_marginals(tree.run(), spec, spec.oracle())
        check_marginals(tree.run(spec.named(evidence)), spec, oracle)

    @pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
    @settings(max_examples=12)
    @given(data=st.data(), seed=st.integers(0, 2**16))
    def test_a_batch_is_its_rows(self, kind: str, data: Any, seed: int):
        spec = data.draw(specs(kind))
        oracle = spec.oracle()
        if oracle.impossible:
            return
        rng = np.random.default_rng(seed)
        # Rows that can happen: possible assignments with most entries hidden.
        rows = oracle.states[rng.choice(len(oracle.states), 9, p=oracle.probabilities.astype(float))]
        rows = np.where(rng.random(rows.shape) < 0.7, -1, rows)
        kept = rows.copy()
        tree = mf.methods.JunctionTree.compile(spec.build())
        batch = tree.run_batch(rows)
        np.testing.assert_array_equal(rows, kept)
        assert batch.log_partition.shape == (9,)
        for i, row in enumerate(rows.tolist()):
            each = spec.oracle({v: s for v, s in enumerate(row) if s >= 0})
            close_logs(batch.log_partition[i], each.log_partition)
            for v, label in enumerate(spec.labels):
                assert batch[label].shape == (9, spec.cardinalities[v])
                close_probabilities(batch[label][i], each.marginal(v))

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False))
    def test_expected_counts(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        graph = spec.build().compile()
        clamps = np.full(spec.n_variables, -1)
        for v, state in evidence.items():
            clamps[v] = state
        if oracle.impossible:
            check_impossible(lambda: mf.expected_counts(graph.structure, graph.log_tables, clamps))
            return
        kept = clamps.copy()
        log_partition, counts = mf.expected_counts(graph.structure, graph.log_tables, clamps)
        close_logs(log_partition, oracle.log_partition)
        assert counts.shape == (spec.n_cells,) and counts.dtype == np.float64
        close(counts, spec.pool_counts(oracle))
        np.testing.assert_array_equal(clamps, kept)

    def test_expected_counts_are_the_gradient_of_log_partition(self):
        spec = random_spec(11, hard=False, clauses=True)
        graph = spec.build().compile()
        _, counts = mf.expected_counts(graph.structure, graph.log_tables)
        step = 1e-5
        for cell in range(0, spec.n_cells, max(1, spec.n_cells // 12)):
            moved = []
            for sign in (1, -1):
                tables = graph.log_tables.copy()
                tables[cell] += sign * step
                moved.append(mf.expected_counts(graph.structure, tables)[0])
            assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(counts[cell], abs=1e-7)

    def test_other_tables_on_the_same_structure(self):
        spec = random_spec(5, hard=False)
        graph = spec.build().compile()
        rng = np.random.default_rng(0)
        for _ in range(3):
            tables = rng.normal(size=spec.n_cells)
            oracle = Oracle(
                spec.cardinalities,
                [(s, t) for (s, _), t in zip(spec.factors, spec.from_pool(tables), strict=True)],
            )
            ours, counts = mf.expected_counts(graph.structure, tables)
            close_logs(ours, oracle.log_partition)
            close(counts, spec.pool_counts(oracle))
            answer = mf.marginals(graph.with_tables(tables), method="junction_tree")
            close_logs(answer.log_partition, oracle.log_partition)


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


def hidden_chain(n: int, span: float) -> tuple[mf.MarkovNetwork, list[np.ndarray], float]:
    """A chain whose factors each span e^span, with marginals by a forward-backward pass in logs."""
    rng = np.random.default_rng(n)
    tables = [span * (rng.random((2, 2)) - 0.5) for _ in range(n - 1)]
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for i, table in enumerate(tables):
        net.add_factor([i, i + 1], log_table=table)
    forward, backward = [np.zeros(2)], [np.zeros(2)]
    for table in tables:
        forward.append(np.logaddexp.reduce(forward[-1][:, None] + table, axis=0))
    for table in reversed(tables):
        backward.append(np.logaddexp.reduce(table + backward[-1][None, :], axis=1))
    log_partition = float(np.logaddexp.reduce(forward[-1]))
    marginals = [np.exp(f + b - log_partition) for f, b in zip(forward, reversed(backward), strict=True)]
    return net, marginals, log_partition


class TestRange:
    @for_exact("marginals")
    @pytest.mark.parametrize(("n", "span"), [(12, 250.0), (60, 250.0), (60, 1500.0), (400, 250.0)])
    def test_chains_that_underflow_by_products(self, method: str, n: int, span: float):
        if method == "enumeration" and n > 12:
            pytest.skip("too many joint states to enumerate")
        net, marginals, log_partition = hidden_chain(n, span)
        answer = mf.marginals(net, method=method)
        np.testing.assert_allclose(answer.log_partition, log_partition, rtol=1e-12)
        for v in range(n):
            close(answer[v], marginals[v])
            assert (answer[v][marginals[v] > 1e-290] > 0).all()

    @for_exact("marginals")
    def test_support_that_survives_by_a_thread(self, method: str):
        """Every factor prefers 0 by e^250 and a last one forbids it: all ones, not "impossible"."""
        n = 14
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, i + 1) for i in range(n - 1)], log_table=[[250.0, -np.inf], [-np.inf, 0.0]])
        for i in range(n):
            net.add_factor([i], log_table=[250.0, 0.0])
        net.add_factor([n - 1], [0, 1])
        answer = mf.marginals(net, method=method)
        assert answer.log_partition == pytest.approx(0.0, abs=TOLERANCE)
        for v in range(n):
            np.testing.assert_array_equal(answer[v], [0.0, 1.0])

    @for_exact("marginals")
    @pytest.mark.parametrize("turn", [False, True])
    def test_two_worlds_far_apart(self, method: str, turn: bool):
        """Separate tables look harmless, but only their product decides between e^-2500 and e^-2501."""
        n = 11
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, i + 1) for i in range(n - 1)], log_table=[[-250.0, -np.inf], [-np.inf, -250.1]])
        for i in range(n):
            net.add_factor([i], log_table=[0.0, 0.1] if turn else [0.1, 0.0])
        answer = mf.marginals(net, method=method)
        scores = [-2500.0 + (0 if turn else 1.1), -2501.0 + (1.1 if turn else 0)]
        total = np.logaddexp(*scores)
        assert answer.log_partition == pytest.approx(total, rel=1e-12)
        close(answer[5], np.exp(np.array(scores) - total))

    @for_exact("marginals")
    def test_joints_have_no_false_zeros(self, method: str):
        """One spare cell of e^60 scales nine tables down; the joint's cell of 1e-98 must survive that."""
        ruled_out = -np.inf
        high = np.zeros((3, 3, 2))
        high[0, 2, 0], high[2, 2, 0] = 60.0, -60.0
        factors = [
            ((2, 0), np.zeros((3, 2))),
            ((2, 2, 0), high),
            ((1, 2), np.array([[ruled_out, 0, ruled_out], [0, ruled_out, 0]])),
            ((1,), np.array([0.0, -21.51])),
            ((0,), np.zeros(2)),
            ((1,), np.array([0.0, -47.642])),
            ((0,), np.array([-47.642, 0.0])),
            ((1, 0), np.array([[0.0, 0.0], [-47.642, 0.0]])),
            ((2,), np.zeros(3)),
        ]
        spec = Spec((2, 2, 3), tuple(Table((scope,), table) for scope, table in factors), ("a", "b", "c"))
        try:
            answer = ask("marginals", method, spec, {})
        except Refused:
            return
        np.testing.assert_allclose(answer.joint(["a", "c"]), spec.oracle().joint([0, 2]), rtol=1e-9)

    @for_exact("marginals")
    def test_a_scale_that_eats_the_range(self, method: str):
        """A spare cell of e^90 pushes products of ten tables to the edge of floating point: no nan, no zero."""
        x = -np.inf
        wide = [
            [[[x, x, 0, 0], [0, 0, 0, x]], [[x, x, x, 0], [x, 0, 0, x]], [[x, 0, 0, x], [0, 0, 0, x]]],
            [[[x, 0, x, 0], [0, x, x, x]], [[0, 0, x, x], [x, x, x, 0]], [[0, 0, 0, 0], [x, 0, 0, 0]]],
            [[[x, x, 0, 0], [x, 0, x, 0]], [[x, 0, x, x], [x, x, 0, 0]], [[x, 0, x, x], [0, x, x, x]]],
        ]
        spare = np.zeros((3, 3, 3))
        spare[1, 1, 0] = 90.0
        factors = [
            ((4, 4, 2, 0), np.array(wide, float)),
            ((3, 3, 3), spare),
            ((4,), np.zeros(3)),
            ((2, 2), np.array([[-80.0, x], [x, 0.0]])),
            ((4,), np.array([-30.0, 0.0, x])),
            ((4,), np.array([-30.0, 0.0, x])),
            ((4, 0), np.array([[0, -30.0, 0, x], [0, 0, 0, 0], [x, 0, 0, 40.0]])),
            ((2, 3), np.array([[0, 0, x], [0, 0, 0]])),
        ]
        operations = [Table((scope,), table) for scope, table in factors]
        clause = Clause(((0, 1, True), (1, 1, True), (4, 0, False)), -0.75)
        spec = Spec((4, 2, 2, 3, 3), (*operations, clause), ("a", "b", "c", "d", "e"))
        try:
            answer = ask("marginals", method, spec, {0: 1})
        except Refused:
            return
        check_marginals(answer, spec, spec.oracle({0: 1}), total=TOLERANCE)
        check_counts(answer, spec, spec.oracle({0: 1}))

    @for_exact("marginals")
    def test_more_axes_than_numpy_has(self, method: str):
        """One factor on 70 variables, most with one state; and a clique of 67 through pairwise factors."""
        cards = [1] * 70
        for v in (0, 13, 40, 69):
            cards[v] = 2
        rng = np.random.default_rng(0)
        table = rng.normal(size=16)
        pairs = [(u, v) for u in range(0, 70, 3) for v in range(u + 1, 70, 3)]
        factors = [(list(range(70)), table)]
        factors += [([u, v], rng.normal(size=(cards[u], cards[v]))) for u, v in pairs]
        net = mf.MarkovNetwork(dict(enumerate(cards)))
        for scope, values in factors:
            net.add_factor(scope, log_table=values)
        oracle = Oracle(cards, factors)
        try:
            answer = mf.marginals(net, method=method)
        except mf.ModelError:
            assert method not in GENERAL
            return
        close_logs(answer.log_partition, oracle.log_partition)
        for v in range(70):
            close(answer[v], oracle.marginal(v))
        close(answer.joint([69, 0, 40]), oracle.joint([69, 0, 40]))
        best = mf.decode(net, method=method if method in exact("decode") else "junction_tree")
        close_logs(best.score, oracle.best_score)

    @for_exact("marginals")
    def test_a_wide_clique_of_single_states(self, method: str):
        """A hundred variables of one state in one factor, joined to a chain of two-state ones."""
        cards = [1] * 100 + [2] * 6
        net = mf.MarkovNetwork(dict(enumerate(cards)))
        net.add_factor(range(103), log_table=np.arange(8.0) / 3)
        for i in range(102, 105):
            net.add_factor([i, i + 1], [[2, 1], [1, 4]])
        oracle = Oracle(
            cards,
            [
                (range(103), np.arange(8.0) / 3),
                *(((i, i + 1), np.log([[2.0, 1.0], [1.0, 4.0]])) for i in range(102, 105)),
            ],
        )
        answer = mf.marginals(net, method=method)
        close_logs(answer.log_partition, oracle.log_partition)
        for v in (0, 99, 100, 101, 102, 105):
            close(answer[v], oracle.marginal(v))


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


class TestExplain:
    @pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
    def test_says_what_auto_will_do(self, verb: str):
        spec = random_spec(4, hard=False)
        told = mf.explain(spec.build(), verb)
        settings_ = {"size": 1, "rng": 0} if verb == "sample" else {}
        answer = ask(verb, "auto", spec, {}, **settings_)
        for field in ("log2_bytes", "log2_operations", "width"):
            assert np.isfinite(getattr(told, field))
        if hasattr(answer, "method"):
            assert told.method == answer.method

    def test_a_wide_model_is_refused_before_anything_is_allocated(self):
        """Two cliques of 47 that share 46 variables."""
        n = 48
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        pairs = [(i, j) for i in range(n) for j in range(i) if (i, j) != (n - 1, 0)]
        net.add_factors(pairs, [[1.0, 2.0], [2.0, 1.0]])
        method = mf.methods.JunctionTree(search=0.0)
        told = mf.explain(net, "marginals", method=method)
        assert told.width == n - 2 and told.log2_bytes > n - 2 and not told.fits
        with pytest.raises(mf.MemoryLimitError, match="width 46"):
            mf.marginals(net, method=method)

    def test_auto_goes_on_without_exactness_and_says_so(self):
        """A complete graph of 48: too wide for a tree, so bounds and messages answer."""
        n, rng = 48, np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        for i in range(n):
            for j in range(i):
                net.add_factor([i, j], log_table=0.05 * rng.normal(size=(2, 2)))
        told = mf.explain(net, "marginals")
        answer = mf.marginals(net)
        assert told.method == answer.method == "sandwich" and not told.fits and "approximate" in told.reason
        low, high = answer.log_partition_bounds
        assert low <= answer.log_partition <= high < low + 10 and answer.guarantee == "approximate"
        assert mf.log_partition(net).log_partition_bounds == (low, high)
        decoded = mf.decode(net, time_limit=2.0)
        assert decoded.score == pytest.approx(net.compile().score(decoded.assignment))
        with pytest.raises(mf.MemoryLimitError, match=r"work_limit|memory_limit"):
            mf.decode(net, n_best=3)
        told, drawn = mf.explain(net, "sample"), mf.sample(net, 8, rng=0)
        assert told.method == drawn.method == "swendsen_wang" and drawn.guarantee == "approximate" and drawn.n_chains

    def test_endless_work_does_not_fit_either(self):
        """One clique of 48 needs next to no memory, but 2^48 states to sum over."""
        n = 48
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, j) for i in range(n) for j in range(i)], [[1.0, 2.0], [2.0, 1.0]])
        assert not mf.explain(net, "marginals", method=mf.methods.JunctionTree(search=0.0)).fits
