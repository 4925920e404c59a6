"""Labels: numbers, schemes and transitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.sequence.text.labels import (
    LabelEncoder,
    allowed_transitions,
    iob1_to_iob2,
    iob_to_iobes,
    iobes_to_iob,
    spans,
)

PREFIXES = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}


@st.composite
def chunked(draw):
    """Non-overlapping chunks and the length of the sequence."""
    found, at = [], draw(st.integers(0, 2))
    for _ in range(draw(st.integers(0, 4))):
        end = at + draw(st.integers(1, 3))
        found.append((draw(st.sampled_from(["A", "B-c"])), at, end))
        at = end + draw(st.integers(0, 1))
    return found, at + draw(st.integers(0, 2))


def written(found, length: int, scheme: str) -> list[str]:
    """Chunks in a scheme, by its definition."""
    labels = ["O"] * length
    for i, (kind, start, end) in enumerate(found):
        for t in range(start, end):
            if scheme == "iob1":
                touching = i > 0 and found[i - 1][2] == start and found[i - 1][0] == kind
                prefix = "B" if t == start and touching else "I"
            elif scheme == "iob2":
                prefix = "B" if t == start else "I"
            else:
                last, only = ("E", "S") if scheme == "iobes" else ("L", "U")
                prefix = only if end - start == 1 else "B" if t == start else last if t == end - 1 else "I"
            labels[t] = f"{prefix}-{kind}"
    return labels


@given(chunked())
def test_every_scheme_says_the_same(drawn):
    found, length = drawn
    for scheme in PREFIXES:
        labels = written(found, length, scheme)
        assert spans(labels, scheme) == found
        if scheme != "bilou":
            assert spans(labels) == found
            assert iob1_to_iob2(labels) == written(found, length, "iob2")
            assert iob_to_iobes(labels) == written(found, length, "iobes")
            assert iobes_to_iob(labels) == written(found, length, "iob2")
            assert iobes_to_iob(labels, scheme="iob1") == written(found, length, "iob1")


@pytest.mark.parametrize("scheme", PREFIXES)
def test_transitions_are_those_of_some_chunking(scheme):
    # All chunkings of four tokens, written out: a step is allowed if and only if some of them takes it.
    labels = ["O", *[f"{p}-{kind}" for p in PREFIXES[scheme] for kind in "XY"]]
    allowed, first, last = allowed_transitions(labels, scheme)
    index = {label: k for k, label in enumerate(labels)}
    seen = np.zeros_like(allowed), np.zeros_like(first), np.zeros_like(last)
    for kinds in itertools.product(["", "X", "Y"], repeat=4):
        for joins in itertools.product([False, True], repeat=3):
            found: list = []
            for t, kind in enumerate(kinds):
                if not kind:
                    continue
                if t and joins[t - 1] and kinds[t - 1] == kind:
                    found[-1] = (kind, found[-1][1], t + 1)
                else:
                    found.append((kind, t, t + 1))
            codes = [index[label] for label in written(found, 4, scheme)]
            seen[0][codes[:-1], codes[1:]] = True
            seen[1][codes[0]] = seen[2][codes[-1]] = True
    np.testing.assert_array_equal(allowed, seen[0])
    np.testing.assert_array_equal(first, seen[1])
    np.testing.assert_array_equal(last, seen[2])


def test_names_of_schemes():
    assert spans(["B-A", "E-A"], "BIOES") == [("A", 0, 2)]
    np.testing.assert_array_equal(allowed_transitions(["O", "I-A"], "bio")[1], [True, False])
    with pytest.raises(ModelError, match="scheme must be one of 'iob1', 'iob2', 'iobes', 'bilou', got 'io'"):
        spans(["O"], "io")


def test_untyped_chunks():
    assert spans(["B", "I", "O", "I"]) == [("", 0, 2), ("", 3, 4)]
    assert iob_to_iobes(["B", "I", "O", "I"]) == ["B", "E", "O", "S"]


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["O", "I-A"], "iob2", "in scheme 'iob2', 'I-A' may not follow 'O' as it does at token 1"),
        (["B-A"], "iob1", "'B-A' may not follow 'the start' as it does at token 0"),
        (["B-A", "I-A"], "iobes", "'the end' may not follow 'I-A' as it does at token 2"),
        (["B-A", "I-B"], "iob2", "'I-B' may not follow 'B-A'"),
        (["E-A"], "iob2", "the label 'E-A' is none of scheme 'iob2', whose prefixes are B, I, O"),
        (["NP"], "iob2", "the label 'NP' is none"),
        ([""], "iob2", "the label '' is none"),
        (["O-A"], "iob2", "the label 'O-A' is none"),
        ([3], "iob2", "the label 3 is none"),
    ],
)
def test_labels_that_break_a_scheme(labels, scheme, message):
    with pytest.raises(ModelError, match=message):
        spans(labels, scheme)


def test_only_iob_can_be_asked_for():
    with pytest.raises(ModelError, match="must be 'iob1' or 'iob2', got 'iobes'"):
        iobes_to_iob(["O"], scheme="iobes")


@given(st.lists(st.lists(st.sampled_from(["b", "a", None, "c"]), max_size=4), max_size=4))
def test_encoder_round_trip(y):
    encoder = LabelEncoder()
    codes = encoder.fit_transform(y, missing=True)
    assert encoder.classes_ == sorted({label for labels in y for label in labels} - {None})
    assert codes.dtype == np.int32
    offsets = np.cumsum([0, *map(len, y)])
    assert encoder.inverse_transform(codes, offsets) == y


def test_encoder_of_numbers():
    encoder = LabelEncoder().fit([np.array([3, 1]), np.array([1])])
    assert encoder.classes_ == [1, 3]
    assert encoder.transform([np.array([3, 3])], lengths=[2]).tolist() == [1, 1]
    assert encoder.transform(iter([iter([1])])).tolist() == [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.transform([["a"], ["b", "z"]]), "token 1 of sequence 1 has the label 'z', none of the 2 that are"),
        (lambda e: e.transform([[None]]), "has the label None"),
        (lambda e: e.transform([[["a"]]]), r"has the label \['a'\]"),
        (lambda e: e.transform([["a"]], lengths=[1, 1]), "there are 2 sequences and labels for 1"),
        (lambda e: e.transform([["a"], ["a"]], lengths=[1, 2]), "sequence 1 has 2 tokens and 1 labels"),
        (lambda e: e.fit(["abc"]), "the labels of sequence 0 must be a list, one for each token, got 'abc'"),
        (lambda e: e.fit([3]), "must be a list, one for each token, got 3"),
        (lambda e: e.fit([["a", 1]]), "types that can be sorted together, got int, str"),
    ],
)
def test_encoder_errors(call, message):
    with pytest.raises(ModelError, match=message):
        call(LabelEncoder().fit([["a", "b"]]))
