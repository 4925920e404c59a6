"""Files of columns: the public corpora, round trips, and what is wrong in a file."""

from __future__ import annotations

import gzip
import lzma
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import FormatError, ModelError
from markovfield.io.conll import read_conll, read_conllu, read_dependencies, write_conll
from markovfield.sequence.text.sequences import ColumnCorpus
from tests.data import data_path
from tests.io.damage import damaged, format_error


@pytest.mark.parametrize(
    ("parts", "n_sequences", "n_tokens", "distinct"),
    [
        (("conll2000", "train.txt.gz"), 8936, 211727, [44, 22]),
        (("conll2000", "test.txt.gz"), 2012, 47377, [None, 19]),
        (("conll2002", "esp.train.gz"), 8323, 264715, [None, 9]),
        (("conll2002", "esp.testa.gz"), 1915, 52923, [None, 9]),
        (("conll2002", "esp.testb.gz"), 1517, 51533, [None, 9]),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, tuple) else None,
)
def test_public_corpora(parts, n_sequences, n_tokens, distinct):
    corpus = read_conll(data_path(*parts), ["word", "pos", "label"])
    assert (corpus.n_sequences, corpus.n_tokens) == (n_sequences, n_tokens)
    for texts, expected in zip(corpus.texts[1:], distinct, strict=True):
        assert expected is None or len(texts) == expected
    assert not any(text.strip() != text or not text for texts in corpus.texts for text in texts)


@pytest.mark.parametrize(("part", "n_sequences", "n_words"), [("dev", 2001, 25147), ("test", 2077, 25094)])
def test_universal_dependencies(part, n_sequences, n_words):
    corpus = read_conllu(data_path("ud_ewt", f"en_ewt-ud-{part}.conllu.gz"), ["form", "upos"])
    assert (corpus.n_sequences, corpus.n_tokens) == (n_sequences, n_words)
    assert len(corpus.texts[1]) == 17


def read(tmp_path, text: str | bytes, **settings):
    path = tmp_path / "file.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_conll(path, **settings)


@pytest.mark.parametrize(
    "text",
    [
        "a b\nc d\n\ne f\n",
        "a b\nc d\n\ne f",
        "\n\na b\nc d\n  \n\t\n\ne f\n\n\n",
        "a\tb\nc\td\n\ne\tf\n",
        "a  b \n c\td\n\ne f\n",
        "a b\r\nc d\r\n\r\ne f\r\n",
        "\ufeffa b\nc d\n\ne f\n",
    ],
)
def test_layouts(tmp_path, text):
    assert list(read(tmp_path, text)) == [[("a", "b"), ("c", "d")], [("e", "f")]]


def test_spaces_that_are_part_of_a_word(tmp_path):
    assert list(read(tmp_path, "a\u00a0b c\nd\u2028e f\x85\n")) == [[("a\u00a0b", "c"), ("d\u2028e", "f\x85")]]
    assert list(read(tmp_path, "New York\tN\nis\tV\n")) == [[("New York", "N"), ("is", "V")]]
    assert list(read(tmp_path, "a|b\n", delimiter="|")) == [[("a", "b")]]


def test_documents_and_comments(tmp_path):
    text = "-DOCSTART- O\n\na b\n# c\n-DOCSTART- O\n\n"
    assert list(read(tmp_path, text)) == [[("a", "b"), ("#", "c")]]
    assert list(read(tmp_path, text, comments="#")) == [[("a", "b")]]
    assert len(read(tmp_path, text, document_start=None)[0]) == 1
    assert read(tmp_path, text, document_start=None).n_sequences == 2


def test_encodings(tmp_path):
    raw = "año O\n".encode("latin-1")
    assert read(tmp_path, raw, encoding="latin-1")[0] == [("año", "O")]
    with pytest.raises(FormatError, match=r"file.txt:1:2: this byte is not UTF-8 text"):
        read(tmp_path, raw)
    with pytest.raises(FormatError, match=r"file.txt:1:2: this byte is not ascii text"):
        read(tmp_path, "año O\n", encoding="ascii")


@pytest.mark.parametrize("text", ["", "\n\n", "# x\n"])
def test_empty_files(tmp_path, text):
    corpus = read(tmp_path, text, columns=["word", "tag"], comments="#")
    assert corpus.n_sequences == corpus.n_tokens == 0
    assert corpus["tag"] == []
    assert read(tmp_path, "", document_start=None).n_sequences == 0


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a b\nc d\n\ne\n", {}, "file.txt:4:1: expected 2 columns, got 1"),
        ("a b\nc d e\n", {}, "file.txt:2:1: expected 2 columns, got 3"),
        ("a b\n", {"columns": ["x"]}, "file.txt:1:1: expected 1 columns, got 2"),
        ("é b\n# x\na\tb\tc\n", {"comments": "#"}, "file.txt:3:1: expected 2 columns, got 3"),
        ("a\tb\nc d\n", {}, "file.txt:2:1: expected 2 columns, got 1"),
    ],
)
def test_ragged_files(tmp_path, text, settings, message):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, text, **settings)


word = st.text(st.characters(exclude_characters=" \t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=3)


@given(st.lists(st.lists(st.tuples(word, word), min_size=1, max_size=3), max_size=4), st.sampled_from([" ", "\t"]))
def test_round_trip(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("conll") / "x.txt"
    write_conll(path, rows, delimiter=delimiter)
    if not path.read_bytes().startswith(b"\xef\xbb\xbf"):  # a byte order mark is no part of the text
        again = read_conll(path, delimiter=delimiter, document_start=None)
        assert list(again) == rows


@pytest.mark.parametrize(("name", "opener"), [("x.gz", gzip.open), ("x.xz", lzma.open), ("x", open)])
def test_compressed(tmp_path, name, opener):
    rows = [[("año", "B-X")] * 3] * 1500
    write_conll(tmp_path / name, ColumnCorpus.from_rows(rows))
    with opener(tmp_path / name, "rb") as stream:
        assert stream.read().decode() == "año B-X\naño B-X\naño B-X\n\n" * 1500
    assert list(read_conll(tmp_path / name)) == rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[("a b", "c")]], "the text 'a b' of column '0' would not be read back"),
        ([[("a", "")]], "the text '' of column '1'"),
        ([[("a\tb", "c")]], "would not be read back"),
        ([[("a", "c\n")]], "would not be read back"),
        ([[("a", "c")], []], "sequence 1 has no tokens"),
    ],
)
def test_what_cannot_be_written(tmp_path, rows, message):
    path = tmp_path / "x.txt"
    path.write_text("kept")
    with pytest.raises(ModelError, match=message):
        write_conll(path, rows)
    assert path.read_text() == "kept"


@given(st.data())
def test_damaged_files_give_format_errors_or_corpora(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damage") / "x"
    text = (
        "a b c\nd e f\n\n-DOCSTART- x y\n\ng h i\n" if data.draw(st.booleans()) else conllu("1-2 a", "1 b", "", "1 c")
    )
    path.write_bytes(data.draw(damaged(text.encode())))
    for read_it in (read_conll, read_conllu):
        message = format_error(read_it, path)
        assert message is None or re.match(re.escape(str(path)) + r":\d+:\d+: ", message)


def conllu(*rows: str) -> str:
    return "".join(("\t".join([*row.split(), *"_" * (10 - len(row.split()))]) if row else "") + "\n" for row in rows)


def test_conllu(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(
        "# text = a\n" + conllu("1-2 vamonos", "1 vamos", "2 nos", "2.1 x", "") + "# b\n" + conllu("1 ya", "")
    )
    corpus = read_conllu(path, ["form", "id"])
    assert list(corpus) == [[("vamos", "1"), ("nos", "2")], [("ya", "1")]]
    assert read_conllu(path).names[1] == "form"
    path.write_text(conllu("1 a", "x b"))
    with pytest.raises(FormatError, match=re.escape(f"{path}:2:1: expected an id such as 3, 3-4 or 3.1, got 'x'")):
        read_conllu(path)
    path.write_text(conllu("1 a") + "2\tb\n")
    with pytest.raises(FormatError, match="2:1: expected 10 columns, got 2"):
        read_conllu(path)
    with pytest.raises(ModelError, match=r"the columns are id, form, .* got 'pos'"):
        read_conllu(path, ["pos"])


def test_dependency_trees():
    X, y = read_dependencies(data_path("ptb_sample", "dependency_treebank.dp.gz"))
    assert (len(X), sum(map(len, X))) == (3914, 94084)
    assert X[0][:2] == [("Pierre", "NNP"), ("Vinken", "NNP")]
    assert y[0][:3] == [2, 8, 2]
    path = data_path("ud_ewt", "en_ewt-ud-dev.conllu.gz")
    X, y = read_dependencies(path, tag="xpos")
    assert (len(X), sum(map(len, X))) == (2001, 25147)
    assert (X[0][2], y[0][2]) == (("AP", "NNP"), (4, "obl"))
    assert read_dependencies(path)[0][0][2] == ("AP", "PROPN")
    assert y[1][0] == (2, "nmod:desc")
    assert read_dependencies(path, subtypes=False).trees[1][0] == (2, "nmod")


def test_dependency_trees_as_written(tmp_path):
    path = tmp_path / "a.dp"
    path.write_text("#\t#\t2\n-DOCSTART-\tNN\t0\n\n\nGo\tVB\t0\n")
    assert read_dependencies(path) == ([[("#", "#"), ("-DOCSTART-", "NN")], [("Go", "VB")]], [[2, 0], [0]])
    path.write_text("")
    assert read_dependencies(path) == ([], [])
    path.write_text("Go\tVB\t0\n\nRain\tNN\ttwo\nfell\tVBD\t0\n")
    with pytest.raises(FormatError, match=r"a\.dp:3:1: expected the number of a head, got 'two'"):
        read_dependencies(path)
    path.write_text("Go\tVB\t0\nRain\tNN\n")
    with pytest.raises(FormatError, match=r"a\.dp:2:1: expected 3 columns, got 2"):
        read_dependencies(path)
    line = "{0}\tx\t_\tX\tY\t_\t{1}\tdep\t_\t_\n".format
    path.write_text("# text\n" + line("1-2", "_") + line(1, 0) + line(2, "_"))
    with pytest.raises(FormatError, match=r"a\.dp:4:1: expected the number of a head, got '_'"):
        read_dependencies(path)
    with pytest.raises(ModelError, match="tag must be 'upos' or 'xpos', got 'pos'"):
        read_dependencies(path, tag="pos")
