"""What files the explorer takes, and what it says of those it has no page for."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import markovfield as mf
from markovfield.cli.app import run
from markovfield.explorer.core.opening import PictureFile, opened
from tests.explorer.streaming import ask

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

FIELD = mf.GaussianMarkovField([("a", "b")], kind="rw1", precision=4.0)


def test_pictures_are_told_by_how_they_begin(tmp_path: Path):
    for start, kind in [
        (PIXEL, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"BM\x00", "image/bmp"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ]:
        path = tmp_path / "any.name"
        path.write_bytes(start)
        assert opened(path) == PictureFile("any.name", kind, start)
    path.write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    with pytest.raises(mf.FormatError, match="this is no model"):
        opened(path)


def test_a_picture_that_is_too_large(tmp_path: Path):
    path = tmp_path / "large.png"
    with open(path, "wb") as stream:
        stream.write(PIXEL)
        stream.truncate(16 * 2**20 + 1)
    with pytest.raises(mf.FormatError, match="a picture may have 16,777,216 bytes"):
        opened(path)


def test_a_model_without_a_page():
    with pytest.raises(mf.ModelError, match="no page for a GaussianMarkovField; it has pages for discrete networks"):
        mf.explore(FIELD, open_browser=False)


def test_the_command_tells_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "field.mfz"
    mf.save(FIELD, path)
    broken = tmp_path / "broken.mln"
    broken.write_text("1.0 Smokes(")
    for arguments, sentence in [
        ([str(path)], "no page for a ConstrainedField"),
        ([str(tmp_path / "nothing.bif")], "there is no file"),
        ([str(broken)], "broken.mln:1:"),
        ([str(path), "--port", "99999"], "port must be a number from 0"),
    ]:
        assert run(["explore", "--no-browser", *arguments]) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())


def files(folder: Path) -> dict[str, tuple[Path, str]]:
    """By the page that comes first: a file, and what it holds."""
    rules, grammar, picture = folder / "rules.mln", folder / "coin.pcfg", folder / "pixel.png"
    rules.write_text("t = {A, B}\nP(t)\n1.0 P(x)\n")
    grammar.write_text("S -> 'heads' [0.5] | 'tails' [0.5]\n")
    picture.write_bytes(PIXEL)
    mf.ChainCRF(l2=0.1).fit([[["w=a"], ["w=b"]]], [["A", "B"]]).save(folder / "tagger.mfz")
    mf.write(mf.datasets.sprinkler(), folder / "garden.bif")
    return {
        "logic": (rules, "MarkovLogic"),
        "parses": (grammar, "PCFG"),
        "picture": (picture, "PictureFile"),
        "tagger": (folder / "tagger.mfz", "ChainCRF"),
        "network": (folder / "garden.bif", "BayesianNetwork"),
    }


@pytest.mark.parametrize("page", ["logic", "parses", "picture", "tagger", "network"])
def test_the_command_takes_files_of_every_kind(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if page == "logic":
        pytest.importorskip("lark")
    path, kind = files(tmp_path)[page]
    seen: list[Any] = []
    monkeypatch.setattr(mf.explorer.Explorer, "wait", lambda e: seen.append(ask(e, "explorer", "subject")))
    assert run(["explore", "--no-browser", str(path)]) == 0
    assert seen[0]["kind"] == kind and seen[0]["name"] == path.name and seen[0]["pages"][0]["name"] == page


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path):
    path = tmp_path / "garden.bif"
    mf.write(mf.datasets.sprinkler(), path)
    code = "import sys; from markovfield.cli.app import run; sys.exit(run(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", str(path), "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"garden.bif is shown at (http://127.0.0.1:\d+/\S+/)", process.stdout.readline())
        assert found is not None
        subject = httpx.post(found[1] + "api/explorer/subject", json={}, timeout=240).json()
        assert subject["kind"] == "BayesianNetwork" and subject["name"] == "garden.bif"
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_file_of_another_kind_is_read_again(tmp_path: Path):
    path = tmp_path / "model"
    mf.save(mf.datasets.sprinkler(), path)
    with mf.explore(path, open_browser=False, block=False) as explorer:
        assert ask(explorer, "explorer", "subject")["kind"] == "BayesianNetwork"
        path.write_bytes(PIXEL)
        assert ask(explorer, "explorer", "reload")["kind"] == "PictureFile"
