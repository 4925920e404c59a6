"""Where options meet: evidence on any kinds of parts, hard and tied scores, with every verb, against enumeration."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

import markovfield as mf
from tests.structures.test_conformance import CASES, named, parts_of, possible

# Parts that evidence can forbid, but not require.
FORBID_ONLY = {"rules", "transitions"}
NOTHING = mf.ImpossibleEvidenceError
aggregate = mf.analysis.aggregate


class Asked:
    """A form with evidence, and which structures that leaves, with their scores."""

    def __init__(self, case, seed):
        rng = np.random.default_rng(seed)
        self.case, self.form = case, case.make(rng)
        self.structures, self.scores, _, _ = possible(case, self.form)
        self.cells = [self.form.cells(structure) for structure in self.structures]
        if seed % 3 == 1:  # all alike
            self.form.pool = np.where(np.isneginf(self.form.pool), -np.inf, 0.0)
        if seed % 3 == 2:  # some ruled out
            self.form.pool = np.where(rng.random(len(self.form.pool)) < 0.15, -np.inf, self.form.pool)
        scores = np.array([self.form.pool[own].sum() for own in self.cells])
        self.where = {}
        for kind in self.form.parts:
            for index in parts_of(self.form, kind):
                self.where.setdefault(self.form.cell(kind, index), (kind, index))
        target = set(self.cells[rng.integers(len(self.cells))].tolist())
        required = [c for c in sorted(self.where) if c in target and self.where[c][0] not in FORBID_ONLY]
        required = rng.permutation(required)[: rng.integers(3)].astype(int).tolist()
        # Every fourth time even what contradicts it.
        others = [c for c in sorted(self.where) if c not in (required if seed % 4 == 3 else target)]
        forbidden = rng.permutation(others)[: rng.integers(4)].astype(int).tolist()
        self.evidence = {}
        for fixed, cells in ((True, required), (False, forbidden)):
            for cell in cells:
                kind, index = self.where[cell]
                self.evidence.setdefault(kind, {})[index] = fixed
        kept = [
            i
            for i, own in enumerate(self.cells)
            if scores[i] > -np.inf and set(required) <= set(own.tolist()) and not set(forbidden) & set(own.tolist())
        ]
        self.kept, self.left = kept, scores[kept]

    def key(self, i):
        return self.case.key(self.structures[i])


@named(CASES)
@pytest.mark.parametrize("seed", range(3))
def test_evidence_and_every_verb(case, seed):
    asked = Asked(case, 100 * seed + len(case.name))
    form, evidence = asked.form, asked.evidence
    if len(asked.structures) > 1000:
        pytest.skip("many structures: others have as many kinds of parts")
    if not asked.kept:
        for verb in (mf.log_partition, mf.marginals, mf.decode):
            with pytest.raises(NOTHING):
                verb(form, evidence)
        with pytest.raises(NOTHING):
            mf.decode(form, evidence, n_best=3)
        with pytest.raises(NOTHING):
            mf.sample(form, 3, evidence, rng=0)
        return
    best = mf.decode(form, evidence)
    assert best.score == pytest.approx(asked.left.max(), abs=1e-8)
    if len(asked.kept) < 400:
        several = mf.decode(form, evidence, n_best=len(asked.kept) + 3).n_best
        assert [one.score for one in several] == pytest.approx(np.sort(asked.left)[::-1].tolist(), abs=1e-8)
        assert len({case.key(one.structure) for one in several}) == len(asked.kept)
    assert aggregate(form, "min_sum", evidence) == pytest.approx(asked.left.min(), abs=1e-8)
    assert aggregate(form, "max_sum", evidence) == pytest.approx(asked.left.max(), abs=1e-8)
    for answer in (best, pickle.loads(pickle.dumps(best))):
        assert len(answer.to_frame()) == 1
        assert "<" in answer._repr_html_()
    if case.exact_sums:
        sums(asked)


def sums(asked):
    form, evidence, case = asked.form, asked.evidence, asked.case
    log_z = np.logaddexp.reduce(asked.left)
    p = np.exp(asked.left - log_z)
    counts = np.zeros(form.family.n_cells)
    for i, share in zip(asked.kept, p, strict=True):
        np.add.at(counts, asked.cells[i], share)
    answer = mf.marginals(form, evidence)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-8)
    assert float(mf.log_partition(form, evidence)) == pytest.approx(log_z, abs=1e-8)
    for part, values in form.shaped(counts).items():
        np.testing.assert_allclose(answer[part], values, atol=1e-8)
    entropy = log_z - p @ asked.left
    assert answer.entropy == pytest.approx(entropy, abs=1e-7)
    assert aggregate(form, "entropy", evidence) == pytest.approx(entropy, abs=1e-7)
    assert aggregate(form, "counting", evidence) == len(asked.kept)
    values = np.cos(np.arange(len(form.pool)))
    expected = aggregate(form, mf.semirings.Expectation(values), evidence)
    assert expected == pytest.approx(counts @ values, abs=1e-7)
    safest = mf.decode(form, evidence, loss="parts").structure
    assert case.key(safest) in {asked.key(i) for i in asked.kept}
    gains = max(counts[asked.cells[i]].sum() for i in asked.kept)
    assert counts[form.cells(safest)].sum() == pytest.approx(gains, abs=1e-8)
    size = 200
    drawn = Counter(case.key(one) for one in mf.sample(form, size, evidence, rng=1).structures)
    known = {asked.key(i): share for i, share in zip(asked.kept, p, strict=True)}
    assert set(drawn) <= set(known)
    for key, share in known.items():
        assert abs(drawn[key] - size * share) <= 7 * np.sqrt(size * share * (1 - share)) + 6
    cell = sorted(asked.where)[len(asked.where) // 2]
    kind, index = asked.where[cell]
    there = np.array([cell in asked.cells[i] for i in asked.kept])
    assert mf.probability(form, {kind: {index: False}}, evidence) == pytest.approx(p[~there].sum(), abs=1e-8)
    if kind not in FORBID_ONLY:
        assert mf.probability(form, {kind: {index: True}}, evidence) == pytest.approx(p[there].sum(), abs=1e-8)


@named(CASES)
def test_what_is_no_part_and_no_structure(case):
    form = case.make(np.random.default_rng(0))
    for kind in form.parts:
        for index in (("a",), ("a", 0), "a", (0.5, 0), (-1,), (-1, 0), (-1, 0, 0), None, (None,), (True, False), ()):
            with pytest.raises(mf.ModelError, match=r"."):
                mf.decode(form, {kind: {index: True}})
    for structure in (5, "abc", None, ["a"], [None], [(0, 0, 0, 0)], [-1, -2], [0.5, 0.5], {"a": 1}, [[]], [10**9]):
        with pytest.raises(mf.ModelError, match=r"."):
            form.score(structure)
    for ring in ("nonsense", 3, None):
        with pytest.raises(mf.ModelError, match="there is no semiring"):
            aggregate(form, ring)
    with pytest.raises(mf.ModelError, match="event must be a dict"):
        mf.probability(form, None)


def test_bounds_are_not_taken_for_answers():
    form = mf.structures.Matching(np.zeros((30, 30)))
    with pytest.raises(mf.ModelError, match="too many to count exactly"):
        form.n_structures()
    for ring in ("sum_product", "entropy", mf.semirings.Expectation(np.zeros(len(form.pool)))):
        with pytest.raises(mf.ModelError, match="sums of this Matching are bounds"):
            aggregate(form, ring)
    with pytest.raises(mf.ModelError, match="too many to count exactly"):
        aggregate(form, "counting")


def test_the_first_and_the_last_label_of_segments():
    rng = np.random.default_rng(0)
    form = mf.structures.SemiMarkov(rng.normal(size=(4, 3, 3)), rng.normal(size=(3, 3)))
    found = mf.decode(form, {"start": {(1,): True}, "end": {(2,): True}}).structure
    assert (found[0][2], found[-1][2]) == (1, 2)
    with pytest.raises(mf.ModelError, match="can forbid transitions, not require one"):
        mf.decode(form, {"transitions": {(0, 1): True}})
