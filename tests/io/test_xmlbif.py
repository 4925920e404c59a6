"""XMLBIF: the forms other programs write, and nothing but FormatError for bad files."""

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

SMALL = """<?xml version="1.0" encoding="UTF-8"?>
<!-- the usual DTD -->
<!DOCTYPE BIF [
    <!ELEMENT BIF ( NETWORK )*>
          <!ATTLIST BIF VERSION CDATA #REQUIRED>
    <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
    <!ELEMENT NAME (#PCDATA)>
    <!ELEMENT VARIABLE ( NAME, ( OUTCOME |  PROPERTY )* ) >
          <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
    <!ELEMENT TABLE (#PCDATA)>
]>
<BIF VERSION="0.3" xmlns="http://www.cs.ubc.ca/labs/lci/fopi/ve/XMLBIFv0_3">
<NETWORK>
<NAME>Dog &amp; family</NAME>
<PROPERTY>author = someone</PROPERTY>
<VARIABLE TYPE="nature">
    <NAME> light-on </NAME>
    <OUTCOME>true</OUTCOME>
    <OUTCOME>fa lse</OUTCOME>
    <PROPERTY>position = (73, 165)</PROPERTY>
</VARIABLE>
<DEFINITION>
    <FOR>light-on</FOR>
    <GIVEN>family</GIVEN><GIVEN>size</GIVEN>
    <TABLE><!-- order: family, size, light-on -->
      0.6 0.4<!--comment-->0.05 0.95
      1e-1 .9 <![CDATA[0.2 0.8]]>
      0.3 0.7 0 1
    </TABLE>
    <PROPERTY>measured</PROPERTY>
</DEFINITION>
<VARIABLE><NAME>family</NAME><OUTCOME>&lt;1</OUTCOME><OUTCOME>3-4</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature">
    <NAME>size</NAME><OUTCOME>1</OUTCOME><OUTCOME>2</OUTCOME><OUTCOME>3</OUTCOME><PROPERTY/>
</VARIABLE>
<DEFINITION><FOR>family</FOR><TABLE>0.15 0.85</TABLE></DEFINITION>
<DEFINITION><FOR>size</FOR><TABLE>0.2 0.3 0.5</TABLE></DEFINITION>
</NETWORK>
</BIF>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("xmlbif")


def read(folder, text):
    path = folder / "net.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return mio.read_xmlbif(path)


def wrap(inside: str) -> str:
    return f"<BIF><NETWORK><NAME>n</NAME>\n{inside}</NETWORK></BIF>"


def variable(name: str, *states: str) -> str:
    return f"<VARIABLE><NAME>{name}</NAME>{''.join(f'<OUTCOME>{s}</OUTCOME>' for s in states)}</VARIABLE>\n"


def definition(family: str, table: str) -> str:
    child, *parents = family.split()
    above = "".join(f"<GIVEN>{p}</GIVEN>" for p in parents)
    return f"<DEFINITION><FOR>{child}</FOR>{above}<TABLE>{table}</TABLE></DEFINITION>\n"


def test_small_network(tmp_path):
    net = read(tmp_path, SMALL)
    assert net.variables == ("light-on", "family", "size")
    assert net.states("family") == ("<1", "3-4")
    assert net.states("light-on") == ("true", "fa lse")
    assert net.parents("light-on") == ("family", "size")
    np.testing.assert_allclose(
        net.cpt("light-on"), [[[0.6, 0.4], [0.05, 0.95], [0.1, 0.9]], [[0.2, 0.8], [0.3, 0.7], [0, 1]]]
    )
    assert net.name == "Dog & family"
    assert net.properties == {None: ("author = someone",), "light-on": ("position = (73, 165)", "measured")}


def test_encodings_and_byte_order_marks(tmp_path):
    text = wrap(variable("é", "ß") + definition("é", "1"))
    assert read(tmp_path, "\ufeff" + text).variables == ("é",)
    for encoding in ("iso-8859-1", "utf-16"):
        declared = f'<?xml version="1.0" encoding="{encoding}"?>{text}'
        assert read(tmp_path, declared.encode(encoding)).variables == ("é",)
    with pytest.raises(mf.FormatError, match=r":1:1: the encoding of this XML cannot be read"):
        read(tmp_path, f'<?xml version="1.0" encoding="big5"?>{text}')
    with pytest.raises(mf.FormatError, match=r":1:\d+: .*(encoding|well-formed)"):
        read(tmp_path, f'<?xml version="1.0" encoding="nonsense"?>{text}')
    with pytest.raises(mf.FormatError, match=r":2:\d+: this is not well-formed XML: not well-formed \(invalid token\)"):
        read(tmp_path, text.encode("iso-8859-1"))


A, B = variable("A", "x", "y"), variable("B", "p", "q")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: this is not well-formed XML: no element found"),
        ("hello", "1:1: this is not well-formed XML: syntax error"),
        ("<BIF>", "1:6: this is not well-formed XML: no element found"),
        ("<BIF></NETWORK>", "1:8: this is not well-formed XML: mismatched tag"),
        ("<html/>", "1:1: unexpected element 'html': at the top there may be only BIF"),
        ("<BIF><VARIABLE/></BIF>", "1:6: unexpected element 'VARIABLE': in BIF there may be only NETWORK"),
        (wrap("<NAME><b/></NAME>"), "2:7: unexpected element 'b': in NAME there may be no element"),
        ("<BIF/>", "1:7: the file declares no variable"),
        (wrap("<NAME>m</NAME>"), "2:1: this is the second NAME of the network"),
        ("<BIF><NETWORK/><NETWORK/></BIF>", "1:16: this is the second NETWORK of the file"),
        (wrap("<VARIABLE/>"), "2:1: a VARIABLE holds one NAME, and this one holds 0"),
        (wrap("<VARIABLE><NAME/></VARIABLE>"), "2:1: this variable has no name"),
        (wrap("<VARIABLE><NAME>A</NAME></VARIABLE>"), "2:1: variable 'A' has no states"),
        (wrap(variable("A", "x", "x")), "2:1: state 'x' of variable 'A' is listed twice"),
        (wrap(A + A), "3:1: variable 'A' is declared twice"),
        (
            wrap('<VARIABLE TYPE="decision"><NAME>A</NAME></VARIABLE>'),
            "2:1: a variable of type 'decision' has no place",
        ),
        (wrap(A), "3:17: variable 'A' has no DEFINITION"),
        (wrap(A + definition("A", "0.5 0.5") * 2), "4:1: variable 'A' has two DEFINITIONs"),
        (wrap(A + definition("C", "1")), "3:1: there is no variable 'C' for this DEFINITION"),
        (wrap(A + definition("A C", "1")), "3:1: there is no variable 'C' for this DEFINITION"),
        (wrap(A + definition("A A", "1")), "3:1: a variable is named twice in the DEFINITION of 'A'"),
        (wrap(A + "<DEFINITION><FOR>A</FOR></DEFINITION>"), "3:1: a DEFINITION holds one TABLE, and this one holds 0"),
        (wrap(A + "<DEFINITION><FOR>A</FOR><FOR>B</FOR></DEFINITION>"), "3:1: a DEFINITION holds one FOR"),
        (wrap(A + definition("A", "0.5")), "3:1: expected 2 probabilities of 'A', got 1"),
        (wrap(A + definition("A", "0.5 o")), "3:1: expected a probability of 'A', got 'o'"),
        (wrap(A + definition("A", "1_0 0")), "3:1: expected a probability of 'A', got '1_0'"),
        (wrap(A + definition("A", "nan 0")), "3:1: the table of 'A' has a negative probability or one that is not"),
        (wrap(A + definition("A", "-1 2")), "3:1: the table of 'A' has a negative probability"),
        (wrap(A + definition("A", "1e308 1e308")), "3:1: a row of the table of 'A' sums to inf"),
        (wrap(A + definition("A", "0.5 0.6")), "3:1: a row of the table of 'A' sums to 1.1, not to one"),
        (
            wrap(A + B + definition("A B", "1 0 1 0") + definition("B A", "1 0 1 0")),
            "1:1: the network has a directed cycle: 'A' -> 'B' -> 'A'",
        ),
        ("<BIF>&x;</BIF>", "1:6: this is not well-formed XML: undefined entity"),
        ('<!DOCTYPE BIF SYSTEM "x.dtd"><BIF>&x;</BIF>', "1:35: the file uses the XML entity 'x'"),
        ('<!DOCTYPE BIF [<!ENTITY lol "lol">]><BIF/>', "1:29: the file declares the XML entity 'lol'"),
        ('<!DOCTYPE BIF [<!ENTITY % lol "lol">]><BIF/>', "1:31: the file declares the XML entity 'lol'"),
        ('<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]><BIF>&x;</BIF>', "1:54: the file declares the XML"),
    ],
)
def test_errors_say_where_and_what(tmp_path, text, message):
    with pytest.raises(mf.FormatError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'net.xml'}:{message}")


def test_tables_cannot_claim_memory_that_the_file_does_not_warrant(tmp_path):
    names = [f"V{i}" for i in range(70)]
    text = "".join(variable(v, "x", "y") for v in names) + definition(" ".join(names), "0.5 0.5")
    with pytest.raises(mf.FormatError, match="expected far more probabilities of 'V0', got 2"):
        read(tmp_path, wrap(text))
    text = "".join(variable(v, "x") for v in names) + definition(" ".join(names), "1")
    with pytest.raises(mf.FormatError, match="variable 'V0' has 69 parents, more than NumPy has axes"):
        read(tmp_path, wrap(text))


def test_truncation_at_every_byte_is_a_format_error(tmp_path):
    whole = SMALL.rstrip().encode()
    for end in range(len(whole)):
        with pytest.raises(mf.FormatError, match=r"net\.xml:\d+:\d+: "):
            read(tmp_path, whole[:end])


@given(data=st.data())
def test_damaged_files_give_format_errors_only(folder, data):
    error = format_error(read, folder, data.draw(damaged(SMALL.encode())))
    assert error is None or re.search(r":\d+:\d+: ", error)


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * (10**7 // 3),
        "<BIF>" * (2 * 10**6),
        "<BIF><NETWORK>" + "<VARIABLE>" * 10**6,
        "<" * 10**7,
        "<BIF " + "a='' " * 10**6,
        "<!-- " + "-" * 10**7,
        "<BIF><NETWORK><NAME>" + "x" * 10**7,
        "<BIF><NETWORK>" + "<NAME>x</NAME>" * (5 * 10**5),
        "<!DOCTYPE BIF [" + "<!ELEMENT a (" + "(" * 10**7,
        "<!DOCTYPE BIF [" + "<!ELEMENT BIF (a)>" * (5 * 10**5),
        wrap(A + "<DEFINITION><FOR>A</FOR><TABLE>" + "0 " * (5 * 10**6) + "</TABLE></DEFINITION>"),
        wrap("<VARIABLE><NAME>A</NAME>" + "<OUTCOME>x</OUTCOME>" * (5 * 10**5) + "</VARIABLE>"),
    ],
    ids=lambda text: text[:30] + text[-5:],
)
def test_ten_hostile_megabytes_fail_fast(tmp_path, text):
    with patience():
        assert format_error(read, tmp_path, text)
