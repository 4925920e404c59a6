"""Growing fields: likelihoods rise, moments match, and what was hidden in words is found."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.learning.feature_induction.induction import FeatureInduction
from markovfield.learning.feature_induction.patterns import PRINTABLE, Alphabet
from markovfield.learning.feature_induction.word_field import WordField

WORDS = ["sing", "king", "ring", "sang", "Rang", "song", "gong", "kin", "sin", "gas", "a", "no", "9", "10"] * 3


def grown(**settings: object) -> FeatureInduction:
    return FeatureInduction(**{"n_features": 6, "n_samples": 2000, "l2": 0.01, **settings})


def test_likelihoods_rise_and_moments_match():
    model = grown(l2=0.0, n_features=5, classes={}).fit(WORDS * 5, rng=0)
    likelihoods = np.array(model.log_likelihoods_)
    gains = np.array([feature.gain for feature in model.features_])
    assert (np.diff(likelihoods) >= gains - 1e-6).all() and (gains > 0).all()
    assert likelihoods[-1] == pytest.approx(model.log_likelihood(WORDS).mean())
    observed = [np.mean([_count(f.pattern, w) for w in WORDS]) for f in model.features_]
    np.testing.assert_allclose(model.field_.expectations(), observed, atol=1e-5)


def _count(text: str, word: str) -> int:
    word = f"<{word}>"
    return sum(word.startswith(text, i) for i in range(len(word)))


def test_hidden_patterns_are_found():
    """Words drawn from a field with two patterns: they are among the first three, with their weights."""
    alphabet = Alphabet("abcdefXYZ", {})
    truth = WordField(alphabet, [alphabet.pattern("a"), alphabet.pattern("ab")], [1.5, 2.0], np.full(7, 1 / 7))
    words = truth.sample(20_000, rng=0)
    model = grown(n_features=3, alphabet="abcdefXYZ", classes={}, n_samples=20_000).fit(words, rng=1)
    found = {f.pattern: f.weight for f in model.features_}
    assert {"a", "ab"} <= set(found)
    assert found["a"] == pytest.approx(1.5, abs=0.1) and found["ab"] == pytest.approx(2.0, abs=0.1)


def test_lower_case_comes_first_in_a_large_alphabet():
    model = grown(n_features=1, alphabet=PRINTABLE, strings=0).fit(WORDS, rng=0)
    (first,) = model.features_
    share = np.mean([c.islower() for w in WORDS for c in w])
    assert first.pattern == "[a-z]"
    # Places are independent: e^weight is the ratio of odds.
    assert first.weight == pytest.approx(np.log(share / (1 - share) * 69 / 26), abs=0.01)
    assert first.gain == pytest.approx(np.diff(model.log_likelihoods_)[0], rel=1e-3)


def test_counts_are_repetitions():
    one = grown().fit(["sing", "sang", "sing", "song"], rng=0)
    two = grown().fit(["sing", "sang", "song", "gas"], [2, 1, 1, 0], rng=0, progress=True)
    assert one.features_ == two.features_


def test_a_seed_is_an_answer_and_stages_are_what_was():
    one, two = (grown().fit(WORDS, rng=5) for _ in range(2))
    assert one.features_ == two.features_ and one.sample(9, rng=1) == two.sample(9, rng=1)
    for n in (0, 2, 6):
        assert one.stage(n).log_likelihood(WORDS).mean() == pytest.approx(one.log_likelihoods_[n])
    assert one.stage(2).weights[1] == one.features_[1].first_weight


def test_several_at_a_time_and_a_start():
    model = grown(n_features=7, per_step=3, start=("[a-z]", "[a-z][a-z]")).fit(WORDS, rng=0)
    patterns = [feature.pattern for feature in model.features_]
    assert patterns[:2] == ["[a-z]", "[a-z][a-z]"] and len(patterns) == len(set(patterns)) == 7
    assert all(b >= a - 1e-9 for a, b in zip(model.log_likelihoods_, model.log_likelihoods_[1:], strict=False))


def test_it_ends_where_nothing_gains():
    model = grown(n_features=50, min_gain=0.05).fit(WORDS, rng=0)
    assert len(model.features_) < 50 and "no further pattern gains more than 0.05" in model.message_
    assert "no further pattern" in repr(model)
    short = grown(n_features=50, max_length=1, classes={}).fit(["ab", "aa"], rng=0)
    assert all(len(f.pattern) == 1 for f in short.features_)


def test_patterns_of_too_many_states_are_passed_over():
    model = grown(n_features=30, max_states=3).fit(WORDS, rng=0)
    assert len(model.field_.automaton.following) <= 3 and len(model.features_) > 3


def test_it_stops_with_what_it_has():
    values = []

    def stop(progress) -> bool:
        values.append(progress.value)
        return len(values) > 30

    model = grown(n_features=500).fit(WORDS, rng=0, callback=stop)
    assert model.message_ == "stopped by the callback"
    assert len(model.log_likelihoods_) == len(model.features_) + 1 and np.isfinite(model.log_likelihood(WORDS)).all()


def test_it_shows_what_it_found():
    model = grown().fit(WORDS, rng=0)
    text = repr(model)
    assert "6 features" in text and all(f.pattern in text for f in model.features_)
    assert list(model.to_frame()["pattern"]) == [f.pattern for f in model.features_]
    assert repr(FeatureInduction(3)) == "FeatureInduction(n_features=3)"
    assert max(map(len, repr(grown(n_features=30).fit(WORDS, rng=0)).splitlines())) < 120


@pytest.mark.parametrize(
    ("words", "weights", "settings", "said"),
    [
        ([], None, {}, "at least one word of positive weight"),
        (["a"], [-1.0], {}, "1 finite numbers of at least 0"),
        (["a", "b"], [1.0], {}, "2 finite numbers"),
        (["a", 3], None, {}, "words must be strings, got 3"),
        (["a", "é"], None, {"alphabet": "abc"}, "'é', which is not in the alphabet"),
        (["a"], None, {"n_features": 0}, "n_features of FeatureInduction must be an integer of at least 1, got 0"),
        (["a"], None, {"l2": -1.0}, "l2 of FeatureInduction must be a number of at least 0"),
        (["a"], None, {"start": ("xx",), "alphabet": "ab"}, "'x' is neither a character nor a class"),
    ],
)
def test_what_is_refused(words, weights, settings, said: str):
    with pytest.raises(ModelError, match=said):
        grown(**settings).fit(words, weights)
