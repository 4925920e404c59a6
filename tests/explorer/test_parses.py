"""Parsers and aligners behind their page."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.works.parses import ParseWork
from markovfield.grammar import Tree

pytest.importorskip("matplotlib")

TREES = [
    Tree.parse("(S (NP (DT the) (NN dog)) (VP (VB saw) (NP (DT the) (NN cat))))"),
    Tree.parse("(S (NP (NN rain)) (VP (VB fell)))"),
]
TAGGED = [[("the", "DT"), ("dog", "NN"), ("fell", "VB")]]


@pytest.fixture(scope="module")
def models():
    pairs = [(["the", "dog"], ["le", "chien"]), (["the", "cat"], ["le", "chat"])]
    return {
        "pcfg": mf.PCFG.from_trees(TREES),
        "crf": mf.GrammarCRF(min_count=1, min_word_count=1, rng=0).fit(TREES),
        "spans": mf.grammar.SpanParser(rng=0).fit(TREES),
        "arcs": mf.dependency.DependencyParser(labelled=True, rng=0).fit(
            TAGGED, [[(2, "det"), (3, "subj"), (0, "root")]]
        ),
        "ibm": mf.alignment.IBM1().fit(pairs),
        "both": mf.alignment.SymmetricAligner().fit(pairs),
    }


def check(found):
    json.dumps(found, allow_nan=False)
    for picture in found["pictures"]:
        root = ElementTree.fromstring(picture["svg"])
        assert root.tag.endswith("svg")
        assert not [e for e in root.iter() if e.tag.endswith("script")]
    return found


@pytest.mark.parametrize("name", ["pcfg", "crf", "spans"])
def test_trees(models, name):
    work = ParseWork(models[name])
    about = work.about()
    assert about["task"] == "tree" and "NP" in about["labels"]
    text = "the dog fell" if name == "pcfg" else "the/DT dog/NN fell/VB"
    assert about["reads"] == ("words" if name == "pcfg" else "tagged")
    found = check(work.ask(text, n_best=5))
    sentence = text.split() if name == "pcfg" else TAGGED[0]
    assert found["best"][0]["text"] == str(models[name].parse(sentence))
    assert len(found["pictures"]) == 2
    assert sum(one["probability"] for one in found["best"]) <= 1 + 1e-9


def test_probabilities_of_trees_add_up(models):
    found = ParseWork(models["spans"]).ask("the/DT dog/NN", n_best=10)
    ranked = models["spans"].predict_n_best([TAGGED[0][:2]], 10_000)[0]
    weights = np.exp([score for _, score in ranked])
    assert [one["probability"] for one in found["best"]] == pytest.approx((weights / weights.sum())[:10].tolist())


def test_dependencies(models):
    found = check(ParseWork(models["arcs"]).ask("the/DT dog/NN fell/VB"))
    best = models["arcs"].parse(TAGGED[0])
    heads = ["root", "the", "dog", "fell"]
    told = ", ".join(f"{w} <- {heads[h]} ({label})" for (w, _), (h, label) in zip(TAGGED[0], best, strict=True))
    assert found["best"][0]["text"] == told and told.startswith("the <- dog")
    assert len(found["pictures"]) == 2


@pytest.mark.parametrize("name", ["ibm", "both"])
def test_alignments(models, name):
    found = check(ParseWork(models[name]).ask("the dog", "le chien"))
    pair = [(["the", "dog"], ["le", "chien"])]
    assert found["probabilities"] == pytest.approx(models[name].predict_marginals(pair)[0], abs=1e-4)
    assert [one[:2] for one in found["links"]] == [["the", "le"], ["dog", "chien"]]


def test_hostile_words_stay_texts(models):
    bad = "<script>alert(1)</script>"
    for name, text in [("pcfg", f"{bad} fell"), ("ibm", bad), ("arcs", "<b>/NN $x^2$/NN")]:
        found = check(ParseWork(models[name]).ask(text, "le"))
        assert all("<script" not in picture["svg"] for picture in found["pictures"])


def test_what_cannot_be_asked_is_told(models):
    for name, text, message in [
        ("pcfg", "", "the sentence must have 1 to 60 words"),
        ("pcfg", "a " * 61, "of at most 80 letters, got 61"),
        ("pcfg", 3, "the sentence must be a text of at most 60 words"),
        ("spans", "the dog", "words with their tags, such as dog/NN, got 'the'"),
        ("ibm", "the dog", "the target must have 1 to 60 words"),
    ]:
        with pytest.raises(ModelError, match=message):
            ParseWork(models[name]).ask(text)
    with pytest.raises(ModelError, match="n_best must be an integer from 1 to 10"):
        ParseWork(models["pcfg"]).ask("the dog fell", n_best=99)
    with pytest.raises(ModelError, match="a parser or an aligner is expected, got a int"):
        ParseWork(3)
    nothing = mf.PCFG.from_text("S -> 'dogs' VP\nVP -> 'bark'", normalise=True)
    with pytest.raises(ModelError, match=r"no tree for this sentence|unknown|word"):
        ParseWork(nothing).ask("bark bark bark")
