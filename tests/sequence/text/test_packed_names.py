"""Names looked up by their bytes: the same numbers as a dictionary gives, whatever the names are."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.sequence.text import _encoding
from markovfield.sequence.text._encoding import PackedNames
from markovfield.sequence.text.packed_names_kernel import _hashed
from markovfield.sequence.text.vectoriser import AttributeVectoriser

texts = st.text("ab:é\ud800\U0001f600", max_size=4)


@given(st.lists(texts, unique=True, max_size=30), st.lists(texts, max_size=60))
def test_the_same_numbers_as_a_dictionary(known: list[str], wanted: list[str]):
    table = {name: i for i, name in enumerate(known)}
    found = PackedNames(known, len(known)).numbers(wanted, len(wanted))
    assert found is not None and found.tolist() == [table.get(name, -1) for name in wanted]


def test_names_whose_hashes_agree_where_slots_hold_them():
    """FNV-1a of texts of six letters, worked out here, until two agree in their upper halves."""
    letters = np.random.default_rng(0).integers(97, 123, (1_500_000, 6), dtype=np.uint8)
    h, prime = np.full(len(letters), 0xCBF29CE484222325, np.uint64), np.uint64(0x100000001B3)
    for column in letters.T:
        h = (h ^ column.astype(np.uint64)) * prime
    h ^= h >> np.uint64(32)
    h *= prime
    h ^= h >> np.uint64(32)
    order = np.argsort(h, kind="stable")
    letters, h = letters[order], h[order]
    alike = (h[1:] >> np.uint64(32) == h[:-1] >> np.uint64(32)) & (letters[1:] != letters[:-1]).any(axis=1)
    at = np.flatnonzero(alike)
    assert len(at) > 20
    for i in at[:50].tolist():
        one, other = letters[i].tobytes().decode(), letters[i + 1].tobytes().decode()
        assert _hashed(np.frombuffer(other.encode() + b"\0", np.uint8), 0)[0] == h[i + 1]
        for known in ([one], [one, other], [other, one], ["x", other, "y", one]):
            table = {name: k for k, name in enumerate(known)}
            wanted = [one, other, one + "z", one[:-1], "x"]
            found = PackedNames(known, len(known)).numbers(wanted, len(wanted))
            assert found is not None and found.tolist() == [table.get(name, -1) for name in wanted]


def test_many_references_are_looked_up_by_bytes(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(1)
    X = [[[f"w{w}", f"é{w % 7}"] for w in rng.integers(0, 50, 4)] for _ in range(30)]
    new = [[[f"w{w}", "never"] for w in rng.integers(0, 90, 4)] for _ in range(30)]
    words = [[f"w{w}" for w in rng.integers(0, 90, 4)] for _ in range(30)]
    plain = AttributeVectoriser().fit(X)
    expected = [plain.transform(part) for part in (X, new, words)]
    assert plain._encoder is not None and plain._encoder.packed is None
    monkeypatch.setattr(_encoding, "_MANY", 10)
    packed = AttributeVectoriser().fit(X)
    for part, right in zip((X, new, words), expected, strict=True):
        found = packed.transform(part)
        np.testing.assert_array_equal(found.attributes, right.attributes)
        np.testing.assert_array_equal(found.token_offsets, right.token_offsets)
    assert packed._encoder is not None and packed._encoder.packed is not None
    assert pickle.loads(pickle.dumps(packed))._encoder is None
    # What is wrong is said as before, and a zero byte goes the long way.
    with pytest.raises(ModelError, match="token 1 of sequence 0 has the attribute 3 of type int"):
        packed.transform([[["w1"], ["w2", 3]]])
    assert packed.transform([[["w1", "w\0"], ["w2"]]]).attributes.tolist() == plain.numbers(["w1", "w2"]).tolist()
    zero = AttributeVectoriser().fit([[["a\0b", "a"], ["b"]]])
    assert zero.transform([[["b", "a\0b"] * 9, ["a"]]]).attributes.tolist() == [2, 0] * 9 + [1]
    # Names learnt later are found, too.
    packed.partial_fit([[["later"]]])
    assert packed.transform([[["later"] * 20]]).attributes.tolist() == [packed.n_attributes_ - 1] * 20


def test_the_kernels_run_without_the_jit():
    script = (
        "from markovfield.sequence.text._encoding import PackedNames\n"
        "found = PackedNames(['a', '', 'bc'], 3).numbers(['bc', 'b', '', 'a', 'abc'], 5)\n"
        "assert found.tolist() == [2, -1, 1, 0, -1]\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
