"""Fields over words against listing every word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.learning.feature_induction.patterns import PRINTABLE, Alphabet
from markovfield.learning.feature_induction.word_field import WordField
from tests.learning.feature_induction.enumeration import all_words, expectations, log_partitions, scores

CHARACTERS = "abX-"
LONGEST = 4
WORDS = all_words(CHARACTERS, LONGEST)
CLASSES = {"[a-z]": "ab", "[any]": "aX-"}
middles = st.lists(st.sampled_from([*CHARACTERS, "[a-z]"]), min_size=1, max_size=3).map("".join)
patterns = st.builds(lambda a, b, c: a + b + c, st.sampled_from(["", "<"]), middles, st.sampled_from(["", ">"]))


def drawn(texts: list[str], seed: int) -> tuple[WordField, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    alphabet = Alphabet(CHARACTERS, CLASSES)
    weights, lengths = rng.normal(size=len(texts)) * 1.5, rng.dirichlet(np.ones(LONGEST + 1))
    return WordField(alphabet, [alphabet.pattern(t) for t in texts], weights, lengths), weights, lengths


@settings(max_examples=40, deadline=None)
@given(st.lists(patterns, max_size=6), st.integers(0, 1000))
def test_everything_is_that_of_the_list(texts: list[str], seed: int):
    field, weights, lengths = drawn(texts, seed)
    logs = log_partitions(WORDS, texts, weights)
    np.testing.assert_allclose(field.log_partitions, logs, rtol=1e-10, atol=1e-12)
    assert field.mean_log_partition == pytest.approx(lengths @ logs)
    np.testing.assert_allclose(field.expectations(), expectations(WORDS, texts, weights, lengths), rtol=1e-9)
    for n in (0, 2, 3):
        expected = np.log(lengths[n]) + scores(WORDS[n], texts, weights) - logs[n]
        np.testing.assert_allclose(field.log_likelihood(WORDS[n]), expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.lists(patterns, min_size=1, max_size=6), st.integers(0, 1000))
def test_expectations_are_the_gradient(texts: list[str], seed: int):
    field, weights, _ = drawn(texts, seed)
    h = 1e-6
    slopes = [
        (
            field.with_weights(weights + h * e).mean_log_partition
            - field.with_weights(weights - h * e).mean_log_partition
        )
        / (2 * h)
        for e in np.eye(len(texts))
    ]
    np.testing.assert_allclose(field.expectations(), slopes, atol=1e-7)


def test_words_are_drawn_with_their_probabilities():
    field, _, _ = drawn(["[a-z]", "ab", "<X", "b>", "aXa"], 3)
    n = 200_000
    words = field.sample(n, rng=0)
    every = [word for same in WORDS for word in same]
    probability = np.exp(field.log_likelihood(every))
    assert probability.sum() == pytest.approx(1.0)
    at = {word: i for i, word in enumerate(every)}
    found = np.bincount([at[word] for word in words], minlength=len(every))
    chi2 = float(np.sum((found - n * probability) ** 2 / (n * probability)))
    degrees = len(every) - 1
    assert abs(chi2 - degrees) < 6 * np.sqrt(2 * degrees)
    assert field.sample(20, rng=1) == field.sample(20, rng=1)


def test_long_words_and_large_weights_stay_finite():
    alphabet = Alphabet(PRINTABLE)
    lengths = np.full(401, 1 / 401)
    field = WordField(alphabet, [alphabet.pattern("[a-z]"), alphabet.pattern("ab")], [12.0, -30.0], lengths)
    assert np.isfinite(field.log_partitions).all() and np.isfinite(field.expectations()).all()
    # Without the second pattern places are independent.
    alone = WordField(alphabet, [alphabet.pattern("[a-z]")], [12.0], lengths)
    share = 26 * np.exp(12.0) / (26 * np.exp(12.0) + 69)
    assert alone.expectations()[0] == pytest.approx(200 * share)
    np.testing.assert_allclose(alone.log_partitions, np.arange(401) * np.log(26 * np.exp(12.0) + 69))


def test_no_pattern_is_the_uniform_distribution():
    field = WordField(Alphabet("abc"), (), (), [0.0, 0.5, 0.5])
    np.testing.assert_allclose(field.log_likelihood(["a", "bc"]), np.log([0.5 / 3, 0.5 / 9]))
    assert field.log_likelihood(["", "abc"]).tolist() == [-np.inf, -np.inf]
    assert field.expectations().shape == (0,)


def test_what_is_refused():
    alphabet = Alphabet("abc")
    with pytest.raises(ModelError, match="weights of WordField must be 1 finite numbers"):
        WordField(alphabet, [alphabet.pattern("a")], [np.nan])
    with pytest.raises(ModelError, match="length_probabilities of WordField"):
        WordField(alphabet, (), (), [0.5, 0.2])
    with pytest.raises(MemoryLimitError, match="the automaton of 1 patterns would have more than 2 states"):
        WordField(alphabet, [alphabet.pattern("abcabc")], [1.0], max_states=2)
    with pytest.raises(ModelError, match="n must be an integer of at least 0, got -1"):
        WordField(alphabet).sample(-1)
