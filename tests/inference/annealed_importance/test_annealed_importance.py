"""Annealed importance sampling against the brute-force oracle: log Z within its error, weights that mean something."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.inference.annealed_importance.annealed_importance import AnnealedImportance
from markovfield.inference.annealed_importance.paths import HEAD_START, AnnealedChains, Base
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import prepare
from tests.inference.joint_counts import APART, CYCLE, FALSE_ALARM, GRID, p_value, pairs_spec
from tests.strategies import Spec, Table, random_evidence, random_spec, specs_with_evidence


def colouring(seed: int, n: int, states: int, share: float) -> Spec:
    """Neighbours must differ; other pairs of states are worth something each."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < share]
    tables = [np.where(np.eye(states) > 0, -np.inf, rng.normal(size=(states, states))) for _ in pairs]
    operations = tuple(Table((pair,), table) for pair, table in zip(pairs, tables, strict=True))
    return Spec((states,) * n, operations, tuple(range(n)))


def threes(seed: int) -> Spec:
    """Factors of three variables in a ring, with some zeros."""
    rng = np.random.default_rng(seed)
    scopes = [(i, (i + 1) % 6, (i + 2) % 6) for i in range(6)]
    tables = [np.where(rng.random((2, 2, 2)) < 0.1, -np.inf, rng.normal(size=(2, 2, 2))) for _ in scopes]
    operations = tuple(Table((scope,), table) for scope, table in zip(scopes, tables, strict=True))
    return Spec((2,) * 6, operations, tuple("abcdef"))


CASES: dict[str, tuple[Spec, dict[int, Any]]] = {
    "ferromagnet": (pairs_spec(1, 6, GRID, coupling=(1.0, 2.0)), {}),
    "frustrated": (pairs_spec(2, 5, CYCLE, coupling=(-3.0, 3.0)), {}),
    "three states": (pairs_spec(3, 5, CYCLE, states=3, coupling=(-1.0, 2.0)), {}),
    "colouring": (colouring(4, 7, 3, 0.4), {}),
    "factors of three": (threes(5), {}),
    "evidence": (pairs_spec(6, 6, GRID, coupling=(-2.0, 2.0)), {0: 1, 4: np.array([0.2, 0.9])}),
    "a Bayesian network": (random_spec(3, "bayesian"), random_evidence(0, random_spec(3, "bayesian"))),
    "another": (random_spec(19, "bayesian"), random_evidence(1, random_spec(19, "bayesian"))),
}
FEW = AnnealedImportance(n_chains=60, n_temperatures=30)


@pytest.mark.parametrize("case", CASES)
def test_log_partition_is_within_its_error(case):
    spec, evidence = CASES[case]
    net, known = spec.build(), spec.named(evidence)
    truth = spec.oracle(evidence).log_partition
    n_seeds = 60
    scores = []
    for seed in range(n_seeds):
        answer = mf.log_partition(net, known, method=FEW, rng=seed)
        assert answer.guarantee == "approximate"
        scores.append((float(answer) - truth) / max(answer.standard_error, 1e-9))
    # Were they normal, one in 370 would be outside three standard errors and, in sixty, three in 1 of 1500 tests.
    assert (np.abs(scores) > 3).sum() <= 2
    # And their mean square, not too large nor too small: each side is a false alarm of 1 in 10,000.
    low, high = chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], n_seeds)
    assert low < float(np.square(scores).sum()) < high
    # Nor do they lean to one side: one of four standard errors is a false alarm of 1 in 15,000.
    assert abs(np.mean(scores)) < 4 / np.sqrt(n_seeds)


def test_a_forest_needs_no_chains():
    spec = pairs_spec(7, 6, APART, coupling=(-2.0, 2.0))
    answer = mf.log_partition(spec.build(), method=AnnealedImportance(n_chains=2), rng=0)
    assert float(answer) == pytest.approx(spec.oracle().log_partition, abs=1e-10)
    assert answer.standard_error < 1e-10
    assert answer.iterations == 1


@given(specs_with_evidence("forest"), st.integers(0, 100))
@settings(max_examples=30)
def test_forests_are_exact_whatever_their_factors(drawn, seed):
    spec, evidence = drawn
    oracle = spec.oracle(evidence)
    assume(not oracle.impossible)
    answer = mf.log_partition(spec.build(), spec.named(evidence), method=AnnealedImportance(n_chains=2), rng=seed)
    assert float(answer) == pytest.approx(oracle.log_partition, abs=1e-8)
    assert answer.standard_error < 1e-8


def test_starts_are_drawn_from_the_forest():
    spec, _ = CASES["factors of three"]
    graph = spec.build().compile()
    base = Base.of(prepare(graph, Evidence.parse(graph.structure, None)))
    inside = [f for f, (scope, _) in enumerate(spec.factors) if not base.graph.tempered[f]]
    assert 0 < len(inside) < len(spec.factors)
    # Zeros of the forest are only unlikely at first, so that chains can move.
    tables = [np.where(np.isneginf(t), t.max() - HEAD_START, t) for _, t in (spec.factors[f] for f in inside)]
    operations = tuple(Table((spec.factors[f][0],), t) for f, t in zip(inside, tables, strict=True))
    forest = Spec(spec.cardinalities, operations, spec.labels)
    chains = AnnealedChains(base, np.array([0.0]))
    chains.go(8000, np.random.default_rng(0), Running())
    assert base.log_partition == pytest.approx(forest.oracle().log_partition, abs=1e-10)
    assert p_value(forest.oracle(), chains.states) > FALSE_ALARM


@pytest.mark.parametrize("case", ["frustrated", "three states", "colouring", "evidence", "a Bayesian network"])
def test_marginals_and_samples_are_within_their_errors(case):
    spec, evidence = CASES[case]
    oracle = spec.oracle(evidence)
    truth = np.concatenate(oracle.marginals).astype(np.float64)
    method = AnnealedImportance(n_chains=400, n_temperatures=60)
    answer = mf.marginals(spec.build(), spec.named(evidence), method=method, rng=1)
    errors = answer.monte_carlo.standard_errors
    # Some hundred states: one of 4.5 standard errors is a false alarm of 1 in 1500.
    assert (np.abs(answer.values - truth) <= 4.5 * errors + 1e-9).all()
    assert errors.max() < 0.05
    assert abs(answer.log_partition - oracle.log_partition) < 4 * answer.log_partition_error + 1e-9
    drawn = mf.sample(spec.build(), 4000, spec.named(evidence), method=method, rng=2)
    assert drawn.n_chains == 0
    assert abs(drawn.log_partition - oracle.log_partition) < 4 * drawn.log_partition_error + 1e-9
    for v, name in enumerate(spec.labels):
        rates, their_errors = drawn.frequencies(name)
        p = oracle.marginal(v).astype(np.float64)
        # What was seen less often than it should be has too small an error: that of independent draws is the least.
        floors = np.sqrt(p * (1 - p) / drawn.effective_sample_size)
        assert (np.abs(rates - p) <= 4.5 * np.maximum(their_errors, floors) + 1e-9).all()
    # Averages over sweeps are better than the last states.
    both = drawn.monte_carlo.standard_errors.mean() * np.sqrt(10)
    assert errors.mean() < 0.7 * both


def test_weights_matter():
    """Few temperatures leave the chains behind: their states alone are wrong, the weights put them right."""
    spec, _ = CASES["ferromagnet"]
    drawn = mf.sample(spec.build(), 20_000, method=AnnealedImportance(n_temperatures=1), rng=0)
    truth = spec.oracle().joint([0, 5])
    cells = drawn.states[:, 0] * 2 + drawn.states[:, 5]
    weighted = np.bincount(cells, drawn.weights, 4)
    plain = np.bincount(cells, minlength=4) / len(drawn)
    assert np.abs(weighted - truth.ravel()).max() < 0.02
    assert np.abs(plain - truth.ravel()).max() > 0.02


def test_more_temperatures_scatter_less():
    net = pairs_spec(8, 6, GRID, coupling=(-4.0, 4.0)).build()
    errors = [
        mf.log_partition(net, method=AnnealedImportance(n_chains=400, n_temperatures=t), rng=0).standard_error
        for t in (2, 20, 200)
    ]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


def test_threads_make_no_difference():
    spec, _ = CASES["colouring"]
    ones = [mf.sample(spec.build(), 90, method=FEW, rng=3, n_jobs=k) for k in (1, 2)]
    assert np.array_equal(ones[0].states, ones[1].states)
    assert np.array_equal(ones[0].log_weights, ones[1].log_weights)
    values = [mf.marginals(spec.build(), method=FEW, rng=3, n_jobs=k).values for k in (1, 2)]
    assert np.array_equal(values[0], values[1])


def test_few_chains_that_carry_all_the_weight_are_warned_of():
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(40), 2))
    for i in range(40):
        for j in range(i):
            net.add_factor([i, j], log_table=2 * rng.normal() * np.eye(2))
    with pytest.warns(ConvergenceWarning, match=r"the 50 chains of .* are worth .* more n_temperatures"):
        answer = mf.log_partition(net, method=AnnealedImportance(n_chains=50, n_temperatures=2), rng=0)
    assert not answer.converged
    with pytest.warns(ConvergenceWarning, match="are worth"):
        assert not mf.marginals(net, method=AnnealedImportance(n_chains=50, n_temperatures=2), rng=0).converged


def test_hard_zeros_that_no_chain_gets_around():
    spec = colouring(1, 9, 3, 0.75)
    assert spec.oracle().impossible
    with pytest.raises(ImpossibleEvidenceError):
        mf.log_partition(spec.build(), method=FEW, rng=0)
    # A graph that can be coloured, but not by two chains in one step.
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 3, 60)
    pairs = [(i, j) for i in range(60) for j in range(i) if colours[i] != colours[j] and rng.random() < 0.1]
    net = mf.MarkovNetwork(dict.fromkeys(range(60), 3))
    net.add_factors(pairs, 1 - np.eye(3))
    with pytest.raises(ModelError, match="none of the 2 chains of annealed_importance ended free of hard zeros"):
        mf.log_partition(net, method=AnnealedImportance(n_chains=2, n_temperatures=1), rng=0)


def test_what_was_done_before_the_stop_is_answered():
    spec, _ = CASES["three states"]
    net = spec.build()
    method = AnnealedImportance(n_chains=640, n_temperatures=40)
    answer = mf.log_partition(net, method=method, rng=0, n_jobs=1, callback=lambda progress: progress.step > 40)
    assert not answer.converged
    assert abs(float(answer) - spec.oracle().log_partition) < 4 * answer.standard_error
    drawn = mf.sample(net, 640, method=method, rng=0, n_jobs=1, callback=lambda progress: progress.step > 40)
    assert 0 < len(drawn) < 640
    assert len(drawn.log_weights) == len(drawn)
    stopped = mf.marginals(net, method=method, rng=0, n_jobs=1, callback=lambda progress: progress.step > 40)
    assert not stopped.converged
    assert (np.abs(stopped.values - np.concatenate(spec.oracle().marginals)) < 0.25).all()
    with pytest.raises(StoppedError):
        mf.log_partition(net, method=method, rng=0, callback=lambda progress: True)


def test_nothing_left_to_draw():
    spec, _ = CASES["frustrated"]
    everything = {v: v % 2 for v in range(5)}
    answer = mf.log_partition(spec.build(), spec.named(everything), method=FEW, rng=0)
    assert float(answer) == pytest.approx(spec.oracle(everything).log_partition, abs=1e-10)
    drawn = mf.sample(spec.build(), 0, method=FEW, rng=0)
    assert (len(drawn), np.isnan(drawn.log_partition)) == (0, True)
    assert float(mf.log_partition(mf.MarkovNetwork({}), method=FEW, rng=0)) == 0.0


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"n_chains": 1}, "n_chains of AnnealedImportance must be at least 2, got 1"),
        ({"n_temperatures": 0}, "n_temperatures of AnnealedImportance must be at least 1, got 0"),
        ({"final_sweeps": 0}, "final_sweeps of AnnealedImportance must be at least 1, got 0"),
        ({"schedule": "steep"}, "schedule of AnnealedImportance must be 'linear' or powers, got 'steep'"),
        ({"schedule": [0.0, 0.5]}, "must rise from 0 to 1"),
        ({"schedule": [0.0, 0.7, 0.5, 1.0]}, "must rise from 0 to 1"),
    ],
)
def test_settings_are_checked(given_, message):
    with pytest.raises(ModelError, match=message):
        AnnealedImportance(**given_)


def test_powers_can_be_given():
    spec, _ = CASES["frustrated"]
    method = AnnealedImportance(n_chains=200, schedule=np.linspace(0, 1, 30) ** 2)
    answer = mf.log_partition(spec.build(), method=method, rng=0)
    assert answer.iterations == 29
    assert abs(float(answer) - spec.oracle().log_partition) < 4 * answer.standard_error


def contradicting(strength: float) -> mf.MarkovNetwork:
    """A spin glass whose best assignments break different pairs, some of them pairs that chains start by obeying."""
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
    for i in range(12):
        for k in range(i):
            if rng.random() < 0.4:
                net.add_factor([i, k], log_table=rng.choice([-1, 1]) * strength * np.array([[1, -1], [-1, 1]]))
    return net


def test_strong_factors_that_contradict_each_other_are_noticed():
    net = contradicting(10.0)
    exact = float(mf.log_partition(net, method="junction_tree"))
    with pytest.warns(UserWarning, match=r"is too low: a few assignments add up to .* missed some") as caught:
        answer = mf.log_partition(net, method=AnnealedImportance(), rng=0)
    assert not answer.converged
    assert float(answer) < exact - 3 * answer.standard_error
    # What it says of the sum is true.
    told = float(str(caught[0].message).split("add up to ")[1].split()[0])
    assert float(answer) < told <= exact + 1e-3
    for verb in (mf.marginals, lambda model, **rest: mf.sample(model, 128, **rest)):
        with pytest.warns(UserWarning, match="is too low"):
            assert not verb(net, method=AnnealedImportance(), rng=0).converged


def test_weak_contradictions_are_no_reason_to_warn():
    # Twenty runs; each would have to be three standard errors too low to warn.
    net = contradicting(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(mf.log_partition(net, method=AnnealedImportance(), rng=seed).converged for seed in range(20))
