"""What `converged` promises of answers that were drawn: over the registry, on models that mislead samplers.

Among answers that say they have converged, no probability is more than six of its own standard errors from the truth:
were errors normal, a false alarm of 2e-9 for each of some ten thousand. Where chains cannot be trusted the answer must
say so, in words.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.inference.core.registry import methods
from markovfield.inference.perfect_sampling import coupling_from_the_past
from tests.hostile_models import KINDS, hostile

SIX = 6.0
MODELS = 3 * len(KINDS)
SHORT = {"sweeps": 1500, "n_temperatures": 6, "n_chains": 4, "max_doublings": 11}
# Further settings that take other paths than the default ones.
PATHS: dict[str, list[dict[str, Any]]] = {
    "gibbs": [{"scan": "random"}, {"scan": "coloured"}, {"scan": "trees"}, {"n_chains": 2}],
    "metropolis": [{"proposal": "conditional", "scan": "random"}],
    "parallel_tempering": [{"base": "metropolis", "swaps_every": 3}],
    "wolff": [{"clusters": 1, "local_sweeps": 0}],
    "annealed_importance": [{"n_chains": 32, "n_temperatures": 20}],
}


def configurations(verb: str) -> list[Any]:
    """Every registered method that draws, with settings that are quick, and with those of other paths."""
    found = []
    for name, kind in sorted(methods(verb).items()):
        if "sample" not in kind.verbs or name in ("enumeration", "junction_tree"):
            continue
        known = {f.name for f in dataclasses.fields(kind)}
        short = {k: v for k, v in SHORT.items() if k in known}
        if name == "annealed_importance":
            short = {"n_temperatures": 100}
        found += [kind(**short), *(kind(**short | more) for more in PATHS.get(name, []))]
    return [pytest.param(method, id=repr(method)) for method in found]


def worst_score(estimate: np.ndarray, errors: np.ndarray, truth: np.ndarray) -> float:
    off = np.abs(estimate - truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(off < 1e-9, 0.0, off / errors), initial=0.0))


def check(method: Any, verb: str, least: int) -> None:
    trusted = 0
    for seed in range(MODELS):
        spec, evidence = hostile(seed)
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            continue
        model, known = spec.build(), spec.named(evidence)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if verb == "sample":
                    answer = mf.sample(model, 800, known, method=method, rng=seed)
                else:
                    answer = mf.marginals(model, known, method=method, rng=seed)
            except mf.ModelError:
                continue  # another kind of model, or one that moves cannot cross: said in words
        said = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        if not answer.converged:
            assert said and answer.monte_carlo.doubts, (seed, "not converged, and no word why")
            continue
        assert not said
        trusted += 1
        for v, label in enumerate(spec.labels):
            truth = np.asarray(oracle.marginal(v), float)
            if verb == "sample":
                found, errors = answer.frequencies(label)
            else:
                found, errors = answer[label], answer.standard_error(label)
            assert worst_score(found, errors, truth) <= SIX, (seed, label, found, errors, truth)
        log_partition = answer.log_partition
        if not np.isnan(log_partition):
            room = SIX * answer.log_partition_error + 1e-9 * max(1.0, abs(log_partition))
            assert abs(log_partition - oracle.log_partition) <= room, (seed, log_partition, oracle.log_partition)
    assert trusted >= least, "a method that never trusts itself says nothing"


@pytest.mark.parametrize("method", configurations("marginals"))
def test_marginals_that_say_they_converged_have(method: Any):
    check(method, "marginals", 4)


@pytest.mark.parametrize("method", configurations("sample"))
def test_samples_that_say_they_converged_have(method: Any):
    check(method, "sample", 1)


def needle(gap: float = 0.0) -> mf.MarkovNetwork:
    """Two cells of one table far above all others: no single change leads from one to the other."""
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    table = np.zeros((2, 2, 2))
    table[0, 0, 0], table[1, 1, 1] = 30.0, 30.0 + gap
    net.add_factor(["A", "B", "C"], log_table=table)
    return net


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["gibbs", "metropolis"])
def test_chains_in_one_of_two_modes_have_not_converged(name: str, seed: int):
    with pytest.warns(ConvergenceWarning, match=f"{name} has not converged: the chains do not agree"):
        answer = mf.marginals(needle(), method=name, rng=seed)
    assert not answer.converged and "R-hat" in answer.monte_carlo.doubts[0]
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        assert not mf.sample(needle(), 400, method=name, rng=seed).converged


def test_one_chain_knows_of_the_mode_it_did_not_find():
    """R-hat of one frozen chain says nothing; the scores of what a search finds do."""
    with pytest.warns(ConvergenceWarning, match="likely assignments did not come up as often as their scores ask for"):
        answer = mf.marginals(needle(), method=mf.Gibbs(n_chains=1), rng=0)
    assert not answer.converged and answer.monte_carlo.doubts
    with pytest.warns(ConvergenceWarning, match="likely assignments did not come up"):
        drawn = mf.sample(needle(), 400, method=mf.Gibbs(n_chains=1), rng=0)
    assert not drawn.converged and drawn.monte_carlo.doubts


def test_r_hat_must_be_below_what_the_docs_say():
    """Chains that cross now and then: an R-hat between 1.01 and 1.1 is not enough."""
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], log_table=[[6.0, 0.0], [0.0, 6.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [mf.marginals(net, method=mf.Gibbs(sweeps=8000), rng=seed) for seed in range(6)]
    between = [a for a in answers if 1.01 < np.nanmax(a.monte_carlo.r_hats) < 1.1]
    assert between and not any(a.converged for a in between)


def test_states_never_seen_have_an_error():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A"], log_table=[0.0, -12.0])
    net.add_factor(["A", "B"], log_table=[[1.0, 0.0], [0.0, 1.0]])
    drawn = mf.sample(net, 1000, method="gibbs", rng=0)
    found, errors = drawn.frequencies("A")
    assert found[1] == 0 and errors[1] == pytest.approx(0.003, rel=0.5) and drawn.converged
    exact = mf.sample(net, 1000, method="junction_tree", rng=0).frequencies("A")
    assert exact[0][1] == 0 and exact[1][1] == pytest.approx(0.003)
    counted = mf.marginals(net, method=mf.Gibbs("random", sweeps=250), rng=0)
    assert counted["A"][1] == 0 and 0.002 < counted.standard_error("A")[1] < 0.02


def test_annealing_that_never_scatters_has_an_error():
    """A strong ring: every chain gains the same, so its weights say nothing of what they have not seen."""
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[9.0, 0.0], [0.0, 9.0]])
    exact = float(mf.log_partition(net, method="enumeration"))
    answer = mf.log_partition(net, method=mf.AnnealedImportance(n_chains=32, n_temperatures=20), rng=0)
    assert 1e-9 < abs(float(answer) - exact) < 3 * answer.standard_error


def disagreeing() -> mf.MarkovNetwork:
    """Three spins that hold each other under fields of both signs: bonds cannot take them, spins take for ever."""
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[17.0, 0.0], [0.0, 17.0]])
    net.add_factor(["A"], log_table=[0.0, 0.7])
    net.add_factor(["B"], log_table=[1.5, 0.0])
    return net


def test_coupling_gives_up_before_it_draws(monkeypatch: pytest.MonkeyPatch):
    def draw(*_: Any) -> int:
        raise AssertionError("a pilot should have found that chains do not meet")

    monkeypatch.setattr(mf.CouplingFromThePast, "_draw", draw)
    with pytest.raises(mf.ModelError, match=r"have not met within 2\^12 sweeps"):
        mf.sample(disagreeing(), 5000, method=mf.CouplingFromThePast(max_doublings=12), rng=0)
    monkeypatch.setattr(coupling_from_the_past, "MOST_SWEEPS", 1000.0)
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], log_table=[[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(mf.ModelError, match="5000 samples of coupling_from_the_past would take about"):
        mf.sample(net, 5000, method="coupling_from_the_past", rng=0)


def test_coupling_keeps_to_the_time_limit():
    mf.sample(mf.Ising((3, 3), 0.1), 8, method="coupling_from_the_past", rng=0)  # compiled before the clock starts
    with pytest.raises(TimeoutError):
        mf.sample(disagreeing(), 100, method=mf.CouplingFromThePast(max_doublings=40), rng=0, time_limit=0.3)
