"""An independent reading of Markov logic: every formula evaluated in every world, by recursion over nested tuples.

Nothing of the library is used. A formula is ("atom", predicate, args), ("eq", a, b), ("not", f), ("and", f, g),
("or", f, g), ("implies", f, g), ("iff", f, g), ("exists", x, f), ("forall", x, f); variables are small letters.
"""

from __future__ import annotations

import itertools
import math

TYPES = {"P": ("t",), "Q": ("t",), "R": ("t", "t"), "S": ("t", "u")}
DOMAINS = {"t": ["A", "B"], "u": ["C", "D"]}


def text(f) -> str:
    """The formula in the language."""
    kind = f[0]
    if kind == "atom":
        return f"{f[1]}({', '.join(f[2])})"
    if kind == "eq":
        return f"{f[1]} = {f[2]}"
    if kind == "not":
        return f"!({text(f[1])})"
    if kind in ("exists", "forall"):
        return f"{'EXIST' if kind == 'exists' else 'FORALL'} {f[1]} ({text(f[2])})"
    sign = {"and": "^", "or": "v", "implies": "=>", "iff": "<=>"}[kind]
    return f"({text(f[1])}) {sign} ({text(f[2])})"


def types_of(f, found=None) -> dict[str, str]:
    """Type of every variable, free or bound (names are not reused)."""
    found = {} if found is None else found
    if f[0] == "atom":
        for term, kind in zip(f[2], TYPES[f[1]], strict=True):
            if term[0].islower():
                found[term] = kind
    elif f[0] in ("exists", "forall"):
        types_of(f[2], found)
    elif f[0] != "eq":
        for part in f[1:]:
            types_of(part, found)
    return found


def free(f, bound=frozenset()) -> set[str]:
    """Free variables."""
    if f[0] == "atom":
        return {t for t in f[2] if t[0].islower() and t not in bound}
    if f[0] == "eq":
        return {t for t in f[1:] if t[0].islower() and t not in bound}
    if f[0] in ("exists", "forall"):
        return free(f[2], bound | {f[1]})
    return set().union(*(free(part, bound) for part in f[1:]))


def holds(f, world, values, kinds) -> bool:
    """Whether a formula is true of a world, given values of its variables."""
    kind = f[0]
    if kind == "atom":
        return world[(f[1], tuple(values.get(t, t) for t in f[2]))]
    if kind == "eq":
        return values.get(f[1], f[1]) == values.get(f[2], f[2])
    if kind == "not":
        return not holds(f[1], world, values, kinds)
    if kind == "exists":
        return any(holds(f[2], world, values | {f[1]: c}, kinds) for c in DOMAINS[kinds[f[1]]])
    if kind == "forall":
        return all(holds(f[2], world, values | {f[1]: c}, kinds) for c in DOMAINS[kinds[f[1]]])
    a, b = holds(f[1], world, values, kinds), holds(f[2], world, values, kinds)
    return {"and": a and b, "or": a or b, "implies": not a or b, "iff": a == b}[kind]


def atoms(predicates) -> list[tuple[str, tuple[str, ...]]]:
    """All ground atoms."""
    return [(p, args) for p in predicates for args in itertools.product(*(DOMAINS[k] for k in TYPES[p]))]


def log_weights(rules, evidence, *, determined=(), soft=None):
    """Every world that agrees with the evidence, and the log of its weight (-inf where it is impossible).

    ``rules`` are (formula, weight or None for hard, variables with weights of their own: {values: weight});
    ``determined`` are (predicate, position): exactly one value for each of the others.
    """
    every = atoms(TYPES)
    hidden = [a for a in every if a not in evidence]
    for chosen in itertools.product((False, True), repeat=len(hidden)):
        world = {**evidence, **dict(zip(hidden, chosen, strict=True))}
        yield world, _score(rules, world, determined, soft or {})


def _score(rules, world, determined, soft) -> float:
    total = sum(math.log(p if world[a] else 1 - p) for a, p in soft.items())
    for predicate, position in determined:
        counts = {}
        for (name, args), truth in world.items():
            if name == predicate:
                key = args[:position] + args[position + 1 :]
                counts[key] = counts.get(key, 0) + truth
        if any(count != 1 for count in counts.values()):
            return -math.inf
    for formula, weight, each in rules:
        kinds = types_of(formula)
        while formula[0] == "forall":  # at the front, as the free variables that all are
            formula = formula[2]
        names = sorted(free(formula))
        for values in itertools.product(*(DOMAINS[kinds[name]] for name in names)):
            given = dict(zip(names, values, strict=True))
            if holds(formula, world, given, kinds):
                if each:
                    total += each[1][tuple(given[name] for name in each[0])]
                elif weight is not None:
                    total += weight
            elif weight is None and not each:
                return -math.inf
    return total
