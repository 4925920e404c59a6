"""How the pages are built: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.domains.python import PyObject

import markovfield

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(HERE / "extensions"))

project = "Markovfield"
author = "The Markovfield developers"
project_copyright = author
version = release = markovfield.__version__
language = "en_GB"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mermaid_drawings",
]
exclude_patterns = ["_build", "extensions"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# No formulas in TeX: a page would have to fetch a script to show them.
myst_enable_extensions = ["deflist", "html_image"]
myst_heading_anchors = 3

# A name in single backticks is a reference where it can be one; elsewhere it is only set as code.
default_role = "py:obj"
# Attributes of several classes may have one name; then it stays code.
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_rtype = False
# One entry for parameters that are described together.
napoleon_use_param = False
# Attributes are described in the class docstring; as ivars they are not objects of their own, so never duplicates.
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"Markovfield {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#7db4e6", "color-brand-content": "#7db4e6"},
}

# All examples are run; together they have to stay within three minutes on two quiet cores.
sphinx_gallery_conf = {
    "examples_dirs": [str(EXAMPLES)],
    "gallery_dirs": ["auto_examples"],
    "subsection_order": [
        f"../examples/{part}"
        for part in (
            "tutorials",
            "networks",
            "fields",
            "gaussian",
            "logic",
            "vision",
            "sequences",
            "grammar",
            "alignment",
            "structures",
            "structured",
            "max_margin",
            "decoding",
            "learning",
        )
    ],
    "within_subsection_order": "ExampleTitleSortKey",
    "parallel": 2,
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}


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
    # "Variables" would be those of a model.
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", escape_bars, priority=700)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", keep, priority=400)
    app.connect("autodoc-process-docstring", put_back, priority=600)
