from __future__ import annotations

import pytest

import markovfield as mf
from markovfield.models.generators import generator_text, maximal_sets, read_generators


@pytest.mark.parametrize(
    "notation",
    ["AB/BC", "[AB][BC]", "[A B][B, C]", "A*B + B*C", "~ A:B + B:C", "AB/BC/B", "A*B/BC", [["A", "B"], ["B", "C"]],
     ["AB", ("C", "B"), "A"]],
)  # fmt: skip
def test_notations_of_one_model(notation):
    found = read_generators(notation, "ABC")
    assert {frozenset(g) for g in found} == {frozenset("AB"), frozenset("BC")}


def test_long_names_and_numbers():
    assert read_generators("age*sex/town", ["age", "sex", "town"]) == (("age", "sex"), ("town",))
    assert read_generators("[age sex][town]", ["age", "sex", "town"]) == (("age", "sex"), ("town",))
    assert read_generators([[0, 1], [2]], range(3)) == ((0, 1), (2,))
    assert read_generators("01/2", range(3)) == ((0, 1), (2,))
    assert read_generators([2, [0, 1]], range(3)) == ((2,), (0, 1))


@pytest.mark.parametrize("notation", ["all 2-way", ".^2", "(A + B + C)^2", "(C+A+B)^2 + A"])
def test_all_pairs(notation):
    assert {frozenset(g) for g in read_generators(notation, "ABC")} == set(map(frozenset, ("AB", "AC", "BC")))


@pytest.mark.parametrize(
    ("notation", "message"),
    [
        ("AX/B", "name 'AX', which is neither a variable nor made of their letters"),
        ([["A", "Z"]], "names 'Z', which is not a variable"),
        ("AA/B", "names a variable twice"),
        ("[AB]C", r"written '\[AB\]\[BC\]'"),
        ("all 4-way", "interactions of 4 of 3 variables"),
        ("", "name no variable"),
        (3.5, "a text such as 'AB/BC' or a list of lists, got float"),
    ],
)
def test_errors(notation, message):
    with pytest.raises(mf.ModelError, match=message):
        read_generators(notation, "ABC")


def test_sets_inside_others_are_dropped():
    assert maximal_sets([(1, 2), (2,), (), (2, 1), (3, 1, 2)]) == [(3, 1, 2)]
    assert maximal_sets([()]) == [()]


def test_text():
    assert generator_text(read_generators("BC/A", "ABC")) == "[BC][A]"


def test_network_from_generators():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3, "C": 2}, "AB/BC/B")
    graph = net.compile()
    assert [graph.table(f).shape for f in range(graph.n_factors)] == [(2, 3), (3, 2)]
    assert not graph.log_tables.any()
