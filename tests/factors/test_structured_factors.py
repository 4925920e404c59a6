"""Noisy-or and noisy-max factors: their tables, and inference that never builds them, against brute force."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
import markovfield.io as mio
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE
from markovfield.factors.structure import Structure
from markovfield.factors.to_tables import noisy_max_counts, noisy_max_scores, noisy_max_table
from markovfield.inference.junction_tree import noisy_max as latent_decoding
from tests.oracle import Oracle

METHODS = ["enumeration", "junction_tree", "variable_elimination"]


def brute_table(blocks: list[np.ndarray], leak: np.ndarray) -> np.ndarray:
    """Sum over every combination of contributions, straight from the definition."""
    k = len(leak)
    table = np.zeros([*(len(b) for b in blocks), k])
    for states in product(*(range(len(b)) for b in blocks)):
        for drawn in product(range(k), repeat=len(blocks) + 1):
            p = leak[drawn[-1]] * np.prod([b[x, z] for b, x, z in zip(blocks, states, drawn, strict=False)])
            table[(*states, max(drawn))] += p
    return table


def rows(rng: np.random.Generator, n: int, k: int, zeros: float = 0.25) -> np.ndarray:
    """Random distributions with some hard zeros."""
    table = rng.dirichlet(np.ones(k), n) * (rng.random((n, k)) >= zeros)
    table[table.sum(axis=1) == 0, 0] = 1.0
    return table / table.sum(axis=1, keepdims=True)


def random_network(seed: int, n: int = 6) -> tuple[mf.BayesianNetwork, Oracle, dict[int, object]]:
    """A network of tables and noisy-max factors, evidence by position, and brute force over it under the evidence."""
    rng = np.random.default_rng(seed)
    cards = rng.choice([1, 2, 2, 3, 4], n).tolist()
    net = mf.BayesianNetwork(dict(enumerate(cards)))
    factors = []
    for v, k in enumerate(cards):
        parents = rng.permutation(v)[: rng.integers(0, 4)].tolist()
        if parents and rng.random() < 0.7:
            blocks = [rows(rng, cards[p], k) for p in parents]
            leak = rows(rng, 1, k)[0] if rng.random() < 0.7 else None
            net.add_noisy_max(v, parents, blocks, leak)
            table = brute_table(blocks, np.eye(k)[0] if leak is None else leak)
        else:
            shape = [cards[p] for p in parents]
            table = rows(rng, int(np.prod(shape, initial=1)), k).reshape([*shape, k])
            net.add_cpt(v, parents, table)
        with np.errstate(divide="ignore"):
            factors.append(((*parents, v), np.log(table)))
    evidence: dict[int, object] = {}
    for v, k in enumerate(cards):
        what = rng.integers(0, 8)
        if what == 0:
            evidence[v] = int(rng.integers(k))
        elif what == 1:
            evidence[v] = rng.random(k)
    return net, Oracle(cards, factors, evidence), evidence


@pytest.fixture(params=["tree", "bounds"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to decode: summing the contributions in a tree, and bounding their sums."""
    if request.param == "bounds":
        monkeypatch.setattr(latent_decoding, "TREE_BITS", -1.0)
    return str(request.param)


def logs(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


class TestArrays:
    @pytest.mark.parametrize("seed", range(6))
    def test_table_and_scores(self, seed: int):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 5))
        blocks = [rows(rng, int(rng.integers(1, 4)), k) for _ in range(rng.integers(0, 4))]
        leak = rows(rng, 1, k)[0]
        expected = brute_table(blocks, leak)
        found = noisy_max_table([logs(b) for b in blocks], logs(leak))
        np.testing.assert_allclose(np.exp(found).reshape(expected.shape), expected, atol=1e-14)
        states = np.argwhere(np.ones(expected.shape, bool))
        scores = noisy_max_scores([logs(b) for b in blocks], logs(leak), states)
        np.testing.assert_allclose(np.exp(scores), expected.ravel(), atol=1e-14)

    def test_small_differences_survive(self):
        """1 - (1 - 1e-18)^2 would be zero as a difference."""
        block = logs(np.array([[1.0, 0.0], [1.0, 1e-18]]))
        table = noisy_max_table([block, block], logs(np.array([1.0, 0.0])))
        assert np.exp(table[3, 1]) == pytest.approx(2e-18)

    @pytest.mark.parametrize("seed", range(4))
    def test_counts_are_the_gradient(self, seed: int):
        """Expected counts: the derivative of a weighted sum of log-table entries by the logs of the cells."""
        rng = np.random.default_rng(seed)
        k, cards = 3, (2, 3, 2)
        cells = rng.normal(size=sum(cards) * k + k)
        weights = rng.dirichlet(np.ones(int(np.prod(cards)) * k)).reshape(-1, k)

        def split(x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
            at = np.cumsum([0, *(c * k for c in cards)])
            return [x[a : a + c * k].reshape(c, k) for a, c in zip(at, cards, strict=False)], x[at[-1] :]

        found, leak = noisy_max_counts(*split(cells), weights)
        ours = np.concatenate([*(b.ravel() for b in found), leak])
        for i in range(len(cells)):
            step = np.zeros(len(cells))
            step[i] = 1e-6
            up, down = (float((weights * noisy_max_table(*split(cells + s))).sum()) for s in (step, -step))
            assert ours[i] == pytest.approx((up - down) / 2e-6, abs=1e-8)


class TestStructure:
    def test_shared_blocks(self):
        """Three parents read the same block; the pool holds it once."""
        block, leak = np.array([[1.0, 0.0], [0.3, 0.7]]), np.array([0.9, 0.1])
        s = Structure.from_arrays(
            [2, 2, 2, 2], [0, 4], [0, 1, 2, 3], [0], [2, 2, 2, 0], n_cells=6, child=[3], kind=[NOISY_MAX]
        )
        graph = FactorGraph(s, logs(np.concatenate([leak, block.ravel()])))
        np.testing.assert_allclose(np.exp(graph.table(0)), brute_table([block] * 3, leak), atol=1e-15)
        together = FactorGraph.union([graph, graph])
        np.testing.assert_allclose(together.table(1), graph.table(0))
        assert together.score(np.ones(8, int)) == pytest.approx(2 * graph.score(np.ones(4, int)))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"scopes": [0, 0, 1], "child": [1]}, "noisy-max, in which a variable may occur only once"),
            ({"child": [0]}, "noisy-max, whose scope must end with its child"),
            ({"scope_offsets": [0, 0], "scopes": [], "table_strides": [], "child": [-1]}, "must end with its child"),
            ({"n_cells": 9}, "factor 0 reads cells 0 to 9 of a pool of 9"),
            ({"table_strides": [-1, 4, 8]}, "factor 0 reads cells -1 to 9"),
            ({"kind": [6]}, "is of kind 6, which there is not"),
        ],
    )
    def test_refusals(self, changes: dict, message: str):
        arguments = {
            "cardinalities": [2, 2, 2],
            "scope_offsets": [0, 3],
            "scopes": [0, 1, 2],
            "table_offsets": [0],
            "table_strides": [0, 4, 8],
            "n_cells": 10,
            "child": [2],
            "kind": [NOISY_MAX],
        }
        Structure.from_arrays(**arguments)
        with pytest.raises(mf.ModelError, match=message):
            Structure.from_arrays(**(arguments | changes))

    def test_in_plain_tables(self):
        net, _, _ = random_network(3)
        graph = net.compile()
        assert graph.structure.has_latent
        as_tables = graph.to_tables()
        s, own = as_tables.structure, graph.structure
        assert as_tables is graph.to_tables() and (s.kind == TABLE).all()
        # Still directed: one distribution for each variable, the auxiliary ones too.
        assert sorted(s.child.tolist()) == list(range(s.n_variables))
        assert s.cardinalities[: own.n_variables].tolist() == own.cardinalities.tolist()
        np.testing.assert_array_equal(as_tables.log_tables[: own.n_cells], graph.log_tables)
        assert not mf.MarkovNetwork({"A": 2}).compile().structure.has_latent

    def test_a_factor_without_a_child_gives_no_marks(self):
        net, _, _ = random_network(3)
        plain = net.to_markov_network().compile()
        assert (plain.structure.child == -1).all() and (plain.to_tables().structure.child == -1).all()

    def test_large_tables_are_refused(self):
        net = mf.BayesianNetwork(dict.fromkeys(range(31), 2))
        net.add_noisy_or(30, range(30), [0.5] * 30)
        for i in range(30):
            net.add_cpt(i, [], [0.5, 0.5])
        graph = net.compile()
        with pytest.raises(mf.ModelError, match="factor 30, a noisy-max of 31 variables, has 2147483648 cells"):
            graph.table(30)
        with pytest.raises(mf.ModelError, match="the noisy-max 30 has 2147483648 cells, more than 16777216"):
            net.cpt(30)
        with pytest.raises(mf.ModelError, match="whose table is not made of cells"):
            graph.cells(30)
        with pytest.raises(mf.ModelError, match="factor 0 is no noisy-max"):
            graph.noisy_max(0)


@pytest.mark.parametrize("seed", range(25))
class TestInference:
    def test_marginals_and_counts(self, seed: int):
        net, oracle, evidence = random_network(seed)
        counts = []
        for method in METHODS:
            if oracle.impossible:
                with pytest.raises(mf.ImpossibleEvidenceError):
                    mf.marginals(net, evidence, method=method)
                continue
            answer = mf.marginals(net, evidence, method=method)
            assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
            for v in net.variables:
                np.testing.assert_allclose(answer[v], oracle.marginal(v), atol=1e-9)
            counts.append(answer.expected_counts)
        for other in counts[1:]:
            np.testing.assert_allclose(other, counts[0], atol=1e-9)
        if counts:
            # Every parent in state x contributes something: its row of counts adds up to the probability of x.
            graph = net.compile()
            for f in np.flatnonzero(graph.structure.kind == NOISY_MAX).tolist():
                s = graph.structure
                k, base = int(s.cardinalities[f]), int(s.table_offsets[f])
                for v, start in zip(s.scope(f)[:-1].tolist(), s.strides(f).tolist(), strict=False):
                    at = base + start
                    block = counts[0][at : at + k * int(s.cardinalities[v])].reshape(-1, k)
                    np.testing.assert_allclose(block.sum(axis=1), oracle.marginal(v), atol=1e-9)

    def test_decoding(self, seed: int, decoder: str):
        net, oracle, evidence = random_network(seed)
        for method in METHODS:
            if oracle.impossible:
                with pytest.raises(mf.ImpossibleEvidenceError):
                    mf.decode(net, evidence, method=method)
                continue
            answer = mf.decode(net, evidence, n_best=6, method=method)
            np.testing.assert_allclose([s.score for s in answer.n_best], oracle.n_best(6), atol=1e-9)
            for solution in answer.n_best:
                states = [solution.assignment[v] for v in net.variables]
                assert oracle.score(states) == pytest.approx(solution.score, abs=1e-9)
            assert len({tuple(s.assignment.values()) for s in answer.n_best}) == len(answer.n_best)
            some = list(net.variables)[::2]
            part = mf.decode(net, evidence, variables=some, method=method)
            assert part.score == pytest.approx(oracle.marginal_map(some)[0], abs=1e-9)

    def test_max_marginals(self, seed: int, decoder: str):
        net, oracle, evidence = random_network(seed)
        if oracle.impossible:
            return
        for method in METHODS:
            maxima = mf.marginals(net, evidence, method=method).max_marginals
            for v in net.variables:
                np.testing.assert_allclose(maxima[v], oracle.max_marginal(v), atol=1e-9)

    def test_scores_and_round_trips(self, seed: int):
        net, oracle, evidence = random_network(seed)
        graph = net.compile()
        unseen = Oracle(oracle.cardinalities, oracle.factors)
        np.testing.assert_allclose(graph.score(unseen.states), unseen.scores.astype(float), atol=1e-9)
        again = mf.BayesianNetwork.from_factor_graph(graph)
        assert again.compile() is graph
        for v in net.variables:
            np.testing.assert_allclose(again.cpt(v), net.cpt(v), atol=1e-14)
            np.testing.assert_allclose(np.exp(oracle.factors[v][1].astype(float)), net.cpt(v), atol=1e-12)
        fresh = again.copy()
        fresh._compiled = None
        np.testing.assert_array_equal(fresh.compile().structure.kind, graph.structure.kind)
        markov = mf.MarkovNetwork.from_factor_graph(graph)
        if not oracle.impossible:
            value = mf.log_partition(markov, evidence, method="junction_tree")
            assert float(value) == pytest.approx(oracle.log_partition, abs=1e-9)


def noisy_or(n: int, *, leak: float, seed: int = 0) -> tuple[mf.BayesianNetwork, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    prior, strength = rng.uniform(0.02, 0.45, n), rng.uniform(0.1, 0.95, n)
    net = mf.BayesianNetwork({**{f"x{i}": 2 for i in range(n)}, "y": 2})
    for i in range(n):
        net.add_cpt(f"x{i}", [], [1 - prior[i], prior[i]])
    net.add_noisy_or("y", [f"x{i}" for i in range(n)], strength, leak=leak)
    return net, prior, strength


class TestThirtyParents:
    """Parents are independent, so everything has a closed form."""

    net, prior, strength = noisy_or(30, leak=0.001)
    off = (1 - 0.001) * float(np.prod(1 - prior * strength))

    def test_log_partition_and_marginals(self):
        for state, p in ((0, self.off), (1, 1 - self.off)):
            assert float(mf.log_partition(self.net, {"y": state})) == pytest.approx(np.log(p), abs=1e-12)
            answer = mf.marginals(self.net, {"y": state})
            assert answer.width <= 3
            for i in range(30):
                q = self.prior[i] * (1 - self.strength[i]) * self.off / (1 - self.prior[i] * self.strength[i])
                expected = q / self.off if state == 0 else (self.prior[i] - q) / (1 - self.off)
                assert answer[f"x{i}"][1] == pytest.approx(expected, abs=1e-12)
        assert mf.marginals(self.net)["y"][1] == pytest.approx(1 - self.off, abs=1e-12)

    def test_expected_counts(self):
        graph = self.net.compile()
        value, counts = mf.expected_counts(graph.structure, graph.log_tables, [-1] * 30 + [1])
        assert value == pytest.approx(np.log(1 - self.off), abs=1e-12)
        base = int(graph.structure.table_offsets[30])
        for i in range(30):
            # A parent that contributes "on" settles the child by itself.
            expected = self.prior[i] * self.strength[i] / (1 - self.off)
            assert counts[base + 4 * i + 3] == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("state", [None, 0, 1])
    def test_decode(self, state: int | None):
        """Sorted by what a parent costs, the best sets for "on" are found by looking at all of up to three parents."""
        best = -np.inf
        log_odds = np.log(self.prior) - np.log1p(-self.prior)
        none = float(np.log1p(-self.prior).sum())
        for size in range(4):
            for on in map(list, combinations(range(30), size)):
                silent = (1 - 0.001) * np.prod(1 - self.strength[on])
                score = none + log_odds[on].sum()
                for s in (0, 1) if state is None else (state,):
                    best = max(best, score + np.log(silent if s == 0 else 1 - silent))
        found = mf.decode(self.net, None if state is None else {"y": state})
        assert found.optimal and found.score == pytest.approx(best, abs=1e-9)
        assert self.net.compile().score(found.assignment) == pytest.approx(found.score, abs=1e-9)

    def test_sample(self):
        drawn = mf.sample(self.net, 20_000, {"y": 1}, rng=0)
        found, errors = drawn.frequencies("x3")
        assert (np.abs(found - mf.marginals(self.net, {"y": 1})["x3"]) < 5 * errors).all()


def test_twelve_parents_against_the_expanded_table():
    rng = np.random.default_rng(12)
    net = mf.BayesianNetwork({**dict.fromkeys(range(12), 2), "y": 3})
    for i in range(12):
        net.add_cpt(i, [], rng.dirichlet([1, 1]))
    blocks = [rows(rng, 2, 3) for _ in range(12)]
    net.add_noisy_max("y", range(12), dict(enumerate(blocks)), leak=[0.8, 0.15, 0.05])
    with np.errstate(divide="ignore"):
        factors = [((i,), np.log(net.cpt(i))) for i in range(12)] + [(range(13), np.log(net.cpt("y")))]
    for evidence in ({}, {12: 2}, {12: 1, 3: 0}, {12: np.array([0.1, 0.5, 1.0])}):
        oracle = Oracle([2] * 12 + [3], factors, evidence)
        named = {"y" if v == 12 else v: e for v, e in evidence.items()}
        answer = mf.marginals(net, named, method="junction_tree")
        assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
        for v, name in enumerate(net.variables):
            np.testing.assert_allclose(answer[name], oracle.marginal(v), atol=1e-9)
        decoded = mf.decode(net, named, n_best=10, method="junction_tree")
        np.testing.assert_allclose([s.score for s in decoded.n_best], oracle.n_best(10), atol=1e-9)


class TestArchive:
    @pytest.mark.parametrize("seed", range(4))
    def test_round_trip(self, seed: int, tmp_path: Path):
        net, _, _ = random_network(seed)
        for model in (net, net.compile(), net.to_markov_network()):
            mio.save(model, tmp_path / "model.mfz")
            again = mio.load(tmp_path / "model.mfz")
            assert type(again) is type(model)
            ours, theirs = again.compile(), model.compile()
            np.testing.assert_array_equal(ours.structure.kind, theirs.structure.kind)
            np.testing.assert_array_equal(ours.structure.table_strides, theirs.structure.table_strides)
            np.testing.assert_array_equal(ours.log_tables, theirs.log_tables)

    def test_thirty_parents_make_a_small_file(self, tmp_path: Path):
        mio.save(TestThirtyParents.net, tmp_path / "model.mfz")
        assert (tmp_path / "model.mfz").stat().st_size < 20_000
        assert mio.load(tmp_path / "model.mfz").parents("y") == TestThirtyParents.net.parents("y")

    @pytest.mark.parametrize(
        ("strides", "message"),
        [
            ([2**60, 4, 8], "a factor reads outside the pool"),
            ([0, 4, 9], "reads cells 0 to 10 of a pool of 10"),
        ],
    )
    def test_damaged(self, strides: list[int], message: str, tmp_path: Path):
        good = Structure.from_arrays(
            [2, 2, 2], [0, 3], [0, 1, 2], [0], [0, 4, 8], n_cells=10, child=[2], kind=[NOISY_MAX]
        )
        bad = Structure(
            good.cardinalities, good.scope_offsets, good.scopes, good.table_offsets, np.array(strides), 10,
            good.child, good.kind, good.names,
        )  # fmt: skip
        mio.save(FactorGraph(bad, np.zeros(10), marks_hold=True), tmp_path / "model.mfz")
        with pytest.raises(mf.FormatError, match=message):
            mio.load(tmp_path / "model.mfz")

    def test_a_network_larger_than_its_file(self, tmp_path: Path):
        """Forty parents share one block: as a network each would have its own."""
        n = 40
        s = Structure.from_arrays(
            [2] * (n + 1),
            [0, *range(1, n + 1), 2 * n + 1],
            [*range(n), *range(n + 1)],
            [0] * n + [2],
            [1] * n + [0] * n + [4],
            n_cells=8,
            child=range(n + 1),
            kind=[TABLE] * n + [NOISY_MAX],
        )
        tables = np.log([0.5, 0.5, 1.0, 1e-9, 0.5, 0.5, 0.5, 0.5])
        graph = FactorGraph(s, tables)
        net = mf.BayesianNetwork.from_factor_graph(graph)
        mio.save(net, tmp_path / "model.mfz")
        assert mio.load(tmp_path / "model.mfz").compile().structure.n_cells == 2 * n + 4 * n + 2
        net._compiled = graph
        mio.save(net, tmp_path / "model.mfz")
        with pytest.raises(mf.FormatError, match="tables are larger than its pool"):
            mio.load(tmp_path / "model.mfz")


class TestBounds:
    def test_both_ways_agree(self, monkeypatch: pytest.MonkeyPatch):
        """Small enough for a tree, decoded by bounds too: shared parents, two children observed."""
        rng = np.random.default_rng(5)
        net = mf.BayesianNetwork({**{f"x{i}": 2 for i in range(10)}, **{f"y{j}": 3 for j in range(3)}})
        for i in range(10):
            net.add_cpt(f"x{i}", [], rng.dirichlet([4, 1]))
        for j in range(3):
            chosen = [f"x{i}" for i in rng.permutation(10)[:7]]
            net.add_noisy_max(f"y{j}", chosen, [rows(rng, 2, 3, 0.0) for _ in chosen], rows(rng, 1, 3, 0.0)[0])
        for evidence in ({"y0": 2, "y1": 1}, {"y0": 0}, None):
            by_tree = mf.decode(net, evidence, n_best=20, method="junction_tree")
            monkeypatch.setattr(latent_decoding, "TREE_BITS", -1.0)
            by_bounds = mf.decode(net, evidence, n_best=20, method="junction_tree")
            monkeypatch.undo()
            np.testing.assert_allclose(
                [s.score for s in by_bounds.n_best], [s.score for s in by_tree.n_best], atol=1e-9
            )

    def test_too_many_sets(self, monkeypatch: pytest.MonkeyPatch):
        net, _, _ = noisy_or(30, leak=0.0)
        for i in range(30):
            net.add_cpt(f"x{i}", [], [0.6, 0.4])
        net.add_noisy_or("y", [f"x{i}" for i in range(30)], [0.05] * 30)
        # Two parents are best and three are nearly as good, whichever they are: no bound tells them apart.
        monkeypatch.setattr(latent_decoding, "MOST_SETS", 20)
        with pytest.raises(mf.ModelError, match="into 21 sets and cannot prove which is the likeliest"):
            mf.decode(net, {"y": 1})

    def test_ties(self):
        """Thirty equal parents: one of them is on, any one."""
        net, _, _ = noisy_or(30, leak=0.0)
        for i in range(30):
            net.add_cpt(f"x{i}", [], [0.9, 0.1])
        net.add_noisy_or("y", [f"x{i}" for i in range(30)], [0.8] * 30)
        answer = mf.decode(net, {"y": 1}, n_best=30)
        np.testing.assert_allclose([s.score for s in answer.n_best], 29 * np.log(0.9) + np.log(0.1) + np.log(0.8))
        assert len({tuple(s.assignment.values()) for s in answer.n_best}) == 30

    def test_an_order_and_a_time_limit(self):
        net, _, _ = noisy_or(30, leak=0.001)
        method = mf.methods.JunctionTree(order=net.variables)
        usual = mf.decode(net, {"y": 1})
        assert mf.decode(net, {"y": 1}, method=method).score == pytest.approx(usual.score)
        with pytest.raises(TimeoutError, match="time limit"):
            mf.decode(net, {"y": 1}, method="junction_tree", time_limit=1e-9)
        quick = mf.decode(net, {"y": 1}, time_limit=1e-9)
        assert quick.score <= usual.score + 1e-9 and quick.upper_bound >= usual.score - 1e-9

    def test_impossible(self):
        net, _, _ = noisy_or(30, leak=0.0)
        net.add_noisy_or("y", [f"x{i}" for i in range(30)], [0.0] * 30)
        with pytest.raises(mf.ImpossibleEvidenceError, match="y=1"):
            mf.decode(net, {"y": 1})


def test_what_would_maximise_or_count_contributions_is_refused():
    net, _, _ = noisy_or(3, leak=0.1)
    with pytest.raises(mf.ModelError, match="would maximise the contributions of a noisy-max"):
        mf.decode(net, method="belief_propagation")
    with pytest.raises(mf.ModelError, match="would maximise the contributions of a noisy-max"):
        _ = mf.marginals(net, method="belief_propagation").max_marginals
    for semiring in ("entropy", "counting", "min_sum"):
        with pytest.raises(
            mf.ModelError, match=f"the semiring '{semiring}' needs factors whose table is made of cells"
        ):
            mf.analysis.aggregate(net, semiring)
