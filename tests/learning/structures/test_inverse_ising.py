"""Couplings from samples: consistency of pseudo-likelihood, and what mean-field inversions get right and wrong."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.structures.inverse_ising import METHODS, inverse_ising


def random_model(n: int, size: float, seed: int, field: float = 0.1) -> mf.Ising:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(n), 2))
    return mf.Ising(
        pairs, coupling=size * rng.normal(size=len(pairs)), field=dict(enumerate(field * rng.normal(size=n)))
    )


def every_state(model: mf.Ising):
    """All states of a small model and their probabilities: data without noise."""
    n = model.n_variables
    joint = np.asarray(mf.marginals(model).joint(list(range(n)))).ravel()
    return 2.0 * (np.arange(2**n)[:, None] >> np.arange(n)[::-1] & 1) - 1.0, joint


def error(found: mf.Ising, model: mf.Ising) -> float:
    return float(np.sqrt(np.mean((found.edge_couplings - model.edge_couplings) ** 2)))


def test_pseudo_likelihood_of_exact_moments_is_exact():
    model = random_model(6, 0.5, 0)
    states, p = every_state(model)
    found = inverse_ising(states, weights=1000 * p)
    np.testing.assert_allclose(found.edge_couplings, model.edge_couplings, atol=1e-6)
    np.testing.assert_allclose(found.field, model.field, atol=1e-6)


@pytest.mark.parametrize("method", METHODS[1:])
def test_weak_couplings_are_found_by_all(method: str):
    """With exact moments, what is left is each method's own error, of higher order in the couplings."""
    errors = []
    for size in (0.02, 0.04):
        model = random_model(6, size, 1)
        states, p = every_state(model)
        found = inverse_ising(states, method, weights=1000 * p)
        errors.append(error(found, model))
        assert np.abs(np.asarray(found.field) - np.asarray(model.field)).max() < size
    assert errors[0] < 0.2 * 0.02 and errors[1] > 2.5 * errors[0]


def test_orders_of_accuracy():
    """Loops cost mean field and pairs the second or third order; their sum is better than each."""
    model = random_model(7, 0.08, 2)
    states, p = every_state(model)
    errors = {m: error(inverse_ising(states, m, weights=1000 * p), model) for m in METHODS}
    assert errors["small_correlation"] < errors["mean_field"] < errors["independent_pair"]
    assert errors["pseudo_likelihood"] < 1e-6
    # Onsager's term is of the order of the means: with strong fields it takes away most of the error.
    model = random_model(6, 0.04, 2, field=0.8)
    states, p = every_state(model)
    by_field, by_tap = (error(inverse_ising(states, m, weights=1000 * p), model) for m in ("mean_field", "tap"))
    assert by_tap < 0.5 * by_field


def test_a_pair_alone_is_exact():
    model = mf.Ising([(0, 1)], coupling=0.9, field=0.3)
    states, p = every_state(model)
    found = inverse_ising(states, "independent_pair", weights=1000 * p)
    assert found.edge_couplings[0] == pytest.approx(0.9) and np.allclose(found.field, 0.3)


def test_the_error_of_pseudo_likelihood_falls_as_one_over_the_root_of_the_rows():
    model = random_model(8, 0.3, 3)
    sizes, errors = (500, 4000, 32_000), []
    for rows in sizes:
        found = [inverse_ising(mf.sample(model, rows, rng=seed)) for seed in range(6)]
        errors.append(np.sqrt(np.mean([error(f, model) ** 2 for f in found])))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.08)


def test_strong_couplings_are_beyond_mean_field():
    graph = nx.random_regular_graph(3, 14, seed=4)
    model = mf.Ising(list(graph.edges), coupling=0.7)
    complete = mf.Ising(
        list(itertools.combinations(range(14), 2)),
        coupling={tuple(sorted(e)): 0.7 for e in graph.edges}
        | {e: 0.0 for e in itertools.combinations(range(14), 2) if not graph.has_edge(*e)},
    )
    samples = mf.sample(model, 20_000, rng=0)
    by_pseudo, by_field = (error(inverse_ising(samples, m), complete) for m in ("pseudo_likelihood", "mean_field"))
    assert by_pseudo < 0.2 * by_field


def test_spins_and_answers_are_read_alike():
    model = mf.Ising([(0, 1), (1, 2)], coupling=0.5)
    samples = mf.sample(model, 3000, rng=0)
    for method in METHODS:
        one, two = inverse_ising(samples, method), inverse_ising(model.to_spins(samples), method)
        np.testing.assert_allclose(one.edge_couplings, two.edge_couplings, rtol=1e-12)
    twice = inverse_ising(np.repeat(model.to_spins(samples), 2, axis=0))
    np.testing.assert_allclose(twice.edge_couplings, inverse_ising(samples).edge_couplings, atol=1e-6)


def test_a_penalty_shrinks():
    samples = mf.sample(mf.Ising([(0, 1), (1, 2)], coupling=0.5), 3000, rng=0)
    plain, shrunk = inverse_ising(samples), inverse_ising(samples, penalty=300.0)
    assert np.abs(shrunk.edge_couplings).sum() < np.abs(plain.edge_couplings).sum()
    assert shrunk.edge_couplings[1] == 0.0


def test_samples_that_no_method_can_invert():
    spins = np.array([[1, 1, 1], [-1, -1, 1], [1, 1, -1], [-1, -1, -1], [1, 1, 1]])
    with pytest.raises(mf.ModelError, match="no finite maximum"):
        inverse_ising(spins)
    assert np.isfinite(inverse_ising(spins, penalty=0.1).edge_couplings).all()
    for method in ("mean_field", "tap", "small_correlation"):
        with pytest.raises(mf.ModelError, match="have no inverse: give more samples, or smoothing"):
            inverse_ising(spins, method)
    with pytest.raises(mf.ModelError, match=r"spins 0 and 1 are never -1 and \+1: give more samples, or smoothing"):
        inverse_ising(spins, "independent_pair")
    for method in METHODS[1:3]:
        assert np.isfinite(inverse_ising(spins, method, smoothing=2.0).edge_couplings).all()
    stuck = np.column_stack([spins, np.ones(5)])
    for method in METHODS:
        with pytest.raises(mf.ModelError, match="spin 3 never flips"):
            inverse_ising(stuck, method)


@pytest.mark.parametrize(
    ("samples", "settings", "message"),
    [
        ([[0, 1]], {}, r"needs spins -1 and \+1"),
        ([1, -1], {}, r"at least two spins, \[rows, n\], got shape \(2,\)"),
        ([["a", "b"]], {}, "needs an array"),
        ([[1, -1]], {"method": "magic"}, "must be one of 'pseudo_likelihood', .*got 'magic'"),
        ([[1, -1]], {"weights": [1, 2]}, "one number of at least 0 for each of the 1 rows"),
        ([[1, -1]], {"smoothing": -1}, "smoothing must be a number of at least 0"),
    ],
)
def test_arguments_are_checked(samples, settings, message):
    with pytest.raises(mf.ModelError, match=message):
        inverse_ising(samples, **settings)


def test_samples_of_many_states():
    samples = mf.sample(mf.Potts([(0, 1)], 3, coupling=0.5), 10, rng=0)
    with pytest.raises(mf.ModelError, match="two states each"):
        inverse_ising(samples)
