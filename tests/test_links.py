"""The checker of built pages finds what it should: `make docs` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.check_links import check, main


def site(folder: Path, **pages: str) -> Path:
    """A folder of pages, with an index of the search."""
    (folder / "inner").mkdir()
    for name, text in pages.items():
        (folder / name.replace("__", "/")).with_suffix(".html").write_text(f"<html><body>{text}</body></html>")
    (folder / "searchindex.js").write_text("")
    return folder


def test_good_pages_have_no_faults(tmp_path: Path):
    (tmp_path / "style sheet.css").write_text("")
    site(
        tmp_path,
        index="<link rel=stylesheet href='style%20sheet.css'><link rel=canonical href='https://x.org/'>"
        "<h1 id='top'>a</h1><a href='inner/page.html#caf%C3%A9'>b</a> <a href='#top'>c</a> <a href='inner/'>d</a>"
        "<a href='https://elsewhere.org/missing#there'>e</a> <a href='mailto:a@b.c'>f</a> <img src='data:,x'>",
        inner__page="<h1 id='café'>a</h1><a href='../index.html?x=1#top'>b</a>",
        inner__index="<p>a",
    )
    faults, counts = check(tmp_path)
    assert not faults
    assert counts == {"pages": 3, "files": 5, "places": 3, "other hosts": 2}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<a href='gone.html'>a</a>", "page.html: there is no gone.html"),
        ("<img src='gone.png'>", "page.html: there is no gone.png"),
        ("<a href='#gone'>a</a>", "page.html: there is no place #gone"),
        ("<a href='page.html#gone'>a</a>", "page.html: there is no place page.html#gone"),
        ("<i id=a></i><i id=a></i><a href='#a'>a</a>", "page.html: there are 2 places #a"),
        ("<script src='https://x.org/a.js'></script>", "page.html: loads https://x.org/a.js"),
        ("<img src='//x.org/a.png'>", "page.html: loads //x.org/a.png"),
        ("<link rel='stylesheet' href='https://x.org/a.css'>", "page.html: loads https://x.org/a.css"),
    ],
)
def test_faults_are_named(text: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    faults, _ = check(site(tmp_path, page=text))
    assert faults == [fault]


def test_a_folder_without_pages_or_without_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert check(tmp_path)[0] == [f"there are no pages in {tmp_path}"]
    site(tmp_path, page="a")
    (tmp_path / "searchindex.js").unlink()
    monkeypatch.setattr("sys.argv", ["check_links", str(tmp_path)])
    assert main() == 1


def test_pages_that_are_gone_are_not_looked_at(tmp_path: Path):
    site(tmp_path, index="<a href='inner/page.html'>a</a>", inner__page="<p>a", old="<a href='gone.html'>a</a>")
    (tmp_path / "searchindex.js").write_text('Search.setIndex({"docnames":["index","inner/page"],"titles":["a"]})')
    faults, counts = check(tmp_path)
    assert not faults and counts["pages"] == 2
