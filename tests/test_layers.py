"""Imports point downwards only (DESIGN section 3), wherever in a file they stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "markovfield"

# From the bottom up; names on one line share a layer and may import each other.
LAYERS = [
    {"exceptions", "_validation", "_exports", "_hints", "arrays", "extras", "files", "text_files", "settings"},
    {"kernels"},
    {"names", "semirings", "columns", "frames", "progress"},
    {"factors", "gaussian"},
    {"graphs"},
    {"models"},
    {"inference"},
    {"lattice", "structures"},
    {"learning"},
    {"logic"},
    {"structured"},
    {"sequence", "vision", "grammar", "dependency", "alignment", "time_series"},
    {"io"},
    {"datasets"},
    {"plot"},
    {
        "markovfield",
        "methods",
        "analysis",
        "diagnostics",
        "answers",
    },  # the package itself, which reaches everything: only the explorer and the command line may use it
    {"explorer"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Read by type checkers only; it repeats the public names.
EXEMPT = {"_exports_typed.py"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in EXEMPT)


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything a file imports, at any depth."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    return imports_of(path.read_text(), package)


def imports_of(source: str, package: str) -> Iterator[tuple[int, str]]:
    """The same for source text in a package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                # "from markovfield import names" may name a module or a public object: both resolve below.
                yield node.lineno, f"{base}.{alias.name}" if base == "markovfield" else base
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def layer(module: str) -> str:
    """The layer a module of ours belongs to; the package itself for its public names."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LEVEL else "markovfield"


def test_every_module_has_a_layer():
    # A folder without source is what an older checkout left behind.
    top = {
        path.stem if path.is_file() else path.name
        for path in PACKAGE.iterdir()
        if path.is_file() or any(path.rglob("*.py"))
    }
    known = set(LEVEL) | {"__init__", "_exports_typed", "py", "__pycache__"}
    assert {name for name in top if not name.endswith("typed")} <= known


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path):
    own = layer(module_name(path))
    wrong = []
    for line, module in imports(path):
        if module.split(".")[0] != "markovfield" or module == "markovfield._exports_typed.*":
            continue
        if path.name == "__init__.py" and path.parent == PACKAGE and module.startswith("markovfield._exports"):
            continue
        target = layer(module)
        if LEVEL[target] > LEVEL[own]:
            wrong.append(f"{path.name}:{line}: {own} imports {module}, which lies above it")
    assert not wrong, "\n".join(wrong)


def is_kernel(module: str) -> bool:
    """Whether a module of ours holds kernels, which its name and place say."""
    return module.startswith("markovfield.kernels") or module.endswith("_kernel")


# The decorator and what it needs; not kernels.
MACHINERY = {f"markovfield.kernels.{name}" for name in ("compiler", "compilations", "interpreter")}
KERNELS = [path for path in MODULES if is_kernel(module_name(path)) and module_name(path) not in MACHINERY]


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_kernels_import_only_arrays_the_compiler_and_kernels(path: Path):
    allowed = {"__future__", "collections", "math", "struct", "typing"}
    allowed |= {"llvmlite", "markovfield", "numba", "numpy"}
    for line, module in imports(path):
        assert module.split(".")[0] in allowed, f"{path.name}:{line} imports {module}"
        if module.startswith("markovfield"):
            assert is_kernel(module), f"{path.name}:{line} imports {module}, which holds no kernels"


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_kernel_files_import_above_their_first_function(path: Path):
    """The cache looks for callees only there."""
    tree = ast.parse(path.read_text())
    above = {n.lineno for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))}
    functions = [
        min([n.lineno, *(d.lineno for d in n.decorator_list)]) for n in tree.body if hasattr(n, "decorator_list")
    ]
    first = min(functions, default=10**9)
    lines = {line for line, module in imports(path) if module.startswith("markovfield")}
    assert lines <= {line for line in above if line < first}, path.name


def test_compiled_functions_stand_in_kernel_files():
    for path in MODULES:
        decorated = [
            node.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "kernel" for d in node.decorator_list)
        ]
        assert is_kernel(module_name(path)) or not decorated, f"{path.name}: {decorated}"


def test_the_walk_sees_every_form_of_import():
    source = (
        "def f():\n"
        "    if True:\n"
        "        import markovfield.cli\n"
        "        from markovfield import io\n"
        "    from ..inference.core.answers import Marginals\n"
        "    from . import uai\n"
        "    importlib.import_module('markovfield.plot')\n"
    )
    assert sorted(imports_of(source, "markovfield.models")) == [
        (3, "markovfield.cli"),
        (4, "markovfield.io"),
        (5, "markovfield.inference.core.answers"),
        (6, "markovfield.models"),
        (7, "markovfield.plot"),
    ]


# The package itself has its public names there, and pages of the explorer are told apart by what they show.
IN_OTHER_WORDS = {"", "explorer/pages", "explorer/works", "logic", "logic/grounding", "logic/language"}
FOLDERS = sorted({path.parent for path in MODULES} - {PACKAGE / folder for folder in IN_OTHER_WORDS})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_docstring_of_a_folder_names_its_files(folder: Path):
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    named = {word.removesuffix(".py") for word in re.findall(r"`+([\w./]+)`+", said)}
    own = {path.stem for path in folder.glob("*.py") if path.stem not in {"__init__", "__main__"}}
    assert not own - named, f"{sorted(own - named)} of {folder.relative_to(PACKAGE)} are not in its docstring"
