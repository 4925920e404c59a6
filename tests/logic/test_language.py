"""Programs and databases as text: dialects, templates, scopes, errors with their places."""

from __future__ import annotations

from itertools import pairwise

import pytest

import markovfield as mf
from markovfield.logic.language.program import Rule
from markovfield.logic.language.reader import read_program
from tests.data import data_path

HEAD = "p = {A, B}\nSmokes(p)\nFriends(p, p)\nCancer(p)\n"


def rules(text, head=HEAD):
    return [str(rule) for rule in read_program(head + text).rules]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1.5 Smokes(x) => Cancer(x)", "1.5  Smokes(x) => Cancer(x)"),
        ("-2 !Smokes(x) v Cancer(x)", "-2.0  !Smokes(x) v Cancer(x)"),
        ("Smokes(x) ^ Friends(x,y) => Smokes(y).", "(Smokes(x) ^ Friends(x, y)) => Smokes(y)."),
        ("log(4)/2 Smokes(x)", f"{0.5 * 1.3862943611198906!r}  Smokes(x)"),
        ("logx(0) Smokes(x)", "-100.0  Smokes(x)"),
        ("2*(1+0.5) (Smokes(x) v Cancer(x))", "3.0  Smokes(x) v Cancer(x)"),
        ("1 Smokes(x), Friends(x, y) => Smokes(y)", "1.0  (Smokes(x) ^ Friends(x, y)) => Smokes(y)"),
        ("1 Smokes(x) :- Friends(x, y) ^ Smokes(y)", "1.0  (Friends(x, y) ^ Smokes(y)) => Smokes(x)"),
        ("1 x = y v Friends(x, y) v x != A", "1.0  (x = y) v Friends(x, y) v (x != A)"),
        ("1 x =/= y v Friends(x, y)", "1.0  (x != y) v Friends(x, y)"),
        ("1 Smokes(x) <=> Cancer(x)", "1.0  Smokes(x) <=> Cancer(x)"),
        ("1 Smokes(+x)", "1.0  Smokes(+x)"),
        ("@5 Smokes(x)", "@5.0  Smokes(x)"),
        ("Smokes(x)", "Smokes(x)"),
        ('1 Smokes("a b")', '1.0  Smokes("a b")'),
        ("1 Smokes(x) | Cancer(x)", "1.0  Smokes(x) v Cancer(x)"),
    ],
)
def test_formulas(text, read):
    assert rules(text) == [read]
    assert rules(rules(text)[0]) == [read]  # what is written is read as the same


@pytest.mark.parametrize(
    ("text", "read"),
    [
        # The formula right behind a quantifier, or to the end of the bracket where its variables occur again.
        ("EXIST y Friends(x, y) v Smokes(x).", "(EXIST y (Friends(x, y))) v Smokes(x)."),
        ("EXIST y !Smokes(x) v Friends(x, y).", "EXIST y (!Smokes(x) v Friends(x, y))."),
        (
            "1 (EXIST y Friends(x, y) ^ Smokes(y)) => Smokes(x)",
            "1.0  (EXIST y (Friends(x, y) ^ Smokes(y))) => Smokes(x)",
        ),
        ("1 FORALL y (Friends(x, y)) => Smokes(x)", "1.0  (FORALL y (Friends(x, y))) => Smokes(x)"),
        ("1 exist x, y Friends(x, y)", "1.0  EXIST x, y (Friends(x, y))"),
    ],
)
def test_scopes_of_quantifiers(text, read):
    assert rules(text) == [read]


def test_statements_need_no_lines_of_their_own():
    text = (
        "p = {A, B}  Smokes(p)  Friends(p, p)  1.1 Friends(x,y) => (Smokes(x) <=> Smokes(y))  Smokes(A).  2 !Smokes(x)"
    )
    assert len(read_program(text).rules) == 3
    assert rules("1 Smokes(x) =>\n   Cancer(x)\n/* no\n rule */ 2 Smokes(x) // nor this\n") == [
        "1.0  Smokes(x) => Cancer(x)", "2.0  Smokes(x)",
    ]  # fmt: skip


def test_templates():
    assert rules("1 *Smokes(x) v Cancer(x)") == ["1.0  Smokes(x) v Cancer(x)", "1.0  !Smokes(x) v Cancer(x)"]
    assert rules("1 Smokes|Cancer(x) v Friends(x, x)") == [
        "1.0  Smokes(x) v Friends(x, x)", "1.0  Cancer(x) v Friends(x, x)",
    ]  # fmt: skip
    marked = "1 Smokes(?x) ^ Friends(?x, +?Y) ^ Cancer(anna)"
    assert rules(marked) == ['1.0  Smokes(x) ^ Friends(x, +y) ^ Cancer("anna")']
    assert "anna" in read_program(HEAD + marked).domains["p"]


def test_declarations_and_domains():
    program = read_program("t = {1, ..., 4, x}\n*P(t)\nQ(t, u!)\nR(t, u!?)\nu f(t)\nu = {A}\nu = {B}\n1 Q(x, f(x))")
    assert list(program.domains["t"]) == ["1", "2", "3", "4", "x"]
    assert list(program.domains["u"]) == ["A", "B"]
    assert program.predicates["P"].closed and program.predicates["Q"].closed is None
    assert program.predicates["Q"].determined == (1,) and not program.predicates["Q"].at_most_one
    assert program.predicates["R"].at_most_one
    assert str(program.functions["f"]) == "u f(t)"
    again = read_program(str(program))
    assert str(again) == str(program)
    assert again.rules == [
        Rule(r.formula, r.weight, r.hard, r.each, r.fixed, again.rules[0].where) for r in program.rules
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Smokes(x", r":5:11: the formula ends here: expected"),
        ("1 Smokes(x))", r":5:12: this '\)' closes nothing"),
        ("1 Smokes(x) => => Cancer(x)", r":5:16: '=>' does not fit here: expected"),
        ("1 Smokes(x, y)", r":5:1: Smokes\(x, y\) has 2 arguments, and Smokes is declared with 1"),
        ("1 Nope(x) v Smokes(x)", r":5:1: predicate Nope is not declared"),
        ("1 Nope(x)", r":5:1: predicate Nope is not declared"),
        ("Q(t)\n1 Q(x) v Smokes(x)", r":6:1: variable x is of type t and, in Smokes\(x\), of type p"),
        ("1 x = y", r":5:1: variable x is in no predicate"),
        ("1 EXIST y Smokes(x)", r":5:1: variable y of a quantifier is in no predicate"),
        ("1 Smokes(x).", r":5:12: a formula has a weight before it or a period behind it"),
        ("1", r":5:1: a formula is missing here"),
        ("1/0 Smokes(x)", r":5:1: this weight cannot be worked out"),
        ("1 x < y", r":5:5: '<' in a formula: arithmetic"),
        ("1 Smokes(x) $", r":5:13: the sign '\$' has no meaning here"),
        ("/* open", r":5:1: this comment is not closed"),
        ('1 Smokes("a)', r":5:10: this text is not closed"),
        ("q = {A, B", r":5:10: the constants of type q are not closed"),
        ("q = {A B}", r":5:8: expected ',' or '}' here, got 'B'"),
        ("q = {A, ..., B}", r":5:9: '...' stands between two whole numbers"),
        ("*Smokes(p)", r":5:2: Smokes is declared twice"),
        ('#include "x.mln"', r":5:1: 'x.mln' is included by a text that is not in a file"),
        ("#fuzzy", r":5:1: fuzzy predicates are not part of the language"),
        ("1 Smokes(f(x))", r":5:1: function f is not declared"),
        ("1 EXIST x Smokes(+x)", r":5:1: \+x is bound by a quantifier"),
    ],
)
def test_errors_name_the_place(text, message):
    with pytest.raises(mf.FormatError, match=message):
        read_program(HEAD + text)


def test_includes(tmp_path):
    (tmp_path / "types.mln").write_text("p = {A}\nSmokes(p)\n")
    (tmp_path / "main.mln").write_text('#include "types.mln"\n1 Smokes(x)\n')
    assert len(mf.logic.read(tmp_path / "main.mln").rules) == 1
    (tmp_path / "loop.mln").write_text('#include "loop.mln"\n')
    with pytest.raises(mf.FormatError, match=r"loop.mln:1:1: 'loop.mln' includes itself"):
        mf.logic.read(tmp_path / "loop.mln")
    (tmp_path / "lost.mln").write_text('#include "no.mln"\n')
    with pytest.raises(mf.FormatError, match=r"lost.mln:1:1: the included file 'no.mln' cannot be read"):
        mf.logic.read(tmp_path / "lost.mln")


def test_databases():
    kb = mf.MarkovLogic(HEAD + "p f(p)")
    facts = kb.facts('// people\nSmokes(A)  !Smokes(B)\nFriends(A, "C D")\n0.7 Cancer(A)\nf(A) = B\np = {E}\n')
    assert facts.atoms == {"Smokes": {("A",): True, ("B",): False}, "Friends": {("A", "C D"): True}}
    assert facts.probabilities == {"Cancer": {("A",): 0.7}}
    assert facts.values == {"f": {("A",): "B"}} and list(facts.constants["p"]) == ["E"]
    assert kb.facts("B = f(A)\nA = f(B)\n").values == {"f": {("A",): "B", ("B",): "A"}}
    assert len(kb.worlds("Smokes(A)\n---\nSmokes(B)\n")) == 2
    assert kb.facts({"Smokes(A)": True, "Smokes(B)": False, "Cancer(A)": 0.25}).probabilities["Cancer"] == {
        ("A",): 0.25
    }
    assert kb.facts(["Smokes(A)", "!Smokes(B)"]).atoms["Smokes"] == {("A",): True, ("B",): False}
    for text, message in [
        ("Smokes(A)\nSmokes(A, B)\n", ":2:1: Smokes.A, B. has 2 arguments"),
        ("Smokes(A)\n!Smokes(A)\n", ":2:1: Smokes.A. is said to be true and to be false"),
        ("Nope(A)\n", ":1:1: predicate Nope is not declared"),
        ("Smokes(A))\n", r":1:10: expected a ground atom such as Name\(A, B\), got '\)'"),
        ("1.5 Smokes(A)\n", ":1:1: 1.5 is no probability"),
        ("f(A)\n", r":1:1: a value of function f is written f\(p\) = p"),
    ]:
        with pytest.raises(mf.FormatError, match=message):
            kb.facts(text)
    with pytest.raises(mf.ModelError, match="the evidence on Smokes"):
        kb.facts({"Smokes(A)": "yes"})
    with pytest.raises(mf.ModelError, match="the evidence has 2 worlds"):
        kb.ground("Smokes(A)\n---\nSmokes(B)\n")


def test_programs_of_others():
    found = sorted(data_path("mln").rglob("*.mln"))
    assert len(found) > 15
    for path in found:
        if path.name == "univ.mln":  # it uses a predicate that it does not declare
            with pytest.raises(mf.FormatError, match=r"univ.mln:27:1: predicate publication is not declared"):
                mf.logic.read(path)
            continue
        kb = mf.logic.read(path)
        assert kb.rules
        again = mf.MarkovLogic(kb.to_text())
        assert [str(r) for r in again.rules] == [str(r) for r in kb.rules]
        for database in sorted(path.parent.glob("evidence.db*")) if path.name == "prog.mln" else []:
            assert kb.facts(database).atoms


def test_python_and_text_say_the_same():
    logic = mf.logic
    x, y = logic.Variable("x"), logic.Variable("y")
    smokes, friends = (lambda t: logic.Atom("Smokes", (t,))), (lambda a, b: logic.Atom("Friends", (a, b)))
    kb = (
        mf.MarkovLogic().add_domain("p", ["A", "B"]).add_predicate("Smokes", ["p"]).add_predicate("Friends", ["p", "p"])
    )
    kb.add_rule(friends(x, y) >> smokes(x).iff(smokes(y)), 1.1)
    kb.add_rule("Smokes(x) v Friends(x, +y)", 0.5)
    assert [str(r) for r in kb.rules] == [
        "1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))", "0.5  Smokes(x) v Friends(x, +y)",
    ]  # fmt: skip
    for wrong, message in [
        (lambda: kb.add_rule("Smokes(x)", float("inf")), "a weight must be a finite number, got inf"),
        (lambda: kb.add_rule("Smokes(x)", 1.0, hard=True), "a formula has a weight, or is hard, not both"),
        (lambda: kb.add_predicate("Smokes", ["p"]), "predicate Smokes is declared twice"),
        (lambda: kb.add_rule(friends(x, x) & logic.Atom("Nope", (x,)), 1.0), "predicate Nope is not declared"),
        (lambda: kb.add_rule("*Smokes(x)", 1.0), "is a template of several formulas"),
        (lambda: kb.with_weights([1.0]), "the program has 2 soft formulas, got 1 weights"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            wrong()
    assert all(a is not b for a, b in pairwise([kb, kb.with_weights([1.0, 2.0])]))
