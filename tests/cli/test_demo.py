"""The demo: pictures, a page that shows them, code that runs as it is shown."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.image
import pytest

from markovfield.cli import main
from markovfield.cli.demo import steps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("demo") / "new" / "folder"
    assert main(["demo", "--quick", "--output", str(target)]) == 0
    return target


def test_the_page_shows_every_picture(folder: Path):
    page = (folder / "index.html").read_text()
    sources = re.findall(r'src="([^"]+)"', page)
    assert sorted(sources) == sorted(p.name for p in folder.glob("*.png"))
    assert len(sources) == 5
    for name in sources:
        assert f'src="{name}"' in page
        height, width = matplotlib.image.imread(folder / name).shape[:2]
        assert 300 < width < 2500 and 200 < height < 2500


def test_the_page_stands_alone(folder: Path):
    page = (folder / "index.html").read_text()
    assert "http" not in page and "<script" not in page
    assert page.count("<section>") == 3 and page.count("<pre>") == 3
    assert "exact" in page and "proven optimal" in page


def test_the_tour_says_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["demo", "--quick", "-o", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for words in ("heat pump", "refrigerant low", "log Z", "wrong pixels", "junction tree", "index.html", "exact"):
        assert words in out


@pytest.mark.parametrize("step", [steps.diagnose, steps.draw_tree])
def test_the_code_shown_runs(step: object):
    code = steps.shown_code(step)  # type: ignore[arg-type]
    assert code.startswith("import") and "return" not in code and '"""' not in code
    exec(compile(code, "<demo>", "exec"), {})


def test_the_code_of_the_image_runs():
    code = steps.shown_code(steps.restore)
    assert "text = 'MARKOVFIELD'" in code
    small = code.replace("'MARKOVFIELD'", "'LI'").replace("height = 14", "height = 8")
    found: dict = {}
    exec(compile(small, "<demo>", "exec"), found)
    assert found["answer"].guarantee == "exact"


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "-o", str(tmp_path / "never")]) == 1
    assert 'pip install "markovfield[plot]"' in capsys.readouterr().err
    assert not (tmp_path / "never").exists()
