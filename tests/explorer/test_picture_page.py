"""The pages of pictures and of stereo: by HTTP, and in a browser with a brush."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.explorer.streaming import ask, until

STARTED = Callable[..., Any]


def png(grey: np.ndarray) -> bytes:
    """A grey picture as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns = grey.shape
    lines = b"".join(b"\0" + row.tobytes() for row in grey.astype(np.uint8))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def halves() -> np.ndarray:
    """Dark at the left, bright at the right, and noise."""
    truth = (np.arange(40) >= 20).astype(int) * np.ones((24, 1), int)
    return np.clip(90 + 70 * truth + np.random.default_rng(3).normal(scale=40, size=truth.shape), 0, 255)


def sent(picture: np.ndarray) -> dict[str, Any]:
    rows, columns, channels = picture.shape
    data = base64.b64encode(picture.astype(np.uint8).tobytes()).decode()
    return {"rows": rows, "columns": columns, "channels": channels, "data": data}


def bytes_of(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8)


def test_it_is_offered_for_pictures_and_their_models(explorer: STARTED, tmp_path: Path):
    path = tmp_path / "noisy.png"
    path.write_bytes(png(halves()))
    image = halves()[:, :, None] / 255
    crf = mf.GridCRF(edge_features="constant").fit([image], [(image[:, :, 0] > 0.5).astype(int)])
    crf.save(tmp_path / "crf.mfz")
    for model, pages in [
        (path, ["picture"]),
        (mf.ImageSegmentation(), ["picture"]),
        (tmp_path / "crf.mfz", ["picture"]),
        (mf.StereoMatching(11), ["stereo"]),
    ]:
        assert [p["name"] for p in ask(explorer(model), "explorer", "subject")["pages"]] == pages
    with pytest.raises(mf.ModelError, match="no page for a GridCRF"):
        mf.explore(mf.GridCRF(), open_browser=False)


def test_the_file_comes_as_it_is(explorer: STARTED, tmp_path: Path):
    path = tmp_path / "noisy.png"
    path.write_bytes(png(halves()))
    file = ask(explorer(path), "picture", "start")["file"]
    assert file["kind"] == "image/png" and base64.b64decode(file["data"]) == path.read_bytes()


def test_settings_are_those_of_the_model(explorer: STARTED):
    picture = halves()[:, :, None]
    model = mf.ImageSegmentation(3, coupling=0.7, connectivity=8, rng=0)
    started = explorer(model)
    told = ask(started, "picture", "start")["settings"]
    assert told == {"n_classes": 3, "coupling": 0.7, "contrast": 0.0, "connectivity": 8}
    found = ask(started, "picture", "paint", **sent(picture), **told)
    again = mf.ImageSegmentation(3, coupling=0.7, connectivity=8, rng=0).fit(picture.astype(np.uint8) / 255)
    best = again.decode(picture.astype(np.uint8) / 255)
    assert found["decoding"]["score"] == pytest.approx(float(best.score), rel=1e-6)
    status, sentence = ask(started, "picture", "paint", **sent(picture), coupling=99)
    assert status == 400 and sentence == "coupling must be at most 20, got 99"


@pytest.mark.parametrize("kind", ["ImageSegmentation", "GridCRF"])
def test_the_code_paints_the_same(explorer: STARTED, kind: str, tmp_path: Path):
    picture = halves()[:, :, None].astype(np.uint8)
    strokes = np.full((24, 40), 255, np.uint8)
    strokes[:4, :4], strokes[-4:, -4:] = 1, 0
    asked = {**sent(picture), "strokes": base64.b64encode(strokes.tobytes()).decode()}
    if kind == "GridCRF":
        path = tmp_path / "crf.mfz"
        image = picture / 255
        mf.GridCRF(edge_features="constant").fit([image], [(image[:, :, 0] > 0.5).astype(int)]).save(path)
        started = explorer(path)
    else:
        started = explorer(mf.ImageSegmentation())
        asked |= {"coupling": 1.5, "n_classes": 2}
    found = ask(started, "picture", "paint", **asked)
    code = ask(started, "picture", "code", **asked)["code"]
    lines = ["image = picture / 255" if line.startswith("image = ...") else line for line in code.splitlines()]
    space: dict[str, Any] = {"picture": picture}
    exec("\n".join(lines), space)
    assert (np.ravel(space["found"]) == bytes_of(found["labels"])).all()
    assert (np.ravel(space["found"]).reshape(24, 40)[:4, :4] == 1).all()


def test_stereo_and_its_code(explorer: STARTED):
    started = explorer(mf.StereoMatching(11, smoothness="potts"))
    told = ask(started, "stereo", "start")
    assert told["settings"]["smoothness"] == "potts" and told["most"] == 11
    found = ask(started, "stereo", "match", smoothness="truncated_linear", weight=0.8)
    space: dict[str, Any] = {}
    code = ask(started, "stereo", "code", smoothness="truncated_linear", weight=0.8)["code"]
    exec(code, space)
    assert (space["disparities"].ravel() == bytes_of(found["disparity"])).all()
    small = sent(np.zeros((4, 20, 1)))
    views = {"left": small.pop("data"), **small}
    own = ask(started, "stereo", "match", **views, right=views["left"])
    assert own["shape"] == [4, 20] and "truth" not in own
    assert "the views" in ask(started, "stereo", "code", right=True)["code"]


ANSWERS = "Number(document.querySelector('#page').dataset.answers ?? 0)"


def answered(page: Any, act: Callable[[], Any]) -> None:
    before = page.evaluate(ANSWERS)
    act()
    until(page, f"{ANSWERS} > {before}")


def move(slider: Any, value: float) -> None:
    slider.evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", value)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_a_picture_file_is_painted(explorer: STARTED, visit: STARTED, tmp_path: Path, width: int, theme: str):
    path = tmp_path / "<img src=x onerror=alert(1)>.png"
    path.write_bytes(png(halves()))
    page = visit(explorer(path), width=width, theme=theme)
    until(page, f"{ANSWERS} > 0")
    result, canvas = page.locator("canvas[aria-label='The classes of the pixels']"), page.locator("canvas.paint")
    assert page.evaluate("document.querySelector('canvas.paint').width") == 40
    assert result.get_attribute("data-first") == "0"  # dark
    ones = int(result.get_attribute("data-ones"))
    # A stroke with the mouse over the dark half makes it foreground there.
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.02 * box["width"], box["y"] + 0.03 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.03 * box["height"], steps=4)
    answered(page, page.mouse.up)
    assert result.get_attribute("data-first") == "1"
    assert int(result.get_attribute("data-ones")) > ones
    assert "proven best" in page.locator(".said").inner_text() and "approximate" in page.locator(".said").inner_text()
    answered(page, page.get_by_role("button", name="Undo").click)
    assert result.get_attribute("data-first") == "0" and result.get_attribute("data-painted") == "0"
    # By the keyboard: a digit chooses the class, the space bar paints.
    canvas.focus()
    page.keyboard.press("1")
    page.keyboard.press("Shift+ArrowRight")
    answered(page, lambda: page.keyboard.press(" "))
    assert int(result.get_attribute("data-painted")) > 4
    loose = int(result.get_attribute("data-changed"))
    answered(page, lambda: move(page.get_by_role("slider", name="Coupling"), 0.05))
    assert int(result.get_attribute("data-changed")) < loose
    for view in ("unsure", "alone", "colours"):
        page.get_by_label("Show", exact=True).select_option(view)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#page img").count() == 0
    with page.expect_download() as saved:
        page.get_by_label("Save result as PNG").click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.browser
def test_samples_classes_and_an_own_file(explorer: STARTED, visit: STARTED, tmp_path: Path):
    own, strange = tmp_path / "own.png", tmp_path / "strange.png"
    own.write_bytes(png(np.kron(halves(), np.ones((30, 30)))))  # 720 x 1200
    strange.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    started = explorer(mf.ImageSegmentation(coupling=1.5))
    page, other = visit(started), visit(started)
    until(page, f"{ANSWERS} > 0")
    answered(page, lambda: page.get_by_role("combobox", name="Picture").select_option("landscape"))
    answered(page, lambda: page.get_by_label("Classes", exact=True).select_option("4"))
    assert page.locator(".classes button").count() == 5
    assert other.locator(".classes button").count() == 3
    page.get_by_role("combobox", name="Picture").select_option("own")
    answered(page, lambda: page.locator("input[type=file]").set_input_files(own))
    assert "it is shown with 154 x 258" in page.locator("#told").inner_text()
    page.locator("input[type=file]").set_input_files(strange)
    page.locator("#told.error").wait_for()
    assert page.locator("#told").inner_text() == "the browser cannot open this picture"


@pytest.mark.browser
def test_stereo_follows_its_sliders(explorer: STARTED, visit: STARTED):
    page = visit(explorer(mf.StereoMatching(11, smoothness="truncated_linear")), width=390, theme="dark")
    until(page, f"{ANSWERS} > 0")
    changed = "Number(document.querySelector('#page').dataset.changed)"
    assert page.evaluate(changed) > 0
    answered(page, lambda: move(page.get_by_role("slider", name="Weight"), 0))
    assert page.evaluate(changed) == 0
    answered(page, lambda: page.get_by_label("Smoothness", exact=True).select_option("potts"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_a_grid_crf_with_hostile_labels(explorer: STARTED, visit: STARTED):
    image = halves()[:, :, None] / 255
    hostile = "<img src=x onerror=alert(1)>"
    labels = np.where(image[:, :, 0] > 0.5, "sea", hostile)
    page = visit(explorer(mf.GridCRF(edge_features="constant").fit([image], [labels])), theme="dark")
    until(page, f"{ANSWERS} > 0")
    assert page.locator(".classes button").all_inner_texts() == [hostile, "sea", "rubber"]
    assert page.locator("#page img").count() == 0
    answered(page, lambda: move(page.get_by_role("slider", name="Strength of edges"), 0))
    changed = "document.querySelector('canvas[role=img]').dataset.changed"
    assert page.evaluate(changed) == "0"
