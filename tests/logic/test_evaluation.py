"""Cross-validation over databases: what is learned on, what is predicted, and the figures."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf

TEXT = "Smokes(person)\nCancer(person)\nFriends(person, person)\nSmokes(x) => Cancer(x)\nCancer(x)\n"


METHOD = mf.methods.PseudoLikelihood(l2=0.5)


def worlds(n=3):
    made = []
    for w in range(n):
        rng = np.random.default_rng(w)
        lines = []
        for i in range(12):
            smokes = rng.random() < 0.5
            cancer = rng.random() < (0.8 if smokes else 0.2)
            lines.append(f"{'' if smokes else '!'}Smokes(W{w}P{i}) {'' if cancer else '!'}Cancer(W{w}P{i})")
        made.append("\n".join(lines) + "\n")
    return made


def test_each_database_is_predicted_by_the_others():
    data = worlds()
    method = mf.methods.MaximumLikelihood(l2=0.5)
    found = mf.logic.cross_validate(mf.MarkovLogic(TEXT), data, "Cancer", method)
    assert [fold.name for fold in found.folds] == ["1", "2", "3"]
    for i, fold in enumerate(found.folds):
        fitted = mf.MarkovLogic(TEXT).fit([d for j, d in enumerate(data) if j != i], "Cancer", method)
        given = "\n".join(part for part in data[i].split() if "Smokes" in part)
        world = fitted.ground(given, ["Cancer"], closed=["Smokes", "Friends"])
        answer = mf.marginals(world)
        assert len(fold.atoms) == 12
        for atom, truth, p in zip(fold.atoms, fold.truth, fold.probabilities, strict=True):
            assert p == pytest.approx(float(answer[atom][1]))
            assert truth == (atom in data[i].split())


def test_figures_are_those_of_their_definitions():
    found = mf.logic.cross_validate(
        mf.MarkovLogic(TEXT), worlds(), ["Cancer"], mf.methods.PseudoLikelihood(l2=0.5), names="abc"
    )
    for fold in found.folds:
        p, y = fold.probabilities, fold.truth
        above = (p[y][:, None] > p[~y]).mean() + 0.5 * (p[y][:, None] == p[~y]).mean()
        assert fold.roc_auc == pytest.approx(above)
        # Precision at every threshold, times the recall that is gained there.
        steps = np.unique(p)[::-1]
        precision = [y[p >= t].mean() for t in steps]
        recall = np.diff([0.0, *(y[p >= t].sum() / y.sum() for t in steps)])
        assert fold.average_precision == pytest.approx(float(np.dot(precision, recall)))
        assert fold.conditional_log_likelihood == pytest.approx(np.log(np.where(y, p, 1 - p)).mean())
    assert found.mean_average_precision == pytest.approx(np.mean([f.average_precision for f in found.folds]))
    lengths = [len(f.truth) for f in found.folds]
    pooled = np.average([f.conditional_log_likelihood for f in found.folds], weights=lengths)
    assert found.pooled_conditional_log_likelihood == pytest.approx(pooled)
    frame = found.to_frame()
    assert frame["fold"].tolist() == ["a", "b", "c", "mean", "pooled"]
    assert frame["true"].iloc[-1] == sum(int(f.truth.sum()) for f in found.folds)
    assert "CrossValidation of 3 databases: average precision" in repr(found) and "<table>" in found._repr_html_()
    assert repr(found.folds[0]).startswith("Fold a: 12 atoms") and len(found.folds[0].to_frame()) == 12


def test_only_named_atoms_and_chosen_folds():
    data = ["Smokes(A) Cancer(A) Smokes(B) !Cancer(B) Smokes(C)\n", "Smokes(D) Cancer(D) !Cancer(E)\n"]
    method = mf.methods.MaximumLikelihood(l2=1.0)
    found = mf.logic.cross_validate(mf.MarkovLogic(TEXT), data, "Cancer", method, named_only=True, folds=[0])
    assert len(found.folds) == 1 and found.folds[0].atoms == ("Cancer(A)", "Cancer(B)")
    found = mf.logic.cross_validate(mf.MarkovLogic(TEXT), data, "Cancer", method)
    assert found.folds[0].atoms == ("Cancer(A)", "Cancer(B)", "Cancer(C)")


def test_a_fold_without_true_atoms_is_left_out_of_means():
    data = ["Smokes(A) !Cancer(A)\n", "Smokes(D) Cancer(D) !Cancer(E)\n"]
    found = mf.logic.cross_validate(mf.MarkovLogic(TEXT), data, "Cancer", mf.methods.MaximumLikelihood(l2=1.0))
    assert np.isnan(found.folds[0].average_precision)
    assert found.mean_average_precision == found.folds[1].average_precision


def test_refusals():
    kb = mf.MarkovLogic(TEXT)
    with pytest.raises(mf.ModelError, match="cross_validate needs at least two databases"):
        mf.logic.cross_validate(kb, ["Smokes(A)\n"], "Cancer")
    with pytest.raises(mf.ModelError, match="cross_validate names 'Nope', which is no predicate of the program"):
        mf.logic.cross_validate(kb, worlds(), "Nope")
    with pytest.raises(mf.ModelError, match="cross_validate has 3 databases, got 1 names"):
        mf.logic.cross_validate(kb, worlds(), "Cancer", names=["a"])
    with pytest.raises(mf.ModelError, match="folds of cross_validate must be positions of databases from 0 to 2"):
        mf.logic.cross_validate(kb, worlds(), "Cancer", folds=[3])
