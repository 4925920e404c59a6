"""Ground networks as models: names, what is kept, defaults, limits, hostile names, the seeds' example."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import markovfield as mf
from tests.data import data_path

SMOKERS = """
person = {Anna, Bob}
Friends(person, person)
Smokes(person)
Cancer(person)
1.5 Smokes(x) => Cancer(x)
1.1 Friends(x, y) ^ Smokes(x) => Smokes(y)
"""


def test_the_smokers_of_two_people():
    """Murphy 19.34 to 19.36 and figure 19.12: eight binary nodes, potentials exp(w) where a clause holds."""
    world = mf.MarkovLogic(SMOKERS).ground()
    assert len(world) == 8
    assert set(world) == {
        "Smokes(Anna)", "Smokes(Bob)", "Cancer(Anna)", "Cancer(Bob)", "Friends(Anna,Anna)", "Friends(Anna,Bob)",
        "Friends(Bob,Anna)", "Friends(Bob,Bob)",
    }  # fmt: skip
    total, smoking = 0.0, 0.0
    for s in itertools.product((0, 1), repeat=2):
        for c in itertools.product((0, 1), repeat=2):
            for f in itertools.product((0, 1), repeat=4):
                score = sum(1.5 * (not s[i] or c[i]) for i in range(2))
                score += sum(1.1 * (not (f[2 * i + j] and s[i]) or s[j]) for i in range(2) for j in range(2))
                total += math.exp(score)
                smoking += math.exp(score) * s[0]
    answer = mf.marginals(world)
    assert answer.log_partition + world.log_constant == pytest.approx(math.log(total))
    assert answer["Smokes(Anna)"][1] == pytest.approx(smoking / total)
    assert mf.marginals(world, {"Smokes(Bob)": True, "Friends(Bob, Anna)": True})["Smokes(Anna)"][1] > 0.6


def test_names_and_states():
    world = mf.MarkovLogic(SMOKERS).ground({"Friends(Anna, Bob)": True}, query=["Smokes"])
    assert list(world) == ["Smokes(Anna)", "Smokes(Bob)", "Cancer(Anna)", "Cancer(Bob)"]
    assert "Smokes( Anna )" in world and "Friends(Anna,Bob)" not in world
    assert world.compile().names.state_names(0, 2) == (False, True)
    assert mf.decode(world, {"Smokes(Anna)": True}).assignment["Cancer(Anna)"] is True
    with pytest.raises(mf.ModelError, match=r"there is no variable 'Smokes\(Carl\)' in the model"):
        mf.marginals(world)["Smokes(Carl)"]
    assert "open: Smokes, Cancer; closed (false where the evidence is silent): Friends" in repr(world)
    assert world.to_frame()["groundings"].tolist() == [2.0, 4.0]


def test_which_predicates_are_closed():
    kb = mf.MarkovLogic(SMOKERS)
    evidence = "Friends(Anna, Bob) Smokes(Anna)"
    assert kb.ground(evidence).predicates == {"Friends": False, "Smokes": False, "Cancer": False}
    assert kb.ground(evidence, query=["Cancer"]).predicates == {"Friends": True, "Smokes": True, "Cancer": False}
    assert kb.ground(evidence, query=["Cancer"], closed=["Friends"]).predicates["Smokes"] is False
    declared = mf.MarkovLogic(SMOKERS.replace("Friends(person", "*Friends(person"))
    assert declared.ground(evidence, query=["Cancer"]).predicates["Smokes"] is False
    with pytest.raises(mf.ModelError, match="the query asks for Friends, which is closed"):
        declared.ground(evidence, query=["Friends"])
    with pytest.raises(mf.ModelError, match="closed names 'Nope', which is no predicate of the program"):
        kb.ground(closed=["Nope"])


def test_only_what_the_query_depends_on():
    kb = mf.MarkovLogic("t = {A, B, C}\nP(t)\nQ(t)\nR(t)\n1 P(x) => Q(x)\n2 R(x)")
    assert set(kb.ground(query=["Q(A)"])) == {"P(A)", "Q(A)"}
    assert set(kb.ground(query="Q(x)")) == {f"{p}({c})" for p in "PQ" for c in "ABC"}
    assert kb.ground().n_components == 6
    for query, message in [
        ("Nope", "the query 'Nope' names no predicate of the program: P, Q, R"),
        ("Q(Nope)", "the query 'Q.Nope.' names the constant 'Nope', which there is not among type t"),
        ("Q(x, y)", "the query 'Q.x, y.' has 2 arguments"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            kb.ground(query=query)


def test_the_same_clause_counts_as_often_as_it_is_grounded():
    kb = mf.MarkovLogic("t = {A, B, C}\nP(t)\n1 !P(x) v !P(y) v x = y")
    world = kb.ground()
    assert world.compile().n_factors == 3  # of six groundings, in pairs
    assert world.tallies[0].open == 6 and world.tallies[0].satisfied == 3
    pairs = kb.ground(split=True)
    assert mf.log_partition(world).log_partition == pytest.approx(mf.log_partition(pairs).log_partition)


def test_split_formulas_divide_their_weight():
    kb = mf.MarkovLogic("t = {A}\nP(t)\nQ(t)\n2 P(x) <=> Q(x)")
    whole, split = (mf.log_partition(kb.ground(split=split)) for split in (False, True))
    assert whole.log_partition == pytest.approx(math.log(2 * math.exp(2) + 2))
    assert split.log_partition == pytest.approx(math.log(2 * math.exp(2) + 2 * math.exp(1)))


def test_functions_are_given_by_the_evidence():
    kb = mf.MarkovLogic("p = {A, B}\np mother(p)\nRich(p)\n2 Rich(mother(x)) => Rich(x)")
    world = kb.ground("mother(A) = B\nmother(B) = B\nRich(B)\n", query=["Rich"])
    assert mf.marginals(world)["Rich(A)"][1] == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    again = kb.with_weights([0.0])
    assert again.rules[0].weight == 0.0 and kb.rules[0].weight == 2.0


def test_other_weights_need_no_new_grounding():
    kb = mf.MarkovLogic(SMOKERS)
    world = kb.ground()
    other = world.with_weights([0.3, 0.2])
    direct = kb.with_weights([0.3, 0.2]).ground()
    assert mf.log_partition(other).log_partition == pytest.approx(mf.log_partition(direct).log_partition)
    assert other.assembled is world.assembled
    assert other.log_constant == pytest.approx(direct.log_constant)
    partly = kb.with_weights([0.0, 0.2]).ground()
    with pytest.raises(mf.ModelError, match=r"Smokes\(x\) => Cancer\(x\) had weight zero and was not grounded"):
        partly.with_weights([0.3, 0.2])
    with pytest.raises(mf.ModelError, match="weights must be 2 finite numbers"):
        world.with_weights([1.0])


def test_limits_and_contradictions():
    kb = mf.MarkovLogic("t = {1, ..., 60}\nP(t, t)\n1 P(x, y) v P(y, z)")
    with pytest.raises(mf.MemoryLimitError, match=r"has \d+ ground clauses, more than the 1000 left of max_clauses"):
        kb.ground(max_clauses=1000)
    huge = mf.MarkovLogic("t = {1, ..., 10000}\nP(t, t, t, t, t)\n1 P(x, y, z, u, w)")
    with pytest.raises(mf.ModelError, match=r"predicate P has 10000 x 10000 x .* more than can be numbered"):
        huge.ground()
    hard = mf.MarkovLogic("t = {A, B}\nP(t)\nQ(t)\nP(x) => Q(x).")
    with pytest.raises(
        mf.ImpossibleEvidenceError, match=r"the evidence violates the hard formula P\(x\) => Q\(x\) .*:4:1.* for x = B"
    ):
        hard.ground("P(B) !Q(B)")
    one = mf.MarkovLogic("t = {A}\nu = {C, D}\nS(t, u!)\n1 S(x, y)")
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"S\(A, [CD]\) is true, and so is another atom"):
        one.ground("S(A, C)\nS(A, D)\n")


HOSTILE = ["Robert'); DROP TABLE k0;--", 'quo"te', "a,b", "(x)", "back\\slash", "sp ace", "ünï", "%s {0}"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_constants_are_names_like_others(name):
    kb = mf.MarkovLogic("Smokes(person)\n2 Smokes(x)")
    quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    world = kb.ground(f"!Smokes({quoted})\nSmokes(Anna)\nperson = {{Bob}}\n", query=None)
    assert list(world) == ["Smokes(Bob)"]
    open_world = kb.ground(f"person = {{{quoted}}}\n") if "}" not in name else world
    if "}" not in name:
        assert mf.marginals(open_world)[f"Smokes({quoted})"][1] == pytest.approx(1 / (1 + math.exp(-2)))


def test_a_chain_written_as_formulas():
    """A Markov chain in the language is the network with its tables (19.4.5: a template of networks)."""
    steps = "\n".join(f"Next({i}, {i + 1})" for i in range(4)) + "\nt = {0, 1, 2, 3, 4}\n"
    kb = mf.MarkovLogic("*Next(t, t)\nOn(t)\n0.9 Next(x, y) => (On(x) <=> On(y))\n0.3 On(x)")
    world = kb.ground(steps)
    net = mf.MarkovNetwork(dict.fromkeys(range(5), 2))
    for i in range(5):
        net.add_factor([i], log_table=[0.0, 0.3])
        if i:
            net.add_factor([i - 1, i], log_table=[[0.9, 0.0], [0.0, 0.9]])
    one, other = mf.marginals(world), mf.marginals(net)
    assert one.log_partition == pytest.approx(other.log_partition)
    np.testing.assert_allclose(one["On(2)"], other[2])


def test_files_of_tuffy_are_grounded():
    folder = data_path("mln", "tuffy", "smoke")
    world = mf.logic.read(folder / "prog.mln").ground(folder / "evidence.db", query=["Cancer"])
    answer = mf.marginals(world)
    assert answer.guarantee == "exact"
    assert answer["Cancer(Anna)"][1] == pytest.approx(1 / (1 + math.exp(-0.5)))  # she is known to smoke
    assert answer["Cancer(Edward)"][1] == pytest.approx(1 / (1 + math.exp(-0.5)))
    assert 0.5 < answer["Cancer(Frank)"][1] < answer["Cancer(Anna)"][1]


def test_a_large_database_is_grounded_in_arrays():
    folder = data_path("mln", "tuffy", "class")
    kb = mf.logic.read(folder / "prog.mln")
    world = kb.ground(folder / "evidence.db.gz", query=["category"])
    tally = world.tallies[3]  # sameCat(a2,a3) v !category(a1,a3) v !category(a1,a2)
    assert tally.factors * 2 == tally.open  # symmetric pairs are one clause that counts twice
    assert sum(t.total for t in world.tallies.values()) > 4e12
    assert len(world) == 9650


def test_names_are_a_sequence_of_what_was_asked_for():
    world = mf.MarkovLogic(SMOKERS).ground({"Friends(Anna, Bob)": True}, query=["Cancer(Anna)", "Smokes"])
    assert world.atoms.index("Smokes(Bob)") == list(world).index("Smokes(Bob)")
    shown = [name for name, asked in zip(world.atoms, world.asked, strict=True) if asked]
    assert shown == ["Smokes(Anna)", "Smokes(Bob)", "Cancer(Anna)"]
    assert mf.MarkovLogic(SMOKERS).ground().asked.all()
    hidden = mf.MarkovLogic("t = {A, B}\nP(t)\nQ(t)\n1 P(x) <=> (EXIST y (P(y) ^ Q(y)))").ground()
    assert {name for name, asked in zip(hidden.atoms, hidden.asked, strict=True) if not asked} == {
        name for name in hidden if name.startswith("_")
    }
