"""The page of sources: every place it names exists, and no equation or section of the texts is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import markovfield as mf

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "markovfield"
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
PATH = re.compile(r"`([\w/.-]+(?:\.py|\.md|/))`")
NAME = re.compile(r"`(?:mf\.)?([A-Za-z_][\w.]*)(?:\([^`]*\))?`")
RANGE = re.compile(r"(?<![\d.])19\.(\d+)(?: to 19\.(\d+))?(?![\d.]*\.\d)")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]


def places(row: str) -> list[str]:
    """The paths of a row that are nowhere; a bare name stands in the folder of the path before it."""
    missing, folder = [], PACKAGE
    for text in PATH.findall(row):
        tried = [PACKAGE / text, ROOT / text, folder / text]
        found = next((path for path in tried if path.exists()), None)
        if found is None:
            missing.append(text)
        else:
            folder = found if found.is_dir() else found.parent
    return missing


def test_places_are_told_apart():
    assert places("| `learning/undirected/hidden.py`, `likelihood.py`, `logic/`, `docs/choosing.md` |") == []
    assert places("| `learning/gone.py`, `models/`, `gone/` |") == ["learning/gone.py", "gone/"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:40])
def test_every_place_exists(row: str):
    assert not places(row)


def test_every_name_exists():
    """Such as `expected_counts` and `analysis.loss_counts`: of the library, or a keyword of a verb."""
    names = {n for row in ROWS for n in NAME.findall(row.rpartition("| ")[2] or row.split("|")[-2])}
    gone = []
    for name in names:
        if name.endswith((".py", ".md")):
            continue
        thing = mf
        for part in name.split("."):
            thing = getattr(thing, part, None)  # type: ignore[assignment]
        keyword = f"{name}=" in (ROOT / "docs" / "choosing.md").read_text() or f"`{name}=" in PAGE
        if thing is None and not keyword and not hasattr(mf.MarkovNetwork, name.partition(".")[0]):
            gone.append(name)
    assert not gone


def test_every_equation_of_murphy_has_a_place():
    told = set()
    for first, last in RANGE.findall("\n".join(ROWS)):
        told |= set(range(int(first), int(last or first) + 1))
    assert set(range(1, 127)) <= told


def test_every_section_of_murphy_has_a_row():
    sections = (
        "19.1 19.2.1 19.2.2 19.2.3 19.3.1 19.3.2 19.4.1 19.4.2 19.4.3 19.4.4 19.4.4.1 19.4.5 19.5.1 19.5.2 19.5.3 "
    )
    sections += (
        "19.5.4 19.5.5 19.5.6 19.5.7 19.5.7.1 19.5.7.2 19.5.7.3 19.5.7.4 19.6 19.6.1 19.6.2.1 19.6.2.2 19.6.2.3 "
    )
    sections += "19.6.2.4 19.6.2.5 19.6.2.6 19.6.2.7 19.6.3 19.7.1 19.7.2 19.7.2.1 19.7.2.2 19.7.3 19.7.3.1 19.7.3.2 "
    sections += "19.7.4.1 19.7.4.2 19.7.5"
    assert [s for s in sections.split() if f"\n| {s} | " not in PAGE] == []


def test_every_text_is_cited():
    for text in ("Murphy", "Caetano", "Andres", "Sontag", "Sudderth"):
        assert sum(text in row for row in ROWS) >= 3, text
    for lecture in range(1, 7):
        assert re.search(rf"Caetano (lecture )?{lecture}\b|Caetano [\d and]*\b{lecture}\b", PAGE), lecture
