"""Programs with learned weights, written and read again."""

from __future__ import annotations

import json

import numpy as np
import pytest

import markovfield as mf
from markovfield.files import write_archive

PROGRAM = """
topic = {T1, T2}
Has(doc, word)
Topic(doc, topic)
Has(d, +w) => Topic(d, +t)
@2.5 Topic(d, t)
0.5 Has(d, +w)
!Topic(d, T1) v !Topic(d, T2).
"""
SEEN = 'Has(D1, "it\'s") Topic(D1, T1) Has(D2, bb) Topic(D2, T2)'
WORLD = 'Has(D3, "it\'s") Has(D4, bb) Has(D5, "it\'s") Has(D5, bb)'


@pytest.fixture(scope="module")
def fitted():
    return mf.MarkovLogic(PROGRAM).fit(SEEN, method=mf.methods.PseudoLikelihood(l2=0.1))


def probabilities(kb):
    world = kb.ground(WORLD, query=["Topic"])
    return mf.marginals(world).to_frame().set_index(["variable", "state"])["probability"]


@pytest.mark.parametrize("name", ["a.mln", "a.mln.gz", "a.mf", "a.mfz"])
def test_learned_weights_are_kept(fitted, tmp_path, name):
    if name.endswith(".gz"):
        import gzip

        (tmp_path / name).write_bytes(gzip.compress(fitted.to_text().encode()))
    else:
        (mf.write if "mln" in name or "mfz" in name else mf.save)(fitted, tmp_path / name)
    again = mf.read(tmp_path / name)
    assert isinstance(again, mf.MarkovLogic)
    wanted, found = probabilities(fitted), probabilities(again)
    assert len(wanted) == 12
    np.testing.assert_allclose(found[wanted.index], wanted, atol=1e-12)
    assert [rule.fixed for rule in again.rules].count(True) == 1


def test_an_archive_has_the_same_weights_to_the_bit(fitted, tmp_path):
    mf.save(fitted, tmp_path / "a.mf")
    again = mf.load(tmp_path / "a.mf")
    assert [str(rule) for rule in again.rules] == [str(rule) for rule in fitted.rules]
    assert np.array_equal(again.ground(WORLD).weights, fitted.ground(WORLD).weights)


def test_text_of_learned_weights_adds_what_differs_from_the_rule():
    kb = mf.MarkovLogic("P(t)\n0.5 P(+x)").with_weights({0: {("A",): 2.0, ("B",): 0.5}})
    assert kb.to_text().split("\n")[-3:] == ["0.5  P(+x)", "1.5  P(A)", ""]
    kb = mf.MarkovLogic("P(t)\nP(+x)").with_weights({0: {("A",): 2.0, ("B",): 0.0}})
    assert kb.to_text().split("\n")[-2:] == ["2.0  P(A)", ""]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": 'P(t)\n#include "other.mln"\n'}, "its program includes other files"),
        ({"text": 3}, "it holds no Markov logic program"),
        ({"text": "P(t)\n1.0 =>"}, "does not fit here"),
        ({"constants": json.dumps([[5, ["A"]]])}, "its weights are not those of its program"),
        ({"constants": json.dumps([[0, [3]]])}, "its weights are not those of its program"),
        ({"constants": json.dumps([])}, "its weights are not those of its program"),
        ({"constants": "[["}, "not"),
    ],
)
def test_damaged_archives(tmp_path, change, message):
    about = {"class": "MarkovLogic", "text": "P(t)\nP(+x)", "constants": json.dumps([[0, ["A"]]]), **change}
    write_archive(tmp_path / "a.mf", 1, about, {"weights": np.ones(1)})
    with pytest.raises(mf.FormatError, match=message):
        mf.load(tmp_path / "a.mf")


def test_programs_are_asked_as_they_are_when_they_name_their_constants():
    kb = mf.MarkovLogic("person = {Anna, Bob}\nSmokes(person)\n0.7 Smokes(x)")
    assert mf.marginals(kb, {"Smokes(Bob)": True})["Smokes(Anna)"][1] == pytest.approx(1 / (1 + np.exp(-0.7)))
    with pytest.raises(mf.ModelError, match=r"the program names no constants: ground\(evidence\)"):
        mf.marginals(mf.MarkovLogic("Smokes(person)\n0.7 Smokes(x)"))


def test_only_programs_are_written_as_programs(tmp_path):
    with pytest.raises(mf.ModelError, match=r"a \.mln file holds a MarkovLogic, got BayesianNetwork"):
        mf.write(mf.datasets.asia(), tmp_path / "a.mln")
