"""Clauses learned from databases: rules that come back, gains by an independent way, limits, what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import markovfield as mf
from markovfield.logic.structure.clauses import Part, hangs_together
from markovfield.methods import ClauseSearch, PseudoLikelihood

DECLARED = "Friends(person, person)\nSmokes(person)\nCancer(person)\n"
TRUTH = (
    DECLARED + "1 Smokes(x)\n-1 Cancer(x)\n2 Smokes(x) => Cancer(x)\n0.4 Friends(x, y) => (Smokes(x) <=> Smokes(y))\n"
)


def databases(seed, n_worlds=4, n=40, text=TRUTH):
    """Worlds drawn from a program, given who is a friend of whom."""
    kb, rng, made = mf.MarkovLogic(text), np.random.default_rng(seed), []
    for _ in range(n_worlds):
        pairs = [f"Friends(P{i},P{j})" for i in range(n) for j in range(n) if i != j and rng.random() < 2 / n]
        given = " ".join(pairs) + f"\nperson = {{{', '.join(f'P{i}' for i in range(n))}}}\n"
        world = kb.ground(given, query=["Smokes", "Cancer"], closed=["Friends"])
        row = np.asarray(mf.sample(world, 1, rng=rng).states)[0]
        truths = [f"{'' if t else '!'}{atom}" for atom, t in zip(world.atoms, row, strict=True)]
        made.append(given + " ".join(truths) + "\n")
    return made


@pytest.fixture(scope="module")
def data():
    return databases(0)


def clauses(kb):
    """Each learned clause as the predicates that occur in it."""
    return [sorted(re.findall(r"(\w+)\(", step.clause)) for step in kb.fit_report.details.steps]


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_that_made_the_data_is_found_first(seed):
    made = databases(seed, n_worlds=6)
    learned = mf.learn_structure(mf.MarkovLogic(DECLARED), databases=made, query=["Smokes", "Cancer"])
    steps = learned.fit_report.details.steps
    assert steps[0].clause in ("Smokes(x) => Cancer(x)", "Cancer(x) => Smokes(x)")
    assert learned.fit_report.converged and learned.fit_report.message == "no clause gains more than its literals cost"
    # What it says of an unseen person is what the truth says.
    asked = "person = {A}\nCancer(A)\n"
    p, q = (mf.marginals(kb.ground(asked, query=["Smokes"], closed=["Friends", "Cancer"]))["Smokes(A)"][1]
            for kb in (learned, mf.MarkovLogic(TRUTH)))  # fmt: skip
    assert abs(p - q) < 0.15


def test_friends_are_found_where_they_matter():
    made = databases(7, n_worlds=12, n=60, text=TRUTH.replace("0.4 F", "0.5 F"))
    learned = mf.learn_structure(mf.MarkovLogic(DECLARED), databases=made, query=["Smokes", "Cancer"])
    assert ["Friends", "Smokes", "Smokes"] in clauses(learned)


def test_nothing_is_found_in_noise():
    rng = np.random.default_rng(3)
    lines = [f"{'' if rng.random() < 0.5 else '!'}{name}(P{i})" for i in range(200) for name in ("Smokes", "Cancer")]
    learned = mf.learn_structure(mf.MarkovLogic(DECLARED), databases=" ".join(lines), query=["Smokes", "Cancer"])
    assert learned.fit_report.details.steps == () and len(learned.rules) == 2


def test_pairs_of_everybody_are_no_clauses():
    """Given all others, counts over all pairs give every atom away."""
    assert not hangs_together((Part("P", (0,)), Part("P", (1,)), Part("R", (0, 1), False)), ["P"])
    assert not hangs_together((Part("P", (0,), False), Part("P", (1,), False), Part("R", (0, 1), False)), ["P"])
    assert hangs_together((Part("P", (0,)), Part("P", (1,), False), Part("R", (0, 1))), ["P", "R"])
    assert hangs_together((Part("P", (0,)), Part("P", (1,)), Part("R", (0, 1), False)), ["R"])


@pytest.mark.parametrize("query", [["Cancer", "Smokes"], None])
@pytest.mark.parametrize("l2", [0.1, 1.0])
def test_gains_are_those_of_weights_fitted_on_ground_networks(data, query, l2):
    learned = mf.learn_structure(
        mf.MarkovLogic(DECLARED),
        databases=data[:2],
        query=query,
        method=ClauseSearch(l2=l2, max_clauses=2, penalty=1.0),
    )
    steps = learned.fit_report.details.steps
    assert [s.kind for s in steps[:2]] == ["add", "add"]
    kb = mf.MarkovLogic(DECLARED + "\n".join(str(rule.formula) for rule in learned.rules[: -2 or None]))
    before = kb.fit(data[:2], query, PseudoLikelihood(l2=l2)).fit_report.objective
    for step, rule in zip(steps, learned.rules[-2:], strict=False):
        kb.add_rule(rule.formula)
        fitted = kb.fit(data[:2], query, PseudoLikelihood(l2=l2))
        assert step.gain == pytest.approx(before - fitted.fit_report.objective, abs=2e-4)
        before = fitted.fit_report.objective
    assert learned.fit_report.objective == pytest.approx(before, abs=2e-4)
    for mine, theirs in zip(learned.rules, fitted.rules, strict=True):
        assert mine.weight == pytest.approx(theirs.weight, abs=1e-2)


def test_single_atoms_come_first_and_rules_that_are_given_stay(data):
    kb = mf.MarkovLogic(DECLARED + "0.3 Smokes(y)\nSmokes(x) <=> Cancer(x)\n@0.25 Friends(x, y) ^ Smokes(x)\n")
    learned = mf.learn_structure(kb, databases=data[:1], query="Cancer", method=ClauseSearch(max_clauses=0))
    assert [str(rule.formula) for rule in learned.rules] == [*(str(r.formula) for r in kb.rules), "Cancer(x)"]
    assert learned.rules[2].weight == 0.25 and learned.rules[2].fixed
    assert "max_clauses: 0 clauses were added" in learned.fit_report.message
    fitted = mf.MarkovLogic(str(kb.to_text()) + "\nCancer(x)\n").fit(data[:1], "Cancer", PseudoLikelihood(l2=0.1))
    assert learned.fit_report.objective == pytest.approx(fitted.fit_report.objective, abs=1e-4)
    again = mf.learn_structure(learned, databases=data[:1], query="Cancer", method=ClauseSearch(max_clauses=0))
    assert len(again.rules) == len(learned.rules)


def test_several_databases_are_worlds_of_their_own(data):
    kb, method = mf.MarkovLogic(DECLARED), ClauseSearch(max_length=2)
    one = mf.learn_structure(kb, databases=data, query=["Smokes", "Cancer"], method=method)
    text = "\n---\n".join(data)
    same = kb.learn_structure(text + "\n", ["Smokes", "Cancer"], method)
    assert [str(r) for r in one.rules] == [str(r) for r in same.rules]
    # The order of worlds changes nothing.
    other = kb.learn_structure(data[::-1], ["Smokes", "Cancer"], method)
    assert [str(r.formula) for r in one.rules] == [str(r.formula) for r in other.rules]
    np.testing.assert_allclose([r.weight for r in one.rules], [r.weight for r in other.rules], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_predicates_that_count_the_same(data, weighted):
    learned = mf.learn_structure(
        mf.MarkovLogic(DECLARED), databases=data[:2], method=ClauseSearch(weighted=weighted, max_clauses=0)
    )
    # Single atoms alone: each predicate's share of true atoms, with a little shrinkage.
    sizes = {"Friends": 2 * 1600, "Smokes": 80, "Cancer": 80}
    total = 0.0
    for name, n in sizes.items():
        true = sum(
            world.count(f" {name}(") + world.count(f"\n{name}(") + world.startswith(f"{name}(") for world in data[:2]
        )
        share = true / n
        scale = sum(sizes.values()) / 3 / n if weighted else 1.0
        total += scale * n * (share * np.log(share) + (1 - share) * np.log(1 - share))
    found = learned.fit_report.details.start
    assert found == pytest.approx(total, rel=5e-3)


@pytest.mark.parametrize("how", ["clock", "callback"])
@pytest.mark.parametrize("after", [1, 40, 120])
def test_a_search_that_is_stopped_gives_what_it_has(data, monkeypatch, how, after):
    kb, seen = mf.MarkovLogic(DECLARED), []
    if how == "clock":
        ticks = iter(range(10**9))
        monkeypatch.setattr("markovfield.inference.core.running.clock", lambda: float(next(ticks)))
        asked = {"time_limit": float(after)}
    else:
        asked = {"callback": lambda progress: seen.append(progress.value) or len(seen) >= after}
    learned = mf.learn_structure(kb, databases=data, query=["Smokes", "Cancer"], **asked)
    report = learned.fit_report
    assert not report.converged and ("time limit" if how == "clock" else "callback") in report.message
    assert [str(rule.formula) for rule in learned.rules[:2]] == ["Smokes(x)", "Cancer(x)"]
    assert len(learned.rules) == 2 + len([s for s in report.details.steps if s.kind == "add"])
    assert all(np.isfinite(rule.weight) for rule in learned.rules)
    mf.marginals(learned.ground("Friends(A, B)\n", query=["Smokes", "Cancer"]))
    if how == "callback":
        assert seen == sorted(seen)  # the objective never falls


def test_constants_and_predicates_that_may_occur():
    rng = np.random.default_rng(0)
    lines = []
    for i in range(120):
        colour = ["Red", "Green", "Blue"][i % 3]
        lines.append(
            f"Is(T{i}, {colour})" + (f" Sweet(T{i})" if rng.random() < (0.9 if colour == "Red" else 0.2) else "")
        )
    kb = mf.MarkovLogic("Is(thing, colour)\nSweet(thing)\n")
    method = ClauseSearch(constants=["colour"], max_variables=1)
    learned = mf.learn_structure(kb, databases=" ".join(lines), query="Sweet", method=method)
    assert [step.clause for step in learned.fit_report.details.steps] == ["Is(x, Red) => Sweet(x)"]
    blind = ClauseSearch(constants=["colour"], predicates=["Sweet"])
    assert mf.learn_structure(kb, databases=" ".join(lines), query="Sweet", method=blind).fit_report.details.steps == ()


def test_hard_rules_and_what_they_decide():
    kb = mf.MarkovLogic("P(t)\nQ(t)\nR(t)\nP(x) => Q(x).\n")
    lines = (
        [f"P(A{i}) Q(A{i}) R(A{i})" for i in range(20)]
        + [f"Q(B{i})" for i in range(10)]
        + [f"!Q(C{i})" for i in range(10)]
    )
    learned = mf.learn_structure(kb, databases=" ".join(lines), query=["P", "Q"])
    fitted = mf.MarkovLogic(learned.to_text()).fit(" ".join(lines), ["P", "Q"], PseudoLikelihood(l2=0.1))
    assert learned.rules[0].hard
    assert learned.fit_report.objective == pytest.approx(fitted.fit_report.objective, abs=1e-4)
    with pytest.raises(mf.ModelError, match="the databases violate a hard formula"):
        mf.learn_structure(kb, databases="P(A) !Q(A)\n", query=["P", "Q"])
    every = mf.MarkovLogic("P(t)\nP(x).\n")
    with pytest.raises(mf.ModelError, match="no atom of the query is left open"):
        mf.learn_structure(every, databases="P(A)\n", query="P")


def test_clauses_with_too_many_groundings_are_left_out(data):
    method = ClauseSearch(max_groundings=5, max_length=2)
    learned = mf.learn_structure(mf.MarkovLogic(DECLARED), databases=data[:1], query="Smokes", method=method)
    assert learned.fit_report.details.skipped > 0
    assert any("may have more than 5 groundings" in note for note in learned.fit_report.notes)


def test_the_report_is_a_table(data):
    learned = mf.learn_structure(mf.MarkovLogic(DECLARED), databases=data, query=["Smokes", "Cancer"])
    about = learned.fit_report.details
    frame = about.to_frame()
    assert frame["kind"].tolist()[0] == "add" and "clauses tried" in repr(about)
    start = np.append(about.start, frame["log_pseudo_likelihood"].to_numpy())
    assert (np.diff(start) > 0).all()


def test_what_is_refused(data):
    kb = mf.MarkovLogic(DECLARED)
    for asked, message in [
        ({}, "learn_structure of a Markov logic program needs databases"),
        (
            {"databases": data, "query": "Nope"},
            "query of learn_structure must name predicates of the program, got 'Nope'",
        ),
        ({"databases": []}, "learning clauses needs at least one database"),
        ({"databases": data, "weights": [1]}, "network, weights and drop_missing of learn_structure are for rows"),
        ({"databases": data, "method": "pc"}, "method"),
        ({"databases": data, "method": ClauseSearch(predicates=["X"])}, "predicates of ClauseSearch names 'X'"),
        ({"databases": data, "method": ClauseSearch(constants=["x"])}, "constants of ClauseSearch names 'x'"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            mf.learn_structure(kb, **asked)
    with pytest.raises(
        mf.ModelError, match="databases and query of learn_structure are for Markov logic programs, not"
    ):
        mf.learn_structure({"A": [0, 1]}, databases=data)
    with pytest.raises(mf.ModelError, match="needs a predicate to learn clauses of"):
        mf.learn_structure(mf.MarkovLogic(), databases="\n")
    with pytest.raises(mf.ModelError, match="predicates of ClauseSearch must be a list of names, got 'Smokes'"):
        ClauseSearch(predicates="Smokes")
    with pytest.raises(mf.ModelError, match="refits of ClauseSearch must be at least 1, got 0"):
        ClauseSearch(refits=0)
    quantified = mf.MarkovLogic("P(t)\nR(t, t)\nP(x) <=> (EXIST y (R(x, y) ^ P(y)))\n")
    with pytest.raises(mf.ModelError, match="learn_structure needs rules without quantifiers inside"):
        mf.learn_structure(quantified, databases="P(A) R(A, A)\n", query="P")


def test_predicates_with_one_true_atom_are_given():
    kb = mf.MarkovLogic("Ill(p)\nAt(p, place!)\nplace = {Home, Work}\n")
    data = (
        " ".join(f"Ill(A{i}) At(A{i}, Home)" for i in range(15)) + " " + " ".join(f"At(B{i}, Work)" for i in range(15))
    )
    with pytest.raises(mf.ModelError, match=r"finds no clauses about At\(p, place!\), of which one atom is true"):
        mf.learn_structure(kb, databases=data, query="At")
    learned = mf.learn_structure(kb, databases=data, method=mf.methods.ClauseSearch(constants=["place"], max_length=2))
    assert any("At(x, " in str(rule.formula) and "Ill(x)" in str(rule.formula) for rule in learned.rules)
    assert not any(str(rule.formula).startswith("At(x, y)") for rule in learned.rules)
