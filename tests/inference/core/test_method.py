"""What decoders refuse, and what they are handed: by what they say they take, in one place for all."""

from __future__ import annotations

from typing import Any

import pytest

import markovfield as mf
from markovfield.inference.core.method import check_decodes, taken
from markovfield.inference.core.registry import methods

DECODERS = sorted(methods("decode").items())


def pair() -> mf.MarkovNetwork:
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], log_table=[[1.0, 0.0], [0.0, 2.0]])
    return net


def noisy_or() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({"A": 2, "B": 2})
    net.add_cpt("A", [], [0.5, 0.5])
    net.add_noisy_or("B", ["A"], [0.9])
    return net


@pytest.mark.parametrize(("name", "method"), DECODERS)
def test_decoders_refuse_what_they_do_not_take(name: str, method: type[Any]) -> None:
    chosen, graph = method(), pair().compile()
    check_decodes(chosen, graph, None, 1)
    check_decodes(chosen, graph, [1, 0], 1)
    if "n_best" not in method.abilities:
        with pytest.raises(mf.ModelError, match=f"{name} finds one assignment, not the 2 best: use junction_tree"):
            check_decodes(chosen, graph, None, 2)
    if "marginal_map" not in method.abilities:
        with pytest.raises(mf.ModelError, match=f"{name} decodes all 2 variables, not 1 of them with the others"):
            check_decodes(chosen, graph, [0], 1)
        with pytest.raises(mf.ModelError, match=f"{name} would maximise the contributions of a noisy-max"):
            check_decodes(chosen, noisy_or().compile(), None, 1)


@pytest.mark.parametrize("name", ["subgraph_search", "trws", "graph_cut", "branch_and_bound", "junction_tree"])
def test_all_variables_come_in_the_order_asked_for(name: str) -> None:
    found = mf.decode(pair(), method=name, variables=["B", "A"], rng=0)
    assert list(found.assignment.items()) == [("B", 1), ("A", 1)]
    assert found.states.tolist() == [1, 1] and found.score == 2.0


def test_a_method_is_handed_what_it_takes() -> None:
    given = {"targets": [[0, 1]], "n_best": 3}
    assert taken(mf.methods.JunctionTree(), **given) == given
    assert taken(mf.methods.BeliefPropagation(), **given) == {}
