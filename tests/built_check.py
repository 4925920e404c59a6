"""What `.ci/wheel-test` asks of a source archive and of two wheels, one built beside it and one built out of it."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

# What somebody who has only the archive needs to build, to test and to read.
SOURCE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "Makefile",
    "conftest.py",
    "src/markovfield/py.typed",
    "tests/oracle.py",
    "docs/conf.py",
    "examples/GALLERY_HEADER.rst",
    "packaging/conda/recipe.yaml",
)
# Made by builds and runs, never part of the source.
NEVER = ("docs/_build/", "docs/auto_examples/", "benchmarks/results/", "__pycache__/", ".venv/", ".git/")


def content(wheel: str) -> dict[str, bytes]:
    """The files of a wheel; RECORD lists the others by their hashes."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


def main(source: str, direct: str, from_source: str) -> None:
    with tarfile.open(source) as archive:
        members = [name.partition("/")[2] for name in archive.getnames()]
    missing = [name for name in SOURCE if name not in members]
    assert not missing, f"{Path(source).name} leaves out {missing}"
    odd = [name for name in members if any(part in f"{name}/" for part in NEVER)]
    assert not odd, f"{Path(source).name} holds {odd[:5]}"
    one, two = content(direct), content(from_source)
    assert one.keys() == two.keys(), f"the wheels differ in {sorted(one.keys() ^ two.keys())[:5]}"
    changed = [name for name in one if one[name] != two[name]]
    assert not changed, f"the wheels differ within {changed[:5]}"
    ours = [name for name in one if name.startswith("markovfield/")]
    assert len(ours) > 500 and "markovfield/py.typed" in one
    sys.stdout.write(f"{Path(source).name}: {len(members)} files; both wheels have the same {len(one)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
