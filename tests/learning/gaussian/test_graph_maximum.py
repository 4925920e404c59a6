"""Maxima on a graph: four algorithms agree, published deviances, conditions of the likelihood, covariance graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.covariance_graph_maximum import covariance_graph_maximum
from markovfield.learning.gaussian.goodness import goodness
from markovfield.learning.gaussian.graph_maximum import maximum_on_graph, positions_of
from markovfield.learning.gaussian.incomplete import em, expected_moments
from markovfield.learning.gaussian.moments import GaussianMoments, NumberTable, read_moments
from markovfield.learning.gaussian.newton_on_graph import newton_on_graph
from tests.data import data_path

BUTTERFLY = [
    ("mechanics", "vectors"),
    ("mechanics", "algebra"),
    ("vectors", "algebra"),
    ("algebra", "analysis"),
    ("algebra", "statistics"),
    ("analysis", "statistics"),
]


def moments(n, seed, rows=50):
    rng = np.random.default_rng(seed)
    return read_moments(3 + rng.standard_normal((rows, n)) @ (np.eye(n) + 0.5 * rng.standard_normal((n, n))))


def graph_of(n, seed, density):
    graph = nx.gnp_random_graph(n, density, seed=seed)
    graph.add_nodes_from(range(n))
    return graph


@given(st.integers(1, 7), st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_all_algorithms_agree_and_meet_the_conditions(n, seed, density):
    data, graph = moments(n, seed), graph_of(n, seed, density)
    algorithms = ["newton", "ipf", "regression"] + ["closed_form"] * nx.is_chordal(graph)
    deviations = np.sqrt(np.diag(data.covariance))
    for algorithm in algorithms:
        found = maximum_on_graph(data, graph, algorithm=algorithm, tolerance=1e-10, max_iterations=20_000)
        assert found.converged
        x = found.precision
        edges = nx.to_numpy_array(graph, nodelist=range(n)) + np.eye(n)
        assert (x[edges == 0] == 0).all()
        apart = (np.linalg.inv(x) - data.covariance) / deviations[:, None] / deviations
        # The conditions have one solution, so this is agreement as well.
        assert np.abs(apart[edges > 0]).max() <= 1e-6
        assert (np.diff(found.history) >= -1e-9 * (1 + np.abs(found.history[:-1]))).all()


def test_deviances_of_the_mathematics_marks_are_the_published_ones():
    import pandas as pd

    frame = pd.read_csv(data_path("tables", "mathmark.csv"))
    data = read_moments(frame)
    butterfly = positions_of(nx.Graph(BUTTERFLY), data.variables)
    for algorithm in ("auto", "closed_form", "newton", "ipf", "regression"):
        x = maximum_on_graph(data, butterfly, algorithm=algorithm).precision
        fit = goodness(data, x, 6)
        # R's ggm and Whittaker (1990), chapter 6: TARGETS has 0.8957 on 4.
        assert fit.degrees_of_freedom == 4
        assert fit.deviance == pytest.approx(0.8957, abs=5e-5)
    empty = nx.empty_graph(5)
    fit = goodness(data, maximum_on_graph(data, empty).precision, 0)
    assert fit.degrees_of_freedom == 10
    assert fit.deviance == pytest.approx(202.515, abs=5e-4)
    assert fit.p_value < 1e-30


def test_newton_steps_find_the_maximum_of_nearly_singular_data():
    import pandas as pd

    # Density and body fat have a correlation of -0.988.
    data = read_moments(pd.read_csv(data_path("tables", "BodyFat.csv")))
    graph = nx.cycle_graph(data.n_variables)
    graph.add_edges_from([(0, 7), (7, 3)])
    newton = maximum_on_graph(data, graph, algorithm="newton")
    slow = maximum_on_graph(data, graph, algorithm="ipf", tolerance=1e-11)
    assert newton.iterations < 30
    assert goodness(data, newton.precision, 17).deviance == pytest.approx(goodness(data, slow.precision, 17).deviance)


def test_a_graph_with_too_few_rows_names_its_clique():
    data = moments(6, 0, rows=4)
    with pytest.raises(ModelError, match=r"covariance of a clique is not positive definite.*eigenvalue.*clique of 6"):
        maximum_on_graph(data, nx.complete_graph(6))
    assert maximum_on_graph(data, nx.path_graph(6)).converged
    # A cycle of six has cliques of two and chordal covers with cliques of three.
    assert maximum_on_graph(data, nx.cycle_graph(6)).converged
    assert maximum_on_graph(data.shrunk(0.1), nx.complete_graph(6)).converged


def test_steps_do_not_end_where_there_is_no_maximum():
    s = np.array([[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]])
    _, steps, converged, _ = newton_on_graph(s, np.array([[0, 1]]), max_iterations=20)
    assert not converged or steps == 20


@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_covariance_graphs_meet_the_conditions_of_the_likelihood(n, seed, density):
    data, graph = moments(n, seed, rows=200), graph_of(n, seed, density)
    sigma, history, converged = covariance_graph_maximum(data, graph, tolerance=1e-11, max_iterations=20_000)
    assert converged
    edges = nx.to_numpy_array(graph, nodelist=range(n)) + np.eye(n)
    assert (sigma[edges == 0] == 0).all()
    assert (np.diff(history) >= -1e-10 * (1 + np.abs(history[:-1]))).all()
    inverse = np.linalg.inv(sigma)
    score = inverse - inverse @ data.covariance @ inverse
    scale = np.sqrt(np.diag(sigma))
    assert np.abs(score * scale[:, None] * scale)[edges > 0].max() <= 1e-6


def log_density(values, mean, sigma):
    """Of one row, of what is there of it."""
    there = ~np.isnan(values)
    apart, part = (values - mean)[there], sigma[np.ix_(there, there)]
    return -0.5 * (apart @ np.linalg.solve(part, apart) + np.linalg.slogdet(2 * np.pi * part)[1])


def test_expectation_maximisation_climbs_the_likelihood_of_what_was_observed():
    rng = np.random.default_rng(4)
    values = 2 + rng.standard_normal((120, 4)) @ (np.eye(4) + 0.5 * rng.standard_normal((4, 4)))
    values[rng.random(values.shape) < 0.2] = np.nan
    weights = rng.uniform(0.5, 2.0, 120)
    table = NumberTable(tuple("abcd"), values, weights)
    graph = nx.path_graph(4)
    found, x, history, converged = em(
        table, lambda m: maximum_on_graph(m, graph).precision, tolerance=1e-13, max_iterations=5000
    )
    assert converged
    assert (np.diff(history) >= -1e-9).all()
    sigma = np.linalg.inv(x)

    def likelihood(mean, matrix):
        return sum(w * log_density(row, mean, matrix) for row, w in zip(values, weights, strict=True))

    assert history[-1] == pytest.approx(likelihood(found.mean, sigma))
    # No small change of the mean or of a free entry of the precision betters it.
    best = likelihood(found.mean, sigma)
    for v in range(4):
        for step in (-1e-3, 1e-3):
            assert likelihood(found.mean + step * np.eye(4)[v], sigma) < best
    for a, b in [(0, 0), (0, 1), (1, 2), (3, 3)]:
        for step in (-1e-3, 1e-3):
            other = x.copy()
            other[a, b] += step
            other[b, a] = other[a, b]
            assert likelihood(found.mean, np.linalg.inv(other)) < best


def test_complete_rows_are_their_own_expectation():
    rng = np.random.default_rng(1)
    table = NumberTable(("x", "y"), rng.standard_normal((30, 2)), np.ones(30))
    found, _ = expected_moments(table, np.array([5.0, -5.0]), np.eye(2))
    own = table.moments("data")
    assert np.allclose(found.mean, own.mean)
    assert np.allclose(found.covariance, own.covariance)


def test_deviance_is_not_a_number_where_the_complete_graph_has_no_maximum():
    data = GaussianMoments(np.ones((3, 3)) * (1 - 1e-17) + np.diag([0.0, 0.0, 1.0]), 10)
    fit = goodness(data, np.eye(3), 0)
    assert np.isnan(fit.deviance)
    assert np.isnan(fit.p_value)
