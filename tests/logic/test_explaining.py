"""What grounding would leave, counted before anything is written down."""

from __future__ import annotations

import time

import pytest

import markovfield as mf
from tests.logic.test_semantics import evidence_text, knowledge_base, random_program

SMOKERS = """
person = {Anna, Bob, Carl}
Friends(person, person)
Smokes(person)
Cancer(person)
1.5 Smokes(x) => Cancer(x)
1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
"""


def test_a_ground_network_says_what_it_was_made_of():
    world = mf.MarkovLogic(SMOKERS).ground("Friends(Anna, Bob) Smokes(Anna)", query=["Smokes", "Cancer"])
    told = mf.explain(world, "marginals")
    assert told.method == "enumeration" and told.guarantee == "exact"
    assert told.sizes.n_ground_atoms == 15 and told.sizes.n_open_atoms == 5
    assert told.sizes.n_groundings == 12 and told.sizes.n_ground_formulas == told.n_factors == 4
    assert told.n_components == world.n_components and told.sizes.n_bytes == world.n_bytes
    text = repr(told)
    assert "atoms       5 open of 15" in text and "formulas    4 open of 12" in text and "width" in text
    assert told.to_dict()["sizes"]["n_open_atoms"] == 5


def test_it_is_counted_as_it_is_grounded():
    """No fewer than are left, and no more than the groundings: those that come to nothing are not looked at."""
    for seed in range(60):
        rules, known, closed, determined, soft = random_program(seed)
        lazy = knowledge_base(rules, determined).lazy(evidence_text(known, soft), closed=closed)
        try:
            world = lazy.ground()
        except mf.ImpossibleEvidenceError:
            continue
        found = lazy.sizes()
        # Factors of soft evidence and of determined arguments are no ground formulas.
        assert sum(t.factors for t in world.tallies.values()) <= found.n_ground_formulas
        assert found.n_groundings == sum(t.total for t in world.tallies.values())
        shown = [name for name in world.atoms if not name.startswith("_")]
        assert len(shown) <= found.n_open_atoms <= found.n_ground_atoms == 12


def test_what_is_too_large_is_refused_before_it_is_written_down():
    people = ", ".join(f"P{i}" for i in range(2000))
    kb = mf.MarkovLogic(f"p = {{{people}}}\nF(p, p)\nS(p)\n1 F(x, y) => (S(x) <=> S(y))\n-1 S(x)")
    lazy = kb.lazy(max_clauses=1_000_000)
    told = mf.explain(lazy, "marginals")
    assert told.method == "none" and not told.fits and told.width == -1
    assert "refused: 4,002,000 ground formulas are more than max_clauses=1,000,000" in told.reason
    assert "formulas    4,002,000 open of 4,002,000" in repr(told)
    with pytest.raises(mf.MemoryLimitError, match="more than the"):
        mf.marginals(lazy)
    decoding = mf.explain(lazy, "decode")
    assert decoding.method == "cutting_plane_inference" and decoding.guarantee == "exact"
    small = mf.explain(mf.MarkovLogic(SMOKERS).lazy("Friends(Anna, Bob)", query=["Smokes"]), "log_partition")
    assert small.method == "enumeration" and small.n_components >= 1
    given = mf.explain(mf.MarkovLogic(SMOKERS).lazy(), "marginals", {"Smokes(Anna)": True})
    assert given.sizes.n_open_atoms == 14


def test_huge_domains_are_refused_at_once():
    """By arithmetic, not by trying: processor time does not grow with them."""
    kb = mf.MarkovLogic("t = {1, ..., 100000}\nP(t, t, t)\n1 P(x, y, z) v P(z, y, x)")
    started = time.process_time()
    for asked in (lambda: kb.ground(query=["P(1, 2, x)"]), lambda: mf.decode(kb.lazy(query=["P(1, 2, x)"]))):
        with pytest.raises(
            mf.MemoryLimitError, match=r"has 1e\+15 combinations of constants for x, y, z, which no known"
        ):
            asked()
    with pytest.raises(mf.ModelError, match=r"ground atoms: name some of their constants"):
        mf.MarkovLogic("t = {1, ..., 100000}\nP(t, t)\nQ(t)\n1 Q(x)").ground()
    with pytest.raises(mf.ModelError, match=r"P has 100000 x 100000 x 100000 x 100000 ground atoms"):
        mf.MarkovLogic("t = {1, ..., 100000}\nP(t, t, t, t)\n1 P(x, y, z, u)").ground()
    assert time.process_time() - started < 60 and len(kb) == 1
