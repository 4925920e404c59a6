"""Flat sequences and columns of text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.sequence.text.sequences import ColumnCorpus, SequenceData, gather_ranges


@st.composite
def sequence_data(draw):
    """Lists of references of each token of each sequence, and the same as arrays."""
    token = st.lists(st.tuples(st.integers(0, 4), st.floats(-2, 2)), max_size=4)
    nested = draw(st.lists(st.lists(token, max_size=4), min_size=1, max_size=5))
    tokens = [t for sequence in nested for t in sequence]
    references = [r for t in tokens for r in t]
    valued = draw(st.booleans())
    data = SequenceData(
        np.cumsum([0, *map(len, nested)]),
        np.cumsum([0, *map(len, tokens)]),
        np.array([a for a, _ in references], np.int32),
        np.array([v for _, v in references], float) if valued else None,
        5,
    )
    if not valued:
        nested = [[[(a, 1.0) for a, _ in t] for t in sequence] for sequence in nested]
    return nested, data


def nested_lists(data: SequenceData) -> list:
    values = np.ones(len(data.attributes)) if data.values is None else data.values
    tokens = []
    for t in range(data.n_tokens):
        a, b = data.token_offsets[t : t + 2]
        tokens.append(list(zip(data.attributes[a:b].tolist(), values[a:b].tolist(), strict=True)))
    return [tokens[a:b] for a, b in zip(data.sequence_offsets[:-1], data.sequence_offsets[1:], strict=True)]


@given(sequence_data(), st.data())
def test_selection_is_that_of_lists(drawn, data):
    nested, sequences = drawn
    chosen = data.draw(st.lists(st.integers(0, len(nested) - 1), max_size=7))
    assert nested_lists(sequences.select(chosen)) == [nested[i] for i in chosen]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(nested), max_size=len(nested))))
    assert nested_lists(sequences.select(mask)) == [n for n, keep in zip(nested, mask, strict=True) if keep]
    assert sequences.lengths.tolist() == [len(n) for n in nested]


@given(sequence_data())
def test_csr_adds_repeated_references(drawn):
    nested, data = drawn
    expected = np.zeros((data.n_tokens, 5))
    for t, token in enumerate(t for sequence in nested for t in sequence):
        for attribute, value in token:
            expected[t, attribute] += value
    np.testing.assert_allclose(data.to_csr().toarray(), expected, atol=1e-12)


def test_selection_refuses_what_is_not_there():
    data = SequenceData(np.array([0, 1]), np.array([0, 0]), np.zeros(0, np.int32), None, 0)
    with pytest.raises(ModelError, match="from 0 to 0, got 1 to 1"):
        data.select([1])
    with pytest.raises(ModelError, match="a mask needs 1 entries"):
        data.select(np.array([True, False]))
    assert "n_sequences=1" in repr(data)


def test_ranges():
    assert gather_ranges(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]
    assert gather_ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


ROWS = [[("He", "PRP"), ("ran", "VBD")], [], [("He", "PRP")]]


def test_columns_and_rows():
    corpus = ColumnCorpus.from_rows(ROWS, ["word", "tag"])
    assert list(corpus) == ROWS
    assert corpus[-1] == ROWS[-1]
    assert corpus["word"] == [["He", "ran"], [], ["He"]]
    assert corpus.column(-1) == corpus["tag"]
    assert corpus.drop("word").names == ("tag",)
    assert corpus.keep("tag", 0)[0] == [("PRP", "He"), ("VBD", "ran")]
    longer = corpus.with_column("guess", [["a", "b"], [], ["c"]])
    assert longer[2] == [("He", "PRP", "c")]
    assert (len(corpus), corpus.n_tokens) == (3, 3)
    assert "n_tokens=3" in repr(corpus)


def test_words_alone_are_a_column():
    assert ColumnCorpus.from_rows([["He", "ran"]])[0] == [("He",), ("ran",)]
    assert ColumnCorpus.from_rows([], ["word"])["word"] == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ColumnCorpus.from_rows([[("a", "b")], [("a", "b"), ("c",)]]), "token 1 of sequence 1 has 1 columns"),
        (lambda: ColumnCorpus.from_rows(["words"]), "list of tokens, got the text 'words'"),
        (lambda: ColumnCorpus.from_rows([[("a", 1)]]), "column '1' must hold texts, got 1 of type int"),
        (lambda: ColumnCorpus.from_rows(ROWS, ["x", "x"]), "as many different names"),
        (lambda: ColumnCorpus.from_rows(ROWS)["word"], "no column 'word'; the columns are '0', '1'"),
        (lambda: ColumnCorpus.from_rows(ROWS).column(2), "no column 2; there are 2"),
        (lambda: ColumnCorpus.from_rows(ROWS).with_column("g", [["a"], [], ["b"]]), "a text for each token"),
        (lambda: ColumnCorpus.from_rows(ROWS).with_column("0", [["a", "a"], [], ["b"]]), "a column '0' already"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ModelError, match=message):
        call()


def test_no_such_sequence():
    with pytest.raises(IndexError, match="no sequence 3"):
        ColumnCorpus.from_rows(ROWS)[3]
