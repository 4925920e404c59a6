"""Mermaid drawings as pictures, drawn by our own plots: a repository shows the text as a drawing, so do the pages.

Only what `tools/import_graph.py` writes is understood: lines ``a[label] --> b[label]`` of a ``graph TD``.
"""

from __future__ import annotations

import re
from typing import Any

import networkx as nx
from docutils import nodes

from markovfield.frames import drawing

ARROW = re.compile(r"^\s*\w+\[(.+)\] --> \w+\[(.+)\]$", re.MULTILINE)


def draw(app: Any, tree: nodes.document) -> None:
    """Put a picture in the place of each block of Mermaid."""
    for block in list(tree.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            graph = nx.DiGraph(ARROW.findall(block.astext()))
            if not graph:
                raise ValueError(f"{app.env.docname}: a Mermaid drawing without arrows that can be read")
            block.replace_self(nodes.raw("", f'<div class="drawing">{drawing(graph, 1)}</div>', format="html"))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", draw)
    return {"parallel_read_safe": True}
