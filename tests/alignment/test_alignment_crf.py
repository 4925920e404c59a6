"""Alignment as matching: sums against enumeration, gradients, gold links left open, what is refused, saving."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.alignment import CorpusStatistics, GoldLinks
from markovfield.alignment.alignment_model import _mask
from markovfield.alignment.link_features import ALONE, LINKS, features_of
from markovfield.alignment.links import gold_tables
from markovfield.inference.core.running import Running
from markovfield.structured.objectives.form_likelihood import FormLikelihood
from tests.alignment.enumeration import random_pairs
from tests.data import data_path

GENERATOR = np.random.default_rng(7)
PAIRS = random_pairs(GENERATOR, 12, longest=4, words=6)


def random_links(rng: np.random.Generator, pairs: list[Any], density: float = 0.3) -> list[GoldLinks]:
    found = []
    for source, target in pairs:
        cells = [(i, j) for i in range(len(source)) for j in range(len(target)) if rng.random() < density]
        sure = frozenset(cell for cell in cells if rng.random() < 0.5)
        found.append(GoldLinks(sure, frozenset(cells) - sure))
    return found


GOLD = random_links(GENERATOR, PAIRS)


@pytest.fixture(scope="module")
def statistics() -> CorpusStatistics:
    return CorpusStatistics.learned(PAIRS, Running())


def matchings(n: int, m: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links in which a word has one at most."""
    cells = list(product(range(n), range(m)))
    found = []
    for bits in product((False, True), repeat=len(cells)):
        links = [cell for cell, bit in zip(cells, bits, strict=True) if bit]
        if len({i for i, _ in links}) == len(links) == len({j for _, j in links}):
            found.append(frozenset(links))
    return found


def goes_with(links: frozenset[tuple[int, int]], gold: GoldLinks) -> bool:
    """Whether links are allowed, and every word has a sure link that has one without rivals."""
    sure = gold.sure
    if not links <= gold.allowed:
        return False
    for side in (0, 1):
        for word in {link[side] for link in sure}:
            own = [link for link in sure if link[side] == word]
            alone = all(sum(other[1 - side] == link[1 - side] for other in sure) == 1 for link in own)
            if alone and not any(link in links for link in own):
                return False
    return True


def test_masks_leave_what_goes_with_gold_links() -> None:
    rng = np.random.default_rng(0)
    for density in (0.2, 0.5, 0.9):
        for _ in range(20):
            n, m = rng.integers(1, 4, 2).tolist()
            gold = random_links(rng, [(["a"] * n, ["b"] * m)], density)[0]
            links, rows, columns = _mask(*gold_tables(gold, 0, n, m))
            kept = [
                own
                for own in matchings(n, m)
                if all(links[link] == 0 for link in own)
                and all(rows[i] == 0 for i in range(n) if i not in {a for a, _ in own})
                and all(columns[j] == 0 for j in range(m) if j not in {b for _, b in own})
            ]
            assert kept and set(kept) == {own for own in matchings(n, m) if goes_with(own, gold)}


@pytest.mark.parametrize("possible", ["hidden", "likeliest"])
def test_likelihoods_and_marginals_by_enumeration(statistics: CorpusStatistics, possible: str) -> None:
    crf = mf.AlignmentCRF(objective="likelihood", possible=possible, l2=0.5).fit(PAIRS, GOLD, corpus=statistics)
    likelihoods = crf.log_likelihood(PAIRS, GOLD)
    for k, (source, target) in enumerate(PAIRS[:8]):
        n, m = len(source), len(target)
        features = features_of([PAIRS[k]], statistics)[0]
        w = crf.model_.named_weights(crf.weights_)
        links = (features.links @ w["links"].ravel()).reshape(n, m)
        rows, columns = features.sources @ w["sources"].ravel(), features.targets @ w["targets"].ravel()
        scores = {}
        for own in matchings(n, m):
            alone = [rows[i] for i in range(n) if i not in {a for a, _ in own}]
            alone += [columns[j] for j in range(m) if j not in {b for _, b in own}]
            scores[own] = np.exp(sum(links[link] for link in own) + sum(alone))
        total = sum(scores.values())
        expected = np.zeros((n, m))
        for own, value in scores.items():
            for link in own:
                expected[link] += value / total
        np.testing.assert_allclose(crf.predict_marginals([PAIRS[k]])[0], expected, atol=1e-9)
        best = max(scores, key=lambda own: scores[own])
        assert scores[frozenset(crf.predict([PAIRS[k]])[0])] == pytest.approx(scores[best])
        if possible == "hidden":
            inside = sum(value for own, value in scores.items() if goes_with(own, GOLD[k]))
            assert likelihoods[k] == pytest.approx(np.log(inside / total), abs=1e-9)
        else:
            assert any(
                goes_with(own, GOLD[k]) and likelihoods[k] == pytest.approx(np.log(value / total))
                for own, value in scores.items()
            )


@pytest.mark.parametrize("exact_limit", [1e5, 0.0])
@pytest.mark.parametrize("possible", ["hidden", "likeliest"])
def test_gradients_are_differences(statistics: CorpusStatistics, possible: str, exact_limit: float) -> None:
    crf = mf.AlignmentCRF(objective="likelihood", possible=possible, exact_limit=exact_limit)
    crf._statistics = statistics
    model = crf._model().shaped(PAIRS, GOLD)
    objective = FormLikelihood(model.encode(PAIRS, GOLD), Running())
    w = np.random.default_rng(0).normal(size=model.n_weights) * 0.3
    gradient = objective(w)[1]
    for k in range(0, model.n_weights, 5):
        step = np.zeros(len(w))
        step[k] = 1e-5
        assert gradient[k] == pytest.approx((objective(w + step)[0] - objective(w - step)[0]) / 2e-5, abs=2e-5)
    assert objective.guarantee == ("exact" if exact_limit else "lower")


def test_features_have_names(statistics: CorpusStatistics) -> None:
    found = features_of(PAIRS, statistics)
    for (source, target), own in zip(PAIRS, found, strict=True):
        assert own.links.shape == (len(source) * len(target), len(LINKS))
        assert own.sources.shape == (len(source), len(ALONE)) and own.targets.shape == (len(target), len(ALONE))
        assert all(np.isfinite(part).all() for part in own)
        means = [np.sqrt(p * q).ravel() for p, q in statistics.hidden.directed_marginals([(source, target)])]
        np.testing.assert_allclose(own.links[:, LINKS.index("hmm mean")], means[0])
    assert len(set(LINKS)) == len(LINKS)


def test_how_words_are_written(statistics: CorpusStatistics) -> None:
    pair = (["Parliament", "1985", "is", "."], ["parlement", "1985", "est", "."])
    links = features_of([pair], statistics)[0].links.reshape(4, 4, len(LINKS))
    assert links[0, 0, LINKS.index("prefix")] == pytest.approx(4 / 10)
    assert links[:, :, LINKS.index("equal")].tolist() == np.diag([0.0, 1.0, 0.0, 1.0]).tolist()
    assert np.argwhere(links[:, :, LINKS.index("numbers")]).tolist() == [[1, 1]]
    assert np.argwhere(links[:, :, LINKS.index("punctuation")]).tolist() == [[3, 3]]


def toy() -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    pairs, links = [], []
    for words in rng.integers(0, 12, (30, 4)).tolist():
        order = [1, 0, 2, 3]
        pairs.append(([f"e{k}" for k in words], [f"f{words[k]}" for k in order] + ["extra"]))
        links.append([(order[j], j) for j in range(4)])
    return pairs, links


@pytest.mark.parametrize("objective", ["likelihood", "hinge"])
def test_what_can_be_learnt_is(objective: str) -> None:
    pairs, links = toy()
    crf = mf.AlignmentCRF(objective=objective).fit(pairs[:20], links[:20], corpus=pairs)
    assert crf.score(pairs[20:], links[20:]) > 0.95
    assert crf.predict(pairs[20:], decision="mbr")
    assert crf.predict(pairs[:1], threshold=0.0)[0] == [(i, j) for i in range(4) for j in range(5)]
    assert set(crf.named_weights()) == {"links", "sources", "targets"}
    form = crf.form(pairs[0])
    assert mf.decode(form).structure == crf.predict(pairs[:1])[0]
    assert len(crf.predict_n_best(pairs[:2], 3)[1]) == 3
    assert len(crf.sample(pairs[:1], 4, rng=0)[0]) == 4


@pytest.mark.parametrize("objective", ["likelihood", "hinge"])
def test_saved_models_answer_alike(objective: str, tmp_path: Path) -> None:
    pairs, links = toy()
    crf = mf.AlignmentCRF(objective=objective).fit(pairs, links)
    crf.save(tmp_path / "crf.mfz")
    back = mf.load(tmp_path / "crf.mfz")
    assert isinstance(back, mf.AlignmentCRF) and back.get_params() == crf.get_params()
    other = [(["e1", "unknown"], ["f1", "f1"])]
    for asked in (pairs, other):
        assert back.predict(asked) == crf.predict(asked)
        for one, two in zip(back.predict_marginals(asked), crf.predict_marginals(asked), strict=True):
            np.testing.assert_array_equal(one, two)


def test_damaged_statistics_are_refused() -> None:
    pairs, links = toy()
    about, arrays = mf.AlignmentCRF().fit(pairs, links).model_.statistics.described()
    assert CorpusStatistics.restored(about, arrays).count("e1", 0) > 0
    with pytest.raises(mf.FormatError, match="its counts of words do not fit its words"):
        CorpusStatistics.restored(about, {**arrays, "source_counts": np.zeros(2, np.int64)})
    with pytest.raises(mf.FormatError, match="it has no statistics of a corpus"):
        CorpusStatistics.restored({}, arrays)


def test_statistics_are_taken_again() -> None:
    pairs, links = toy()
    first = mf.AlignmentCRF(rng=0).fit(pairs, links)
    again = clone(first).fit(pairs, links, corpus=first.model_.statistics)
    np.testing.assert_allclose(again.weights_, first.weights_)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([[(0, 0)], [(2, 0)]], r"pair 1 has 1 source and 2 target words, and a link \(2, 0\)"),
        ([[(0, 0)], [(0, -1)]], r"pair 1 has 1 source and 2 target words, and a link \(0, -1\)"),
        ([[(0, 0)]], "X has 2 examples and y has 1"),
        ([[(0, 0)], [0]], r"the links of pair 1 must be \(source position, target position\)"),
    ],
)
def test_bad_links_are_named(links: Any, message: str) -> None:
    pairs = [(["a"], ["x"]), (["a"], ["x", "y"])]
    with pytest.raises(mf.ModelError, match=message):
        mf.AlignmentCRF().fit(pairs, links)


def test_bad_settings() -> None:
    pairs, links = toy()
    with pytest.raises(mf.ModelError, match=r"possible of AlignmentModel must be .*hidden.*likeliest"):
        mf.AlignmentCRF(possible="maybe").fit(pairs, links)
    with pytest.raises(mf.ModelError, match="the source sentence of pair 0 has no words"):
        mf.AlignmentCRF().fit(pairs, links, corpus=[([], ["a"])])
    with pytest.raises(mf.ModelError, match="corpus holds no pairs of sentences"):
        mf.AlignmentCRF().fit(pairs, links, corpus=[])


@pytest.mark.slow
def test_links_help_on_the_hansards() -> None:
    data_path("align_enfr", "training")
    corpus = mf.datasets.hansards("training", 15000).pairs
    data = mf.datasets.hansards("validation")
    statistics = CorpusStatistics.learned(corpus, Running())
    crf, gold = mf.AlignmentCRF(), data.links
    assert gold is not None
    found: list[Any] = [None] * len(gold)
    for part in range(5):
        kept = [k for k in range(len(gold)) if k % 5 != part]
        crf.fit([data.pairs[k] for k in kept], [gold[k] for k in kept], corpus=statistics)
        asked = [k for k in range(len(gold)) if k % 5 == part]
        for k, links in zip(asked, crf.predict([data.pairs[k] for k in asked]), strict=True):
            found[k] = links
    rate = mf.alignment.alignment_error_rate
    models = [statistics.first.forward_, statistics.hidden.forward_]
    first, hidden = (rate(gold, model.predict(data.pairs)) for model in models)
    assert rate(gold, found) < hidden - 0.03 < first - 0.03
