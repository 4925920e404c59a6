"""The estimators of skip chains and factorial chains: trained, asked, and compared with the linear-chain CRF."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.learning.solvers.lbfgs import LBFGS


def corpus(n: int, seed: int) -> tuple[list, list]:
    """Sentences in which a name comes twice, once with a hint of its kind and once without."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        name = f"Name{rng.integers(10_000)}"
        kind = str(rng.choice(["PER", "LOC"]))
        hint = {"PER": "said", "LOC": "near"}[kind]
        words = [hint, name, "and", "then", "the", name]
        X.append([[f"w={w}", f"before={b}"] for b, w in zip(["<s>", *words[:-1]], words, strict=True)])
        y.append(["O", kind, "O", "O", "O", kind])
    return X, y


def test_links_carry_what_the_chain_cannot_know():
    (X, y), (X_test, y_test) = corpus(60, 0), corpus(60, 1)
    assert not {x[1][0] for x in X} & {x[1][0] for x in X_test}
    chain = mf.ChainCRF(l2=0.1).fit(X, y)
    skip = mf.SkipChainCRF(l2=0.1, interaction="equal").fit(X, y)
    assert skip.score(X_test, y_test) == 1.0
    assert chain.score(X_test, y_test) < 0.95
    assert skip.report_.guarantee == "exact"


def test_without_links_it_predicts_as_the_linear_chain_does():
    X, y = corpus(30, 2)
    chain = mf.ChainCRF(l2=0.5, all_states=True, all_transitions=True, tolerance=1e-12).fit(X, y)
    skip = mf.SkipChainCRF(None, l2=0.5, solver=LBFGS(tolerance=1e-14, gradient_tolerance=1e-9)).fit(X, y)
    one = mf.FactorialCRF(["kind"], l2=0.5, solver=LBFGS(tolerance=1e-14, gradient_tolerance=1e-9))
    one.fit(X, [{"kind": own} for own in y])
    assert skip.report_.objective == pytest.approx(chain.report_.objective, rel=1e-6)
    assert one.report_.objective == pytest.approx(chain.report_.objective, rel=1e-6)
    for a, b, c in zip(chain.predict_proba(X), skip.predict_marginals(X), one.predict_marginals(X), strict=True):
        np.testing.assert_allclose(b, a, atol=2e-4)
        np.testing.assert_allclose(c["kind"], a, atol=2e-4)
    assert skip.predict(X) == chain.predict(X)


def test_layers_are_predicted_together():
    rng = np.random.default_rng(4)
    X, Y = [], []
    for _ in range(80):
        tags = [str(rng.choice(["D", "N", "V"])) for _ in range(4)]
        X.append([[f"w={tag.lower()}{rng.integers(3)}"] for tag in tags])
        Y.append({"tag": tags, "chunk": ["I" if tag in "DN" else "O" for tag in tags], "odd": ["x", "y", "x", "y"]})
    crf = mf.FactorialCRF(["tag", "chunk", "odd"], l2=0.1).fit(X, Y)
    assert crf.score(X, Y) > 0.99
    assert crf.predict(X)[0].keys() == {"tag", "chunk", "odd"}
    tables = crf.predict_marginals(X[:2])
    assert {name: table.shape for name, table in tables[0].items()} == {"tag": (4, 3), "chunk": (4, 2), "odd": (4, 2)}
    for table in tables[1].values():
        np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-9)
    fixed = crf.predict(X[:1], fixed=[{"chunk": [None, "O", None, None]}])
    assert fixed[0]["chunk"][1] == "O"
    assert crf.coef_["tag with chunk"].reshape(3, 2).argmax(axis=1).tolist() == [0, 0, 1]


@pytest.mark.parametrize("inference", ["belief_propagation", "tree_reweighted"])
def test_other_inference_trains_and_says_so(inference):
    X, y = corpus(20, 5)
    skip = mf.SkipChainCRF(l2=0.5, inference=inference).fit(X, y)
    assert skip.report_.guarantee != "exact"
    assert skip.score(X, y) == 1.0


def settings(model):
    return {field.name: getattr(model, field.name) for field in fields(model) if field.name != "shape"}


def test_settings_reach_the_model_and_survive_a_clone():
    crf = mf.SkipChainCRF("equal", interaction="equal", max_links=2, max_distance=9, word="w", min_count=2)
    copy = clone(crf)
    assert settings(copy._model()) == settings(crf._model()) == {
        "link": "equal", "interaction": "equal", "link_features": False, "max_links": 2, "max_distance": 9,
        "word": "w", "min_count": 2,
    }  # fmt: skip
    with pytest.raises(mf.ModelError, match="layers must be different names"):
        mf.FactorialCRF([]).fit([["a"]], [{}])
