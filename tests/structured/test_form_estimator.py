"""Conditional models of structures: the likelihood by finite differences, and everything a fitted one is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import TensorProduct
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.structures.core.family import Parts
from markovfield.structures.span_tree.family import SpanTrees
from markovfield.structures.span_tree.span_tree import SpanTree


@dataclass(frozen=True, eq=False)
class Spans(FormModel):
    """Trees of spans that have features: x is ``float[n, n, k]``; with ``hide``, labels of spans are not seen."""

    hide: bool = False
    with_base: bool = False
    form_class: ClassVar[Any] = SpanTree

    def shape_of(self, X, Y):
        labels = 1 + max(label for tree in Y for *_, label in tree)
        return Shape(tuple(range(labels)), {"features": X[0].shape[2]})

    def templates(self):
        return [Template("spans", self.n_classes, self.known.sizes["features"]), Template("labels", self.n_classes)]

    def inputs(self, X):
        family = SpanTrees.of(np.array([len(x) for x in X]), self.n_classes)
        rows = np.concatenate([x[np.triu_indices(len(x))] for x in X])
        n, k = len(rows), self.n_classes
        blocks = (
            Block("spans", TensorProduct(n, k, rows)),
            Block("labels", TensorProduct(n, k, np.ones((n, 1)))),
        )
        base = np.linspace(0, 1, family.n_cells) if self.with_base else None
        return FormInputs(family, blocks, base)

    def _cells(self, Y, inputs):
        family = inputs.family
        return [[family.span_cell(i, a, b) + label for a, b, label in tree] for i, tree in enumerate(Y)]

    def parts(self, Y, inputs):
        return None if self.hide else Parts.joined(self._cells(Y, inputs))

    def mask(self, Y, inputs):
        k = self.n_classes
        mask = np.full(inputs.family.n_cells, -np.inf)
        for cells in self._cells(Y, inputs):
            for cell in cells:
                mask[cell // k * k : cell // k * k + k] = 0.0
        return mask

    def outputs(self, parts, inputs):
        found = []
        for i in range(inputs.family.n_instances):
            spans = inputs.family.spans(i, parts.of(i)).tolist()
            found.append(sorted(map(tuple, spans), key=lambda s: (s[0], -s[1])) or None)
        return found

    def accuracy(self, Y, predicted):
        pairs = [(set(a), set(b)) for a, b in zip(Y, predicted, strict=True)]
        return sum(len(a & b) for a, b in pairs) / sum(len(a) for a, _ in pairs)


class SpanCRF(FormEstimator):
    def __init__(
        self, hide=False, objective="likelihood", solver="auto", l2=0.1, l1=0.0, batch_size=None, rng=None, n_jobs=None
    ):
        self.hide, self.objective, self.solver, self.l2, self.l1 = hide, objective, solver, l2, l1
        self.batch_size, self.rng, self.n_jobs = batch_size, rng, n_jobs

    def _model(self):
        return Spans(hide=self.hide)


def data(n=12, seed=0):
    """Trees drawn from scores that are linear in features."""
    rng = np.random.default_rng(seed)
    w = np.array([[2.0, -2.0], [1.0, 0.5], [-1.0, 3.0]])
    X, Y = [], []
    for _ in range(n):
        x = rng.normal(size=(int(rng.integers(1, 7)), 0, 3))
        x = rng.normal(size=(len(x), len(x), 3))
        X.append(x)
        Y.append(mf.decode(SpanTree(2 * x @ w)).structure)
    return X, Y


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("with_base", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_the_likelihood(hide, with_base, weighted):
    X, Y = data(5)
    model = Spans(hide=hide, with_base=with_base).shaped(X, Y)
    weights = np.array([1.0, 2.0, 0.0, 0.5, 1.0]) if weighted else None
    objective = ConditionalLikelihood().on(model.encode(X, Y, weights), running=Running())
    rng = np.random.default_rng(1)
    w = rng.normal(size=model.n_weights)
    value, gradient = objective(w)
    assert value > 0
    for i in range(model.n_weights):
        step = np.zeros_like(w)
        step[i] = 1e-5
        slope = (objective(w + step)[0] - objective(w - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-5)
    # By the verbs, example by example.
    if not hide and not with_base and not weighted:
        forms = [model.form(model.inputs(X), i, model.encode(X).pool(w)) for i in range(5)]
        direct = sum(float(mf.log_partition(f)) - f.score(y) for f, y in zip(forms, Y, strict=True))
        assert value == pytest.approx(direct)


@pytest.mark.parametrize("settings", [{}, {"solver": "adagrad", "rng": 0, "batch_size": 3}, {"l1": 0.1}])
def test_fitted_models_answer(settings):
    X, Y = data(30)
    crf = SpanCRF(**settings).fit(X, Y)
    assert crf.score(X, Y) > 0.9
    assert crf.report_.guarantee == "exact"
    assert crf.report_.details["n_cells"] > 0
    few, gold = X[:4], Y[:4]
    decoded = crf.decode(few)
    for i, x in enumerate(few):
        form = crf.form(x)
        best = mf.decode(form)
        assert decoded.labels[i] == best.structure
        assert decoded.scores[i] == pytest.approx(best.score)
        assert crf.predict(few, decision="mbr")[i] == mf.decode(form, loss="parts").structure
        np.testing.assert_allclose(crf.predict_marginals(few)[i]["spans"], mf.marginals(form)["spans"])
        n = min(3, int(form.n_structures()))
        ranked = crf.predict_n_best(few, 3)[i]
        assert [score for _, score in ranked] == pytest.approx([s.score for s in mf.decode(form, n_best=n).n_best])
        likelihood = form.score(gold[i]) - float(mf.log_partition(form))
        assert crf.log_likelihood(few, gold)[i] == pytest.approx(likelihood)
    drawn = crf.sample(few, 2, rng=0)
    assert [len(outputs) for outputs in drawn] == [2] * 4
    assert drawn == crf.sample(few, 2, rng=0)


def test_hidden_labels():
    X, Y = data(20)
    # Labels that are hidden are alike where weights are zero, which is no place to start from.
    start = np.random.default_rng(0).normal(size=8)
    crf = SpanCRF(hide=True, l2=0.1).fit(X, Y, init=start)
    likely = crf.log_likelihood(X, Y)
    assert (likely <= 1e-9).all()
    # Guessing among trees, which labels have no part in, as all have as many.
    guess = [-np.log(SpanTree(np.zeros((len(x), len(x)))).n_structures()) for x in X]
    assert likely.sum() > 0.5 * sum(guess)


def test_what_is_refused():
    X, Y = data(5)
    with pytest.raises(mf.ModelError, match="trained by 'likelihood'"):
        SpanCRF(objective="pseudo_likelihood").fit(X, Y)
    with pytest.raises(mf.ModelError, match="leave inference"):
        SpanCRF(objective=ConditionalLikelihood(inference="bp")).fit(X, Y)
    crf = SpanCRF().fit(X, Y)
    with pytest.raises(mf.ModelError, match="decision must be"):
        crf.predict(X, decision="mpm")


def test_an_impossible_example_loses_no_other():
    X, Y = data(5)
    crf = SpanCRF().fit(X, Y)
    inputs, pool = crf._scored(X)
    family = inputs.family
    pool[family.cell_offsets[2] : family.cell_offsets[3]] = -np.inf
    parts = family.maxima(pool, running=Running())
    outputs = crf.model_.outputs(parts, inputs)
    assert outputs[2] is None
    assert [o for i, o in enumerate(outputs) if i != 2] == [o for i, o in enumerate(crf.predict(X)) if i != 2]
