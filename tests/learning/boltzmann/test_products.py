"""Threads of matrix products: as many as asked for where products are large."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.products import OF_USE, UNASKED, product_threads
from markovfield.learning.boltzmann.training import fit_rbm
from markovfield.models.boltzmann import RestrictedBoltzmannMachine


def threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("work", "n_jobs", "expected"),
    [(1, None, 1), (1, 3, 1), (OF_USE, None, 1), (OF_USE, 2, 2), (OF_USE, 1, 1), (UNASKED, 2, 2)],
)
def test_threads_of_products(work, n_jobs, expected):
    before = threads()
    with product_threads(work, Running(n_jobs)):
        assert threads() == {expected}
    assert threads() == before
    with product_threads(UNASKED, Running(None)):
        assert threads() == before


def test_small_machines_do_not_depend_on_threads():
    rows = (np.random.default_rng(0).random((60, 40)) < 0.3).astype(float)
    one, two = (fit_rbm(RestrictedBoltzmannMachine(40, 30), rows, epochs=5, rng=0, running=Running(n)) for n in (1, 2))
    assert np.array_equal(one.weights, two.weights)
