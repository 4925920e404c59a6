"""Small models on which samplers go wrong: barriers, needles, ties, hard zeros, rare states, components, and others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.oracle import Evidence
from tests.strategies import Cpt, Spec, Table

Made = tuple[list[int], list[Table | Cpt], dict[int, int | np.ndarray]]


def _pairs(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.25]


def two_modes(rng: np.random.Generator) -> Made:
    """Variables that hold each other in one of two assignments, with a barrier of e^3 to e^40 and perhaps a field."""
    n, coupling = int(rng.integers(2, 7)), rng.uniform(3, 40)
    sign = rng.integers(0, 2, n)
    tables: list[Table | Cpt] = []
    for i, j in _pairs(rng, n):
        same = np.equal.outer(np.arange(2) ^ sign[i], np.arange(2) ^ sign[j])
        tables.append(Table(((i, j),), coupling * same.astype(float)))
    if rng.random() < 0.7:
        tables.append(Table(((int(rng.integers(n)),),), np.array([0.0, rng.normal() * rng.choice([0.1, 1.0, 5.0])])))
    return [2] * n, tables, {}


def needles(rng: np.random.Generator) -> Made:
    """One table with two or three cells far above all others."""
    n = int(rng.integers(2, 5))
    cards = rng.integers(2, 4, n).tolist()
    table, height = np.zeros(cards), rng.uniform(3, 40)
    table[(0,) * n] = height
    table[tuple(c - 1 for c in cards)] = height + rng.normal() * rng.choice([0.0, 1.0, 4.0])
    table[tuple(int(rng.integers(c)) for c in cards)] = height + rng.normal()
    return cards, [Table((tuple(range(n)),), table)], {}


def _tables(rng: np.random.Generator, draw: Callable[[list[int]], np.ndarray]) -> Made:
    """Tables on a random graph, some tied, with likelihoods that may rule a state out."""
    n = int(rng.integers(2, 6))
    cards = rng.integers(1, 4, n).tolist()
    cards[0] = 2
    scopes: list[tuple[int, ...]] = [*_pairs(rng, n), *((v,) for v in range(n) if rng.random() < 0.5)]
    tables: list[Table | Cpt] = []
    tied: dict[tuple[int, ...], int] = {}
    for scope in scopes:
        shape = tuple(cards[v] for v in scope)
        if shape in tied and rng.random() < 0.4:
            old = tables[tied[shape]]
            assert isinstance(old, Table)
            tables[tied[shape]] = Table((*old.scopes, scope), old.log_table)
            continue
        tied[shape] = len(tables)
        tables.append(Table((scope,), draw(list(shape))))
    likelihood = rng.random(2)
    likelihood[1] *= rng.integers(0, 2)
    return cards, tables, {0: likelihood} if rng.random() < 0.5 else {}


def weak(rng: np.random.Generator) -> Made:
    return _tables(rng, lambda shape: rng.normal(size=shape) * 10.0 ** rng.uniform(-9, -1))


def strong(rng: np.random.Generator) -> Made:
    return _tables(rng, lambda shape: rng.normal(size=shape) * rng.uniform(2, 12))


def ties(rng: np.random.Generator) -> Made:
    return _tables(rng, lambda shape: rng.choice([0.0, rng.uniform(0.5, 20)], size=shape))


def hard(rng: np.random.Generator) -> Made:
    return _tables(rng, lambda shape: np.where(rng.random(shape) < 0.2, -np.inf, rng.normal(size=shape)))


def rare(rng: np.random.Generator) -> Made:
    """States of probability 1e-3 to 1e-12 that attract each other."""
    n = int(rng.integers(2, 5))
    cards = rng.integers(2, 4, n).tolist()
    tables: list[Table | Cpt] = []
    for v in range(n):
        own = np.zeros(cards[v])
        own[-1] = -rng.uniform(np.log(1e3), np.log(1e12))
        tables.append(Table(((v,),), own))
    for i, j in _pairs(rng, n):
        table = np.zeros((cards[i], cards[j]))
        table[-1, -1] = rng.uniform(0, 15)
        tables.append(Table(((i, j),), table))
    return cards, tables, {}


def fields(rng: np.random.Generator) -> Made:
    """Ising and Potts models, weak and strong, with fields that may disagree."""
    n, q = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    coupling = rng.uniform(0.1, 1.5) if rng.random() < 0.5 else rng.uniform(1, 20)
    tables: list[Table | Cpt] = [Table((pair,), coupling * np.eye(q)) for pair in _pairs(rng, n)]
    tables += [
        Table(((v,),), rng.normal(size=q) * rng.choice([0.01, 1.0, 4.0])) for v in range(n) if rng.random() < 0.5
    ]
    return [q] * n, tables, {}


def spin_glass(rng: np.random.Generator) -> Made:
    """Couplings of both signs."""
    n, strength = int(rng.integers(4, 9)), rng.uniform(0.5, 6)
    spin = 2 * np.eye(2) - 1
    return [2] * n, [Table((pair,), strength * rng.normal() * spin) for pair in _pairs(rng, n)], {}


def components(rng: np.random.Generator) -> Made:
    """Pairs that nothing joins, and variables alone."""
    cards = rng.integers(1, 4, 5).tolist()
    tables: list[Table | Cpt] = []
    for i in (0, 2):
        tables.append(Table(((i, i + 1),), rng.normal(size=cards[i : i + 2]) * rng.choice([0.01, 1.0, 10.0])))
    return cards, [*tables, Table(((1,),), rng.normal(size=cards[1]) * 3)], {}


def directed(rng: np.random.Generator) -> Made:
    """A Bayesian network with probabilities near zero and one, and an observation."""
    n = int(rng.integers(2, 6))
    cards = rng.integers(2, 4, n).tolist()
    concentration = float(rng.choice([0.05, 0.3, 3.0]))
    tables: list[Table | Cpt] = []
    for v in range(n):
        above = tuple(sorted(rng.choice(v, min(v, int(rng.integers(0, 3))), replace=False).tolist())) if v else ()
        shape = [cards[p] for p in above]
        table = np.maximum(rng.dirichlet(np.full(cards[v], concentration), size=shape or None), 1e-200)
        tables.append(Cpt(v, above, table / table.sum(axis=-1, keepdims=True)))
    seen = int(rng.integers(n))
    return cards, tables, {seen: int(rng.integers(cards[seen]))} if rng.random() < 0.7 else {}


KINDS = (two_modes, needles, weak, strong, ties, hard, rare, fields, spin_glass, components, directed)


def hostile(seed: int) -> tuple[Spec, Evidence]:
    """A model and evidence; seeds go through the kinds in turn."""
    rng = np.random.default_rng([seed, 12])
    cards, tables, evidence = KINDS[seed % len(KINDS)](rng)
    return Spec(tuple(cards), tuple(tables), tuple(f"x{v}" for v in range(len(cards)))), evidence
