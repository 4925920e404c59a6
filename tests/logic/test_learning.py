"""Weights from databases: the conditions that an optimum meets, by enumeration; several worlds; what is fixed."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.logic import naive

TEXT = "t = {A, B}\nu = {C, D}\nP(t)\nQ(t)\nR(t, t)\nS(t, u)\nP(x) => Q(x)\nR(x, y) ^ P(x) => P(y)\nQ(x) ^ !S(x, z)\n"
RULES = [
    ("implies", ("atom", "P", ("x",)), ("atom", "Q", ("x",))),
    ("implies", ("and", ("atom", "R", ("x", "y")), ("atom", "P", ("x",))), ("atom", "P", ("y",))),
    ("and", ("atom", "Q", ("x",)), ("not", ("atom", "S", ("x", "z")))),
]


def world(seed):
    rng = np.random.default_rng(seed)
    return {atom: bool(rng.random() < 0.5) for atom in naive.atoms(naive.TYPES)}


def text_of(truth):
    lines = [f"{'' if t else '!'}{name}({', '.join(args)})" for (name, args), t in truth.items()]
    return "t = {A, B}\nu = {C, D}\n" + "\n".join(lines) + "\n"


def counts(truth):
    return np.array([naive._score([(rule, 1.0, None)], truth, (), {}) for rule in RULES])


def expected(weights, truth, query):
    """Expected numbers of true groundings, given all but the query predicates."""
    given = {atom: t for atom, t in truth.items() if atom[0] not in query}
    rules = [(rule, w, None) for rule, w in zip(RULES, weights, strict=True)]
    found = [(counts(w), s) for w, s in naive.log_weights(rules, given)]
    p = np.exp(np.array([s for _, s in found]) - np.logaddexp.reduce([s for _, s in found]))
    return p @ np.array([c for c, _ in found])


@pytest.mark.parametrize("query", [["P", "Q"], ["P", "Q", "R", "S"]])
def test_at_the_maximum_expected_counts_are_those_of_the_data(query):
    worlds = [world(seed) for seed in range(3)]
    fitted = mf.MarkovLogic(TEXT).fit(
        [text_of(w) for w in worlds], query=query, method=mf.methods.MaximumLikelihood(l2=0.3)
    )
    weights = np.array([rule.weight for rule in fitted.rules])
    slope = sum(counts(w) - expected(weights, w, query) for w in worlds) - 0.3 * weights
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    assert fitted.fit_report.converged


def test_pseudo_likelihood_of_one_query_atom_is_the_conditional_likelihood():
    truth = world(3)
    known = {atom: t for atom, t in truth.items() if atom[0] != "Q"}
    text = TEXT.replace("R(x, y) ^ P(x) => P(y)\n", "")
    one, other = (
        mf.MarkovLogic(text).fit(text_of(truth), query=["Q"], method=method(l2=0.5))
        for method in (mf.methods.PseudoLikelihood, mf.methods.MaximumLikelihood)
    )
    assert known
    for a, b in zip(one.rules, other.rules, strict=True):  # the query atoms share no formula
        assert a.weight == pytest.approx(b.weight, abs=1e-5)


def test_what_learning_leaves_alone():
    text = TEXT.replace("Q(x) ^", "@0.7 Q(x) ^").replace("P(x) => Q(x)", "P(x) v Q(x).\n1 P(x) => Q(x)")
    truth = world(5) | {("P", ("A",)): True, ("P", ("B",)): True}
    fitted = mf.MarkovLogic(text).fit(text_of(truth), query=["P", "Q"], method=mf.methods.PseudoLikelihood(l2=0.1))
    assert fitted.rules[0].weight is None and fitted.rules[0].hard
    assert fitted.rules[3].weight == 0.7
    assert fitted.rules[1].weight != 1.0


def test_weights_for_constants():
    text = "t = {A, B}\nw = {C, D}\nHas(t, w)\nTopic(t)\nHas(x, +y) => Topic(x)\n"
    data = "Has(A, C) Topic(A) Has(B, D) Has(E, C) Topic(E) Has(F, D) !Topic(G)"
    fitted = mf.MarkovLogic(text).fit(data, query=["Topic"], method=mf.methods.PseudoLikelihood(l2=0.1))
    world = fitted.ground("Has(New, C)\nHas(Other, D)\n", query=["Topic"], closed=["Has"])
    answer = mf.marginals(world)
    assert answer["Topic(New)"][1] > 0.8 and answer["Topic(Other)"][1] < 0.6
    assert set(fitted._learned) == {(0, ("C",)), (0, ("D",))}


def test_hidden_predicates_are_summed_out():
    text = "t = {A, B, C}\nSeen(t)\nCause(t)\nCause(x) => Seen(x)\nCause(x)\n"
    data = "Seen(A) Seen(B) !Seen(C)"
    fitted = mf.MarkovLogic(text).fit(data, hidden=["Cause"], method=mf.methods.MaximumLikelihood(l2=0.1))
    assert fitted.fit_report.converged
    assert mf.marginals(fitted.ground())["Seen(A)"][1] > 0.55


def test_refusals():
    kb = mf.MarkovLogic(TEXT)
    with pytest.raises(mf.ModelError, match="learning names 'Nope', which is no predicate of the program"):
        kb.fit("P(A)\n", query=["Nope"])
    with pytest.raises(mf.ModelError, match="learning weights needs at least one database"):
        kb.fit([])
    with pytest.raises(mf.ModelError, match="the program has no weight to learn"):
        mf.MarkovLogic("P(t)\nP(x) v !P(x).").fit("P(A)\n")


def test_a_list_of_texts_is_several_worlds_and_a_list_of_atoms_is_one():
    kb = mf.MarkovLogic("P(t)\nQ(t)\nP(x) => Q(x)\nQ(x)\n")
    method = mf.methods.MaximumLikelihood(l2=0.5)
    several = mf.fit(kb, ["P(A) Q(A) !Q(B)", "P(C) !Q(C) Q(D)"], query="Q", method=method)
    lines = mf.fit(kb, "P(A) Q(A) !Q(B)\n---\nP(C) !Q(C) Q(D)\n", query="Q", method=method)
    assert [r.weight for r in several.rules] == [r.weight for r in lines.rules]
    one = mf.fit(kb, ["P(A)", "Q(A)", "P(B)"], query="Q", method=method)
    same = mf.fit(kb, "P(A) Q(A) P(B)\n", query="Q", method=method)
    assert [r.weight for r in one.rules] == [r.weight for r in same.rules]


def test_what_is_unknown_of_a_predicate_that_is_not_closed_is_summed_out():
    kb = mf.MarkovLogic("t = {A, B}\nP(t)\nQ(t)\nP(x) => Q(x)\nP(x)\n")
    method = mf.methods.MaximumLikelihood(l2=0.3)
    opened = mf.fit(kb, "P(A) Q(A) !Q(B)\n", query="Q", closed=[], method=method)
    weights = np.array([rule.weight for rule in opened.rules])

    def likelihood(w):
        scores = {}
        for p, a, b in np.ndindex(2, 2, 2):  # P(B), Q(A), Q(B)
            scores[p, a, b] = w[0] * (a + (not p or b)) + w[1] * (1 + p)
        total = np.logaddexp.reduce(list(scores.values()))
        seen = np.logaddexp(scores[0, 1, 0], scores[1, 1, 0])
        return seen - total - 0.15 * w @ w

    near = weights + np.random.default_rng(0).normal(size=(300, 2)) * 0.1
    assert likelihood(weights) >= max(likelihood(w) for w in near)


def test_learning_begins_where_another_answer_ended():
    kb = mf.MarkovLogic("P(t)\nQ(t)\nP(x) => Q(x)\nQ(x)\n")
    data = "P(A) Q(A) !Q(B) P(C)\n"
    first = mf.fit(kb, data, query="Q", method=mf.methods.MaximumLikelihood(l2=0.5))
    again = mf.fit(kb, data, query="Q", method=mf.methods.DiagonalNewton(l2=0.5, tolerance=1e-4), init=first)
    assert again.fit_report.iterations <= 1
    with pytest.raises(mf.ModelError, match="init of fit must be a program of the same formulas"):
        mf.fit(kb, data, query="Q", init=mf.MarkovLogic("P(t)\nQ(t)\nQ(x)\n"))


def test_what_the_verb_refuses():
    kb = mf.MarkovLogic("P(t)\nP(x)\n")
    with pytest.raises(mf.ModelError, match="weights of fit are of rows, and a Markov logic program learns from data"):
        mf.fit(kb, "P(A)\n", weights=[1.0])
    with pytest.raises(mf.ModelError, match="query and closed of fit are for Markov logic programs, not for Ising"):
        mf.fit(mf.Ising((2, 2), coupling=0.0), [[0, 0, 0, 0]], query="P")


def pseudo_likelihood(text, types, truth, rules, weights):
    """By enumeration: every atom given all others, those of S (one for each first argument) as one."""
    domains, naive.DOMAINS, old = naive.DOMAINS, types[1], naive.TYPES
    naive.TYPES = types[0]
    try:
        sites = {}
        for name, args in truth:
            sites.setdefault((name, args[0]) if name == "S" else (name, args), []).append((name, args))
        total = 0.0
        for atoms in sites.values():
            scores = []
            for values in np.ndindex(*[2] * len(atoms)):
                if len(atoms) > 1 and sum(values) != 1:
                    continue
                changed = {**truth, **{atom: bool(v) for atom, v in zip(atoms, values, strict=True)}}
                scores.append(
                    naive._score([(r, w, None) for r, w in zip(rules, weights, strict=True)], changed, (), {})
                )
            own = naive._score([(r, w, None) for r, w in zip(rules, weights, strict=True)], truth, (), {})
            total += own - np.logaddexp.reduce(scores)
        return total
    finally:
        naive.DOMAINS, naive.TYPES = domains, old


S_OF = ("atom", "S", ("x", "y"))
SITE_CASES = {
    # One value holds of each: a block is one variable.
    "determined": ("S(t, u!)", [("implies", ("atom", "P", ("x",)), ("atom", "S", ("x", "C"))), S_OF]),
    # A formula over two atoms of one block.
    "shared": ("S(t, u!)", [("or", ("and", ("atom", "P", ("x",)), S_OF), ("atom", "S", ("x", "D")))]),
    # A quantified part stands for itself, and follows from other atoms.
    "exists": ("Q(t, u)", [("implies", ("atom", "P", ("x",)), ("exists", "y", ("atom", "Q", ("x", "y"))))]),
}


@pytest.mark.parametrize("case", SITE_CASES)
def test_pseudo_likelihood_where_atoms_determine_others(case):
    declared, rules = SITE_CASES[case]
    name = declared[0]
    text = f"t = {{A, B}}\nu = {{C, D}}\nP(t)\n{declared}\nP(x)\n" + "\n".join(map(naive.text, rules)) + "\n"
    rules = [("atom", "P", ("x",)), *rules]
    types = ({"P": ("t",), name: ("t", "u")}, {"t": ["A", "B"], "u": ["C", "D"]})
    truth = {("P", ("A",)): True, ("P", ("B",)): False}
    truth |= {(name, (x, y)): (x, y) in (("A", "C"), ("B", "D")) for x in "AB" for y in "CD"}
    data = "P(A) " + f"{name}(A, C) {name}(B, D)"
    fitted = mf.MarkovLogic(text).fit(data, method=mf.methods.PseudoLikelihood(l2=0.4))
    weights = np.array([rule.weight for rule in fitted.rules])
    assert np.abs(weights).max() > 0.05 and fitted.fit_report.method == "pseudo_likelihood"
    assert -fitted.fit_report.objective == pytest.approx(
        pseudo_likelihood(text, types, truth, rules, weights) - 0.2 * weights @ weights, abs=1e-8
    )
    for i in range(len(weights)):
        slope = [
            pseudo_likelihood(text, types, truth, rules, weights + step * np.eye(len(weights))[i])
            for step in (-1e-4, 1e-4)
        ]
        assert (slope[1] - slope[0]) / 2e-4 == pytest.approx(0.4 * weights[i], abs=1e-5)


def test_closed_predicates_are_given_where_nothing_is_asked_for():
    kb = mf.MarkovLogic("Friends(p, p)\nSmokes(p)\nFriends(x, y) ^ Smokes(x) => Smokes(y)\nSmokes(x)\nFriends(x, y)\n")
    data = "Friends(A, B) Friends(B, A) Friends(A, C) Smokes(A) Smokes(B) !Smokes(C)"
    method = mf.methods.MaximumLikelihood(l2=0.1)
    given = mf.fit(kb, data, closed=["Friends"], method=method)
    asked = mf.fit(kb, data, query=["Smokes"], method=method)
    assert [r.weight for r in given.rules] == pytest.approx([r.weight for r in asked.rules])
    assert given.rules[0].weight != 0.0


def test_roles_that_contradict_each_other():
    kb = mf.MarkovLogic("P(t)\nQ(t)\nP(x) => Q(x)\n")
    with pytest.raises(mf.ModelError, match="P is asked for and hidden"):
        kb.fit("Q(A)\n", query=["P"], hidden=["P"])
    with pytest.raises(mf.ModelError, match="P is closed and hidden"):
        kb.fit("Q(A)\n", query=["Q"], hidden=["P"], closed=["P"])
    with pytest.raises(mf.ModelError, match="all predicates are hidden or given: there is nothing to learn from"):
        kb.fit("Q(A)\n", hidden=["P", "Q"])
    with pytest.raises(mf.ModelError, match=r"a database gives Q\(B\) a probability: learning takes what is true or"):
        kb.fit("Q(A) 0.7 Q(B)\n")


@pytest.mark.parametrize("method", ["pseudo_likelihood", "maximum_likelihood", "max_margin", "diagonal_newton"])
def test_a_database_that_violates_a_hard_formula_is_told_which(method):
    kb = mf.MarkovLogic("P(t)\nQ(t)\nP(x) => Q(x).\nQ(x)\n")
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"violates the hard formula P\(x\) => Q\(x\) .* for x = B"):
        kb.fit("P(A) Q(A) P(B)\n", method=method)
    one = mf.MarkovLogic("S(t, u!)\nu = {C, D}\nP(t)\nP(x) => S(x, C)\n")
    with pytest.raises(mf.ImpossibleEvidenceError, match=r"a database violates what is certain: !S\(B,C\), !S\(B,D\)"):
        one.fit("P(A) S(A, C) P(B)\n", method=method)


def test_a_warm_start_leaves_fixed_weights_and_constants_as_they_are():
    kb = mf.MarkovLogic("P(t)\nQ(t)\n@2 P(x) => Q(x)\nQ(x)\nQ(+x) ^ P(x)\n")
    init = mf.MarkovLogic("t = {Z}\nP(t)\nQ(t)\n@3 P(x) => Q(x)\n1 Q(x)\n0.5 Q(+x) ^ P(x)\n")
    data = "P(A) Q(A) !Q(B) P(C)\n"
    method = mf.methods.MaximumLikelihood(l2=0.5)
    again = mf.fit(kb, data, query="Q", method=method, init=init)
    first = mf.fit(kb, data, query="Q", method=method)
    assert again.rules[0].weight == 2.0 and again.domains == kb.domains
    assert again.rules[1].weight == pytest.approx(first.rules[1].weight, abs=1e-6)


@pytest.mark.parametrize("method", ["gis", "ml", "pl", "mpf", "ratio_matching", "diagonal_newton", "max_margin"])
def test_weights_that_no_query_atom_depends_on_stay_at_zero(method):
    kb = mf.MarkovLogic("P(t)\nQ(t)\nP(x) => Q(x)\nP(x)\n")
    fitted = kb.fit("P(A) Q(A) P(B) Q(B) P(C) Q(D)\n", query=["Q"], method=method)
    assert fitted.rules[0].weight > 0.05 and fitted.rules[1].weight == 0.0
    assert "1 of 2 weights have no ground formula that depends on the query" in fitted.fit_report.notes
