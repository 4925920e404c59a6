"""A Markov logic program behind its page: ground network, probabilities, pushes."""

import json
import math

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import FormatError, ModelError
from markovfield.explorer.works.logic import LogicWork

pytest.importorskip("duckdb")
pytest.importorskip("lark")

PROGRAM = """
    person = {Anna, Bob, Carl}
    Friends(person, person)
    Smokes(person)
    Cancer(person)
    1.5  Smokes(x) => Cancer(x)
    1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))
"""
EVIDENCE = "Friends(Anna, Bob) Friends(Bob, Carl)"


@pytest.fixture
def work():
    made = LogicWork(mf.MarkovLogic(PROGRAM))
    made.ground(EVIDENCE, "Smokes Cancer")
    return made


def test_ground_network(work):
    told = work.ground(EVIDENCE, "Smokes(x), Cancer")
    json.dumps(told, allow_nan=False)
    names = [atom["name"] for atom in told["atoms"]]
    assert len(names) == 6 and told["n_formulas"] == 5 and told["closed"] == ["Friends"]
    edges = {tuple(sorted((names[a], names[b]))) for a, b in told["drawing"]["edges"]}
    assert edges == {
        ("Smokes(Anna)", "Smokes(Bob)"),
        ("Smokes(Bob)", "Smokes(Carl)"),
        *((f"Cancer({p})", f"Smokes({p})") for p in ("Anna", "Bob", "Carl")),
    }
    links = {atom["name"]: atom["links"] for atom in told["atoms"]}
    assert links["Smokes(Bob)"] == 3 and links["Cancer(Bob)"] == 1


def test_probabilities_are_the_verbs(work):
    world = mf.MarkovLogic(PROGRAM).ground(EVIDENCE, ["Smokes", "Cancer"])
    for truths in ({}, {"Smokes(Anna)": True}, {"Smokes(Anna)": True, "Cancer(Carl)": False}):
        found = work.ask(truths)
        exact = mf.marginals(world, truths)
        assert found["guarantee"] == "exact"
        assert found["probabilities"] == pytest.approx({v: float(exact[v][1]) for v in world.variables})
        assert found["log_partition"] == pytest.approx(float(exact.log_partition) + world.log_constant)


def test_rules_push_by_what_they_change(work):
    """Without a formula: the program written without it."""
    found = work.push("Smokes(Bob)", {"Smokes(Anna)": True})
    without = PROGRAM.replace("    1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))\n", "")
    world = mf.MarkovLogic(without).ground(EVIDENCE, ["Smokes", "Cancer"])
    p = float(mf.marginals(world)["Smokes(Bob)"][1])
    rule = next(one for one in found["rules"] if "Friends" in one["formula"])
    assert rule["without"] == pytest.approx(math.log(p / (1 - p)))
    assert rule["push"] == pytest.approx(found["log_odds"] - rule["without"])


def test_ground_formulas_push_by_their_mean_difference(work):
    found = work.push("Smokes(Bob)", {"Smokes(Anna)": True})
    shares = work.ask({"Smokes(Anna)": True})["probabilities"]
    pushes = {tuple(sorted(one["atoms"])): one["push"] for one in found["ground"]}
    assert pushes["Smokes(Anna)", "Smokes(Bob)"] == pytest.approx(1.1)
    assert pushes["Smokes(Bob)", "Smokes(Carl)"] == pytest.approx(1.1 * (2 * shares["Smokes(Carl)"] - 1))
    assert pushes["Cancer(Bob)", "Smokes(Bob)"] == pytest.approx(-1.5 * (1 - shares["Cancer(Bob)"]))


def test_hard_formulas_and_repeated_atoms():
    work = LogicWork(mf.MarkovLogic("t = {A, B}\nP(t)\nQ(t)\nP(x) => Q(x).\n0.7 P(x) <=> P(y)\n0.3 P(x)"))
    told = work.ground("", "")
    assert told["n_atoms"] == 4
    found = work.push("P(A)")
    json.dumps(found, allow_nan=False)
    assert any("hard" in one["formula"] for one in found["ground"])
    exact = mf.marginals(mf.MarkovLogic("t = {A, B}\nP(t)\nQ(t)\nP(x) => Q(x).\n0.7 P(x) <=> P(y)\n0.3 P(x)").ground())
    assert found["probability"] == pytest.approx(float(exact["P(A)"][1]))
    assert np.isfinite(found["log_odds"])


def test_hostile_constants_stay_texts():
    work = LogicWork(mf.MarkovLogic("t = {A}\nP(t)\n1.0 P(x)"))
    told = work.ground('P("<img src=x onerror=alert(1)>")', "")
    json.dumps(told, allow_nan=False)
    assert told["n_atoms"] >= 1


def test_what_cannot_be_asked_is_told(work):
    for call, message in [
        (lambda: work.ground(7), "evidence must be a text of at most 200,000"),
        (lambda: work.ground("", None), "a query must be a text"),
        (lambda: work.ground("", "Cats"), "names no predicate"),
        (lambda: work.ask([1]), "truth values must be given as atoms"),
        (lambda: work.ask({"Smokes(Anna)": 1}), "truth values must be given as atoms"),
        (lambda: work.ask({"<b>": True}), "no atom '<b>'"),
        (lambda: work.push("Cats(x)"), "no atom 'Cats"),
        (lambda: work.push(7), "no atom 7"),
        (lambda: work.push("Smokes(Bob)", {"Smokes(Bob)": True}), "was set by hand"),
        (lambda: LogicWork(mf.MarkovLogic(PROGRAM)).ask(), "not grounded yet"),
    ]:
        with pytest.raises(ModelError, match=message):
            call()


def test_evidence_never_names_a_file(work, tmp_path):
    secret = tmp_path / "secret.db"
    secret.write_text("Smokes(Anna)\n")
    with pytest.raises(FormatError):
        work.ground(str(secret))


COUNTED = """
    person = {A, B, C}
    *Friends(person, person)
    Smokes(person)
    Cancer(person)
    1.5  Smokes(x) => Cancer(x)
    1.1  Friends(x, y) => (Smokes(x) <=> Smokes(y))
    0.7  Smokes(x) ^ !Smokes(y)
    -0.4 Cancer(x) v Cancer(y)
    0    Cancer(x)
    Cancer(A).
"""


def naive_counts(true):
    """Ground formulas of the program above that hold, by trying all persons."""
    people = "ABC"
    smokes, cancer = ({p: f"{name}({p})" in true for p in people} for name in ("Smokes", "Cancer"))
    friends = {("A", "B"), ("B", "C")}
    pairs = [(x, y) for x in people for y in people]
    return [
        sum(not smokes[x] or cancer[x] for x in people),
        sum((x, y) not in friends or smokes[x] == smokes[y] for x, y in pairs),
        sum(smokes[x] and not smokes[y] for x, y in pairs),
        sum(cancer[x] or cancer[y] for x, y in pairs),
        None,
        int(cancer["A"]),
    ]


@pytest.mark.parametrize("truths", [{}, {"Smokes(B)": True, "Cancer(B)": False}, {"Cancer(C)": False}])
def test_the_likeliest_world_and_its_violations(truths):
    work = LogicWork(mf.MarkovLogic(COUNTED))
    told = work.ground("Friends(A, B) Friends(B, C) Smokes(C)", "")
    world = mf.MarkovLogic(COUNTED).ground("Friends(A, B) Friends(B, C) Smokes(C)\n")
    found = work.best(truths)
    json.dumps(found, allow_nan=False)
    best = mf.decode(world, truths)
    assert found["optimal"] and found["gap"] <= 1e-9
    assert found["score"] == pytest.approx(float(best.score) + world.log_constant)
    assert found["true"] == [v for v in world.variables if best.assignment[v]]
    assert told["closed"] == ["Friends"]
    counts = naive_counts({*found["true"], "Smokes(C)"})
    assert found["holds"] == counts
    totals = [3, 9, 9, 9, None, 1]
    assert found["violated"] == [None if n is None else total - n for total, n in zip(totals, counts, strict=True)]
    # Of a query's network the formulas that hold are those that bear on it.
    work.ground("Friends(A, B) Friends(B, C) Smokes(C)", "Smokes")
    assert set(work.best()["violated"]) == {None}


def test_bounds_and_errors_come_with_the_answer(work):
    found = work.ask()
    low, high = found["bounds"]
    assert low == pytest.approx(found["log_partition"]) == high and found["converged"] and found["error"] is None


def test_the_code_asks_the_same(work, tmp_path):
    path, space = tmp_path / "friends.mln", {}
    path.write_text(PROGRAM)
    exec(work.code(path, EVIDENCE, "Smokes(x), Cancer", {"Smokes(Anna)": True}).replace("print", "str"), space)
    found = work.ask({"Smokes(Anna)": True})["probabilities"]
    assert {v: float(space["answer"][v][1]) for v in space["world"].variables} == pytest.approx(found)
