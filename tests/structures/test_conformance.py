"""Every form against brute force: sums, counts, the best, the n best, draws, evidence, batches, threads."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
from markovfield._exports import names_in
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Parts
from markovfield.structures.core.form import StructureForm

FOLDER = Path(__file__).parent / "cases"
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "case"))
CASES = [case for name in FILES for case in import_module(f"tests.structures.cases.{name}").CASES]
EXACT = [case for case in CASES if case.exact_sums]
SEEDS = range(3)


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: f"{case.enumerate.__module__[23:]}-{case.name}")


def possible(case, form):
    """Structures that have a score, with their probabilities."""
    found = [(structure, score) for structure, score in case.enumerate(form) if score > -np.inf]
    scores = np.array([score for _, score in found])
    top = scores.max()
    weights = np.exp(scores - top)
    return [structure for structure, _ in found], scores, weights / weights.sum(), top + np.log(weights.sum())


def expected(form, structures, p):
    counts = np.zeros(form.family.n_cells)
    for structure, share in zip(structures, p, strict=True):
        np.add.at(counts, form.cells(structure), share)
    return counts


def test_every_form_has_a_case():
    public = [getattr(mf.structures, name) for name in names_in("structures")]
    forms = {kind for kind in public if isinstance(kind, type) and issubclass(kind, StructureForm)} - {StructureForm}
    assert forms == {type(case.make(np.random.default_rng(0))) for case in CASES}


@named(EXACT)
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_counts(case, seed):
    form = case.make(np.random.default_rng(seed))
    structures, scores, p, log_z = possible(case, form)
    assert len({case.key(s) for s in structures}) == len(structures)
    assert float(mf.log_partition(form)) == pytest.approx(log_z, abs=1e-9)
    answer = mf.marginals(form)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-9)
    for part, values in form.shaped(expected(form, structures, p)).items():
        np.testing.assert_allclose(answer[part], values, atol=1e-9)
    assert answer.entropy == pytest.approx(log_z - p @ scores, abs=1e-8)
    assert answer.guarantee == "exact"
    assert "log Z" in repr(answer)


@named(EXACT)
def test_counts_are_derivatives_of_log_z(case):
    form = case.make(np.random.default_rng(5))
    family, pool = form.family, form.pool.copy()
    counts = family.sums(pool, counts=True, running=Running()).counts
    rng = np.random.default_rng(0)
    finite = np.flatnonzero(np.isfinite(pool))
    for cell in rng.choice(finite, min(8, len(finite)), replace=False):
        steps = []
        for step in (1e-5, -1e-5):
            moved = pool.copy()
            moved[cell] += step
            steps.append(family.sums(moved, running=Running()).log_partition[0])
        assert counts[cell] == pytest.approx((steps[0] - steps[1]) / 2e-5, abs=1e-6)
    assert not counts[np.isneginf(pool)].any()


@named(EXACT)
def test_semirings(case):
    form = case.make(np.random.default_rng(1))
    structures, scores, p, log_z = possible(case, form)
    ask = mf.analysis.aggregate
    assert form.n_structures() == ask(form, "counting") == len(structures)
    assert ask(form) == pytest.approx(log_z, abs=1e-9)
    assert ask(form, "max_sum") == pytest.approx(scores.max(), abs=1e-9)
    assert ask(form, "max_product") == pytest.approx(np.exp(scores.max()))
    assert ask(form, "min_sum") == pytest.approx(scores.min(), abs=1e-9)
    assert ask(form, "entropy") == pytest.approx(log_z - p @ scores, abs=1e-8)
    assert ask(form, mf.semirings.KBest(2)) == pytest.approx(tuple(np.sort(scores)[::-1][:2]), abs=1e-9)
    values = np.arange(len(form.pool), dtype=float)
    mean = ask(form, mf.semirings.Expectation(values))
    assert mean == pytest.approx(expected(form, structures, p) @ values, abs=1e-7)


@named(CASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_and_the_n_best(case, seed):
    form = case.make(np.random.default_rng(seed))
    structures, scores, _, _ = possible(case, form)
    order = np.argsort(-scores)
    best = mf.decode(form)
    assert best.score == pytest.approx(scores[order[0]], abs=1e-9)
    assert form.score(best.structure) == pytest.approx(best.score)
    assert case.key(best.structure) in {case.key(s) for s in structures}
    assert best.optimal
    n = min(7, len(scores))
    several = mf.decode(form, n_best=n).n_best
    assert [one.score for one in several] == pytest.approx(scores[order[:n]].tolist(), abs=1e-9)
    assert len({case.key(one.structure) for one in several}) == n
    everything = mf.decode(form, n_best=len(scores) + 5).n_best if len(scores) < 60 else several
    assert len(everything) == (len(scores) if len(scores) < 60 else n)


@named(CASES)
def test_structures_and_cells_round_trip(case):
    form = case.make(np.random.default_rng(2))
    structures, scores, _, _ = possible(case, form)
    for structure, score in list(zip(structures, scores, strict=True))[:50]:
        cells = form.cells(structure)
        assert form.pool[cells].sum() == pytest.approx(score, abs=1e-9)
        assert case.key(form.structure(cells)) == case.key(structure)


@named(EXACT)
def test_draws_come_as_often_as_they_should(case):
    form = case.make(np.random.default_rng(3))
    structures, _, p, _ = possible(case, form)
    size = 4000
    drawn = mf.sample(form, size, rng=0)
    counts = form.shaped(expected(form, structures, p))
    again = mf.sample(form, size, rng=0)
    known = {case.key(s) for s in structures}
    assert len(drawn) == size
    assert {case.key(s) for s in drawn.structures} <= known
    assert [case.key(s) for s in drawn.structures] == [case.key(s) for s in again.structures]
    for part, values in counts.items():
        # Five standard errors; a part that is used twice has a larger one.
        error = 5 * np.sqrt(np.maximum(values * np.abs(1 - values), values**2 * 0.25) / size) + 1e-12
        assert (np.abs(drawn[part] - values) <= error + 10 / size).all()


@named(CASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_evidence_fixes_parts(case, seed):
    rng = np.random.default_rng(seed)
    form = case.make(rng)
    structures, scores, _, _ = possible(case, form)
    kind = form.parts[0]
    if len(structures) < 2:
        pytest.skip("one structure, which evidence does not change")
    one = set(form.cells(structures[int(rng.integers(len(structures)))]).tolist())
    other = set(form.cells(structures[int(rng.integers(len(structures)))]).tolist())
    where = {form.cell(kind, tuple(index)): tuple(index) for index in parts_of(form, kind)}
    wanted = [c for c in sorted(one) if c in where]
    unwanted = [c for c in sorted(other - one) if c in where]
    required = [wanted[int(rng.integers(len(wanted)))]] if wanted else []
    forbidden = [unwanted[int(rng.integers(len(unwanted)))]] if unwanted else []
    evidence = {kind: {**{where[c]: True for c in required}, **{where[c]: False for c in forbidden}}}
    kept = [
        (structure, score)
        for structure, score in zip(structures, scores, strict=True)
        if set(required) <= set(form.cells(structure).tolist())
        and not set(forbidden) & set(form.cells(structure).tolist())
    ]
    best = mf.decode(form, evidence)
    assert best.score == pytest.approx(max(score for _, score in kept), abs=1e-9)
    drawn = mf.sample(form, 20, evidence, rng=seed)
    assert {case.key(s) for s in drawn.structures} <= {case.key(s) for s, _ in kept}
    if case.exact_sums:
        log_z = np.logaddexp.reduce([score for _, score in kept])
        assert float(mf.log_partition(form, evidence)) == pytest.approx(log_z, abs=1e-9)


@named(EXACT)
def test_the_probability_of_parts(case):
    form = case.make(np.random.default_rng(10))
    structures, _, p, _ = possible(case, form)
    kind = form.parts[0]
    where = {form.cell(kind, tuple(index)): tuple(index) for index in parts_of(form, kind)}
    has = {cell: np.array([cell in set(form.cells(s).tolist()) for s in structures]) for cell in list(where)[:6]}
    for cell, there in has.items():
        # A part that no structure has cannot be required: that is impossible, or has no probability.
        assert mf.probability(form, {kind: {where[cell]: False}}) == pytest.approx(p[~there].sum(), abs=1e-9)
        assert mf.probability(form, {kind: {where[cell]: True}}) == pytest.approx(p[there].sum(), abs=1e-9)


def parts_of(form, kind):
    """Indices of all parts of a kind that have a cell."""
    shape = form.shaped(np.zeros(form.family.n_cells))[kind].shape
    marked = form.shaped(np.arange(1.0, form.family.n_cells + 1.0))[kind]
    return [index for index in np.ndindex(*shape) if marked[index] > 0]


@named(EXACT)
def test_least_expected_loss(case):
    form = case.make(np.random.default_rng(4))
    structures, _, p, _ = possible(case, form)
    counts = expected(form, structures, p)
    best = mf.decode(form, loss="parts")
    gains = [counts[form.cells(structure)].sum() for structure in structures]
    assert counts[form.cells(best.structure)].sum() == pytest.approx(max(gains), abs=1e-9)
    assert best.expected_loss == pytest.approx(len(form.cells(best.structure)) - max(gains), abs=1e-9)


@named(CASES)
def test_batches_and_threads_change_nothing(case):
    form = case.make(np.random.default_rng(6))
    family, pool = form.family, form.pool
    shared = int(family.cell_offsets[0])
    many, where = family.select(np.zeros(5, np.int64))
    pools = pool[where].copy()
    own = np.diff(many.cell_offsets)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=int(own.sum()))
    pools[shared:] += noise
    weights = rng.random(5)
    found = many.sums(pools, counts=True, weights=weights, running=Running(n_jobs=2))
    alone = many.sums(pools, counts=True, weights=weights, running=Running(n_jobs=1))
    np.testing.assert_array_equal(found.counts, alone.counts)
    best = many.maxima(pools, running=Running(n_jobs=2))
    drawn = many.draws(pools, 3, rng=np.random.default_rng(1), running=Running(n_jobs=2))
    assert isinstance(drawn, Parts)
    assert len(drawn.offsets) == 16
    together = np.zeros(many.n_cells)
    for i in range(5):
        cells = np.concatenate([np.arange(shared), np.arange(many.cell_offsets[i], many.cell_offsets[i + 1])])
        single = family.sums(pools[cells], counts=True, running=Running())
        assert found.log_partition[i] == pytest.approx(single.log_partition[0], abs=1e-9)
        together[cells] += weights[i] * single.counts
        score = pools[cells][family.maxima(pools[cells], running=Running()).of(0)].sum()
        assert pools[best.of(i)].sum() == pytest.approx(score, abs=1e-9)
        for j in range(3):
            assert np.isin(drawn.of(3 * i + j), cells).all()
    np.testing.assert_allclose(found.counts, together, atol=1e-9)


@named(CASES)
def test_scores_may_be_extreme(case):
    form = case.make(np.random.default_rng(7))
    family = form.family
    scaled = form.pool * 300.0
    sums = family.sums(scaled, counts=True, running=Running())
    assert np.isfinite(sums.log_partition).all()
    assert np.isfinite(sums.counts).all()
    best = scaled[family.maxima(scaled, running=Running()).of(0)].sum()
    if case.exact_sums:
        size = len(possible(case, form)[0])
        assert best - 1e-6 <= sums.log_partition[0] <= best + np.log(size) + 1e-6


@named(CASES)
def test_nothing_possible_is_said_so(case):
    form = case.make(np.random.default_rng(8))
    form.pool = np.full(len(form.pool), -np.inf)
    for verb in (mf.log_partition, mf.marginals, mf.decode):
        with pytest.raises(mf.ImpossibleEvidenceError, match="no possible structure"):
            verb(form)
    with pytest.raises(mf.ImpossibleEvidenceError, match="no possible structure"):
        mf.sample(form, 3, rng=0)
    with pytest.raises(mf.ImpossibleEvidenceError, match="no possible structure"):
        mf.decode(form, n_best=2)


@named(CASES)
def test_what_a_form_is_not_asked(case):
    form = case.make(np.random.default_rng(9))
    for words, message in (
        ({"method": "junction_tree"}, "leave it 'auto'"),
        ({"init": 3}, "takes no init"),
        ({"evidence": {"nonsense": {}}}, "evidence names 'nonsense'"),
        ({"evidence": [1]}, "evidence must be a dict"),
        ({"evidence": {form.parts[0]: {(0, 0, 0, 0, 0): True}}}, "."),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.decode(form, **words)
    with pytest.raises(mf.ModelError, match="decoded as a whole"):
        mf.decode(form, variables=["a"])
    with pytest.raises(mf.ModelError, match="loss of a structure"):
        mf.decode(form, loss="nonsense")
    with pytest.raises(mf.ModelError, match="no joint targets"):
        mf.marginals(form, targets=[["a"]])
    with pytest.raises(mf.ModelError, match="evidence names 'a'"):
        mf.probability(form, {"a": {0: True}})
    assert type(form).__name__ in repr(form)
