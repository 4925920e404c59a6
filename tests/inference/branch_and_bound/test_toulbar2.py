"""Handing over to toulbar2: the best assignment, what was rounded, and stops on the way."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2
from markovfield.io.wcsp import read_wcsp
from tests.data import data_path
from tests.inference.branch_and_bound.test_branch_and_bound import grid
from tests.strategies import specs_with_evidence


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytoulbar2", None)
    with pytest.raises(ImportError, match=r'pip install "markovfield\[exact\]", or use branch_and_bound'):
        mf.decode(grid(2, 2, 0), method=Toulbar2())


class TestSolver:
    """Each decoding starts a process, so examples are few."""

    @pytest.fixture(autouse=True)
    def installed(self):
        pytest.importorskip("pytoulbar2")

    @pytest.mark.parametrize("kind", ["graph", "bayesian"])
    @settings(max_examples=6)
    @given(data=st.data())
    def test_the_best_assignment_is_found_and_proven(self, kind: str, data: st.DataObject):
        spec, evidence = data.draw(specs_with_evidence(kind))
        oracle = spec.oracle(evidence)
        try:
            answer = mf.decode(spec.build(), evidence=spec.named(evidence), method=Toulbar2())
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        assert answer.optimal and 0.0 <= answer.tolerance < 1e-8
        score = float(oracle.score(spec.states(answer.assignment)))
        assert answer.score == pytest.approx(score, abs=1e-9)
        assert score == pytest.approx(float(oracle.best_score), abs=answer.tolerance + 1e-9)

    def test_a_large_model_and_what_was_rounded(self):
        net = grid(7, 4, 3, hard=0.1)
        best = mf.decode(net, method="junction_tree").score
        for tolerance in (1e-6, 1e-3):
            answer = mf.decode(net, method=Toulbar2(tolerance=tolerance))
            assert answer.optimal and answer.tolerance <= tolerance
            assert best - tolerance <= answer.score <= best + 1e-9 <= answer.upper_bound + 2e-9

    def test_a_known_optimum(self):
        path = data_path("wcsp", "validation", "celar6sub0.wcsp.gz")
        answer = mf.decode(read_wcsp(path), method=Toulbar2())
        assert answer.score == -159.0 and answer.optimal and answer.gap == 0.0

    def test_time_limit_and_callback_return_the_best_so_far(self):
        net = grid(16, 8, 2)
        answer = mf.decode(net, method=Toulbar2(), time_limit=6)
        assert 0 < answer.gap < np.inf and not answer.converged
        assert answer.score == pytest.approx(float(net.compile().score(answer.assignment)))

        def interrupt(progress: Any) -> bool:
            if progress.seconds > 0.3:
                raise KeyboardInterrupt
            return False

        stopped = mf.decode(net, method=Toulbar2(), callback=interrupt)
        assert not stopped.converged and stopped.gap > 0 and not stopped.optimal
        assert stopped.score <= answer.upper_bound + 1e-9

    def test_nothing_to_hand_over(self):
        net = mf.MarkovNetwork({"a": 2, "b": 3})
        net.add_factor([], log_table=1.5)
        answer = mf.decode(net, {"a": 1}, method=Toulbar2())
        assert answer.score == 1.5 and answer.optimal and answer["a"] == 1

    def test_what_it_does_not_do_is_said(self):
        net = grid(2, 2, 0)
        with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
            mf.decode(net, n_best=2, method=Toulbar2())
        with pytest.raises(mf.ModelError, match="decodes all 4 variables, not 1 of them"):
            mf.decode(net, variables=["0,0"], method=Toulbar2())
        wide = mf.MarkovNetwork(dict.fromkeys("abc", 8))
        wide.add_factor(["a", "b", "c"], log_table=np.zeros((8, 8, 8)))
        with pytest.raises(mf.ModelError, match="has 512 cells, and toulbar2 is handed at most 100"):
            mf.decode(wide, method=Toulbar2(max_factor_cells=100))

    def test_a_known_score_is_a_bound_that_loses_nothing(self):
        from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2Process
        from markovfield.inference.core.evidence import Evidence
        from markovfield.inference.core.running import Running
        from markovfield.inference.problem.problem import prepare

        for net in (grid(5, 3, 3, hard=0.1), grid(4, 4, 1)):
            graph = net.compile()
            best = mf.decode(graph, method="junction_tree").score
            problem = prepare(graph, Evidence.parse(graph.structure, None))
            tops = []
            for score in (-np.inf, best - 1.0, best):
                with Toulbar2Process(Toulbar2(), problem, score) as work:
                    tops.append(work.top)
                    answer = work.answer(work.wait(Running()), Running())
                assert answer.optimal and answer.score == pytest.approx(best)
            assert tops[0] > tops[1] > tops[2], "the better the score, the less is looked at"

    def test_its_end_is_a_proof(self):
        """The bound that toulbar2 states after a search that preprocessing ended is an old one."""
        path = data_path("uai2014", "MAP", "Promedas_46.uai.gz")
        evidence = mf.io.read_uai_evidence(path.with_name("Promedas_46.uai.evid"))
        assert mf.decode(mf.io.read_uai(path), evidence or None, method=Toulbar2()).optimal
