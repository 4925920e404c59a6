"""Scores of chunks against published figures and against the reference scorer's way of counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.io.conll import read_conll
from markovfield.sequence.text.entities import entity_report, token_report
from markovfield.sequence.text.labels import spans
from tests.data import data_path

# Corpus and predicted labels of a sentence, and what conlleval says of it, as published with the package conlleval
# 0.2, whose tests compare it with the original script (github.com/kaniblu/conlleval, README).
SAMPLE = """
B-NP I-NP, I-NP I-NP, I-NP I-NP, B-NP B-NP, I-NP I-NP, I-NP I-NP, B-VP B-VP, B-NP B-NP, B-VP B-VP, B-NP B-NP,
I-NP I-NP, I-NP I-NP, B-VP B-VP, B-NP B-NP, I-NP I-NP, B-PP B-PP, B-NP I-NP, I-NP I-NP, B-VP B-PP, I-VP I-VP,
B-NP I-NP, I-NP I-NP, B-PP B-PP, B-NP I-NP, B-NP B-NP, I-NP I-NP, I-NP I-NP, O O
"""
SAMPLE_REPORT = """\
processed 28 tokens with 15 phrases; found: 16 phrases; correct: 14.
accuracy:  82.14%; precision:  87.50%; recall:  93.33%; FB1:  90.32
               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  9
               PP: precision:  66.67%; recall: 100.00%; FB1:  80.00  3
               VP: precision:  75.00%; recall:  75.00%; FB1:  75.00  4"""


def test_published_sample():
    pairs = [pair.split() for pair in SAMPLE.replace("\n", " ").strip().split(", ")]
    true, predicted = zip(*pairs, strict=True)
    report = entity_report([true], [predicted])
    assert str(report) == SAMPLE_REPORT
    assert (report.n_tokens, report.n_correct_tokens) == (28, 23)
    assert report.f1 == pytest.approx(0.9032258064516129)


def test_published_baseline_of_the_shared_task():
    # Tjong Kim Sang and Buchholz 2000: each part of speech gets the chunk label it has most often in training.
    # Precision 72.58, recall 82.14, F 77.07 (the corpus' README).
    columns = ["word", "pos", "chunk"]
    train = read_conll(data_path("conll2000", "train.txt.gz"), columns)
    test = read_conll(data_path("conll2000", "test.txt.gz"), columns)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for tags, labels in zip(train["pos"], train["chunk"], strict=True):
        for tag, label in zip(tags, labels, strict=True):
            counts[tag][label] += 1
    best = {tag: count.most_common(1)[0][0] for tag, count in counts.items()}
    report = entity_report(test["chunk"], [[best[tag] for tag in tags] for tags in test["pos"]])
    assert str(report).splitlines()[0].startswith("processed 47377 tokens with 23852 phrases")
    assert "precision:  72.58%; recall:  82.14%; FB1:  77.07" in str(report).splitlines()[1]


def reference_counts(true, predicted):
    """Chunks counted as conlleval does: in one pass, with a flag for a chunk that is right so far.

    Its rules name the pairs of prefixes between which a chunk ends or starts; they cover IOB and IOE.
    """

    def ends(p, q, kind, next_kind):
        return (p + q in ("BB", "BO", "IB", "IO", "EE", "EI", "EO")) or (p != "O" and kind != next_kind)

    def starts(p, q, kind, next_kind):
        return (p + q in ("BB", "IB", "OB", "OI", "EE", "EI", "OE")) or (q != "O" and kind != next_kind)

    n_true = n_found = n_correct = 0
    right = False
    last = last_guess = ("O", "")
    stream = [pair for a, b in zip(true, predicted, strict=True) for pair in [*zip(a, b, strict=True), ("O", "O")]]
    for label, guess in stream:
        now, now_guess = (text.partition("-")[::2] for text in (label, guess))
        steps = [(last[0], now[0], last[1], now[1]), (last_guess[0], now_guess[0], last_guess[1], now_guess[1])]
        if right:
            ended = [ends(*step) for step in steps]
            if all(ended) and last[1] == last_guess[1]:
                n_correct += 1
                right = False
            elif ended[0] != ended[1] or now[1] != now_guess[1]:
                right = False
        started = [starts(*step) for step in steps]
        if all(started) and now[1] == now_guess[1]:
            right = True
        n_true += started[0]
        n_found += started[1]
        last, last_guess = now, now_guess
    return n_true, n_found, n_correct + right


@pytest.mark.parametrize("prefixes", ["BI", "IE"])
def test_counts_are_the_reference_scorers(prefixes):
    label = st.sampled_from(["O", *[f"{p}-{kind}" for p in prefixes for kind in ("A", "B-c")]])
    pairs = st.lists(st.lists(st.one_of(label.map(lambda x: (x, x)), st.tuples(label, label)), max_size=9), max_size=5)

    @given(pairs)
    def check(sequences):
        true = [[a for a, _ in sequence] for sequence in sequences]
        predicted = [[b for _, b in sequence] for sequence in sequences]
        report = entity_report(true, predicted)
        assert (report.n_true, report.n_found, report.n_correct) == reference_counts(true, predicted)

    check()


@given(
    st.lists(
        st.lists(
            st.tuples(*[st.sampled_from(["O", *[f"{p}-{k}" for p in "BIES" for k in "AB"]])] * 2),
            max_size=8,
        ),
        max_size=4,
    )
)
def test_counts_are_those_of_spans(sequences):
    true = [[a for a, _ in sequence] for sequence in sequences]
    predicted = [[b for _, b in sequence] for sequence in sequences]
    report = entity_report(true, predicted)
    both = list(zip(map(spans, true), map(spans, predicted), strict=True))
    assert report.n_true == sum(len(a) for a, _ in both)
    assert report.n_found == sum(len(b) for _, b in both)
    assert report.n_correct == sum(len(set(a) & set(b)) for a, b in both)
    for kind, score in report.by_type.items():
        chosen = [({c for c in a if c[0] == kind}, {c for c in b if c[0] == kind}) for a, b in both]
        assert score.n_correct == sum(len(a & b) for a, b in chosen)
        assert (score.n_true, score.n_found) == (sum(len(a) for a, _ in chosen), sum(len(b) for _, b in chosen))


def test_raw_labels_are_chunks_of_one_token():
    report = entity_report([["NP", "NP", "O"]], [["NP", "VP", "O"]], raw=True)
    assert (report.n_true, report.n_found, report.n_correct) == (2, 2, 1)
    assert list(report.by_type) == ["NP", "VP"]


def test_labels_of_no_scheme_do_no_harm():
    report = entity_report([["X", "B-A", "X"]], [["B-A", "X", "X"]])
    assert report.n_true >= 1
    assert report.n_correct == 0


def test_nothing_to_score():
    report = entity_report([], [])
    assert str(report) == "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."
    assert (report.accuracy, report.precision, report.recall, report.f1) == (0, 0, 0, 0)
    assert entity_report([[]], [[]]).n_tokens == 0
    assert token_report([], []).accuracy == token_report([], []).macro_f1 == 0


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5), min_size=1, max_size=4))
def test_token_report(sequences):
    true = [[a for a, _ in sequence] for sequence in sequences]
    predicted = [[b for _, b in sequence] for sequence in sequences]
    pairs = [pair for sequence in sequences for pair in sequence]
    report = token_report(true, predicted)
    assert report.n_correct == sum(a == b for a, b in pairs)
    assert set(report.by_label) == {x for pair in pairs for x in pair}
    for label, score in report.by_label.items():
        assert score.n_true == sum(a == label for a, _ in pairs)
        assert score.n_found == sum(b == label for _, b in pairs)
        assert score.n_correct == sum(a == b == label for a, b in pairs)
    assert f"{len(pairs)} tokens" in str(report)


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([["O"]], [], "there are 1 sequences of true labels and 0 of predicted ones"),
        ([["O"], ["O"]], [["O"], ["O", "O"]], "sequence 1 has 1 true labels and 2 predicted ones"),
        ([[1]], [[1]], "labels must be str, got 1 of type int"),
        (["O"], ["O"], "the labels of sequence 0 must be a list"),
    ],
)
def test_errors(true, predicted, message):
    with pytest.raises(ModelError, match=message):
        entity_report(true, predicted)
