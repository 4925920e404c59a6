"""The plain layout of BIF: the fast reader and the careful one agree, bit for bit, or the fast one declines."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from markovfield.io._bif_careful import CarefulReader
from markovfield.io._bif_plain import read_plain
from markovfield.text_files import Source, read_source
from tests.data import data_path
from tests.io.damage import damaged
from tests.io.same import assert_same_network

PLAIN = """network weather {
}
variable A {
  type discrete [ 2 ] { <5, >=5 };
}
variable B {
  type discrete [ 3 ] { a/b, -1.5, c_+ };
}
variable C {
  type discrete [ 2 ] { no, yes };
}
probability ( A ) {
  table 0.25, 0.75;
}
probability ( C | B, A ) {
  (a/b, <5) 0.1, 0.9;
  (-1.5, <5) 0.2, 0.8;
  (c_+, <5) 0.3, 0.7;
  (a/b, >=5) 0.4, 0.6;
  (-1.5, >=5) 0.333, 0.667;
  (c_+, >=5) 0.3334, 0.66659;
}
probability ( B | A ) {
  (<5) 0.1, 0.2, 0.7;
  (>=5) 1, 0, 0;
}
"""


def careful(text: str | bytes) -> mf.BayesianNetwork:
    return CarefulReader(Source("net.bif", text if isinstance(text, bytes) else text.encode())).read()


def test_every_reference_network_is_plain_and_read_alike_by_both():
    for path in sorted(data_path("bif").glob("*.bif.gz")):
        source = read_source(path)
        net = read_plain(source.text())
        assert net is not None, path.name
        assert_same_network(net, CarefulReader(source).read())


def test_tables_are_those_of_add_cpt():
    net = read_plain(PLAIN)
    again = mf.BayesianNetwork({v: net.states(v) for v in net.variables})
    again.add_cpt("A", [], [0.25, 0.75])
    again.add_cpt("B", ["A"], [[0.1, 0.2, 0.7], [1, 0, 0]])
    rows = [[0.1, 0.9], [0.4, 0.6], [0.2, 0.8], [0.333, 0.667], [0.3, 0.7], [0.3334, 0.66659]]
    again.add_cpt("C", ["B", "A"], np.reshape(rows, (3, 2, 2)))
    again.name = "weather"
    assert_same_network(net, again)
    assert net.cpt("C").flags.c_contiguous


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weather", "unknown"),
        ("network weather {\n}\n", ""),
        (", ", ","),
        ("(a/b, <5)", "( a/b ,  <5 )"),
        ("0.1, 0.9", "0.1 0.9"),
        ("[ 2 ]", "[2]"),
        ("discrete [", "discrete["),
        ("probability ( A )", "probability(A)"),
        ("( A )", "( A | )"),
        ("C | B, A", "C B A"),
        ("\n", "\r\n"),
        ("0.25, 0.75", "2.5e-1, +.75"),
        ("0.25, 0.75", "-0.0, 1"),
        ("0.25, 0.75", "0.251, 0.753"),
    ],
)
def test_variants_are_read_alike_by_both(old, new):
    text = PLAIN.replace(old, new)
    assert text != PLAIN
    net = read_plain(text)
    assert net is not None
    assert_same_network(net, careful(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.25, 0.75", "0.25, 0.7"),
        ("0.25, 0.75", "1_0, 0"),
        ("0.25, 0.75", "nan, 1"),
        ("0.25, 0.75", "-1, 2"),
        ("0.25, 0.75", "1e308, 1e308"),
        ("0.25, 0.75", "0.25, 0.75, 0"),
        ("table 0.25, 0.75;", "table 0.25, 0.75; table 0.25, 0.75;"),
        ("table 0.25, 0.75;", "table 0.25, 0.75"),
        ("(<5) 0.1, 0.2, 0.7;\n", "(<5) 0.1, 0.2, 0.7\n"),
        ("(<5) 0.1, 0.2, 0.7;\n  (>=5) 1, 0, 0;", "(<5) 0.1, 0.2, 0.7\n  (>=5) ; 1, 0, 0;"),
        ("(<5) 0.1, 0.2, 0.7;\n  (>=5) 1, 0, 0;", "(<5) 0.1, 0.2;\n  (>=5) 0.7, 1, 0, 0;"),
        ("(<5) 0.1, 0.2, 0.7;", "(<5) 0.1, 0.2, 0.7 -1;"),
        ("(>=5) 1, 0, 0;", "(<5) 1, 0, 0;"),
        ("(>=5) 1, 0, 0;", ""),
        ("(>=5) 1, 0, 0;", "(>5) 1, 0, 0;"),
        ("( B | A )", "( B | B )"),
        ("( B | A )", "( B | D )"),
        ("( A )", "( A | C )"),
        ("( B | A )", "( A | A )"),
        ("variable C {", "variable B {"),
        ("{ no, yes }", "{ no, no }"),
        ("{ no, yes }", "{ no, }"),
        ("discrete [ 2 ]", "discrete [ 3 ]"),
        ("network weather {\n}", "network a { } network b { }"),
        ("network weather {\n}", "oops"),
    ],
)
def test_what_is_wrong_is_left_to_the_careful_reader(old, new):
    text = PLAIN.replace(old, new)
    assert text != PLAIN
    assert read_plain(text) is None
    with pytest.raises(mf.FormatError):
        careful(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("network weather {\n}", 'network "fair weather" { }'),
        ("variable A {", "variable A { // the first"),
        ("variable A {", "variable A { property x;"),
        ("table 0.25, 0.75;", "table 0.25, 0.75; property x;"),
        ("(>=5) 1, 0, 0;", "default 1, 0, 0;"),
        ("(<5) 0.1, 0.2, 0.7;\n  (>=5) 1, 0, 0;", "table 0.1, 1, 0.2, 0, 0.7, 0;"),
    ],
)
def test_what_is_not_plain_is_left_to_the_careful_reader(old, new):
    text = PLAIN.replace(old, new)
    assert text != PLAIN
    assert read_plain(text) is None
    for v in "ABC":
        np.testing.assert_array_equal(careful(text).cpt(v), read_plain(PLAIN).cpt(v))


@given(data=st.data())
def test_a_damaged_text_is_read_alike_or_declined(data):
    text = data.draw(damaged(PLAIN.encode())).decode(errors="replace")
    net = read_plain(text)
    if net is not None:
        assert_same_network(net, careful(text))


@given(data=st.data())
def test_shuffled_blocks_and_rows_are_read_alike(data):
    names = data.draw(
        st.lists(st.from_regex(r"[a-z<>=./+-]{1,4}", fullmatch=True), min_size=1, max_size=5, unique=True)
    )
    names = [n for n in names if "//" not in n] or ["a"]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    blocks, cards = [], rng.integers(1, 4, len(names))
    for v, name in enumerate(names):
        blocks.append(
            f"variable {name} {{ type discrete [ {cards[v]} ] {{ {', '.join(map(str, range(cards[v])))} }}; }}"
        )
        parents = [int(p) for p in rng.permutation(v)[:2]]
        rows = []
        for states in np.ndindex(*cards[parents]):
            numbers = rng.dirichlet(np.ones(cards[v])) * rng.uniform(0.995, 1.005)
            key = f"({', '.join(map(str, states))})" if parents else "table"
            rows.append(f"{key} {', '.join(map(repr, numbers.tolist()))};")
        given_parents = " | " + ", ".join(names[p] for p in parents) if parents else ""
        blocks.append(f"probability ( {name}{given_parents} ) {{ {' '.join(rng.permutation(rows))} }}")
    text = "\n".join(rng.permutation(blocks))
    net = read_plain(text)
    assert net is not None
    assert_same_network(net, careful(text))


def test_a_row_count_is_never_believed_before_it_is_checked():
    names = [f"V{i}" for i in range(60)]
    text = "".join(f"variable {v} {{ type discrete [ 2 ] {{ x, y }}; }}\n" for v in names)
    text += "".join(f"probability ( {v} ) {{ table 0.5, 0.5; }}\n" for v in names[1:])
    assert read_plain(text + f"probability ( V0 | {', '.join(names[1:])} ) {{ (x) 0.5, 0.5; }}") is None


def test_read_time_is_near_linear_in_the_size_of_the_file(tmp_path):
    def seconds(n: int) -> float:
        rows = "".join(f"  ({s}) 0.1{s}, 0.21, 0.6{9 - s};\n" for s in range(10))
        states = ", ".join(map(str, range(10)))
        text = (
            f"variable R {{ type discrete [ 10 ] {{ {states} }}; }} probability ( R ) {{ table {'0.1, ' * 9}0.1; }}\n"
        )
        for i in range(n):
            text += f"variable V{i} {{ type discrete [ 3 ] {{ a, b, c }}; }}\nprobability ( V{i} | R ) {{\n{rows}}}\n"
        path = tmp_path / f"{n}.bif"
        path.write_text(text)
        best = np.inf
        for _ in range(5):
            start = time.process_time()
            mio.read_bif(path)
            best = min(best, time.process_time() - start)
        return best

    seconds(100)
    assert seconds(4000) / seconds(1000) < 9  # four times the size; quadratic time would be sixteen times
