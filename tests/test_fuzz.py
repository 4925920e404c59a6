"""Two thousand fixed models of the oracle suite (`tests/fuzz`), and that each of its claims can fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.fuzz import claims
from tests.fuzz.distributions import check_aggregate
from tests.fuzz.kinds import case_of, joint_states, strip
from tests.fuzz.models import Case
from tests.fuzz.options import Places, Question, questions_of
from tests.fuzz.running import findings_of
from tests.strategies import Spec, Table

MODELS, CHUNKS = 2_000, 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_answer_breaks_its_word(chunk: int):
    """A failure prints the smallest model that shows it, as code."""
    each = MODELS // CHUNKS
    found = {}
    for seed in range(chunk * each, (chunk + 1) * each):
        for finding in findings_of(seed, known=found, seconds=2.0):
            found.setdefault(finding.key, finding)
    assert not found, "\n\n".join(f"{f.key} (seed {f.seed})\n{f.code}" for f in found.values())


def test_a_seed_is_a_model():
    for seed in (3, 17):
        one, two = case_of(seed), case_of(seed)
        assert one.labels == two.labels and one.kind == two.kind
        np.testing.assert_array_equal(one.oracle.scores, two.oracle.scores)
        assert [repr(q) for q in questions_of(seed, one)] == [repr(q) for q in questions_of(seed, two)]


def test_the_oracle_of_strips_is_the_oracle():
    """Small strips, where both can be asked."""
    compared = 0
    for seed in range(120):
        case = strip(np.random.default_rng(seed))
        if case.n_variables > 10 or joint_states(case.parts[0]) > 20_000:
            continue
        compared += 1
        narrow, full = case.oracle, dataclasses.replace(case, columns=()).oracle
        assert narrow.impossible == full.impossible and narrow.count == full.count
        if full.impossible:
            continue
        room = 1e-12 * (1 + case.magnitude)
        assert narrow.log_partition == pytest.approx(full.log_partition, abs=room)
        assert narrow.best_score == full.best_score
        for v in range(case.n_variables):
            np.testing.assert_allclose(narrow.marginal(v), full.marginal(v), atol=room)
            np.testing.assert_allclose(narrow.max_marginal(v), full.max_marginal(v), atol=room)
        for f in range(len(full.factors)):
            np.testing.assert_allclose(narrow.counts(f), full.counts(f), atol=room)
        row = full.states[int(full.probabilities.argmax())]
        assert narrow.score(row) == pytest.approx(full.score(row), abs=room)
    assert compared > 5


def triangle() -> Case:
    """Three variables in a circle that cannot all have their way, in integers."""
    tables = [
        np.array([[0.0, 2.0], [1.0, 0.0]]),
        np.array([[0.0, 1.0], [3.0, 0.0]]),
        np.array([[0.0, 1.0], [2.0, 0.0]]),
    ]
    operations = [Table((pair,), table) for pair, table in zip([(0, 1), (1, 2), (2, 0)], tables, strict=True)]
    return Case((Spec((2, 2, 2), tuple(operations), ("a", "b", "c")),), {})


def doctored(case: Case, question: Question, **changes: Any) -> set[str]:
    """The claims that an answer breaks after some of its fields were changed."""
    answer = claims.ask(case.build(), case, question)
    answer = dataclasses.replace(answer, **changes)
    return {b.claim for b in claims.checked(case, question, answer)}


class TestClaimsCanFail:
    case = triangle()

    def test_nothing_is_broken_by_a_right_answer(self):
        for verb in ("marginals", "log_partition", "decode"):
            assert not claims.broken_by(self.case, Question(verb, "junction_tree"))

    def test_log_partition(self):
        truth = self.case.oracle.log_partition
        asked = Question("log_partition", "junction_tree")
        assert "log Z is exact" in doctored(self.case, asked, log_partition=truth + 1e-6)
        assert "an exact method is exact" in doctored(self.case, asked, guarantee="approximate")
        asked = Question("log_partition", "tree_reweighted")
        assert "log Z is an upper bound" in doctored(self.case, asked, log_partition=truth - 1e-6)
        assert "the upper bound holds" in doctored(self.case, asked, bounds=(-np.inf, truth - 1e-6))
        assert "the lower bound holds" in doctored(self.case, asked, bounds=(truth + 1e-6, np.inf))

    def test_marginals(self):
        asked = Question("marginals", "junction_tree")
        right = claims.ask(self.case.build(), self.case, asked).values
        wrong = right.copy()
        wrong[:2] = [0.5, 0.5]
        assert "marginals are exact" in doctored(self.case, asked, values=wrong)
        assert "marginals are distributions" in doctored(self.case, asked, values=2 * right)
        open_to_all = claims.ask(self.case.build(), self.case, asked)
        object.__setattr__(open_to_all, "values", right.copy())  # an answer that is made seals its arrays
        assert "an answer cannot be written" in {b.claim for b in claims.checked(self.case, asked, open_to_all)}

    def test_decodings(self):
        asked = Question("decode", "branch_and_bound")
        oracle = self.case.oracle
        worse = oracle.states[np.argsort(oracle.scores)[-2]].astype(np.int32)
        score = float(oracle.score(worse))
        solution = mf.decode(self.case.build()).n_best[0]
        second = dataclasses.replace(solution, states=worse, score=score)
        changes = {"states": worse, "n_best": (second,)}
        broken = doctored(self.case, asked, score=score, gap=0.0, **changes)
        assert {"optimal is the best", "the upper bound holds"} <= broken
        assert "the score is that of the assignment" in doctored(self.case, asked, score=score + 1, **changes)
        assert "the tolerance is rounding of the spread" in doctored(self.case, asked, tolerance=0.1)
        assert "an exact method proves its answer" in doctored(self.case, asked, gap=1.0)

    def test_n_best_and_marginal_map(self):
        asked = Question("decode", "junction_tree", {}, {"n_best": 3})
        answer = claims.ask(self.case.build(), self.case, asked)
        twice = (answer.n_best[0], answer.n_best[0], answer.n_best[2])
        assert {"the n best are distinct", "the n best are the best"} <= doctored(self.case, asked, n_best=twice)
        asked = Question("decode", "junction_tree", {}, {"variables": Places((1,))})
        answer = claims.ask(self.case.build(), self.case, asked)
        assert "the score is that of the assignment" in doctored(self.case, asked, score=answer.score + 1e-3)
        assert not doctored(self.case, asked)

    def test_samples(self):
        asked = Question("sample", "enumeration", {}, {"size": 400, "rng": 0})
        assert not doctored(self.case, asked)
        same = np.zeros((400, 3), np.int32)
        assert "exact samples have the right frequencies" in doctored(self.case, asked, states=same)

    def test_estimates(self):
        asked = Question("marginals", "gibbs", {"sweeps": 1000}, {"rng": 0})
        assert not doctored(self.case, asked)
        right = claims.ask(self.case.build(), self.case, asked).values
        wrong = np.where(np.arange(len(right)) % 2, 0.1, 0.9)
        wrong.flags.writeable = False
        assert "converged means near" in doctored(self.case, asked, values=wrong)

    def test_counts(self):
        asked = Question("aggregate", "junction_tree", {}, {"semiring": "counting"})
        assert not list(check_aggregate(self.case, asked, 8))
        assert list(check_aggregate(self.case, asked, 6))

    def test_impossible_evidence(self):
        spec = Spec((2, 2), (Table(((0, 1),), np.full((2, 2), -np.inf)),), ("a", "b"))
        case = Case((spec,), {})
        assert not claims.broken_by(case, Question("marginals", "junction_tree"))
        answer = mf.marginals(mf.MarkovNetwork({"a": 2, "b": 2}))
        asked = Question("marginals", "junction_tree")
        assert [b.claim for b in claims.checked(case, asked, answer)] == ["impossible evidence is an error"]

    def test_a_crash_is_a_finding(self, monkeypatch: pytest.MonkeyPatch):
        from markovfield.inference.junction_tree.junction_tree import JunctionTree

        def crash(*args: Any, **others: Any) -> None:
            raise IndexError("out of range")

        monkeypatch.setattr(JunctionTree, "log_partition", crash)
        found = claims.broken_by(self.case, Question("log_partition", "junction_tree"))
        assert [b.claim for b in found] == ["crash: IndexError"]
