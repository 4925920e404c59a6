"""BIF: every reference network, all forms of the grammar, and nothing but FormatError for bad files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from tests.data import data_path
from tests.io.damage import damaged, format_error
from tests.patience import patience
from tests.strategies import Spec, specs

SMALL = """network test {
}
variable A {
  type discrete [ 2 ] { <5, >=5 };
}
variable B {
  type discrete [ 3 ] { a/b, -1.5, c_+ };
}
probability ( A ) {
  table 0.25, 0.75;
}
probability ( B | A ) {
  (<5) 0.1, 0.2, 0.7;
  (>=5) 1, 0, 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bif")


def read(folder, text):
    path = folder / "net.bif"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return mio.read_bif(path)


def declare(**variables: str) -> str:
    return "".join(
        f"variable {name} {{ type discrete [ {len(states.split(','))} ] {{ {states} }}; }}\n"
        for name, states in variables.items()
    )


def test_small_network(tmp_path):
    net = read(tmp_path, SMALL)
    assert net.variables == ("A", "B")
    assert net.parents("B") == ("A",)
    assert net.compile().names.state_names(1, 3) == ("a/b", "-1.5", "c_+")
    assert net.cpt("B").tolist() == [[0.1, 0.2, 0.7], [1, 0, 0]]


def test_every_reference_network_has_the_published_size():
    folder = data_path("bif")
    index = data_path("INDEX.md").read_text()
    published = dict(re.findall(r"(\w+) (\d+/\d+/\d+)/\d+", index))
    for path in sorted(folder.glob("*.bif.gz")):
        net = mio.read_bif(path)
        s = net.compile().structure
        arcs = len(s.scopes) - s.n_factors
        free = sum(
            net.cpt(v).size // s.cardinalities[i] * (s.cardinalities[i] - 1) for i, v in enumerate(net.variables)
        )
        assert f"{s.n_variables}/{arcs}/{free}" == published[path.name.removesuffix(".bif.gz")], path.name


def test_comments_quotes_properties_and_any_order(tmp_path):
    text = """
    // a comment with { braces } and "quotes"
    network "my net" { property "author = {me}; or (you)"; property version 1; }
    /* blocks may come
       in any order */
    probability ( "light-on" "family out" ) { // JavaBayes writes no bar and no commas
      table 0.6 0.05 0.4 0.95 ;
      property "x;y";
    }
    variable "light-on" { type discrete[2] { "true" "fa lse" }; property "position = (73, 165)"; }
    variable "family out" { property p; type discrete[2] { "true" "fa lse" } }
    probability ( "family out" ) { table 0.15 0.85; }
    """
    net = read(tmp_path, text)
    assert net.variables == ("light-on", "family out")
    assert net.compile().names.state_names(0, 2) == ("true", "fa lse")
    np.testing.assert_allclose(net.cpt("light-on"), [[0.6, 0.4], [0.05, 0.95]])
    text = text.replace("table 0.6 0.05 0.4 0.95 ;", '("fa lse") 0.05, 0.95; ("true") 0.6 0.4;')
    np.testing.assert_allclose(read(tmp_path, text).cpt("light-on"), [[0.6, 0.4], [0.05, 0.95]])


def test_name_and_properties_are_kept(tmp_path):
    text = """network "my net" { property "author = {me}; or (you)"; property version 1; }
    variable A { property first; type discrete [ 2 ] { x, y }; property position = (73, 165) ; }
    probability ( A ) { property "http://a.b"; table 0.5, 0.5; property a "b;c" /* d */ e; }
    """
    net = read(tmp_path, text)
    assert net.name == "my net"
    assert net.properties == {
        None: ("author = {me}; or (you)", "version 1"),
        "A": ("first", "position = (73, 165)", "http://a.b", 'a "b;c"         e'),
    }
    assert read(tmp_path, SMALL).name == "test"
    for unnamed in ("unknown", '"unknown"', ""):
        assert read(tmp_path, SMALL.replace("test", unnamed)).name is None
    assert read(tmp_path, SMALL).properties == {}


def test_states_like_numbers_and_ranges_and_names_with_signs(tmp_path):
    states = "<1, 1-2, 3.5, 0.5-1.0, >=2, 1e3, 10%, a:b, 1_0"
    text = (
        f"variable light-on.2/3 {{ type discrete[9]{{{states}}}; }} variable B {{ type discrete [ 2 ] {{ 1, -1 }}; }}"
    )
    rows = "".join(f"({s}) 0.5, 0.5; " for s in states.split(", "))
    text += f"probability(light-on.2/3){{table {'0.1 ' * 8} 0.2;}} probability(B|light-on.2/3){{{rows}}}"
    for comment in ("", "// careful\n"):
        net = read(tmp_path, comment + text)
        assert net.states("light-on.2/3") == tuple(states.split(", "))
        assert net.parents("B") == ("light-on.2/3",)


def test_spaces_of_any_kind_may_stand_in_quotes(tmp_path):
    text = 'variable "a\u00a0\tb" { type discrete [2] { "x\u2003[1]", "(y) | z" }; }'
    net = read(tmp_path, text + 'probability ( "a\u00a0\tb" ) { table 0.5, 0.5; }')
    assert net.variables == ("a\u00a0\tb",)
    assert net.states("a\u00a0\tb") == ("x\u2003[1]", "(y) | z")


def test_byte_order_mark_and_accents(tmp_path):
    net = read(
        tmp_path,
        b"\xef\xbb\xbf" + "variable é { type discrete [1] { ß }; } probability (é) {table 1;}".encode(),
    )
    assert net.variables == ("é",)
    with pytest.raises(mf.FormatError, match=r"net\.bif:1:41: expected network"):
        read(tmp_path, b"\xef\xbb\xbf" + "variable é { type discrete [1] { ß }; } x".encode())


def test_whole_table_with_parents_takes_the_order_that_sums_to_one(tmp_path):
    head = declare(A="x, y", B="p, q, r") + "probability (A) { table .5, .5; } probability (B | A) { table "
    # By the specification the variable itself is slowest.
    net = read(tmp_path, head + "0.1, 0.2, 0.3, 0.3, 0.6, 0.5; }")
    np.testing.assert_allclose(net.cpt("B"), [[0.1, 0.3, 0.6], [0.2, 0.3, 0.5]])
    net = read(tmp_path, head + "0.1, 0.3, 0.6, 0.7, 0.1, 0.2; }")
    np.testing.assert_allclose(net.cpt("B"), [[0.1, 0.3, 0.6], [0.7, 0.1, 0.2]])
    with pytest.raises(mf.FormatError, match="sums to"):
        read(tmp_path, head + "0.1, 0.1, 0.1, 0.1, 0.1, 0.1; }")


def test_default_fills_the_rows_that_are_missing(tmp_path):
    head = declare(A="x, y", C="x, y", B="p, q") + "probability (A) { table .5, .5; } probability (C) { table 1, 0; }"
    net = read(tmp_path, head + "probability (B | A, C) { default 0.5, 0.5; (y, x) 1, 0; }")
    assert net.cpt("B").tolist() == [[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5]]]
    assert read(tmp_path, declare(A="x, y") + "probability (A) { default .5, .5; }").cpt("A").tolist() == [
        0.5,
        0.5,
    ]


def test_default_cannot_claim_memory_that_the_file_does_not_warrant(tmp_path):
    names = {f"V{i}": "x, y" for i in range(60)}
    text = declare(**names) + "probability (V0 | " + ", ".join(list(names)[1:]) + ") { default 0.5, 0.5; }"
    with pytest.raises(mf.FormatError, match=r"the default of 'V0' would fill about 2\^60 rows"):
        read(tmp_path, text)


AB = declare(A="x, y", B="p, q")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("network x { }", "1:14: the file declares no variable"),
        ("oops", "1:1: expected network, variable or probability, got 'oops'"),
        ("}", "1:1: expected network, variable or probability, got '}'"),
        ("network x {", "1:1: this network block is never closed"),
        ("network x", "1:1: this network block is never opened"),
        ("network x { } network y { }", "1:15: this is the second network block of the file"),
        ("network x { version 1; }", "1:12: a network block holds properties and nothing else"),
        ("network x { property 1 }", "1:12: a network block holds properties and nothing else"),
        ('"\U000f0000"', "1:2: a file with quotes or comments cannot hold the character '\\U000f0000'"),
        ("variable", "1:9: expected the name of a variable"),
        ("variable A {", "1:10: the block of variable 'A' is never closed"),
        (
            "variable A {\n type real; }",
            "1:13: the block of variable 'A' is never closed, or holds something else",
        ),
        ("variable A { }", "1:10: variable 'A' has no type"),
        ("variable A { type discrete [3] { x, y }; }", "1:29: variable 'A' announces 3 states and lists 2"),
        ("variable A { type discrete [2] { x, x }; }", "1:33: state 'x' of variable 'A' is listed twice"),
        ("variable A { type discrete [0] { }; }", "1:33: variable 'A' has no states"),
        (declare(A="x, y") * 2, "2:10: variable 'A' is declared twice"),
        (AB, "3:1: variable 'A' has no probability block"),
        (
            AB + "probability (A) { table .5, .5; } probability (A) { table 1, 0; }",
            "3:35: variable 'A' has two",
        ),
        (AB + "probability () { }", "3:1: this probability block names no variable"),
        (AB + "probability (C) { }", "3:1: there is no variable 'C'"),
        (AB + "probability (B | A, A) { }", "3:1: a variable is named twice"),
        (AB + "probability A { }", "3:1: expected probability ( variable | parents )"),
        (AB + "probability (A) { table .5, .5;", "3:1: this probability block is never closed"),
        (AB + "probability (A) { table .5, .5 }", "3:19: this row does not end with ';'"),
        (AB + "probability (A) { table .5; }", "3:19: expected 2 probabilities of 'A', got 1"),
        (AB + "probability (A) { table .5, huh; }", "3:29: expected a probability, got 'huh'"),
        (AB + "probability (A) { table 1_0, 1; }", "3:19: a probability is written without '_'"),
        (AB + "probability (A) { table nan, 1; }", "3:1: the table of 'A' has a negative probability or one"),
        (AB + "probability (A) { table -1, 2; }", "3:1: the table of 'A' has a negative probability"),
        (AB + "probability (A) { table inf, 2; }", "3:1: a row of the table of 'A' sums to inf"),
        (AB + "probability (A) { table .5, .6; }", "3:1: a row of the table of 'A' sums to 1.1, not to one"),
        (
            AB + "probability (A) { tabel 1, 0; }",
            "3:19: expected (states), one table or one default, got 'tabel 1, 0'",
        ),
        (AB + "probability (B|A) {\n (x) 1, 0;\n (y) .5, o;\n}", "5:10: expected a probability, got 'o'"),
        (AB + "probability (B|A) {\n (x) 1, 0;\n (z) 1, 0; }", "5:2: parent 'A' of 'B' has no state 'z'"),
        (AB + "probability (B|A) {\n (x) 1, 0; }", "4:2: the block of 'B' has no row (y) and no default"),
        (
            AB + "probability (B|A) {\n (x) 1, 0;\n (x) 1, 0; }",
            "5:2: the block of 'B' gives these parents' states twice",
        ),
        (AB + "probability (B|A) {\n (x, y) 1, 0; }", "4:2: 'B' has 1 parents, this row names 2 states"),
        (
            AB + "probability (B|A) {\n (x) 1, 0; table 1, 0, 1, 0; }",
            "4:2: the block of 'B' mixes a whole table",
        ),
        ("/* never closed", "1:1: this comment is never closed"),
        ('network "x\n{ }', "1:9: this quoted string does not end on its line"),
        (
            AB + "probability (A|B) {default 1,0;} probability (B|A) {default 1,0;}",
            "1:1: the network has a directed cycle: 'A' -> 'B' -> 'A'",
        ),
    ],
)
def test_errors_say_where_and_what(tmp_path, text, message):
    with pytest.raises(mf.FormatError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'net.bif'}:{message}")


def test_a_byte_that_is_not_utf8_is_named(tmp_path):
    with pytest.raises(mf.FormatError, match=r"net\.bif:1:10: this byte is not UTF-8 text"):
        read(tmp_path, "variable é {".encode("latin-1"))


def test_truncation_at_every_character_is_a_format_error(tmp_path):
    whole = SMALL.rstrip()
    for end in range(len(whole)):
        with pytest.raises(mf.FormatError):
            read(tmp_path, whole[:end])


@given(data=st.data())
def test_damaged_files_give_format_errors_only(folder, data):
    error = format_error(read, folder, data.draw(damaged(SMALL.encode())))
    assert error is None or re.search(r":\d+:\d+: ", error)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 10**7,
        "variable A {" + "{" * 10**7,
        "network " * 10**6 + "{",
        "/*" * (5 * 10**6),
        '"' * 10**6,
        "//" * (5 * 10**6),
        "variable " + "A" * 10**7,
        "variable A {" + " " * 10**7 + "x",
        "variable A { type discrete [" + "1" * 10**7 + "] { x }; }",
        "probability (" * 10**6,
        "probability (A) {" + "(" * 10**7 + "}",
        "variable A { type discrete [1] { x }; } probability (A) {" + ";" * 10**7 + "}",
        "variable A { type discrete [1] { x }; } probability (A) {" + "property;" * 10**6 + "}",
        "variable A { " + "property x;" * 10**6 + "}",
    ],
    ids=lambda text: text[:30] + text[-5:],
)
def test_ten_hostile_megabytes_fail_fast(tmp_path, text):
    with patience():
        format_error(read, tmp_path, text)


def test_many_variables_take_linear_time(tmp_path):
    names = [f"V{i}" for i in range(20_000)]
    text = declare(**dict.fromkeys(names, "a, b"))
    text += "".join(f"probability ({v}) {{ table .5, .5; }}" for v in names)
    with patience():
        assert len(read(tmp_path, text).variables) == len(names)


def bif_of(net: mf.BayesianNetwork, spec: Spec) -> str:
    """A BIF text of a network whose states are plain indices, rows last to first."""
    lines = [
        f"variable {v} {{ type discrete [ {k} ] {{ {', '.join(f's{i}' for i in range(k))} }}; }}"
        for v, k in zip(spec.labels, spec.cardinalities, strict=True)
    ]
    for v in spec.labels:
        parents, table = net.parents(v), net.cpt(v)
        rows = [
            f"({', '.join(f's{i}' for i in index)}) {', '.join(map(repr, table[index].tolist()))};"
            for index in reversed(list(np.ndindex(table.shape[:-1])))
        ]
        if not parents:
            rows = [f"table {', '.join(map(repr, table.tolist()))};"]
        given_parents = f" | {', '.join(map(str, parents))}" if parents else ""
        lines.append(f"probability ( {v}{given_parents} ) {{ {' '.join(rows)} }}")
    return "\n".join(lines)


@given(spec=specs("bayesian"))
def test_any_network_is_read_back(folder, spec: Spec):
    net = spec.build()
    again = read(folder, bif_of(net, spec))
    assert again.variables == tuple(map(str, net.variables))
    for v in net.variables:
        assert again.parents(str(v)) == tuple(map(str, net.parents(v)))
        np.testing.assert_allclose(again.cpt(str(v)), net.cpt(v), rtol=1e-14)
