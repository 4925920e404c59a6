"""Taggers behind the page of sequences."""

import json

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.works.tagger import TaggerWork
from markovfield.sequence import ColumnCorpus

X = [[["w=in"], ["w=New"], ["w=York"]], [["w=Ann"], ["w=ran"]], [["w=York"], ["w=ran"]]]
Y = [["O", "B-LOC", "I-LOC"], ["B-PER", "O"], ["B-PER", "O"]]
TEXT = "w=in\nw=New\nw=York\n\nw=Ann\nw=ran"


@pytest.fixture(scope="module")
def models():
    rows = [[("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")], [("The", "DT", "B-NP"), ("dog", "NN", "I-NP")]]
    corpus = ColumnCorpus.from_rows(rows, ["word", "pos", "chunk"])
    template = "U0:%x[0,1]\nU1:%x[-1,1]/%x[0,1]\nB"
    return {
        "crf": mf.ChainCRF(l2=0.1).fit(X, Y),
        "memm": mf.MEMM().fit(X, Y),
        "segments": mf.SemiMarkovCRF(l2=0.1).fit(X, Y),
        "tagger": mf.ChainTagger(template, crf=mf.ChainCRF(l2=0.1)).fit(corpus),
        "words": mf.ChainTagger(crf=mf.ChainCRF(l2=0.1)).fit([["He", "ran"], ["The", "dog"]], [["A", "B"], ["C", "D"]]),
        "hmm": mf.HMM(2, rng=0).fit([["a", "b", "a"], ["b", "b"]]),
        "gaussian": mf.HMM(2, "gaussian", rng=0).fit([[[1.0], [2.0], [9.0], [9.5]]]),
    }


@pytest.mark.parametrize("name", ["crf", "memm", "segments"])
def test_labels_and_probabilities_are_the_models(models, name):
    model = models[name]
    found = TaggerWork(model).tag(TEXT, form="attributes", n_best=4)
    inputs = [X[0], X[1]]
    assert [[t["label"] for t in s["tokens"]] for s in found["sentences"]] == model.predict(inputs)
    for s, sentence in enumerate(found["sentences"]):
        for token in sentence["tokens"]:
            assert token["labels"][0][1] >= token["labels"][-1][1]
            assert sum(p for _, p in token["labels"]) == pytest.approx(1.0)
        assert sum(one["probability"] for one in sentence["n_best"]) <= 1 + 1e-9
        if name != "segments":
            for t, token in enumerate(sentence["tokens"]):
                shares = model.predict_marginals([inputs[s]])[0][t]
                assert dict(map(tuple, token["labels"])) == pytest.approx(shares)


def test_marginals_of_segments_are_those_of_all_labellings(models):
    """Enumerated: every labelling with its probability, from a long n-best list."""
    model = models["segments"]
    ranked = model.predict_n_best([X[0]], 10_000)[0]
    weights = np.exp([score for _, score in ranked])
    found = TaggerWork(model).tag(TEXT, form="attributes")["sentences"][0]
    for t, token in enumerate(found["tokens"]):
        for label, share in token["labels"]:
            mine = sum(w for (path, _), w in zip(ranked, weights, strict=True) if path[t] == label)
            assert share == pytest.approx(mine / weights.sum(), abs=1e-9)
    assert found["n_best"][0]["probability"] == pytest.approx(weights[0] / weights.sum())


def test_reasons_are_the_weights_of_the_tokens_attributes(models):
    crf = models["crf"]
    token = TaggerWork(crf).tag("w=Ann\nw=ran", form="attributes")["sentences"][0]["tokens"][0]
    assert token["reasons"] == [["w=Ann", pytest.approx(crf.state_features_["w=Ann", "B-PER"])]]
    segment = TaggerWork(models["segments"]).tag(TEXT, form="attributes")["sentences"][0]["tokens"][1]
    assert segment["label"] == "B-LOC" and segment["reasons"][0][0] == "w=New" and segment["reasons"][0][1] > 0


def test_each_model_says_what_it_reads(models):
    for name, forms, text in [
        ("tagger", ("columns",), "A DT\ncat NN"),
        ("words", ("words", "columns"), "The dog ran\nHe ran"),
        ("hmm", ("symbols",), "a b a\nb b"),
        ("gaussian", ("numbers",), "1\n2\n9.5"),
        ("crf", ("words", "attributes"), "New York"),
    ]:
        work = TaggerWork(models[name])
        about = work.about()
        assert tuple(form["name"] for form in about["forms"]) == forms
        found = work.tag(text)
        json.dumps([about, found], allow_nan=False)
        assert sum(len(s["tokens"]) for s in found["sentences"]) == len(text.split()) // (2 if name == "tagger" else 1)


def test_about_has_transitions_and_features(models):
    about = TaggerWork(models["crf"]).about()
    at = [about["transition_labels"].index(label) for label in ("B-LOC", "I-LOC")]
    assert about["transitions"][at[0]][at[1]] == pytest.approx(models["crf"].transition_features_["B-LOC", "I-LOC"])
    assert about["features"]["O"][0][0] == "w=ran"
    assert TaggerWork(models["gaussian"]).about()["transitions"] is None


def test_what_cannot_be_read_is_told(models):
    crf = TaggerWork(models["crf"])
    for work, text, settings, message in [
        (crf, "", {}, "the text has no tokens"),
        (crf, 7, {}, "a text has at most 100,000 characters"),
        (crf, "a " * 2001, {}, "a text may have 2,000 tokens"),
        (crf, "a", {"form": "numbers"}, "this model reads words, attributes, not 'numbers'"),
        (crf, "a", {"n_best": 1000}, "n_best must be an integer from 1 to 20"),
        (TaggerWork(models["tagger"]), "dog", {}, "this tagger reads the 2 columns word, pos"),
        (TaggerWork(models["tagger"]), "dog NN\nran", {}, "as many columns, and these have 1 or 2"),
        (TaggerWork(models["gaussian"]), "x", {}, "observations must be numbers"),
    ]:
        with pytest.raises(ModelError, match=message):
            work.tag(text, **settings)
    with pytest.raises(ModelError, match="a tagger is a ChainTagger"):
        TaggerWork(object())


def test_hostile_tokens_stay_texts(models):
    token = TaggerWork(models["crf"]).tag("<script>alert(1)</script>", form="attributes")["sentences"][0]["tokens"][0]
    assert token["word"] == "<script>alert(1)</script>"
