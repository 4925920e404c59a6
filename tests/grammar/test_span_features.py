"""Features of spans: the fields of every span, and which combinations are kept."""

from __future__ import annotations

import numpy as np

from markovfield.grammar.span_features import TEMPLATES, SpanFeatures, word_class

SENTENCES = [
    (("The", "DT"), ("old", "JJ"), ("man", "NN"), ("ran", "VBD"), (",", ","), ("fast", "RB"), (".", ".")),
    (("Go", "VB"),),
]


def bare() -> SpanFeatures:
    return SpanFeatures(("The", "man"), ("DT", "JJ", "NN", "RB", "VBD", ".", ","))


def test_fields_of_every_span() -> None:
    features = bare()
    spans = features.spans(SENTENCES)
    assert spans.offsets.tolist() == [0, 28, 29]
    tag = {name: x + 2 for x, name in enumerate(features.tags)}
    at = 0
    for sentence in SENTENCES:
        n = len(sentence)
        around = [None, None, *(t for _, t in sentence), None, None]
        # 0 is outside of the sentence, 1 a tag that is not known.
        tags = [0 if t is None else tag.get(t, 1) for t in around]
        for i in range(n):
            for j in range(i, n):
                got = {name: int(values[at]) for name, values in spans.fields.items()}
                assert got["t1"] == tags[i + 2]
                assert got["tn"] == tags[j + 2]
                assert (got["tB"], got["tb"]) == (tags[i], tags[i + 1])
                assert (got["ta"], got["tA"]) == (tags[j + 3], tags[j + 4])
                assert got["t2"] == tags[min(i + 1, j) + 2]
                assert got["tm"] == tags[max(j - 1, i) + 2]
                assert got["whole"] == (i == 0) + 2 * (j == n - 1)
                inside = [t for _, t in sentence[i : j + 1]]
                assert bool(got["inside"] & 1) == ("VBD" in inside)
                assert bool(got["inside"] & 8) == ("," in inside)
                assert (got["all"] < 0) == (j - i + 1 > 5)
                at += 1
    assert spans.fields["w1"][0] == spans.fields["w1"][6] != spans.fields["wn"][6]
    # Words that were not kept stand for how they are written.
    assert spans.fields["w1"][28] == 1 + word_class("Go") == 1 + word_class("Zebra")


def test_short_spans_are_told_apart_by_all_their_tags() -> None:
    spans = bare().spans([SENTENCES[0]])
    short = spans.fields["all"][spans.fields["all"] >= 0]
    # Seven words have 7 + 6 + 5 + 4 + 3 spans of up to five; no two have the same tags.
    assert len(short) == len(set(short.tolist())) == 25


def test_features_that_trees_have_often_are_kept() -> None:
    used = [np.array([0, 2, 6]), np.array([0])]
    features, rows = SpanFeatures.learned(SENTENCES, used, min_count=1, min_word_count=1)
    assert features.words == tuple(sorted({word for sentence in SENTENCES for word, _ in sentence}))
    assert len(rows.rows) == 5
    # Every template names every span of a tree; one has more than five words.
    assert np.diff(rows.rows).tolist() == [len(TEMPLATES), len(TEMPLATES), len(TEMPLATES) - 2, len(TEMPLATES)]
    again = features.rows(features.spans(SENTENCES), np.array([0, 2, 6, 28]))
    assert again.features.tolist() == rows.features.tolist()
    few, _ = SpanFeatures.learned(SENTENCES * 3, used * 3, min_count=3, min_word_count=4)
    assert few.words == ()
    assert 0 < few.n_features < features.n_features
    none, _ = SpanFeatures.learned(SENTENCES, used, min_count=100, min_word_count=1)
    assert none.n_features == 0
    assert none.rows(none.spans(SENTENCES)).features.size == 0
