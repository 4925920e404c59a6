"""The graphical lasso as a method: recovery, choices along the path, scales, weights, errors, and stopping."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError, StoppedError
from markovfield.learning.core.penalties import penalties_for
from markovfield.learning.gaussian.graphical_lasso import GraphicalLasso
from markovfield.learning.gaussian.moments import GaussianMoments


def pairs_of(graph) -> set[frozenset]:
    return {frozenset(e) for e in graph.edges}


@pytest.fixture(scope="module")
def twenty():
    """A sparse field of twenty variables of different units, and 2000 rows of it."""
    graph = nx.random_regular_graph(3, 20, seed=2)
    rng = np.random.default_rng(0)
    precision = np.eye(20) * 1.6
    for a, b in graph.edges:
        precision[a, b] = precision[b, a] = rng.choice([-0.35, 0.35])
    units = rng.uniform(0.1, 10.0, 20)
    field = mf.GaussianField(precision / units[:, None] / units, variables=[f"v{i}" for i in range(20)])
    named = nx.relabel_nodes(graph, {i: f"v{i}" for i in range(20)})
    return field, named, dict(zip(field.variables, field.sample(2000, rng=1).T, strict=True))


def test_the_graph_is_found_by_the_criterion_and_by_stability(twenty):
    _, graph, rows = twenty
    learned = mf.learn_structure(rows, method="graphical_lasso")
    assert pairs_of(learned.graph) == pairs_of(graph)
    assert list(learned.graph) == list(rows)
    stable = mf.learn_structure(rows, method=GraphicalLasso(selection="stability", subsamples=12), rng=0)
    assert pairs_of(stable.graph) == pairs_of(graph)
    assert stable.details.frequencies.max() == 1.0
    assert "false edges are expected" in stable.notes[0]


def test_cross_validation_keeps_the_edges_and_predicts_better_than_independence(twenty):
    _, graph, rows = twenty
    learned = mf.learn_structure(rows, method=GraphicalLasso(selection="cv", n_penalties=12), rng=0)
    assert pairs_of(graph) <= pairs_of(learned.graph)
    path = learned.details
    assert learned.score == path.held_out.max() > path.held_out[0]
    assert (path.held_out_error >= 0).all()
    # Held-out rows are scored on the scale of the data.
    saturated = mf.GaussianField.from_moments(
        np.mean(list(rows.values()), axis=1), np.cov(np.array(list(rows.values())), bias=True)
    )
    own = float(np.mean(saturated.log_density(np.array(list(rows.values())).T)))
    assert path.held_out.max() < own
    assert path.held_out.max() == pytest.approx(own, abs=0.5)


def test_the_criterion_is_that_of_the_maxima_on_the_graphs(twenty):
    _, _, rows = twenty
    learned = mf.learn_structure(rows, method=GraphicalLasso(n_penalties=8, gamma=0.5))
    path, at = learned.details, learned.details.chosen
    values = np.array(list(rows.values()))
    covariance, n = np.cov(values, bias=True), values.shape[1]
    edges = [(list(rows).index(a), list(rows).index(b)) for a, b in learned.edges]
    from markovfield.learning.gaussian.newton_on_graph import newton_on_graph

    x, _, converged, _ = newton_on_graph(covariance, np.array(edges))
    assert converged
    field = mf.GaussianField(x, x @ values.mean(axis=1))
    likelihood = float(np.sum(field.log_density(values.T)))
    assert path.log_likelihoods[at] == pytest.approx(likelihood, rel=1e-6)
    wanted = likelihood - 0.5 * (40 + len(edges)) * math.log(n) - len(edges) * math.log(20)
    assert path.ebic[at] == pytest.approx(wanted, rel=1e-6)
    assert learned.score == path.ebic.max()
    plain = mf.learn_structure(rows, method=GraphicalLasso(n_penalties=8, refit=False)).details
    assert (plain.log_likelihoods <= path.log_likelihoods + 1e-6).all()


def test_units_do_not_matter_unless_the_covariance_is_asked_for(twenty):
    _, _, rows = twenty
    scaled = {v: 100.0 * x + 7.0 for v, x in rows.items()}
    one, two = (mf.learn_structure(r, method=GraphicalLasso(penalty=0.15)) for r in (rows, scaled))
    assert np.allclose(one.precision.toarray(), 1e4 * two.precision.toarray(), rtol=1e-4, atol=1e-4)
    assert np.allclose(one.gaussian.mean, np.mean(list(rows.values()), axis=1))
    raw = GraphicalLasso(penalty=0.15, standardised=False)
    assert pairs_of(mf.learn_structure(rows, method=raw).graph) != pairs_of(
        mf.learn_structure(scaled, method=raw).graph
    )


def test_scikit_learn_and_we_agree_on_the_covariance(twenty):
    from sklearn.covariance import GraphicalLasso as Theirs

    values = np.random.default_rng(3).standard_normal((150, 6)) @ np.random.default_rng(4).uniform(0, 1, (6, 6))
    theirs = Theirs(alpha=0.1, tol=1e-10, enet_tol=1e-12, max_iter=500).fit(values)
    ours = mf.learn_structure(values, method=GraphicalLasso(penalty=0.1, standardised=False, tolerance=1e-12))
    assert np.abs(ours.precision.toarray() - theirs.precision_).max() <= 1e-5 * np.abs(theirs.precision_).max()
    assert np.allclose(ours.covariance, theirs.covariance_, rtol=1e-4)


def test_moments_take_the_place_of_rows(twenty):
    _, _, rows = twenty
    values = np.array(list(rows.values()))
    moments = GaussianMoments(np.cov(values, bias=True), 2000, values.mean(axis=1), list(rows))
    ours, theirs = (mf.learn_structure(d, method="glasso") for d in (moments, rows))
    assert ours.edges == theirs.edges
    assert mf.learn_structure(moments).method == "graphical_lasso"
    with pytest.raises(ModelError, match="needs rows of data, got GaussianMoments"):
        mf.learn_structure(moments, method=GraphicalLasso(selection="cv"))
    with pytest.raises(ModelError, match="weights are of rows"):
        mf.learn_structure(moments, method="glasso", weights=[1.0])


def test_the_path_falls_from_no_edge_and_every_gap_is_closed(twenty):
    _, _, rows = twenty
    path = mf.learn_structure(rows, method=GraphicalLasso(selection=None, n_penalties=10, tolerance=1e-7)).details
    assert path.n_edges[0] == 0 < path.n_edges[1]
    assert (np.diff(path.penalties) < 0).all()
    assert (path.gaps <= 1e-7).all()
    assert (np.diff(path.objectives) <= 1e-6).all()
    assert ((path.strengths != 0).sum(axis=1) == path.n_edges).all()
    assert path.chosen == 9
    assert len(path.to_frame()) == 10
    alone = mf.learn_structure(rows, method=GraphicalLasso(penalty=float(path.penalties[6]), tolerance=1e-9))
    assert np.allclose(alone.precision.toarray(), path.precisions[6].toarray(), rtol=1e-2, atol=1e-3)
    short = mf.learn_structure(rows, method=GraphicalLasso(max_edges=20, n_penalties=10)).details
    assert short.n_edges.max() <= 20


def test_weights_forbid_and_free_edges_and_adaptive_ones_shrink_less(twenty):
    _, graph, rows = twenty
    names = list(rows)
    weights = np.ones((20, 20))
    a, b = (names.index(v) for v in next(iter(graph.edges)))
    weights[a, b] = weights[b, a] = np.inf
    learned = mf.learn_structure(rows, method=GraphicalLasso(penalty=0.1, weights=weights))
    assert learned.precision[a, b] == 0.0
    weights[a, b] = weights[b, a] = 0.0
    assert mf.learn_structure(rows, method=GraphicalLasso(penalty=5.0, weights=weights)).edges == (
        (names[a], names[b]),
    )
    plain, adaptive = (mf.learn_structure(rows, method=GraphicalLasso(penalty=0.15, adaptive=x)) for x in (0.0, 1.0))
    assert pairs_of(adaptive.graph) >= pairs_of(graph) & pairs_of(plain.graph)
    strength = {m: np.mean([abs(m.graph.edges[e]["weight"]) for e in graph.edges]) for m in (plain, adaptive)}
    assert strength[adaptive] > strength[plain] + 0.02


def test_more_variables_than_rows_are_noted_and_do_not_fail():
    values = np.random.default_rng(0).standard_normal((20, 40))
    learned = mf.learn_structure(values, method="glasso")
    assert "20 rows of 40 variables: only the penalty bounds it" in learned.notes
    assert np.linalg.eigvalsh(learned.precision.toarray())[0] > 0
    assert learned.graph.number_of_edges() <= 3
    dense = mf.learn_structure(values[:8], method=GraphicalLasso(smallest=0.02, n_penalties=6))
    assert any("no maximum-likelihood estimate" in note for note in dense.notes)


def test_stopping_gives_what_there_is(twenty):
    _, _, rows = twenty
    seen = []
    learned = mf.learn_structure(rows, method="glasso", callback=lambda p: seen.append(p) or len(seen) > 40)
    assert not learned.converged
    assert learned.stopped == "the callback"
    assert 1 <= len(learned.details.penalties) < 30
    with pytest.raises(StoppedError):
        mf.learn_structure(rows, method=GraphicalLasso(penalty=0.1), callback=lambda p: True)


def test_one_variable_and_two_have_answers():
    values = np.random.default_rng(0).standard_normal((30, 2))
    one = mf.learn_structure(values[:, :1], method="glasso")
    assert one.precision.toarray()[0, 0] == pytest.approx(1 / values[:, 0].var())
    two = mf.learn_structure(values, method=GraphicalLasso(penalty=1e-9, tolerance=1e-14)).precision.toarray()
    assert np.allclose(two, np.linalg.inv(np.cov(values.T, bias=True)), rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"penalty": 0.0}, "penalty of GraphicalLasso must be positive"),
        ({"penalty": math.inf}, "penalty of GraphicalLasso must be finite"),
        ({"selection": "aic"}, "selection of GraphicalLasso must be 'ebic', 'cv' or 'stability'"),
        ({"threshold": 1.5}, "share of subsamples, at most 1"),
        ({"folds": 1}, "folds of GraphicalLasso must be at least 2"),
    ],
)
def test_settings_are_checked(settings, match):
    with pytest.raises(ModelError, match=match):
        GraphicalLasso(**settings)


def test_data_are_checked(twenty):
    _, _, rows = twenty
    with pytest.raises(ModelError, match=r"weights of GraphicalLasso need shape \(20, 20\), got \(2, 2\)"):
        mf.learn_structure(rows, method=GraphicalLasso(weights=np.eye(2)))
    with pytest.raises(ModelError, match="symmetric numbers of at least 0"):
        mf.learn_structure(rows, method=GraphicalLasso(weights=-np.ones((20, 20))))
    with pytest.raises(ModelError, match="graphical_lasso needs complete data, but 'v0' is missing in 1 row"):
        mf.learn_structure(rows | {"v0": np.append(rows["v0"][1:], np.nan)}, method="glasso")
    with pytest.raises(ModelError, match="network and drop_missing of learn_structure are not for"):
        mf.learn_structure(rows, method="glasso", drop_missing=True)
    with pytest.raises(ModelError, match="6 rows cannot be cut into 5 folds"):
        mf.learn_structure({v: x[:6] for v, x in rows.items()}, method=GraphicalLasso(selection="cv"))
    spins = {"a": [0, 1, 0, 1], "b": [0, 1, 1, 1]}
    with pytest.raises(ModelError, match="'chow_liu' learns a graph without numbers"):
        _ = mf.learn_structure(spins, method="chow_liu").to_graph().precision


def test_the_path_is_drawn(twenty):
    from markovfield.plot.penalties import penalty_path

    _, graph, rows = twenty
    learned = mf.learn_structure(rows, method="glasso")
    assert len(penalty_path(learned, truth=graph).lines) >= len(learned.details.edges)
    assert penalty_path(learned.details).get_xscale() == "log"


def test_penalties_reach_down_to_the_noise():
    assert len(penalties_for(1.0, 0.1, 5, None)) == 5
