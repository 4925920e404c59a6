"""The kernel cache: what a compiled kernel depends on, and what it does not."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from markovfield.kernels import compiler

PACKAGE = Path(compiler.__file__).resolve().parents[1]
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py")
# How kernels are compiled and run does not change what they are compiled to: the cache does not look at it.
MACHINERY = {PACKAGE / "kernels" / f"{name}.py" for name in ("compiler", "compilations", "interpreter")}
KERNELS = [p for p in FILES if (p.name.endswith("_kernel.py") or p.parent.name == "kernels") and p not in MACHINERY]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_all_callees_are_found(path: Path):
    """By an independent walk over whole files: everything imported from this package, and what that imports."""
    expected, waiting = set(), [path]
    while waiting:
        at = waiting.pop()
        if at in expected or at in MACHINERY:
            continue
        expected.add(at)
        for node in ast.walk(ast.parse(at.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("markovfield."):
                parts = node.module.split(".")[1:]
                waiting += [f for f in [PACKAGE.joinpath(*parts).with_suffix(".py")] if f.is_file()]
                more = (PACKAGE.joinpath(*parts, alias.name).with_suffix(".py") for alias in node.names)
                waiting += [f for f in more if f.is_file()]
    found = {f for f in compiler._sources(name_of(path)) if f.name != "__init__.py"}
    assert found == expected


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_stripping_prose_leaves_the_code(path: Path):
    """Without docstrings both have the same syntax tree, so nothing that is compiled was taken away."""

    def bare(text: str) -> str:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                node.body = [
                    n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
                ]
        return ast.dump(tree)

    text = path.read_text()
    stripped = compiler._code(path).decode()
    assert bare(stripped) == bare(text)


SCRIPT = """
from kept.deep.inner_kernel import value
print(value(1.0), value.stats.cache_hits)
"""


@pytest.fixture
def kept(tmp_path: Path):
    """A package of its own with the same compiler, whose kernel calls another, two folders away."""

    def write(folder: str, inner: str, comment: str = "") -> list[str]:
        root = tmp_path / folder / "kept"
        (root / "deep").mkdir(parents=True, exist_ok=True)
        (root / "kernels").mkdir(exist_ok=True)
        for package in (root, root / "deep", root / "kernels"):
            (package / "__init__.py").write_text("")
        shutil.copy(PACKAGE / "kernels" / "compiler.py", root / "kernels" / "compiler.py")
        header = "from kept.kernels.compiler import kernel\n"
        (root / "deep" / "far_kernel.py").write_text(f"{header}\n\n@kernel\ndef far(x):\n{comment}    return {inner}\n")
        (root / "deep" / "inner_kernel.py").write_text(
            f"{header}from kept.deep import far_kernel\n\nfar = far_kernel.far\n\n\n"
            "@kernel\ndef value(x):\n    return far(x) + 1.0\n"
        )
        environment = dict(os.environ, PYTHONPATH=str(root.parent), NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().partition(" ")[::2]

    return write


def test_a_callee_two_folders_away_is_not_served_stale(kept):
    assert kept("a", "2.0 * x")[0] == "3.0"
    assert kept("a", "3.0 * x")[0] == "4.0"


def test_checkouts_share_what_was_compiled_and_prose_compiles_nothing(kept):
    first, hits = kept("a", "2.0 * x")
    assert first == "3.0" and "1" not in hits
    again, hits = kept("b", "2.0 * x")
    assert again == "3.0" and "1" in hits
    with_comment, hits = kept("b", "2.0 * x", "    # Twice.\n")
    assert with_comment == "3.0" and "1" in hits


def test_folders_that_nobody_uses_are_swept(tmp_path: Path):
    month = 86400.0 * (compiler.KEPT_DAYS + 1)
    for name, age in (("old-0123456789abcdef", month), ("new-0123456789abcdef", 0.0), ("theirs", month)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    assert [p.name for p in compiler.sweep(tmp_path)] == ["old-0123456789abcdef"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new-0123456789abcdef", "theirs"]
    assert compiler.sweep(tmp_path / "absent") == []
