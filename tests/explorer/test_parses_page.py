"""The page of grammars, parsers and aligners: by HTTP, and in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from markovfield.grammar import Tree
from tests.explorer.streaming import ask, until

STARTED = Callable[..., Any]
HOSTILE = "<img/src=x/onerror=alert(1)>"
TREES = [
    *2 * [Tree.parse("(S (NP (NN men)) (VP (VB saw) (NP (NP (NN cats)) (PP (IN with) (NP (NN hats))))))")],
    Tree.parse("(S (NP (NN men)) (VP (VB saw) (NP (NN cats)) (PP (IN with) (NP (NN hats)))))"),
]
TAGGED = [("the", "DT"), ("dog", "NN"), ("fell", "VB")]
PAIRS = [(["the", "dog"], ["le", "chien"]), (["the", "cat"], ["le", "chat"])]
LINKS = [[(0, 0), (1, 1)]] * 2


def models() -> dict[str, tuple[Any, str, str]]:
    """By class: a model, a sentence for it, and another."""
    tagged = "the/DT dog/NN fell/VB"
    arcs = mf.DependencyParser(labelled=True, rng=0).fit([TAGGED], [[(2, "det"), (3, "subj"), (0, "root")]])
    return {
        "PCFG": (mf.PCFG.from_trees(TREES), "men saw cats with hats", ""),
        "GrammarCRF": (mf.GrammarCRF(min_count=1, min_word_count=1, rng=0).fit(TREES), "men/NN saw/VB cats/NN", ""),
        "SpanParser": (mf.grammar.SpanParser(rng=0).fit(TREES), "men/NN saw/VB cats/NN", ""),
        "DependencyParser": (arcs, tagged, ""),
        "IBM1": (mf.alignment.IBM1().fit(PAIRS), "the dog", "le chien"),
        "SymmetricAligner": (mf.alignment.SymmetricAligner().fit(PAIRS), "the dog", "le chien"),
        "AlignmentCRF": (mf.alignment.AlignmentCRF().fit(PAIRS, LINKS), "the dog", "le chien"),
    }


def test_every_saved_model_has_its_page(explorer: STARTED, tmp_path: Path):
    for kind, (model, text, other) in models().items():
        path = tmp_path / f"{kind}.mfz"
        model.save(path)
        started = explorer(path)
        told = ask(started, "explorer", "subject")
        assert told["kind"] == kind and told["pages"] == [{"name": "parses", "title": "Parses"}]
        assert ask(started, "parses", "about")["kind"] == kind
        found = ask(started, "parses", "ask", text=text, other=other, n_best=2)
        assert found["guarantee"] in ("exact", "approximate")
        assert "mf.read" in ask(started, "parses", "code", text=text, other=other)["code"]


def test_what_has_no_tree_gives_a_sentence(explorer: STARTED):
    status, sentence = ask(explorer(models()["PCFG"][0]), "parses", "ask", text="")
    assert status == 400 and sentence.startswith("the sentence must have 1 to 60 words")


def test_a_parser_that_is_not_fitted_has_no_page():
    for model in (mf.DependencyParser(), mf.alignment.IBM1(), mf.alignment.SymmetricAligner()):
        with pytest.raises(mf.ModelError, match="the explorer has no page for a"):
            mf.explore(model, open_browser=False)


def write(page: Any, name: str, text: str) -> None:
    page.locator(f"textarea[name={name}]").fill(text)


def enter(page: Any) -> None:
    before = page.evaluate("Number(document.querySelector('#page').dataset.answers)")
    page.keyboard.press("Enter")
    until(page, f"Number(document.querySelector('#page').dataset.answers) > {before}")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_a_sentence_is_parsed(explorer: STARTED, visit: STARTED, width: int, theme: str):
    model, text, _ = models()["PCFG"]
    page = visit(explorer(model), width=width, theme=theme)
    write(page, "text", text)
    enter(page)
    assert page.locator(".said .badge").inner_text() == "exact"
    words = page.locator("svg[aria-label='The tree'] text.word").all_text_contents()
    assert words == text.split()
    spans = model.predict_marginals([text.split()])[0]["spans"].sum(axis=2)
    for i, j in ((0, 4), (2, 4), (3, 4), (0, 1)):
        shown = page.locator(f"[data-span='{i} {j}']").get_attribute("data-share")
        assert float(shown) == pytest.approx(min(1.0, spans[i, j]), abs=1e-5)
    # The second best tree by the keyboard: another set of bordered cells.
    ways = page.locator(".ways button")
    assert ways.count() == 2
    own = "document.querySelectorAll('.span.own').length"
    before = page.evaluate(own)
    ways.nth(1).focus()
    page.keyboard.press("Enter")
    until(page, f"{own} === {before - 1}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as saved:
        page.get_by_label("Save tree as SVG").click()
    assert "men" in saved.value.path().read_text()


@pytest.mark.browser
def test_arcs_and_links(explorer: STARTED, visit: STARTED):
    arcs, text, _ = models()["DependencyParser"]
    page = visit(explorer(arcs))
    write(page, "text", text)
    enter(page)
    found = [page.locator(f"[data-arc='{head} {m}']").count() for m, (head, _) in enumerate(arcs.parse(TAGGED), 1)]
    assert found == [1, 1, 1] and page.locator(".heat .dot").count() == 3
    aligner, source, target = models()["IBM1"]
    page = visit(explorer(aligner), theme="dark", width=390)
    write(page, "other", target)
    write(page, "text", source)
    enter(page)
    assert page.locator(".links tbody tr").all_inner_texts()[0].split()[:2] == ["the", "le"]
    assert page.locator(".heat .dot").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_hostile_words_stay_texts(explorer: STARTED, visit: STARTED):
    grammar = mf.PCFG.from_text(f"S -> '{HOSTILE}' VP\nVP -> 'ran'", normalise=True)
    page = visit(explorer(grammar))
    write(page, "text", f"{HOSTILE} ran")
    enter(page)
    assert page.locator("svg[aria-label='The tree'] text.word").first.text_content() == HOSTILE
    assert page.locator("#page img").count() == 0


@pytest.mark.browser
def test_tabs_and_a_new_grammar(explorer: STARTED, visit: STARTED, tmp_path: Path):
    path = tmp_path / "coin.pcfg"
    path.write_text("S -> 'heads' [0.5] | 'tails' [0.5]\n")
    started = explorer(path)
    page, other = visit(started, refusals=True), visit(started)
    write(page, "text", "edge")
    page.keyboard.press("Enter")
    page.locator("#told.error").wait_for()
    write(page, "text", "tails")
    enter(page)
    write(other, "text", "heads")
    enter(other)
    assert page.locator(".said").inner_text().endswith("best tree 100%")
    assert "log Z -0.693147" in page.locator(".said").inner_text()
    path.write_text("S -> 'heads' [0.5] | 'tails' [0.25] | 'edge' [0.25]\n")
    for tab, told in ((page, "log Z -1.38629"), (other, "log Z -0.693147")):
        until(tab, "document.querySelector('#told').textContent.includes('was read again')")
        tab.locator(".said", has_text=told).wait_for()
