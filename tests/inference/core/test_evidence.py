"""Reading evidence: states, likelihoods, batches, and the sentences that say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence, rows


@pytest.fixture
def structure() -> Structure:
    variables = {"A": ["low", "high"], "B": 3, "C": 2, 7: [10, 20, 30], "T": [(0, 1), (1, 0)]}
    return mf.MarkovNetwork(variables).compile().structure


@pytest.mark.parametrize("empty", [None, {}])
def test_nothing_is_one_shared_object(structure, empty):
    evidence = Evidence.parse(structure, empty)
    assert evidence is Evidence.parse(structure, None)
    assert not evidence
    assert evidence.states.tolist() == [-1] * 5
    assert evidence.describe(structure) == "no evidence"


def test_states_by_name_and_by_index(structure):
    given = {"A": "high", "B": 2, "C": np.int64(1), 7: 20, "T": (1, 0)}
    evidence = Evidence.parse(structure, given)
    assert evidence
    assert evidence.states.tolist() == [1, 2, 1, 1, 1]
    assert evidence.states.dtype == np.int32
    assert not evidence.states.flags.writeable
    assert evidence.likelihoods == ()
    assert Evidence.parse(structure, {"A": 1, "B": np.array(2), "C": True}).states.tolist() == [
        1,
        2,
        1,
        -1,
        -1,
    ]
    assert Evidence.parse(structure, evidence) is evidence


@pytest.mark.parametrize("likelihood", [[1, 0, 3], (1.0, 0.0, 3.0), np.array([1, 0, 3]), np.float32([1, 0, 3])])
def test_likelihoods(structure, likelihood):
    evidence = Evidence.parse(structure, {"C": 0, "B": likelihood})
    assert evidence
    assert evidence.states.tolist() == [-1, -1, 0, -1, -1]
    ((position, log_likelihood),) = evidence.likelihoods
    assert position == 1
    assert log_likelihood.dtype == np.float64
    assert log_likelihood.tolist() == [0.0, -np.inf, np.log(3.0)]
    assert not log_likelihood.flags.writeable


def test_describe(structure):
    evidence = Evidence.parse(structure, {"B": 1, "A": "low", "C": [0.25, 0.5]})
    assert evidence.describe(structure) == "A='low', B=1, C~[0.25, 0.5]"
    assert evidence.describe(structure, limit=1) == "A='low', ... (2 more)"
    many = mf.MarkovNetwork(dict.fromkeys(range(20), 2)).compile().structure
    shown = Evidence.parse(many, dict.fromkeys(range(20), 0)).describe(many)
    assert shown == ", ".join(f"{i}=0" for i in range(8)) + ", ... (12 more)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Z": 0}, "there is no variable 'Z'"),
        ({"A": "mid"}, "variable 'A' has no state 'mid'; its states are 'low', 'high'"),
        ({"B": 3}, "state index 3 of variable 'B' is outside 0 to 2"),
        ({"B": -1}, "state index -1 of variable 'B'"),
        ({7: 0}, "variable 7 has no state 0"),
        ({"B": None}, "variable 'B' has no state None"),
        (
            {"B": [1.0, 2.0]},
            r"likelihood of variable 'B' needs one number for each of its 3 states, got shape \(2,\)",
        ),
        ({"B": [[1.0, 2.0, 3.0]]}, r"likelihood of variable 'B' .* got shape \(1, 3\)"),
        ({"B": [1.0, -2.0, 0.0]}, "likelihood of variable 'B' must be finite and not negative"),
        ({"B": [1.0, np.nan, 0.0]}, "likelihood of variable 'B' must be finite"),
        ({"B": [1.0, np.inf, 0.0]}, "likelihood of variable 'B' must be finite"),
        ({"B": [0, 0, 0]}, "likelihood of variable 'B' is zero in every state"),
        ({"B": ["x", "y", "z"]}, "likelihood of variable 'B' must be 3 numbers"),
        ({"B": [[1], [2, 3], 4]}, "likelihood of variable 'B' must be 3 numbers"),
        ([("A", 0)], "evidence must be a dict from variable to state, got list"),
        ([], "evidence must be a dict from variable to state, got list"),
    ],
)
def test_errors_name_the_variable(structure, given, message):
    with pytest.raises(ModelError, match=message):
        Evidence.parse(structure, given)


def test_evidence_of_another_model(structure):
    other = mf.MarkovNetwork({"A": 2}).compile().structure
    with pytest.raises(ModelError, match="speaks of 1 variables, the model has 5"):
        Evidence.parse(structure, Evidence.parse(other, {"A": 1}))


def test_rows(structure):
    given = np.array([[0, 1, -1, 2, 0], [1, 2, 1, -1, -1]])
    batch = rows(structure, given)
    assert batch.dtype == np.int32 and batch.flags.c_contiguous and not batch.flags.writeable
    assert np.array_equal(batch, given)
    assert given.flags.writeable
    same = np.asfortranarray(given.astype(np.int32))
    assert rows(structure, same).flags.c_contiguous and same.flags.writeable
    ours = given.astype(np.int32)
    assert not rows(structure, ours).flags.writeable and ours.flags.writeable
    assert rows(structure, given.astype(bool)).max() == 1
    assert rows(structure, np.zeros((0, 5))).shape == (0, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, 0, 0, 0, 0], r"evidence rows need shape \(rows, 5\), got \(5,\)"),
        (np.zeros((2, 4), int), r"evidence rows need shape \(rows, 5\), got \(2, 4\)"),
        ([[0] * 5, [0] * 4], "rows of different lengths"),
        (np.zeros((2, 5)), "evidence rows must be integers, -1 for missing, got dtype float64"),
        ([[0] * 5, [0, 3, 0, 0, 0]], "row 1 has state 3 for variable 'B', expected -1 to 2"),
        ([[0] * 5, [0, 0, 0, 0, -2]], "row 1 has state -2 for variable 'T', expected -1 to 1"),
        (np.full((1, 5), 2**40), f"row 0 has state {2**40} for variable 'A'"),
    ],
)
def test_row_errors(structure, given, message):
    with pytest.raises(ModelError, match=message):
        rows(structure, given)
