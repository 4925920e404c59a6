"""Gains of candidates against a search over weights with every word listed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from markovfield.learning.feature_induction.gains import Candidate, draw_corpus, exact_gain, sampled_gain
from markovfield.learning.feature_induction.patterns import Alphabet
from markovfield.learning.feature_induction.word_field import WordField
from tests.learning.feature_induction.enumeration import all_words, log_partitions

WORDS = all_words("abX", 4)
LENGTHS = np.array([0.0, 0.1, 0.2, 0.4, 0.3])
ACTIVE, HELD = ["[a-z]", "ab"], np.array([0.7, -0.5])


def field() -> WordField:
    alphabet = Alphabet("abX")
    return WordField(alphabet, [alphabet.pattern(t) for t in ACTIVE], HELD, LENGTHS)


def by_search(text: str, observed: float) -> tuple[float, float]:
    base = LENGTHS @ log_partitions(WORDS, ACTIVE, HELD)

    def loss(a: float) -> float:
        return float(LENGTHS @ log_partitions(WORDS, [*ACTIVE, text], np.append(HELD, a)) - base - a * observed)

    found = minimize_scalar(loss, bounds=(-15, 15), method="bounded", options={"xatol": 1e-9})
    return float(found.x), -float(found.fun)


@pytest.mark.parametrize(
    ("text", "observed"), [("b", 0.4), ("X>", 0.6), ("<ab", 0.02), ("[a-z][a-z]", 1.6), ("aXb>", 1e-3)]
)
def test_gains_are_what_a_search_finds(text: str, observed: float):
    f = field()
    weight, gain = by_search(text, observed)
    pattern = f.alphabet.pattern(text)
    exact, grown = exact_gain(f, Candidate(pattern, observed, 0.0, 0.0, 0.0))
    assert exact.gain == pytest.approx(gain, rel=1e-4, abs=1e-6) and exact.weight == pytest.approx(weight, abs=0.02)
    assert exact.error == 0 and grown.weights[:-1].tolist() == HELD.tolist()
    for seed in range(3):
        rough = sampled_gain(pattern, observed, draw_corpus(f, 20_000, np.random.default_rng(seed)))
        assert abs(rough.gain - gain) < 5 * rough.error + 1e-4
        assert 0 < rough.error < 0.1


def test_a_pattern_that_was_never_drawn_has_a_finite_gain():
    f = field()
    drawn = draw_corpus(f, 5, np.random.default_rng(0))
    found = sampled_gain(f.alphabet.pattern("<XXXX>"), 0.01, drawn)
    assert np.isfinite(found.gain) and found.gain > 0
