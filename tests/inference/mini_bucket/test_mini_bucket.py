"""Mini-buckets against the brute-force oracle: true bounds after every iteration, exact where nothing is cut."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.mini_bucket import plan as mini_bucket_plan
from markovfield.inference.mini_bucket.bounds import Buckets, Tightened
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from markovfield.inference.mini_bucket.search import Search
from markovfield.inference.problem.problem import prepare
from tests.graphs.independence_cases import sizes
from tests.oracle import Oracle
from tests.strategies import Spec, Table, random_evidence, specs_with_evidence

TOLERANCE = 1e-9
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Few iterations are asked for on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mini_bucket did not converge")
        yield


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


class TestBounds:
    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3, 4]), st.sampled_from([0, 1, 2, 5, 60]))
    def test_hold_on_frustrated_models_at_every_iteration(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        check_bounds(*case, i_bound=i_bound, max_iterations=iterations, tolerance=0.0)

    @pytest.mark.parametrize("kind", ["graph", "bayesian"])
    @settings(max_examples=30)
    @given(data=st.data(), i_bound=st.sampled_from([1, 2, 3]), iterations=st.sampled_from([0, 1, 30]))
    def test_hold_on_models_of_all_kinds(self, kind: str, data: Any, i_bound: int, iterations: int):
        """Ties, tied tables, clauses, repeated variables, variables of one state, virtual evidence."""
        check_bounds(*data.draw(specs_with_evidence(kind)), i_bound=i_bound, max_iterations=iterations)

    @settings(max_examples=15)
    @given(specs_with_evidence(scale=1000.0), st.sampled_from([1, 2]))
    def test_hold_at_extreme_potentials(self, case: tuple[Spec, dict], i_bound: int):
        check_bounds(*case, i_bound=i_bound, max_iterations=20)

    @settings(max_examples=15)
    @given(dense(), st.sampled_from([6, 12, 40, 200]))
    def test_hold_where_states_are_limited(self, case: tuple[Spec, dict], max_states: int):
        check_bounds(*case, i_bound=8, max_states=max_states, max_iterations=10)

    @pytest.mark.parametrize("seed", range(6))
    def test_each_iteration_tightens(self, seed: int):
        model = dense_spec(seed, 9, 1.0, 0.0).build()
        widths = []
        for iterations in (0, 1, 2, 4, 8, 32):
            method = MiniBucket(i_bound=2, max_iterations=iterations, tolerance=0.0)
            answer = mf.log_partition(model, method=method)
            assert answer.iterations == len(answer.residuals) <= iterations
            assert all(gain >= 0.0 for gain in answer.residuals)
            widths.append(answer.log_partition_bounds[1])
        assert all(after <= before + 1e-12 for before, after in pairwise(widths))
        assert widths[-1] < widths[0]

    def test_both_kinds_of_lower_bound_are_needed_and_finite(self):
        """Positive models: negative weights do better at high temperature, fixing variables at low temperature."""
        for scale, zeros in ((0.2, 0.0), (6.0, 0.4)):
            spec = dense_spec(1, 9, scale, zeros)
            low, high = mf.log_partition(spec.build(), method=MiniBucket(i_bound=3)).log_partition_bounds
            assert -np.inf < low <= spec.oracle().log_partition <= high
            assert high - low < 12.0

    def test_a_larger_bound_is_tighter_in_the_mean(self):
        """Cuts differ from one bound to the next, so a single model may do worse; the mean over twenty must not."""
        gaps = np.zeros((20, 4))
        for seed in range(20):
            spec = dense_spec(seed, 9, 1.0, 0.1 * (seed % 3))
            model, truth = spec.build(), spec.oracle().log_partition
            for column, i_bound in enumerate((1, 2, 4, 6)):
                low, high = mf.log_partition(model, method=MiniBucket(i_bound=i_bound)).log_partition_bounds
                gaps[seed, column] = (high - truth) + min(truth - low, 50.0)
        mean = gaps.mean(axis=0)
        assert (np.diff(mean) < 0).all()
        assert mean[-1] < 0.5 * mean[0]


def buckets_of(spec: Spec, evidence: dict[int, Any], i_bound: int) -> Buckets:
    """The mini-buckets behind the verbs, whose two lower bounds hide each other."""
    graph = spec.build().compile()
    problem = prepare(graph, Evidence.parse(graph.structure, spec.named(evidence)))
    return MiniBucket(i_bound=i_bound).best_buckets(problem, 1.0, Running())[0]


def per_bucket(buckets: Buckets, values: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, buckets.layout.bucket_offsets[:-1])


class TestBuckets:
    """Bounds of one kind by themselves."""

    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 3, 40]), st.sampled_from([1.0, 0.3, 0.01]))
    def test_of_positive_weights(self, case: tuple[Spec, dict], i_bound: int, iterations: int, temperature: float):
        """Weights that sum to a temperature bound the power sum at that temperature; to nothing, the best score."""
        oracle = case[0].oracle(case[1])
        try:
            buckets = buckets_of(*case, i_bound)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        if oracle.impossible or not buckets.plan.n_split:
            return
        shares = buckets.shares()
        _, shifts = buckets.match(shares, temperature, Running())
        found = buckets.tighten(
            shifts,
            temperature * shares,
            sign=-1.0,
            max_iterations=iterations,
            tolerance=0.0,
            running=Running(),
        )
        np.testing.assert_allclose(per_bucket(buckets, found.weights), temperature, rtol=1e-12)
        scaled = (oracle.scores - oracle.best_score) / temperature
        truth = oracle.best_score + temperature * float(np.log(np.exp(scaled).sum()))
        assert found.bound >= truth - slack(truth)
        assert buckets.forward(found.shifts, 0.0 * shares, Running()) >= oracle.best_score - slack(truth)

    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 3, 40]))
    def test_of_negative_weights(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        oracle = case[0].oracle(case[1])
        try:
            buckets = buckets_of(*case, i_bound)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        if not buckets.plan.n_split:
            return
        shares = buckets.shares()
        bound, shifts = buckets.match(shares, 1.0, Running())
        start = buckets.lower_start(Tightened(bound, shifts, shares, (), True))
        found = buckets.tighten(
            *start,
            sign=1.0,
            max_iterations=iterations,
            tolerance=0.0,
            running=Running(),
        )
        np.testing.assert_allclose(per_bucket(buckets, found.weights), 1.0, rtol=1e-12)
        split = np.diff(buckets.layout.bucket_offsets) > 1
        assert (per_bucket(buckets, (found.weights > 0).astype(np.int64)) == 1).all()
        assert (per_bucket(buckets, found.weights < 0)[split]).all()
        truth = oracle.log_partition
        assert not np.isnan(found.bound)
        assert found.bound <= truth + slack(truth)
        if not any(np.isneginf(t).any() for _, t in case[0].factors) and not case[1]:
            assert found.bound > -np.inf

    def test_states_that_are_impossible_are_left_out(self):
        """A square with a diagonal, cut so that two mini-buckets share two variables with a state pair excluded."""
        rng = np.random.default_rng(2)
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        first, second = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2, 2))
        first[0, 1, :] = -np.inf
        net.add_factor(["A", "B", "C"], log_table=first)
        net.add_factor(["A", "B", "D"], log_table=second)
        graph = net.compile()
        problem = prepare(graph, Evidence.parse(graph.structure, None))
        method = MiniBucket(i_bound=2, order=tuple("ABCD"))
        buckets, upper = method.best_buckets(problem, 1.0, Running())
        bound, shifts = upper.bound, upper.shifts
        assert buckets.plan.n_split >= 1 and np.isneginf(shifts).any()
        start = buckets.lower_start(upper)
        assert np.isposinf(start[0]).any()
        truth = Oracle([2] * 4, [((0, 1, 2), first), ((0, 1, 3), second)]).log_partition
        for swap in (False, True):
            # Whichever of the two has the positive weight.
            weights = start[1].copy()
            shifts = start[0].copy()
            if swap:
                weights[:2] = weights[1::-1]
                shifts = np.where(np.isinf(shifts), -shifts, shifts)
            low = buckets.forward(shifts, weights, Running())
            assert -np.inf < low <= truth <= bound

    @settings(max_examples=40)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 30]))
    def test_of_the_best_score(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        """By itself: small models are decoded so well that a bound below the best score would not show."""
        oracle = case[0].oracle(case[1])
        graph = case[0].build().compile()
        try:
            problem = prepare(graph, Evidence.parse(graph.structure, case[0].named(case[1])))
            search = Search(MiniBucket(i_bound=i_bound, max_iterations=iterations), problem, Running())
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        search.cool()
        assert search.bound >= oracle.best_score - slack(oracle.best_score) or oracle.impossible


class TestExact:
    """Nothing is cut once the bound reaches the width of the order."""

    @settings(max_examples=40)
    @given(dense())
    def test_dense(self, case: tuple[Spec, dict]):
        self.check(*case)

    @pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
    @settings(max_examples=20)
    @given(data=st.data())
    def test_all_kinds(self, kind: str, data: Any):
        self.check(*data.draw(specs_with_evidence(kind)))

    @staticmethod
    def check(spec: Spec, evidence: dict[int, Any]) -> None:
        oracle = spec.oracle(evidence)
        model, known, method = spec.build(), spec.named(evidence), MiniBucket(i_bound=spec.n_variables + 30)
        if oracle.impossible:
            for verb in (mf.log_partition, mf.marginals, mf.decode):
                with pytest.raises(mf.ImpossibleEvidenceError):
                    verb(model, known, method=method)
            return
        answer = mf.marginals(model, known, method=method)
        truth = oracle.log_partition
        for found in (answer, mf.log_partition(model, known, method=method)):
            assert found.guarantee == "exact" and found.converged and found.iterations == 0
            np.testing.assert_allclose(found.log_partition_bounds, [truth, truth], rtol=0, atol=slack(truth))
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)
        for f, (scope, _) in enumerate(spec.factors):
            once = list(dict.fromkeys(scope))[::-1]
            if answer.graph.structure.kind[f] == 0 and 0 < len(once) <= 3:
                joint = answer.joint([spec.labels[v] for v in once])
                np.testing.assert_allclose(joint, oracle.joint(once), rtol=0, atol=TOLERANCE)
        best = mf.decode(model, known, method=method)
        assert best.optimal and best.guarantee == "exact"
        assert best.score == pytest.approx(oracle.best_score, abs=slack(truth))
        assert oracle.score(spec.states(best.assignment)) == pytest.approx(oracle.best_score, abs=slack(truth))

    def test_nothing_at_all(self):
        net = mf.MarkovNetwork({})
        assert float(mf.log_partition(net, method=MiniBucket())) == 0.0
        net = mf.MarkovNetwork({"A": 3, "B": 1})
        assert float(mf.log_partition(net, method=MiniBucket())) == pytest.approx(np.log(3.0))
        assert mf.decode(net, method=MiniBucket()).score == 0.0


class TestDecode:
    def test_a_tree_cut_in_two_is_still_solved(self):
        """The linear relaxation of a forest is tight: tightening must close the gap that the cut opened."""
        rng = np.random.default_rng(5)
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 3))
        edges = [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (4, 6), (6, 7)]
        tables = [rng.normal(size=(3, 3)) for _ in edges]
        for edge, table in zip(edges, tables, strict=True):
            net.add_factor(edge, log_table=table)
        method = MiniBucket(i_bound=1, order=tuple(range(8)), max_iterations=400, tolerance=1e-9)
        best = mf.decode(net, method=method)
        assert best.width == 1 and best.gap < 1e-3
        assert best.score == pytest.approx(Oracle([3] * 8, list(zip(edges, tables, strict=True))).best_score)

    def test_hard_zeros_are_met(self):
        """Reading states off one by one would break the constraint; the fixed set and the exact rest do not."""
        rng = np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(12), 3))
        different = np.where(np.eye(3) > 0, -np.inf, 0.0)
        edges = [(i, (i + k) % 12) for i in range(12) for k in (1, 2)]
        for edge in edges:
            net.add_factor(edge, log_table=different + 0.1 * rng.normal(size=(3, 3)))
        best = mf.decode(net, method=MiniBucket(i_bound=2))
        assert -np.inf < best.score <= mf.decode(net, method="junction_tree").score + TOLERANCE
        low, high = mf.log_partition(net, method=MiniBucket(i_bound=2)).log_partition_bounds
        assert -np.inf < low <= float(mf.log_partition(net)) <= high


class TestCutset:
    @pytest.mark.parametrize(("seed", "zeros"), [(0, 0.0), (1, 0.3), (2, 0.5)])
    def test_leaves_small_cliques_and_bounds_from_below(self, seed: int, zeros: float):
        spec = dense_spec(seed, 10, 1.0, zeros)
        graph = spec.build().compile()
        problem = prepare(graph, Evidence.parse(graph.structure, None))
        method = MiniBucket(i_bound=2)
        buckets, upper = method.best_buckets(problem, 1.0, Running())
        cutset = method.cutset(buckets, upper.shifts, upper.weights, Running())
        assert cutset.evidence is not None
        fixed = np.flatnonzero(cutset.evidence.states >= 0)
        assert 0 < len(fixed) < 10
        assert mf.JunctionTree().tree(prepare(graph, cutset.evidence)).width <= 2
        among = spec.oracle({int(v): int(cutset.evidence.states[v]) for v in fixed})
        assert cutset.bound() == pytest.approx(among.log_partition)
        best = cutset.decode()
        assert best is not None
        assert best[1] == pytest.approx(among.best_score)
        assert spec.oracle().score(best[0].tolist()) == pytest.approx(among.best_score)


class TestConduct:
    def test_the_same_call_gives_the_same_bits(self):
        spec = dense_spec(3, 9, 1.0, 0.2)
        for verb in (mf.marginals, mf.log_partition, mf.decode):
            one, two = (verb(spec.build(), method=MiniBucket(i_bound=2)) for _ in range(2))
            assert one.residuals == two.residuals
            if verb is mf.marginals:
                np.testing.assert_array_equal(one.values, two.values)
            if verb is mf.decode:
                assert (one.assignment, one.score, one.gap) == (two.assignment, two.score, two.gap)
            else:
                assert one.log_partition_bounds == two.log_partition_bounds

    def test_pieces_do_not_change_the_answer(self, monkeypatch: pytest.MonkeyPatch):
        spec = dense_spec(3, 9, 1.0, 0.2)
        whole = mf.marginals(spec.build(), method=MiniBucket(i_bound=3))
        monkeypatch.setattr(mini_bucket_plan, "GRAIN", 200.0)
        steps: list[int] = []
        cut = mf.marginals(spec.build(), method=MiniBucket(i_bound=3), callback=lambda p: steps.append(p.step))
        assert len(steps) > 100
        np.testing.assert_allclose(whole.values, cut.values, rtol=0, atol=1e-6)

    def test_plans_are_kept_and_moved_to_other_evidence(self):
        spec = dense_spec(4, 8, 1.0, 0.0)
        graph = spec.build().compile()
        method = MiniBucket(i_bound=3)
        for states in ({0: 0}, {0: 1}):
            low, high = mf.log_partition(graph, spec.named(states), method=method).log_partition_bounds
            assert low <= spec.oracle(states).log_partition <= high
        assert len(graph.structure.cache["mini_buckets"]) == 1

    def test_starting_from_an_earlier_answer(self):
        spec = dense_spec(5, 9, 1.0, 0.1)
        graph = spec.build().compile()
        method = MiniBucket(i_bound=2, max_iterations=5, tolerance=0.0)
        first = mf.marginals(graph, method=method)
        second = mf.marginals(graph, method=method, init=first)
        assert second.log_partition < first.log_partition
        assert second.log_partition >= spec.oracle().log_partition

    def test_starting_where_hard_zeros_were(self):
        """What an earlier answer found impossible need not be so for other tables on the same structure."""
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        tables = np.random.default_rng(2).normal(size=(2, 2, 2, 2))
        tables[0, 0, 1, :] = -np.inf
        for scope, table in zip((["A", "B", "C"], ["A", "B", "D"]), tables, strict=True):
            net.add_factor(scope, log_table=table)
        graph = net.compile()
        method = MiniBucket(i_bound=2, order=tuple("ABCD"))
        first = mf.marginals(graph, method=method)
        assert np.isneginf(first._state[1]).any()
        free = np.where(np.isneginf(graph.log_tables), 3.0, graph.log_tables)
        moved = mf.log_partition(graph.with_tables(free), method=method, init=first)
        assert moved.log_partition >= float(mf.log_partition(graph.with_tables(free))) - TOLERANCE

    def test_stopped_early_it_answers_with_what_it_has(self):
        spec = dense_spec(6, 9, 1.0, 0.0)
        truth = spec.oracle().log_partition
        for steps in (3, 10, 60):
            method = MiniBucket(i_bound=2, tolerance=0.0)
            answer = mf.marginals(spec.build(), method=method, callback=lambda p, steps=steps: p.step > steps)
            assert not answer.converged
            assert answer.log_partition_bounds[0] <= truth <= answer.log_partition_bounds[1]
            best = mf.decode(spec.build(), method=method, callback=lambda p, steps=steps: p.step > steps)
            assert best.upper_bound >= spec.oracle().best_score - TOLERANCE
        with pytest.raises(mf.StoppedError):
            mf.marginals(spec.build(), method=MiniBucket(), callback=lambda p: True)

    def test_an_end_before_convergence_is_told(self):
        from sklearn.exceptions import ConvergenceWarning

        model = dense_spec(6, 9, 1.0, 0.0).build()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ConvergenceWarning, match=r"mini_bucket did not converge in 2 iterations"):
                mf.log_partition(model, method=MiniBucket(i_bound=2, max_iterations=2))

    def test_inputs_are_never_changed(self):
        graph = dense_spec(7, 8, 1.0, 0.2).build().compile()
        before = graph.log_tables.copy()
        mf.marginals(graph, method=MiniBucket(i_bound=2))
        np.testing.assert_array_equal(graph.log_tables, before)


class TestRefusals:
    def net(self) -> mf.MarkovNetwork:
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        net.add_factors(combinations("ABCD", 2), [[2.0, 1.0], [1.0, 3.0]])
        return net

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"i_bound": 0}, r"i_bound of MiniBucket must be a whole number of at least 1, got 0"),
            ({"i_bound": 2.5}, r"i_bound of MiniBucket must be a whole number of at least 1, got 2\.5"),
            ({"max_iterations": -1}, r"max_iterations of MiniBucket must be a whole number of at least 0, got -1"),
            ({"max_states": 0}, r"max_states of MiniBucket must be a whole number of at least 1, got 0"),
            ({"tolerance": -1.0}, r"tolerance of MiniBucket must not be negative, got -1\.0"),
        ],
    )
    def test_settings(self, settings: dict[str, Any], message: str):
        with pytest.raises(mf.ModelError, match=message):
            MiniBucket(**settings)

    def test_n_best_and_marginal_map(self):
        with pytest.raises(mf.ModelError, match=r"one good assignment, not the 3 best: use junction_tree"):
            mf.decode(self.net(), n_best=3, method=MiniBucket())
        with pytest.raises(mf.ModelError, match=r"not 1 of them .* use junction_tree"):
            mf.decode(self.net(), variables=["A"], method=MiniBucket())
        named = mf.decode(self.net(), variables=list("DCBA"), method=MiniBucket())
        assert list(named.assignment) == list("DCBA")

    def test_a_noisy_max(self):
        net = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
        net.add_cpt("A", [], [0.3, 0.7])
        net.add_cpt("B", [], [0.6, 0.4])
        net.add_noisy_or("C", ["A", "B"], [0.8, 0.5], leak=0.1)
        with pytest.raises(mf.ModelError, match=r"contributions of a noisy-max, which must be summed"):
            mf.decode(net, method=MiniBucket())
        exact = mf.marginals(net, {"C": 1}, method="enumeration")
        np.testing.assert_allclose(mf.marginals(net, {"C": 1}, method=MiniBucket())["A"], exact["A"], atol=TOLERANCE)

    def test_an_incomplete_order(self):
        with pytest.raises(mf.ModelError, match=r"order names 2 of 4 variables"):
            mf.log_partition(self.net(), method=MiniBucket(order=("A", "B")))

    def test_memory(self):
        with pytest.raises(mf.MemoryLimitError, match=r"at most 4 variables need about .* lower i_bound"):
            mf.log_partition(self.net(), method=MiniBucket(i_bound=3, memory_limit=1000))

    def test_joints_outside_mini_buckets(self):
        answer = mf.marginals(self.net(), method=MiniBucket(i_bound=1))
        assert answer.joint(["A"]).sum() == pytest.approx(1.0)
        with pytest.raises(mf.ModelError, match=r"no mini-bucket holds 'A', 'B', 'C' together"):
            answer.joint(["A", "B", "C"])

    def test_a_start_from_elsewhere(self):
        with pytest.raises(mf.ModelError, match=r"must be an answer of mf\.marginals by mini_bucket"):
            mf.marginals(self.net(), method=MiniBucket(), init=mf.marginals(self.net()))
        with pytest.raises(mf.ModelError, match=r"decodes from the start and takes no init"):
            mf.decode(self.net(), method=MiniBucket(), init=mf.marginals(self.net(), method=MiniBucket()))
        other = mf.marginals(self.net(), method=MiniBucket(i_bound=1))
        with pytest.raises(mf.ModelError, match=r"other mini-buckets"):
            mf.marginals(self.net(), method=MiniBucket(i_bound=3), init=other)
