"""Write what follows from the lists of public names and of methods: stubs, docs/api/, docs/methods.md.

``python -m tools.generate`` writes them; ``--check`` says which are not up to date. A test runs the check, so that a
new method is written in one list only.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from markovfield._exports import EXPORTS, NAMESPACES, names_in
from tools.import_graph import drawing

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "markovfield"
LAZY = ("methods", *NAMESPACES)
WHOLE = ("datasets", "io", "plot", "semirings", "settings")
# Between these lines of docs/architecture.md stand the drawings.
BEGIN, END = "<!-- imports: made by tools/generate.py -->", "<!-- end of imports -->"
TITLES = {
    "verbs": "Verbs",
    "models": "Models and forms",
    "answers": "Answers",
    "errors": "Errors",
    "estimators": "Estimators",
}


def stub(title: str, names: dict[str, str], spaces: tuple[str, ...] = ()) -> str:
    """Imports that a type checker reads in place of names that are imported late."""
    lines = [f'"""{title} Made by tools/generate.py."""', ""]
    lines += [f"from markovfield import {space} as {space}" for space in sorted(spaces)]
    lines += [f"from {names[name]} import {name} as {name}" for name in sorted(names, key=lambda n: (names[n], n))]
    return "\n".join(lines) + "\n"


def _root_stub() -> str:
    spaces = (*LAZY, *WHOLE)
    named = {n: m for n, m in EXPORTS.items() if n not in spaces}
    return stub("Types of the public names, for type checkers.", named, spaces) + "\n__version__: str\n"


def kind_of(name: str) -> str:
    """The chapter of the reference that a name at the top belongs to."""
    module, value = EXPORTS[name], getattr(import_module(EXPORTS[name]), name)
    if isinstance(value, type) and issubclass(value, Exception):
        return "errors"
    if not isinstance(value, type):
        return "verbs"
    if module.split(".")[1] in {"models", "factors", "gaussian"}:
        return "models"
    if module.split(".")[1] in {"sequence", "vision", "lattice", "time_series"}:
        return "estimators"
    return "answers"


def _entry(place: str, value: Any) -> str:
    directive = "autoclass" if isinstance(value, type) else "autofunction" if callable(value) else "autodata"
    members = "\n   :members:" if directive == "autoclass" else ""
    return f".. {directive}:: {place}{members}\n"


def _chapter(title: str, summary: str, names: dict[str, Any], also: list[str]) -> list[str]:
    """A table of contents, then an entry for each name; a name that stands elsewhere is only linked."""
    text = [title, "", *([summary, ""] if summary else [])]
    rows = []
    for place, value in names.items():
        about = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| {{py:obj}}`~{place}` | {about if callable(value) else ''} |")
    text += ["| name | what it is |", "| --- | --- |", *rows, ""] if rows else []
    text += [f"Also here: {', '.join(f'{{py:obj}}`~markovfield.{n}`' for n in also)}.", ""] if also else []
    body = [_entry(place, value) for place, value in names.items()]
    return [*text, *(["```{eval-rst}", "\n".join(body).rstrip(), "```", ""] if body else [])]


def _space(space: str, level: str) -> list[str]:
    """The chapter of a namespace."""
    places = names_in(space)
    summary = (import_module(f"markovfield.{space}").__doc__ or "").strip().split("\n")[0]
    # What stands at the top, and what methods share with another namespace, is told of there.
    linked = {n: n for n in places if n in EXPORTS}
    if space == "methods":
        linked |= {n: f"{other}.{n}" for other, names in NAMESPACES.items() for n in names if names[n] == places.get(n)}
    own = {f"markovfield.{space}.{n}": getattr(import_module(places[n]), n) for n in sorted(places) if n not in linked}
    return _chapter(f"{level} `mf.{space}`", summary, own, [linked[n] for n in sorted(linked)])


def api() -> dict[str, str]:
    """The reference, page by page: names at the top by kind, then one page for each namespace."""
    spaces = (*LAZY, *WHOLE)
    pages: dict[str, list[str]] = {}
    for kind, title in TITLES.items():
        chosen = sorted(n for n in EXPORTS if n not in spaces and kind_of(n) == kind)
        values = {f"markovfield.{n}": getattr(import_module(EXPORTS[n]), n) for n in chosen}
        pages[kind] = _chapter(f"# {title}", "", values, [])
    for space in spaces:
        if space in pages:
            pages[space] += _space(space, "##")
        else:
            pages[space] = _space(space, "#")
    first = [
        "# Reference",
        "",
        "`import markovfield as mf`; names are imported when they are first used. These pages are made by",
        "`tools/generate.py` from the lists of public names and of methods.",
        "",
    ]
    for title, chosen in (("Names at the top", list(TITLES)), ("Namespaces", [s for s in spaces if s not in TITLES])):
        first += ["```{toctree}", ":maxdepth: 1", f":caption: {title}", "", *chosen, "```", ""]
    return {name: "\n".join(text) for name, text in {"index": first, **pages}.items()}


def methods() -> str:
    """The table of all registered methods."""
    from markovfield.inference.core.registry import ENTRIES as inference
    from markovfield.learning.registry import ENTRIES as learning

    text = [
        "# All methods",
        "",
        "Each name can be given as `method=...` to the verbs beside it; the class, in `mf.methods`, has the settings.",
        "Made by `tools/generate.py` from the registry; [choosing](choosing.md) says when to take which.",
        "",
        "| name | also | class | verbs | of | what it is |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for e in (*inference, *learning):
        about = (inspect.getdoc(e.load()) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        also = ", ".join(f"`{a}`" for a in e.aliases)
        cls = e.where.partition(":")[2]
        text.append(f"| `{e.name}` | {also} | `{cls}` | {', '.join(e.verbs)} | {e.form} | {about} |")
    return "\n".join(text) + "\n"


def architecture() -> str:
    """The page with its drawings of imports made anew."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{drawing()}\n\n{END}{after}"


def files() -> dict[Path, str]:
    """Every generated file and what it should say."""
    docs = ROOT / "docs"
    made = {PACKAGE / "__init__.pyi": _root_stub(), docs / "methods.md": methods()}
    made |= {docs / "api" / f"{name}.md": text for name, text in api().items()}
    made[docs / "architecture.md"] = architecture()
    for space in LAZY:
        folder = PACKAGE / space
        path = folder / "__init__.pyi" if folder.is_dir() else PACKAGE / f"{space}.pyi"
        made[path] = stub(f"Types of ``markovfield.{space}``, for type checkers.", names_in(space))
    return made


def outdated() -> list[str]:
    """Generated files that do not say what they should."""
    made = files()
    found = [str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "api").glob("*.md") if path not in made]
    for path, text in made.items():
        if not path.exists() or path.read_text() != text:
            found.append(str(path.relative_to(ROOT)))
    return found


def main() -> int:
    """Write the files, or say which are not up to date."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not up to date")
    if parser.parse_args().check:
        old = outdated()
        if old:
            sys.stderr.write(f"run python -m tools.generate: {', '.join(old)} not up to date\n")
        return bool(old)
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
