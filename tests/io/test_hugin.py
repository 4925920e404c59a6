"""Hugin .net files: the forms other programs write, and nothing but FormatError for bad files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from tests.io.damage import damaged, format_error
from tests.patience import patience

SMALL = r"""% a comment with { braces } and "quotes"
net
{
    name = weather;
    node_size = (80 40);
    HR_Desc = "50% of \"all\" files; or (more)";
}
node rain
{
    states = ("n o" "<1" "3\\4");
    label = "Rain?"; % label
    position = (73 -165);
}
discrete node wet{states=(no yes);}
potential (wet | rain cold) {
    data = (((0.9 0.1)   % rain=n o cold=0
             (0.2 0.8))
            ((0.3 0.7) (0.4 0.6))
            0.5 0.5 (1 0));
}
node cold { subtype = number; states = ("0" "1"); }
potential ( rain | ) { data = (0.2 0.3 0.5); }
potential (cold) { data = (5e-1 .5); }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hugin")


def read(folder, text):
    path = folder / "x.net"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return mio.read_hugin(path)


def test_small_network(tmp_path):
    net = read(tmp_path, SMALL)
    assert net.variables == ("rain", "wet", "cold")
    assert net.states("rain") == ("n o", "<1", "3\\4")
    assert net.states("wet") == ("no", "yes")
    assert net.parents("wet") == ("rain", "cold")
    expected = [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]], [[0.5, 0.5], [1, 0]]]
    np.testing.assert_allclose(net.cpt("wet"), expected)
    assert net.name == "weather"
    assert net.properties == {
        None: ("node_size = (80 40)", r'HR_Desc = "50% of \"all\" files; or (more)"'),
        "rain": ('label = "Rain?"', "position = (73 -165)"),
        "cold": ("subtype = number",),
    }


def test_attributes_keep_their_strings(tmp_path):
    value = r'("a ( b )" ("c\"" 1) "")'
    net = read(tmp_path, f"net {{ x = {value}; }} node A {{ states = (x); }} potential (A) {{ data = (1); }}")
    assert net.properties == {None: (f"x = {value}",)}


def test_attributes_come_back_as_attributes(tmp_path):
    mio.write_hugin(read(tmp_path, SMALL), tmp_path / "again.net")
    text = (tmp_path / "again.net").read_text()
    for line in ("node_size = (80 40);", 'label = "Rain?";', "position = (73 -165);", "subtype = number;"):
        assert f"  {line}\n" in text


def test_a_class_is_a_network(tmp_path):
    text = 'class Rain { inputs = (); outputs = (a); node a { states = ("x" "y"); } potential (a) { data = (1 0); } }'
    net = read(tmp_path, text)
    assert net.name == "Rain"
    assert net.properties == {None: ("inputs = ()", "outputs = (a)")}
    assert net.cpt("a").tolist() == [1, 0]


def test_byte_order_mark_and_accents(tmp_path):
    net = read(tmp_path, b"\xef\xbb\xbf" + 'node é { states = ("ß"); } potential (é) { data = (1); }'.encode())
    assert net.variables == ("é",)
    assert net.states("é") == ("ß",)
    with pytest.raises(mf.FormatError, match=r"x\.net:1:28: expected net, node or potential, got 'x'"):
        read(tmp_path, b"\xef\xbb\xbf" + 'node é { states = ("ß"); } x'.encode())
    with pytest.raises(mf.FormatError, match=r"x\.net:1:6: this byte is not UTF-8 text"):
        read(tmp_path, "node é {".encode("latin-1"))


A, B = "node A { states = (x y); }\n", "node B { states = (p q); }\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the file declares no variable"),
        ("net { }", "1:8: the file declares no variable"),
        ("oops", "1:1: expected net, node or potential, got 'oops'"),
        ("}", "1:1: expected net, node or potential, got '}'"),
        ("% été\n  oops", "2:3: expected net, node or potential, got 'oops'"),
        ("net {", "1:6: the file ends where an attribute of the net should come"),
        ("net { } net { }", "1:9: this is the second net block of the file"),
        ("net { x }", "1:9: expected '=' of x, got '}'"),
        ("net { x = 1 }", "1:9: 'x' is never closed by ';'"),
        ("net { x = ; }", "1:11: 'x' has no value"),
        ("net { x = 1 } node A { y = 2; }", "1:13: 'x' is not closed by ';' before '}'"),
        ("net { x = (1; }", "1:11: 'x' has parentheses that are never closed"),
        ("net { x = (1) 2); }", "1:13: 'x' has parentheses that close before its end"),
        ("net { x = " + "(" * 101 + ")" * 101 + "; }", "1:111: 'x' has parentheses nested more than 100 deep"),
        ('net { x = "1; }', "1:11: this quoted string is never closed"),
        ("class C { node A { states = (x); }", "1:35: the class is never closed"),
        ("node { }", "1:6: expected the name of a node, got '{'"),
        ("node A { }", "1:1: variable 'A' has no states"),
        ("node A { states = (x x); }", "1:1: state 'x' of variable 'A' is listed twice"),
        ("node A { states = (x y); states = (x y); }", "1:1: node 'A' has two lists of states"),
        (A + A, "2:1: node 'A' is declared twice"),
        (A, "1:27: variable 'A' has no potential"),
        ("continuous node A { }", "1:1: continuous nodes are not supported"),
        ("decision A { states = (x y); }", "1:1: decision nodes are not supported"),
        ("utility U { }", "1:1: utility nodes are not supported"),
        ("class C { instance I : D () { } }", "1:11: instances of classes are not supported"),
        (A + "potential A", "2:11: expected '(' of a potential, got 'A'"),
        (A + "potential (A", "2:1: this potential is never closed"),
        (A + "potential () { }", "2:1: a potential is of one variable given its parents, and this one is of 0"),
        (A + B + "potential (A B) { }", "3:1: a potential is of one variable given its parents, and this one is of 2"),
        (A + B + "potential (A | B = ) { }", "3:1: expected potential ( variable | parents )"),
        (A + "potential (A) { }", "2:1: the potential of 'A' has no data"),
        (A + "potential (A) { data = (1 0); data = (1 0); }", "2:31: the potential of 'A' has two data"),
        (A + "potential (A) { model_nodes = (); }", "2:17: tables given by a model (model_nodes) are not supported"),
        (A + "potential (A) { data = (1 0); experience = (1); }", "2:31: experience tables are not supported"),
        (A + "potential (A) { data = normal(0, 1); }", "2:17: expected numbers in parentheses as the data of 'A'"),
        (A + "potential (A) { data = (normal(0, 1)); }", "2:1: expected a probability of 'A', got 'normal'"),
        (A + "potential (A) { data = (1_0 0); }", "2:1: expected a probability of 'A', got '1_0'"),
        (A + "potential (A) { data = (1); }", "2:1: expected 2 probabilities of 'A', got 1"),
        (A + "potential (A) { data = (1 0) }", "2:22: 'data' is never closed by ';'"),
        (A + "potential (A) { data = (nan 0); }", "2:1: the table of 'A' has a negative probability or one that is"),
        (A + "potential (A) { data = (-1 2); }", "2:1: the table of 'A' has a negative probability"),
        (A + "potential (A) { data = (1e308 1e308); }", "2:1: a row of the table of 'A' sums to inf"),
        (A + "potential (A) { data = (.5 .6); }", "2:1: a row of the table of 'A' sums to 1.1, not to one"),
        (A + "potential (A) { data = (1 0); }\n" * 2, "3:1: variable 'A' has two potentials"),
        (A + "potential (C) { data = (1 0); }", "2:1: there is no variable 'C' for this potential"),
        (A + "potential (A | A) { data = (1 0); }", "2:1: a variable is named twice in the potential of 'A'"),
        (
            A + B + "potential (A|B) { data = (1 0 1 0); } potential (B|A) { data = (1 0 1 0); }",
            "1:1: the network has a directed cycle: 'A' -> 'B' -> 'A'",
        ),
    ],
)
def test_errors_say_where_and_what(tmp_path, text, message):
    with pytest.raises(mf.FormatError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'x.net'}:{message}")


def test_tables_cannot_claim_memory_that_the_file_does_not_warrant(tmp_path):
    names = [f"V{i}" for i in range(60)]
    text = "".join(f"node {v} {{ states = (x y); }}" for v in names)
    with pytest.raises(mf.FormatError, match="expected far more probabilities of 'V0', got 2"):
        read(tmp_path, text + f"potential (V0 | {' '.join(names[1:])}) {{ data = (0.5 0.5); }}")


def test_truncation_at_every_byte_is_a_format_error(tmp_path):
    whole = SMALL.rstrip().encode()
    for end in range(len(whole)):
        with pytest.raises(mf.FormatError, match=r"x\.net:\d+:\d+: "):
            read(tmp_path, whole[:end])


@given(data=st.data())
def test_damaged_files_give_format_errors_only(folder, data):
    error = format_error(read, folder, data.draw(damaged(SMALL.encode())))
    assert error is None or re.search(r":\d+:\d+: ", error)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 10**7,
        "(" * 10**7,
        "net {" * (2 * 10**6),
        "net { x = " + "(" * 10**7,
        "net { x = " + "(" * 10**7 + "; }",
        "net { x = " + "(" * (5 * 10**6) + ")" * (5 * 10**6) + "; }",
        A + "potential (A) { data = " + "(" * 10**7 + "1 0",
        A + "potential (A) { data = (" + "0 " * (5 * 10**6) + "); }",
        "potential (" + "A " * (5 * 10**6),
        '"' * (10**7 + 1),
        '"' + "\\" * 10**7,
        '"' + '\\"' * (5 * 10**6),
        "%" * 10**7,
        "%\n" * (5 * 10**6),
        "node A { states = (" + "x " * (5 * 10**6) + "); }",
        "net { " + "x=1;" * (5 * 10**5) + "}",
        "net { " + "x=" * (5 * 10**6) + "}",
        "class A {" * 10**6,
    ],
    ids=lambda text: text[:30] + text[-5:],
)
def test_ten_hostile_megabytes_fail_fast(tmp_path, text):
    with patience():
        assert format_error(read, tmp_path, text)
