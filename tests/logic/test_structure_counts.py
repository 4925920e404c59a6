"""Counts of a database against going through all groundings; forms of clauses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.logic.learning import grounded
from markovfield.logic.structure.clauses import Part, canonical, clause_formula, components, extensions
from markovfield.logic.structure.counts import Counts, TooManyGroundingsError
from tests.logic import structures

TYPES = {"P": ("t",), "R": ("t", "t"), "S": ("t", "u"), "Q": ("u",), "N": ()}


def world(rng, w):
    domains = {"t": [f"A{w}", "B", "C"][: rng.integers(2, 4)], "u": ["D", f"E{w}"]}
    true = {
        (name, args)
        for name, kinds in TYPES.items()
        for args in itertools.product(*(domains[k] for k in kinds))
        if rng.random() < 0.5
    }
    return domains, true


def text_of(domains, true):
    lines = [f"{kind} = {{{', '.join(names)}}}" for kind, names in domains.items()]
    lines += [f"{name}({', '.join(args)})" if args else name for name, args in sorted(true)]
    return "\n".join(lines) + "\n"


def counted(worlds, query, max_groundings=1e9):
    kb = mf.MarkovLogic()
    for name, kinds in TYPES.items():
        kb.add_predicate(name, kinds)
        kb.add_rule(mf.logic.Atom(name, tuple(mf.logic.Variable(f"x{i}") for i in range(len(kinds)))))
    facts = [kb.facts(text_of(*one)) for one in worlds]
    grounds, _ = grounded(kb, facts, query, set(), None, None)
    return Counts(kb.predicates, grounds, facts, query, max_groundings)


def random_parts(rng):
    """Literals that need not hang together."""
    variables = {0: "t", 1: "t", 2: "u", 3: "t"}
    parts = []
    for _ in range(rng.integers(1, 5)):
        name = str(rng.choice(list(TYPES)))
        terms = []
        for kind in TYPES[name]:
            own = [v for v, k in variables.items() if k == kind] + (["B"] if kind == "t" else ["D"])
            terms.append(own[rng.integers(len(own))])
        if not any((p.predicate, p.terms) == (name, tuple(terms)) for p in parts):
            parts.append(Part(name, tuple(terms), bool(rng.random() < 0.6)))
    return tuple(parts)


@pytest.mark.parametrize("seed", range(12))
def test_changes_are_those_of_all_groundings(seed):
    rng = np.random.default_rng(seed)
    worlds = [world(rng, w) for w in range(2)]
    query = [["P", "R"], ["S"], list(TYPES)][seed % 3]
    counts = counted(worlds, query)
    for _ in range(25):
        parts = random_parts(rng)
        at, value = counts.changes(parts)
        found = dict(zip(at.tolist(), value.tolist(), strict=True))
        for w, (domains, true) in enumerate(worlds):
            names = counts.names[w]
            for name in query:
                for args in itertools.product(*(domains[k] for k in TYPES[name])):
                    place = int(counts.first[w]) + names.position_of(name, args)
                    assert counts.truth[place] == ((name, args) in true)
                    wanted = structures.change(parts, TYPES, domains, true, (name, args))
                    assert found.pop(place, 0.0) == wanted, (parts, name, args)
        assert not found
    counts.close()


def test_a_join_that_may_be_too_large_is_not_run():
    rng = np.random.default_rng(1)
    counts = counted([world(rng, 0)], ["P"], max_groundings=1)
    asked = counts.n_queries
    with pytest.raises(TooManyGroundingsError):
        counts.changes((Part("P", (0,)), Part("R", (0, 1)), Part("R", (1, 2))))
    assert counts.n_queries <= asked + 4  # what tells how large it may be
    counts.close()


def test_one_form_for_all_names_of_variables():
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts = random_parts(rng)
        names = sorted({v for part in parts for v in part.variables})
        given = dict(zip(names, rng.permutation(len(names)).tolist(), strict=True))
        other = [part.renamed(given) for part in parts]
        rng.shuffle(other)
        other = [Part(str(p[0]), tuple(p[1]), bool(p[2])) for p in other]
        assert canonical(other) == canonical(parts)
    assert canonical([Part("R", (0, 1))]) != canonical([Part("R", (0, 0))])
    assert canonical([Part("R", (0, 1)), Part("P", (0,))]) != canonical([Part("R", (0, 1)), Part("P", (1,))])
    assert canonical([Part("P", (0,))]) != canonical([Part("P", (0,), False)])


def test_literals_that_can_be_added():
    kb = mf.MarkovLogic("P(t)\nR(t, t)\nQ(u)\nS(t, u)")
    known = kb.predicates
    start = (Part("P", (0,)),)

    def texts(parts, **limits):
        found = extensions(parts, list(known.values()), limits.pop("constants", {}), known=known, **limits)
        return [str(clause_formula(one)) for one in found]

    assert texts(start, max_variables=1) == ["!P(x) v !R(x, x)", "P(x) => R(x, x)"]
    two = texts(start, max_variables=2)
    assert len(two) == 2 * 4 and "P(x) => R(y, x)" in two and "P(x) => S(x, y)" in two
    assert not any("Q(" in text for text in texts(start, max_variables=9))  # shares no variable
    assert "P(x) => R(x, A)" in texts(start, max_variables=1, constants={"t": ["A"]})
    assert components([Part("P", (0,)), Part("Q", (2,)), Part("R", (0, 1)), Part("S", (1, 2))])[0] == (
        Part("P", (0,)), Part("R", (0, 1)), Part("Q", (2,)), Part("S", (1, 2)),
    )  # fmt: skip
