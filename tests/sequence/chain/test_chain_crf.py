"""ChainCRF as an estimator: scikit-learn's manners, answers against the junction tree, weights, warm starts, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import Pipeline

import markovfield as mf
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.text.labels import spans
from markovfield.sequence.text.vectoriser import AttributeVectoriser


def toy(n: int = 40, seed: int = 0, labels: str = "ABC") -> tuple[list, list]:
    """Sequences whose labels go around a circle, and whose attributes mostly tell the label."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        label, tokens, own = int(rng.integers(len(labels))), [], []
        for _ in range(int(rng.integers(1, 7))):
            label = (label + int(rng.integers(0, 2))) % len(labels)
            shown = label if rng.random() < 0.7 else int(rng.integers(len(labels)))
            own.append(labels[label])
            tokens.append({"shown": str(shown), "bias": 1.0, "weight": float(rng.normal())})
        X.append(tokens)
        y.append(own)
    return X, y


def steps_of(X: list, seed: int = 1) -> list:
    """Attributes of edges, some of which depend on both tokens."""
    rng = np.random.default_rng(seed)
    return [[[f"e{rng.integers(2)}", f"p{t % 2}"] for t in range(len(x))] for x in X]


X, Y = toy()
EDGES = steps_of(X)


def objective(crf: ChainCRF, X: list, y: list, l2: float, edges: Any = None) -> float:
    w = crf.model_.weights
    return float(-crf.log_likelihood(X, y, edges=edges).sum() + 0.5 * l2 * w @ w)


class Lowered:
    """A transformer with nothing to learn, for a pipeline."""

    def fit(self, X: list, y: Any = None) -> Lowered:
        return self

    def transform(self, X: list) -> list:
        return [[{k: v for k, v in token.items() if k != "weight"} for token in x] for x in X]


def test_manners_of_an_estimator():
    crf = ChainCRF(l2=0.5, solver="sgd", rng=3)
    again = clone(crf)
    assert again.get_params() == crf.get_params()
    assert again is not crf and not hasattr(again, "model_")
    assert crf.set_params(l2=2.0).l2 == 2.0
    assert clone(ChainCRF()).fit(X, Y) is not None
    fitted = ChainCRF().fit(X, Y)
    assert fitted.get_params() == ChainCRF().get_params()
    assert fitted.classes_ == ["A", "B", "C"]
    assert fitted.n_iter_ == fitted.report_.iterations > 0
    assert "converged" in str(fitted.report_)


def test_in_a_pipeline_a_grid_and_cross_validation():
    pipe = Pipeline([("lower", Lowered()), ("crf", ChainCRF(max_iterations=20))])
    pipe.fit(X, Y)
    assert pipe.score(X, Y) > 0.7
    grid = GridSearchCV(ChainCRF(max_iterations=10), {"l2": [0.1, 100.0]}, cv=2).fit(X, Y)
    assert grid.best_params_ == {"l2": 0.1}
    found = cross_val_predict(ChainCRF(max_iterations=10), X, Y, cv=2)
    assert [len(labels) for labels in found] == [len(own) for own in Y]
    half = ChainCRF(max_iterations=10).fit(X[20:], Y[20:]).predict(X[:20])
    assert list(found[:20]) == half


def test_names_of_sklearn_crfsuite():
    ours = ChainCRF(l2=0.6, l1=0.2, min_count=2, all_states=True, all_transitions=True).fit(X, Y)
    theirs = ChainCRF(
        algorithm="lbfgs", c1=0.2, c2=0.3, min_freq=2, all_possible_states=True, all_possible_transitions=True
    ).fit(X, Y)
    np.testing.assert_array_equal(ours.model_.weights, theirs.model_.weights)
    assert ours.report_.solver == "owlqn"
    assert ChainCRF(algorithm="ap", rng=0).fit(X, Y).report_.solver == "perceptron"
    assert ChainCRF(algorithm="l2sgd", rng=0, max_iterations=2).fit(X, Y).report_.solver == "sgd"
    assert len(theirs.transition_features_) <= 9
    assert {label for _, label in theirs.state_features_} == {"A", "B", "C"}


@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"edges": EDGES}])
def test_answers_agree_with_the_junction_tree(settings: dict):
    settings = dict(settings)
    edges = settings.pop("edges", None)
    crf = ChainCRF(l2=0.3, **settings).fit(X, Y, edges=edges)
    pick = slice(0, 8)
    few, own = X[pick], None if edges is None else edges[pick]
    best, tables = crf.predict(few, edges=own), crf.predict_proba(few, edges=own)
    marginals, entropies = crf.predict_marginals(few, edges=own), crf.entropy(few, edges=own)
    ranked, mpm = crf.predict_n_best(few, 3, edges=own), crf.predict_mpm(few, edges=own)
    likelihoods = crf.log_likelihood(few, Y[pick], edges=own)
    expected_errors = crf.expected_loss(few, edges=own)
    for s, x in enumerate(few):
        graph = crf.to_factor_graph(x, edges=None if own is None else own[s])
        exact = mf.marginals(graph, method="junction_tree")
        np.testing.assert_allclose(tables[s].ravel(), exact.values, atol=1e-9)
        assert marginals[s][0] == dict(zip("ABC", tables[s][0].tolist(), strict=True))
        assert mpm[s] == ["ABC"[k] for k in tables[s].argmax(axis=1)]
        assert expected_errors[s] == pytest.approx(sum(1 - row.max() for row in tables[s]), abs=1e-12)
        top = mf.decode(graph, n_best=3, method="junction_tree")
        assert best[s] == [top.assignment[i] for i in range(len(x))]
        for (labels, probability), theirs in zip(ranked[s], top.n_best, strict=True):
            assert probability == pytest.approx(np.exp(theirs.score - exact.log_partition), rel=1e-9)
            score = graph.score(np.array(["ABC".index(k) for k in labels]))
            assert score == pytest.approx(theirs.score, abs=1e-9)
        numbers = np.array(["ABC".index(k) for k in Y[s]])
        assert likelihoods[s] == pytest.approx(graph.score(numbers) - exact.log_partition, abs=1e-9)
        every = [
            graph.score(np.array(path)) - exact.log_partition for path in itertools.product(range(3), repeat=len(x))
        ]
        assert entropies[s] == pytest.approx(-float(np.sum(np.exp(every) * every)), abs=1e-9)
    assert crf.score(few, best, edges=own) == 1.0
    assert crf.score(few, Y[pick], edges=own) == pytest.approx(
        np.mean([a == b for p, q in zip(best, Y[pick], strict=True) for a, b in zip(p, q, strict=True)])
    )


def test_draws_have_the_shape_asked_for_and_follow_the_seed():
    crf = ChainCRF(l2=0.3).fit(X, Y)
    drawn = crf.sample(X[:3], 5, rng=0)
    assert [np.array(d).shape for d in drawn] == [(5, len(x)) for x in X[:3]]
    assert drawn == crf.sample(X[:3], 5, rng=0)
    assert {label for d in drawn for path in d for label in path} <= set("ABC")
    # 4000 draws of one token against its marginals: five standard deviations, false alarm below one in 10^5.
    first = np.array(crf.sample(X[:1], 4000, rng=1)[0])[:, 0]
    for label, p in crf.predict_marginals(X[:1])[0][0].items():
        assert abs((first == label).mean() - p) < 5 * np.sqrt(p * (1 - p) / 4000) + 1e-9
    assert crf.predict_single(X[0]) == crf.predict(X[:1])[0]
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X[:1])[0]


def test_known_labels_are_kept_and_change_the_others():
    crf = ChainCRF(l2=0.3).fit(X, Y)
    x = max(X, key=len)
    fixed = [None] * len(x)
    fixed[1] = "C"
    assert crf.predict([x], fixed=[fixed])[0][1] == "C"
    graph = crf.to_factor_graph(x)
    exact = mf.marginals(graph, {1: "C"}, method="junction_tree")
    np.testing.assert_allclose(crf.predict_proba([x], fixed=[fixed])[0].ravel(), exact.values, atol=1e-9)
    with pytest.raises(mf.ModelError, match="label 'Z'"):
        crf.predict([x], fixed=[["Z"] * len(x)])


def test_constraints_are_never_violated():
    rng = np.random.default_rng(0)
    names = ["B-X", "I-X", "B-Y", "I-Y", "O"]
    noisy = [[[f"w{rng.integers(4)}"] for _ in range(6)] for _ in range(30)]
    # Labels of no scheme: without constraints the model would follow them.
    labels = [[names[rng.integers(5)] for _ in range(6)] for _ in range(30)]
    free = ChainCRF(l2=0.1).fit(noisy, labels)
    broken = 0
    for path in free.predict(noisy):
        try:
            spans(path, "iob2")
        except mf.ModelError:
            broken += 1
    assert broken > 5
    for scheme in ("iob2", "iobes"):
        if scheme == "iobes":
            names = ["B-X", "I-X", "E-X", "S-X", "O"]
            labels = [[names[rng.integers(5)] for _ in range(6)] for _ in range(30)]
        crf = ChainCRF(l2=0.1, constraints=scheme).fit(noisy, labels)
        drawn = [path for paths in crf.sample(noisy, 3, rng=0) for path in paths]
        ranked = [path for paths in crf.predict_n_best(noisy, 4) for path, _ in paths]
        for path in [*crf.predict(noisy), *drawn, *ranked]:
            spans(path, scheme)
        tables = crf.predict_proba(noisy)
        assert all(table[0, crf.classes_.index("I-X")] == 0.0 for table in tables)
    with pytest.raises(mf.ImpossibleEvidenceError, match="sequence 0 has no labels that its constraints allow"):
        crf.predict(noisy[:1], fixed=[["I-X", *[None] * 5]])
    with pytest.raises(mf.ModelError, match="none of scheme 'iob2'"):
        ChainCRF(constraints="iob2").fit(X, Y)


def test_weights_count_as_repeated_sequences():
    times = [1 + s % 3 for s in range(len(X))]
    weighted = ChainCRF(l2=0.5, tolerance=1e-10).fit(X, Y, sample_weight=times)
    repeated = ChainCRF(l2=0.5, tolerance=1e-10).fit(
        [x for x, n in zip(X, times, strict=True) for _ in range(n)],
        [own for own, n in zip(Y, times, strict=True) for _ in range(n)],
    )
    assert weighted.report_.objective == pytest.approx(repeated.report_.objective, rel=1e-9)
    assert repeated.state_features_.keys() == weighted.state_features_.keys()
    for key, value in repeated.state_features_.items():
        assert weighted.state_features_[key] == pytest.approx(value, abs=1e-3)
    for bad, message in [
        ({"class_weight": {"Z": 1.0}}, "label 'Z'"),
        ({"class_weight": "heavy"}, "class_weight must be"),
        ({"class_weight": {"A": -1.0}}, "class_weight needs finite"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            ChainCRF(**bad).fit(X, Y)
    with pytest.raises(mf.ModelError, match="sample_weight needs a finite number"):
        ChainCRF().fit(X, Y, sample_weight=[1.0])


def test_warm_start_goes_on_where_the_last_fit_ended():
    crf = ChainCRF(l2=0.5, warm_start=True, tolerance=1e-9).fit(X, Y)
    again = crf.report_.objective
    crf.fit(X, Y)
    assert crf.report_.objective == pytest.approx(again, rel=1e-6)
    assert crf.report_.iterations <= 12
    # New attributes and labels join; the old ones keep their weights as a start.
    old = crf.state_features_
    crf.set_params(max_iterations=1).fit([[{"new": "thing"}]], [["D"]])
    assert crf.classes_ == ["A", "B", "C", "D"]
    assert ("new:thing", "D") in crf.state_features_
    assert old.keys() <= crf.state_features_.keys()
    with pytest.raises(mf.ModelError, match="warm_start needs the order"):
        crf.set_params(order=2).fit(X, Y)


@pytest.mark.parametrize("solver", ["lbfgs", "perceptron"])
def test_partial_fit_learns_from_further_sequences(solver: str):
    crf = ChainCRF(solver=solver, rng=0).fit(X[:20], Y[:20])
    features = crf.model_.features.n_features
    crf.partial_fit([*X[20:], [{"shown": "9"}]], [*Y[20:], ["Z"]])
    assert crf.classes_ == ["A", "B", "C", "Z"]
    assert crf.model_.features.n_features > features
    assert crf.score(X, Y) > 0.6
    assert crf.predict([[{"shown": "9"}]]) == [["Z"]]
    assert crf.get_params()["warm_start"] is False and crf.get_params()["max_iterations"] is None
    if solver == "perceptron":
        assert crf.report_.iterations == 1
    assert ChainCRF().partial_fit(X, Y).score(X, Y) > 0.6


def test_partly_labelled_sequences():
    rng = np.random.default_rng(0)
    partial = [[k if rng.random() < 0.6 else None for k in own] for own in Y]
    crf = ChainCRF(l2=0.5, tolerance=1e-10).fit(X, partial)
    assert crf.report_.objective == pytest.approx(objective(crf, X, partial, 0.5), rel=1e-9)
    assert crf.score(X, Y) > 0.6
    # With every label known, the sum over what is not known is the score itself.
    full = ChainCRF(l2=0.5, tolerance=1e-10).fit(X, Y)
    assert full.report_.objective == pytest.approx(objective(full, X, Y, 0.5), rel=1e-9)
    for solver in ("sgd", "perceptron"):
        with pytest.raises(mf.ModelError, match="needs every label"):
            ChainCRF(solver=solver).fit(X, partial)


def test_hidden_states_learn_what_no_single_state_can():
    """Four faces take turns, two of each label: the label after a label depends on which face it was."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        face, tokens, own = int(rng.integers(2)), [], []
        for _ in range(8):
            own.append("A" if face < 2 else "B")
            tokens.append([f"f{face}" if rng.random() < 0.6 else f"f{rng.integers(4)}"])
            face = (face + 1) % 4
        X.append(tokens)
        y.append(own)
    plain = ChainCRF(l2=0.1).fit(X, y)
    latent = ChainCRF(l2=0.1, hidden_states=2, rng=0).fit(X, y)
    assert latent.report_.objective == pytest.approx(objective(latent, X, y, 0.1), rel=1e-9)
    assert -latent.log_likelihood(X, y).sum() < 0.8 * -plain.log_likelihood(X, y).sum()
    assert latent.score(X, y) > plain.score(X, y)
    graph = latent.to_factor_graph(X[0])
    exact = mf.marginals(graph, method="junction_tree").values.reshape(8, 2, 2).sum(axis=2)
    np.testing.assert_allclose(latent.predict_proba(X[:1])[0], exact, atol=1e-9)
    assert latent.predict_mpm(X[:1])[0] == ["AB"[k] for k in exact.argmax(axis=1)]
    assert (("A", 0), ("A", 1)) in latent.transition_features_


def test_dropping_zero_weights_changes_no_answer():
    noise = [[{**token, f"noise{s}": 1.0} for token in x] for s, x in enumerate(X)]
    crf = ChainCRF(l1=1.0, l2=0.1).fit(noise, Y)
    before = crf.predict_proba(noise)
    n, features = crf.vectoriser_.n_attributes_, crf.model_.features.n_features
    active = crf.state_features_
    crf.sparsify()
    assert crf.vectoriser_.n_attributes_ < n and crf.model_.features.n_features < features
    assert crf.state_features_ == active
    for a, b in zip(before, crf.predict_proba(noise), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    arrays = [np.eye(3)[["ABC".index(k) for k in own]] for own in Y]
    numbered = ChainCRF(l1=1.0).fit(arrays, Y)
    tables = numbered.predict_proba(arrays)
    for a, b in zip(tables, numbered.sparsify().predict_proba(arrays), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_arrays_hashing_and_ready_made_data():
    arrays = [np.eye(3)[["ABC".index(k) for k in own]] for own in Y]
    assert ChainCRF().fit(arrays, Y).score(arrays, Y) > 0.9
    hashed = ChainCRF(hashing=64).fit(X, Y)
    assert hashed.score(X, Y) > 0.7
    assert all(name.isdigit() for name, _ in hashed.state_features_)
    vectoriser = AttributeVectoriser()
    data = vectoriser.fit_transform(X)
    ready = ChainCRF().fit(data, Y, vectoriser=vectoriser)
    np.testing.assert_array_equal(ready.model_.weights, ChainCRF().fit(X, Y).model_.weights)
    assert ready.state_features_ == ChainCRF().fit(X, Y).state_features_
    assert ChainCRF().fit(data, Y).predict(data) == ready.predict(X)


def test_report_of_weights():
    report = ChainCRF().fit(X, Y).explain_weights(top=2)
    assert "Transitions" in str(report) and "shown:0" in str(report)
    assert all(len(listed) <= 2 for listed in report.states.values())
    assert "<table>" in report._repr_html_()


def test_stopping_by_time_and_by_callback():
    seen = []
    crf = ChainCRF(l2=1e-3).fit(X, Y, callback=lambda progress: seen.append(progress) or len(seen) > 12)
    assert not crf.report_.converged and crf.report_.message == "stopped by the callback"
    with pytest.raises(TimeoutError):
        ChainCRF().fit(X, Y, time_limit=1e-9)
    lines = ChainCRF(verbose=True, max_iterations=2)
    assert lines.fit(X, Y).report_.iterations == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X[:2], [["A"]]), "labels for 1"),
        ((X[:1], [["A"] * (len(X[0]) + 1)]), "sequence 0 has"),
        (([], []), "there are no labels to learn from"),
        (([[]], [[]]), "there are no labels to learn from"),
        (([[{"a": float("nan")}]], [["A"]]), "nan"),
        (([np.array([[np.nan]])], [["A"]]), "values must be finite"),
        (([[{"a": 1.0}]], ["A"]), "must be a list"),
        (([[{"a": 1.0}]], [[None]]), "no label is known"),
        (([[["a"]]], [[("x",), 1]]), "types that can be sorted|sequence 0"),
    ],
)
def test_bad_sequences_are_refused(data: tuple, message: str):
    with pytest.raises(mf.ModelError, match=message):
        ChainCRF().fit(*data)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l2": -1.0}, "l2 must be a number from 0 on"),
        ({"c2": -1.0}, "c2 must be a number from 0 on"),
        ({"l1": float("nan")}, "l1 must be"),
        ({"solver": "newton"}, "solver must be one of lbfgs"),
        ({"solver": "sgd", "l1": 1.0}, "has no l1 penalty"),
        ({"period": 0}, "period must be an integer from 1 on"),
        ({"max_iterations": 1.5}, "max_iterations must be"),
        ({"order": 3}, "order must be 1 or 2"),
        ({"step": 0.0}, "step must be above 0"),
        ({"solver": "pa", "order": 2}, "order=2 needs a batch solver"),
        ({"solver": "pa", "hidden_states": 2}, "hidden_states needs a batch solver"),
        ({"early_stopping": 2}, "early_stopping needs a development set"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str):
    with pytest.raises(mf.ModelError, match=message):
        ChainCRF(**settings).fit(X, Y)


def test_empty_sequences_and_questions_that_make_no_sense():
    crf = ChainCRF().fit([*X, []], [*Y, []])
    assert crf.predict([[], X[0]])[0] == []
    assert crf.predict_proba([[]])[0].shape == (0, 3)
    assert crf.predict([]) == [] and crf.predict_proba([]) == []
    assert crf.predict_n_best([[]], 2) == [[([], 1.0)]]
    assert crf.sample([[]], 2) == [[[], []]]
    assert crf.entropy([[]]).tolist() == [0.0]
    with pytest.raises(mf.ModelError, match="empty sequence"):
        crf.to_factor_graph([])
    with pytest.raises(mf.ModelError, match="no tokens to score"):
        crf.score([[]], [[]])
    with pytest.raises(mf.ModelError, match="different lengths"):
        crf.score(X[:1], [[]])
    with pytest.raises(mf.ModelError, match="n must be an integer"):
        crf.predict_n_best(X, 0)
    with pytest.raises(mf.ModelError, match="fitted without edges"):
        crf.predict(X, edges=EDGES)
    with pytest.raises(mf.ModelError, match="needs them here too"):
        ChainCRF().fit(X, Y, edges=EDGES).predict(X)
    with pytest.raises(mf.ModelError, match="both X_dev and y_dev"):
        ChainCRF().fit(X, Y, X)
    with pytest.raises(mf.ModelError, match="edges_dev"):
        ChainCRF().fit(X, Y, X, Y, edges=EDGES)
    with pytest.raises(mf.ModelError, match="takes no edges"):
        ChainCRF(order=2).fit(X, Y, edges=EDGES)
    with pytest.raises(mf.ModelError, match="as many entries of edges"):
        ChainCRF().fit(X, Y, edges=EDGES[:-1])
