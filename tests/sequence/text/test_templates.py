"""Templates of CRF++ and Wapiti, by columns, against a reading of each rule token by token."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import FormatError, ModelError
from markovfield.io.conll import read_conll
from markovfield.sequence.text import _expansion
from markovfield.sequence.text._wapiti_patterns import SimplePattern
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.sequence.text.templates import Template
from markovfield.sequence.text.vectoriser import AttributeVectoriser
from tests.data import data_path

# The template that comes with CRF++ for chunking.
CHUNKING = "\n".join(
    ["# Unigram"]
    + [f"U0{i}:%x[{i - 2},0]" for i in range(5)]
    + ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]", ""]
    + [f"U1{i}:%x[{i - 2},1]" for i in range(5)]
    + [f"U1{i + 7}:%x[{i},1]/%x[{i + 1},1]" for i in (-2, -1, 0, 1)]
    + [f"U2{i + 2}:%x[{i},1]/%x[{i + 1},1]/%x[{i + 2},1]" for i in (-2, -1, 0)]
    + ["", "# Bigram", "B"]
)


def expanded(rule: str, sequence, outside) -> list[str]:
    """A rule with %x only, token by token."""

    def read(t, match):
        place, column = t + int(match[1]), int(match[2])
        if place < 0:
            return outside(place)
        return sequence[place][column] if place < len(sequence) else outside(place - len(sequence) + 1)

    return [re.sub(r"%x\[(-?\d+),(\d+)\]", lambda m, t=t: read(t, m), rule) for t in range(len(sequence))]


def crfpp(steps: int) -> str:
    return f"_B{steps:+d}"


word = st.sampled_from(["a", "b", "a/b", "", "é", "B"])
corpora = st.lists(st.lists(st.tuples(word, word), max_size=5), min_size=1, max_size=4)
macro = st.builds("%x[{},{}]".format, st.integers(-4, 4), st.integers(0, 1))
rules = st.lists(st.one_of(macro, st.just("/")), max_size=4).map("".join)


@given(corpora, st.lists(rules, max_size=4), st.lists(rules, max_size=2))
def test_expansion_by_columns_is_expansion_by_tokens(corpus, of_tokens, of_edges):
    lines = [f"U{i}:{rule}" for i, rule in enumerate(of_tokens)]
    edge_lines = [f"B{i}:{rule}" for i, rule in enumerate(of_edges)]
    template = Template.parse("\n".join([*lines, *edge_lines]))
    reading = [line for line in edge_lines if "%" in line]
    assert template.has_transitions == (len(reading) < len(edge_lines))
    for sequence, tokens, edges in zip(
        corpus, template.transform(corpus), template.transform_edges(corpus), strict=True
    ):
        assert tokens == [list(row) for row in zip(*[expanded(r, sequence, crfpp) for r in lines], strict=True)] or (
            not lines and tokens == [[] for _ in sequence]
        )
        by_rule = [expanded(rule, sequence, crfpp) for rule in reading]
        assert edges == [[column[t] for column in by_rule] if t else [] for t in range(len(sequence))]


@pytest.mark.parametrize("cells", [0, 8], ids=["by sorting", "by a table"])
@given(corpora, corpora, st.lists(rules, min_size=1, max_size=4), st.integers(1, 3))
def test_vectorising_is_expanding_then_encoding(cells, corpus, more, chosen, min_count):
    template = Template.parse(
        "\n".join(f"U:{rule}" for rule in chosen)
    )  # one name for all rules: they share attributes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_expansion, "_CELLS_PER_TOKEN", cells)
        direct, listed = AttributeVectoriser(min_count), AttributeVectoriser(min_count)
        pairs = [
            (template.vectorise(corpus, direct, fit=True), listed.fit_transform(list(template.transform(corpus)))),
            (template.vectorise(more, direct), listed.transform(list(template.transform(more)))),
        ]
    assert set(direct.attributes_) == set(listed.attributes_)
    for data, expected in pairs:
        np.testing.assert_array_equal(data.token_offsets, expected.token_offsets)
        np.testing.assert_array_equal(data.sequence_offsets, expected.sequence_offsets)
        assert data.n_attributes == expected.n_attributes
        names, others = np.array([*direct.attributes_, ""]), np.array([*listed.attributes_, ""])
        assert names[data.attributes].tolist() == others[expected.attributes].tolist()


def test_long_rules_do_not_overflow():
    # 23 columns of 20 texts each have more combinations than 64 bits hold.
    rng = np.random.default_rng(3)
    sequence = [(f"w{i}",) for i in rng.integers(20, size=40)]
    rule = "U:" + "/".join(f"%x[{i},0]" for i in range(-11, 12))
    found = Template.parse(rule).expand(sequence)
    assert [attributes for [attributes] in found] == expanded(rule, sequence, crfpp)


def test_chunking_template_on_the_shared_task():
    corpus = read_conll(data_path("conll2000", "test.txt.gz"))
    template = Template.parse(CHUNKING)
    assert len(template.rules) == 20
    assert template.dialect == "crf++"
    assert template.n_columns == 2
    vectoriser = AttributeVectoriser()
    data = template.vectorise(corpus, vectoriser, fit=True)
    assert (np.diff(data.token_offsets) == 19).all()
    lines = [rule.text for rule in template.rules if rule.of_tokens]
    found = template.transform(corpus)
    for s in range(0, len(corpus), 101):
        expected = [expanded(line, corpus[s], crfpp) for line in lines]
        assert found[s] == [list(row) for row in zip(*expected, strict=True)]
        a, b = data.sequence_offsets[s : s + 2]
        codes = data.attributes[data.token_offsets[a] : data.token_offsets[b]]
        names = vectoriser.attributes_
        assert [names[code] for code in codes] == [name for row in found[s] for name in row]
    assert len({id(text) for tokens in found for row in tokens for text in row}) == len(vectoriser.attributes_)


def test_attributes_read_like_lists():
    corpus = [[("a",), ("b",)], [], [("c",)]]
    found = Template.parse("U:%x[0,0]\nB:%x[-1,0]").transform_edges(corpus)
    expected = [[[], ["B:a"]], [], [[]]]
    assert found == expected
    assert found == Template.parse("B:%x[-1,0]").transform_edges(corpus)
    assert found != [[]]
    assert found != "text"
    assert list(found) == [found[s] for s in range(3)] == found[:] == expected
    assert found[-1] == [[]]
    assert found[::-2] == [[[]], [[], ["B:a"]]]
    assert (len(found), repr(found)) == (3, "TokenAttributes(n_sequences=3, n_tokens=3)")
    with pytest.raises(IndexError, match="there is no sequence 3; there are 3"):
        found[3]


def test_vectorisers_take_attributes_as_they_are():
    found = Template.parse("U0:%x[0,0]\nU1:%x[-1,0]").transform([[("a",), ("b",)], [("a",)]])
    for method in ("fit", "partial_fit"):
        vectoriser = getattr(AttributeVectoriser(min_count=2), method)(found)
        assert sorted(vectoriser.attributes_) == ["U0:a", "U1:_B-1"]
        assert np.diff(vectoriser.transform(found).token_offsets).tolist() == [2, 0, 2]
    vectoriser.partial_fit([[["U0:b"]]])
    assert sorted(vectoriser.attributes_) == ["U0:a", "U0:b", "U1:_B-1"]
    assert sorted(AttributeVectoriser(min_count=2).fit(list(found)).attributes_) == ["U0:a", "U1:_B-1"]


def test_hashed_vectorising():
    corpus = [[("a", "b"), ("c", "d")]]
    template = Template.parse("U0:%x[0,0]\nU1:%x[-1,1]")
    data = template.vectorise(corpus, AttributeVectoriser(hashing=64), fit=True)
    expected = AttributeVectoriser(hashing=64).fit_transform(list(template.transform(corpus)))
    assert data.attributes.tolist() == expected.attributes.tolist()


def test_wapiti():
    template = Template.parse(
        'u:1 %x[ 0,0]  # a comment\n*:2 %X[-1,0]\n\nB\nu:3 %t[0,0,"^\\u"]\nu:4 %m[1,0,"..$"]\n'
        'b:5 %M[0,0,"^\\u\\l*"]\nu:6 %x[@1,0]/%x[@-1,0]/%x[@9,0]'
    )
    assert template.dialect == "wapiti"
    assert template.has_transitions
    tokens = template.expand([("New",), ("York",), ("is",)])
    assert tokens == [
        ["u:1 New", "*:2 _x-1", "u:3 true", "u:4 rk", "u:6 New/is/_x+#"],
        ["u:1 York", "*:2 new", "u:3 true", "u:4 is", "u:6 New/is/_x+#"],
        ["u:1 is", "*:2 york", "u:3 false", "u:4 +1", "u:6 New/is/_x+#"],
    ]
    # The star takes as little as it can, here nothing.
    assert template.expand_edges([("New",), ("York",), ("is",)]) == [[], ["*:2 new", "b:5 y"], ["*:2 york", "b:5 "]]


def test_what_stands_outside():
    sequence = [("a",)]
    rule = "U:" + " ".join(f"%x[{i},0]" for i in (-5, -4, -1, 1, 4, 5))
    assert Template.parse(rule).expand(sequence) == [["U:_B-5 _B-4 _B-1 _B+1 _B+4 _B+5"]]
    assert Template.parse(rule, dialect="wapiti").expand(sequence) == [["u:_x-# _x-4 _x-1 _x+1 _x+4 _x+#"]]


def test_comments_differ():
    assert Template.parse("U0:%x[0,0]#x\n# comment").expand([("a",)]) == [["U0:a#x"]]
    assert Template.parse("u0:%x[0,0]#x\n# comment").expand([("a",)]) == [["u0:a"]]


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("..$", "abc", "bc"),
        ("a*$", "baa", "aa"),
        ("^a*b", "aab", "aab"),
        ("a*", "aab", ""),
        ("ab?c", "xac", "ac"),
        ("ab?c", "xabc", "abc"),
        ("ab?", "abc", "ab"),
        (r"\d\d*\.\d", "v3.14", "3.1"),
        (r"\u\l\l", "the Dog", "Dog"),
        (r"^\U", "dog", "d"),
        (r"\p", "a-b", "-"),
        (r"\W", "ab c", " "),
        (r"\*\?", "a*?", "*?"),
        ("a$b", "a$b", "a$b"),
        (r"\s", "ab", None),
        ("$", "ab", ""),
        ("", "ab", ""),
        (r"\u", "Éa", "É"),
        ("(a|b)", "(a|b)", "(a|b)"),
    ],
)
def test_patterns_of_wapiti(pattern, text, match):
    compiled = SimplePattern(pattern)
    assert compiled.match(text) == (match or "")
    assert compiled.test(text) == ("false" if match is None else "true")


@given(
    st.text("ab", max_size=8),
    st.lists(st.tuples(st.sampled_from("ab."), st.sampled_from(["", "*", "?"])), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_patterns_are_regular_expressions(text, items, at_start, at_end):
    pattern = "^" * at_start + "".join(c + r for c, r in items) + "$" * at_end
    lazy = "^" * at_start + "".join(c + (r + "?" if r == "*" else r) for c, r in items) + r"\Z" * at_end
    expected = re.search(lazy, text)
    assert SimplePattern(pattern).find(text) == (expected.span() if expected else None)


def test_patterns_do_not_explode():
    assert SimplePattern("a*" * 20 + "b").find("a" * 60) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U0:%x[0,0]\nX:%x[0,0]", r"template:2:1: a rule of a crf\+\+ template starts with U or B, got 'X:"),
        ("u0:%x[0,0]\nX:%x[0,0]", "template:2:1: a rule of a wapiti template starts with u, b or"),
        ("U0:%y[0,0]", r"template:1:4: expected a macro such as %x\[-1,0\], got '%y"),
        ("U0:%x[0]", "template:1:4: expected a macro"),
        ("U0:100%", "template:1:7: expected a macro"),
        ("u:%x[*0,0]", "template:1:3: expected a macro"),
        ("u:%t[0,0]", "template:1:3: %t needs a pattern"),
        ('u:%x[0,0,"a"]', "template:1:3: %x takes no pattern"),
        ('u:%m[0,0,"*"]', r"template:1:3: the pattern '\*' is none of Wapiti's: \* repeats nothing"),
        ('u:%m[0,0,"a**"]', "repeats nothing"),
        ("u:%x[@0,0]", "the first is @1, the last @-1"),
    ],
)
def test_bad_templates(text, message):
    with pytest.raises(FormatError, match=message):
        Template.parse(text)


def test_wapitis_macros_are_none_of_crfpp():
    with pytest.raises(FormatError, match="expected a macro"):
        Template.parse("U:%X[0,0]", dialect="crf++")
    with pytest.raises(ModelError, match=r"dialect must be 'crf\+\+' or 'wapiti', got 'crfsuite'"):
        Template.parse("", dialect="crfsuite")
    with pytest.raises(ValueError, match="ends in a backslash"):
        SimplePattern("\\")


def test_columns_that_are_not_there():
    with pytest.raises(ModelError, match=r"the rule 'U0:%x\[0,2\]' asks for column 2, and the corpus has 2"):
        Template.parse("U0:%x[0,2]").transform(ColumnCorpus.from_rows([[("a", "b")]]))


def test_reading(tmp_path):
    path = tmp_path / "template"
    path.write_bytes(b"\xef\xbb\xbfU00:%x[0,0]\r\n\r\nB\r\n")
    template = Template.read(path)
    assert [rule.text for rule in template.rules] == ["U00:%x[0,0]", "B"]
    path.write_bytes(b"U00:%x[0,0]\nU\xff")
    with pytest.raises(FormatError, match="template:2:1: this line is not UTF-8 text"):
        Template.read(path)
    path.write_text("U\nQ")
    with pytest.raises(FormatError, match=re.escape(f"{path}:2:1: a rule")):
        Template.read(path)
