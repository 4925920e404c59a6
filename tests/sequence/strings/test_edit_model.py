"""The learned edit distance: by enumeration, finite differences, what it learns, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.sequence.strings.edit_features import EDITS, EditFeatures
from markovfield.sequence.strings.lexicon import Lexicon
from markovfield.sequence.strings.string_edits import StringEdits
from markovfield.structured.objectives.form_likelihood import FormLikelihood
from tests.structures.cases.alignment import monotone

STRINGS = ["thier", "hte", "helo", "wrold", "wurld", "there"]
WORDS = ["their", "the", "hello", "world", "world", "there"]


def score_by_hand(weights, features, string, word, links):
    """The score of an alignment, edit by edit."""
    edits, pairs, gaps = (weights[kind].ravel() for kind in ("edits", "pairs", "gaps"))
    size = features.n_letters
    code = {letter: k + 1 for k, letter in enumerate(features.alphabet)}
    total = 0.0
    for i, j in links:
        total += edits[EDITS.index("same" if string[i] == word[j] else "different")]
        total += pairs[code.get(string[i], 0) * size + code.get(word[j], 0)]
    for side, text in enumerate((string, word)):
        name, linked = ("added", "left_out")[side], {link[side] for link in links}
        # A gap ends where a link is, of any letter of the other side.
        borders = [-1, *(link[side] for link in links), len(text)]
        first = {a + 1 for a in borders}
        for k, letter in enumerate(text):
            if k not in linked:
                total += edits[EDITS.index(f"{name}_{'first' if k in first else 'further'}")]
                total += gaps[side * size + code.get(letter, 0)]
                if letter in (text[k - 1] if k else "", text[k + 1] if k + 1 < len(text) else ""):
                    total += edits[EDITS.index(f"{name}_doubled")]
    return total


@pytest.fixture(scope="module")
def fitted():
    return mf.sequence.EditModel({"their": 5, "the": 50, "hello": 2, "world": 3, "there": 9, "other": 4}, l2=0.3).fit(
        STRINGS, WORDS
    )


@pytest.mark.parametrize(
    ("string", "word"), [("hte", "the"), ("aab", "ab"), ("helo", "hello"), ("x", "the"), ("é", "e")]
)
def test_distances_and_alignments_by_enumeration(fitted, string, word):
    rng = np.random.default_rng(0)
    fitted = clone(fitted).fit(STRINGS, WORDS)
    fitted.weights_ = rng.normal(size=len(fitted.weights_))
    features, weights = EditFeatures(fitted.model_.strings.alphabet), fitted.coef_
    every = list(monotone(0, 0, len(string), len(word)))
    scores = np.array([score_by_hand(weights, features, string, word, links) for links in every])
    assert fitted.distance(string, word) == pytest.approx(-np.logaddexp.reduce(scores))
    aligned = fitted.align(string, word)
    assert "".join(a for a, _ in aligned if a) == string
    assert "".join(b for _, b in aligned if b) == word
    links, i, j = [], 0, 0
    for a, b in aligned:
        if a and b:
            links.append((i, j))
        i, j = i + bool(a), j + bool(b)
    assert score_by_hand(weights, features, string, word, links) == pytest.approx(scores.max())


def test_words_are_as_probable_as_all_their_alignments(fitted):
    lexicon = fitted.model_.strings.lexicon
    weight = fitted.coef_["edits"].ravel()[EDITS.index("frequency")]
    for string in ("helo", "thr"):
        (suggested,) = fitted.suggest([string], 10)
        logs = np.array(
            [weight * lexicon.log_shares[lexicon.number[w]] - fitted.distance(string, w) for w, _ in suggested]
        )
        np.testing.assert_allclose([p for _, p in suggested], np.exp(logs - np.logaddexp.reduce(logs)), atol=1e-9)
        assert len(suggested) == 6
        for word, p in suggested:
            assert np.exp(fitted.log_likelihood([string], [word])[0]) == pytest.approx(p)


def test_the_gradient_by_finite_differences():
    model = StringEdits(None, 3).shaped(STRINGS, WORDS)
    batch = model.encode(STRINGS, WORDS, np.linspace(0.5, 2.0, len(STRINGS)))
    objective = FormLikelihood(batch, Running(1))
    rng = np.random.default_rng(1)
    w = rng.normal(0, 0.5, model.n_weights)
    value, gradient = objective(w)
    assert value > 0
    used = np.flatnonzero(gradient)
    for k in rng.choice(used, 12, replace=False):
        step = np.zeros(len(w))
        step[k] = 1e-5
        slope = (objective(w + step)[0] - objective(w - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, abs=1e-6)


def misspelt(rng, n):
    """Words in which vowels are often mixed up and consonants never are."""
    words = ["".join(rng.choice(list("bdfgklmnprst")) + rng.choice(list("aeiou")) for _ in range(3)) for _ in range(n)]
    change = {"a": "e", "e": "i", "i": "o", "o": "u", "u": "a"}
    typos = []
    for word in words:
        k = 2 * int(rng.integers(3)) + 1
        typos.append(word[:k] + change[word[k]] + word[k + 1 :])
    return typos, words


def test_it_learns_which_edits_are_common():
    rng = np.random.default_rng(2)
    typos, words = misspelt(rng, 120)
    lexicon = sorted(set(words) | {w[:-1] + "s" for w in words} | {"t" + w[1:] for w in words})
    model = mf.sequence.EditModel(lexicon, l2=0.1).fit(typos[:80], words[:80])
    assert model.report_.guarantee == "exact"
    assert model.report_.log_likelihood == pytest.approx(model.log_likelihood(typos[:80], words[:80]).sum(), rel=1e-6)
    assert model.score(typos[80:], words[80:]) > 0.9
    assert model.distance("be", "ba") < model.distance("be", "de")
    same = [pair for pair in zip(typos[0], words[0], strict=True) if pair[0] == pair[1]]
    assert [pair for pair in model.align(typos[0], words[0]) if pair[0] == pair[1]] == same


def test_other_questions(fitted):
    assert fitted.predict(["helo", "wrld"]) == ["hello", "world"]
    assert fitted.predict(["helo"], decision="map") == ["hello"]
    assert fitted.decode(["helo"]).labels == ["hello"]
    assert set(fitted.sample(["helo"], 5, rng=0)[0]) <= set(fitted.classes_)
    (best,) = fitted.predict_n_best(["hte"], 3)
    assert len(best) == 3
    marginals = fitted.predict_marginals(["hte"])[0]
    assert marginals["choices"].sum() == pytest.approx(1.0)
    assert mf.decode(fitted.form("hte")).score == pytest.approx(best[0][1])
    # Without a letter in common, the words nearest in length are compared.
    assert fitted.predict(["qqq"])[0] in fitted.classes_


def test_files(fitted, tmp_path):
    path = tmp_path / "edits.mf"
    fitted.save(path)
    for again in (mf.sequence.EditModel.load(path), mf.load(path)):
        assert again.predict(STRINGS) == fitted.predict(STRINGS)
        assert again.distance("hte", "the") == fitted.distance("hte", "the")
        assert again.get_params()["n_candidates"] == 10
        assert again.classes_ == fitted.classes_
    with pytest.raises(mf.FormatError, match="not a CTCLabeller"):
        mf.sequence.CTCLabeller.load(path)


def test_candidates():
    words = Lexicon(["abc", "abd", "xyz", "q"])
    assert [words.words[k] for k in words.candidates(["abd"], 2)[0]] == ["abd", "abc"]
    assert len(words.candidates(["ab"] * 130, 99)) == 130
    assert sorted(words.candidates(["ab"], 99)[0].tolist()) == [0, 1, 2, 3]
    often = Lexicon({"aa": 1, "ab": 99})
    assert often.words[often.candidates(["a"], 1)[0][0]] in often.words
    assert np.exp(often.log_shares).sum() == pytest.approx(1.0)


def test_what_is_wrong_is_said(fitted):
    with pytest.raises(mf.ModelError, match="example 1 must be a string of one character at least, got ''"):
        mf.sequence.EditModel().fit(["a", ""], ["a", "b"])
    with pytest.raises(mf.ModelError, match="output 0 must be a string of one character at least, got 3"):
        mf.sequence.EditModel().fit(["a"], [3])
    with pytest.raises(mf.ModelError, match="X has 2 examples and y has 1"):
        mf.sequence.EditModel().fit(["a", "b"], ["a"])
    with pytest.raises(mf.ModelError, match="example 0: the word 'z' is not in the lexicon"):
        mf.sequence.EditModel(["a", "b"]).fit(["a"], ["z"])
    with pytest.raises(mf.ModelError, match="example 1: the word 'zoo' is not in the lexicon"):
        fitted.log_likelihood(["a", "b"], ["the", "zoo"])
    with pytest.raises(mf.ModelError, match="X holds no examples"):
        fitted.predict([])
    with pytest.raises(mf.ModelError, match="must be a list of strings, got one string"):
        fitted.predict("helo")
    with pytest.raises(mf.ModelError, match="n_candidates"):
        mf.sequence.EditModel(n_candidates=0).fit(["a"], ["a"])
    with pytest.raises(mf.ModelError, match="string 0 must be a string of one character at least"):
        fitted.distance("", "a")
    with pytest.raises(mf.ModelError, match="a lexicon needs a word at least"):
        Lexicon([])
    with pytest.raises(mf.ModelError, match="'a' is twice in the lexicon"):
        Lexicon(["a", "b", "a"])
    with pytest.raises(mf.ModelError, match="above 0 and finite, that of 'b' is 0"):
        Lexicon({"a": 1, "b": 0})
    with pytest.raises(mf.ModelError, match="counts of words must be numbers"):
        Lexicon({"a": "x"})
