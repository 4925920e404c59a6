"""Relational templates: chains, dynamic Bayesian networks and lattices in the language are the built-in models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import markovfield as mf

STATES, SYMBOLS = ("S0", "S1", "S2"), ("A", "B")
CHAIN = """
*Next(time, time)
*First(time)
State(time, state!)
Sees(time, symbol!)
"""


def hidden_markov_model(rng, zero=False):
    start = rng.dirichlet(np.ones(3))
    move, emit = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(2), 3)
    if zero:
        move[0] = [0.0, 0.4, 0.6]
    kb = mf.MarkovLogic(CHAIN).add_domain("state", STATES).add_domain("symbol", SYMBOLS)
    kb.add_conditional("State(t, +s)", "First(t)", {s: start[i] for i, s in enumerate(STATES)})
    pairs = itertools.product(enumerate(STATES), repeat=2)
    kb.add_conditional("State(u, +r)", "Next(t, u) ^ State(t, +s)", {(s, r): move[i, j] for (i, s), (j, r) in pairs})
    both = itertools.product(enumerate(STATES), enumerate(SYMBOLS))
    kb.add_conditional("Sees(t, +o)", "State(t, +s)", {(s, o): emit[i, j] for (i, s), (j, o) in both})
    return kb, start, move, emit


@pytest.mark.parametrize("zero", [False, True])
def test_a_hidden_markov_model(zero):
    """log p of the observations and posterior states, by an enumeration of all paths; and a network of its own."""
    rng = np.random.default_rng(5)
    kb, start, move, emit = hidden_markov_model(rng, zero)
    seen = [0, 1, 1, 0, 1]
    n = len(seen)
    text = "First(0)\n" + "".join(f"Next({t}, {t + 1})\n" for t in range(n - 1))
    world = kb.ground(text + "".join(f"Sees({t}, {SYMBOLS[o]})\n" for t, o in enumerate(seen)))
    total, posterior = 0.0, np.zeros((n, 3))
    best = -math.inf
    for path in itertools.product(range(3), repeat=n):
        p = start[path[0]] * np.prod([move[a, b] for a, b in itertools.pairwise(path)])
        p *= np.prod([emit[s, o] for s, o in zip(path, seen, strict=True)])
        total += p
        best = max(best, p)
        for t, s in enumerate(path):
            posterior[t, s] += p
    answer = mf.marginals(world)
    assert answer.log_partition + world.log_constant == pytest.approx(math.log(total))
    for t, (s, name) in itertools.product(range(n), enumerate(STATES)):
        assert answer[f"State({t},{name})"][1] == pytest.approx(posterior[t, s] / total)
    assert mf.decode(world).score + world.log_constant == pytest.approx(math.log(best))
    # Nothing observed: a distribution.
    free = kb.ground(text)
    assert mf.log_partition(free).log_partition + free.log_constant == pytest.approx(0.0, abs=1e-9)
    net = mf.BayesianNetwork()
    for t in range(n):
        parents = [f"y{t - 1}"] if t else []
        net.add_variable(f"y{t}", list(STATES))
        net.add_variable(f"x{t}", list(SYMBOLS))
        net.add_cpt(f"y{t}", parents, move if t else start)
        net.add_cpt(f"x{t}", [f"y{t}"], emit)
    other = mf.marginals(net, {f"x{t}": SYMBOLS[o] for t, o in enumerate(seen)})
    assert answer.log_partition + world.log_constant == pytest.approx(other.log_partition)
    assert answer["State(2,S1)"][1] == pytest.approx(other["y2"][1])


def test_a_dynamic_bayesian_network():
    """Two chains that depend on each other, unrolled by the database and by hand."""
    rng = np.random.default_rng(2)
    kb = mf.MarkovLogic("*Next(time, time)\n*First(time)\nA(time)\nB(time)")
    start, tables = rng.random(2), {name: rng.random((2, 2)) for name in "AB"}
    for name, p in zip("AB", start, strict=True):
        kb.add_conditional(f"{name}(t)", "First(t)", p)
        for a, b in itertools.product((0, 1), repeat=2):
            given = f"Next(s, t) ^ {'' if a else '!'}A(s) ^ {'' if b else '!'}B(s)"
            kb.add_conditional(f"{name}(t)", given, tables[name][a, b])
    net = mf.BayesianNetwork()
    for t in range(4):
        for i, name in enumerate("AB"):
            parents = [f"A{t - 1}", f"B{t - 1}"] if t else []
            true = tables[name] if t else start[i]
            net.add_variable(f"{name}{t}", 2)
            net.add_cpt(f"{name}{t}", parents, np.stack([1.0 - true, true], axis=-1))
    world = kb.ground("First(0) Next(0, 1) Next(1, 2) Next(2, 3)")
    assert mf.log_partition(world).log_partition + world.log_constant == pytest.approx(0.0, abs=1e-9)
    one, other = mf.marginals(world, {"B(3)": True, "A(1)": False}), mf.marginals(net, {"B3": 1, "A1": 0})
    assert one.log_partition + world.log_constant == pytest.approx(other.log_partition)
    for t in (0, 2, 3):
        assert one[f"A({t})"] == pytest.approx(other[f"A{t}"])


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (4, 4)])
def test_a_lattice(rows, columns):
    """Ising's model: neighbours that agree earn 2 J, as spins -1 and 1 have it up to a constant."""
    coupling, field = 0.4, 0.3
    kb = mf.MarkovLogic(
        f"*Adjacent(site, site)\nUp(site)\n{2 * coupling} Adjacent(x, y) => (Up(x) <=> Up(y))\n{2 * field} Up(x)"
    )
    sites = list(itertools.product(range(rows), range(columns)))
    pairs = [((i, j), (i + 1, j)) for i, j in sites if i + 1 < rows] + [
        ((i, j), (i, j + 1)) for i, j in sites if j + 1 < columns
    ]
    name = lambda site: f"N{site[0]}_{site[1]}"  # noqa: E731
    world = kb.ground(" ".join(f"Adjacent({name(a)}, {name(b)})" for a, b in pairs))
    model = mf.Ising((rows, columns), coupling=coupling, field=field)
    one, other = mf.marginals(world), mf.marginals(model)
    shift = -coupling * len(pairs) - field * len(sites)
    assert one.log_partition + shift == pytest.approx(other.log_partition)
    ups = [one[f"Up({name(site)})"][1] for site in sites]
    np.testing.assert_allclose(ups, [other.values[2 * i + 1] for i in range(len(sites))], atol=1e-9)


def test_what_is_no_distribution_is_refused():
    kb = mf.MarkovLogic("P(t)\nS(t, u!)\nu = {C, D}")
    for asked, message in [
        (("P(x)", "", 1.5), r"P\(P\(x\) | \) must be a probability, got 1.5"),
        (("S(x, +y)", "P(x)", {"C": 0.5, "D": 0.6}), "sums to 1.1 for all values, not to 1"),
        (("S(x, +y)", "P(x)", {("C", "D"): 1.0}), r"is given for \('C', 'D'\), and has the \+ variables y"),
        (("S(x, +y)", "P(x)", 0.5), r"has \+ variables, and needs a probability for each"),
        (("P(x)", "", {"A": 1.0}), r"has no \+ variables, and needs one probability"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            kb.add_conditional(*asked)
    assert len(kb.rules) == 0
    sure = mf.MarkovLogic("t = {A}\nP(t)").add_conditional("P(x)", "", 1.0)
    assert [rule.hard for rule in sure.rules] == [True] and mf.marginals(sure)["P(A)"][1] == 1.0
