"""How the pages are built: `make docs`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import markovfield

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"

project = "Markovfield"
author = "The Markovfield developers"
project_copyright = author
version = release = markovfield.__version__
language = "en_GB"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# A name in single backticks is a reference where it can be one; elsewhere it is only set as code.
default_role = "py:obj"
# Attributes of several classes may have one name; then it stays code.
suppress_warnings = [
    # Mermaid drawings are shown as text here, and drawn where the pages are read in a repository.
    "misc.highlighting_failure",
    "ref.python",
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Attributes are described in the class docstring; as ivars they are not objects of their own, so never duplicates.
napoleon_use_ivar = True

html_theme = "alabaster"
html_theme_options = {
    "description": "Write a model once; ask it four questions.",
    "fixed_sidebar": True,
    "page_width": "1040px",
}
html_show_sourcelink = False

# The gallery shows the scripts; it runs them only when asked to, so that the pages stay quick to build and offline.
has_gallery = any((EXAMPLES / name).exists() for name in ("GALLERY_HEADER.rst", "README.rst", "README.txt"))
if has_gallery:
    extensions.append("sphinx_gallery.gen_gallery")
    run_gallery = os.environ.get("MARKOVFIELD_GALLERY") == "1"
    sphinx_gallery_conf = {
        "examples_dirs": [str(EXAMPLES)],
        "gallery_dirs": ["auto_examples"],
        "filename_pattern": r"\.py$",
        "plot_gallery": "True" if run_gallery else "False",
        "image_scrapers": ("matplotlib",) if run_gallery else (),
        "download_all_examples": False,
        "show_memory": False,
        "min_reported_time": 1e9,
    }


def without_gallery(app: Any, page: str, source: list[str]) -> None:
    """Where there are no examples, the index does not list them."""
    if page == "index" and not has_gallery:
        source[0] = source[0].replace("auto_examples/index\n", "")


plain: dict[str, list[str]] = {}
VALUES = ("attribute", "data", "property")


def keep(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes "words: more words" above a property for its type: remember what was written,"""
    if what in VALUES:
        plain[name] = list(lines)


def put_back(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """and put it back."""
    if what in VALUES and name in plain:
        lines[:] = plain.pop(name)


BARS = re.compile(r"(?<![`|\w])\|([^|`]+)\|(?![`|\w])")


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Bars in prose are absolute values, not substitutions of reStructuredText."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = BARS.sub(r"\\|\1\\|", line)


def skip_routing(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn adds by itself, whose words point to its own pages."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars, priority=700)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("source-read", without_gallery)
    app.connect("autodoc-process-docstring", keep, priority=400)
    app.connect("autodoc-process-docstring", put_back, priority=600)
