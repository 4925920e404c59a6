"""What is taken along from the page of networks: pictures, code, a report; and names that want to be more than text."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import markovfield as mf
from tests.explorer.clicks import answered, choose, observe, open_panel, posterior, press, take
from tests.explorer.streaming import until

pytestmark = pytest.mark.browser

Started = Callable[..., Any]
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'`&amp;<img src=x onerror=alert(2)>",
    "line\nbreak\ttab\r",
    "\u202eright to left\u2066 \U0001f600 é",
    "nul\x00 bell\x07 half \ud800",
    "$\\frac{$ _^ %s {0} ${x}",
    "</style></title></pre></script><script>alert(3)</script>",
    "__proto__",
]


def hostile_network() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({name: [f"{name} yes", "<b onclick=alert(4)>no</b>"] for name in HOSTILE})
    for before, name in zip([None, *HOSTILE], HOSTILE, strict=False):
        if before is None:
            net.add_cpt(name, [], [0.3, 0.7])
        else:
            net.add_cpt(name, [before], [[0.8, 0.2], [0.1, 0.9]])
    return net


def test_pictures_show_what_the_page_shows(explorer: Started, visit: Started, tmp_path: Path):
    path = tmp_path / "asia.net.bif"
    mf.write(mf.datasets.asia(), path)
    page = visit(explorer(path))
    observe(page, 6, 1)
    answered(page, "s=6.1")
    name, content = take(page, "svg")
    assert name == "asia.svg"
    drawing = ElementTree.fromstring(content)
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    shown = page.locator(".canvas text").all_text_contents()
    assert words == shown and "xray" in words and "100%" in words
    # Colours are in the file: nothing of the page's style sheet is needed, and nothing names its address.
    assert all(box.get("fill", "").startswith("rgb") for box in drawing.iter(f"{SVG}rect"))
    assert b"127.0.0.1" not in content and b"class=" not in content
    assert len(list(drawing.iter(f"{SVG}path"))) >= 8

    name, content = take(page, "png")
    assert name == "asia.png" and content.startswith(b"\x89PNG\r\n")
    wide, high = struct.unpack(">II", content[16:24])
    assert (wide, high) == (2 * int(drawing.get("width", 0)), 2 * int(drawing.get("height", 0)))

    name, content = take(page, "pdf")
    assert name == "asia.pdf" and content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")


def test_the_code_asks_the_same(explorer: Started, visit: Started, tmp_path: Path):
    path = tmp_path / 'it\'s "asia".bif'
    mf.write(mf.datasets.asia(), path)
    page = visit(explorer(path))
    observe(page, 6, 1)
    choose(page, 3)
    page.get_by_label("do", exact=True).select_option("1")
    answered(page, "s=6.1&d=3.1")
    shown = posterior(page, 4)
    _, content = take(page, "code")
    found: dict[str, Any] = {}
    exec(content.decode("ascii"), found)
    assert shown == pytest.approx(np.asarray(found["answer"]["bronc"]), rel=1e-9)
    assert found["evidence"] == {"xray": "yes"}
    told = open_panel(page, "evidence").locator("pre", has_text="import markovfield")
    told.wait_for()
    assert told.text_content() == content.decode()


def test_the_report_is_one_file_that_opens_without_the_server(explorer: Started, visit: Started, tmp_path: Path):
    started = explorer(mf.datasets.asia())
    page = visit(started)
    observe(page, 6, 1)
    answered(page, "s=6.1")
    name, content = take(page, "report")
    reader = page.context.browser.new_page()
    page.close()
    started.close()
    file = tmp_path / name
    file.write_bytes(content)
    assert content.startswith(b"<!doctype html>") and b"127.0.0.1" not in content and b"<script" not in content
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(file.as_uri())
    told = reader.locator("body").inner_text()
    for words in ("xray = yes", "guarantee", "exact", "bounds of log Z", "Likeliest assignment", "import markovfield"):
        assert words in told
    expected = mf.marginals(mf.datasets.asia(), {"xray": "yes"})
    assert f"{expected['lung'][1]:.10g}" in told
    assert reader.locator("svg rect").count() > 20 and reader.locator("td.bar div").first.bounding_box()["height"] > 0
    # The drawing is in its colours, and the bars as long as they should be.
    wide = reader.evaluate("[...document.querySelectorAll('td.bar .now')].map((x) => parseFloat(x.style.width))")
    assert wide == pytest.approx(100 * np.concatenate([expected[v] for v in expected.graph.variables]), abs=0.051)
    assert asked == [file.as_uri()]
    reader.close()


def test_hostile_names_stay_text(explorer: Started, visit: Started, tmp_path: Path):
    page = visit(explorer(hostile_network()))
    observe(page, 4, 0)
    answered(page, "s=4.0")
    titles = page.evaluate("[...document.querySelectorAll('.list .name')].map((x) => x.textContent)")
    assert titles[0] == HOSTILE[0] and titles[1] == HOSTILE[1] and titles[7] == "__proto__"
    # What would hide or reorder is made visible.
    assert titles[2] == "line␊break␉tab␍" and titles[3] == "\ufffdright to left\ufffd \U0001f600 é"
    assert titles[4] == "nul␀ bell␇ half \ufffd"
    expected = mf.marginals(hostile_network(), {HOSTILE[4]: f"{HOSTILE[4]} yes"})
    for v in (0, 7):
        assert posterior(page, v) == pytest.approx(np.asarray(expected[HOSTILE[v]]), rel=1e-9)
    for name, task in [("decode", "decode"), ("analyse", "observe"), ("analyse", "tornado"), ("structure", "tree"),
                       ("structure", "eliminate"), ("messages", "messages"), ("messages", "residuals")]:  # fmt: skip
        open_panel(page, name)
        press(page, task)
        assert page.locator(".panel .problem").count() == 0
    panel = open_panel(page, "separate")
    choose(page, 0)
    panel.locator(".verdict").wait_for()
    open_panel(page, "variable")
    page.get_by_text("Why? What each piece of evidence adds").click()
    press(page, "contributions")
    files = {kind: take(page, kind)[1] for kind in ("svg", "png", "pdf", "code", "report")}
    assert len(ElementTree.fromstring(files["svg"]).findall(f".//{SVG}script")) == 0
    assert files["png"].startswith(b"\x89PNG") and files["pdf"].startswith(b"%PDF")
    found: dict[str, Any] = {"model": hostile_network()}
    exec(files["code"].decode("ascii").replace("model = ...", "model = model"), found)
    assert found["evidence"] == {HOSTILE[4]: f"{HOSTILE[4]} yes"}
    # None of it became an element, here or in the report.
    foreign = "document.querySelectorAll('body script, body img, b, [onclick], [onerror]').length"
    assert page.evaluate(foreign) == 0
    report = tmp_path / "report.html"
    report.write_bytes(files["report"])
    reader = page.context.new_page()
    alarms: list[str] = []
    reader.on("dialog", lambda dialog: alarms.append(dialog.message))
    reader.set_content(files["report"].decode("utf-8", "surrogatepass"))
    assert reader.evaluate(foreign.replace("body script", "script")) == 0
    assert HOSTILE[6] in reader.locator("body").inner_text()
    assert reader.title() == "BayesianNetwork" and alarms == []


def test_every_picture_of_a_large_network(explorer: Started, visit: Started):
    net = mf.BayesianNetwork({f"v{i}": ["off", "on"] for i in range(155)})
    net.add_cpt("v0", [], [0.5, 0.5])
    for i in range(1, 155):
        net.add_cpt(f"v{i}", [f"v{(i - 1) // 2}"], [[0.9, 0.1], [0.2, 0.8]])
    page = visit(explorer(net))
    page.get_by_label("Show").select_option("whole")
    until(page, "document.querySelectorAll('.node').length === 155")
    # Whatever is in sight, the whole is saved.
    for _ in range(20):
        page.get_by_label("Larger").click()
    until(page, "document.querySelectorAll('.node').length < 100")
    _, svg = take(page, "svg")
    words = {text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}
    assert {f"v{i}" for i in range(155)} <= words
    _, png = take(page, "png")
    assert max(struct.unpack(">II", png[16:24])) <= 8192
    assert take(page, "pdf")[1].startswith(b"%PDF")
