"""What the pages say: their code runs and prints what they claim, and no method or public name is left out."""

from __future__ import annotations

import dataclasses
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest

from markovfield._exports import EXPORTS
from markovfield.inference.core.registry import ENTRIES as INFERENCE
from markovfield.learning.registry import ENTRIES as LEARNING

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/quickstart.md",
        "docs/bayesian_networks.md",
        "docs/fields.md",
        "docs/decoding.md",
        "docs/sequences.md",
    ],
)
def test_the_code_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / name)
    assert found, f"{name} has no Python block"
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(found):
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
    page = (ROOT / "docs" / "api.md").read_text()
    described = set(re.findall(r"^\.\. auto\w+:: markovfield\.([\w.]+)$", page, re.MULTILINE))
    spaces = {name for name, place in EXPORTS.items() if place == f"markovfield.{name}"}
    assert not set(EXPORTS) - described - spaces, "docs/api.md leaves out public names"
    gone = [name for name in sorted(described) if pydoc.locate(f"markovfield.{name}") is None]
    assert not gone, "docs/api.md describes what is not there"


def test_generated_files_are_up_to_date():
    from tools.generate import outdated

    assert not outdated(), "run python -m tools.generate"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(page: Path):
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert not broken


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text().split()
    assert {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"} <= set(index)
