"""What is said about the package in several places says the same: version, licence, dependencies, extras."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"dev", "docs"}
# conda-forge's names where they are others; pytoulbar2 is not there.
CONDA_NAMES = {"matplotlib": "matplotlib-base", "duckdb": "python-duckdb", "pytoulbar2": None}


def yaml(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text())


def requirement(text: str) -> tuple[str, str]:
    """The name of a requirement, and the rest."""
    name = re.match(r"[\w.-]+(\[[\w,]+\])?", text).group()  # type: ignore[union-attr]
    return name, text[len(name) :].strip()


def test_versions_are_one():
    assert mf.__version__ == PROJECT["version"]
    assert yaml("CITATION.cff")["version"] == PROJECT["version"]
    assert yaml("packaging/conda/recipe.yaml")["context"]["version"] == PROJECT["version"]


def test_the_citation_has_what_the_format_asks_for():
    cited = yaml("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited) and cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software" and cited["license"] == PROJECT["license"]
    known = {"cff-version", "message", "type", "title", "abstract", "authors", "version", "license", "keywords"}
    assert set(cited) <= known
    assert cited["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]
    assert cited["keywords"] == PROJECT["keywords"]


def test_the_conda_recipe_asks_for_the_same():
    recipe = yaml("packaging/conda/recipe.yaml")
    assert recipe["context"]["name"] == PROJECT["name"] and recipe["about"]["license"] == PROJECT["license"]
    python = f"python {PROJECT['requires-python']}"
    run = [" ".join(requirement(text)) for text in PROJECT["dependencies"]]
    assert recipe["requirements"]["run"] == [python, *run]
    assert recipe["requirements"]["host"] == [python, "pip", "hatchling"]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    asked = [requirement(t) for extra in EXTRAS.keys() - FOR_DEVELOPERS for t in EXTRAS[extra]]
    named = {(CONDA_NAMES.get(name, name), least) for name, least in asked if not name.startswith("markovfield[")}
    expected = {f"{name} {least}" for name, least in named if name is not None}
    assert set(recipe["requirements"]["run_constraints"]) == expected
    assert (ROOT / recipe["about"]["license_file"]).exists()


def test_all_is_every_extra_for_users():
    (line,) = EXTRAS["all"]
    inner = set(re.fullmatch(r"markovfield\[(.*)\]", line).group(1).split(","))  # type: ignore[union-attr]
    assert inner == EXTRAS.keys() - FOR_DEVELOPERS - {"all"}


def test_every_extra_is_described():
    page = (ROOT / "docs" / "install.md").read_text()
    assert not [extra for extra in EXTRAS if f"| `{extra}` |" not in page]
    described = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert described == set(EXTRAS), "docs/install.md describes what is not there"


def test_extras_that_errors_name_exist():
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"markovfield\[([\w,]+)\]", path.read_text()))
    assert named and {word for words in named for word in words.split(",")} <= set(EXTRAS)


def test_the_package_is_typed():
    folder = Path(mf.__file__).parent
    assert (folder / "py.typed").is_file() and (folder / "__init__.pyi").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
