"""Which patterns could come next: all of them, each once."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.learning.feature_induction.candidates import Screen
from markovfield.learning.feature_induction.corpus import Corpus
from markovfield.learning.feature_induction.gains import draw_corpus, sampled_gain
from markovfield.learning.feature_induction.patterns import Alphabet
from markovfield.learning.feature_induction.word_field import WordField
from tests.learning.feature_induction.enumeration import all_words, count

ACTIVE = ["[a-z]", "ab"]
ATOMS = ["a", "b", "X", "[a-z]"]


@pytest.mark.parametrize("strings", [0, 2, 3])
def test_the_candidates_are_all_there_are(strings: int):
    alphabet = Alphabet("abX")
    field = WordField(alphabet, [alphabet.pattern(t) for t in ACTIVE], [0.7, -0.5], [0.0, 0.1, 0.2, 0.4, 0.3])
    rng = np.random.default_rng(0)
    words = [w for same in all_words("abX", 4)[1:] for w in rng.choice(same, 30)]
    data, drawn = Corpus.of(alphabet, words), draw_corpus(field, 2000, rng)
    refused = {alphabet.pattern("X").key}
    found = Screen(data, 0.0, 3, strings).best(field.patterns, drawn, refused, 1000)
    beside = {a + p for p in ACTIVE for a in [*ATOMS, "<"]} | {p + a for p in ACTIVE for a in [*ATOMS, ">"]}
    spelled = {f"<{w}>"[i : i + k] for w in words for k in range(2, strings + 1) for i in range(len(w) + 3 - k)}
    expected = {t for t in {*ATOMS, *beside, *spelled} if any(count(t, w) for w in words)} - {"X", *ACTIVE}
    texts = [str(c.pattern) for c in found]
    assert set(texts) == expected and len(texts) == len(expected)
    gains = [c.gain for c in found]
    assert gains == sorted(gains, reverse=True)
    for c in found:
        assert c.observed == pytest.approx(np.mean([count(str(c.pattern), w) for w in words]))
        assert c == sampled_gain(c.pattern, c.observed, drawn)
    assert Screen(data, 100.0, 3, strings).best(field.patterns, drawn, set(), 10) == []


def test_what_is_worth_a_closer_look():
    """Of many, the few with the largest gains are among those that the rough measure keeps."""
    alphabet = Alphabet("abcdeX")
    truth = WordField(
        alphabet, [alphabet.pattern(t) for t in ("ab>", "X", "[a-z]c")], [2.5, -1.0, 0.8], np.full(7, 1 / 7)
    )
    data = Corpus.of(alphabet, truth.sample(5000, rng=0))
    field = WordField(alphabet, (), (), data.length_probabilities)
    drawn = draw_corpus(field, 5000, np.random.default_rng(1))
    screen = Screen(data, 0.0, 4, 3)
    every, few = (screen.best((), drawn, set(), n) for n in (10_000, 10))
    assert [c.pattern for c in few[:3]] == [c.pattern for c in every[:3]]
    assert "ab>" in {str(c.pattern) for c in few}
