"""Structural SVMs: oracles against enumeration, solvers at one optimum, scikit-learn's SVMs, the perceptron's bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.multiclass import MulticlassModel
from markovfield.structured.objectives.hinge import Hinge, MarginProblem
from markovfield.structured.oracles.decoders import Rows
from tests.structured.test_form_estimator import Spans, data

SOLVERS = [
    BlockFrankWolfe(gap=1e-4),
    BlockFrankWolfe(gap=1e-4, sweeps=0, check_every=3),
    CuttingPlane("n", gap=1e-4),
    CuttingPlane("one", gap=1e-4),
]


def graphs(n=12, seed=0, labels=3):
    """Small chains and a triangle, with labels that features and neighbours tell of, with noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        size = int(rng.integers(2, 5))
        edges = [[0, 1], [1, 2], [0, 2]] if i % 4 == 0 else [[j, j + 1] for j in range(size - 1)]
        size = 3 if i % 4 == 0 else size
        y = rng.integers(0, labels, size)
        X.append((np.eye(labels)[y] + rng.normal(0, 0.8, (size, labels)), np.array(edges)))
        Y.append(y)
    return X, Y


def problem(model, X, Y, costs, loss="hamming", shards=3):
    parts = [slice(a, a + shards) for a in range(0, len(X), shards)]
    oracles = [Hinge(loss).on(model.encode(X[part], Y[part]), running=Running()) for part in parts]
    return MarginProblem(oracles, costs, model.n_weights)


@pytest.mark.parametrize("loss", ["hamming", "table"])
def test_the_oracle_of_graphs_is_the_worst_of_all_outputs(loss):
    X, Y = graphs(8)
    rng = np.random.default_rng(1)
    table = rng.random((3, 3)) * (1 - np.eye(3)) if loss == "table" else 1 - np.eye(3)
    model = GraphModel().shaped(X, Y)
    own = problem(model, X, Y, np.ones(8), "hamming" if loss == "hamming" else table)
    w = rng.normal(size=model.n_weights)
    for shard, blocks in enumerate(own.shards):
        planes = own.planes(w, shard)
        heights = planes.heights(w)
        for k, block in enumerate(blocks):
            x, y = X[block], Y[block]
            batch = model.encode([x], [y])
            pool = batch.pool(w)
            truth = batch.scores(pool)[0]
            worst, at = -np.inf, None
            for states in product(range(3), repeat=len(y)):
                score = batch.scores(pool, np.array(states, np.int32))[0] + table[y, list(states)].sum() - truth
                worst, at = (score, states) if score > worst else (worst, at)
            assert heights[k] == pytest.approx(worst)
            part = slice(planes.offsets[k], planes.offsets[k + 1])
            features = np.bincount(planes.columns[part], planes.values[part], model.n_weights)
            expected = batch.joint_features() - batch.joint_features(np.array(at, np.int32))
            np.testing.assert_allclose(features, expected, atol=1e-12)
            assert planes.losses[k] == pytest.approx(table[y, list(at)].sum())


def test_the_oracle_of_structures():
    X, Y = data(6)
    model = Spans(with_base=True).shaped(X, Y)
    own = problem(model, X, Y, np.ones(6))
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.n_weights)
    for shard, blocks in enumerate(own.shards):
        planes = own.planes(w, shard)
        inputs = model.inputs([X[block] for block in blocks])
        pool = model.encode_inputs(inputs).pool(w)
        for k, block in enumerate(blocks):
            form = model.form(inputs, k, pool)
            truth = set(Y[block])
            every = mf.decode(form, n_best=3000).n_best
            heights = [s.score + len(truth ^ set(s.structure)) - form.score(Y[block]) for s in every]
            if len(every) < 3000:
                assert planes.heights(w)[k] == pytest.approx(max(heights))


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{s.name}-{getattr(s, 'slack', getattr(s, 'sweeps', ''))}")
@pytest.mark.parametrize("kind", ["graphs", "structures"])
def test_all_solvers_find_one_optimum(solver, kind):
    X, Y = graphs() if kind == "graphs" else data(10)
    model = (GraphModel() if kind == "graphs" else Spans()).shaped(X, Y)
    costs = np.linspace(0.2, 1.0, len(X))
    found = solver.run(problem(model, X, Y, costs), rng=np.random.default_rng(0), running=Running())
    other = CuttingPlane("one", gap=1e-7).run(
        problem(model, X, Y, costs), rng=np.random.default_rng(1), running=Running()
    )
    assert found.converged
    assert found.gap <= 1e-4
    assert found.primal == pytest.approx(other.primal, rel=2e-4)
    assert other.dual <= found.primal + 1e-9
    for one in found.history:
        assert not one.dual > other.primal + 1e-9
        assert not one.primal < other.dual - 1e-9
    duals = [one.dual for one in found.history]
    assert (np.diff(duals) >= -1e-9).all()


def test_subgradients_come_near():
    X, Y = graphs()
    model = GraphModel().shaped(X, Y)
    costs = np.full(12, 0.3)
    best = CuttingPlane("one", gap=1e-6).run(
        problem(model, X, Y, costs), rng=np.random.default_rng(0), running=Running()
    )
    for averaged in (True, False):
        solver = Subgradient(passes=150, averaged=averaged)
        found = solver.run(problem(model, X, Y, costs), rng=np.random.default_rng(0), running=Running())
        assert best.dual <= found.primal <= 1.03 * best.primal


@pytest.mark.parametrize("n_classes", [2, 3])
def test_multiclass_is_that_of_crammer_and_singer(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = (X @ rng.normal(size=(5, n_classes)) + rng.normal(size=(80, n_classes))).argmax(axis=1)
    C = 0.3
    clf = mf.StructuredClassifier(MulticlassModel(), objective="hinge", solver=BlockFrankWolfe(gap=1e-6), l2=1 / C)
    clf.fit(X, y)
    # A class of weights for each label, the last column of inputs being one: what scikit-learn is given here.
    given = np.hstack([X, np.ones((80, 1))])
    svm = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9, max_iter=100_000, random_state=0)
    svm.fit(given, y)
    coef = np.vstack([-svm.coef_, svm.coef_]) / 2 if n_classes == 2 else svm.coef_
    scores = given @ coef.T
    margins = scores + 1.0
    margins[np.arange(80), y] -= 1.0
    theirs = 0.5 * (coef**2).sum() + C * (margins.max(axis=1) - scores[np.arange(80), y]).sum()
    assert clf.report_.primal == pytest.approx(theirs, rel=1e-4)
    assert clf.report_.gap <= 1e-6
    assert (clf.predict(X) == y).mean() == pytest.approx((svm.predict(given) == y).mean(), abs=0.03)


def test_the_bound_on_mistakes_of_the_perceptron():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    truth = rng.normal(size=(5, 3))
    given = np.hstack([X, np.ones((60, 1))])
    scores = given @ truth
    y = scores.argmax(axis=1)
    ranked = np.sort(scores, axis=1)
    clear = ranked[:, 2] - ranked[:, 1] > 0.7
    X, y, margin = X[clear], y[clear], 0.7 / np.linalg.norm(truth)
    radius = np.sqrt(2 * (given[clear] ** 2).sum(axis=1).max())
    model = MulticlassModel().shaped(X, y)
    own = problem(model, X, y, np.ones(len(X)), shards=1)
    found = StructuredPerceptron(passes=200, averaged=False).run(own, rng=np.random.default_rng(0), running=Running())
    assert found.message == "a pass without a mistake"
    assert sum(found.mistakes) <= (radius / margin) ** 2
    averaged = StructuredPerceptron(passes=20).run(own, rng=np.random.default_rng(0), running=Running())
    infused = StructuredPerceptron(passes=20, margin_infused=True).run(
        own, rng=np.random.default_rng(0), running=Running()
    )
    batch = model.encode(X, y)
    for weights, least in ((found.weights, 1.0), (averaged.weights, 0.9), (infused.weights, 0.9)):
        states = batch.pool(weights).reshape(-1, 3).argmax(axis=1)
        assert (states == batch.labels).mean() >= least


def test_estimators_train_by_hinges_and_are_saved(tmp_path):
    X, Y = graphs(20)
    svm = mf.GraphCRF(objective="hinge", l2=2.0, rng=0).fit(X, Y)
    assert svm.report_.converged
    assert svm.report_.C == 0.5
    assert svm.report_.dual <= svm.report_.primal
    likely = mf.GraphCRF(l2=2.0).fit(X, Y).score(X, Y)
    assert svm.score(X, Y) > likely - 0.05
    svm.save(tmp_path / "svm.mf")
    again = mf.load(tmp_path / "svm.mf")
    assert all((a == b).all() for a, b in zip(svm.predict(X), again.predict(X), strict=True))
    for solver in ("cutting_plane", "subgradient", "perceptron"):
        assert mf.GraphCRF(objective="hinge", solver=solver, rng=0).fit(X, Y).score(X, Y) > likely - 0.1


def test_weights_of_examples():
    X, Y = graphs(8)
    twice = mf.GraphCRF(objective=Hinge(), solver=CuttingPlane(gap=1e-7)).fit(X + X[:1], Y + Y[:1])
    heavy = mf.GraphCRF(objective=Hinge(), solver=CuttingPlane(gap=1e-7)).fit(X, Y, np.array([2.0, *[1.0] * 7]))
    np.testing.assert_allclose(twice.weights_, heavy.weights_, atol=1e-2)
    assert twice.report_.primal == pytest.approx(heavy.report_.primal, rel=1e-5)


def test_what_is_refused_and_what_is_stopped():
    X, Y = graphs(6)
    for words, message in (
        ({"l2": 0.0}, "one l2 above 0"),
        ({"l2": {"nodes": 1.0}}, "one l2 above 0"),
        ({"solver": "lbfgs"}, "solver of a hinge"),
        ({"solver": mf.learning.LBFGS()}, "does not minimise a hinge"),
        ({"objective": Hinge([[0, 1], [1, 0]])}, "a table of 2 labels"),
        ({"batch_size": 0}, "batch_size"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.GraphCRF(**{"objective": "hinge", **words}).fit(X, Y)
    for loss, message in (
        ("f2", "loss must be one of"),
        ([[0, -1, 1]] * 3, "at least 0"),
        ([[0, 1, 1]], "a square table"),
        ([["a", "b"]], "a square table of numbers"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            Hinge(loss)
    with pytest.raises(mf.ModelError, match="rescaling"):
        Hinge(rescaling="none")
    with pytest.raises(mf.ModelError, match="example 0: label 0 is not known, and max-margin training needs"):
        mf.GraphCRF(objective="hinge").fit(X, [[None, *y[1:]] for y in Y])
    with pytest.raises(mf.ModelError, match="init None"):
        mf.GraphCRF(objective="hinge").fit(X, Y, init=np.zeros(3))
    calls = []
    stopped = mf.GraphCRF(objective="hinge", rng=0).fit(X, Y, callback=lambda p: calls.append(p) or len(calls) > 6)
    assert "callback" in stopped.report_.message
    assert not stopped.report_.converged
    assert np.isfinite(stopped.weights_).all()


def test_an_oracle_that_is_not_exact_says_so():
    rng = np.random.default_rng(0)
    edges = [[i, j] for i in range(5) for j in range(i)]
    X = [(rng.normal(size=(5, 2)), np.array(edges)) for _ in range(4)]
    Y = [rng.integers(0, 2, 5) for _ in X]
    svm = mf.GraphCRF(objective="hinge", decoding="icm", solver=BlockFrankWolfe(max_passes=10), rng=0).fit(X, Y)
    report = svm.report_
    # The check at the end decodes exactly: the primal is that of the weights, and the dual holds.
    assert not report.gap_is_estimate
    assert any("icm" in note and "undergenerates" in note and "proved the primal" in note for note in report.notes)
    oracle = Hinge().on(svm.model_.encode(X, Y), running=Running())
    rows, cost = oracle.planes(svm.weights_, losses=True)
    hinges = np.maximum(cost - rows.products(svm.weights_), 0.0)
    assert report.primal == pytest.approx(0.5 * svm.weights_ @ svm.weights_ + hinges.sum())
    assert report.dual <= report.primal


class Worse:
    """An oracle that gives the output of lowest score."""

    n_examples, exact, sure, gap, without_truth = 1, True, True, 0.0, False

    def planes(self, w, *, losses):
        return Rows(np.array([0, 1]), np.array([0]), np.array([5.0])), np.array([1.0])


def test_an_output_worse_than_the_truth_is_caught():
    own = MarginProblem([Worse()], np.ones(1), 1)
    w = np.array([2.0])
    planes = own.planes(w, 0)
    assert planes.heights(w).tolist() == [0.0]
    assert planes.losses.tolist() == [0.0]
    assert own.n_worse == 1
    assert own.planes(np.zeros(1), 0).heights(np.zeros(1)).tolist() == [1.0]


def test_the_report_of_margins():
    X, Y = graphs(10)
    report = mf.GraphCRF(objective="hinge", l2=4.0, rng=0).fit(X, Y).report_
    shown = repr(report)
    for word in ("block_frank_wolfe", "hamming", "C = 0.25", "converged", "primal", "dual", "oracle calls", "planes"):
        assert word in shown
    assert report.gap <= 1e-3
    assert report.regularisation == pytest.approx(1 / (0.25 * 10))
    assert report.oracle_calls == report.passes[-1].oracle_calls
    assert report.oracle_seconds + report.solver_seconds <= report.seconds + 1e-9
    assert report.to_frame().shape == (len(report.passes), 5)
    assert report.to_dict()["solver"] == "block_frank_wolfe"
    assert report.objective == pytest.approx(4.0 * report.primal)
    for against in ("oracle_calls", "passes", "seconds"):
        ax = report.plot(against=against)
        assert ax.get_yscale() == "log"
        assert (np.diff(ax.lines[0].get_ydata()) <= 0).all()
    with pytest.raises(mf.ModelError, match="against must be"):
        report.plot(against="tea")
    with pytest.raises(mf.ModelError, match="no passes"):
        mf.plot.margin_history(mf.GraphCRF().fit(X, Y))
