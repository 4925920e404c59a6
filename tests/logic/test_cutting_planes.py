"""Cutting-plane inference: the likeliest world with a proof, from few ground formulas."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.logic.cutting_planes import cutting_plane_inference as planes
from markovfield.methods import CuttingPlaneInference
from tests.data import data_path
from tests.logic import naive
from tests.logic.test_semantics import evidence_text, knowledge_base, random_program

SOLVERS = ("auto", "clause_program", "branch_and_bound", "junction_tree")


def possible_worlds(seed):
    """A random program, and every world that is possible with its score, by an evaluation of its own."""
    rules, known, closed, determined, soft = random_program(seed)
    full = dict(known)
    for atom in naive.atoms(naive.TYPES):
        if atom[0] in closed:
            full.setdefault(atom, False)
    found = [(w, s) for w, s in naive.log_weights(rules, full, determined=determined, soft=soft) if s > -np.inf]
    return knowledge_base(rules, determined), evidence_text(known, soft), closed, found


@pytest.mark.parametrize("block", range(10))
def test_random_programs(block):
    """The world that is found is possible and a best one of all, whoever solves what is grounded."""
    for seed in range(30 * block, 30 * block + 30):
        kb, evidence, closed, found = possible_worlds(seed)
        solver = SOLVERS[seed % len(SOLVERS)] if seed % 30 else "toulbar2"
        method = CuttingPlaneInference(solver=solver)
        lazy = kb.lazy(evidence, closed=closed)
        if not found:
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.decode(lazy, method=method)
            continue
        answer = mf.decode(lazy, method=method)
        best = max(score for _, score in found)
        given = {atom: answer.assignment.get(f"{atom[0]}({','.join(atom[1])})") for atom in naive.atoms(naive.TYPES)}
        same = [s for w, s in found if all(given[atom] in (None, truth) for atom, truth in w.items())]
        assert same and max(same) == pytest.approx(best, abs=1e-5), seed
        assert answer.optimal and answer.gap <= 1e-5, seed
        assert answer.graph.score(answer.states) == pytest.approx(answer.score, abs=1e-9), seed
        # The network of a full grounding scores it alike, but for a constant.
        world = lazy.ground()
        graph = world.compile()
        assert graph.n_factors >= answer.graph.n_factors, seed
        states = [int(answer.assignment[name]) for name in world.atoms if not name.startswith("_")]
        if len(states) == graph.n_variables:
            assert graph.score(states) == pytest.approx(mf.decode(graph).score, abs=1e-5), seed


TRANSITIVE = """
*Link(thing, thing)
Same(thing, thing)
1.3 Link(x, y) => Same(x, y)
-0.4 Same(x, y)
Same(x, y) ^ Same(y, z) => Same(x, z).
Same(x, y) => Same(y, x).
Same(x, x).
"""


def links(n, seed):
    rng = np.random.default_rng(seed)
    pairs = {(int(a), int(b)) for a, b in rng.integers(n, size=(n, 2)) if a != b}
    return "\n".join(f"Link({a}, {b})" for a, b in pairs) + f"\nthing = {{{', '.join(map(str, range(n)))}}}\n"


def test_few_formulas_are_grounded():
    """Entity resolution: of n^3 hard formulas hardly any are ever violated; the score is that of a full grounding."""
    kb, evidence = mf.MarkovLogic(TRANSITIVE), links(12, 3)
    answer = mf.decode(kb.lazy(evidence))
    world = kb.ground(evidence)
    graph = world.compile()
    assert answer.optimal and answer.graph.n_factors < graph.n_factors / 3
    states = [answer.assignment[name] for name in world.atoms]
    assert graph.score(np.array(states, int)) == pytest.approx(mf.decode(graph).score)
    # The scores differ by what all open formulas of positive weight earn, at most.
    earned = sum(t.open * max(kb.rules[i].weight, 0.0) for i, t in world.tallies.items() if not kb.rules[i].hard)
    assert graph.score(np.array(states, int)) - earned == pytest.approx(answer.score)


def test_a_world_that_nobody_could_ground():
    """10^9 groundings of one formula: only what the evidence touches is grounded."""
    kb = mf.MarkovLogic(
        "person = {1, ..., 1000}\nKnows(person, person)\nTells(person, person)\nHas(person)\n"
        "2 Knows(x, y) ^ Knows(y, z) ^ Has(x) => Has(z)\n0.5 !Has(x)\n"
    )
    evidence = "Knows(1, 2) Knows(2, 3) Knows(3, 4) Knows(4, 5) Has(1)"
    lazy = kb.lazy(evidence, query=["Has"], closed=["Knows"])
    answer = mf.decode(lazy)
    true = {name for name, truth in answer.assignment.items() if truth}
    assert true == {"Has(3)", "Has(5)"} and answer.optimal
    assert len(answer.assignment) == 999 and answer.graph.n_factors < 10


def test_weights_of_both_signs_and_more_evidence():
    kb = mf.MarkovLogic("t = {A, B, C}\nP(t)\nQ(t)\n-1 P(x)\n3 Q(x) => P(x)\n-0.5 P(x) <=> Q(x)\n0.7 EXIST x Q(x)")
    for evidence in ({}, {"Q(A)": True}, {"Q(A)": True, "P(B)": True}, {"P(A)": False, "Q(A)": 1}):
        lazy, world = kb.lazy(), kb.ground()
        answer, other = mf.decode(lazy, evidence), mf.decode(world, evidence)
        states = {**answer.assignment, **{name: bool(truth) for name, truth in evidence.items()}}
        hidden = [name for name in world.atoms if name not in states]
        best = mf.decode(world, states)
        assert not hidden or len(hidden) == 1
        assert best.score == pytest.approx(other.score)
    assert mf.marginals(kb.lazy(), {"Q(A)": True})["P(A)"] == pytest.approx(
        mf.marginals(kb.ground(), {"Q(A)": 1})["P(A)"]
    )
    assert float(mf.log_partition(kb.lazy())) == pytest.approx(float(mf.log_partition(kb.ground())))
    assert mf.probability(kb.lazy(), {"P(A)": True}) == pytest.approx(mf.probability(kb.ground(), {"P(A)": True}))
    assert len(mf.sample(kb.lazy(), 10, rng=0)) == 10
    assert len(mf.decode(kb.lazy(), n_best=3).n_best) == 3
    assert mf.decode(kb.lazy(), method="junction_tree").method == "junction_tree"


def test_stopped_on_the_way():
    """The best world so far, with a gap that holds."""
    soft = TRANSITIVE.replace("Same(x, y) ^", "3 Same(x, y) ^").replace("Same(x, z).", "Same(x, z)")
    kb, evidence = mf.MarkovLogic(soft.replace("Same(x, x).", "")), links(10, 1)
    best = mf.decode(kb.lazy(evidence)).score
    for steps in (1, 2, 4):
        told = []

        def stop(progress, told=told, steps=steps):
            told.append(progress)
            return len(told) == steps

        answer = mf.decode(kb.lazy(evidence), method=CuttingPlaneInference(solver="clause_program"), callback=stop)
        assert len(told) == steps and not answer.converged
        assert answer.score <= best + 1e-6 <= answer.upper_bound + 2e-6
    contradictory = mf.MarkovLogic("t = {A, B}\nR(t)\nR(A) v R(B).")
    with pytest.raises(mf.StoppedError, match="stopped by the callback"):
        # The first world, in which nothing is true, is impossible.
        mf.decode(contradictory.lazy(), method="cpi", callback=lambda p: True)
    with pytest.raises(TimeoutError, match="no answer within the time limit"):
        mf.decode(contradictory.lazy(), time_limit=1e-9)


def test_worlds_after_the_proof_ran_out_of_time(monkeypatch):
    """Walks on what is grounded, and what they lose is grounded: best worlds of small programs."""
    late = TimeoutError("late")
    monkeypatch.setattr(planes, "solved_program", lambda *_: (None, np.inf, 0.0, late))
    asked = 0
    for seed in range(60):
        kb, evidence, closed, found = possible_worlds(seed)
        if not found:
            continue
        asked += 1
        method = CuttingPlaneInference(solver="clause_program")
        answer = mf.decode(kb.lazy(evidence, closed=closed), method=method, time_limit=600, rng=0)
        best = max(score for _, score in found)
        given = {atom: answer.assignment.get(f"{atom[0]}({','.join(atom[1])})") for atom in naive.atoms(naive.TYPES)}
        same = [s for w, s in found if all(given[atom] in (None, truth) for atom, truth in w.items())]
        assert same and max(same) == pytest.approx(best, abs=1e-9), seed
        assert answer.graph.score(answer.states) == pytest.approx(answer.score, abs=1e-9), seed
        # A world that loses nothing needs no program to prove it.
        assert answer.optimal == answer.converged == (answer.score == 0), seed
    assert asked > 30


def test_what_it_cannot_do_is_said():
    kb = mf.MarkovLogic("t = {A, B}\nu = {C, D}\nP(t)\nS(t, u!)\n1 P(x)")
    for asked in ({"n_best": 2}, {"variables": ["P(A)"]}, {"loss": "hamming"}):
        with pytest.raises(mf.ModelError, match=f"finds one likeliest world and takes no {next(iter(asked))}"):
            mf.decode(kb.lazy(), method="cutting_planes", **asked)
    with pytest.raises(mf.ModelError, match=r"takes a network that is not written down: kb.lazy"):
        mf.decode(kb.ground(), method=CuttingPlaneInference())
    with pytest.raises(mf.ModelError, match="there is no method 'nonsense'"):
        CuttingPlaneInference(solver="nonsense")
    with pytest.raises(mf.ModelError, match=r"probabilities are evidence of kb.lazy"):
        mf.decode(kb.lazy(), {"P(A)": 0.3})
    with pytest.raises(mf.ModelError, match="P is closed"):
        mf.decode(kb.lazy(closed=["P"]), {"P(A)": True})
    with pytest.raises(mf.MemoryLimitError, match=r"more than max_clauses=1|more than the 1 left of max_clauses"):
        mf.decode(mf.MarkovLogic("t = {A, B}\nP(t)\n1 P(x)").lazy(), method=CuttingPlaneInference(max_clauses=1))
    wide = mf.MarkovLogic("t = {1, ..., 20000}\nS(t, t!)\n1 S(x, x)").lazy(query=["S(1, x)"])
    with pytest.raises(mf.MemoryLimitError, match="one of each block of them is true: up to"):
        mf.decode(wide)
    assert "not grounded" in repr(kb.lazy()) and "LazyNetwork" in repr(kb.lazy())


def test_programs_of_tuffy():
    """The same score as decoding of the full ground network, from a part of it."""
    folder = data_path("mln", "tuffy", "smoke")
    lazy = mf.logic.read(folder / "prog.mln").lazy(folder / "evidence.db", query=["Cancer"])
    answer, graph = mf.decode(lazy), lazy.compile()
    states = np.array([int(answer.assignment.get(atom, False)) for atom in lazy.ground().atoms])
    assert answer.optimal and graph.score(states) == pytest.approx(mf.decode(graph).score)
    assert answer.graph.n_factors == 6 and graph.n_factors == 10


def test_a_contradiction_is_found_early():
    """The rules of this program say "refers" where they mean "not refers": no world satisfies them.

    Unit propagation over all 395,330 hard ground clauses finds the same.
    """
    folder = data_path("mln", "tuffy", "rc1000")
    kb = mf.logic.read(folder / "prog.mln")
    with pytest.raises(mf.ImpossibleEvidenceError, match="the hard formulas contradict each other, or the evidence"):
        mf.decode(kb.lazy(folder / "evidence.db", query=["category"]))
