"""Words from text, sentence pairs and links in files: what is read, what is written, what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.alignment import GoldLinks, normalised, tokenised
from markovfield.alignment.formats import links_of_text, text_of_links
from tests.data import data_path


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("Is it so?", "", "Is it so ?"),
        ("The U.S. paid $1,000.50, Mr. Roy.", "", "The U.S. paid $ 1,000.50 , Mr. Roy ."),
        ("It is 1.13 p.m.", "", "It is 1.13 p.m."),
        ("full-time (work)", "", "full - time ( work )"),
        ("l'effet qu'ont les lois", "fr", "le effet que ont les lois"),
        ("Aujourd'hui, j'ai du pain.", "fr", "Aujourd' hui , je ai de le pain ."),
        ("Des lois aux pays", "fr", "De les lois à les pays"),
        ("l'effet du", "", "l ' effet du"),
        ("", "", ""),
    ],
)
def test_words(text: str, language: str, words: str) -> None:
    assert tokenised(text, language) == words.split()


def test_letters() -> None:
    assert [normalised(word) for word in ("ÉTÉ", "Garçon", "œuvre", "Mr.")] == ["ete", "garcon", "oeuvre", "mr."]


def test_links_as_text() -> None:
    rng = np.random.default_rng(0)
    for format in ("wa", "pharaoh"):
        given = []
        for _ in range(20):
            cells = {(int(i), int(j)) for i, j in rng.integers(0, 5, (rng.integers(0, 8), 2))}
            sure = frozenset(cell for cell in cells if rng.random() < 0.5)
            given.append(GoldLinks(sure, frozenset(cells) - sure))
        text = "".join(text_of_links(given, format))
        assert links_of_text(text, "x", format=format, n_pairs=20) == given


def test_columns_of_the_shared_task() -> None:
    text = "0002 1 2\n0001 1 1 S\n\n0001 2 1 P 0.5\n1 0 3 S\n"
    assert links_of_text(text, "x") == [
        GoldLinks(frozenset({(0, 0)}), frozenset({(1, 0)})),
        GoldLinks(frozenset({(0, 1)})),
    ]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("1 1 1 S\n1 1 X\n", {}, r"^x:2:1: expected the number of a pair, .* found '1 1 X'"),
        ("1 1 1 S\n0 1 1 S\n", {}, r"^x:2:1: expected the number of a pair"),
        ("0-0\n0-0 1-b\n", {}, r"^x:2:5: expected a link such as 0-1, found '1-b'"),
        ("0-0\n1-1\n", {"n_pairs": 1}, r"^x:2:1: there are links of 2 pairs, expected 1"),
        ("0-0\n", {"n_pairs": 2}, r"^x:1:1: there are lines for 1 pairs, expected 2"),
        ("7 1 1 S\n", {"n_pairs": 3}, r"there are links of 7 pairs, expected 3"),
    ],
)
def test_broken_links(text: str, words: Any, message: str) -> None:
    with pytest.raises(mf.FormatError, match=message):
        links_of_text(text, "x", **words)


def test_formats_are_two(tmp_path: Path) -> None:
    for call in (lambda: links_of_text("", "x", format="giza"), lambda: list(text_of_links([], "giza"))):
        with pytest.raises(mf.ModelError, match="format of links must be 'pharaoh' or 'wa', got 'giza'"):
            call()


def test_files(tmp_path: Path) -> None:
    links = [GoldLinks(frozenset({(0, 0)}), frozenset({(1, 0)})), GoldLinks(frozenset())]
    mf.io.write_links(tmp_path / "x.wa.gz", links, format="wa")
    assert gzip.decompress((tmp_path / "x.wa.gz").read_bytes()) == b"1 1 1 S\n1 2 1 P\n"
    assert mf.io.read_links(tmp_path / "x.wa.gz", n_pairs=2) == links
    mf.io.write_links(tmp_path / "x.txt", [[(0, 0), (2, 1)], []])
    assert (tmp_path / "x.txt").read_text() == "0-0 2-1\n\n"
    (tmp_path / "a").write_text("The dog\nruns .\n")
    (tmp_path / "b").write_text("Le chien\ncourt .\n")
    pairs = mf.io.read_sentence_pairs(tmp_path / "a", tmp_path / "b")
    assert pairs == [(["The", "dog"], ["Le", "chien"]), (["runs", "."], ["court", "."])]
    assert mf.io.read_sentence_pairs(tmp_path / "a", tmp_path / "b", n_pairs=1, normalise=True)[0][0] == ["the", "dog"]


def test_broken_sentences(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("un\n")
    with pytest.raises(mf.FormatError, match=r"b:2:1: the file ends after 1 sentences, and .*a has 2"):
        mf.io.read_sentence_pairs(tmp_path / "a", tmp_path / "b")
    with pytest.raises(mf.FormatError, match=r"b:2:1: the file ends after 1 sentences"):
        mf.io.read_sentence_pairs(tmp_path / "b", tmp_path / "a")
    (tmp_path / "b").write_text("un\n \n")
    with pytest.raises(mf.FormatError, match=r"b:2:1: this sentence has no words"):
        mf.io.read_sentence_pairs(tmp_path / "a", tmp_path / "b")


def test_the_hansards() -> None:
    data_path("align_enfr", "validation")
    data = mf.datasets.hansards("validation")
    assert data.links is not None and len(data.pairs) == len(data.links) == 37
    # The published counts of links.
    assert sum(len(one.sure) for one in data.links) == 338
    assert sum(len(one.possible) for one in data.links) == 1446
    for (source, target), links in zip(data.pairs, data.links, strict=True):
        assert all(i < len(source) and j < len(target) for i, j in links.allowed)
    text = "".join(word for pair in data.pairs for words in pair for word in words)
    assert text.isascii() and text == text.lower()
    training = mf.datasets.hansards("training", 200)
    assert len(training.pairs) == 200 and training.links is None
    # Training is written as the sentences with links are: most of their words are known from a few pages on.
    known = {word for pair in mf.datasets.hansards("training", 5000).pairs for word in pair[1]}
    words = [word for pair in data.pairs for word in pair[1]]
    assert sum(word in known for word in words) > 0.9 * len(words)
    assert mf.datasets.hansards("validation", 3).links == data.links[:3]


def test_parts_of_the_hansards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mf.ModelError, match="part of the Hansards must be 'training', 'validation' or 'test'"):
        mf.datasets.hansards("dev")
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no align_enfr/test in the reference data"):
        mf.datasets.hansards("test")
    (tmp_path / "align_enfr" / "test").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"there is no \*.e.gz in test of the reference data"):
        mf.datasets.hansards("test")
