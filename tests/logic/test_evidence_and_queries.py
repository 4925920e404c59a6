"""What queries and evidence mean where predicates are closed, names are quoted, or things are said twice."""

from __future__ import annotations

import math

import pytest

import markovfield as mf

HEAD = "t = {A, B}\nu = {D, E}\nP(t)\nR(t, t)\nS(t, u)\n"


def shown(world):
    return {name for name, asked in zip(world.atoms, world.asked, strict=True) if asked}


def test_queries_name_constants_as_they_are_written():
    kb = mf.MarkovLogic(HEAD + "1 P(x) ^ R(x, y) => P(y)")
    assert shown(kb.ground(query='P("A")')) == {"P(A)"}
    assert shown(kb.ground('t = {"a,b", "x)"}\n', query=['P("a,b")', 'R("x)", A)'])) == {'P("a,b")', 'R("x)",A)'}
    # A variable that stands twice is the same constant; "_" is any.
    assert shown(kb.ground(query="R(x, x)")) == {"R(A,A)", "R(B,B)"}
    assert len(shown(kb.ground(query="R(_, _)"))) == len(shown(kb.ground(query="R(x, y)"))) == 4
    lazy = mf.decode(kb.lazy(query="R(x, x)")).assignment
    assert set(lazy) == {"R(A,A)", "R(B,B)"}
    for query, message in [
        ("P(A", "the query 'P.A' is no predicate and no atom such as Name"),
        ("P(A) more", "the query 'P.A. more' is no predicate and no atom"),
        ("!P(A)", "the query '!P.A.' is no predicate and no atom"),
        ("P()", r"the query 'P\(\)' has 0 arguments"),
        ('P("x")', "names the constant 'x', which there is not among type t"),
        ("S(x, x)", "the variable x of the query 'S.x, x.' is of type t and of type u"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            kb.ground(query=query)


def test_closed_predicates_with_soft_evidence():
    """Only what has a probability, or is said to be unknown, is open; all else stays false."""
    alone = mf.MarkovLogic(HEAD + "1 P(x)")
    world = alone.ground("0.7 P(A)", closed=["P"], query=["P"])
    assert list(world) == ["P(A)"] and world.predicates["P"]
    answer = mf.marginals(world)
    assert answer["P(A)"][1] == pytest.approx(0.7 * math.e / (0.7 * math.e + 0.3))
    assert "P(A)" in alone.ground("?P(A) P(B)", closed=["P"]) and "P(A)" not in alone.ground("P(B)", closed=["P"])
    declared = mf.MarkovLogic(HEAD.replace("P(t)", "*P(t)") + "1 P(x)")
    assert list(declared.ground("0.7 P(A)", query=["P"])) == ["P(A)"]
    lazy = alone.lazy("0.7 P(A)", closed=["P"])
    assert "P(A)" in mf.decode(lazy).assignment and "P(A)" not in mf.decode(lazy, {"P(A)": False}).assignment
    with pytest.raises(mf.ModelError, match="P is closed: its atoms are true in the evidence, or false"):
        mf.decode(lazy, {"P(B)": True})
    large = mf.MarkovLogic("t = {1, ..., 10000}\nP(t, t)\n1 P(x, x)")
    with pytest.raises(mf.MemoryLimitError, match=r"P is closed but for 1 atoms, and has 1e\+08: up to"):
        large.ground("0.5 P(1, 2)", closed=["P"])


def test_a_closed_predicate_may_have_no_value():
    """``!`` says at most one of what the evidence says; exactly one is for what is open."""
    kb = mf.MarkovLogic("t = {A, B}\nu = {D, E}\nS(t, u!)\nP(t)\n1 S(x, y) => P(x)")
    world = kb.ground("S(A, D)", closed=["S"])
    assert mf.marginals(world)["P(B)"][1] == pytest.approx(0.5)
    soft = mf.marginals(kb.ground("0.5 S(A, D)\n0.5 S(A, E)", closed=["S"]))
    assert soft["S(A,D)"][1] == pytest.approx(soft["S(A,E)"][1]) and soft["S(A,D)"][1] < 0.5
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"all atoms like S\(A, [DE]\) are false"):
        kb.ground("!S(A, D) !S(A, E)", closed=[])


def test_what_is_said_twice():
    kb = mf.MarkovLogic(HEAD + "t f(t)\n1 P(f(x))")
    for text, message in [
        ("0.7 P(A)\n0.2 P(A)", r":2:1: P\(A\) has the probabilities 0.7 and 0.2"),
        ("f(A) = B\nf(A) = A", r":2:1: f\(A\) has the values B and A"),
    ]:
        with pytest.raises(mf.FormatError, match=message):
            kb.facts(text)
    assert kb.facts("0.7 P(A)\n0.7 P(A)\nf(A) = B\nf(A) = B").probabilities == {"P": {("A",): 0.7}}
    assert kb.facts({"!P(A)": 0.25}).probabilities == {"P": {("A",): 0.75}}
    for text in ("P(t)", "S(t, u!)", "S(t, u)"):
        with pytest.raises(mf.FormatError, match=r":7:1: [PS] is declared twice"):
            mf.MarkovLogic(HEAD + "1 P(x)\n" + text)


def test_evidence_of_a_verb_makes_no_constants():
    kb = mf.MarkovLogic(HEAD + "1 P(x)")
    for world in (kb.ground(), kb.lazy()):
        with pytest.raises(mf.ModelError, match=r"P\(Zoe\)"):
            mf.decode(world, {"P(Zoe)": True})


def test_a_file_that_several_include_is_read_once(tmp_path):
    (tmp_path / "base.mln").write_text("p = {A}\nSmokes(p)\n1 Smokes(x)\n")
    (tmp_path / "other.mln").write_text('#include "base.mln"\n')
    (tmp_path / "main.mln").write_text('#include "other.mln"\n#include "base.mln"\n2 Smokes(x)\n')
    kb = mf.logic.read(tmp_path / "main.mln")
    assert [rule.weight for rule in kb.rules] == [1.0, 2.0]
    assert "main.mln:2:1: 'base.mln' is included already, and read once" in kb.notes[0]


def test_types_from_equalities_wherever_they_stand():
    """Within quantifiers, by functions, through other equalities; and where a formula falls apart."""
    head = "t = {A, B}\nu = {D}\nP(t)\nQ(t)\nW(u)\nt f(t)\n"
    for text in (
        "1 EXIST x (P(x) ^ x = y)",
        "1 FORALL y (P(y) v y = f(y))",
        "1 a = b ^ b = c ^ c = d ^ P(d)",
        "1 EXIST x (P(x) v x = A)",
        "1 P(x) => (EXIST z (f(x) = z ^ Q(z)))",
    ):
        world = mf.MarkovLogic(head + text).ground("f(A) = B")
        assert mf.marginals(world).guarantee == "exact"
    # x = A holds for one x, whatever P is.
    true = mf.MarkovLogic(head + "1 EXIST x (P(x) v x = A)").ground()
    found = mf.log_partition(true).log_partition + true.log_constant
    named = [name for name in true if not name.startswith("_")]
    assert found == pytest.approx(1.0 + len(named) * math.log(2))
    with pytest.raises(mf.ImpossibleEvidenceError, match="violates the hard formula"):
        mf.MarkovLogic(head + "!(Q(x) v x = y).").ground()
    with pytest.raises(mf.FormatError, match="variable y is of type u and, in x = y, of type t"):
        mf.MarkovLogic(head + "1 W(y) v (EXIST x (P(x) ^ x = y))")
    with pytest.raises(mf.FormatError, match=":7:1: a weight is a finite number; a period behind a formula"):
        mf.MarkovLogic(head + "1e400 P(A)")


def test_functions_below_quantifiers():
    kb = mf.MarkovLogic("t = {A, B}\nP(t)\nR(t, t)\nt f(t)\n1 FORALL x (P(f(x)))\n1 EXIST y R(f(x), y)")
    world = kb.ground("f(A) = B\nf(B) = B", query=["P"])
    assert mf.marginals(world)["P(B)"][1] == pytest.approx(1 / (1 + math.exp(-2.0)))
    with pytest.raises(mf.ModelError, match="a function of a variable of a quantifier"):
        mf.MarkovLogic("t = {A, B}\nP(t)\nt f(t)\n1 EXIST x P(f(x))").ground()
