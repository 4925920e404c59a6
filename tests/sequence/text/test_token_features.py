"""Attributes of words, against a reading of each word by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.sequence.text.token_features import TokenFeatures, word_shape
from markovfield.sequence.text.vectoriser import AttributeVectoriser

words = st.sampled_from(["New", "York", "new", "U.S.", "AT&T", "1,000", "co-op", "é", "-", "iPhone", ""])
corpora = st.lists(st.lists(words, max_size=5), min_size=1, max_size=4)


def flags(word: str) -> list[str]:
    found = {
        "title": word[:1].isupper() and word[1:].islower(),
        "upper": word.isupper(),
        "lower": word.islower(),
        "digit": any(c.isdigit() for c in word),
        "number": word.replace(".", "").replace(",", "").isdigit(),
        "hyphen": "-" in word,
        "mixed": any(c.isupper() for c in word[1:]) and any(c.islower() for c in word),
        "punctuation": not any(c.isalnum() for c in word),
    }
    return [f"is={name}" for name, holds in found.items() if holds]


def around(name: str, column: list[str], t: int, window: int, pairs: bool) -> list[str]:
    def at(d):
        return "<s>" if t + d < 0 else "</s>" if t + d >= len(column) else column[t + d]

    order = sorted(range(-window, window + 1), key=lambda d: (abs(d), d))
    found = [f"{name}[{d}]={at(d)}" for d in order]
    if pairs and window:
        found += [f"{name}[{d}..{d + 1}]={at(d)}|{at(d + 1)}" for d in (-1, 0)]
    return found


@given(corpora, st.integers(0, 3), st.integers(0, 4), st.booleans(), st.booleans(), st.booleans())
def test_words_by_themselves(corpus, window, affixes, pairs, with_flags, boundaries):
    features = TokenFeatures(window, affixes, pairs=pairs, shape=False, flags=with_flags, boundaries=boundaries)
    expected = []
    for sequence in corpus:
        lower = [word.lower() for word in sequence]
        rows = []
        for t, word in enumerate(sequence):
            row = [f"w={word}", *around("l", lower, t, window, pairs)]
            for n in range(1, affixes + 1):
                row += [f"p{n}={word[:n]}", f"s{n}={word[-n:]}"] if len(word) > n else []
            row += flags(word) if with_flags else []
            row += ["first"] * (boundaries and t == 0) + ["last"] * (boundaries and t == len(sequence) - 1)
            rows.append(row)
        expected.append(rows)
    assert features.transform(corpus) == expected


def test_shapes_of_neighbours():
    [first, second] = TokenFeatures(0, 0, flags=False, boundaries=False).transform([["McCain", "2008"]])[0]
    assert first == [
        *["w=McCain", "l[0]=mccain", "shape[0]=XxXxxx", "shape[-1]=<s>", "shape[1]=dddd"],
        *["short[0]=XxXx", "short[-1]=<s>", "short[1]=d"],
    ]
    assert "shape[-1]=XxXxxx" in second
    assert word_shape("a-É9") == "x-Xd"


@given(st.lists(st.lists(st.tuples(words, st.sampled_from(["N", "V"])), max_size=4), min_size=1, max_size=3))
def test_other_columns(corpus):
    found = TokenFeatures(1, 0, shape=False, flags=False, boundaries=False).transform(corpus)
    for rows, sequence in zip(found, corpus, strict=True):
        tags = [tag for _, tag in sequence]
        for t, row in enumerate(rows):
            assert row[-5:] == around("1", tags, t, 1, True)
    named = TokenFeatures(0).transform(ColumnCorpus.from_rows([[("a", "N")]], ["word", "pos"]))
    assert "pos[0]=N" in named[0][0]


def test_gazetteers():
    features = TokenFeatures(gazetteers={"places": ["New York", "york", "New York City", "", "  "], "none": []})
    sequences = [["in", "NEW", "York", "city"], ["new", "York"], ["York", "new"], ["new"]]
    found = [[[a for a in row if a.startswith("in=")] for row in rows] for rows in features.transform(sequences)]
    assert found == [
        [[], ["in=places:B"], ["in=places:I"], ["in=places:I"]],
        [["in=places:B"], ["in=places:I"]],
        [["in=places:B"], []],
        [[]],
    ]


def test_gazetteers_from_files(tmp_path):
    path = tmp_path / "places.txt"
    path.write_text("\ufeffNew York\r\nParis\n", encoding="utf-8")
    [row] = TokenFeatures(gazetteers={"g": path}).transform([["paris"]])[0]
    assert "in=g:B" in row
    [row, _] = TokenFeatures(gazetteers={"g": str(path)}).transform([["new", "york"]])[0]
    assert "in=g:B" in row
    path.write_bytes(b"a\n\xff")
    with pytest.raises(FormatError, match=r"places.txt:2:1: this line of gazetteer 'g' is not UTF-8"):
        TokenFeatures(gazetteers={"g": path}).transform([["paris"]])


@given(corpora)
def test_vectorising_is_transforming_then_encoding(corpus):
    features = TokenFeatures(gazetteers={"g": ["new york"]})
    direct, listed = AttributeVectoriser(), AttributeVectoriser()
    data = features.vectorise(corpus, direct, fit=True)
    expected = listed.fit_transform(list(features.transform(corpus)))
    assert set(direct.attributes_) == set(listed.attributes_)
    np.testing.assert_array_equal(data.token_offsets, expected.token_offsets)
    names = np.array([*direct.attributes_, ""]), np.array([*listed.attributes_, ""])
    assert names[0][data.attributes].tolist() == names[1][expected.attributes].tolist()


def test_in_a_pipeline():
    pipeline = make_pipeline(TokenFeatures(window=1), AttributeVectoriser(min_count=1))
    data = pipeline.fit_transform([["New", "York"], ["York"]])
    assert (data.n_sequences, data.n_tokens) == (2, 3)
    assert pipeline.transform([["New"]]).n_tokens == 1
    assert clone(TokenFeatures(affixes=5)).affixes == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": -1}, "window must be an integer from 0 on, got -1"),
        ({"affixes": 1.5}, "affixes must be an integer from 0 on, got 1.5"),
        ({"window": True}, "window must be an integer"),
        ({"gazetteers": ["a"]}, "gazetteers must be a dict of names"),
        ({"gazetteers": {"g": [1]}}, "the entries of gazetteer 'g' must be texts, got 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ModelError, match=message):
        TokenFeatures(**settings).transform([["a"]])


def test_nothing_to_transform():
    assert TokenFeatures().transform([]) == []
    assert TokenFeatures().transform([[]]) == [[]]
    with pytest.raises(ModelError, match="window must be"):
        TokenFeatures(window=-1).fit([])
