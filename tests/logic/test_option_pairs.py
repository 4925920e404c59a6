"""Settings of `ground` in all pairs, against an evaluation of every formula in every world."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from tests.logic import naive
from tests.logic.test_semantics import DECLARED, evidence_text

SETTINGS = {
    "query": (None, "P", "R(A, x)"),
    "closed": ((), ("Q",), ("Q", "S")),
    "split": (False, True),
    "keep_all": (False, True),
    "soft": (False, True),
    "determined": (False, True),
    "each": (False, True),
    "hard": (False, True),
    "existential": (False, True),
    "known": (False, True),
}


def all_pairs():
    """Rows in which every pair of values of every two settings occurs: greedy, the same each time."""
    names = list(SETTINGS)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in SETTINGS[a] for y in SETTINGS[b]}
    rng = np.random.default_rng(0)
    rows = []
    while missing:
        tries = [{name: SETTINGS[name][rng.integers(len(SETTINGS[name]))] for name in names} for _ in range(40)]
        covered = [
            sum(((a, row[a]), (b, row[b])) in missing for a, b in itertools.combinations(names, 2)) for row in tries
        ]
        row = tries[int(np.argmax(covered))]
        if max(covered) == 0:
            (a, x), (b, y) = min(missing, key=repr)
            row = {**row, a: x, b: y}
        missing -= {((a, row[a]), (b, row[b])) for a, b in itertools.combinations(names, 2)}
        rows.append(row)
    return rows


def program(row):
    """Rules as nested tuples, and the same as text; clauses only, so that splitting changes nothing."""
    P, Q, R = ("atom", "P", ("x",)), ("atom", "Q", ("x",)), ("atom", "R", ("x", "y"))
    rules = [
        (("implies", ("and", P, R), ("atom", "P", ("y",))), 0.8, None),
        (("or", Q, ("not", P)), -0.6, None),
        (("atom", "S", ("x", "z")), 0.3, None),
        (("or", P, ("atom", "S", ("x", "z"))), 0.0, None),
    ]
    if row["hard"]:
        rules.append((("or", P, ("atom", "R", ("A", "x"))), None, None))
    if row["existential"]:
        rules.append((("implies", Q, ("exists", "q1", ("atom", "R", ("x", "q1")))), 0.9, None))
    lines = [DECLARED]
    for name, kinds in naive.TYPES.items():
        marked = [k + ("!" if row["determined"] and (name, i) == ("S", 1) else "") for i, k in enumerate(kinds)]
        lines.append(f"{name}({', '.join(marked)})")
    lines += [f"{naive.text(f)}." if w is None else f"{w!r} {naive.text(f)}" for f, w, _ in rules]
    kb = mf.MarkovLogic("\n".join(lines))
    if row["each"]:
        own = {("A",): 0.5, ("B",): -0.7}
        kb = kb.add_rule(naive.text(("or", P, Q)), 0.0, each=["x"]).with_weights({len(rules): own})
        rules.append((("or", P, Q), 0.0, (["x"], own)))
    return kb, rules


@pytest.mark.parametrize("number", range(len(all_pairs())))
def test_all_pairs(number):
    row = all_pairs()[number]
    closed = set(row["closed"])
    if row["determined"]:
        closed.discard("S")
    kb, rules = program(row)
    known = {("R", ("A", "B")): True, ("R", ("B", "B")): False, ("Q", ("A",)): True} if row["known"] else {}
    soft = {("P", ("B",)): 0.3, ("R", ("B", "A")): 0.8} if row["soft"] else {}
    settings = {"query": row["query"], "closed": closed, "split": row["split"], "keep_all": row["keep_all"]}
    world = kb.ground(evidence_text(known, soft), **settings)
    full = dict(known)
    for atom in naive.atoms(naive.TYPES):
        if atom[0] in closed:
            full.setdefault(atom, False)
    determined = [("S", 1)] if row["determined"] else []
    found = [(w, s) for w, s in naive.log_weights(rules, full, determined=determined, soft=soft) if s > -np.inf]
    scores = np.array([s for _, s in found])
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    answer = mf.marginals(world)
    asked = [name for name in world.atoms if not name.startswith("_")]
    assert asked
    for name in asked:
        predicate, _, args = name.rstrip(")").partition("(")
        atom = (predicate, tuple(args.split(",")))
        true = sum(p for (w, _), p in zip(found, weights, strict=True) if w[atom])
        assert answer[name][1] == pytest.approx(true, abs=1e-9), (row, name)
    if row["query"] is None:
        assert answer.log_partition + world.log_constant == pytest.approx(np.logaddexp.reduce(scores), abs=1e-8), row
    if row["keep_all"]:
        other = world.with_weights(world.weights + 0.1)
        assert mf.log_partition(other).log_partition > -np.inf
    # The likeliest world without grounding, asked the same.
    del settings["keep_all"]
    best = mf.decode(kb.lazy(evidence_text(known, soft), **settings))
    names = {f"{p}({','.join(args)})": (p, args) for p, args in naive.atoms(naive.TYPES)}
    given = {names[name]: truth for name, truth in best.assignment.items() if name in names}
    same = [s for w, s in found if all(w[atom] == truth for atom, truth in given.items())]
    assert best.optimal and max(same) == pytest.approx(scores.max(), abs=1e-6), row


NAMES = [
    "x'; DROP TABLE k0; --",
    'say "hi"',
    "semi;colon",
    "naïve Ünïcode ∀",
    "new\nline",
    "tab\there",
    "%(x)s",
    "0",
    "NULL",
    "a0",
]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_of_constants_everywhere(name):
    """In evidence from Python, domains, formulas, weights by constants and queries: names like any others."""
    kb = mf.MarkovLogic("P(t)\nR(t, t)").add_domain("t", [name, "Other"])
    from markovfield.logic import Atom, Constant, Variable

    kb.add_rule(Atom("P", (Constant(name),)) >> Atom("P", (Constant("Other"),)), weight=1.0)
    kb.add_rule(Atom("R", (Variable("x"), Variable("y"))), each=["x"])
    kb = kb.with_weights({1: {(name,): 2.0, ("Other",): -1.0}})
    world = kb.ground()
    assert len(world) == 6 and all(atom in world for atom in world)
    shown = next(atom for atom in world if atom.startswith("P") and "Other" not in atom)
    answer = mf.marginals(world, {shown: True})
    assert answer["P(Other)"][1] == pytest.approx(1 / (1 + np.exp(-1.0)))
    best = mf.decode(kb.lazy(), {"P(Other)": False})
    assert best.assignment[shown] is False and best.optimal
    assert sum(best.assignment.values()) == 2  # R of the hostile name with both


def test_hostile_names_of_predicates_and_types():
    """SQL words are names like others."""
    kb = mf.MarkovLogic(
        "select = {Table, Drop}\nWhere(select)\nUnion(select, select)\n"
        "1 Where(from) ^ Union(from, order) => Where(order)"
    )
    world = kb.ground("Union(Table, Drop)", query=["Where"])
    assert mf.marginals(world).guarantee == "exact" and "Where(Drop)" in world
    assert mf.decode(kb.lazy("Union(Table, Drop) Where(Table)", query=["Where"])).assignment == {"Where(Drop)": True}
