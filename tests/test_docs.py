"""What the pages say: their code runs and prints what they claim, and no method or public name is left out."""

from __future__ import annotations

import dataclasses
import os
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest

from markovfield._exports import EXPORTS
from markovfield.inference.core.registry import ENTRIES as INFERENCE
from markovfield.learning.registry import ENTRIES as LEARNING

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "auto_examples"} & set(path.parts)]
PAGES = [ROOT / "README.md", *WRITTEN]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"\bmf\.([A-Za-z_][\w.]*\w)")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def blocks(page: Path) -> list[str]:
    """What runs: blocks of ``python``. Blocks of ``py`` show code of other libraries, which are not installed here."""
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in PAGES if blocks(page)])
def test_the_code_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks(ROOT / name)):
        exec(compile(block, f"{name}, block {number}", "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        for claim in CLAIM.findall(block):
            assert claim in printed, f"{name}, block {number} claims {claim!r} and printed {printed}"


@pytest.mark.parametrize("entry", [*INFERENCE, *LEARNING], ids=lambda e: e.name)
def test_every_method_is_described(entry: Any):
    page = (ROOT / "docs" / "choosing.md").read_text()
    settings = [field.name for field in dataclasses.fields(entry.load())]
    for name in (entry.name, entry.where.partition(":")[2], *entry.aliases, *settings):
        assert f"`{name}`" in page, f"docs/choosing.md does not mention {name}"


def test_every_public_name_is_in_the_reference():
    page = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r"^\.\. auto\w+:: markovfield\.([\w.]+)$", page, re.MULTILINE))
    spaces = {name for name, place in EXPORTS.items() if place == f"markovfield.{name}"}
    assert not set(EXPORTS) - described - spaces, "docs/api leaves out public names"
    gone = [name for name in sorted(described) if pydoc.locate(f"markovfield.{name}") is None]
    assert not gone, "docs/api describes what is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_names_in_the_text_exist(page: Path):
    words = [word for code in SPAN.findall(page.read_text()) for word in DOTTED.findall(code)]
    gone = [word for word in words if pydoc.locate(f"markovfield.{word}") is None]
    assert not gone, "the page names what is not there"


def test_generated_files_are_up_to_date():
    from tools.generate import outdated

    assert not outdated(), "run python -m tools.generate"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(page: Path):
    broken = [target for target in LINK.findall(page.read_text()) if not _is_there(page, target)]
    assert not broken


def _is_there(page: Path, target: str) -> bool:
    """Whether a link leads to a file; pages of the gallery are made of examples when the docs are built."""
    path = Path(os.path.normpath(page.parent / target))
    gallery = ROOT / "docs" / "auto_examples"
    if path.is_relative_to(gallery) and path.suffix == ".rst":
        example = ROOT / "examples" / path.relative_to(gallery).with_suffix(".py")
        return (path.name == "index.rst" and example.parent.is_dir()) or example.exists()
    return path.exists()


def test_every_page_is_in_the_index():
    docs = ROOT / "docs"
    listed = set((docs / "index.md").read_text().split())
    for folder in ("api", "coming_from"):
        listed |= {f"{folder}/{name}" for name in (docs / folder / "index.md").read_text().split()}
    assert {str(p.relative_to(docs).with_suffix("")) for p in WRITTEN} - {"index"} <= listed


def test_pictures_are_small_and_used():
    pages = "".join(path.read_text() for path in PAGES)
    folder = ROOT / "docs" / "pictures"
    assert sum(p.stat().st_size for p in folder.iterdir()) < 150_000
    assert sum(p.stat().st_size for p in (folder / "explorer").iterdir()) < 400_000
    pictures = [p.relative_to(folder.parent) for p in folder.rglob("*.png")]
    assert not [str(p) for p in pictures if str(p) not in pages]


def test_every_example_has_a_title_and_a_place_in_the_gallery():
    for path in (ROOT / "examples").rglob("plot_*.py"):
        title, line, *_ = path.read_text().removeprefix('"""\n').split("\n")
        assert title and len(line) >= len(title) and set(line) == {"="}, path.name
        assert (path.parent / "GALLERY_HEADER.rst").exists(), path.name
