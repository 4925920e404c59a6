"""CRFsuite's data files: its grammar, round trips, and what is wrong in a file."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import FormatError, ModelError
from markovfield.io.crfsuite_items import read_crfsuite_items, write_crfsuite_items
from tests.io.damage import damaged, format_error


def read(tmp_path, text: str):
    path = tmp_path / "x.crfsuite"
    path.write_text(text, encoding="utf-8")
    return read_crfsuite_items(path)


def test_grammar(tmp_path):
    items = read(
        tmp_path,
        "# a comment\nB-NP\tw[0]=He\tpos\\:PRP\tback\\\\slash\t# the rest is a comment:1\n"
        "O\ta:2\tb:0.5\ta:-1\tc:\n\n\n@weight:3.5\nO\n\\:X\ta b\r\n",
    )
    assert items.X == [
        [["w[0]=He", "pos:PRP", "back\\slash"], {"a": 1.0, "b": 0.5, "c": 1.0}],
        [[], ["a b"]],
    ]
    assert items.y == [["B-NP", "O"], ["O", ":X"]]
    assert items.weights == [1.0, 3.5]


def test_equal_attributes_are_one_object(tmp_path):
    [[first, second]] = read(tmp_path, "O\tword\nO\tword\n").X
    assert first[0] is second[0]


def test_nothing(tmp_path):
    items = read(tmp_path, "\n\n")
    assert (items.X, items.y, items.weights) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("O\ta:b\n", r"x.crfsuite:1:1: expected a finite number after the colon of 'a:b'; escape others as \\:"),
        ("O\ta\n\nO\tb:nan\n", "x.crfsuite:3:1: expected a finite number"),
        ("O\ta:1_0\n", "expected a finite number"),
        ("O\ta:1:2\n", "expected a finite number"),
        ("@scale:2\nO\ta\n", "1:1: the only declaration is @weight:NUMBER, got '@scale:2'"),
        ("@weight\n", "the only declaration"),
        ("@weight:x\n", "expected a finite number"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, text)


@given(st.data())
def test_damage_gives_format_errors_or_items(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damage") / "x"
    text = "@weight:2\nB-NP\ta\\:b\tc:0.5\t# x\nO\td\n\nO\te:1\n"
    path.write_bytes(data.draw(damaged(text.encode())))
    message = format_error(read_crfsuite_items, path)
    assert message is None or re.match(re.escape(str(path)) + r":\d+:\d+: ", message)


name = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=4)
names = name.filter(lambda text: text[0] not in "#@\ufeff")
tokens = st.one_of(
    st.lists(names, max_size=3),
    st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3),
)


@given(st.lists(st.lists(st.tuples(names, tokens), min_size=1, max_size=3), max_size=3), st.data())
def test_round_trip(tmp_path_factory, sequences, data):
    path = tmp_path_factory.mktemp("items") / "x.gz"
    y = [[label for label, _ in sequence] for sequence in sequences]
    X = [[token for _, token in sequence] for sequence in sequences]
    weights = data.draw(st.lists(st.floats(0.5, 2), min_size=len(X), max_size=len(X)))
    write_crfsuite_items(path, X, y, weights=weights)
    again = read_crfsuite_items(path)
    assert again.y == y
    assert again.weights == weights

    def as_dict(token):
        if isinstance(token, dict):
            return token
        return {n: float(token.count(n)) for n in token}

    assert [list(map(as_dict, sequence)) for sequence in again.X] == [list(map(as_dict, sequence)) for sequence in X]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[["a"]]], [], "there are 1 sequences, labels for 0 and no weights"),
        ([[["a"]]], [["O", "O"]], "sequence 0 has 1 tokens and 2 labels"),
        ([[]], [[]], "sequence 0 has no tokens"),
        ([[["a\tb"]]], [["O"]], "token 0 of sequence 0 has the text .* which CRFsuite's files cannot hold"),
        ([[["#a"]]], [["O"]], "starts with #"),
        ([[["a"]]], [[""]], "cannot hold"),
        ([[["a"]]], [["@O"]], "takes what starts with @ for a declaration"),
        ([[{"a": float("nan")}]], [["O"]], "token 0 of sequence 0 has the value nan"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, y, message):
    path = tmp_path / "x"
    path.write_text("kept")
    with pytest.raises(ModelError, match=message):
        write_crfsuite_items(path, X, y)
    assert path.read_text() == "kept"


def test_weights_must_fit(tmp_path):
    with pytest.raises(ModelError, match="1 sequences, labels for 1 and 2 weights"):
        write_crfsuite_items(tmp_path / "x", [[["a"]]], [["O"]], weights=[1, 2])
