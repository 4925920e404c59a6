"""The automaton sees what is there, and tells no characters apart that patterns do not."""

from __future__ import annotations

import numpy as np

from markovfield.learning.feature_induction.automaton import automaton_of
from markovfield.learning.feature_induction.patterns import PRINTABLE, Alphabet
from tests.learning.feature_induction.enumeration import all_words, count


def test_every_occurrence_is_seen_once():
    alphabet = Alphabet("abX")
    texts = ["a", "aa", "aba", "[a-z]X", "<a", "<aa>", "X>", "<>"]
    a = automaton_of(alphabet, [alphabet.pattern(t) for t in texts], 100)
    column = {int(c): k for k, members in enumerate(a.members) for c in members}
    for word in (word for same in all_words("abX", 4) for word in same):
        state, found = 0, np.zeros(len(texts), int)
        for c in word:
            k = column[alphabet.code[c]]
            found[list(a.sets[a.seen[state, k]])] += 1
            state = a.following[state, k]
        found[list(a.sets[a.seen_at_end[state]])] += 1
        assert found.tolist() == [count(t, word) for t in texts]


def test_characters_share_columns_until_a_pattern_tells_them_apart():
    alphabet = Alphabet(PRINTABLE)

    def shape(*texts: str) -> tuple[int, int]:
        return automaton_of(alphabet, [alphabet.pattern(t) for t in texts], 100).following.shape

    assert shape() == (1, 1)
    assert shape("[a-z]") == (1, 2)
    assert shape("[a-z]", "[a-z][a-z]") == (2, 2)
    assert shape("[a-z]", "ing>") == (4, 5)
