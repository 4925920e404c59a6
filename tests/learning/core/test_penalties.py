"""Paths of penalties: where they end, in which order edges come in, and what is said of folds."""

import numpy as np
import pytest

from markovfield.exceptions import MemoryLimitError, StoppedError
from markovfield.learning.core.penalties import entering, halvings, over_folds, penalties_for, what_stopped


def test_the_end_of_the_path():
    assert penalties_for(100.0, 20.0, 5, 0.1)[[0, -1]].tolist() == pytest.approx([100.0, 10.0])
    assert penalties_for(1000.0, 20.0, 5, None)[-1] == pytest.approx(20.0)
    assert penalties_for(1e6, 20.0, 5, None)[-1] == pytest.approx(1e4)
    assert penalties_for(1.0, 20.0, 5, None)[-1] == pytest.approx(0.5)
    assert penalties_for(0.0, 20.0, 5, None).tolist() == [0.0]
    assert penalties_for(3.0, 20.0, 1, None).tolist() == [3.0]


def test_halvings_end_at_the_penalty_that_was_asked_for():
    assert halvings(10.0, 3.0).tolist() == [12.0, 6.0, 3.0]
    assert halvings(1.0, 3.0).tolist() == [3.0]


def test_edges_stand_in_the_order_in_which_they_come_in():
    keys = [np.array([7]), np.array([2, 7]), np.array([0, 2, 9])]
    values = [np.array([1.0]), np.array([2.0, 3.0]), np.array([4.0, 5.0, 6.0])]
    every, table = entering(keys, values)
    assert every.tolist() == [7, 2, 0, 9]
    assert table.tolist() == [[1, 0, 0, 0], [3, 2, 0, 0], [0, 5, 4, 6]]


def test_folds_count_by_their_weight():
    found = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    mean, error = over_folds(found, np.array([1.0, 1.0, 2.0]))
    assert mean.tolist() == [2.0, 0.0]
    assert error.tolist() == pytest.approx([1 / np.sqrt(3), 0.0])


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (None, None),
        (TimeoutError(), "the time limit"),
        (MemoryLimitError("much"), "the memory limit"),
        (StoppedError("enough"), "the callback"),
        (KeyboardInterrupt(), "the keyboard"),
    ],
)
def test_what_stopped_a_path_in_words(stop, said):
    assert what_stopped(stop) == said
