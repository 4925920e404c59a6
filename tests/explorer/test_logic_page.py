"""The page of Markov logic: by HTTP, and in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from tests.explorer.streaming import ask, until

pytest.importorskip("duckdb")
pytest.importorskip("lark")

STARTED = Callable[..., Any]
PROGRAM = """
    person = {Anna, Bob, Carl}
    *Friends(person, person)
    Smokes(person)
    Cancer(person)
    1.5  Smokes(x) => Cancer(x)
    1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))
"""
EVIDENCE = "Friends(Anna, Bob)\nFriends(Bob, Carl)"
HOSTILE = "<img src=x onerror=alert(1)>"
ANSWERS = "Number(document.querySelector('#page').dataset.answers ?? 0)"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "smokers.mln"
    path.write_text(PROGRAM)
    return path


def chance(evidence: str, atom: str, **truths: bool) -> float:
    world = mf.MarkovLogic(PROGRAM).ground(evidence + "\n")
    return float(mf.marginals(world, {f"{k}": v for k, v in truths.items()})[atom][1])


def test_tabs_have_worlds_of_their_own(explorer: STARTED, program: Path):
    started = explorer(program)
    assert ask(started, "explorer", "subject")["pages"][0]["name"] == "logic"
    one, two = {"evidence": EVIDENCE, "query": ""}, {"evidence": "Friends(Anna, Bob)", "query": "Smokes(Anna)"}
    assert ask(started, "logic", "ground", **one)["n_atoms"] == 6
    assert ask(started, "logic", "ground", **two)["n_atoms"] < 6
    found = ask(started, "logic", "ask", **one, truths={"Smokes(Anna)": True})["probabilities"]
    assert found["Cancer(Carl)"] == pytest.approx(chance(EVIDENCE, "Cancer(Carl)", **{"Smokes(Anna)": True}))
    # More worlds than are kept: those that were forgotten are grounded again.
    for k in range(12):
        truth = {"truths": {"Smokes(Anna)": False}} if k % 2 else {}
        told = ask(started, "logic", "ask", evidence=f"Friends(Anna, Bob){' ' * k}", query="", **truth)
        assert told["guarantee"] == "exact"
    assert ask(started, "logic", "push", **one, atom="Smokes(Bob)")["atom"] == "Smokes(Bob)"
    assert len(ask(started, "logic", "best", **one)["violated"]) == 2
    assert "model.ground" in ask(started, "logic", "code", **one)["code"]
    assert ask(started, "logic", "code", evidence=1) == (400, "evidence and query must be texts")
    status, sentence = ask(started, "logic", "ground", evidence="Friends(Anna")
    assert status == 400 and sentence.startswith("<evidence>:1:1: Friends has 0 arguments")


def answered(page: Any, act: Callable[[], Any]) -> None:
    before = page.evaluate(ANSWERS)
    act()
    until(page, f"{ANSWERS} > {before}")


def shown(page: Any, atom: str) -> str:
    return str(page.locator(f"li[data-atom='{atom}'] .number").inner_text())


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_atoms_are_set_by_clicks_and_keys(explorer: STARTED, visit: STARTED, program: Path, width: int, theme: str):
    page = visit(explorer(program), width=width, theme=theme)
    until(page, f"{ANSWERS} > 0")
    page.locator("textarea").fill(EVIDENCE)
    answered(page, page.locator("#ground").click)
    assert shown(page, "Cancer(Carl)") == f"{100 * chance(EVIDENCE, 'Cancer(Carl)'):.1f}%"
    atom = page.locator("g[data-atom='Smokes(Anna)']")
    answered(page, atom.click)
    known = {"Smokes(Anna)": True}
    assert shown(page, "Smokes(Bob)") == f"{100 * chance(EVIDENCE, 'Smokes(Bob)', **known):.1f}%"
    assert atom.get_attribute("aria-label") == "Smokes(Anna): true"
    # By the keyboard: false, then unknown again.
    atom.focus()
    answered(page, lambda: page.keyboard.press("f"))
    assert shown(page, "Smokes(Anna)") == "0%"
    answered(page, lambda: page.keyboard.press("u"))
    assert shown(page, "Smokes(Bob)") == f"{100 * chance(EVIDENCE, 'Smokes(Bob)'):.1f}%"
    answered(page, lambda: page.get_by_label("Cancer(Bob) true", exact=True).click())
    assert page.get_by_label("Cancer(Bob) true", exact=True).get_attribute("aria-pressed") == "true"
    page.locator("li[data-atom='Smokes(Bob)'] .bar").click()
    page.locator(".why", has_text="Log-odds that each formula adds").wait_for()
    page.locator("#decode").click()
    page.locator("#true-atoms").wait_for()
    assert "proven best" in page.get_by_label("Likeliest world").inner_text()
    assert page.locator(".rules tbody tr").first.locator("td").last.inner_text() == "0"
    assert page.locator(".said .badge").first.inner_text() == "exact"
    page.get_by_label("Search", exact=True).fill("smokes")
    assert page.locator(".atoms li:visible").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as saved:
        page.get_by_label("Save network as SVG").click()
    assert "Smokes(Anna)" in saved.value.path().read_text()


@pytest.mark.browser
def test_hostile_constants_and_errors(explorer: STARTED, visit: STARTED, program: Path, tmp_path: Path):
    program.write_text(f't = {{"{HOSTILE}", B}}\nP(t)\n1.0 P(x)')
    page = visit(explorer(program), refusals=True)
    until(page, f"{ANSWERS} > 0")
    atom = page.locator(".atoms li").first.get_attribute("data-atom")
    assert HOSTILE in atom
    answered(page, page.locator("g.atom").first.click)
    assert shown(page, "P(B)") == "73.1%"
    assert page.locator("#page img").count() == 0
    database = tmp_path / "facts.db"
    database.write_text("P(B)\n")
    answered(page, lambda: page.locator("input[type=file]").set_input_files(database))
    assert page.locator("li[data-atom='P(B)']").count() == 0
    page.locator("textarea").fill("P(")
    page.locator("#ground").click()
    page.locator("#told.error").wait_for()


@pytest.mark.browser
def test_a_new_program_keeps_the_evidence(explorer: STARTED, visit: STARTED, program: Path):
    page = visit(explorer(program))
    until(page, f"{ANSWERS} > 0")
    page.locator("textarea").fill(EVIDENCE)
    answered(page, page.locator("#ground").click)
    program.write_text(PROGRAM + "    0.5 Cancer(x)\n")
    until(page, "document.querySelectorAll('.rules tbody tr').length === 3")
    assert page.locator("textarea").input_value() == EVIDENCE
