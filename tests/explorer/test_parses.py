"""Parsers and aligners behind their page."""

import json

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.replies import _plain
from markovfield.explorer.works.parses import ParseWork
from markovfield.grammar import Tree

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
    json.dumps(_plain(found), allow_nan=False)
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
    assert found["guarantee"] == "exact"
    assert sum(one["probability"] for one in found["best"]) <= 1 + 1e-9
    nested = found["best"][0]["tree"]
    assert nested[0] == "S" and nested[2:] == [0, 3] and bracketed(nested) == found["best"][0]["text"]


def bracketed(part):
    label, children, *_ = part
    return f"({label} {' '.join(c if isinstance(c, str) else bracketed(c) for c in children)})"


AMBIGUOUS = [
    Tree.parse("(S (NP (NN men)) (VP (VB saw) (NP (NP (NN cats)) (PP (IN with) (NP (NN hats))))))"),
    Tree.parse("(S (NP (NN men)) (VP (VB saw) (NP (NN cats)) (PP (IN with) (NP (NN hats)))))"),
    Tree.parse("(S (NP (NP (NN men)) (PP (IN with) (NP (NN hats)))) (VP (VB saw) (NP (NN cats))))"),
]


@pytest.mark.parametrize("kind", ["pcfg", "crf", "spans"])
def test_probabilities_of_spans_are_those_of_all_trees(kind):
    """Enumerated: spans of every tree with its probability, from a long list of the best."""
    tagged = [("men", "NN"), ("saw", "VB"), ("cats", "NN"), ("with", "IN"), ("hats", "NN")]
    # Without a grammar there are too many trees of longer sentences.
    tagged = tagged[:3] if kind == "spans" else tagged
    n = len(tagged)
    if kind == "pcfg":
        model = mf.PCFG.from_trees(AMBIGUOUS)
        ranked = model.n_best([w for w, _ in tagged], 10_000)
        found = ParseWork(model).ask("men saw cats with hats")
    else:
        made = mf.GrammarCRF(min_count=1, min_word_count=1) if kind == "crf" else mf.grammar.SpanParser()
        model = made.fit(AMBIGUOUS)
        ranked = model.predict_n_best([tagged], 10_000)[0]
        found = ParseWork(model).ask(" ".join(f"{w}/{t}" for w, t in tagged))
    weights = np.exp([score - ranked[0][1] for _, score in ranked])
    weights /= weights.sum()
    shares = dict.fromkeys([(i, j) for i in range(n) for j in range(i, n)], 0.0)
    labels = {}
    for (tree, _), weight in zip(ranked, weights, strict=True):
        for i, j in {(i, j - 1) for _, i, j in tree.spans()}:
            shares[i, j] += weight
        for label, i, j in set(tree.spans()):
            labels[label, i, j - 1] = labels.get((label, i, j - 1), 0.0) + weight
    assert 1 < len(ranked) < 10_000 and len(found["spans"]) == len(shares)
    for one in found["spans"]:
        at = one["first"], one["last"]
        assert one["probability"] == pytest.approx(shares[at], abs=1e-6)
        for label, share in one["labels"]:
            assert share == pytest.approx(labels.get((label, *at), 0.0), abs=1e-6)


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
    assert found["best"][0]["arcs"] == [[head, label] for head, label in best]
    assert found["guarantee"] == "exact" and np.asarray(found["probabilities"])[:, 1:].sum(axis=0) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ibm", "both"])
def test_alignments(models, name):
    found = check(ParseWork(models[name]).ask("the dog", "le chien"))
    pair = [(["the", "dog"], ["le", "chien"])]
    assert found["probabilities"] == pytest.approx(models[name].predict_marginals(pair)[0], abs=1e-4)
    assert [one[:2] for one in found["links"]] == [[0, 0], [1, 1]]
    assert found["joined"] == (name == "both") and found["guarantee"] == ("approximate" if name == "both" else "exact")


def test_learned_alignments_tell_log_z():
    pairs = [(["the", "dog"], ["le", "chien"]), (["the", "cat"], ["le", "chat"])]
    model = mf.alignment.AlignmentCRF(l2=0.1).fit(pairs, [[(0, 0), (1, 1)], [(0, 0), (1, 1)]])
    found = check(ParseWork(model).ask("the dog", "le chien"))
    known = mf.marginals(model.form(pairs[0]))
    assert found["guarantee"] == known.guarantee
    assert found["log_partition"] == pytest.approx(float(known.log_partition))
    assert found["probabilities"] == pytest.approx(model.predict_marginals(pairs[:1])[0], abs=1e-4)


def test_hostile_words_stay_texts(models):
    bad = "<script>alert(1)</script>"
    assert check(ParseWork(models["pcfg"]).ask(f"{bad} fell"))["words"] == [bad, "fell"]
    assert check(ParseWork(models["ibm"]).ask(bad, "le"))["source"] == [bad]
    assert check(ParseWork(models["arcs"]).ask("<b>/NN $x^2$/NN"))["words"] == ["<b>", "$x^2$"]


def test_the_code_says_the_same(models, tmp_path):
    for name, text in [("pcfg", "the dog fell"), ("crf", "the/DT dog/NN fell/VB"), ("ibm", "the dog")]:
        path, space = tmp_path / f"{name}.mfz", {}
        models[name].save(path)
        exec(ParseWork(models[name]).code(path, text, "le chien"), space)
        if name == "ibm":
            assert space["probabilities"] == pytest.approx(models[name].predict_marginals([space["pair"]])[0])
        else:
            assert str(space["model"].parse(space["sentence"])) == ParseWork(models[name]).ask(text)["best"][0]["text"]
    grammar = tmp_path / "coin.pcfg"
    grammar.write_text("S -> 'heads' [0.5] | 'tails' [0.5]\n")
    exec(ParseWork(mf.PCFG.from_text(grammar)).code(grammar, "heads"), space)
    assert str(space["model"].parse(["heads"])) == "(S heads)"


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
