"""What the page of networks asks of the library, against brute force: posteriors, paths, trees, messages."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.networks import exports, messages, posteriors, separation, structure, studies
from markovfield.explorer.networks.apart import apart
from markovfield.explorer.networks.network import MOST_DRAWINGS, Known, Memory, Network, network_of
from markovfield.explorer.networks.shown import shown
from tests.oracle import Oracle


def random_network(rng: np.random.Generator, n: int = 6) -> mf.BayesianNetwork:
    cards = rng.integers(2, 4, n)
    net = mf.BayesianNetwork({f"v{i}": int(c) for i, c in enumerate(cards)})
    for i in range(n):
        parents = sorted(rng.choice(i, min(i, int(rng.integers(0, 3))), replace=False).tolist()) if i else []
        table = rng.dirichlet(np.ones(cards[i]), size=tuple(cards[parents]))
        net.add_cpt(f"v{i}", [f"v{p}" for p in parents], table)
    return net


def network(model: Any) -> Network:
    return network_of(Subject(model))


def brute(graph: Any, evidence: dict[int, Any] | None = None) -> Oracle:
    s = graph.structure
    factors = [(s.scope(f).tolist(), graph.table(f)) for f in range(s.n_factors)]
    return Oracle(s.cardinalities.tolist(), factors, evidence)


@pytest.mark.parametrize("seed", range(6))
def test_posteriors_conflict_and_contributions(seed: int):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    one = network(net)
    v, w, u, target = rng.permutation(6)[:4].tolist()
    likelihood = rng.uniform(0.1, 1, one.cardinalities[u]).tolist()
    asked = {"evidence": {"states": {str(v): 1, str(w): 0}, "likelihoods": {str(u): likelihood}}}
    truth = brute(one.graph, {v: 1, w: 0, u: np.array(likelihood)})
    prior = brute(one.graph)
    told = posteriors.posteriors(one, asked)
    assert told["guarantee"] == "exact"
    np.testing.assert_allclose(told["values"], np.concatenate(truth.marginals), atol=1e-12)
    assert told["log_evidence"] == pytest.approx(truth.log_partition - prior.log_partition, abs=1e-10)
    own = [prior.marginal(v)[1], prior.marginal(w)[0], float(prior.marginal(u) @ likelihood)]
    assert told["conflict"] == pytest.approx((sum(map(math.log, own)) - told["log_evidence"]) / math.log(2), abs=1e-9)

    found = posteriors.contributions(one, {**asked, "target": target, "state": 0})
    odds = lambda p: math.log(p / (1 - p))  # noqa: E731
    full = odds(truth.marginal(target)[0])
    pieces = {v: {v: 1}, w: {w: 0}, u: {u: np.array(likelihood)}}
    assert {row["variable"] for row in found["rows"]} == set(pieces)
    for row in found["rows"]:
        rest = {k: x for piece in pieces if piece != row["variable"] for k, x in pieces[piece].items()}
        assert row["given_others"] == pytest.approx(full - odds(brute(one.graph, rest).marginal(target)[0]), abs=1e-8)
        alone = brute(one.graph, pieces[row["variable"]]).marginal(target)[0]
        assert row["by_itself"] == pytest.approx(odds(alone) - odds(prior.marginal(target)[0]), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_best", [1, 3])
def test_the_best_after_interventions(seed: int, n_best: int):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 5)
    one = network(net)
    done = net.do({"v1": 0})
    truth = brute(done.compile(), {3: 1})
    asked = {"evidence": {"do": {"1": 0}, "states": {"3": 1}}, "n_best": n_best}
    found = studies.best(one, asked)
    scores = [x["score"] for x in found["solutions"]]
    np.testing.assert_allclose(scores, truth.n_best(n_best), atol=1e-9)
    for solution in found["solutions"]:
        assert solution["log_probability"] == pytest.approx(solution["score"] - truth.log_partition, abs=1e-9)
    some = studies.best(one, {**asked, "n_best": 1, "variables": [0, 4]})
    value, assignments = truth.marginal_map([0, 4])
    assert some["solutions"][0]["score"] == pytest.approx(value, abs=1e-9)
    assert tuple(int(some["solutions"][0]["states"][v]) for v in (0, 4)) in assignments


@pytest.mark.parametrize("seed", range(5))
def test_the_tornado_counts_likelihoods_and_interventions(seed: int):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    one = network(net)
    target, seen, soft, done = rng.permutation(6)[:4].tolist()
    likelihood = rng.uniform(0.1, 1, one.cardinalities[soft])
    # A second one on the target itself.
    own = rng.uniform(0.1, 1, one.cardinalities[target])
    world = net.do({f"v{done}": 0})
    evidence = {"states": {str(seen): 1}, "do": {str(done): 0},
                "likelihoods": {str(soft): likelihood.tolist(), str(target): own.tolist()}}  # fmt: skip
    found = studies.tornado(one, {"evidence": evidence, "target": target, "state": 1, "count": 40})
    known = {seen: 1, soft: likelihood, target: own}
    assert found["probability"] == pytest.approx(brute(world.compile(), known).marginal(target)[1], abs=1e-10)
    assert found["rows"] and all(0 <= row["variable"] < one.n and 0 < row["entry"] < 1 for row in found["rows"])
    for row in found["rows"]:
        # The same row of the table with this entry moved, the others in proportion.
        name = one.names[row["variable"]]
        given = tuple(int(row["given"][str(parent)]) for parent in world.parents(name))
        for value, expected in zip(row["entries"], (row["low"], row["high"]), strict=True):
            table = np.array(world.cpt(name))
            k = int(row["state"])
            assert table[given][k] == pytest.approx(row["entry"])
            rest = 1 - table[given][k]
            table[given] *= (1 - value) / rest if rest > 0 else 0
            table[given][k] = value
            moved = world.copy()
            moved.add_cpt(name, list(world.parents(name)), table)
            assert brute(moved.compile(), known).marginal(target)[1] == pytest.approx(expected, abs=1e-9)


def test_the_tornado_leaves_out_what_is_certain():
    found = studies.tornado(network(mf.datasets.asia()), {"target": 3, "state": 0, "evidence": {"states": {"6": 1}}})
    assert len(found["rows"]) >= 5 and all(0 < row["entry"] < 1 for row in found["rows"])


def test_a_long_way_that_is_blocked_is_told():
    net = mf.BayesianNetwork({f"v{i}": 2 for i in range(13)})
    for i in range(13):
        parents = [f"v{i - 1}"] if 0 < i < 7 else [f"v{i + 1}"] if 6 < i < 12 else []
        parents = ["v5", "v7"] if i == 6 else parents
        net.add_cpt(f"v{i}", parents, np.full((2,) * (len(parents) + 1), 0.5))
    found = separation.separation(network(net), {"a": [0], "b": [12]})
    assert found["separated"] and found["paths"][0]["nodes"] == list(range(13))
    assert "neither v6 nor a descendant of it is given" in found["paths"][0]["why"][0]


def test_structure_after_interventions():
    asia = mf.datasets.asia()
    one = network(asia)
    at = {name: v for v, name in enumerate(one.names)}
    asked = {"evidence": {"do": {str(at["either"]): 0}}}
    married = structure.drawing(one, {"moral": True})["married"]
    assert {frozenset(pair) for pair in married} >= {frozenset((at["lung"], at["tub"]))}
    after = structure.drawing(one, {**asked, "moral": True})["married"]
    assert frozenset((at["lung"], at["tub"])) not in {frozenset(pair) for pair in after}
    cliques = structure.junction_tree(one, asked)["cliques"]
    expected = structure.junction_tree(network(asia.do({"either": one.states(at["either"])[0]})), {})["cliques"]
    assert cliques == expected != structure.junction_tree(one, {})["cliques"]
    assert structure.elimination(one, {**asked, "order": "min_fill"})["fill"] == 0
    assert structure.elimination(one, {"order": "min_fill"})["fill"] == 1
    blanket = structure.neighbourhood(one, {**asked, "variable": at["lung"], "hops": "blanket"})["nodes"]
    assert set(blanket) == {at["lung"], at["smoke"]}


def test_rankings_say_what_they_promise():
    one = network(mf.datasets.asia())
    assert studies.observe_next(one, {"target": 3})["guarantee"] == "exact"
    # Everything beside everything: no tree fits.
    dense = mf.MarkovNetwork({f"v{v}": 2 for v in range(40)})
    dense.add_factors([[f"v{a}", f"v{b}"] for b in range(40) for a in range(b)], [[1.02, 1.0], [1.0, 1.02]])
    wide = network(dense)
    assert wide.tree is None
    best = studies.best(wide, {"n_best": 3})
    assert best["refused"] and len(best["solutions"]) == 1 and best["solutions"][0]["log_probability"] is None
    assert not studies.best(one, {"n_best": 3})["refused"]
    told = studies.observe_next(wide, {"target": 3, "evidence": {"likelihoods": {"1": [0.2, 1.0]}}})
    assert told["guarantee"] == "approximate" and told["ranked"] == 39
    with pytest.raises(ModelError, match="sensitivity needs a Bayesian network"):
        studies.tornado(wide, {"target": 3, "state": 0, "evidence": {"likelihoods": {"1": [0.2, 1.0]}}})


def test_interventions_differ_from_observations_and_keep_plans():
    one = network(mf.datasets.sprinkler())
    seen = posteriors.posteriors(one, {"evidence": {"states": {"1": 1}}})
    done = posteriors.posteriors(one, {"evidence": {"do": {"1": 1}}})
    assert abs(seen["values"][0] - done["values"][0]) > 0.1
    assert one.after({1: 1}) is one.after({1: 1})
    with pytest.raises(ModelError, match="needs a Bayesian network"):
        posteriors.posteriors(network(mf.Ising((2, 2), 0.3)), {"evidence": {"do": {"1": 1}}})


@pytest.mark.parametrize("method", ["auto", "belief_propagation", "tree_reweighted", "mean_field", "gibbs", "sandwich"])
def test_approximate_answers_keep_their_promise(method: str):
    one = network(mf.Ising((3, 3), 0.3, field=0.1))
    exact = brute(one.graph, {0: 1})
    told = posteriors.posteriors(one, {"evidence": {"states": {"0": 1}}, "method": method})
    low, high = told["bounds"]
    assert low <= exact.log_partition + 1e-9 and high >= exact.log_partition - 1e-9
    if method == "gibbs":
        assert len(told["standard_errors"]) == len(told["values"])
        error = np.abs(told["values"] - np.concatenate(exact.marginals))
        assert np.all(error <= 8 * np.asarray(told["standard_errors"]) + 1e-3)
    assert told["method"] != "" and told["guarantee"] in ("exact", "upper", "lower", "approximate")


def active(dag: nx.DiGraph, path: tuple[int, ...], given: set[int]) -> bool:
    """By the definition: each node between two arrowheads is given or above a given one, no other is given."""
    for left, v, right in zip(path, path[1:], path[2:], strict=False):
        collides = dag.has_edge(left, v) and dag.has_edge(right, v)
        if (not ({v} | nx.descendants(dag, v)) & given) if collides else v in given:
            return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_all_active_paths_are_found(seed: int):
    rng = np.random.default_rng(seed)
    one = network(random_network(rng, 6))
    for _ in range(10):
        a, b, c, d, e, f = rng.permutation(6).tolist()
        given = [c, d][: int(rng.integers(0, 3))]
        # An intervention is given and loses its parents; what has likelihoods has a child that is given.
        do, soft = ([x] if rng.random() < 0.4 else [] for x in (e, f))
        dag = one.dag.copy()
        dag.remove_edges_from([(u, v) for u, v in one.dag.edges if v in do])
        dag.add_edges_from((v, 6 + v) for v in soft)
        seen, near = {*given, *do, *(6 + v for v in soft)}, dag.to_undirected()
        paths = {
            (a, *inner, b)
            for k in range(5)
            for inner in permutations(set(range(6)) - {a, b}, k)
            if all(near.has_edge(x, y) for x, y in zip((a, *inner), (*inner, b), strict=True))
        }
        expected = {p for p in paths if active(dag, p, seen)}
        likelihoods = {str(v): [0.5] + [1.0] * (one.cardinalities[v] - 1) for v in soft}
        evidence = {"do": {str(v): 0 for v in do}, "likelihoods": likelihoods}
        told = separation.separation(one, {"a": [a], "b": [b], "given": given, "evidence": evidence})
        found = {tuple(p["nodes"]) for p in told["paths"]}
        assert told["separated"] == (not expected) == nx.is_d_separator(dag, {a}, {b}, seen)
        assert ("after do(" in told["statement"], "likelihoods" in told["statement"]) == (bool(do), bool(soft))
        if told["separated"]:
            assert found <= paths
            assert all(p["why"] for p in told["paths"])
        else:
            assert found == expected if len(expected) <= separation.MOST_PATHS else found <= expected
            lengths = [len(p["nodes"]) for p in told["paths"]]
            assert lengths == sorted(lengths)


def test_what_is_set_is_not_asked_for_its_causes():
    asia = network(mf.datasets.asia())
    evidence = {"do": {"3": 1}}
    told = structure.blanket(asia, {"variable": 3, "evidence": evidence})
    assert told == {"blanket": [1, 5], "parents": [], "children": [5], "spouses": [1]}
    # What lies behind it is a consequence: paths out of it count, those into it do not.
    assert not separation.separation(asia, {"a": [3], "b": [6], "evidence": evidence})["separated"]
    assert separation.separation(asia, {"a": [3], "b": [2], "evidence": evidence})["separated"]


def test_answers_without_a_prior_and_plans_of_a_method():
    asia = network(mf.datasets.asia())
    asked = {"evidence": {"states": {"3": 1}}, "method": "gibbs"}
    # Hard zeros join tub and either while nothing is observed, so that this method has no answer then.
    with pytest.raises(ModelError, match="hard zeros keep gibbs"):
        posteriors.posteriors(asia, {"method": "gibbs"})
    told = posteriors.posteriors(asia, asked)
    assert told["log_evidence"] is None and told["conflict"] is None
    assert np.max(np.abs(told["values"] - np.concatenate(brute(asia.graph, {3: 1}).marginals))) < 0.1
    assert studies.plan(asia, asked)["method"] == "gibbs"
    assert studies.plan(asia, {**asked, "verb": "decode"})["method"] != "gibbs"


def test_separation_says_what_is_wrong():
    one = network(mf.datasets.sprinkler())
    for asked, message in [
        ({"a": [], "b": [1]}, "pick at least one variable"),
        ({"a": [0], "b": [0]}, "is in A and among B"),
        ({"a": [0], "b": [1], "given": [1]}, "is in B and among the given ones"),
        ({"a": 1, "b": [1]}, "a is a list of variables' numbers"),
        ({"a": [99], "b": [1]}, "is a number from 0 to 3, got 99"),
    ]:
        with pytest.raises(ModelError, match=message):
            separation.separation(one, asked)
    undirected = network(mf.Ising([(0, 1), (1, 2)], 0.4))
    told = separation.separation(undirected, {"a": [0], "b": [2], "given": [1]})
    assert told["separated"] and "so nothing passes" in told["paths"][0]["why"][0]
    assert not separation.separation(undirected, {"a": [0], "b": [2]})["separated"]


def test_drawings_and_neighbourhoods():
    one = network(mf.datasets.asia())
    whole = structure.drawing(one, {})
    assert len(whole["centres"]) == 8 and whole["beyond"] == [0] * 8 and len(whole["curves"]) == len(whole["edges"])
    for (x, y), (w, h) in zip(whole["centres"], whole["sizes"], strict=True):
        assert (
            w / 2 - 1e-6 <= x <= whole["width"] - w / 2 + 1e-6 and h / 2 - 1e-6 <= y <= whole["height"] - h / 2 + 1e-6
        )
    part = structure.neighbourhood(one, {"variable": 5, "hops": 1})
    assert part["nodes"][0] == 5 and set(part["nodes"]) == {5, *one.primal_of_arcs.neighbors(5)}
    drawn = structure.drawing(one, {"nodes": part["nodes"], "style": "bars", "layout": "force", "moral": True})
    assert sum(drawn["beyond"]) > 0 and drawn["curves"] is None
    opened = structure.neighbourhood(one, {"variable": 5, "hops": 1, "most": 2, "opened": [7]})
    assert set(opened["nodes"]) >= {5, 7, *one.primal_of_arcs.neighbors(7)}
    blanket = structure.neighbourhood(one, {"variable": 5, "hops": "blanket"})["nodes"]
    assert set(blanket) == {5, *mf.graphs.markov_blanket(one.dag, 5)}
    assert len(structure.moral_edges(one)) == 2
    assert structure.drawing(one, {}) is whole
    for asked, message in [
        ({"style": "x"}, "style must be 'names' or 'bars'"),
        ({"layout": "x"}, "layout must be one of layered, force, grid"),
        ({"layout": "grid"}, "only models of a lattice"),
        ({"nodes": []}, "a drawing has 1 to"),
    ]:
        with pytest.raises(ModelError, match=message):
            structure.drawing(one, asked)
    with pytest.raises(ModelError, match="hops is 'blanket' or a number from 1 to 99"):
        structure.neighbourhood(one, {"variable": 5, "hops": 0})


def test_a_lattice_is_drawn_as_one():
    one = network(mf.Potts((3, 5), 3, 0.4))
    told = structure.drawing(one, {"layout": "grid"})
    at = np.array(told["centres"]).reshape(3, 5, 2)
    assert np.all(np.diff(at[:, :, 0], axis=1) > 0) and np.ptp(at[:, :, 0], axis=0).max() < 1e-9
    assert np.all(np.diff(at[:, :, 1], axis=0) > 0) and np.ptp(at[:, :, 1], axis=1).max() < 1e-9
    assert network(mf.Ising([(0, 1)], 0.3)).grid is None


def test_junction_trees_and_elimination():
    rng = np.random.default_rng(1)
    one = network(random_network(rng, 7))
    tree = structure.junction_tree(one, {})
    cliques = [set(c) for c in tree["cliques"]]
    for f in range(one.graph.n_factors):
        assert any(set(one.graph.structure.scope(f).tolist()) <= c for c in cliques)
    assert [set(s) for s in tree["separators"]] == [cliques[a] & cliques[b] for a, b in tree["edges"]]
    assert tree["states"] == [math.prod(one.cardinalities[v] for v in c) for c in tree["cliques"]]
    for order in structure.ORDERS:
        told = structure.elimination(one, {"order": order})
        assert sorted(step["variable"] for step in told["steps"]) == list(range(7))
        # The graph with the filled edges is chordal.
        graph = one.primal.copy()
        graph.add_edges_from(edge for step in told["steps"] for edge in step["fill"])
        assert nx.is_chordal(graph) and told["width"] == nx.chordal_graph_treewidth(graph)


@pytest.mark.parametrize("algebra", ["sum", "max"])
def test_messages_of_a_tree_are_exact(algebra: str):
    rng = np.random.default_rng(2)
    cards = rng.integers(2, 4, 6)
    net = mf.MarkovNetwork({f"v{i}": int(card) for i, card in enumerate(cards)})
    for i in range(1, 6):
        other = int(rng.integers(0, i))
        net.add_factor([f"v{other}", f"v{i}"], rng.gamma(1, size=(cards[other], cards[i])))
    one = network(net)
    told = messages.messages(one, {"algebra": algebra, "evidence": {"states": {"2": 1}}})
    truth = brute(one.graph, {2: 1})
    assert told["forest"] and told["converged"]
    for v in range(6):
        if algebra == "sum":
            expected = truth.marginal(v)
        else:
            best = np.asarray(truth.max_marginal(v), np.float64)
            expected = np.exp(best - best.max())
        np.testing.assert_allclose(told["steps"][-1]["beliefs"][v], expected, atol=1e-10)


def test_code_and_names():
    subject = Subject(mf.datasets.sprinkler())
    one = network_of(subject)
    text = exports.code(
        subject, one, {"evidence": {"states": {"3": 1}, "do": {"1": 0}}, "target": 2, "method": "gibbs"}
    )
    assert "model.do({'sprinkler': " in text["code"] and "method='gibbs'" in text["code"]
    net = mf.BayesianNetwork({"a": [np.str_("x"), np.str_("\u202ey")]})
    net.add_cpt("a", [], [0.5, 0.5])
    written = exports.code(Subject(net), network(net), {"evidence": {"states": {"0": 1}}})["code"]
    assert "evidence = {'a': '\\u202ey'}" in written
    assert shown("a\x00\u2066b") == "a␀\ufffdb" and shown((0, 1)) == "(0, 1)"


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ([], 'evidence is an object with "states"'),
        ({"states": []}, 'evidence is an object with "states"'),
        ({"states": {"9": 0}}, "a variable is a number from 0 to 3"),
        ({"states": {"0": 2}}, "a state of 'cloudy' is a number from 0 to 1, got 2"),
        ({"states": {"0": True}}, "a state of 'cloudy' is a number"),
        ({"likelihoods": {"0": "x"}}, "the likelihood of variable 'cloudy' is a list of numbers"),
        ({"likelihoods": {"0": [1, "1"]}}, "the likelihood of variable 'cloudy' is a list of numbers"),
        ({"likelihoods": {"0": [1, 1]}, "states": {"0": 0}}, "has a state and likelihoods as evidence"),
        ({"states": {"9" * 5000: 0}}, "a variable is a number from 0 to 3, got '999"),
    ],
)
def test_evidence_that_is_none_gives_a_sentence(evidence: Any, message: str):
    one = network(mf.datasets.sprinkler())
    asked = {"evidence": evidence} if evidence else {"evidence": [0]}
    with pytest.raises(ModelError, match=message):
        posteriors.posteriors(one, asked)


def test_other_sentences():
    one = network(mf.datasets.asia())
    for ask, asked, message in [
        (posteriors.posteriors, {"method": "x"}, "method must be one of auto"),
        (studies.best, {"n_best": 0}, "n_best is a number from 1 to 20"),
        (studies.best, {"n_best": 2, "variables": [1]}, "n best are assignments of all variables"),
        (studies.best, {"variables": [1], "evidence": {"states": {"1": 0}}}, "'tub' is observed: pick variables"),
        (studies.tornado, {"target": 1, "state": 0, "factor": 1}, "factor is a number above 1"),
        (studies.tornado, {"target": 1, "state": 0, "evidence": {"states": {"1": 0}}}, "is observed: nothing can"),
        (studies.plan, {"verb": "x"}, "verb must be one of marginals"),
        (structure.elimination, {"order": "x"}, "order must be one of"),
        (messages.messages, {"algebra": "x"}, "algebra must be 'sum' or 'max'"),
        (messages.residuals, {"damping": 1}, "damping is a number from 0"),
    ]:
        with pytest.raises(ModelError, match=message):
            ask(one, asked)
    with pytest.raises(ImpossibleEvidenceError):
        posteriors.posteriors(one, {"evidence": {"states": {"3": 1, "5": 0}}})


def test_drawings_are_not_kept_for_ever():
    one = network(mf.datasets.alarm_like())
    for v in range(one.n):
        for hops in (1, 2):
            structure.drawing(one, {"nodes": structure.neighbourhood(one, {"variable": v, "hops": hops})["nodes"]})
    assert len(one.drawings) <= MOST_DRAWINGS
    memory = Memory(2)
    made: list[int] = []
    for key in (1, 2, 1, 3, 1, 2):
        memory.kept(key, lambda key=key: made.append(key) or key)
    assert made == [1, 2, 3, 2] and len(memory) == 2


def test_known_knows_its_parts():
    known = Known({1: 0}, {2: [1.0, 0.5]}, {3: 1})
    assert len(known) == 2 and known.without(1) == Known({}, {2: [1.0, 0.5]}, {3: 1})
    assert known.only({1}) == Known({1: 0}, {}, {3: 1})


@pytest.mark.parametrize("suffix", ["bif", "bif.gz", "uai", "wcsp"])
def test_files_of_every_format(tmp_path: Path, suffix: str):
    net = random_network(np.random.default_rng(7), 5)
    path = tmp_path / f"model.{suffix}"
    if suffix == "wcsp":
        path.write_text("small 3 2 2 100\n2 2 2\n2 0 1 0 2\n0 1 3\n1 0 1\n2 1 2 1 1\n1 1 0\n")
    else:
        mf.write(net, path)
    one = network(str(path))
    told = posteriors.posteriors(one, {"evidence": {"states": {"1": 1}}})
    np.testing.assert_allclose(told["values"], np.concatenate(brute(one.graph, {1: 1}).marginals), atol=1e-10)
    described = structure.describe(one, ["auto"])
    assert len(described["variables"]) == one.n and described["directed"] == suffix.startswith("bif")


def test_many_tabs_at_once_get_their_own_answers():
    net = mf.datasets.alarm_like()
    one, rng = network(net), np.random.default_rng(0)
    prior = posteriors.posteriors(one, {})["values"]
    offsets = np.concatenate([[0], np.cumsum(one.cardinalities)])
    asked: list[dict[str, Any]] = [{}]
    for _ in range(24):
        some = rng.choice(one.n, 2, replace=False).tolist()
        likely = {str(v): int(np.argmax(prior[offsets[v] : offsets[v + 1]])) for v in some}
        asked.append({"evidence": {rng.choice(["states", "do"]): likely}})
    one_by_one = [posteriors.posteriors(network(net), x)["values"] for x in asked]
    with ThreadPoolExecutor(8) as workers:
        at_once = list(workers.map(lambda x: posteriors.posteriors(one, x)["values"], asked * 4))
    for found, expected in zip(at_once, one_by_one * 4, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("style", ["names", "bars"])
def test_no_box_lies_on_another_in_drawings_by_distance(style: str):
    rng = np.random.default_rng(4)
    net = mf.MarkovNetwork(
        {f"variable {'x' * int(rng.integers(0, 12))} {v}": int(rng.integers(2, 9)) for v in range(90)}
    )
    graph = net.compile()
    names, cards = list(graph.variables), graph.structure.cardinalities.tolist()
    for a, b in rng.integers(0, 90, (160, 2)).tolist():
        if a != b:
            net.add_factor([names[a], names[b]], np.ones((cards[a], cards[b])))
    found = structure.drawing(network(net), {"layout": "force", "style": style})
    at, size = np.array(found["centres"]), np.array(found["sizes"])
    over = (size[:, None] + size) / 2 - np.abs(at[:, None] - at)
    assert not np.triu((over > 0).all(axis=2), 1).any()
    assert ((at - size / 2) >= 0).all() and ((at + size / 2) <= [found["width"], found["height"]]).all()


def test_boxes_in_one_place_are_parted():
    placed, (width, height) = apart([(0.0, 0.0)] * 30, [(40.0, 20.0)] * 30)
    at = np.array(placed)
    over = np.array([40.0, 20.0]) - np.abs(at[:, None] - at)
    assert not np.triu((over > 0).all(axis=2), 1).any()
    assert max(width, height) < 30 * 60
    assert apart([], [])[0] == []
