"""What becomes of a question: stopped, asked by another method, of a model that has changed, gone stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import StoppedError
from markovfield.explorer.core.stopping import nobody_waits
from markovfield.explorer.pages import network
from tests.explorer.clicks import answered, choose, observe, open_panel, posterior, press
from tests.explorer.streaming import eventually, until

pytestmark = pytest.mark.browser

Started = Callable[..., Any]
# asia's variables, by position.
ASIA, TUB, SMOKE, LUNG, BRONC, EITHER, XRAY, DYSP = range(8)


class Endless:
    """A call that works until nobody waits for it any more."""

    def __init__(self) -> None:
        self.begun = self.stopped = 0

    def __call__(self, subject: Any, asked: dict[str, Any]) -> Any:
        self.begun += 1
        assert eventually(nobody_waits)
        self.stopped += 1
        raise StoppedError("the browser has given this question up")


def test_slow_answers_are_stopped(explorer: Started, visit: Started, monkeypatch: pytest.MonkeyPatch):
    page = visit(explorer(mf.datasets.asia()))
    observe(page, XRAY, 1)
    answered(page, "s=6.1")
    slow, ask = Endless(), network.PAGE.calls["posteriors"]
    monkeypatch.setitem(network.PAGE.calls, "posteriors", slow)  # type: ignore[arg-type]
    observe(page, SMOKE, 1)
    page.get_by_text("computing ...").wait_for()
    # The page is alive meanwhile: panels open and ask.
    panel = open_panel(page, "structure")
    press(page, "tree")
    assert "6 cliques" in panel.inner_text()
    page.locator('[data-do="stop"]').click()
    page.get_by_text("The computation was stopped; the last change was taken back.").wait_for()
    assert page.locator(".strip .chip").all_inner_texts() == ["xray = yes ×"]
    assert eventually(lambda: slow.stopped == slow.begun == 1)
    monkeypatch.setitem(network.PAGE.calls, "posteriors", ask)  # type: ignore[arg-type]
    open_panel(page, "variable")
    observe(page, SMOKE, 1)
    answered(page, "s=2.1,6.1")


def test_work_of_panels_is_stopped(explorer: Started, visit: Started, monkeypatch: pytest.MonkeyPatch):
    page = visit(explorer(mf.datasets.asia()))
    slow = Endless()
    for call in ("best", "observe_next", "tornado"):
        monkeypatch.setitem(network.PAGE.calls, call, slow)  # type: ignore[arg-type]
    choose(page, LUNG)
    for panel, task in (("decode", "decode"), ("analyse", "observe"), ("analyse", "tornado")):
        opened = open_panel(page, panel)
        opened.locator(f'[data-do="{task}"]').click()
        opened.locator('[data-do="stop-work"]').click()
        opened.get_by_text("Stopped.", exact=True).last.wait_for()
        assert opened.locator(f'[data-do="{task}"]').is_enabled()
    assert eventually(lambda: slow.stopped == slow.begun == 3)


def test_the_method_is_part_of_the_question(explorer: Started, visit: Started):
    model = mf.Ising((4, 4), 0.4, field=0.2)
    page = visit(explorer(model), hash="#network", refusals=True)
    observe(page, 5, 0)
    answered(page, "s=5.0")
    until(page, "location.hash.includes('s=5.0')")
    panel = open_panel(page, "plan")
    panel.get_by_label("Method").select_option("mean_field")
    page.locator('#page[data-method="mean_field"]').wait_for()
    assert page.locator(".answer .badge").first.inner_text() == "lower bound"
    lower = mf.marginals(model, {5: -1}, method="mean_field").log_partition
    assert f"log Z ≥ {lower:.5g}" in page.locator(".answer").inner_text()
    until(page, "[...document.querySelectorAll('.panel .facts')].at(-1)?.textContent.startsWith('methodmean_field')")
    until(page, "location.hash.includes('w=mean_field')")
    # Back to the usual one, forward, and read again: each as it was asked.
    page.go_back()
    page.locator('#page[data-method="junction_tree"], #page[data-method="enumeration"]').wait_for()
    page.go_forward()
    page.locator('#page[data-method="mean_field"]').wait_for()
    page.reload()
    page.locator('#page[data-method="mean_field"]').wait_for()
    answered(page, "s=5.0")
    # The panel that was looked at is open again, and the selected variable selected.
    assert panel.get_by_label("Method").input_value() == "mean_field"
    assert page.locator("#variable-5").get_attribute("aria-selected") == "true"


def test_a_method_that_fails_is_taken_back(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()), refusals=True)
    panel = open_panel(page, "plan")
    panel.get_by_label("Method").select_option("gibbs")
    page.get_by_text("hard zeros keep gibbs from reaching every assignment").wait_for()
    assert "taken back" in page.locator("#told").inner_text()
    until(page, "document.querySelector('[aria-label=Method]').value === 'auto'")
    # Where it has an answer, but none without the evidence, there is nothing behind the bars.
    open_panel(page, "variable")
    observe(page, LUNG, 1)
    answered(page, "s=3.1")
    open_panel(page, "plan").get_by_label("Method").select_option("gibbs")
    page.locator('#page[data-method="gibbs"]').wait_for()
    panel = open_panel(page, "evidence")
    panel.get_by_text("gibbs does not tell how probable the evidence is").wait_for()


def test_evidence_outlives_a_change_of_the_model(explorer: Started, visit: Started, tmp_path: Any):
    asia, path = mf.datasets.asia(), tmp_path / "model.bif"
    mf.write(asia, path)
    page = visit(explorer(path), refusals=True)
    for v, state in ((XRAY, 0), (DYSP, 1)):
        observe(page, v, state)
    choose(page, SMOKE)
    page.get_by_label("do", exact=True).select_option("1")
    answered(page, "s=6.0,7.1&d=2.1")
    until(page, "location.hash.includes('d=2.1')")
    # The same without dysp, and with the other variables in another order.
    smaller = mf.BayesianNetwork(
        {v: ["no", "yes"] for v in ("xray", "either", "lung", "tub", "smoke", "bronc", "asia")}
    )
    for child, parents in (("asia", []), ("smoke", []), ("tub", ["asia"]), ("lung", ["smoke"]), ("bronc", ["smoke"]),
                           ("either", ["lung", "tub"]), ("xray", ["either"])):  # fmt: skip
        smaller.add_cpt(child, parents, np.tile([0.6, 0.4], (*(2,) * len(parents), 1)) if parents else [0.6, 0.4])
    mf.write(smaller, path)
    page.get_by_text("The evidence on dysp was left out: the model has no such variable or state any more.").wait_for()
    assert "was read again" in page.locator("#told").inner_text()
    names = [str(v) for v in mf.read(path).compile().variables]
    answered(page, f"s={names.index('xray')}.0&d={names.index('smoke')}.1")
    assert page.locator(".panel h3.title").inner_text() == "smoke"
    # Where the file is gone, that is told and the model stays.
    path.unlink()
    page.get_by_role("button", name="Reload").click()
    page.get_by_text("cannot open").wait_for()
    assert posterior(page, names.index("smoke"))[1] == 1


def test_what_was_said_of_other_evidence_is_marked(explorer: Started, visit: Started):
    page = visit(explorer(mf.datasets.asia()))
    choose(page, LUNG)
    panel = open_panel(page, "analyse")
    for task in ("observe", "tornado"):
        press(page, task)
    assert "lung" in panel.inner_text() and panel.locator(".old").count() == 0
    page.locator(f'.node[data-v="{XRAY}"] .row[data-state="1"]').click()
    answered(page, "s=6.1")
    assert panel.locator(".old").count() == 2
    page.locator(".strip .chip").click()
    answered(page, "")
    choose(page, LUNG)
    press(page, "observe")
    assert panel.locator(".old").count() == 1


def test_of_many_states_the_likeliest_are_drawn(explorer: Started, visit: Started):
    rng = np.random.default_rng(5)
    weights = rng.permutation(100) + 1.0
    net = mf.BayesianNetwork({"level": [f"number {k}" for k in range(100)], "high": ["no", "yes"], "sole": ["only"]})
    net.add_cpt("level", [], weights / weights.sum())
    net.add_cpt("high", ["level"], [[0.9, 0.1]] * 50 + [[0.2, 0.8]] * 50)
    net.add_cpt("sole", ["high"], [[1.0], [1.0]])
    page = visit(explorer(net))
    answered(page, "")

    def drawn() -> list[int]:
        states = page.evaluate("[...document.querySelectorAll('.node[data-v=\"0\"] .row')].map((x) => x.dataset.state)")
        return [int(k) for k in states]

    assert drawn() == sorted(np.argsort(-weights)[:7].tolist())
    observe(page, 1, 1)
    answered(page, "s=1.1")
    now = mf.marginals(net, {"high": "yes"})["level"]
    assert drawn() == sorted(np.argsort(-now)[:7].tolist())
    # What is observed is among them, and a variable of one state takes evidence as well.
    observe(page, 0, 0)
    observe(page, 2, 0)
    answered(page, "s=0.0,1.1,2.0")
    assert 0 in drawn()
    assert page.locator('.node[data-v="0"] .row.on').get_attribute("data-state") == "0"


def test_interventions_cut_arrows_and_stay_interventions(explorer: Started, visit: Started):
    asia = mf.datasets.asia()
    page = visit(explorer(asia))
    choose(page, LUNG)
    page.get_by_label("do", exact=True).select_option("0")
    answered(page, "d=3.0")
    assert page.locator(".edge.cut").count() == 1
    # Clicking the other state sets that one; observing a variable that is set would say nothing or the impossible.
    page.locator(f'.node[data-v="{LUNG}"] .row[data-state="1"]').click()
    answered(page, "d=3.1")
    done = mf.marginals(asia.do({"lung": "yes"}))
    assert posterior(page, XRAY) == pytest.approx(np.asarray(done["xray"]), rel=1e-9)
    # Without the intervention smoke and xray hang together.
    choose(page, SMOKE)
    panel = open_panel(page, "separate")
    page.locator(f"#variable-{XRAY}").click()
    panel.locator(".verdict .badge").get_by_text("d-separated", exact=True).wait_for()
    assert "after do(lung)" in panel.inner_text()
    page.get_by_label("Forget lung").first.click()
    panel.locator(".verdict .badge").get_by_text("connected", exact=True).wait_for()
    assert page.locator(".edge.cut").count() == 0
