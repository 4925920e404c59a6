"""Features of arcs against a plain reading of their templates, and the tables that find them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import markovfield as mf
from markovfield.dependency.arc_features import BUCKETS, FIELDS, LABELLED, PREFIX, TEMPLATES, ArcFeatures
from markovfield.dependency.arc_features_kernel import BETWEEN, N_FIELDS, count_keys, fill_table
from markovfield.grammar.span_features import word_class

SENTENCES = [
    (("The", "DT"), ("oldest", "JJ"), ("man", "NN"), ("quickly", "RB"), ("wandered", "VBD"), (".", ".")),
    (("wandering", "VBG"), ("man", "NN")),
    (("Go", "VB"),),
]
TREES = [[3, 3, 5, 5, 0, 5], [2, 0], [0]]


def cells(heads: list[int]) -> np.ndarray:
    return np.array(heads) * (len(heads) + 1) + np.arange(1, len(heads) + 1)


def plainly(sentence: tuple[tuple[str, str], ...], h: int, m: int, known: ArcFeatures) -> Counter[tuple[object, ...]]:
    """The combinations that an arc has, as texts."""

    def word(k: int) -> object:
        if k == 0:
            return "root"
        text = sentence[k - 1][0]
        return text if text in known.words else word_class(text)

    def tag(k: int) -> object:
        if not 0 <= k <= len(sentence):
            return "outside"
        if k == 0:
            return "root"
        return sentence[k - 1][1] if sentence[k - 1][1] in known.tags else "unknown"

    def prefix(k: int) -> object:
        text = sentence[k - 1][0] if k else ""
        return text[:PREFIX] if len(text) > PREFIX and text[:PREFIX] in known.prefixes else None

    far = int(np.searchsorted(BUCKETS, abs(h - m), "right"))
    values = {
        "hw": word(h), "ht": tag(h), "hp": prefix(h), "mw": word(m), "mt": tag(m), "mp": prefix(m), "h-": tag(h - 1),
        "h+": tag(h + 1), "m-": tag(m - 1), "m+": tag(m + 1), "d": (far, h < m), "r": h < m,
    }  # fmt: skip
    found: Counter[tuple[object, ...]] = Counter()
    for template in TEMPLATES:
        inside = {tag(k) for k in range(min(h, m) + 1, max(h, m))} if "b" in template else {None}
        for between in inside:
            own = tuple((values | {"b": between})[name] for name in template)
            if not any(v is None for name, v in zip(template, own, strict=True) if name in ("hp", "mp")):
                found[(template, *own)] += 1
    return found


def learned(min_count: int = 1, min_word_count: int = 1) -> ArcFeatures:
    used = [cells(tree) for tree in TREES]
    return ArcFeatures.learned(SENTENCES, used, min_count=min_count, min_word_count=min_word_count)


def test_fields_are_those_of_the_kernel() -> None:
    assert len(FIELDS) == N_FIELDS
    assert FIELDS[BETWEEN] == "b"


@pytest.mark.parametrize("min_word_count", [1, 2])
def test_features_of_trees_are_those_read_plainly(min_word_count: int) -> None:
    known = learned(min_word_count=min_word_count)
    arcs = known.arcs(SENTENCES)
    rows = known.rows(arcs)
    assert len(rows.rows) == arcs.n_cells + 1 == 49 + 9 + 4 + 1
    names: dict[int, tuple[object, ...]] = {}
    at = 0
    for sentence, tree in zip(SENTENCES, TREES, strict=True):
        n = len(sentence)
        for h in range(n + 1):
            for m in range(n + 1):
                found = rows.features[rows.rows[at] : rows.rows[at + 1]].tolist()
                at += 1
                if m in (0, h):
                    assert found == []
                    continue
                wanted = plainly(sentence, h, m, known)
                if tree[m - 1] == h:  # all features of an arc of a tree are known
                    assert len(found) == sum(wanted.values())
                assert len(found) <= sum(wanted.values())
                assert len(set(found)) == len(found)
                for feature, combination in zip(found, wanted, strict=False):
                    # The same number always for the same combination, where templates come in their order.
                    if tree[m - 1] == h and "b" not in combination[0]:
                        assert names.setdefault(feature, combination) == combination


def test_counts_decide_what_is_kept() -> None:
    every, some = learned(), learned(min_count=2)
    assert 0 < some.n_features < every.n_features
    gold: Counter[tuple[object, ...]] = Counter()
    anywhere: Counter[tuple[object, ...]] = Counter()
    for sentence, tree in zip(SENTENCES, TREES, strict=True):
        n = len(sentence)
        for h in range(n + 1):
            for m in range(1, n + 1):
                if m != h:
                    own = plainly(sentence, h, m, every)
                    anywhere.update({c: k for c, k in own.items() if not {"hw", "mw", "hp", "mp", "b"} & set(c[0])})
                    gold.update(own if tree[m - 1] == h else {})
    for known, least in ((every, 1), (some, 2)):
        kept = {c for c, n in gold.items() if n >= least} | {c for c, n in anywhere.items() if n >= 10 * least}
        assert known.n_features == len(kept)
    assert every.goes_with_labels.sum() == sum(TEMPLATES.index(c[0]) in LABELLED for c in kept_of(gold, anywhere))


def kept_of(gold: Counter[tuple[object, ...]], anywhere: Counter[tuple[object, ...]]) -> set[tuple[object, ...]]:
    return set(gold) | {c for c, n in anywhere.items() if n >= 10}


def test_new_words_and_tags() -> None:
    known = learned()
    new = [(("Zebras", "XX"), ("man", "NN"))]
    arcs = known.arcs(new)
    assert arcs.tags.tolist() == [0, 1, 2, known.tags.index("NN") + 3, 0]
    assert arcs.words[2] == 2 + word_class("Zebras")
    assert arcs.prefixes.tolist() == [-1, -1, -1, -1, -1]
    assert known.arcs(SENTENCES[1:2]).prefixes.tolist()[2] == known.prefixes.index("wande")
    assert len(known.rows(arcs).features) > 0


def test_chosen_cells_alone() -> None:
    known = learned()
    arcs = known.arcs(SENTENCES)
    chosen = known.cells(arcs.lengths, [cells(tree) for tree in TREES])
    assert chosen.sum() == 9
    every, some = known.rows(arcs), known.rows(arcs, chosen)
    for cell in range(arcs.n_cells):
        own = some.features[some.rows[cell] : some.rows[cell + 1]].tolist()
        assert own == (every.features[every.rows[cell] : every.rows[cell + 1]].tolist() if chosen[cell] else [])


def test_tables_find_every_number() -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 40, 500)
    table, counts = np.full(64, -1, np.int64), np.zeros(64, np.int64)
    assert count_keys(keys, table, counts) == len(np.unique(keys))
    held = table >= 0
    assert dict(zip(table[held].tolist(), counts[held].tolist(), strict=True)) == Counter(keys.tolist())
    distinct = np.unique(keys)
    table, places = np.full(64, -1, np.int64), np.zeros(64, np.int32)
    fill_table(distinct, table, places)
    held = table >= 0
    np.testing.assert_array_equal(distinct[places[held]], table[held])
    assert sorted(table[held].tolist()) == distinct.tolist()


def test_too_many_words_to_number() -> None:
    words = [tuple((f"w{i}", f"t{i}") for i in range(20_000))]
    with pytest.raises(mf.ModelError, match="20000 words and 20000 tags, too many to number their combinations"):
        ArcFeatures.learned(words, [np.zeros(0, np.int64)], min_count=1, min_word_count=1)
