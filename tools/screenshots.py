"""Make the pictures of docs/explorer.md, in a real Chromium: ``python -m tools.screenshots``.

Models are made here from a few lines, without other data. Pictures have few colours, so that they stay small.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import markovfield as mf

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "explorer"
COLOURS = 128
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
SENTENCES = [
    ("Anna Smith lives in New York", "B-PER I-PER O O B-LOC I-LOC"),
    ("Bob went to Paris with Carl Jones", "B-PER O O B-LOC O B-PER I-PER"),
    ("The United Nations met in Geneva", "O B-ORG I-ORG O O B-LOC"),
    ("Siemens hired Anna", "B-ORG O B-PER"),
]
TREES = [
    "(S (NP (NN men)) (VP (VB saw) (NP (NP (NN cats)) (PP (IN with) (NP (NN hats))))))",
    "(S (NP (NN men)) (VP (VB saw) (NP (NP (NN cats)) (PP (IN with) (NP (NN hats))))))",
    "(S (NP (NN men)) (VP (VB saw) (NP (NN cats)) (PP (IN with) (NP (NN hats)))))",
]
EVIDENCE = "Friends(Anna, Bob)\nFriends(Bob, Carl)\nFriends(Carl, Dora)"
PROGRAM = """
person = {Anna, Bob, Carl, Dora}
*Friends(person, person)
Smokes(person)
Cancer(person)
1.5  Smokes(x) => Cancer(x)
1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))
-0.3 Smokes(x)
"""


@dataclass(frozen=True)
class Shot:
    """A picture: what is explored, and what is done in its page first."""

    name: str
    make: Callable[[Path], Any]
    act: Callable[[Any], None]
    page: str = ""
    width: int = 1080
    height: int = 680
    theme: str = "light"


def sequences() -> tuple[list[Any], list[list[str]]]:
    """Attributes of the sentences, and their labels."""
    words = [text.split() for text, _ in SENTENCES]
    return list(mf.sequence.TokenFeatures().transform(words)), [labels.split() for _, labels in SENTENCES]


def training(folder: Path) -> Any:
    """Two fits of a field of sequences."""
    log = mf.explorer.TrainingLog()
    X, y = sequences()
    for l2 in (0.02, 0.5):
        log.begin(f"l2 = {l2}")
        mf.ChainCRF(l2=l2).fit(X, y, callback=log)
    return log


def program(folder: Path) -> Path:
    """A file of rules."""
    path = folder / "smokers.mln"
    path.write_text(PROGRAM)
    return path


def _observe(page: Any) -> None:
    for name, state in (("smoke", "yes"), ("xray", "yes")):
        page.get_by_role("searchbox").first.fill(name)
        page.locator(".list li:visible").first.click()
        page.locator(".bars .bar-row", has_text=state).first.click()
        page.wait_for_timeout(700)
    page.get_by_role("searchbox").first.fill("")
    page.wait_for_timeout(700)


def _until(page: Any, holds: str) -> None:
    for _ in range(600):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(100)
    raise SystemExit(f"never came true in the page: {holds}")


def _stroke(page: Any) -> None:
    result = "document.querySelector('canvas[aria-label=\"The classes of the pixels\"]').dataset.painted"
    _until(page, f"{result} === '0'")
    box = page.locator("canvas.paint").bounding_box()
    page.mouse.move(box["x"] + 0.03 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"], steps=6)
    page.mouse.up()
    _until(page, f"Number({result}) > 0")


def _write(text: str, then: Callable[[Any], None] = lambda page: None) -> Callable[[Any], None]:
    def act(page: Any) -> None:
        page.locator("textarea").first.fill(text)
        page.keyboard.press("Control+Enter")
        page.keyboard.press("Enter") if page.locator("#parse").count() else None
        page.wait_for_timeout(1500)
        then(page)

    return act


def _set_atom(page: Any) -> None:
    page.locator("g[data-atom='Smokes(Anna)']").click()
    page.wait_for_timeout(500)
    page.locator("g[data-atom='Smokes(Bob)']").focus()
    page.wait_for_timeout(500)


SHOTS = (
    Shot("network", lambda _: mf.datasets.asia(), _observe, height=640),
    Shot("lattice", lambda _: mf.Ising((128, 128), 0.43, periodic=True), lambda p: p.wait_for_timeout(6000), "lattice"),
    Shot("picture", lambda _: mf.ImageSegmentation(coupling=1.5), _stroke, height=560),
    Shot(
        "tagger",
        lambda _: mf.ChainCRF(l2=0.3).fit(*sequences()),
        _write("Carl Smith moved from York to Geneva", lambda p: p.locator(".token").nth(4).click()),
    ),
    Shot("phone", lambda _: mf.ChainCRF(l2=0.3).fit(*sequences()), _write("Anna hired Bob"), "", 390, 720, "dark"),
    Shot(
        "parses",
        lambda _: mf.PCFG.from_trees([mf.grammar.Tree.parse(text) for text in TREES]),
        _write("men saw cats with hats"),
        height=720,
    ),
    Shot("logic", program, _write(EVIDENCE, _set_atom), height=720),
    Shot("training", training, lambda p: p.wait_for_timeout(800), height=480),
)


def main(names: list[str]) -> None:
    """Write the pictures, or those that are named."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS)
        for shot in SHOTS:
            if names and shot.name not in names:
                continue
            with mf.explore(shot.make(Path(folder)), open_browser=False, block=False) as explorer:
                size: Any = {"width": shot.width, "height": shot.height}
                page = browser.new_page(viewport=size, color_scheme=shot.theme)  # type: ignore[arg-type]
                page.goto(explorer.url + (f"#{shot.page}" if shot.page else ""))
                page.wait_for_selector("html[data-ready=yes]")
                page.wait_for_timeout(1500)
                shot.act(page)
                picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                picture.quantize(COLOURS).save(FOLDER / f"{shot.name}.png", optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
