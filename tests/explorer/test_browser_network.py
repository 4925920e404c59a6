"""The page of networks in a real browser: clicks are what the verbs are asked, numbers what they answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.explorer.clicks import answered, choose, observe, open_panel, posterior, press
from tests.explorer.streaming import until

pytestmark = pytest.mark.browser

Started = Callable[..., Any]
# asia's variables, by position.
ASIA, TUB, SMOKE, LUNG, BRONC, EITHER, XRAY, DYSP = range(8)


@pytest.fixture
def asia() -> mf.BayesianNetwork:
    net = mf.datasets.asia()
    assert [str(v)[:3] for v in net.compile().variables] == ["asi", "tub", "smo", "lun", "bro", "eit", "xra", "dys"]
    return net


def values(answer: Any, variable: int) -> np.ndarray:
    return np.asarray(answer[answer.graph.variables[variable]])


def known(net: Any, **states: int) -> dict[Any, Any]:
    graph = net.compile()
    found = {}
    for v, k in states.items():
        name = graph.variables[int(v[1:])]
        found[name] = graph.names.state_names(int(v[1:]), int(graph.structure.cardinalities[int(v[1:])]))[k]
    return found


def test_clicks_give_the_posteriors_of_the_verb(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    answered(page, "")
    assert posterior(page, LUNG) == pytest.approx(values(mf.marginals(asia), LUNG), rel=1e-9)
    observe(page, XRAY, 1)
    answered(page, "s=6.1")
    observe(page, SMOKE, 1)
    answered(page, "s=2.1,6.1")
    expected = mf.marginals(asia, known(asia, v6=1, v2=1))
    for v in range(8):
        assert posterior(page, v) == pytest.approx(values(expected, v), rel=1e-9)
    # Bars in the drawing tell the same.
    p = values(expected, TUB)[0]
    shown = page.locator(f'.node[data-v="{TUB}"] .row[data-state="0"]')
    assert float(shown.locator(".number").text_content().rstrip("%")) == pytest.approx(100 * p, abs=0.06)
    other = page.locator(f'.node[data-v="{TUB}"] .row[data-state="1"]')
    wide, rest = (float(x.locator(".after").get_attribute("width")) for x in (shown, other))
    assert wide / (wide + rest) == pytest.approx(p, abs=0.01)
    # The badge tells log P(evidence), and how far it can be trusted.
    assert page.locator(".answer .badge").first.inner_text() == "exact"
    assert f"log Z {expected.log_partition:.5g}" in page.locator(".answer").inner_text()
    # A click on what is observed takes it back; clear takes the rest.
    observe(page, XRAY, 1)
    answered(page, "s=2.1")
    page.locator('[data-do="clear"]').click()
    answered(page, "")


def test_a_click_into_the_drawing_observes(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    page.locator(f'.node[data-v="{DYSP}"] .row[data-state="1"]').click()
    answered(page, f"s={DYSP}.1")
    assert page.locator(f'.node[data-v="{DYSP}"]').get_attribute("class") == "node seen selected"
    page.locator(".strip .chip").click()
    answered(page, "")


def test_sliders_are_virtual_evidence(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    choose(page, XRAY)
    page.get_by_text("Likelihoods (uncertain evidence)").click()
    slider = page.locator('[data-likelihood="1"]')
    slider.focus()
    for _ in range(75):
        page.keyboard.press("ArrowLeft")
    answered(page, "l=6:1:0.25")
    name = asia.compile().variables[XRAY]
    expected = mf.marginals(asia, {name: [1.0, 0.25]})
    # The slider that is moved stays, and the bars above it follow.
    assert page.evaluate("document.activeElement.dataset.likelihood") == "1"
    for v in (XRAY, LUNG, TUB):
        assert posterior(page, v) == pytest.approx(values(expected, v), rel=1e-9)
    # Undo takes back the last press; likelihoods that are all alike say nothing.
    open_panel(page, "evidence").get_by_role("button", name="Undo").click()
    answered(page, "l=6:1:0.26")
    open_panel(page, "variable")
    choose(page, XRAY)
    slider.focus()
    page.keyboard.press("End")
    answered(page, "")


def test_what_if(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    choose(page, LUNG)
    page.get_by_label("do", exact=True).select_option("0")
    answered(page, "d=3.0")
    graph = asia.compile()
    state = graph.names.state_names(LUNG, 2)[0]
    done = mf.marginals(asia.do({graph.variables[LUNG]: state}))
    seen = mf.marginals(asia, {graph.variables[LUNG]: state})
    assert posterior(page, SMOKE) == pytest.approx(values(done, SMOKE), rel=1e-9)
    assert abs(values(done, SMOKE)[0] - values(seen, SMOKE)[0]) > 0.01
    observe(page, DYSP, 0)
    answered(page, "s=7.0&d=3.0")
    expected = mf.marginals(asia.do({graph.variables[LUNG]: state}), known(asia, v7=0))
    assert posterior(page, BRONC) == pytest.approx(values(expected, BRONC), rel=1e-9)


def test_other_models_have_no_interventions(explorer: Started, visit: Started):
    page = visit(explorer(mf.Potts((3, 4), 3, 0.7)), hash="#network")
    choose(page, 5)
    page.locator(".panel h3").wait_for()
    assert page.get_by_label("do", exact=True).count() == 0
    assert page.get_by_label("Layout").input_value() == "grid"
    observe(page, 0, 2)
    answered(page, "s=0.2")
    expected = mf.marginals(mf.Potts((3, 4), 3, 0.7), {0: 2})
    assert posterior(page, 5) == pytest.approx(values(expected, 5), rel=1e-9)


def test_impossible_evidence_is_taken_back(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia), refusals=True)
    observe(page, EITHER, 0)
    answered(page, "s=5.0")
    observe(page, LUNG, 1)
    page.locator("#told.error").wait_for()
    assert "the last change was taken back" in page.locator("#told").inner_text()
    answered(page, "s=5.0")
    assert page.locator(".strip .chip").count() == 1
    observe(page, XRAY, 0)
    answered(page, "s=5.0,6.0")
    assert page.locator("#told").inner_text() == ""


def test_separation_in_the_drawing_and_in_words(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    answered(page, "")
    panel = open_panel(page, "separate")
    page.locator(f'.node[data-v="{ASIA}"] .name').click(force=True)
    panel.locator('[data-pick="b"]').click()
    page.locator(f'.node[data-v="{SMOKE}"] .name').click(force=True)
    panel.locator(".verdict .badge").get_by_text("d-separated", exact=True).wait_for()
    assert "neither" in panel.inner_text() and page.locator(".edge.hot").count() == 0
    panel.locator('[data-pick="given"]').click()
    page.locator(f"#variable-{DYSP}").click()
    panel.locator(".verdict .badge").get_by_text("connected", exact=True).wait_for()
    told = panel.inner_text()
    assert "explaining away" in told and "its descendant" in told
    # asia - tub - either - lung - smoke, and the other way round by dysp and bronc.
    assert panel.locator(".paths > li").count() == 2
    assert page.locator(".edge.hot").count() == 7
    panel.locator(".paths .link").first.click()
    assert page.locator(".edge.hot").count() == 4
    open_panel(page, "variable")
    assert page.locator(".edge.hot").count() == 0


def test_decoding(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    observe(page, XRAY, 0)
    answered(page, "s=6.0")
    panel = open_panel(page, "decode")
    press(page, "decode")
    best = mf.decode(asia, known(asia, v6=0), n_best=3)
    assert "proven best" in panel.inner_text()
    assert panel.locator(".solution").count() == 3
    for i, one in enumerate(best.n_best):
        summary = panel.locator(".solution summary").nth(i).inner_text()
        assert float(summary.split("score ")[1].split(",")[0]) == pytest.approx(one.score, rel=1e-5)
    rows = panel.locator(".solution").first.locator("tr").all_inner_texts()
    graph = asia.compile()
    told = dict(row.split("\t") for row in rows)
    assert told == {str(v): str(s) for v, s in best.assignment.items() if v != graph.variables[XRAY]}
    # Marginal MAP of two picked variables.
    panel.get_by_label("of picked variables only").check()
    for v in (LUNG, BRONC):
        page.locator(f"#variable-{v}").click()
    press(page, "decode")
    two = [graph.variables[v] for v in (LUNG, BRONC)]
    some = mf.decode(asia, known(asia, v6=0), variables=two)
    rows = panel.locator(".solution").first.locator("tr").all_inner_texts()
    assert dict(row.split("\t") for row in rows) == {str(v): str(some.assignment[v]) for v in two}
    panel.get_by_role("button", name="Take as evidence").click()
    page.locator(".strip .chip").nth(2).wait_for()


def test_studies(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    observe(page, DYSP, 0)
    observe(page, XRAY, 0)
    answered(page, "s=6.0,7.0")
    choose(page, LUNG)
    page.get_by_text("Why? What each piece of evidence adds").click()
    press(page, "contributions")
    assert page.locator(".signed-row").count() == 2
    panel = open_panel(page, "analyse")
    press(page, "observe")
    graph = asia.compile()
    bits = mf.analysis.mutual_information(asia, graph.variables[LUNG], evidence=known(asia, v6=0, v7=0))
    name, most = bits.top(1)[0]
    first = panel.locator(".numbers tr").nth(1).locator("td").all_inner_texts()
    assert first[0] == str(name) and float(first[1]) == pytest.approx(most / np.log(2), rel=2e-3)
    press(page, "tornado")
    assert panel.locator(".tornado .entry").count() >= 5
    panel = open_panel(page, "evidence")
    assert "the pieces agree" in panel.inner_text()
    assert f"{mf.log_partition(asia, known(asia, v6=0, v7=0)).log_partition:.5g}" in panel.inner_text()


def test_structure_and_messages(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    answered(page, "")
    page.get_by_label("moral graph").check()
    until(page, "document.querySelectorAll('.married').length === 2")
    panel = open_panel(page, "structure")
    press(page, "tree")
    plan = mf.methods.JunctionTree.compile(asia.compile()).plan
    assert panel.locator(".clique").count() == len(plan.cliques())
    assert f"width {plan.width}" in panel.inner_text()
    press(page, "eliminate")
    for _ in range(3):
        page.locator('[data-do="step"]').click()
    assert "3. " in panel.locator(".step").inner_text()
    assert page.locator(".node.gone").count() == 2
    panel = open_panel(page, "messages")
    for algebra in ("sum", "max"):
        panel.get_by_label("Algebra").select_option(algebra)
        press(page, "messages")
        page.locator('[data-do="message"]').click()
        panel.locator(".message").first.wait_for()
    press(page, "residuals")
    panel.locator(".chart .line").wait_for()


def test_the_blanket(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    choose(page, EITHER)
    page.get_by_role("button", name="Markov blanket").click()
    until(page, "document.querySelectorAll('.node.near').length === 5")
    page.get_by_label("Show").select_option("blanket")
    until(page, "document.querySelectorAll('.node').length === 6")


def test_approximate_answers_say_so(explorer: Started, visit: Started):
    model = mf.Ising((4, 4), 0.4, field=0.2)
    page = visit(explorer(model), hash="#network")
    panel = open_panel(page, "plan")
    panel.get_by_label("Method").select_option("tree_reweighted")
    page.locator('#page[data-method="tree_reweighted"]').wait_for()
    assert page.locator(".answer .badge").first.inner_text() == "upper bound"
    upper = mf.marginals(model, method="tree_reweighted").log_partition
    assert f"{upper:.5g}" in page.locator(".answer").inner_text()
    panel.get_by_label("Method").select_option("gibbs")
    page.locator('#page[data-method="gibbs"]').wait_for()
    open_panel(page, "variable")
    choose(page, 3)
    assert page.locator(".panel .bar-row .error").count() == 2
    assert "±" in page.locator(".panel .bars").inner_text()


def test_tabs_are_independent_and_history_goes_back(explorer: Started, visit: Started, asia: Any):
    started = explorer(asia)
    one, two = visit(started), visit(started)
    observe(one, XRAY, 0)
    answered(one, "s=6.0")
    observe(two, SMOKE, 1)
    answered(two, "s=2.1")
    assert posterior(one, SMOKE) == pytest.approx(values(mf.marginals(asia, known(asia, v6=0)), SMOKE), rel=1e-9)
    until(one, "location.hash.includes('s=6.0')")
    observe(one, DYSP, 1)
    answered(one, "s=6.0,7.1")
    until(one, "location.hash.includes('7.1')")
    one.go_back()
    answered(one, "s=6.0")
    one.go_back()
    answered(one, "")
    one.go_forward()
    answered(one, "s=6.0")
    # Reading the page again finds the evidence in the address; two has kept its own.
    one.reload()
    answered(one, "s=6.0")
    answered(two, "s=2.1")


def test_an_address_about_another_model_is_not_believed(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia), hash="#network?s=6.0&m=other")
    answered(page, "")
    page = visit(explorer(asia), hash="#network?s=99.7,__proto__.1&l=1:x&m=%3Cscript%3E")
    answered(page, "")


def test_a_large_network_unfolds(explorer: Started, visit: Started):
    rng = np.random.default_rng(3)
    net = mf.BayesianNetwork({f"node number {v}": ["low", "middle", "high"] for v in range(1000)})
    for v in range(1000):
        # A tree with some more arcs, so that widths stay small.
        parents = sorted({(v - 1) // 3, v - 1 if v % 7 == 0 else (v - 1) // 3}) if v else []
        table = rng.dirichlet([1, 1, 1], size=(3,) * len(parents))
        net.add_cpt(f"node number {v}", [f"node number {p}" for p in parents], table)
    page = visit(explorer(net))
    answered(page, "")
    assert page.locator(".list li").count() == 1000
    assert page.locator(".node").count() == 30
    badge = page.locator(".beyond").first
    more = int(badge.text_content().split("+")[-1])
    badge.dispatch_event("click")
    until(page, f"document.querySelectorAll('.node').length === {30 + more}")
    # The search finds what is not drawn, and the drawing goes there.
    page.keyboard.press("/")
    page.keyboard.type("number 987")
    assert page.locator(".list li:visible").count() == 1
    page.keyboard.press("Enter")
    page.locator('.node.selected[data-v="987"]').wait_for()
    page.locator('.panel .bar-row[data-state="2"]').click()
    answered(page, "s=987.2")
    page.get_by_label("Search variables").fill("")
    expected = mf.marginals(net, {"node number 987": "high"})
    assert posterior(page, 328) == pytest.approx(values(expected, 328), rel=1e-9)
    page.get_by_label("Show").select_option("whole")
    until(page, "document.querySelectorAll('.node').length === 1000")


def test_of_a_large_drawing_only_what_is_in_sight_is_kept(explorer: Started, visit: Started):
    net = mf.BayesianNetwork({f"v{i}": ["off", "on"] for i in range(400)})
    net.add_cpt("v0", [], [0.5, 0.5])
    for i in range(1, 400):
        net.add_cpt(f"v{i}", [f"v{(i - 1) // 3}"], [[0.9, 0.1], [0.2, 0.8]])
    page = visit(explorer(net))
    answered(page, "")
    page.get_by_label("Show").select_option("whole")
    page.get_by_label("Nodes").select_option("bars")
    until(page, "document.querySelectorAll('.node').length === 400")
    # From so far that no row can be read there are none: a bar of the whole node stands for them.
    until(page, "document.querySelector('.canvas.tiny') && !document.querySelector('.node .row')")
    assert page.locator(".node .share").count() == 400
    choose(page, 200)
    page.get_by_role("button", name="Centre").click()
    for _ in range(16):
        page.get_by_label("Larger").click()
    until(page, "document.querySelectorAll('.node').length < 120 && !document.querySelector('.canvas.tiny')")
    node = page.locator('.node[data-v="200"]')
    node.locator('.row[data-state="1"]').click()
    answered(page, "s=200.1")
    expected = mf.marginals(net, {"v200": "on"})
    # The way in by the keyboard is there, wherever the drawing has been moved.
    page.locator(".canvas").first.focus()
    for _ in range(60):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.v") == "200"
    # What comes into sight is up to date.
    page.get_by_role("button", name="Fit").click()
    until(page, "document.querySelectorAll('.node').length === 400")
    for v in (0, 66, 399):
        told = page.locator(f'.node[data-v="{v}"]').get_attribute("aria-label")
        best = int(np.argmax(values(expected, v)))
        assert told.startswith(f"v{v}: {['off', 'on'][best]} {100 * values(expected, v)[best]:.1f}%")


def test_paths_through_what_is_not_drawn(explorer: Started, visit: Started):
    net = mf.BayesianNetwork({f"v{i}": ["off", "on"] for i in range(200)})
    net.add_cpt("v0", [], [0.5, 0.5])
    for i in range(1, 200):
        net.add_cpt(f"v{i}", [f"v{i - 1}"], [[0.9, 0.1], [0.2, 0.8]])
    page = visit(explorer(net))
    answered(page, "")
    panel = open_panel(page, "separate")
    for v in (190, 150):
        choose(page, v)
        page.locator('[data-pick="b"]').click()
    panel.get_by_text("connected", exact=True).wait_for()
    panel.locator('[data-do="paths"]').click()
    until(
        page, "document.querySelectorAll('.node').length === 41 && document.querySelectorAll('.edge.hot').length === 40"
    )
    assert page.locator('.node.set-a[data-v="190"]').count() == 1
    # Another choice of what is shown draws that again.
    page.get_by_label("Show").select_option("1")
    until(page, "document.querySelectorAll('.node').length === 3")


def test_the_model_is_read_again_under_the_page(explorer: Started, visit: Started, asia: Any, tmp_path: Any):
    path = tmp_path / "model.bif"
    mf.write(asia, path)
    page = visit(explorer(path))
    observe(page, XRAY, 0)
    answered(page, "s=6.0")
    until(page, "location.hash.includes('s=6.0')")
    page.get_by_role("button", name="Reload").click()
    page.get_by_text("The model was read again.").wait_for()
    answered(page, "s=6.0")
    # Another model under the same name: numbers of the old one mean nothing there.
    mf.write(mf.datasets.sprinkler(), path)
    page.get_by_text("has changed and was read again").wait_for()
    answered(page, "")
    assert page.locator(".list li").count() == 4


def test_of_many_clicks_the_last_one_counts(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia))
    answered(page, "")
    choose(page, SMOKE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/posteriors") else None)
    # Twenty-one clicks before the first can be answered: what lies between is never asked for.
    page.evaluate(
        "for (let i = 0; i < 21; i++) document.querySelector(`.panel .bar-row[data-state='${i % 2}']`).click()"
    )
    answered(page, "s=2.0")
    assert posterior(page, LUNG) == pytest.approx(values(mf.marginals(asia, known(asia, v2=0)), LUNG), rel=1e-9)
    assert 1 <= len(asked) <= 3


def test_the_drawing_stays_in_sight_until_somebody_moves_it(explorer: Started, visit: Started, asia: Any):
    page = visit(explorer(asia), width=1080, height=640)
    inside = (
        "(() => { const box = document.querySelector('.canvas').getBoundingClientRect();"
        "return [...document.querySelectorAll('.node .box')].every((e) => { const b = e.getBoundingClientRect();"
        "return b.top >= box.top && b.bottom <= box.bottom && b.left >= box.left && b.right <= box.right; }); })()"
    )
    moved = "document.querySelector('.canvas > g').getAttribute('transform')"
    answered(page, "")
    until(page, inside)
    # A second row of evidence leaves less room.
    for v in (XRAY, DYSP, SMOKE):
        observe(page, v, 1)
    answered(page, "s=2.1,6.1,7.1")
    until(page, inside)
    page.get_by_label("Larger").click()
    own = page.evaluate(moved)
    page.locator('[data-do="clear"]').click()
    answered(page, "")
    page.set_viewport_size({"width": 1200, "height": 700})
    assert page.evaluate(moved) == own
    page.get_by_role("button", name="Fit").click()
    until(page, inside)
