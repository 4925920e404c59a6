"""Alphabets and patterns."""

from __future__ import annotations

import pytest

from markovfield.exceptions import ModelError
from markovfield.learning.feature_induction.patterns import PRINTABLE, Alphabet


@pytest.mark.parametrize("text", ["ing>", "<[A-Z]", "[a-z][a-z]", "<the>", r"\<\>", r"a\\b", "<>", "[0-9][punct]"])
def test_text_and_back(text: str):
    pattern = Alphabet(PRINTABLE).pattern(text)
    assert str(pattern) == text
    assert Alphabet(PRINTABLE).pattern(str(pattern)).key == pattern.key


def test_a_begin_and_a_smaller_than_are_not_the_same():
    alphabet = Alphabet("a<")
    assert alphabet.pattern("<a").key != alphabet.pattern(r"\<a").key


def test_classes_of_one_character_or_of_all_are_no_atoms():
    names = {atom.name for atom in Alphabet("abcX", {"[abc]": "abc", "[one]": "X?", "[all]": "abcX"}).atoms}
    assert "[abc]" in names and "[one]" not in names and "[all]" not in names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a<", "< may only stand first"),
        (">a", "> only last"),
        ("", "is in every word"),
        ("<", "is in every word"),
        ("[q", r"'\[q' is neither a character nor a class"),
        ("[A-Z]", r"'\[A-Z\]' is neither a character nor a class"),
        ("é", "'é' is neither"),
    ],
)
def test_patterns_that_are_none(text: str, said: str):
    with pytest.raises(ModelError, match=said):
        Alphabet("abcd").pattern(text)


def test_alphabets_that_are_none():
    with pytest.raises(ModelError, match="at least one character, and each once"):
        Alphabet("aba")
    with pytest.raises(ModelError, match="stands in square brackets, got 'vowel'"):
        Alphabet("ab", {"vowel": "a"})
