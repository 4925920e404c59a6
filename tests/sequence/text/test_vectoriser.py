"""Attributes to numbers: every form of token against a plain reading of the rules."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.text import _encoding
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser, pack_strings, unpack_strings

texts = st.text("ab:é", max_size=3)
numbers = st.one_of(st.booleans(), st.integers(-2, 2), st.floats(-3, 3), st.sampled_from([np.float32(0.5), np.int8(1)]))
names = st.one_of(st.lists(texts, max_size=4), st.sets(texts, max_size=3), st.tuples(texts, texts))
flat = st.one_of(texts, numbers)
dicts = st.dictionaries(texts, st.one_of(flat, names, st.dictionaries(texts, flat, max_size=2)), max_size=4)
alike = st.fixed_dictionaries({"w": texts, "n": st.floats(-1, 1), "f": st.booleans()})
KINDS = {
    "mixed": st.one_of(dicts, names, texts),
    "alike": alike,
    "either": st.fixed_dictionaries({"w": st.one_of(texts, st.booleans()), "f": st.floats(-1, 1)}),
    "almost": st.one_of(alike, st.fixed_dictionaries({"w": texts, "end": st.just(True)})),
    "texts": st.dictionaries(texts, texts, max_size=4),
    "numbers": st.dictionaries(texts, st.floats(-1, 1), max_size=4),
    "lists": st.lists(texts, max_size=4),
    "sets": st.frozensets(texts, max_size=4),
    "words": texts,
}


def pairs(token) -> list[tuple[str, float]]:
    """The rules, read one by one."""
    if isinstance(token, str):
        return [(token, 1.0)]
    if not isinstance(token, dict):
        return [(name, 1.0) for name in (sorted(token) if isinstance(token, (set, frozenset)) else token)]
    found = []
    for key, value in token.items():
        if isinstance(value, str):
            found.append((f"{key}:{value}", 1.0))
        elif isinstance(value, (dict, list, set, frozenset, tuple)):
            found += [(f"{key}:{name}", number) for name, number in pairs(value)]
        else:
            found.append((key, float(value)))
    return found


def kept(X, known=None):
    nonzero = [[[(n, v) for n, v in pairs(token) if v] for token in sequence] for sequence in X]
    return [[[(n, v) for n, v in token if known is None or n in known] for token in seq] for seq in nonzero]


def decoded(data: SequenceData, attributes: list[str]):
    values = np.ones(len(data.attributes)) if data.values is None else data.values
    tokens = [
        [(attributes[data.attributes[r]], float(values[r])) for r in range(*data.token_offsets[t : t + 2])]
        for t in range(data.n_tokens)
    ]
    return [tokens[a:b] for a, b in zip(data.sequence_offsets[:-1], data.sequence_offsets[1:], strict=True)]


@pytest.fixture(params=[(2, 1), (192, 8)], ids=["small chunks", "as set"])
def chunking(request, monkeypatch):
    """Chunks and groups so small that every path runs on small data."""
    monkeypatch.setattr(_encoding, "SEQUENCES_AT_ONCE", request.param[0])
    monkeypatch.setattr(_encoding, "_TOKENS_PER_GROUP", request.param[1])


@pytest.mark.parametrize("kind", KINDS)
def test_forms_of_tokens(kind, chunking):
    @given(
        st.lists(st.lists(KINDS[kind], max_size=4), max_size=6), st.lists(st.lists(KINDS[kind], max_size=4), max_size=4)
    )
    def check(X, more):
        vectoriser = AttributeVectoriser()
        if kind == "mixed":  # both kinds are to be known
            X = [*X, [{}, []]]
        data = vectoriser.fit_transform(iter(X))
        assert decoded(data, vectoriser.attributes_) == kept(X)
        known = {n for sequence in kept(X) for token in sequence for n, _ in token}
        assert set(vectoriser.attributes_) == known
        assert data.n_attributes == vectoriser.n_attributes_ == len(known)
        again = vectoriser.transform(more)
        assert decoded(again, vectoriser.attributes_) == kept(more, known)
        assert decoded(vectoriser.transform(more), vectoriser.attributes_) == kept(more, known)  # from the caches
        assert (data.values is None) == all(v == 1 for s in kept(X) for t in s for _, v in t)
        assert data.attributes.dtype == np.int32
        assert data.token_offsets.dtype == data.sequence_offsets.dtype == np.int64

    check()


@pytest.mark.parametrize("hashing", [None, 64])
def test_tokens_of_another_kind_than_in_training_are_refused(hashing):
    dicts, lists, words = [[{"a": "b"}, {}]], [[["a:b"], ()], [{"c"}]], [["a:b"]]
    for X, others, kind, other in ((dicts, (lists, words), "dict", "list"), (lists, (dicts,), "list", "dict")):
        vectoriser = AttributeVectoriser(hashing=hashing).fit(X)
        again = AttributeVectoriser.restored(*vectoriser.described())
        for fitted in (vectoriser, again, pickle.loads(pickle.dumps(vectoriser))):
            fitted.transform(X)
            for wrong in others:
                with pytest.raises(
                    ModelError, match=f"token 0 of sequence 0 is a {other} where training had only {kind}s"
                ):
                    fitted.transform(wrong)
    assert AttributeVectoriser().fit(lists).transform(words).attributes.tolist() == [0]  # a text is a list of one
    both = AttributeVectoriser().fit([*dicts, *lists])
    both.transform(dicts)
    both.transform(lists)
    learnt = AttributeVectoriser().fit(dicts).partial_fit(lists)
    assert learnt.transform(lists).n_tokens == 3
    old, arrays = both.described()
    del old["kinds"]  # as files of earlier versions have it
    AttributeVectoriser.restored(old, arrays).transform(dicts)
    with pytest.raises(FormatError, match="the kinds of its tokens"):
        AttributeVectoriser.restored({**old, "kinds": ["x"]}, arrays)


def test_rules_are_those_of_python_crfsuite():
    # What python-crfsuite 0.9.12's ItemSequence(...).items() gave; it keeps the zero, which we leave out.
    X = [[{"a": "b", "c": True, "d": False, "e": {"f": "g", "h": 2}, "i": ["x", "y"], "j": 1.5}, ("t", "u")]]
    expected = [
        {"a:b": 1.0, "c": 1.0, "d": 0.0, "e:f:g": 1.0, "e:h": 2.0, "i:x": 1.0, "i:y": 1.0, "j": 1.5},
        {"t": 1.0, "u": 1.0},
    ]
    vectoriser = AttributeVectoriser()
    [found] = decoded(vectoriser.fit_transform(X), vectoriser.attributes_)
    assert [dict(token) for token in found] == [{n: v for n, v in token.items() if v} for token in expected]


def test_arrays_inside_tokens():
    vectoriser = AttributeVectoriser()
    data = vectoriser.fit_transform([[{"v": np.array([0.5, 0.0, 2.0])}]])
    assert decoded(data, vectoriser.attributes_) == [[[("v:0", 0.5), ("v:2", 2.0)]]]


@given(
    st.lists(st.lists(st.lists(st.lists(st.sampled_from("abcdef"), max_size=3), max_size=3), max_size=3), max_size=4),
    st.integers(1, 4),
)
def test_incremental_counting_is_counting_at_once(parts, min_count):
    vectoriser = AttributeVectoriser(min_count=min_count).fit([])
    for part in parts:
        before = vectoriser.attributes_
        vectoriser.partial_fit(part)
        assert vectoriser.attributes_[: len(before)] == before
    whole = [sequence for part in parts for sequence in part]
    at_once = AttributeVectoriser(min_count=min_count)
    data = at_once.fit_transform(whole)
    listed = [name for sequence in whole for token in sequence for name in token]
    expected = {name for name in listed if listed.count(name) >= min_count}
    assert set(vectoriser.attributes_) == set(at_once.attributes_) == expected
    assert decoded(data, at_once.attributes_) == kept(whole, expected)


def test_hashing_is_the_same_everywhere():
    vectoriser = AttributeVectoriser(hashing=1000)
    data = vectoriser.fit_transform([[["w=é", "b"], {"k": "v", "x": 2.0}]])
    expected = [zlib.crc32(name.encode()) % 1000 for name in ["w=é", "b", "k:v", "x"]]
    assert data.attributes.tolist() == expected
    assert data.values.tolist() == [1, 1, 1, 2]
    assert vectoriser.attributes_ is None
    assert data.n_attributes == 1000


def test_numbers_do_not_depend_on_the_run():
    # Python's own hash of texts differs from run to run, and with it the order of sets.
    names = ["alpha", "beta", "delta", "gamma"]
    code = (
        "from markovfield.sequence.text.vectoriser import AttributeVectoriser as A;"
        "X = [[{'alpha', 'beta', 'gamma', 'delta'}]];"
        "print(A().fit(X).attributes_, A(hashing=1000).fit_transform(X).attributes.tolist())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "1"}
    )
    assert run.stdout.strip() == f"{names} {[zlib.crc32(name.encode()) % 1000 for name in names]}"


@pytest.mark.parametrize("sparse", [False, True])
def test_arrays(sparse):
    dense = [np.array([[0, 1.0, 2.0], [0, 0, 0]]), np.zeros((0, 3)), np.array([[1.0, 0, -1.0]])]
    X = [csr_matrix(x) if sparse else x for x in dense]
    vectoriser = AttributeVectoriser()
    data = vectoriser.fit_transform(X)
    np.testing.assert_array_equal(data.to_csr().toarray(), np.concatenate(dense))
    assert data.lengths.tolist() == [2, 0, 1]
    assert vectoriser.attributes_ == ["0", "1", "2"]
    ones = vectoriser.transform([X[0][:, :3] != 0])
    assert ones.values is None
    assert ones.attributes.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[["a"]], [["b"], {"x": float("nan")}]], "token 1 of sequence 1 has the value nan for attribute 'x'"),
        ([[{"x": float("inf")}] * 20], "token 0 of sequence 0 has the value inf for attribute 'x'"),
        ([[{"x": {"y": float("-inf")}}]], "the value -inf for attribute 'x:y'"),
        ([[["a", 1]]], "token 0 of sequence 0 has the attribute 1 of type int; attributes are named by str"),
        ([[["a", ["b"]]]], r"the attribute \['b'\] of type list"),
        ([[{1: "a"}]], "the attribute 1 of type int"),
        ([[{"a": None}]], "the value None of type NoneType for attribute 'a'"),
        ([[{"a": b"bytes"}] * 20], "the value b'bytes' of type bytes"),
        ([[3]], "token 0 of sequence 0 is 3 of type int; give a dict, a list of str or a str"),
        (["words"], "sequence 0 is 'words' of type str; a sequence is a list of tokens"),
        ([{"a": 1}], "sequence 0 is .* of type dict"),
        ([7], "sequence 0 is 7 of type int"),
        ([[["a"]], np.ones((2, 2))], "sequence 1 is .* of type ndarray"),
        ([np.ones((2, 2)), np.ones((2, 3))], r"sequence 1 has shape \(2, 3\) where .* 2 columns"),
        ([np.ones((2, 2)), [["a"]]], r"sequence 1 has \[\['a'\]\] of type list where a 2-d array"),
        ([np.ones(2)], r"sequence 0 has shape \(2,\)"),
        ([np.ones((1, 2)), np.array([[0, 1], [np.nan, 0]])], "token 1 of sequence 1 has the value nan for attribute 0"),
        ([csr_matrix([[0, 1], [np.inf, 0]])], "token 1 of sequence 0 has the value inf for attribute 0"),
    ],
)
def test_bad_input(X, message):
    vectoriser = AttributeVectoriser()
    with pytest.raises(ModelError, match=message):
        vectoriser.fit(X)
    fitted = AttributeVectoriser().fit(
        [np.ones((1, 2))] if isinstance(X[0], (np.ndarray, csr_matrix)) else [[["a"], {}]]
    )
    with pytest.raises(ModelError, match=message):
        fitted.transform(X)


def test_an_error_leaves_what_was_known():
    vectoriser = AttributeVectoriser().fit([[["a"]]])
    with pytest.raises(ModelError, match="named by str"):
        vectoriser.partial_fit([[["b"]], [[1]]])
    assert vectoriser.attributes_ == ["a"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": 0}, "min_count must be an integer from 1 on, got 0"),
        ({"hashing": 0}, "hashing must be None or an integer from 1"),
        ({"hashing": 1 << 31}, "hashing must be None"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ModelError, match=message):
        AttributeVectoriser(**settings).fit([])


def test_names_and_columns_do_not_mix():
    with pytest.raises(ModelError, match="hashing is for named attributes"):
        AttributeVectoriser(hashing=8).fit([np.ones((1, 2))])
    with pytest.raises(ModelError, match="fitted on arrays and cannot learn from other sequences"):
        AttributeVectoriser().fit([np.ones((1, 2))]).partial_fit([[["a"]]])
    with pytest.raises(ModelError, match="fitted on named attributes"):
        AttributeVectoriser().fit([[["a"]]]).partial_fit([np.ones((1, 2))])
    with pytest.raises(ModelError, match="not from SequenceData"):
        AttributeVectoriser().fit(AttributeVectoriser().fit_transform([[["a"]]]))


def test_sequence_data_passes_through():
    vectoriser = AttributeVectoriser()
    data = vectoriser.fit_transform([[["a", "b"]]])
    assert vectoriser.transform(data) is data
    with pytest.raises(ModelError, match="2 attributes where 1 are known"):
        AttributeVectoriser().fit([[["a"]]]).transform(data)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        AttributeVectoriser().transform([[["a"]]])


def test_clone_and_pickle():
    vectoriser = AttributeVectoriser(min_count=2)
    vectoriser.fit([[{"w": "a"}, {"w": "a"}, {"w": "b"}]]).transform([[{"w": "a"}]])
    assert clone(vectoriser).get_params() == {"min_count": 2, "hashing": None}
    again = pickle.loads(pickle.dumps(vectoriser))
    assert again.attributes_ == ["w:a"]
    assert again.transform([[{"w": "a"}]]).attributes.tolist() == [0]
    assert pickle.loads(pickle.dumps(AttributeVectoriser())).get_params()["min_count"] == 1
    hashed = AttributeVectoriser(hashing=32).fit([[["a"]]])
    copied = pickle.loads(pickle.dumps(hashed))
    assert copied.transform([[["a", "b"]]]).attributes.tolist() == hashed.transform([[["a", "b"]]]).attributes.tolist()
    assert copy.deepcopy(vectoriser).partial_fit([[["z", "z"]]]).attributes_ == ["w:a", "z"]
    assert vectoriser.attributes_ == ["w:a"]


def test_memory_stays_near_that_of_the_answer():
    def stream():
        for s in range(2500):
            yield [[f"a{(s + t) % 50}", f"b{t}", "c", "d", "e", f"f{s % 7}"] for t in range(25)]

    vectoriser = AttributeVectoriser()
    vectoriser.fit_transform([next(stream())])  # what is allocated once
    tracemalloc.start()
    data = vectoriser.fit_transform(stream())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    answer = data.attributes.nbytes + data.token_offsets.nbytes + data.sequence_offsets.nbytes
    # Beside the answer, what it is summed up from, and one chunk of 192 sequences with six texts for each token.
    chunk = 192 * 25 * (6 * 60 + 104)
    assert peak < 1.6 * answer + 1.5 * chunk


@pytest.mark.parametrize(
    "vectoriser",
    [
        AttributeVectoriser().fit([[["é", "b\n"], {"c": 0.5}]]),
        AttributeVectoriser(hashing=16).fit([]),
        AttributeVectoriser().fit([np.ones((1, 3))]),
    ],
    ids=["names", "hashing", "columns"],
)
def test_description_round_trip(vectoriser):
    again = AttributeVectoriser.restored(*vectoriser.described())
    assert again.attributes_ == vectoriser.attributes_
    assert again.n_attributes_ == vectoriser.n_attributes_
    X = [np.array([[0, 2.0, 1.0]])] if vectoriser.described()[0]["columns"] else [[["é", "x", "b\n"]]]
    assert again.transform(X).attributes.tolist() == vectoriser.transform(X).attributes.tolist()


def test_damaged_descriptions():
    about, arrays = AttributeVectoriser().fit([[["a", "b"]]]).described()
    offsets = arrays["attribute_offsets"]
    for bad in (
        offsets[:-1],
        offsets[::-1].copy(),
        np.array([0, 2, 1, 2]),
        offsets.astype(float),
        np.zeros(0, np.int64),
    ):
        with pytest.raises(FormatError, match="do not fit together"):
            AttributeVectoriser.restored(about, {**arrays, "attribute_offsets": bad})
    with pytest.raises(FormatError, match="same name"):
        AttributeVectoriser.restored(about, {**arrays, "attribute_text": np.array([97, 97], np.uint8)})
    with pytest.raises(FormatError, match="not UTF-8"):
        AttributeVectoriser.restored(about, {**arrays, "attribute_text": np.array([255, 97], np.uint8)})
    with pytest.raises(FormatError, match="number of columns"):
        AttributeVectoriser.restored({**about, "columns": -1}, {})


@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=4), max_size=5))
def test_packed_strings(words):
    assert unpack_strings(*pack_strings(words)) == words


def test_learning_names():
    vectoriser = AttributeVectoriser(min_count=2)
    vectoriser.learn(["a", "b", "a", "c"], [1, 2, 1, 1])
    assert sorted(vectoriser.attributes_) == ["a", "b"]
    assert vectoriser.numbers(["b", "c", "a"]).tolist() == [
        vectoriser.attributes_.index("b"),
        -1,
        vectoriser.attributes_.index("a"),
    ]
    with pytest.raises(ModelError, match="have no names"):
        AttributeVectoriser().fit([np.ones((1, 2))]).numbers(["0"])
