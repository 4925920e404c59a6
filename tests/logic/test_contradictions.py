"""What contradicts what: errors name the formulas, whoever finds them."""

from __future__ import annotations

import pytest

import markovfield as mf
from tests.data import data_path

CHAIN = "t = {A, B}\nP(t)\nQ(t)\nR(t)\nP(x) => Q(x).\nQ(x) => R(x).\n1 R(x)\n"


@pytest.mark.parametrize("method", ["auto", "junction_tree", "max_walk_sat", "mc_sat", "lazy", "log_partition"])
def test_a_chain_of_formulas(method):
    """The evidence violates neither formula by itself."""
    kb, evidence = mf.MarkovLogic(CHAIN), "P(A) !R(A)"
    message = (
        r"^the hard formulas contradict each other, or the evidence: no world has all of !Q\(A\), of Q\(x\) => R\(x\) "
        r"\(<text>:6:1\); Q\(A\), of P\(x\) => Q\(x\) \(<text>:5:1\)$"
    )
    asked = {
        "lazy": lambda: mf.decode(kb.lazy(evidence, query=["Q"])),
        "log_partition": lambda: mf.log_partition(kb.ground(evidence, query=["Q"])),
        "max_walk_sat": lambda: mf.decode(kb.ground(evidence, query=["Q"]), method=method),
        "junction_tree": lambda: mf.decode(kb.ground(evidence, query=["Q"]), method=method),
    }
    ask = asked.get(method, lambda: mf.marginals(kb.ground(evidence, query=["Q"]), method=method))
    with pytest.raises(mf.ImpossibleEvidenceError, match=message):
        ask()


def test_evidence_of_a_verb_and_determined_arguments():
    world = mf.MarkovLogic(CHAIN).ground()
    with pytest.raises(
        mf.ImpossibleEvidenceError,
        match=r"where P\(A\)=True, R\(A\)=False: no world has all of .*; !P\(A\) v Q\(A\), of P",
    ):
        mf.marginals(world, {"P(A)": True, "R(A)": False})
    assert mf.probability(world, {"R(A)": False}, {"P(A)": True}) == 0.0
    one = mf.MarkovLogic("t = {A}\nu = {C, D}\nS(t, u!)\nP(t)\nP(x) => !S(x, y).\n1 P(x)")
    with pytest.raises(
        mf.ImpossibleEvidenceError, match=r"S\(A,C\) v S\(A,D\), as an argument with ! asks; !S\(A,C\), of P\(x\)"
    ):
        mf.marginals(one.ground("P(A)"))
    two = mf.MarkovLogic("t = {A}\nu = {C, D}\nS(t, u!?)\nS(x, y).\n")
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"!S\(A,C\) v !S\(A,D\), as an argument with ! asks"):
        mf.decode(two.ground())


def test_what_only_a_search_finds_is_said_plainly():
    kb = mf.MarkovLogic("t = {A}\nP(t)\nQ(t)\nP(x) v Q(x).\nP(x) v !Q(x).\n!P(x) v Q(x).\n!P(x) v !Q(x).")
    for ask in (lambda: mf.marginals(kb.ground()), lambda: mf.decode(kb.lazy())):
        with pytest.raises(mf.ImpossibleEvidenceError, match=r"probability zero|the hard formulas contradict"):
            ask()


def test_the_formulas_of_a_program_of_tuffy():
    folder = data_path("mln", "tuffy", "rc1000")
    lazy = mf.logic.read(folder / "prog.mln").lazy(folder / "evidence.db", query=["category"])
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"no world has all of .*prog.mln:8:1"):
        mf.decode(lazy)
