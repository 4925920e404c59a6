"""Penalised full conditionals against enumeration, finite differences, optimality conditions and scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.learning.core.data import DataTable, encode
from markovfield.learning.structures.coded_rows import CodedRows, contrasts_of
from markovfield.learning.structures.penalty_path import tables_of
from markovfield.learning.structures.regressions import Regressions
from tests.learning.structures.test_hill_climbing import drawn
from tests.oracle import Oracle


def spin_table(spins, weights=None) -> DataTable:
    n = spins.shape[1]
    return DataTable(tuple(range(n)), ((-1, 1),) * n, ((spins.T + 1) // 2).astype(np.int16), weights)


def correlated_spins(n: int, rows: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    model = mf.Ising([(i, (i + 1) % n) for i in range(n)], coupling=0.5, field=0.2)
    return np.asarray(model.to_spins(mf.sample(model, rows, rng=rng)))


def pseudo_likelihood_by_enumeration(rows: CodedRows, fields, couplings) -> float:
    """Sum over rows and variables of log p(state | others), each conditional from joint scores of the oracle."""
    table = rows.table
    place = {v: i for i, v in enumerate(table.variables)}
    factors = [((place[v],), f) for v, f in fields.items()]
    factors += [((place[a], place[b]), t) for (a, b), t in couplings.items()]
    cards = table.cardinalities.tolist()
    joint = Oracle(cards, factors).scores.reshape(cards)
    total = 0.0
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    for r, row in enumerate(table.codes.T.tolist()):
        for v in range(len(cards)):
            others = tuple(slice(None) if u == v else x for u, x in enumerate(row))
            total += weights[r] * float(joint[tuple(row)] - logsumexp(np.asarray(joint[others], np.float64)))
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_enumeration(weighted: bool):
    table = drawn(6, n=5, rows=60)
    if weighted:
        table = DataTable(table.variables, table.states, table.codes, np.random.default_rng(0).random(60) * 3)
    rows = CodedRows.of(table, "test")
    fit = Regressions(rows, l2=0.7)
    penalty = 0.2 * fit.largest_penalty
    assert fit.minimise(penalty)
    pairs = np.argwhere(np.triu(fit.norms) > 0)
    assert 2 <= len(pairs) < 10
    fields, couplings = tables_of(rows, fit.own, fit.coupling, pairs)
    likelihood = pseudo_likelihood_by_enumeration(rows, fields, couplings)
    assert -fit.loss == pytest.approx(likelihood, rel=1e-10)
    sizes = sum(np.sqrt((t.shape[0] - 1) * (t.shape[1] - 1)) * np.sqrt(np.mean(t**2)) for t in couplings.values())
    squares = sum((len(f) - 1) * np.mean(f**2) for f in fields.values())
    assert fit.penalised == pytest.approx(-likelihood + penalty * sizes + 0.35 * squares, rel=1e-10)
    for t in couplings.values():
        np.testing.assert_allclose([*t.sum(axis=0), *t.sum(axis=1)], 0, atol=1e-12)
    assert fit.held_out(rows.weights) == pytest.approx(-fit.loss, rel=1e-12)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("cards", [(2, 2), (2, 4)])
def test_optimality_conditions_by_finite_differences(tied: bool, cards):
    """The loss as a function of all couplings, differentiated by numbers, balances the penalty."""
    table = drawn(5, n=6, rows=400, cards=cards)
    rows = CodedRows.of(table, "test")
    fit = Regressions(rows, tied=tied, tolerance=1e-9)
    penalty = 0.25 * fit.largest_penalty
    assert fit.minimise(penalty)

    def loss(own, coupling) -> float:
        scores = coupling @ fit.features + own[:, None]
        total = 0.0
        for s, contrasts in enumerate(rows.contrasts):
            potentials = contrasts @ scores[rows.offsets[s] : rows.offsets[s + 1]]
            seen = potentials[rows.codes[s], np.arange(potentials.shape[1])]
            total += rows.weights @ (logsumexp(potentials, axis=0) - seen)
        return total

    assert loss(fit.own, fit.coupling) == pytest.approx(fit.loss, rel=1e-11)
    step, d = 1e-4, len(fit.own)
    slope = np.zeros((d, d))
    for i, j in itertools.product(range(d), range(d)):
        if np.searchsorted(rows.offsets, i, "right") == np.searchsorted(rows.offsets, j, "right"):
            continue
        change = np.zeros((d, d))
        change[i, j] = step
        if tied:
            change[j, i] = step
        slope[i, j] = (loss(fit.own, fit.coupling + change) - loss(fit.own, fit.coupling - change)) / (2 * step)
    for i in range(d):
        change = np.eye(d)[i] * step
        assert loss(fit.own + change, fit.coupling) == pytest.approx(loss(fit.own - change, fit.coupling), abs=1e-7)
    total, some = rows.weights.sum(), 0
    for s, t in itertools.permutations(range(6), 2):
        block = np.ix_(range(*rows.offsets[s : s + 2]), range(*rows.offsets[t : t + 2]))
        weight = penalty * rows.scales[s, t]
        coupling = fit.coupling[block]
        norm = np.linalg.norm(coupling)
        if norm:
            some += 1
            assert (coupling != 0).all()
            np.testing.assert_allclose(slope[block] + weight * coupling / norm, 0, atol=1e-6 * total)
        else:
            assert np.linalg.norm(slope[block]) <= weight + 1e-6 * total
    assert 0 < some < 30


def test_regressions_of_scikit_learn():
    """Each by itself, saga's penalty is on couplings of +-1 (log-odds 2 J), which is l1 / 2 of ours on J."""
    spins = correlated_spins(6, 500)
    fit = Regressions(CodedRows.of(spin_table(spins), "test"), tied=False, tolerance=1e-9)
    assert fit.minimise(30.0)
    for s in range(6):
        others = np.delete(np.arange(6), s)
        peer = LogisticRegression(solver="saga", l1_ratio=1.0, C=2 / 30.0, tol=1e-10, max_iter=100_000)
        peer.fit(spins[:, others], spins[:, s])
        np.testing.assert_allclose(2 * fit.coupling[s, others] / 2, peer.coef_[0], atol=1e-5)
        np.testing.assert_allclose(2 * fit.own[s] / np.sqrt(2), peer.intercept_[0], atol=1e-5)


def test_tied_regressions_of_scikit_learn():
    """One logistic regression of all spins of all rows, with a column for each pair and one for each spin."""
    spins = correlated_spins(5, 300)
    rows, n = spins.shape
    pairs = list(itertools.combinations(range(n), 2))
    design, target = np.zeros((rows, n, len(pairs) + n)), spins
    for e, (s, t) in enumerate(pairs):
        design[:, s, e], design[:, t, e] = spins[:, t], spins[:, s]
    for s in range(n):
        design[:, s, len(pairs) + s] = 1e4  # as good as without a penalty
    fit = Regressions(CodedRows.of(spin_table(spins), "test"), tolerance=1e-9)
    assert fit.minimise(40.0)
    flat, wanted = design.reshape(rows * n, -1), target.ravel()

    def objective(couplings, own) -> float:
        margins = 2 * wanted * (flat @ np.concatenate([couplings, own / 1e4]))
        return np.logaddexp(0, -margins).sum() + 40.0 * np.abs(couplings).sum()

    found = np.array([fit.coupling[s, t] / 2 for s, t in pairs])
    peer = LogisticRegression(
        solver="liblinear", l1_ratio=1.0, C=2 / 40.0, tol=1e-10, max_iter=10_000, fit_intercept=False
    ).fit(flat, wanted)
    theirs = peer.coef_[0] / 2
    np.testing.assert_allclose(found, theirs[: len(pairs)], atol=1e-4)
    ours = objective(found, fit.own / np.sqrt(2))
    assert ours == pytest.approx(fit.penalised, rel=1e-10)
    assert ours <= objective(theirs[: len(pairs)], theirs[len(pairs) :] * 1e4) + 1e-9 * ours


def test_the_largest_penalty_is_the_least_that_leaves_nothing():
    for cards in ((2, 2), (2, 4)):
        rows = CodedRows.of(drawn(7, n=6, rows=300, cards=cards), "test")
        largest = Regressions(rows).largest_penalty
        for factor, empty in ((1.0, True), (1.001, True), (0.999, False)):
            fit = Regressions(rows)
            assert fit.minimise(factor * largest)
            assert (not fit.norms.any()) == empty


def test_the_largest_penalty_in_closed_form():
    """For spins: twice the largest covariance (both conditionals have it), times the rows."""
    spins = correlated_spins(6, 400)
    covariances = np.cov(spins.T, ddof=0)
    largest = 2 * 400 * np.abs(covariances[np.triu_indices(6, 1)]).max()
    assert Regressions(CodedRows.of(spin_table(spins), "test")).largest_penalty == pytest.approx(largest, rel=1e-9)


def test_equal_rows_are_counted_once():
    table = drawn(0, n=4, rows=5000)
    rows = CodedRows.of(table, "test")
    assert len(rows.weights) <= np.prod(table.cardinalities) and rows.weights.sum() == 5000
    assert rows.n_draws == 5000
    some = np.arange(0, 5000, 3)
    again = CodedRows.of(table.rows(some), "test")
    one, two = Regressions(rows, rows.weights_of(some)), Regressions(again)
    for fit in (one, two):
        fit.minimise(20.0)
    assert one.penalised == pytest.approx(two.penalised, rel=1e-10)
    assert CodedRows.of(table.distinct(), "test").n_draws == 5000


def test_states_and_variables_that_are_never_seen():
    table = encode({"A": [0, 2, 2, 0], "B": ["x"] * 4, "C": [0, 0, 1, 1]})
    wide = DataTable(("A", "B", "C"), ((0, 1, 2), ("x", "y"), (0, 1)), np.array([[0, 2, 2, 0], [0] * 4, [0, 0, 1, 1]]))
    for given in (table, wide):
        rows = CodedRows.of(given, "test")
        assert rows.kept == (0, 2) and rows.features.shape == (2, 4)
    fields, _ = tables_of(rows, np.zeros(2), np.zeros((2, 2)), np.zeros((0, 2), np.intp))
    np.testing.assert_array_equal(fields["A"], [0, -np.inf, 0])
    np.testing.assert_array_equal(fields["B"], [0, -np.inf])
    dropped = DataTable(wide.variables, wide.states, wide.codes, np.array([1.0, 0.0, 0.0, 2.0]))
    assert CodedRows.of(dropped, "test").kept == (2,)


def test_a_fold_without_one_of_the_states():
    rows = CodedRows.of(encode({"A": [0, 0, 0, 0, 1, 2], "B": [0, 1, 0, 1, 1, 0]}), "test")
    fit = Regressions(rows, rows.weights_of(np.arange(4)))
    assert fit.converged and np.isfinite(fit.held_out(rows.weights_of(np.arange(4, 6))))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_contrasts(k: int):
    c = contrasts_of(k)
    np.testing.assert_allclose(c.T @ c, np.eye(k - 1), atol=1e-14)
    np.testing.assert_allclose(c.sum(axis=0), 0, atol=1e-14)


def test_data_that_cannot_be_used():
    with pytest.raises(ModelError, match=r"test needs complete data, but variable 'B' is missing in row 1; .*drop_m"):
        CodedRows.of(encode({"A": [0, 1], "B": ["x", None]}), "test")
    with pytest.raises(ModelError, match="add up to 1 for 2 rows"):
        CodedRows.of(encode({"A": [0, 1], "n": [0.5, 0.5]}, weights="n"), "test")
