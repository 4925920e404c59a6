"""log Z by annealing, against the sum over all states."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.annealed import annealed_log_partition, log_partition
from markovfield.models.boltzmann import RestrictedBoltzmannMachine


def machine(seed, n_visible=12, n_hidden=8, scale=1.0):
    rng = np.random.default_rng(seed)
    return RestrictedBoltzmannMachine(
        n_visible, n_hidden, scale * rng.normal(size=(n_visible, n_hidden)), rng.normal(size=n_visible),
        rng.normal(size=n_hidden),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rates", [None, "given"])
def test_within_its_standard_error(seed, rates):
    model = machine(seed)
    base = None if rates is None else np.random.default_rng(seed).uniform(0.2, 0.8, 12)
    answer = annealed_log_partition(model, base_rates=base, n_chains=400, n_temperatures=300, rng=seed)
    assert answer.standard_error is not None
    assert 0 < answer.standard_error < 0.2
    assert abs(answer.log_partition - model.log_partition_exact()) < 5 * answer.standard_error
    assert answer.converged
    assert answer.guarantee == "approximate"


def test_independent_units_need_no_annealing():
    model = RestrictedBoltzmannMachine(3, 2, None, [0.5, -1.0, 2.0], None)
    rates = 1 / (1 + np.exp(-model.visible_biases))
    answer = annealed_log_partition(model, base_rates=rates, n_chains=3, n_temperatures=1, rng=0)
    assert answer.log_partition == pytest.approx(model.log_partition_exact(), abs=1e-12)
    assert answer.standard_error == pytest.approx(0.0, abs=1e-12)


def test_too_few_temperatures_are_told():
    answer = annealed_log_partition(machine(1, 30, 25, 4.0), n_chains=20, n_temperatures=1, rng=0)
    assert not answer.converged


def test_exact_where_it_fits():
    small, large = machine(0), machine(0, 30, 20, 0.1)
    exact = log_partition(small)
    assert exact.guarantee == "exact"
    assert exact.standard_error is None
    assert float(exact) == small.log_partition_exact()
    estimate = log_partition(large, rng=0)
    assert estimate.method == "annealed_importance"
    forced = log_partition(large, "exact")
    assert abs(float(forced) - float(estimate)) < 5 * estimate.standard_error
    assert log_partition(small, "annealed", rng=1).guarantee == "approximate"


def test_seeds_and_stops():
    first, second = (annealed_log_partition(machine(2), n_temperatures=20, rng=5) for _ in range(2))
    assert first.log_partition == second.log_partition
    with pytest.raises(StoppedError):
        annealed_log_partition(machine(2), rng=0, running=Running(callback=lambda progress: progress.step > 3))


def test_bad_settings():
    with pytest.raises(ModelError, match="base_rates must be 12 probabilities strictly between 0 and 1"):
        annealed_log_partition(machine(0), base_rates=np.ones(12))
    with pytest.raises(ModelError, match="n_chains"):
        annealed_log_partition(machine(0), n_chains=1)
    with pytest.raises(ModelError, match="'auto', 'exact' or 'annealed', got 'ais'"):
        log_partition(machine(0), "ais")
