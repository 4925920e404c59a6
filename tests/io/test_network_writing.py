"""Writing Bayesian networks: every format gives back the same network to the last bit, or says why it cannot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from markovfield.io._bif_plain import read_plain
from markovfield.io._written import _nudged
from tests.data import data_path
from tests.io.same import assert_same_network
from tests.strategies import Spec, specs

FORMATS = {
    ".bif": (mio.write_bif, mio.read_bif),
    ".xmlbif": (mio.write_xmlbif, mio.read_xmlbif),
    ".net": (mio.write_hugin, mio.read_hugin),
}
each_format = pytest.mark.parametrize("ending", FORMATS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("written")


def there_and_back(folder, net, ending):
    write, read = FORMATS[ending]
    path = folder / f"net{ending}"
    write(net, path)
    return read(path)


def coin(name="coin", states=("heads", "tails")):
    net = mf.BayesianNetwork({name: states})
    net.add_cpt(name, [], np.full(len(states), 1 / len(states)))
    return net


def test_every_reference_network_comes_back_through_every_format(folder):
    paths = sorted(data_path("bif").glob("*.bif.gz"))
    assert paths
    for path in paths:
        net = mio.read_bif(path)
        for ending in FORMATS:
            assert_same_network(net, there_and_back(folder, net, ending))


def test_reference_networks_are_written_in_the_plain_layout(folder):
    for path in sorted(data_path("bif").glob("*.bif.gz")):
        mio.write_bif(mio.read_bif(path), folder / "plain.bif")
        assert read_plain((folder / "plain.bif").read_text()) is not None, path.name


@each_format
@given(spec=specs("bayesian"))
def test_any_network_comes_back(folder, ending, spec: Spec):
    net = spec.build()
    assert_same_network(net, there_and_back(folder, net, ending), texts=True)


printable = st.text(
    st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters='"\u2028\u2029'), min_size=1
)
stripped = printable.map(str.strip).filter(bool)


@each_format
@given(
    names=st.lists(stripped, min_size=2, max_size=4, unique=True),
    states=st.lists(stripped, min_size=1, max_size=3, unique=True),
    properties=st.lists(stripped, max_size=2),
    title=st.none() | stripped.filter(lambda name: name != "unknown"),
)
@example(["net", "node"], ["states", "data"], ["label = x", "states = (a)", 'a = "b;c"'], "class")
@example(
    ["v1_", "="], ["<1", "3-4", "0.5-1.0", ">=2"], ["position = (1 2)", "x = ((1))", "y = ", "name = 3"], "network"
)
@example(["//a", "/*b"], ["//", "{a}"], ["http://x", "a % b", "{;}"], "a b")
@example(["light-on", "family out"], ["a,b", "a b"], ["a &amp; b", "<x>"], "&lt;")
def test_any_names_and_properties_come_back(folder, ending, names, states, properties, title):
    net = mf.BayesianNetwork(dict.fromkeys(names, tuple(states)))
    rng = np.random.default_rng(0)
    net.add_cpt(names[0], [], rng.dirichlet(np.ones(len(states))))
    net.add_cpt(names[1], names[:1], rng.dirichlet(np.ones(len(states)), len(states)))
    for name in names[2:]:
        net.add_cpt(name, names[:2], rng.dirichlet(np.ones(len(states)), (len(states), len(states))))
    net.name = title
    net.properties = {None: tuple(properties), names[1]: tuple(reversed(properties))}
    assert_same_network(net, there_and_back(folder, net, ending))


@each_format
def test_compressed_and_overwritten(tmp_path, ending):
    write, read = FORMATS[ending]
    for packed, magic in ((".gz", b"\x1f\x8b"), (".xz", b"\xfd7zXZ")):
        path = tmp_path / f"net{ending}{packed}"
        path.write_text("old")
        write(coin(), path)
        assert path.read_bytes().startswith(magic)
        assert_same_network(coin(), read(path))
    assert len(list(tmp_path.iterdir())) == 2  # no temporary file is left


@each_format
def test_a_failed_write_leaves_the_old_file(tmp_path, ending):
    path = tmp_path / f"net{ending}"
    path.write_text("old")
    net = mf.BayesianNetwork({"A": 2})
    with pytest.raises(mf.ModelError, match="variable 'A' has no conditional probability table"):
        FORMATS[ending][0](net, path)
    assert path.read_text() == "old"


@each_format
def test_noisy_or_is_written_as_its_table(tmp_path, ending):
    net = mf.BayesianNetwork(dict.fromkeys("abc", 2))
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt("b", [], [0.1, 0.9])
    net.add_noisy_or("c", ["a", "b"], [0.3, 0.7], leak=0.1)
    assert_same_network(net, there_and_back(tmp_path, net, ending), texts=True)


@each_format
def test_a_wide_noisy_or_is_refused(tmp_path, ending):
    parents = [f"p{i}" for i in range(30)]
    net = mf.BayesianNetwork(dict.fromkeys([*parents, "c"], 2))
    for p in parents:
        net.add_cpt(p, [], [0.5, 0.5])
    net.add_noisy_or("c", parents, [0.5] * 30)
    with pytest.raises(mf.ModelError, match="noisy-max of 'c' would be written as a table of 2147483648 cells"):
        FORMATS[ending][0](net, tmp_path / "wide")
    assert not list(tmp_path.iterdir())


@each_format
def test_names_that_cannot_be_told_apart_are_refused(tmp_path, ending):
    write = FORMATS[ending][0]
    net = mf.BayesianNetwork({1: 2, "1": 2})
    for v in net.variables:
        net.add_cpt(v, [], [0.5, 0.5])
    with pytest.raises(mf.ModelError, match="the variables 1 and '1' would both be written as '1'"):
        write(net, tmp_path / "x")
    with pytest.raises(mf.ModelError, match="the states of 'coin' 1 and '1' would both be written as '1'"):
        write(coin(states=(1, "1")), tmp_path / "x")
    with pytest.raises(mf.ModelError, match="UTF-8"):
        write(coin("\ud800"), tmp_path / "x")
    with pytest.raises(mf.ModelError, match="empty"):
        write(coin(""), tmp_path / "x")
    with pytest.raises(mf.ModelError, match="empty"):
        write(coin(states=("", "x")), tmp_path / "x")
    with pytest.raises(mf.ModelError, match="takes a BayesianNetwork, got MarkovNetwork"):
        write(mf.MarkovNetwork({"A": 2}), tmp_path / "x")


def test_what_one_format_cannot_hold_is_refused(tmp_path):
    for name in ('a"b', "a\nb"):
        with pytest.raises(mf.ModelError, match="cannot be written to BIF: it is empty, or has a quote"):
            mio.write_bif(coin(name), tmp_path / "x")
        assert there_and_back(tmp_path, coin(name), ".net").variables == (name,)
        assert there_and_back(tmp_path, coin(name), ".xmlbif").variables == (name,)
    net = coin()
    for text in ('a "b', 'a "b;" c', '"a"', "a\nb", 'http://"a"'):
        net.properties = {"coin": (text,)}
        if text == 'a "b;" c':
            assert there_and_back(tmp_path, net, ".bif").properties == net.properties
        else:
            with pytest.raises(mf.ModelError, match=r"property .* cannot be written to BIF"):
                mio.write_bif(net, tmp_path / "x")
        for ending in (".net", ".xmlbif"):
            assert there_and_back(tmp_path, net, ending).properties == net.properties
    with pytest.raises(mf.ModelError, match="it is empty or has spaces around it"):
        mio.write_xmlbif(coin(" x"), tmp_path / "x")
    with pytest.raises(mf.ModelError, match=r"XML does not allow '\\x00'"):
        mio.write_xmlbif(coin("a\0b"), tmp_path / "x")


@given(width=st.integers(1, 60), seed=st.integers(0, 2**32 - 1), sharp=st.floats(0.05, 5))
def test_rows_are_written_so_that_rescaling_gives_them_back(width, seed, sharp):
    rows = np.random.default_rng(seed).dirichlet(np.full(width, sharp), 20)
    rows /= rows.sum(axis=1, keepdims=True)
    nudged = _nudged(rows)
    np.testing.assert_array_equal(nudged / nudged.sum(axis=1, keepdims=True), rows)
    np.testing.assert_allclose(nudged, rows, rtol=1e-13)


def test_one_reader_and_one_writer_for_all_endings(tmp_path):
    net = coin()
    for name in ("a.bif", "a.BIF.gz", "a.xmlbif", "a.bifxml.xz", "a.xml", "a.net", "a.mfz"):
        mio.write_network(net, tmp_path / name)
        np.testing.assert_array_equal(mio.read_network(tmp_path / name).cpt("coin"), [0.5, 0.5])
    mio.write_network(mf.MarkovNetwork({0: 2}).compile(), tmp_path / "a.uai")
    assert isinstance(mio.read_network(tmp_path / "a.uai"), mf.FactorGraph)
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(mf.FormatError, match=r"a\.txt:1:1: this is no model: expected a \.bif"):
        mio.read_network(tmp_path / "a.txt")
    with pytest.raises(mf.ModelError, match=r"models are written to names that end in \.bif.*got .*a\.txt"):
        mio.write_network(net, tmp_path / "a.txt")
