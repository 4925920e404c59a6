from __future__ import annotations

import numpy as np

from markovfield.learning.tables.fitting import Scaling
from markovfield.learning.tables.hull import plan_hull
from markovfield.learning.tables.scaling_kernel import SWEEPS, UNREACHABLE


def test_calibration_sums_starting_factors():
    hull = plan_hull([2, 3, 2], [(0, 1), (1, 2)])
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 3)), rng.random((3, 2))
    scaling = Scaling(hull, [first, second])
    total = np.einsum("ab,bc->", first, second)
    assert scaling.possible
    np.testing.assert_allclose(np.exp(scaling.log_scale.sum()), total, rtol=1e-12)
    root = int(np.flatnonzero(hull.parents < 0)[0])
    table = scaling.tables[hull.set_at[root] : hull.set_at[root + 1]]
    joint = np.einsum("ab,bc->abc", first, second) / total
    expected = joint.sum(axis=2) if hull.cliques[root] == (0, 1) else joint.sum(axis=0)
    np.testing.assert_allclose(table, expected.ravel(), rtol=1e-12)


def test_factors_without_a_possible_cell():
    hull = plan_hull([2, 2], [(0,), (0, 1)])
    assert not Scaling(hull, [np.array([1.0, 0.0]), np.array([[0.0, 0.0], [1.0, 1.0]])]).possible


def test_a_margin_out_of_reach_is_told():
    hull = plan_hull([2, 2], [(0, 1), (0,)], [False, True])
    scaling = Scaling(hull, [np.array([[1.0, 1.0], [0.0, 0.0]]), None])
    targets = np.array([[0.0, 0.0, 0.0, 0.0, 0.5, 0.5]])
    scaling.sweep(targets, 10, 1e-9)
    assert scaling.state[UNREACHABLE] == 5
    assert scaling.state[SWEEPS] == 1


def test_a_sweep_can_be_cut_anywhere(monkeypatch):
    from markovfield.learning.tables import fitting

    scopes = [(0, 1), (1, 2), (2, 3), (0, 3)]
    hull = plan_hull([2] * 4, scopes)
    rng = np.random.default_rng(2)
    joint = rng.random([2] * 4)
    targets = np.concatenate([joint.sum(axis=tuple(v for v in range(4) if v not in s)).ravel() for s in scopes])[None]
    whole = Scaling(hull, [None] * 4)
    deviations = whole.sweep(targets, 5, 0.0)
    monkeypatch.setattr(fitting, "CHUNK", 1.0)
    cut = Scaling(hull, [None] * 4)
    found: list[float] = []
    while len(found) < 5:
        found += cut.sweep(targets, 1, 0.0).tolist()
    np.testing.assert_array_equal(found, deviations)
    np.testing.assert_array_equal(cut.log_factors, whole.log_factors)
