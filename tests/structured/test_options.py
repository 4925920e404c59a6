"""Options of conditional models where two of them meet: the answer of enumeration, or one clear refusal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning import LBFGS, AdaGrad, Adam, ProximalGradient, SteepestDescent, StochasticGradient
from markovfield.structured.objectives.registry import objective_of
from tests.structured.cases import CASES, Case
from tests.structured.enumerated import Posterior, all_pairs, posterior_of

st = mf.structured
GIBBS = mf.methods.Gibbs(sweeps=200, n_chains=2)
# What holds whatever is trained: the settings of these estimators are those of StructuredClassifier.
ASKED = ("graph", "graph_typed", "multi_label_full", "latent", "latent_multiclass", "factorial_chain", "grid")
ASKED += ("energy", "factor", "skip_chain")


@pytest.fixture(scope="module")
def trained() -> dict[str, Any]:
    """Each case, with weights that are drawn: answers must hold of any."""
    found = {}
    for name in ASKED:
        case = CASES[name]
        fitted = st.StructuredClassifier(case.model, solver=LBFGS(max_iterations=1), rng=0).fit(case.X, case.Y)
        fitted.weights_ = np.random.default_rng(2).normal(size=fitted.model_.n_weights)
        found[name] = fitted
    return found


def known_labels(fitted: Any, case: Case, how: str) -> Any:
    """Outputs of which the first label is known, or all, or none."""
    if how == "none":
        return None
    inputs = fitted.model_.inputs(case.X)
    outputs = fitted.decode(case.X).labels
    if how == "all":
        return outputs
    states = np.full(inputs.variable_offsets[-1], -1)
    states[inputs.variable_offsets[:-1]] = fitted.model_.visible_labels(outputs, inputs)[inputs.variable_offsets[:-1]]
    if "factorial" in fitted.model_.name:
        return [{"t": [None] * (len(y["t"]) - 1) + y["t"][-1:]} for y in outputs]
    masked = [np.asarray(y, object).copy() for y in outputs]
    for i, y in enumerate(masked):
        own = states[inputs.variable_offsets[i] : inputs.variable_offsets[i + 1]].reshape(np.shape(y))
        if np.ndim(y) == 0:
            masked[i] = None if i % 2 else outputs[i]
        else:
            y[own < 0] = None
            masked[i] = y.tolist()
    return masked


QUESTIONS = {
    "case": ASKED,
    "fixed": ("none", "first", "all"),
    "rule": (None, "table", "different"),
    "inference": ("auto", "junction_tree", "belief_propagation"),
    "decoding": ("auto", "junction_tree", "trws"),
    "reloaded": (False, True),
}


@pytest.mark.parametrize("row", all_pairs(QUESTIONS), ids=lambda row: "-".join(map(str, row.values())))
def test_answers_are_those_of_enumeration(row: dict[str, Any], trained: dict[str, Any], tmp_path: Any) -> None:
    case, fitted = CASES[row["case"]], trained[row["case"]]
    fitted = clone(fitted).set_params(inference=row["inference"], decoding=row["decoding"])
    fitted.model_, fitted.weights_ = trained[row["case"]].model_, trained[row["case"]].weights_
    if row["reloaded"]:
        fitted.save(tmp_path / "model.mf")
        fitted = mf.load(tmp_path / "model.mf")
    model, w = fitted.model_, fitted.weights_
    fixed = known_labels(trained[row["case"]], case, row["fixed"])
    inputs = model.inputs(case.X)
    offsets = inputs.variable_offsets
    known = np.full(offsets[-1], -1) if fixed is None else model.visible_labels(fixed, inputs)
    rng = np.random.default_rng(0)
    cards = inputs.cardinalities // model.hidden_per_label
    constraints: Any = None if row["rule"] is None else []
    wanted: list[Posterior] = []
    for i in range(case.n):
        first, last = int(offsets[i]), int(offsets[i + 1])
        found = posterior_of(model, case.some([i])[0], w)
        own = known[first:last]
        found = found.kept(((found.labels == own) | (own < 0)).all(axis=1))
        if constraints is not None:
            pair = [0, last - first - 1]
            if last - first < 2 or row["fixed"] == "all":
                constraints.append(None)
            elif row["rule"] == "different" and cards[first] == cards[last - 1]:
                constraints.append([(pair, "different")])
                found = found.kept(found.labels[:, 0] != found.labels[:, -1])
            else:
                table = rng.random((cards[first], cards[last - 1])) < 0.5
                table[own[0] if own[0] >= 0 else 0, own[-1] if own[-1] >= 0 else 0] = True
                constraints.append([(pair, table)])
                found = found.kept(table[found.labels[:, 0], found.labels[:, -1]])
        wanted.append(found)
    given = {"fixed": fixed, "constraints": constraints}
    exact = row["inference"] != "belief_propagation"
    decoded, answer = fitted.decode(case.X, **given), fitted.marginals(case.X, **given)
    states = model.visible_labels(decoded.labels, inputs)
    if decoded.guarantee == "exact":
        for i, found in enumerate(wanted):
            assert decoded.scores[i] == pytest.approx(found.ranked[0][1], abs=1e-8)
            own = tuple(states[offsets[i] : offsets[i + 1]].tolist())
            assert dict(found.ranked)[own] == pytest.approx(found.ranked[0][1], abs=1e-8)
    else:
        assert row["decoding"] == "trws"
        assert decoded.scores.sum() <= sum(f.ranked[0][1] for f in wanted) + 1e-8
    if exact or answer.guarantee == "exact":
        assert answer.guarantee == "exact"
        assert answer.log_partition == pytest.approx(sum(f.log_z for f in wanted), abs=1e-8)
        for i, found in enumerate(wanted):
            for v, p in enumerate(answer.values[i]):
                assert p == pytest.approx(found.marginal(v, len(p)), abs=1e-8)
        sure = [found.marginal(v, int(cards[offsets[i] + v])) for i, found in enumerate(wanted) for v in
                range(found.labels.shape[1])]  # fmt: skip
        mpm = model.visible_labels(fitted.predict(case.X, decision="mpm", **given), inputs)
        assert all(p[s] >= p.max() - 1e-9 for p, s in zip(sure, mpm.tolist(), strict=True))
    for best, found in zip(fitted.predict_n_best(case.X, 3, **given), wanted, strict=True):
        assert [score for _, score in best] == pytest.approx([score for _, score in found.ranked[:3]], abs=1e-8)
        assert len({str(output) for output, _ in best}) == len(best)
    if row["fixed"] == "all" and exact:
        free = [posterior_of(model, case.some([i])[0], w).log_z for i in range(case.n)]
        truth = [found.log_z - log_z for found, log_z in zip(wanted, free, strict=True)]
        assert fitted.log_likelihood(case.X, fixed) == pytest.approx(truth, abs=1e-8)
        assert fitted.score(case.X, fixed) == pytest.approx(1.0)


TRAINING = {
    "case": ("graph", "latent_multiclass", "multi_label_tree", "energy", "factorial_chain", "grid", "factor"),
    "objective": (
        "likelihood", "pseudo_likelihood", "piecewise", "expected_loss", "marginal_likelihood", "softmax_margin",
        "ramp", "direct_loss", "hinge",
    ),
    "solver": (
        "auto", LBFGS(max_iterations=15), SteepestDescent(max_iterations=15), ProximalGradient(max_iterations=15),
        StochasticGradient(passes=2), AdaGrad(passes=2), Adam(passes=2),
    ),
    "penalty": ({"l2": 0.5}, {"l2": 0.2, "l1": 0.1}, {"l2": 0.2, "group_l1": 0.1}, {"l2": 0.0}),
    "inference": ("auto", "auto", "junction_tree", "tree_reweighted", "mean_field", GIBBS),
    "decoding": ("auto", "trws", "junction_tree"),
    "batch_size": (None, None, 2),
    "weights": (None, "some"),
    "missing": (False, True),
    "init": (None, "zeros"),
}  # fmt: skip
REFUSALS = (
    "takes no inference", "is for stochastic solvers", "needs all labels", "cannot penalise", "samples, and",
    "needs a smooth objective", "one l2 above 0", "solver of a hinge", "objective='likelihood'", "start from nothing",
    "a sampler's gradient", "does not minimise a hinge",
)  # fmt: skip


def without_some(case: Case) -> Any:
    """Outputs of which a label here and there is not known."""
    Y = [dict(y) if isinstance(y, dict) else np.asarray(y, object).tolist() for y in case.Y]
    if isinstance(Y[0], dict):
        Y[0]["t"] = [None, *Y[0]["t"][1:]]
    elif not isinstance(Y[1], list):
        Y[1] = None
    elif isinstance(Y[1][0], list):
        Y[1][0][0] = None
    else:
        Y[1][0] = None
    return Y


@pytest.mark.parametrize("row", all_pairs(TRAINING), ids=lambda row: f"{row['case']}-{row['objective']}")
def test_training_is_right_or_refuses(row: dict[str, Any]) -> None:
    case = CASES[row["case"]]
    Y = without_some(case) if row["missing"] else case.Y
    weights = None if row["weights"] is None else np.arange(case.n) % 3.0 + 0.5
    settings = {name: row[name] for name in ("objective", "solver", "inference", "decoding", "batch_size")}
    clf = st.StructuredClassifier(case.model, **settings, **row["penalty"], rng=0)
    n_weights = case.model.shaped(case.X, case.Y).n_weights
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(case.X, Y, weights, init=None if row["init"] is None else np.zeros(n_weights))
    except ModelError as refusal:
        if not any(words in str(refusal) for words in REFUSALS):
            raise
        return
    report = clf.report_
    assert np.isfinite(clf.weights_).all()
    assert np.isfinite(report.objective) or row["inference"] is GIBBS
    batch = clf.model_.encode(case.X, Y, weights)
    if row["objective"] != "hinge" and row["inference"] is not GIBBS:
        # The report's objective is that of its weights, on all examples.
        inference = row["inference"] if "inference" in objective_of(row["objective"]).__dataclass_fields__ else "auto"
        value = objective_of(row["objective"], inference).on(batch, running=Running())(clf.weights_)[0]
        w, penalty = clf.weights_, row["penalty"]
        value += 0.5 * penalty["l2"] * (w @ w) + penalty.get("l1", 0.0) * np.abs(w).sum()
        if "group_l1" in penalty:
            tables = [table for name, table in clf.coef_.items() if name != "terms"]
            if row["case"] == "energy":
                tables = [np.array([[value_] for value_ in w])]
            value += penalty["group_l1"] * sum(
                np.sqrt(table.shape[1]) * np.linalg.norm(table, axis=1).sum() for table in tables
            )
        assert report.objective == pytest.approx(value, rel=1e-3, abs=1e-6)
    if row["objective"] == "likelihood" and row["inference"] in ("auto", "junction_tree"):
        assert report.guarantee == "exact"
        own = clf.log_likelihood(case.X, Y)
        assert report.log_likelihood == pytest.approx(own @ (np.ones(case.n) if weights is None else weights), abs=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(clf.predict(case.X)) == len(clf.predict_marginals(case.X)) == case.n
        assert 0.0 <= clf.score(case.X, Y, weights) <= 1.0


SOLVERS = ("auto", "steepest_descent", "proximal_gradient", "sgd", "adagrad", "adam")


@pytest.mark.parametrize("solver", SOLVERS)
def test_whoever_stops_training_is_left_with_weights(solver: str) -> None:
    case = CASES["graph"]
    told: list[int] = []

    def stop(progress: Any) -> bool:
        told.append(progress.step)
        return len(told) >= 3

    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    crf = mf.GraphCRF("directed", solver=solver, rng=0).fit(case.X, case.Y, callback=stop)
    assert not crf.report_.converged and "callback" in crf.report_.message and len(told) >= 3
    again = clone(crf).fit(case.X, case.Y, callback=interrupt)
    assert not again.report_.converged and np.isfinite(again.weights_).all()
    assert len(again.predict(case.X)) == case.n


def test_settings_are_searched_as_any_are() -> None:
    case = CASES["graph"]
    X, Y = list(case.X) * 3, list(case.Y) * 3
    grid = {"l2": [0.1, 10.0], "interaction": ["equal", "directed"], "objective": ["likelihood", "piecewise"]}
    found = GridSearchCV(mf.GraphCRF(), grid, cv=KFold(2)).fit(X, Y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert len(found.predict(X)) == len(X)


def test_the_best_label_sums_over_its_hidden_states() -> None:
    """Two hidden states of one label are together more probable than the best single state."""
    X, y = np.zeros((4, 1)), ["a", "a", "b", "b"]
    crf = mf.LatentCRF(st.MulticlassModel(), n_hidden=2, rng=0, solver=LBFGS(max_iterations=1)).fit(X, y)
    crf.weights_ = np.array([0.0, 0.0, 0.5, -9.0, 0.0, 0.0, 0.0, 0.0])
    assert crf.predict_marginals(X[:1])[0][0, 0] == pytest.approx(2 / (2 + np.exp(0.5) + np.exp(-9.0)))
    assert crf.predict(X[:1]).tolist() == ["a"]
    assert crf.decode(X[:1]).scores[0] == pytest.approx(np.log(2.0))
    assert [str(label) for label, _ in crf.predict_n_best(X[:1], 5)[0]] == ["a", "b"]
    named = clone(crf).set_params(decoding="trws")
    named.model_, named.weights_ = crf.model_, crf.weights_
    assert named.decode(X[:1]).guarantee == "lower"


def test_hidden_states_that_join_too_many_labels_are_not_summed_and_that_is_said() -> None:
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(70, 1)), [[i, i + 1] for i in range(69)])]
    y = [rng.integers(0, 2, 70)]
    crf = mf.LatentCRF(n_hidden=2, rng=0, solver=LBFGS(max_iterations=3)).fit(X, y)
    found = crf.decode(X)
    assert found.guarantee == "lower" and found.gap == np.inf
    assert found.scores[0] == pytest.approx(crf.log_likelihood(X, found.labels)[0] + crf.marginals(X).log_partition)
    with pytest.raises(ModelError, match="example 0: its hidden states join too many labels"):
        crf.predict_n_best(X, 2)


X, Y = CASES["graph_symmetric"].X, [y.tolist() for y in CASES["graph_symmetric"].Y]
BAD = {
    "edge features": ({"X": CASES["graph"].X}, "example 0: edges had no features in training and have some here"),
    "constraints": ({"constraints": 5}, "constraints need a list with an entry for each of 4 examples, got 5"),
    "one constraint": ({"constraints": [([0, 1], "equal"), *[None] * 3]}, "example 0: .*a constraint is a pair"),
    "no list": ({"constraints": [None, "equal", None, None]}, "example 1: its constraints must be None or a list"),
    "no pair": ({"constraints": [[([0, 1],)], *[None] * 3]}, "example 0: a constraint is a pair"),
    "no position": ({"constraints": [[("a", "equal")], *[None] * 3]}, "example 0: .* positions of different variables"),
    "twice": (
        {"constraints": [None, [([1, 1], "equal")], None, None]},
        "example 1: .* positions of different variables",
    ),
    "halves": ({"constraints": [[([0], [0.5, 1.0, 1.0])], *[None] * 3]}, "example 0: .* table of truth values"),
    "loss": ({"decision": "mpm", "loss": [["a"]]}, "loss must be a table .* of numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_questions_are_named(what: str) -> None:
    crf = mf.GraphCRF(solver=LBFGS(max_iterations=3)).fit(
        X, [[min(v, 2) for v in y] for y in Y[:2]] + [[0, 1, 2, 0], Y[3]]
    )
    given, message = BAD[what]
    with pytest.raises(ModelError, match=message):
        crf.predict(**{"X": X, **given})


def test_bad_scores_and_weights_are_named() -> None:
    crf = mf.GraphCRF(solver=LBFGS(max_iterations=3)).fit(X, Y)
    for call, message in (
        (lambda: crf.score(X, Y[:2]), "X has 4 examples and y has 2"),
        (lambda: crf.score(X, [[None] * len(y) for y in Y]), "nothing to score"),
        (lambda: crf.score(X, Y, [0, 0, 0, 0]), "nothing to score"),
        (lambda: crf.score(X, Y, [1, 2]), "sample_weight needs one number for each of 4 examples"),
        (lambda: crf.score(X, Y, [1, -2, 1, 1]), "sample_weight of example 1 must be a number of at least 0"),
        (lambda: crf.fit(X, Y, ["a", "b", "c", "d"]), "sample_weight needs one number for each of 4 examples"),
        (lambda: crf.fit(X, Y, [1, np.nan, 1, 1]), "sample_weight of example 1"),
        (lambda: mf.GraphCRF(solver="sgd", batch_size=2).fit(X, Y, [1] * 6), "one number for each of 4 examples"),
        (lambda: crf.fit(X, Y, init="a"), "init must be 15 weights"),
        (lambda: crf.fit(X, Y, init=np.full(len(crf.weights_), np.nan)), "init must be .* finite weights"),
        (lambda: mf.GraphCRF({"edgs": "equal"}).fit(X, Y), "interaction of GraphModel names 'edgs'"),
        (lambda: mf.GraphCRF(bias="yes").fit(X, Y), "bias of GraphModel must be True or False"),
        (lambda: mf.GraphCRF(objective=st.ExpectedLoss).fit(X, Y), "objective must be one of"),
        (lambda: crf.fit(X, [[np.inf, *y[1:]] for y in Y]), "example 0: a label is infinite"),
        (lambda: crf.predict_n_best(X, 0), "n must be an integer of at least 1"),
        (lambda: mf.LatentCRF(st.MultiLabelModel()).fit(X, Y), "labels of MultiLabelModel"),
        (lambda: mf.GraphCRF(inference=GIBBS).fit(X, Y), "a sampler's gradient"),
    ):
        with pytest.raises(ModelError, match=message):
            call()


@pytest.mark.parametrize("settings", [{"solver": "sgd", "batch_size": 2}, {"objective": "hinge", "batch_size": 2}, {}])
def test_errors_of_mini_batches_name_the_example_among_all(settings: dict[str, Any]) -> None:
    far = [*X[:3], (X[3][0], [[0, 3]])]
    with pytest.raises(ModelError, match=r"example 3: edges\[0\] = \[0, 3\] is out of range"):
        mf.GraphCRF(**settings).fit(far, Y)
    unknown = [*Y[:3], [None, *Y[3][1:]]]
    with pytest.raises(ModelError, match="example 3: label 0 is not known"):
        mf.GraphCRF(**{"objective": "softmax_margin", **settings}).fit(X, unknown)


def test_a_sampler_gives_marginals_and_no_log_likelihood() -> None:
    case = CASES["graph_symmetric"]
    crf = mf.GraphCRF(inference=mf.methods.Gibbs(sweeps=4000), rng=0, solver=StochasticGradient(passes=2))
    crf.fit(case.X, case.Y)
    exact = clone(crf).set_params(inference="auto")
    exact.model_, exact.weights_ = crf.model_, crf.weights_
    for p, q in zip(crf.predict_marginals(case.X), exact.predict_marginals(case.X), strict=True):
        assert p == pytest.approx(q, abs=0.08)
    with pytest.raises(ModelError, match="gibbs does not estimate log Z"):
        crf.log_likelihood(case.X, case.Y)


def test_numbers_beside_texts_stay_numbers() -> None:
    case = CASES["graph_symmetric"]
    Y = [[("b", 1, None)[label] for label in y.tolist()] for y in case.Y]
    crf = mf.GraphCRF(solver=LBFGS(max_iterations=3)).fit(case.X, Y)
    assert crf.classes_ == [1, "b"]
