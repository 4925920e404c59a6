"""Models, rows and differences that tests of log-linear learning share."""

from __future__ import annotations

import numpy as np

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.undirected.problem import Problem


def problem_of(model, rows, **settings):
    return Problem(mf.LogLinear.of(model), encode(rows, model, **settings), Running())


def mixed_network(seed: int) -> mf.MarkovNetwork:
    """Tables, shared tables, clauses, parities, cardinalities and distances."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork({"A": 2, "B": 3, "C": 2, "D": 2, "E": 3})
    net.add_factor(["A", "B"], log_table=rng.normal(size=(2, 3)))
    net.add_factors([["B", "C"], ["E", "D"]], log_table=rng.normal(size=(3, 2)))
    net.add_factor(["C", "D", "E"], log_table=rng.normal(size=(2, 2, 3)))
    net.add_clause({"A": 1, "C": 0, "D": 1}, weight=0.7)
    net.add_parity({"A": 1, "D": 1}, weight=0.3)
    net.add_potts([["B", "E"]], 0.5, -0.2)
    net.add_cardinality([0.0, 0.3, -0.2], {"A": 1, "C": 1, "D": 1})
    return net


def random_rows(net, n, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    cards = net.compile().structure.cardinalities
    rows = np.stack([rng.integers(0, c, n) for c in cards], axis=1)
    rows[rng.random(rows.shape) < missing] = -1
    return rows


def slopes(objective, theta):
    step = 1e-5 * np.eye(len(theta))
    return np.array([(objective(theta + h)[0] - objective(theta - h)[0]) / 2e-5 for h in step])


def ring(n, states=2):
    return mf.MarkovNetwork.from_edges(dict.fromkeys(range(n), states), [(i, (i + 1) % n) for i in range(n)])
