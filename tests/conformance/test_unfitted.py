"""An estimator that is asked before it was fitted says so, whatever it is asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from sklearn.exceptions import NotFittedError

import markovfield as mf
from markovfield._exports import EXPORTS, NAMESPACES, names_in

# What they take where it is not a list of lists of texts.
WORDS: dict[str, Any] = {"PCFG": [["a"]], "ImageSegmentation": [[0.0, 1.0], [1.0, 0.0]]}
# Models that are fitted by `mf.fit` or can be asked without; and the base of the estimators of structures.
OTHERS = {"FormEstimator", "LinearStateSpace", "MarkovLogic", "TokenFeatures", "RestrictedBoltzmannMachine", "Hopfield"}


def estimators() -> dict[str, type]:
    places = {name: place for name, place in EXPORTS.items() if place != f"markovfield.{name}"}
    for space in NAMESPACES:
        places |= names_in(space)
    found = {name: getattr(import_module(place), name) for name, place in places.items() if name not in OTHERS}
    return {
        n: k for n, k in sorted(found.items()) if isinstance(k, type) and hasattr(k, "fit") and _made(k) is not None
    }


def _made(kind: type) -> Any:
    for given in ((), (2,)):
        try:
            return kind(*given)
        except TypeError:
            continue
    return None


@pytest.mark.parametrize("name", estimators())
def test_asked_before_it_is_fitted(name: str):
    estimator = _made(estimators()[name])
    X = WORDS.get(name, [[["a"]]])
    asked = 0
    for method in ("predict", "predict_proba", "predict_marginals", "predict_mpm", "decode", "marginals", "transform"):
        if hasattr(estimator, method):
            asked += 1
            with pytest.raises((NotFittedError, mf.ModelError), match=r"not fitted|fit\(|fitted"):
                getattr(estimator, method)(X)
    if hasattr(estimator, "score") and hasattr(estimator, "predict") and name not in ("HMM", "PCFG"):
        with pytest.raises((NotFittedError, mf.ModelError), match=r"not fitted|fit\(|fitted"):
            estimator.score(X, X)
    assert asked or not hasattr(estimator, "predict")


@pytest.mark.parametrize("method", ["entropy", "to_factor_graph", "sample"])
def test_other_questions_to_a_chain_that_was_not_fitted(method: str):
    given = ([[["a"]]], 1) if method == "sample" else ([["a"]],)
    with pytest.raises(NotFittedError, match="ChainCRF instance is not fitted yet"):
        getattr(mf.ChainCRF(), method)(*given)
