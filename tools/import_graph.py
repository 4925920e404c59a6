"""Which folder imports which: the graph behind docs/architecture.md, drawn from the imports as they are.

Edges that follow from others are left out (the transitive reduction), so that the drawing shows layers. An import
inside a function counts like any other; the one exception is that marginal MAP asks the verbs about a smaller model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "markovfield"
# Marginal MAP becomes plain MAP of a smaller model, which is asked like any other.
RECURSION = ("inference.marginal_map", "inference")
# Modules at the top that are read by everybody, or that reach everything.
LEFT_OUT = {"_exports", "_validation", "arrays", "exceptions", "files", "names", "semirings", "__init__", "__main__"}
NAMESPACES = {"methods", "analysis", "diagnostics", "answers"}


def modules() -> dict[str, Path]:
    """Dotted name, below the package, of every file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts)] = path
    return found


def folder_of(module: str) -> str:
    """The folder of a module; a file at the top stands for itself."""
    return module.rpartition(".")[0] or module


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of ours that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("markovfield"):
            base = (node.module or "").partition(".")[2]
            for name in [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]:
                if name in known:
                    yield name
                elif f"{name}.__init__" in known and name == base:
                    yield f"{name}.__init__"


def graph() -> nx.DiGraph:
    """Folders, and an edge from each to those that it imports from."""
    known = modules()
    found = nx.DiGraph()
    for module, path in known.items():
        own = folder_of(module)
        if own in LEFT_OUT | NAMESPACES:
            continue
        found.add_node(own)
        for name in imported(path, known):
            other = folder_of(name)
            if other not in LEFT_OUT | NAMESPACES and other != own and (own, other) != RECURSION:
                found.add_edge(own, other)
    return found


def drawing() -> str:
    """Two Mermaid drawings: the layers, and what is inside `inference`."""
    whole = graph()
    if not nx.is_directed_acyclic_graph(whole):
        raise ValueError(f"folders import each other: {nx.find_cycle(whole)}")
    top: nx.DiGraph = nx.DiGraph()
    for a, b in whole.edges:
        one, two = a.partition(".")[0], b.partition(".")[0]
        if one != two:
            top.add_edge(one, two)
    inside = whole.subgraph([n for n in whole if n.startswith("inference")])
    text = ["Layers (an arrow points to what is imported; what follows from other arrows is left out):", ""]
    text += _mermaid(top)
    text += ["", "Inside `inference`:", ""]
    text += _mermaid(inside)
    return "\n".join(text)


def _mermaid(found: nx.DiGraph) -> list[str]:
    reduced = nx.transitive_reduction(found)
    lines = ["```mermaid", "graph TD"]
    for a, b in sorted(reduced.edges):
        lines.append(f"    {a.replace('.', '_')}[{_label(a)}] --> {b.replace('.', '_')}[{_label(b)}]")
    return [*lines, "```"]


def _label(folder: str) -> str:
    return folder.removeprefix("inference.") if folder != "inference" else "verbs, automatic, explain, ..."
