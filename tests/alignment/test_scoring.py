"""The alignment error rate on cases worked by hand, and links of both directions made one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.alignment import GoldLinks, alignment_error_rate, alignment_report, symmetrised
from markovfield.alignment.links import SYMMETRISATIONS


def gold(sure: Any, possible: Any = ()) -> GoldLinks:
    return GoldLinks(frozenset(sure), frozenset(possible))


def test_by_hand() -> None:
    # |A| = 4, |S| = 2, |A and S| = 1, |A and (P or S)| = 3: 1 - (1 + 3) / (4 + 2).
    truth = [gold([(0, 0), (1, 1)], [(2, 2), (2, 3), (0, 1)])]
    found = [[(0, 0), (2, 2), (0, 1), (3, 3)]]
    report = alignment_report(truth, found)
    assert report.error_rate == pytest.approx(1 - 4 / 6)
    assert report.precision == pytest.approx(3 / 4) and report.recall == pytest.approx(1 / 2)
    assert (report.n_found, report.n_sure, report.n_possible) == (4, 2, 5)


def test_sure_links_are_possible_wherever_they_are_listed() -> None:
    sure, possible = [(0, 0), (1, 1), (2, 2)], [(0, 1)]
    found = [[(0, 0), (1, 1), (2, 2)]]
    apart, united = (
        alignment_error_rate([gold(sure, possible)], found),
        alignment_error_rate([gold(sure, [*sure, *possible])], found),
    )
    assert apart == united == 0.0
    # What comes of forgetting it: precision would be zero and the rate a half.
    forgotten = 1 - (3 + 0) / (3 + 3)
    assert forgotten == 0.5 != apart


def test_counts_are_pooled() -> None:
    truth = [gold([(0, 0)]), gold([(k, k) for k in range(9)])]
    found: list[Any] = [[], [(k, k) for k in range(9)]]
    assert alignment_error_rate(truth, found) == pytest.approx(1 - 18 / 19)
    # The mean over pairs would be a half.
    each = [alignment_error_rate(truth[k : k + 1], found[k : k + 1]) for k in (0, 1)]
    assert np.mean(each) == 0.5


@pytest.mark.parametrize(
    ("truth", "found", "rate"),
    [
        ([gold([])], [[]], 0.0),
        ([gold([(0, 0)])], [[]], 1.0),
        ([gold([])], [[(0, 0)]], 1.0),
        ([gold([], [(0, 0)])], [[(0, 0)]], 0.0),
        ([{(0, 0), (1, 1)}], [[(0, 0), (0, 0)]], 1 - 2 / 3),
        ([(frozenset({(0, 0)}), frozenset({(1, 1)}))], [[(0, 0), (1, 1)]], 0.0),
    ],
)
def test_edges(truth: Any, found: Any, rate: float) -> None:
    assert alignment_error_rate(truth, found) == pytest.approx(rate)


def test_what_is_refused() -> None:
    with pytest.raises(mf.ModelError, match="gold links of 1 pairs and found links of 2"):
        alignment_error_rate([[]], [[], []])
    with pytest.raises(mf.ModelError, match=r"the links of pair 1 must be \(source position, target position\), got 3"):
        alignment_error_rate([[], 3], [[], []])


def test_the_report_in_words() -> None:
    report = alignment_report([gold([(0, 0)])], [[(0, 0), (1, 1)]])
    assert str(report).startswith("AER 33.33 %, precision 50.00 %, recall 100.00 %")
    assert report.to_dict()["error_rate"] == report.error_rate


def test_growing_by_hand() -> None:
    forward, backward = [(0, 0), (1, 1), (2, 1), (4, 4)], [(0, 0), (1, 1), (1, 2), (5, 0)]
    expected = {
        "intersection": {(0, 0), (1, 1)},
        "union": {*forward, *backward},
        # (2, 1) and (1, 2) touch (1, 1), and bring a word each; (4, 4) and (5, 0) touch nothing.
        "grow_diag": {(0, 0), (1, 1), (2, 1), (1, 2)},
        # Then words without a link: 4-4 joins two of them, 5-0 only one.
        "grow_diag_final": {(0, 0), (1, 1), (2, 1), (1, 2), (4, 4), (5, 0)},
        "grow_diag_final_and": {(0, 0), (1, 1), (2, 1), (1, 2), (4, 4)},
    }
    for how, links in expected.items():
        assert symmetrised(forward, backward, how) == sorted(links)


@pytest.mark.parametrize("how", SYMMETRISATIONS)
def test_between_intersection_and_union(how: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        one = {(int(i), j) for j, i in enumerate(rng.integers(0, 5, 6)) if rng.random() < 0.8}
        other = {(i, int(j)) for i, j in enumerate(rng.integers(0, 6, 5)) if rng.random() < 0.8}
        found = set(symmetrised(one, other, how))
        assert one & other <= found <= one | other
        turned = {(j, i) for i, j in symmetrised({(j, i) for i, j in one}, {(j, i) for i, j in other}, how)}
        if how in ("intersection", "union"):
            assert turned == found
