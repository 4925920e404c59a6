"""Brackets scored as evalb does, on the cases of its own sample and on cases worked by hand."""

from __future__ import annotations

import pytest

import markovfield as mf
from markovfield.grammar import Tree, bracket_report

G = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
LONG = f"(S {' '.join([G[3:-1]] * 11)})"
# Gold tree, parse, and what evalb's sample result says of them: length, status, matched, gold and test brackets,
# crossing, words, right tags. Several trees on a line, which evalb reads as one, stand under TOP.
SAMPLE: list[tuple[str, str | None, tuple[object, ...]]] = [
    (G, G, (4, "valid", 4, 4, 4, 0, 4, 4)),
    (G, "(S (A (P this)) (B (Q is) (C (R a) (T test))))", (4, "valid", 3, 4, 4, 0, 4, 4)),
    (G, "(S (A (P this)) (B (Q is) (A (R a) (U test))))", (4, "valid", 4, 4, 4, 0, 4, 3)),
    (G, "(S (C (P this)) (B (Q is) (A (R a) (U test))))", (4, "valid", 3, 4, 4, 0, 4, 3)),
    (G, "(S (A (P this)) (B (Q is) (R a) (A (T test))))", (4, "valid", 3, 4, 4, 0, 4, 4)),
    (G, "(S (A (P this) (Q is)) (A (R a) (T test)))", (4, "valid", 2, 4, 3, 1, 4, 4)),
    (G, "(S (P this) (Q is) (R a) (T test))", (4, "valid", 1, 4, 1, 0, 4, 4)),
    (G, "(TOP (P this) (Q is) (R a) (T test))", (4, "valid", 0, 4, 0, 0, 4, 4)),
    (G, "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", (4, "valid", 4, 4, 5, 0, 4, 4)),
    (G, "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", (4, "valid", 4, 4, 8, 0, 4, 4)),
    (G, None, (4, "skipped", 0, 0, 0, 0, 0, 0)),
    (G, "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))", (4, "error", 0, 0, 0, 0, 0, 0)),
    (G, "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))", (4, "error", 0, 0, 0, 0, 0, 0)),
    (G, None, (4, "skipped", 0, 0, 0, 0, 0, 0)),
    (G, f"(TOP {G})", (4, "valid", 4, 4, 4, 0, 4, 4)),
    (G, "(S (A (P this)) (NONE *) (B (Q is) (A (R a) (T test))))", (4, "error", 0, 0, 0, 0, 0, 0)),
    (G, "(S (A (P this)) (S (NONE abc) (A (NONE *))) (B (Q is) (A (R a) (T test))))", (4, "error", 0, 0, 0, 0, 0, 0)),
    (G, "(S (A (P this)) (B (Q is) (A (R a) (TT test))))", (4, "valid", 4, 4, 4, 0, 4, 4)),
    (G, "(S (A (P This)) (B (Q is) (A (R a) (T test))))", (4, "valid", 4, 4, 4, 0, 4, 4)),
    (G, "(S (A (P That)) (B (Q is) (A (R a) (T test))))", (4, "error", 0, 0, 0, 0, 0, 0)),
    ("(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))", G, (4, "valid", 4, 4, 4, 0, 4, 4)),
    (LONG, LONG, (44, "valid", 34, 34, 34, 0, 44, 44)),
    (f"{G[:-1]} (-NONE- *))", f"{G[:-1]} (-NONE- *))", (4, "valid", 4, 4, 4, 0, 4, 4)),
    (f"{G[:-1]} (: *))", f"{G[:-1]} (: *))", (5, "valid", 4, 4, 4, 0, 4, 4)),
]


def sample_report() -> mf.grammar.BracketReport:
    return bracket_report(
        [Tree.parse(gold) for gold, _, _ in SAMPLE],
        [None if parse is None else Tree.parse(parse) for _, parse, _ in SAMPLE],
        deleted=("TOP", "-NONE-", ",", ":", "``", "''"),
        equal=[("T", "TT")],
        equal_words=[("This", "this")],
    )


def test_sentences_of_the_sample() -> None:
    for score, (_, _, expected) in zip(sample_report().sentences, SAMPLE, strict=True):
        counts = (score.n_correct, score.n_true, score.n_found, score.n_crossing, score.n_words, score.n_correct_tags)
        assert (score.length, score.status, *counts) == expected
        assert (score.status == "valid") == (not score.reason)


def test_summary_of_the_sample() -> None:
    report = sample_report()
    assert (report.n_correct, report.n_true, report.n_found) == (86, 98, 95)
    text = str(report)
    for line in (
        "Number of sentence        =     24",
        "Number of Error sentence  =      5",
        "Number of Skip  sentence  =      2",
        "Number of Valid sentence  =     17",
        "Bracketing Recall         =  87.76",
        "Bracketing Precision      =  90.53",
        "Complete match            =  52.94",
        "Average crossing          =   0.06",
        "No crossing               =  94.12",
        "2 or less crossing        = 100.00",
        "Tagging accuracy          =  98.15",
    ):
        assert line in text.split("\n")
    short = str(report.up_to(40)).split("\n")
    for line in (
        "Number of Valid sentence  =     16",
        "Bracketing Recall         =  81.25",
        "Bracketing Precision      =  85.25",
        "Complete match            =  50.00",
        "Tagging accuracy          =  96.88",
    ):
        assert line in short


GOLD = "(TOP (S (NP (DT The) (NN plan)) (, ,) (VP (VBD ran) (PRT (RP off)) (NP (NN today))) (. .)))"


@pytest.mark.parametrize(
    ("parse", "options", "counts"),
    [
        # S, NP, VP, PRT, NP: TOP and punctuation do not count, and ADVP is PRT.
        ("(S (NP (DT The) (NN plan)) (, ,) (VP (VBD ran) (ADVP (RB off)) (NP (NN today))) (. .))", {}, (5, 5, 5)),
        # The comma inside of NP and the full stop inside of VP make no difference.
        ("(S (NP (DT The) (NN plan) (, ,)) (VP (VBD ran) (PRT (RP off)) (NP (NN today)) (. .)))", {}, (5, 5, 5)),
        # With nothing deleted and nothing equal they do: TOP and VP are missed, ADVP is wrong.
        (
            "(S (NP (DT The) (NN plan)) (, ,) (VP (VBD ran) (ADVP (RB off)) (NP (NN today)) (. .)))",
            {"deleted": (), "equal": ()},
            (3, 6, 5),
        ),
        # Unlabelled: any label will do, and each gold bracket matches once.
        (
            "(X (X (X (DT The) (NN plan)) (, ,)) (X (VBD ran) (X (RB off)) (NN today)) (. .))",
            {"labelled": False},
            (4, 5, 5),
        ),
        # A constituent of punctuation alone has no words and does not count.
        (
            "(S (NP (DT The) (NN plan)) (PRN (, ,)) (VP (VBD ran) (PRT (RP off)) (NP (NN today))) (. .))",
            {},
            (5, 5, 5),
        ),
        # Function tags of the parse do not count either.
        (
            "(S=2 (NP-SBJ (DT The) (NN plan)) (, ,) (VP (VBD ran) (PRT (RP off)) (NP-TMP (NN today))) (. .))",
            {},
            (5, 5, 5),
        ),
    ],
)
def test_cases_by_hand(parse: str, options: dict[str, object], counts: tuple[int, int, int]) -> None:
    report = bracket_report([Tree.parse(GOLD)], [Tree.parse(parse)], **options)  # type: ignore[arg-type]
    assert (report.n_correct, report.n_true, report.n_found) == counts


def test_counts_are_pooled() -> None:
    short, long = Tree.parse("(S (A a) (B b))"), Tree.parse(LONG)
    flat = Tree("S", [node for node in long if node.is_preterminal])
    report = bracket_report([short, long], [short, flat])
    assert report.recall == pytest.approx(2 / 35)
    assert report.precision == 1.0
    assert report.f1 == pytest.approx(2 * (2 / 35) / (1 + 2 / 35))
    assert report.complete_match == 0.5


def test_crossing_brackets() -> None:
    gold = Tree.parse("(S (X (A a) (B b)) (Y (C c) (D d)) (E e))")
    parse = Tree.parse("(S (A a) (X (B b) (C c)) (Y (D d) (E e)))")
    report = bracket_report([gold], [parse])
    assert (report.average_crossing, report.no_crossing, report.two_or_less_crossing) == (2.0, 0.0, 1.0)


def test_nothing_to_score() -> None:
    report = bracket_report([], [])
    assert (report.f1, report.complete_match, report.tagging_accuracy) == (0.0, 0.0, 0.0)
    only = Tree.parse("(. .)")
    assert bracket_report([only], [only]).n_skipped == 1


def test_as_many_parses_as_gold_trees() -> None:
    with pytest.raises(mf.ModelError, match="one parse for each gold tree, got 0 and 1"):
        bracket_report([Tree.parse(G)], [])
