"""ChainTagger: the chain on what its template or TokenFeatures make, columns found again, files that travel alone."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from markovfield.exceptions import FormatError, ModelError
from markovfield.files import read_archive, write_archive
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.tagger import ChainTagger, load_chain
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.sequence.text.templates import Template
from markovfield.sequence.text.token_features import TokenFeatures

TEMPLATE = "U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]/%x[0,0]\nB\nB1:%x[0,1]"
NAMES = ["word", "pos", "entity"]


def rows(n: int = 25, seed: int = 0) -> list[list[tuple[str, str, str]]]:
    """Names of people of one or two words among others; some words are both."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(n):
        sentence: list[tuple[str, str, str]] = []
        for _ in range(int(rng.integers(1, 5))):
            sentence += [(str(rng.choice(["saw", "met", "Rose", "and"])), "X", "O")] * int(rng.integers(0, 3))
            sentence.append((str(rng.choice(["Ann", "Rose", "Bob"])), str(rng.choice(["N", "X"])), "B-PER"))
            if rng.random() < 0.5:
                sentence.append((str(rng.choice(["Lee", "Day"])), "N", "I-PER"))
        result.append(sentence)
    return result


CORPUS = ColumnCorpus.from_rows(rows(), NAMES)
TEST = ColumnCorpus.from_rows(rows(10, 1), NAMES)


@pytest.fixture(scope="module")
def tagger() -> ChainTagger:
    return ChainTagger(TEMPLATE, crf=ChainCRF(0.5, n_jobs=1)).fit(CORPUS)


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> ChainTagger:
    """A tagger with TokenFeatures and a gazetteer from a file."""
    path = tmp_path_factory.mktemp("lists") / "surnames.txt"
    path.write_text("Lee\nDay\n\nvan  Dyk\n")
    features = TokenFeatures(window=1, affixes=1, gazetteers={"surnames": path, "first": ["Ann"]})
    found = ChainTagger(features=features, crf=ChainCRF(0.5, n_jobs=1)).fit(CORPUS)
    path.unlink()
    return found


def test_it_is_the_chain_on_what_the_template_makes(tagger: ChainTagger):
    template, given = Template.parse(TEMPLATE), CORPUS.drop("entity")
    crf = ChainCRF(0.5, n_jobs=1)
    crf.fit(list(template.transform(given)), CORPUS["entity"], edges=list(template.transform_edges(given)))
    X, edges = list(template.transform(TEST.keep(0, 1))), list(template.transform_edges(TEST.keep(0, 1)))
    assert tagger.report_.objective == pytest.approx(crf.report_.objective)
    assert len(tagger.crf_.edge_features_) > 0
    assert tagger.predict(TEST) == crf.predict(X, edges=edges)
    assert np.allclose(np.concatenate(tagger.predict_proba(TEST)), np.concatenate(crf.predict_proba(X, edges=edges)))
    assert tagger.score(TEST) == crf.score(X, TEST["entity"], edges=edges) > 0.8
    assert tagger.classes_ == ["B-PER", "I-PER", "O"]
    best, *_ = tagger.predict_n_best(TEST, 2)[0]
    assert best[0] == tagger.predict(TEST)[0]
    first = tagger.predict_marginals(TEST)[0][0]
    assert first["O"] == pytest.approx(tagger.predict_proba(TEST)[0][0, 2])


def test_columns_are_found_by_name_or_by_their_number(tagger: ChainTagger):
    expected = tagger.predict(TEST)
    shuffled = TEST.keep("entity", "pos", "word")
    unnamed = ColumnCorpus.from_rows(list(TEST))
    for given in (shuffled, unnamed, unnamed.drop(2), TEST.drop("entity"), [[row[:2] for row in s] for s in TEST]):
        assert tagger.predict(given) == expected
    assert tagger.labels_of(shuffled) == tagger.labels_of(unnamed) == TEST["entity"]
    assert tagger.has_labels(unnamed) and not tagger.has_labels(unnamed.drop(2))
    tagged = tagger.tag(TEST.drop("entity"), "found")
    assert tagged.names == ("word", "pos", "found") and tagged["found"] == expected
    with pytest.raises(ModelError, match=r"reads the 2 columns word, pos, .* labels in column 'entity'; got 1 column"):
        tagger.predict([["Ann"]])
    with pytest.raises(ModelError, match=r"no column of labels among 0, 1: it was 'entity' in training"):
        tagger.labels_of(unnamed.drop(2))


def test_some_columns_only_and_labels_in_any(tagger: ChainTagger):
    other = TEST.keep("entity", "word", "pos")
    words = ChainTagger("U0:%x[0,0]", label="entity", columns=["word"]).fit(CORPUS)
    assert words.columns_ == ("word",)
    assert words.predict(other) == words.predict([[row[0] for row in sentence] for sentence in TEST])
    middle = ChainTagger("U0:%x[0,1]", label=1).fit(CORPUS.keep("word", "entity", "pos"))
    assert middle.label_ == "entity" and middle.columns_ == ("word", "pos")
    assert middle.predict(TEST.keep("word", "pos")) == middle.predict(TEST)
    numbered = ColumnCorpus.from_rows([[(w, e, p) for w, p, e in sentence] for sentence in CORPUS])
    unlabelled = ColumnCorpus.from_rows([[row[:2] for row in sentence] for sentence in CORPUS])
    middle = ChainTagger("U0:%x[0,1]", label=1).fit(numbered)
    assert not middle.has_labels(unlabelled) and middle.predict(unlabelled) == middle.predict(numbered)


def test_labels_apart(tagger: ChainTagger):
    given, y = CORPUS.keep("word", "pos"), CORPUS["entity"]
    apart = ChainTagger(TEMPLATE, crf=ChainCRF(0.5)).fit(given, y, given, y)
    assert apart.label_ is None and apart.predict(TEST) == tagger.predict(TEST)
    assert len(apart.report_.accuracies) == apart.report_.iterations
    assert apart.score(TEST.keep(0, 1), TEST["entity"]) == tagger.score(TEST)
    with pytest.raises(ModelError, match="training had none; pass labels as y"):
        apart.score(given)


def test_a_development_set_stops(tagger: ChainTagger):
    early = ChainTagger(TEMPLATE, crf=ChainCRF(0.0, early_stopping=1)).fit(CORPUS, X_dev=TEST)
    accuracies = early.report_.accuracies
    assert early.score(TEST) == pytest.approx(max(accuracies)) and len(accuracies) < 30


def test_scikit_learn_s_manners(tagger: ChainTagger):
    X, y = [[list(row[:2]) for row in sentence] for sentence in CORPUS], CORPUS["entity"]
    search = GridSearchCV(ChainTagger(TEMPLATE, crf=ChainCRF()), {"crf__l2": [1e3, 0.5]}, cv=2).fit(X, y)
    assert search.best_params_ == {"crf__l2": 0.5}
    copy = clone(tagger)
    assert not hasattr(copy, "crf_") and copy.crf.l2 == 0.5
    chain = ChainCRF()
    assert not hasattr(ChainTagger(crf=chain).fit(CORPUS).crf, "model_") and not hasattr(chain, "model_")


@pytest.mark.parametrize("which", ["tagger", "worded", "wapiti"])
def test_a_file_is_all_that_is_needed(which: str, tmp_path: Path, request: pytest.FixtureRequest):
    if which == "wapiti":
        text = 'u:w=%X[0,0] # small\n*:%t[0,0,"^\\u"]\nb'
        found = ChainTagger(Template.parse(text), crf=ChainCRF(constraints="iob2")).fit(CORPUS)
    else:
        found = request.getfixturevalue(which)
    path = tmp_path / "tagger.mf"
    found.save(path)
    again = ChainTagger.load(path)
    assert again.predict(TEST) == found.predict(TEST)
    assert np.array_equal(again.crf_.model_.weights, found.crf_.model_.weights)
    assert again.transform(TEST) == found.transform(TEST) and again.label_ == "entity"
    assert again.report_ == found.report_
    assert again.tag(TEST)[0] == found.tag(TEST)[0]
    # As good as new: the same settings fit again, and the file is the same.
    assert clone(again).fit(CORPUS).predict(TEST) == found.predict(TEST)
    again.save(tmp_path / "again.mf")
    assert (tmp_path / "again.mf").read_bytes() == path.read_bytes()


def test_gazetteers_travel(worded: ChainTagger, tmp_path: Path):
    assert isinstance(worded.features_, TokenFeatures)
    assert worded.features_.gazetteers == {"surnames": ["lee", "day", "van dyk"], "first": ["ann"]}
    worded.save(tmp_path / "m.mf")
    attributes = ChainTagger.load(tmp_path / "m.mf").transform([[("van", "X"), ("Dyk", "X")]])[0]
    assert "in=surnames:B" in attributes[0] and "in=surnames:I" in attributes[1] and "pos[0]=X" in attributes[0]


def test_nothing_to_tag(tagger: ChainTagger, worded: ChainTagger):
    for found in (tagger, worded):
        assert found.predict([]) == [] and found.predict([[]]) == [[]]
        assert found.labels_of([[]]) == [[]]


def damaged(path: Path, **changes: Any) -> None:
    """The same archive with parts of its description replaced."""
    about, arrays = read_archive(path, 1, lambda about, arrays: (about, arrays))
    version = about.pop("version")
    about.pop("format")
    write_archive(path, version, {**about, **changes}, arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": 3}, "columns are not those of a tagger"),
        ({"columns": ["word", "other"]}, "columns are not those of a tagger"),
        ({"label": "other"}, "columns are not those of a tagger"),
        ({"chain": None}, "has no chain"),
        ({"chain": {}}, "labels are not a list"),
        ({"template": {"text": 3, "dialect": "crf++"}}, "not a text and a dialect"),
        ({"template": {"text": "U0", "dialect": "other"}}, "dialect must be"),
        ({"template": {"text": "Q", "dialect": "crf++"}}, "starts with U or B"),
        ({"template": None}, "neither a template nor"),
        ({"features": {}}, "neither a template nor"),
        ({"template": None, "features": {"window": 1}}, "neither a template nor"),
        ({"template": None, "features": {**TokenFeatures().get_params(), "window": 10**9}}, "for window"),
        ({"template": None, "features": {**TokenFeatures().get_params(), "pairs": 1}}, "for pairs"),
        ({"template": None, "features": {**TokenFeatures().get_params(), "gazetteers": {"a": [1]}}}, "gazetteers"),
        ({"class": "Other"}, "it holds a Other, expected a ChainTagger or ChainCRF"),
    ],
)
def test_damaged_files(tagger: ChainTagger, tmp_path: Path, changes: dict[str, Any], message: str):
    path = tmp_path / "m.mf"
    tagger.save(path)
    damaged(path)
    assert ChainTagger.load(path).classes_ == tagger.classes_
    damaged(path, **changes)
    with pytest.raises(FormatError, match=message) as caught:
        load_chain(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_truncated_files_and_other_models(tagger: ChainTagger, tmp_path: Path):
    path = tmp_path / "m.mf"
    tagger.save(path)
    whole = path.read_bytes()
    for size in (0, 10, 500, len(whole) - 10):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match="cannot be loaded"):
            load_chain(path)
    tagger.crf_.save(path)
    assert isinstance(load_chain(path), ChainCRF)
    with pytest.raises(FormatError, match="holds a ChainCRF without features"):
        ChainTagger.load(path)


def test_no_code_and_no_pickle_in_the_file(worded: ChainTagger, tmp_path: Path):
    worded.save(tmp_path / "m.mf")
    with zipfile.ZipFile(tmp_path / "m.mf") as archive:
        names = archive.namelist()
        about = json.loads(archive.read("model.json"))
    assert about["class"] == "ChainTagger" and about["chain"]["class"] == "ChainCRF"
    assert all(name == "model.json" or name.endswith(".npy") for name in names)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": "U0:%x[0,0]", "features": TokenFeatures()}, "a template or features, not both"),
        ({"template": 3}, "template must be a Template or its text, got int"),
        ({"features": 3}, "features must be a TokenFeatures, got int"),
        ({"features": TokenFeatures(window=-1)}, "window must be an integer"),
        ({"label": "other"}, "there is no column 'other'"),
        ({"columns": ["other"]}, "there is no column 'other'"),
        ({"columns": ["word", "entity"]}, "column 'entity' holds the labels"),
        ({"columns": []}, "no columns to read beside the labels"),
        ({"template": "U0:%x[0,2]"}, "asks for column 2"),
        ({"label": "word", "crf": ChainCRF(constraints="iob2")}, "none of scheme 'iob2'"),
        ({"template": TEMPLATE, "crf": ChainCRF(order=2)}, "order=2 takes no edges"),
    ],
)
def test_errors(settings: dict[str, Any], message: str):
    with pytest.raises(ModelError, match=message):
        ChainTagger(**settings).fit(CORPUS)


def test_empty_corpora_cannot_be_learnt():
    with pytest.raises(ModelError, match="no labels to learn from"):
        ChainTagger().fit([])
