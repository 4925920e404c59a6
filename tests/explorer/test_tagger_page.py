"""The page of taggers: by HTTP, and in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from tests.explorer.streaming import ask, until

STARTED = Callable[..., Any]
WORDS = [["Anna", "ran"], ["Bob", "ran", "to", "York"], ["New", "York", "slept"], ["Anna", "left", "New", "York"]]
TAGS = [["B-PER", "O"], ["B-PER", "O", "O", "B-LOC"], ["B-LOC", "I-LOC", "O"], ["B-PER", "O", "B-LOC", "I-LOC"]]
HOSTILE = "<img src=x onerror=alert(1)>"


def features(words: list[list[str]]) -> Any:
    return list(mf.sequence.TokenFeatures().transform(words))


def models() -> dict[str, Any]:
    X = features(WORDS)
    return {
        "ChainCRF": mf.ChainCRF(l2=0.5).fit(X, TAGS),
        "MEMM": mf.MEMM().fit(X, TAGS),
        "SemiMarkovCRF": mf.SemiMarkovCRF(l2=0.5).fit(X, TAGS),
        "HMM": mf.HMM(2, rng=0).fit(WORDS),
        "ChainTagger": mf.ChainTagger(crf=mf.ChainCRF(l2=0.5)).fit(WORDS, TAGS),
    }


@pytest.mark.parametrize("kind", ["ChainCRF", "MEMM", "SemiMarkovCRF", "HMM", "ChainTagger"])
def test_every_saved_tagger_has_its_page(explorer: STARTED, tmp_path: Path, kind: str):
    model, path = models()[kind], tmp_path / "saved.mfz"
    model.save(path)
    started = explorer(path)
    told = ask(started, "explorer", "subject")
    assert told["kind"] == kind and told["pages"] == [{"name": "tagger", "title": "Tagger"}]
    (sentence,) = ask(started, "tagger", "tag", text="Anna ran to York", n_best=2)["sentences"]
    words = ["Anna", "ran", "to", "York"]
    x = [words] if kind in ("HMM", "ChainTagger") else features([words])
    assert [token["label"] for token in sentence["tokens"]] == [str(label) for label in model.predict(x)[0]]
    assert sentence["guarantee"] == "exact" and len(sentence["n_best"]) == 2
    # The code says the same as the page.
    code = ask(started, "tagger", "code", text="Anna ran to York")["code"]
    space: dict[str, Any] = {}
    exec(code, space)
    assert space["model"].predict(space["X"])[0] == model.predict(x)[0]


def test_log_partition_is_that_of_the_graph(explorer: STARTED):
    for kind, model in models().items():
        if kind in ("ChainCRF", "MEMM"):
            (sentence,) = ask(explorer(model), "tagger", "tag", text="Bob left York")["sentences"]
            graph = model.to_factor_graph(features([["Bob", "left", "York"]])[0])
            assert sentence["log_partition"] == pytest.approx(float(mf.log_partition(graph).log_partition), abs=1e-9)


def test_a_model_that_is_not_fitted_has_no_page():
    with pytest.raises(mf.ModelError, match="the explorer has no page for a ChainCRF"):
        mf.explore(mf.ChainCRF(), open_browser=False)


def write(page: Any, text: str) -> None:
    before = page.evaluate("Number(document.querySelector('#page').dataset.answers)")
    page.locator("textarea").fill(text)
    until(page, f"Number(document.querySelector('#page').dataset.answers) > {before}")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_pasted_text_is_tagged(explorer: STARTED, visit: STARTED, width: int, theme: str):
    model = models()["ChainCRF"]
    page = visit(explorer(model), width=width, theme=theme)
    write(page, f"Anna left New York\nBob {HOSTILE}")
    tokens = page.locator(".token")
    assert tokens.evaluate_all("all => all.map((t) => t.dataset.label)")[:4] == ["B-PER", "O", "B-LOC", "I-LOC"]
    assert page.locator("#page img").count() == 0
    # Arrow keys go from token to token, on into the next sentence.
    tokens.nth(3).click()
    page.keyboard.press("ArrowRight")
    assert page.locator("#page :focus").get_attribute("aria-label").startswith("Bob: B-PER")
    shares = model.predict_marginals(features([f"Bob {HOSTILE}".split()]))[0][0]
    best = max(shares, key=shares.get)
    shown = page.locator("#marginals .bar").first
    assert shown.locator(".name").inner_text() == best
    assert shown.locator(".number").inner_text() == f"{100 * shares[best]:.1f}%"
    assert page.locator(".said .badge").inner_text() == "exact"
    page.get_by_label("n best", exact=True).fill("5")
    page.get_by_label("n best", exact=True).press("Enter")
    until(page, "document.querySelectorAll('.ranked li').length === 5")
    page.get_by_label("Label", exact=True).select_option("I-LOC")
    assert page.locator(".heat").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as saved:
        page.get_by_label("Save marginals as PNG").click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    page.locator("summary", has_text="As code").click()
    until(page, "document.querySelector('pre').textContent.includes('model.predict')")


@pytest.mark.browser
def test_text_and_errors_outlive_a_new_model(explorer: STARTED, visit: STARTED, tmp_path: Path):
    path = tmp_path / "saved.mfz"
    crf = models()["ChainCRF"]
    crf.save(path)
    started = explorer(path)
    page, other = visit(started, refusals=True), visit(started)
    write(page, "Anna ran")
    assert page.locator(".token").first.get_attribute("data-label") == "B-PER"
    assert other.locator(".token").count() == 0
    swapped = [[label.replace("PER", "DOG") for label in labels] for labels in TAGS]
    mf.ChainCRF(l2=0.5).fit(features(WORDS), swapped).save(path)
    page.locator(".token[data-label=B-DOG]").wait_for()
    page.locator("textarea").fill("a " * 2001)
    page.locator("#told.error").wait_for()
    assert "2,000 tokens" in page.locator("#told").inner_text()


@pytest.mark.browser
def test_hostile_labels_and_features_stay_texts(explorer: STARTED, visit: STARTED):
    label = f"B-{HOSTILE}"
    crf = mf.ChainCRF(l2=0.1).fit([[[f"w={HOSTILE}"], ["w=b"]]], [[label, "O"]])
    page = visit(explorer(crf))
    page.get_by_label("Read as").select_option("attributes")
    write(page, f"w={HOSTILE}")
    assert page.locator(".token").first.get_attribute("data-label") == label
    assert HOSTILE in page.locator("#marginals").inner_text()
    assert page.locator("#page img").count() == 0
