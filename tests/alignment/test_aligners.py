"""IBM models and the HMM: EM against enumeration, what it promises, what is refused, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.alignment import IBM1, IBM2, HMMAligner, SymmetricAligner
from tests.alignment.enumeration import (
    enumerate_alignments,
    none_probability,
    posteriors,
    probability_of,
    random_pairs,
)

MODELS = [
    IBM1(2),
    IBM1(3, null_probability="uniform", smoothing=0.0),
    IBM1(2, null_probability=0.0, smoothing=0.1),
    IBM2(2),
    IBM2(2, positions="table", first_iterations=1, smoothing=0.0),
    IBM2(3, positions="table", null_probability="uniform"),
    IBM2(2, first_iterations=0, null_probability=0.3),
    HMMAligner(2),
    HMMAligner(3, max_jump=1, first_iterations=0, smoothing=0.0),
    HMMAligner(2, null_probability="uniform", max_jump=2),
    HMMAligner(2, null_probability=0.0),
]
IDS = [f"{type(m).__name__}-{k}" for k, m in enumerate(MODELS)]


@pytest.mark.parametrize("model", MODELS, ids=IDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_answers_are_those_of_enumeration(model: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, 12)
    fitted = clone(model).fit(pairs)
    asked = random_pairs(rng, 4, longest=4) if model.smoothing else pairs[:5]
    marginals, likelihoods, links = (
        fitted.predict_marginals(asked),
        fitted.log_likelihood(asked),
        fitted.predict(asked),
    )
    for k, (source, target) in enumerate(asked):
        n, m = len(source), len(target)
        joint = enumerate_alignments(fitted, source, target)
        assert likelihoods[k] == pytest.approx(np.log(sum(joint.values())), abs=1e-9)
        np.testing.assert_allclose(marginals[k], posteriors(joint, n, m)[:n], atol=1e-9)
        chosen = [-1] * m
        for i, j in links[k]:
            assert chosen[j] == -1
            chosen[j] = i
        # Several alignments may be as likely as the best one.
        assert joint[tuple(chosen)] == pytest.approx(max(joint.values()), rel=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_an_iteration_is_the_m_step_of_enumerated_counts(model: Any) -> None:
    pairs = random_pairs(np.random.default_rng(5), 10)
    before = clone(model).set_params(iterations=1).fit(pairs)
    after = clone(model).set_params(iterations=2).fit(pairs)
    counts: dict[tuple[str | None, str], float] = {}
    for source, target in pairs:
        own = posteriors(enumerate_alignments(before, source, target), len(source), len(target))
        for j, f in enumerate(target):
            for i, e in enumerate([*source, None]):
                counts[e, f] = counts.get((e, f), 0.0) + own[i, j]
    n = len({f for _, target in pairs for f in target}) + 1
    for e in {e for e, _ in counts}:
        total = sum(c for (own, _), c in counts.items() if own == e) + n * model.smoothing
        for f in {f for own, f in counts if own == e}:
            table, nulls = probability_of(after, [e or "e0"], [f])
            found = nulls[0] if e is None else table[0, 0]
            if total > 0:
                assert found == pytest.approx((counts[e, f] + model.smoothing) / total, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
@pytest.mark.parametrize("seed", [0, 3])
def test_em_never_lowers_the_objective(model: Any, seed: int) -> None:
    pairs = random_pairs(np.random.default_rng(seed), 40, longest=7, words=12)
    fitted = clone(model).set_params(iterations=25).fit(pairs)
    history = np.array(fitted.report_.history)
    assert len(history) == 26 and fitted.report_.converged
    assert (np.diff(history) >= -1e-9 * abs(history[0])).all()
    assert history[-1] > history[0]
    assert fitted.report_.log_likelihood == pytest.approx(fitted.log_likelihood(pairs).sum())
    assert history[-1] == pytest.approx(fitted.report_.log_likelihood + fitted.table_.log_prior(model.smoothing))


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_tables_are_distributions(model: Any) -> None:
    fitted = clone(model).fit(random_pairs(np.random.default_rng(2), 30, longest=5))
    table = fitted.table_
    rows = np.add.reduceat(table.values, table.row_starts[:-1])
    unseen = len(table.target) + 1 - np.diff(table.row_starts)
    np.testing.assert_allclose(rows + unseen * table.rest[:-1], 1.0)
    if none_probability(fitted, 1) > 0 or model.smoothing:
        np.testing.assert_allclose(table.null_values.sum(), 1.0)


def test_the_tension_is_where_distances_are_as_expected() -> None:
    pairs = random_pairs(np.random.default_rng(0), 60, longest=6, words=8)
    fitted = IBM2(30, smoothing=0.01).fit(pairs)

    def objective(tension: float) -> float:
        own = fitted.positions_
        fitted.positions_ = type(own)(tension, own.lengths, own.table)
        try:
            return float(fitted.log_likelihood(pairs).sum())
        finally:
            fitted.positions_ = own

    # At a fixed point of EM the likelihood is stationary in the tension.
    best = fitted.positions_.tension
    slope = (objective(best + 1e-4) - objective(best - 1e-4)) / 2e-4
    assert abs(slope) < 0.02 * len(pairs)


def test_jumps_of_a_monotone_corpus_go_one_ahead() -> None:
    rng = np.random.default_rng(0)
    pairs = [([f"e{k}" for k in words], [f"f{k}" for k in words]) for words in rng.integers(0, 30, (80, 6))]
    jumps = HMMAligner(10, max_jump=4).fit(pairs).positions_.jumps
    assert np.argmax(jumps) == 5 and jumps[5] > 0.9


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("markovfield.alignment.aligner.SMALL", 50.0)
    pairs = random_pairs(np.random.default_rng(0), 60, longest=6)
    for model in (IBM1(3), HMMAligner(2)):
        one, two = (clone(model).set_params(n_jobs=n).fit(pairs) for n in (1, 3))
        np.testing.assert_array_equal(one.table_.values, two.table_.values)


def test_words_never_seen() -> None:
    pairs = random_pairs(np.random.default_rng(0), 20)
    new = [(["e0", "new"], ["f0", "neu"])]
    for model in MODELS:
        fitted = clone(model).fit(pairs)
        p = fitted.predict_marginals(new)[0]
        assert np.isfinite(p).all() and (p.sum(axis=0) <= 1 + 1e-12).all()
        assert len(fitted.predict(new)[0]) <= 2
        # Without smoothing a known word has no probability left for a new one.
        assert np.isfinite(fitted.log_likelihood([(["e0"], ["neu"])])[0]) == bool(model.smoothing)
        assert np.isfinite(fitted.predict_marginals([(["e0"], ["neu"])])[0]).all()


@pytest.mark.parametrize("model", [*MODELS, SymmetricAligner(IBM2(2)), SymmetricAligner(symmetrisation="union")])
def test_saved_models_answer_alike(model: Any, tmp_path: Path) -> None:
    pairs = random_pairs(np.random.default_rng(4), 15)
    fitted = clone(model).fit(pairs)
    fitted.save(tmp_path / "model.mfz")
    for back in (mf.load(tmp_path / "model.mfz"), type(fitted).load(tmp_path / "model.mfz")):
        assert type(back) is type(fitted) and back.predict(pairs) == fitted.predict(pairs)
        for one, other in zip(back.predict_marginals(pairs), fitted.predict_marginals(pairs), strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_class_is_not_loaded(tmp_path: Path) -> None:
    IBM1(1).fit([(["a"], ["b"])]).save(tmp_path / "x.mfz")
    with pytest.raises(mf.FormatError, match="holds a 'IBM1', not a HMMAligner"):
        HMMAligner.load(tmp_path / "x.mfz")
    with pytest.raises(mf.FormatError, match="holds a 'IBM1', not a SymmetricAligner"):
        SymmetricAligner.load(tmp_path / "x.mfz")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("columns", np.array([0, 99], np.int32), "does not fit together"),
        ("columns", np.array([0, -1], np.int32), "does not fit together"),
        ("row_starts", np.array([0, 3, 2]), "does not fit together"),
        ("values", np.array([0.5, np.nan]), "does not fit together"),
        ("rest", np.zeros(1), "does not fit together"),
        ("source_offsets", np.array([0, 7]), "packed texts"),
        ("null_values", None, "a table of translations is not complete"),
        ("jumps", np.zeros(21), "weights of jumps must be positive"),
        ("starts", None, "it has no jumps"),
    ],
)
def test_damaged_vectors_are_refused(name: str, values: Any, message: str) -> None:
    about, arrays = HMMAligner(1).fit([(["a"], ["x"]), (["b"], ["y"])]).described()
    arrays = {**arrays, name: values} if values is not None else {k: v for k, v in arrays.items() if k != name}
    with pytest.raises(mf.FormatError, match=message):
        HMMAligner.from_archive(about, arrays)


def test_damaged_settings_are_refused() -> None:
    about, arrays = IBM2(1, positions="table").fit([(["a"], ["x"])]).described()
    for settings in ({"iterations": 0}, {"nothing": 1}, None):
        with pytest.raises(mf.FormatError, match="settings"):
            IBM2.from_archive({**about, "settings": settings}, arrays)
    with pytest.raises(mf.FormatError, match="its positions do not fit its lengths"):
        IBM2.from_archive(about, {**arrays, "position_table": np.ones(5)})
    with pytest.raises(mf.FormatError, match="it has no positions"):
        IBM2.from_archive({**about, "positions": {}}, arrays)


def test_both_directions() -> None:
    pairs = random_pairs(np.random.default_rng(0), 40, longest=5)
    both = SymmetricAligner(HMMAligner(2), symmetrisation="intersection").fit(pairs)
    turned = [(target, source) for source, target in pairs]
    forward = HMMAligner(2).fit(pairs).predict(pairs)
    backward = HMMAligner(2).fit(turned).predict(turned)
    for links, one, other in zip(both.predict(pairs), forward, backward, strict=True):
        assert set(links) == set(one) & {(i, j) for j, i in other}
    for (p, q), mean in zip(both.directed_marginals(pairs), both.predict_marginals(pairs), strict=True):
        np.testing.assert_allclose(mean**2, p * q)
    for links, mean in zip(both.predict(pairs, threshold=0.4), both.predict_marginals(pairs), strict=True):
        assert links == [tuple(at) for at in np.argwhere(mean >= 0.4).tolist()]


def test_a_callback_stops_with_what_there_is() -> None:
    told: list[float | None] = []

    def callback(progress: Any) -> bool:
        told.append(progress.value)
        return len(told) == 3

    fitted = IBM1(10).fit(random_pairs(np.random.default_rng(0), 20), callback=callback)
    assert not fitted.report_.converged and fitted.report_.iterations == 2
    assert fitted.report_.message == "stopped by the callback"
    assert told == list(fitted.report_.history)


def test_a_stop_in_the_first_model_stops_the_next() -> None:
    told: list[Any] = []

    def callback(progress: Any) -> bool:
        told.append(progress)
        return len(told) == 2

    for model in (HMMAligner(10), IBM2(10)):
        told.clear()
        fitted = clone(model).fit(random_pairs(np.random.default_rng(0), 20), callback=callback)
        assert len(told) == 2 and fitted.report_.iterations == 0 and not fitted.report_.converged
        assert fitted.predict([(["e0"], ["f0"])])


BAD = [
    ([], "pairs holds no pairs of sentences"),
    ("ab", "pairs must be pairs .*, got str"),
    ([(["a"], ["b"]), (["a"], [])], "the target sentence of pair 1 has no words"),
    ([([], ["b"])], "the source sentence of pair 0 has no words"),
    ([(["a"], "b")], "the target sentence of pair 0 must be a list of words, got 'b'"),
    ([(["a"], [3])], "the target sentence of pair 0 must be a list of texts, got 3"),
    ([(["a"],)], "pair 0 must be \\(source words, target words\\)"),
]


@pytest.mark.parametrize(("pairs", "message"), BAD)
def test_bad_pairs_are_named(pairs: Any, message: str) -> None:
    for model in (IBM1(), SymmetricAligner(), mf.AlignmentCRF()):
        with pytest.raises(mf.ModelError, match=message):
            model.fit(pairs, [])
    fitted = IBM1(1).fit([(["a"], ["b"])])
    with pytest.raises(mf.ModelError, match=message):
        fitted.predict(pairs)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (IBM1(0), "iterations must be an integer of at least 1, got 0"),
        (IBM1(smoothing=-1), "smoothing must be a number of at least 0, got -1"),
        (IBM1(null_probability=1.0), "null_probability must be below 1, got 1.0"),
        (IBM1(null_probability="some"), "null_probability must be a number or 'uniform', got 'some'"),
        (IBM2(positions="any"), "positions must be 'diagonal' or 'table', got 'any'"),
        (HMMAligner(max_jump=0), "max_jump must be an integer of at least 1, got 0"),
        (HMMAligner(first_iterations=-1), "first_iterations must be an integer of at least 0"),
        (SymmetricAligner("hmm"), "aligner must be one of IBM1, IBM2, HMMAligner, or None, got str"),
        (SymmetricAligner(symmetrisation="both"), "symmetrisation must be one of 'intersection', .* got 'both'"),
    ],
)
def test_bad_settings(model: Any, message: str) -> None:
    with pytest.raises(mf.ModelError, match=message):
        model.fit([(["a"], ["b"])])
