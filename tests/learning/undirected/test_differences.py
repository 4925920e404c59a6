"""Log-odds worked out once against the objective that goes through all factors each time."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.undirected.differences import Differences
from markovfield.learning.undirected.local_objective import LocalObjective
from markovfield.learning.undirected.problem import Problem
from markovfield.learning.undirected.sites_kernel import PSEUDO
from markovfield.models import LogLinear


def clauses(seed, n=7):
    """Clauses, a parity, a cardinality and tables over binary variables."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    net = mf.MarkovNetwork(dict.fromkeys(names, 2))
    for _ in range(8):
        chosen = rng.choice(names, int(rng.integers(1, 4)), replace=False).tolist()
        cut = int(rng.integers(0, len(chosen) + 1))
        net.add_clause(dict.fromkeys(chosen[:cut], 1), dict.fromkeys(chosen[cut:], 1), weight=float(rng.normal()))
    net.add_parity({"v0": 1, "v1": 1, "v2": 1}, weight=0.4)
    net.add_cardinality(rng.normal(size=4).tolist(), dict.fromkeys(names[:4], 1))
    net.add_factor(["v1", "v3"], rng.uniform(0.5, 2.0, (2, 2)))
    return net


@pytest.mark.parametrize("seed", range(4))
def test_the_same_value_and_gradient(seed):
    rng = np.random.default_rng(seed)
    model = LogLinear.of(clauses(seed))
    rows = rng.integers(0, 2, (3, 7))
    problem = Problem(model, encode(rows, model, weights=[1.0, 2.0, 0.5]), Running())
    assert Differences.apply(problem)
    one, other = Differences(problem), LocalObjective(problem, PSEUDO)
    w = rng.normal(size=len(model.parameters))
    assert one(w)[0] == pytest.approx(other(w)[0], abs=1e-12)
    np.testing.assert_allclose(one(w)[1], other(w)[1], atol=1e-12)


def test_what_hard_constraints_decide_counts_nothing():
    net = mf.MarkovNetwork({"a": 2, "b": 2, "c": 2})
    net.add_clause({"a": 1}, {"b": 1})  # b implies a
    net.add_clause({"c": 1}, weight=0.7)
    model = LogLinear.of(net)
    problem = Problem(model, encode([[1, 1, 0]], model), Running())
    one, other = Differences(problem), LocalObjective(problem, PSEUDO)
    w = np.linspace(-1, 1, len(model.parameters))
    assert one(w)[0] == pytest.approx(other(w)[0], abs=1e-12)
    np.testing.assert_allclose(one(w)[1], other(w)[1], atol=1e-12)
    with pytest.raises(mf.ModelError, match="the model gives probability zero to the data"):
        mf.fit(net, [[0, 1, 1]], method="pseudo_likelihood")
