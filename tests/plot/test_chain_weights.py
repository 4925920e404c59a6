"""The plot of a linear chain's weights."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.plot.chain_weights import chain_weights
from markovfield.sequence.chain.crf import ChainCRF

X = [[["word=the"], ["word=dog"], ["word=ran"]], [["word=a"], ["word=cat"], ["word=sat"]]]
Y = [["DT", "NN", "VB"], ["DT", "NN", "VB"]]


def test_transitions_and_strongest_attributes():
    crf = ChainCRF(l2=0.1).fit(X, Y)
    heat, bars = chain_weights(crf, top=2)
    shown = np.asarray(heat.images[0].get_array())
    assert shown[0, 1] == pytest.approx(crf.transition_features_["DT", "NN"])
    assert shown[2, 0] == 0.0
    assert [t.get_text() for t in heat.get_yticklabels()] == ["DT", "NN", "VB"]
    weights = sorted(bar.get_width() for bar in bars.patches)
    strongest = [w for label in ["DT", "NN", "VB"] for _, w in crf.explain_weights(2).states[label]]
    np.testing.assert_allclose(weights, sorted(strongest))
    written = {t.get_text() for t in bars.texts}
    assert {"DT", "word=dog", "word=cat"} <= written


def test_some_labels_in_an_order():
    report = ChainCRF().fit(X, Y).explain_weights()
    heat, _ = chain_weights(report, labels=["VB", "DT"], title="two of them")
    assert heat.images[0].get_array().shape == (2, 2)
    assert heat.figure.get_suptitle() == "two of them"
    with pytest.raises(mf.ModelError, match="is none of the 3 labels"):
        chain_weights(report, labels=["XX"])


def test_hidden_states_have_names_of_two_parts():
    heat, _ = chain_weights(ChainCRF(hidden_states=2, rng=0).fit(X, Y))
    assert heat.get_yticklabels()[1].get_text() == "DT/1"
