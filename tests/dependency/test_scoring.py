"""Attachment scores against counts by hand."""

from __future__ import annotations

import pytest

import markovfield as mf
from markovfield.dependency import dependency_report

X = [
    [("He", "PRP"), ("saw", "VBD"), ("her", "PRP"), (".", ".")],
    [("Go", "VB"), ("!", ".")],
]
GOLD = [[(2, "s"), (0, "r"), (2, "o"), (2, "p")], [(0, "r"), (1, "p")]]


def test_by_hand() -> None:
    found = [[(2, "s"), (0, "r"), (2, "s"), (3, "p")], [(2, "r"), (0, "p")]]
    report = dependency_report(X, GOLD, found)
    assert (report.n_sentences, report.n_words, report.n_punctuation) == (2, 6, 2)
    assert report.uas == 3 / 6
    assert report.las == 2 / 6
    assert report.uas_without_punctuation == 3 / 4
    assert report.las_without_punctuation == 2 / 4
    assert (report.root_accuracy, report.complete_match, report.n_failed) == (0.5, 0.0, 0)
    every = dependency_report(X, GOLD, found, punctuation=())
    assert every.uas == every.uas_without_punctuation
    assert "without punctuation   75.00  50.00" in str(report)


def test_without_labels_or_parse() -> None:
    heads = [[h for h, _ in tree] for tree in GOLD]
    report = dependency_report(X, GOLD, heads)
    assert (report.uas, report.las, report.complete_match) == (1.0, None, 1.0)
    report = dependency_report(X, heads, [None, heads[1]])
    assert (report.n_failed, report.uas, report.root_accuracy) == (1, 2 / 6, 0.5)
    assert "    -" in str(report)
    # The empty list of sentences has nothing right.
    assert dependency_report([], [], []).uas == 0.0


def test_what_is_refused() -> None:
    with pytest.raises(mf.ModelError, match="2 sentences, 2 gold trees and 1 predicted ones"):
        dependency_report(X, GOLD, GOLD[:1])
    with pytest.raises(mf.ModelError, match="sentence 1 has 2 words, 2 gold heads and 3 predicted"):
        dependency_report(X, GOLD, [GOLD[0], [(0, "r"), (1, "p"), (1, "p")]])
