"""The page of networks for the keyboard alone, on a phone, in both themes, and for those who hear it read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from tests.explorer.clicks import answered, choose, observe, open_panel, press
from tests.explorer.streaming import until

pytestmark = pytest.mark.browser

Started = Callable[..., Any]

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
# Everything that can be clicked or typed into has a name that is read aloud.
NAMELESS = """[...document.querySelectorAll(
    "button, select, input, summary, [role=button], [role=application], [role=listbox]")]
  .filter((e) => e.checkVisibility()
    && !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")?.textContent.trim()))
  .map((e) => e.outerHTML.slice(0, 80))"""
# What has the keyboard and shows no outline, as text; empty otherwise. Nodes have an outline of their own.
UNSEEN = """(() => {
  const e = document.activeElement;
  const own = e === document.body || e.closest("svg");
  return own || getComputedStyle(e).outlineStyle !== "none" ? "" : e.outerHTML.slice(0, 80);
})()"""


def test_everything_by_the_keyboard_alone(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()))
    answered(page, "")
    keys = page.keyboard
    focus = "document.activeElement"
    # Search, choose, observe by digit.
    keys.press("/")
    assert page.evaluate(f"{focus}.type") == "search"
    keys.type("xr")
    keys.press("Enter")
    assert page.locator(".panel h3").inner_text() == "xray"
    keys.press("2")
    answered(page, "s=6.1")
    # Down and up the list without losing one's place; what is active is said.
    for _ in range(5):
        keys.press("ArrowDown")
    assert page.evaluate(f"{focus}.getAttribute('aria-activedescendant')") == "variable-6"
    page.get_by_label("Search variables").fill("")
    page.locator(".list ul").focus()
    keys.press("Home")
    assert page.locator(".panel h3").inner_text() == "asia"
    keys.press("End")
    assert page.locator(".panel h3").inner_text() == "dysp"
    # On to the toolbar, the evidence, the drawing: one stop for all nodes, arrows between them.
    seen = []
    for _ in range(14):
        keys.press("Tab")
        seen.append(page.evaluate(f"{focus}.getAttribute('aria-label') ?? {focus}.textContent"))
        if page.evaluate(f"{focus}.classList.contains('node')"):
            break
    assert seen[0] == "Forget xray" and seen[2:5] == ["Show", "Nodes", "Layout"]
    assert seen[-1].startswith("dysp: ")
    assert page.evaluate(f"getComputedStyle({focus}.querySelector('.box')).strokeWidth") == "3.4px"
    keys.press("ArrowUp")
    above = page.evaluate(f"Number({focus}.dataset.v)")
    assert above in (4, 5)
    keys.press("1")
    answered(page, f"s={above}.0,6.1")
    keys.press("Delete")
    answered(page, "s=6.1")
    # Zoom and undo.
    moved = "document.querySelector('.canvas > g').getAttribute('transform')"
    before = page.evaluate(moved)
    keys.press("+")
    assert page.evaluate(moved) != before
    keys.press("Control+z")
    answered(page, f"s={above}.0,6.1")
    # Panels: one stop, arrows between them; then a button by Enter and by space.
    page.locator('.panel-tabs [aria-selected="true"]').focus()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    assert page.evaluate(f"{focus}.dataset.panel") == "decode"
    assert page.locator('.panel-tabs [tabindex="0"]').count() == 1
    page.locator('[data-do="decode"]').focus()
    keys.press("Enter")
    page.get_by_text("proven best").wait_for()
    page.locator(".solution summary").nth(1).focus()
    keys.press("Space")
    assert page.locator(".solution").nth(1).get_attribute("open") is not None
    # The menu closes by Escape and gives the keyboard back.
    page.locator(".menu summary").focus()
    keys.press("Enter")
    assert page.locator('[data-export="svg"]').is_visible()
    keys.press("Escape")
    assert not page.locator('[data-export="svg"]').is_visible()
    assert page.evaluate(f"{focus}.tagName") == "SUMMARY"


def test_states_by_the_keyboard_keep_their_place(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()))
    choose(page, 2)
    page.locator('.bar-row[data-state="0"]').focus()
    page.keyboard.press("Space")
    answered(page, "s=2.0")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    answered(page, "s=2.1")
    assert page.evaluate("document.activeElement.dataset.state") == "1"
    assert page.locator('.bar-row[data-state="1"]').get_attribute("aria-pressed") == "true"


def test_what_is_focused_is_seen(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()))
    choose(page, 2)
    unseen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        told = page.evaluate(UNSEEN)
        if told:
            unseen.append(told)
    assert unseen == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read(explorer: Started, visit: Started, theme: str):
    page = visit(explorer(mf.datasets.asia()), theme=theme)
    observe(page, 6, 1)
    observe(page, 2, 0)
    choose(page, 3)
    page.get_by_label("do", exact=True).select_option("1")
    answered(page, "s=2.0,6.1&d=3.1")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(dark.split("(")[1].split(",")[0]) < 60) == (theme == "dark")
    choose(page, 4)
    poor = page.evaluate(CONTRAST)
    for name, task in [("evidence", None), ("decode", "decode"), ("separate", None), ("analyse", "observe"),
                       ("structure", "eliminate"), ("messages", "messages"), ("plan", None)]:  # fmt: skip
        panel = open_panel(page, name)
        if task:
            press(page, task)
        if name == "separate":
            choose(page, 0)
            panel.locator(".verdict").wait_for()
        poor += page.evaluate(CONTRAST)
        assert page.evaluate(NAMELESS) == []
    assert poor == []


def test_it_fits_a_phone(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()), width=390, height=780, has_touch=True)
    answered(page, "")
    fits = "document.documentElement.scrollWidth <= 390"
    part = page.locator(".switcher")
    assert page.evaluate(fits) and part.is_visible()
    box = page.locator(".canvas").first.bounding_box()
    assert box["width"] <= 390 and box["height"] > 350
    part.get_by_text("Variables").tap()
    page.locator("#variable-6").tap()
    # Choosing shows the details.
    page.locator('.panel .bar-row[data-state="1"]').tap()
    answered(page, "s=6.1")
    for name in ("variable", "evidence", "decode", "separate", "analyse", "structure", "messages", "plan"):
        page.locator(f'.panel-tabs [data-panel="{name}"]').tap()
        panel = page.locator(f'.panel[data-panel="{name}"]')
        for button in panel.locator("button.primary:visible:enabled").all():
            button.tap()
        page.locator(".panel .busy").first.wait_for(state="detached")
        assert page.evaluate(fits)
        assert page.evaluate(
            "document.querySelector('.panel').scrollWidth <= document.querySelector('.panel').clientWidth + 1"
        )
    # Fingers need room.
    small = page.evaluate(
        "[...document.querySelectorAll('.switcher button, .panel-tabs button, .panel .bar-row')]"
        ".filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 32).length"
    )
    assert small == 0
    part.get_by_text("Graph").tap()
    page.locator('.node[data-v="2"] .row[data-state="0"]').tap()
    answered(page, "s=2.0,6.1")
    until(page, fits)


def test_a_theme_of_ones_own_is_kept(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()))
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: dark"
    page.reload()
    page.locator("html[data-theme=dark]").wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
