"""Classic networks: the numbers that books give for them, and the same network on every call."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


def test_sprinkler_as_murphy_has_it():
    net = mf.datasets.sprinkler()
    # Murphy (2001), "A brief introduction to graphical models": 0.2781 / 0.6471 and 0.4581 / 0.6471.
    assert np.exp(float(mf.log_partition(net, {"wet_grass": "yes"}))) == pytest.approx(0.6471, abs=5e-5)
    assert mf.probability(net, {"sprinkler": "on"}, {"wet_grass": "yes"}) == pytest.approx(0.430, abs=5e-4)
    assert mf.probability(net, {"rain": "yes"}, {"wet_grass": "yes"}) == pytest.approx(0.708, abs=5e-4)


def test_asia_by_hand():
    net = mf.datasets.asia()
    found = mf.marginals(net)
    tub, lung = 0.99 * 0.01 + 0.01 * 0.05, 0.5 * 0.01 + 0.5 * 0.1
    either = 1 - (1 - tub) * (1 - lung)
    assert found["tub"][1] == pytest.approx(tub) and found["lung"][1] == pytest.approx(lung)
    assert found["either"][1] == pytest.approx(either)
    assert found["xray"][1] == pytest.approx(0.98 * either + 0.05 * (1 - either))


def test_the_generated_network_is_always_the_same():
    one, two = mf.datasets.alarm_like(), mf.datasets.alarm_like()
    assert one.arcs == two.arcs and len(one) == 37 and len(one.arcs) == 46
    assert all(np.array_equal(one.cpt(v), two.cpt(v)) for v in one)
    assert {one.cardinality(v) for v in one} == {2, 3, 4} and max(len(one.parents(v)) for v in one) <= 4
    # Golden, by this code: other numbers would be another network.
    assert float(mf.marginals(one)["v37"][0]) == pytest.approx(0.7453072624, abs=1e-9)
