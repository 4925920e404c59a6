"""Ground networks against an independent evaluation of every formula in every world."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.logic.markov_logic import MarkovLogic
from tests.logic import naive

DECLARED = "t = {A, B}\nu = {C, D}\n"


def random_formula(rng, depth, variables, fresh):
    """A formula over some variables; quantifiers bind names that are used once."""
    if depth == 0 or rng.random() < 0.25:
        if rng.random() < 0.12 and len(variables["t"]) > 1:
            return ("eq", *(str(v) for v in rng.choice(variables["t"], 2)))
        name = str(rng.choice(["P", "Q", "R", "S"], p=[0.3, 0.3, 0.2, 0.2]))
        args = []
        for kind in naive.TYPES[name]:
            some = variables[kind]
            args.append(str(rng.choice(some)) if some and rng.random() < 0.85 else str(rng.choice(naive.DOMAINS[kind])))
        return ("atom", name, tuple(args))
    kind = str(
        rng.choice(
            ["not", "and", "or", "implies", "iff", "exists", "forall"], p=[0.15, 0.2, 0.25, 0.15, 0.09, 0.1, 0.06]
        )
    )
    if kind == "not":
        return ("not", random_formula(rng, depth - 1, variables, fresh))
    if kind in ("exists", "forall"):
        fresh[0] += 1
        name, sort = f"q{fresh[0]}", str(rng.choice(["t", "u"]))
        inner = {**variables, sort: [*variables[sort], name]}
        body = random_formula(rng, depth - 1, inner, fresh)
        # A quantified variable that does not occur would have no type.
        if name not in naive.types_of(body):
            args = [name if k == sort else str(rng.choice(naive.DOMAINS[k])) for k in naive.TYPES["S"]]
            body = ("or", body, ("atom", "S", tuple(args)))
        return (kind, name, body)
    return (kind, random_formula(rng, depth - 1, variables, fresh), random_formula(rng, depth - 1, variables, fresh))


def typed(formula):
    """Whether every free variable occurs in a predicate."""
    return naive.free(formula) <= set(naive.types_of(formula))


def random_program(seed):
    rng = np.random.default_rng(seed)
    rules = []
    while len(rules) < rng.integers(1, 4):
        formula = random_formula(rng, int(rng.integers(1, 4)), {"t": ["x", "y"], "u": ["z"]}, [0])
        if not typed(formula):
            continue
        names = sorted(naive.free(formula))
        kind = rng.random()
        if kind < 0.15:
            rules.append((formula, None, None))
        elif kind < 0.35 and names:
            chosen = names[: int(rng.integers(1, len(names) + 1))]
            kinds = naive.types_of(formula)
            sizes = np.prod([len(naive.DOMAINS[kinds[n]]) for n in chosen])
            keys = list(__import__("itertools").product(*(naive.DOMAINS[kinds[n]] for n in chosen)))
            rules.append((formula, 0.0, (chosen, dict(zip(keys, rng.normal(size=int(sizes)), strict=True)))))
        else:
            rules.append((formula, float(rng.normal()), None))
    every = naive.atoms(naive.TYPES)
    known = {a: bool(rng.random() < 0.5) for a in every if rng.random() < rng.choice([0.2, 0.5, 0.8])}
    closed = {p for p in naive.TYPES if rng.random() < 0.25}
    determined = [("S", 1)] if rng.random() < 0.25 and "S" not in closed else []
    soft = {
        a: float(rng.uniform(0.1, 0.9)) for a in every if a not in known and a[0] not in closed and rng.random() < 0.1
    }
    return rules, known, closed, determined, soft


def write(rules, determined):
    lines = [DECLARED]
    for name, kinds in naive.TYPES.items():
        marked = [k + ("!" if (name, i) in determined else "") for i, k in enumerate(kinds)]
        lines.append(f"{name}({', '.join(marked)})")
    for formula, weight, each in rules:
        text = naive.text(formula)
        lines.append(f"{text}." if weight is None and not each else f"{weight!r} {text}")
    return "\n".join(lines)


def knowledge_base(rules, determined):
    kb = MarkovLogic(write([r for r in rules if not r[2]], determined))
    for formula, _, each in rules:
        if each:
            kb.add_rule(naive.text(formula), 0.0, each=each[0])
            kb = kb.with_weights({len(kb.rules) - 1: each[1]})
    return kb


def evidence_text(known, soft):
    lines = [f"{'' if truth else '!'}{name}({', '.join(args)})" for (name, args), truth in known.items()]
    lines += [f"{p!r} {name}({', '.join(args)})" for (name, args), p in soft.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("block", range(10))
def test_random_programs(block):
    for seed in range(30 * block, 30 * block + 30):
        rules, known, closed, determined, soft = random_program(seed)
        full = dict(known)
        for atom in naive.atoms(naive.TYPES):
            if atom[0] in closed:
                full.setdefault(atom, False)
        found = [(w, s) for w, s in naive.log_weights(rules, full, determined=determined, soft=soft) if s > -np.inf]
        kb = knowledge_base(rules, determined)
        ask = lambda: kb.ground(evidence_text(known, soft), closed=closed)  # noqa: E731, B023
        if not found:
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.log_partition(ask())
            continue
        world = ask()
        scores = np.array([s for _, s in found])
        log_z = float(np.logaddexp.reduce(scores))
        answer = mf.marginals(world)
        assert answer.log_partition + world.log_constant == pytest.approx(log_z, abs=1e-8), seed
        weights = np.exp(scores - log_z)
        for (name, args), position in (
            (a, world.atoms.find(f"{a[0]}({','.join(a[1])})")) for a in naive.atoms(naive.TYPES)
        ):
            if position is not None:
                true = sum(p for (w, _), p in zip(found, weights, strict=True) if w[name, args])
                assert answer[world.atoms[position]][1] == pytest.approx(true, abs=1e-8), seed
            else:
                assert (name, args) in full or len({w[name, args] for w, _ in found}) == 1, seed
        assert mf.decode(world).score + world.log_constant == pytest.approx(scores.max(), abs=1e-8), seed
