"""Where patterns occur, against regular expressions."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.learning.feature_induction.corpus import Corpus
from markovfield.learning.feature_induction.patterns import Alphabet
from tests.learning.feature_induction.enumeration import all_words, count

PATTERNS = ["a", "[a-z]", "ab", "aa", "[a-z][a-z]", "<a", "b>", "<X>", "a[A-Z]b", "<>", "[a-z][A-Z][a-z]>"]


@pytest.mark.parametrize("text", PATTERNS)
def test_counts_are_those_of_a_regular_expression(text: str):
    words = [word for same in all_words("abX", 4) for word in same]
    rng = np.random.default_rng(0)
    weights = rng.uniform(size=len(words))
    corpus = Corpus.of(Alphabet("abXY"), words, weights)
    expected = [count(text, word) for word in words]
    pattern = corpus.alphabet.pattern(text)
    assert corpus.counts(pattern).tolist() == expected
    assert corpus.mean(pattern) == pytest.approx(weights @ expected / weights.sum())


def test_words_that_cannot_be():
    with pytest.raises(ModelError, match="word 'aé' has 'é', which is not in the alphabet"):
        Corpus.of(Alphabet("ab"), ["b", "aé"])
    with pytest.raises(ModelError, match="at least one word"):
        Corpus.of(Alphabet("ab"), [])
