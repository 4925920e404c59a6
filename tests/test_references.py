"""Published instances with reference answers, from the data folder (its INDEX.md says which can be trusted).

An instance runs in the normal run when its exact computation is predicted to take under about five seconds;
wider ones are marked slow, or skip there with the prediction as the reason; past eight gigabytes all skip.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.data import data_path, data_root

LN10 = math.log(10)
QUICK_LOG2_CLIQUE = 22.0
QUICK_SECONDS = 5.0
# Sums are multiply-adds; maxima run in log space.
SECONDS_PER_STATE = {"marginals": 10e-9, "decode": 30e-9}
LOG2_MOST_BYTES = 33.0


def rows_of(table: str) -> list[dict[str, str]]:
    """Rows of one of the tables of uai2014 whose model is in the folder; none when there is no data."""
    root = data_root()
    if root is None or not (root / "uai2014" / table).exists():
        return []
    with open(root / "uai2014" / table, newline="") as file:
        found = [row | {"dir": row.get("dir") or "MAP"} for row in csv.DictReader(file, delimiter="\t")]
    return [r for r in found if (root / "uai2014" / r["dir"] / f"{r['name']}.uai.gz").exists()]


def instances(rows: list[dict[str, str]]) -> Any:
    """Parameters, those with a wide clique marked slow by the table's own column."""
    params = []
    for row in rows:
        wide = float(row.get("log2_max_clique") or (0 if int(row["vars"]) <= 500 else 99)) > QUICK_LOG2_CLIQUE
        params.append(pytest.param(row, id=row["name"], marks=[pytest.mark.slow] if wide else []))
    return pytest.mark.parametrize("row", params)


def files(folder: str, pattern: str) -> Any:
    """Parameters: the files of a folder, by name."""
    root = data_root()
    found = sorted((root / folder).glob(pattern)) if root is not None else []
    return pytest.mark.parametrize("path", [pytest.param(p, id=p.name.split(".")[0]) for p in found])


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether this run leaves the slow instances out."""
    return "not slow" in request.config.getoption("markexpr")


def read_model(path: Path, evidence: Path | None = None) -> tuple[mf.FactorGraph, dict[int, int]]:
    given = mf.io.read_uai_evidence(evidence) if evidence is not None and evidence.exists() else {}
    return mf.io.read_uai(path), given


def must_fit(graph: Any, verb: str, evidence: dict[Any, Any], quick: bool) -> None:
    """Skip what would take too long for this run, or too much memory for any."""
    # Greedy orders first: for a wide model the search for a good one takes longer than the normal run allows.
    told = mf.explain(graph, verb, evidence=evidence, method=mf.methods.JunctionTree(search=0.0))
    if told.log2_bytes > LOG2_MOST_BYTES and not quick:
        told = mf.explain(graph, verb, evidence=evidence, method="junction_tree")
    if told.log2_bytes > LOG2_MOST_BYTES:
        pytest.skip(f"width {told.width}: needs 2^{told.log2_bytes:.1f} bytes")
    seconds = 2**told.log2_states * SECONDS_PER_STATE[verb]
    if quick and seconds > QUICK_SECONDS:
        pytest.skip(f"predicted {seconds:.0f} s; make test-all runs it")


def words(path: Path) -> list[str]:
    return path.read_text().split()


def reference_marginals(path: Path) -> list[np.ndarray]:
    """A .MAR file: header, number of variables, then for each its cardinality and probabilities."""
    tokens = iter(words(path))
    assert next(tokens) == "MAR"
    result = []
    for _ in range(int(next(tokens))):
        result.append(np.array([float(next(tokens)) for _ in range(int(next(tokens)))]))
    return result


def states_of(path: Path) -> list[int]:
    """A .MAP or .MMAP file: header, count, states."""
    tokens = words(path)
    assert tokens[0] in {"MAP", "MMAP"} and int(tokens[1]) == len(tokens) - 2
    return [int(t) for t in tokens[2:]]


def close_log10(ours: float, reference: float, relative: float, absolute: float) -> None:
    assert ours == pytest.approx(reference, rel=relative, abs=absolute)


MAR_PR = rows_of("TABLE_MAR_PR.tsv")


def test_the_data_is_there():
    data_path("uai2014", "TABLE_MAR_PR.tsv")
    assert MAR_PR


class TestUai2014:
    @instances(MAR_PR)
    def test_partition_and_marginals(self, row: dict[str, str], quick: bool):
        folder, name = data_path("uai2014", row["dir"]), row["name"]
        graph, evidence = read_model(folder / f"{name}.uai.gz", folder / f"{name}.uai.evid")
        assert (graph.n_variables, graph.n_factors) == (int(row["vars"]), int(row["factors"]))
        assert len(evidence) == int(row["evidence"])
        must_fit(graph, "marginals", evidence, quick)
        answer = mf.marginals(graph, evidence=evidence, method="junction_tree")
        log10 = answer.log_partition / LN10
        reference = folder / f"{name}.uai.PR"
        if reference.exists():  # the wrong ones are named *.suspect
            close_log10(log10, float(words(reference)[1]), 1e-5, 1e-5)
        if row["PR_log10_exact_check"]:
            close_log10(log10, float(row["PR_log10_exact_check"]), 1e-9, 1.5e-6)
        assert answer.guarantee == "exact"
        table = folder / f"{name}.uai.MAR"
        if table.exists():
            for v, expected in enumerate(reference_marginals(table)):
                # Six significant digits are printed.
                np.testing.assert_allclose(answer[v], expected, rtol=5e-6, atol=1e-6, err_msg=f"variable {v}")

    @instances([r for r in MAR_PR if r["MAP_status"].startswith(("exact", "proven"))])
    def test_best_score(self, row: dict[str, str], quick: bool):
        folder, name = data_path("uai2014", row["dir"]), row["name"]
        graph, evidence = read_model(folder / f"{name}.uai.gz", folder / f"{name}.uai.evid")
        must_fit(graph, "decode", evidence, quick)
        answer = mf.decode(graph, evidence=evidence, method="junction_tree")
        check_decoding(answer, graph, evidence, float(row["MAP_best_log10"]))

    @instances([r for r in rows_of("TABLE_MAP.tsv") if r["status"].startswith(("exact", "proven"))])
    def test_best_score_of_the_map_track(self, row: dict[str, str], quick: bool):
        folder, name = data_path("uai2014", "MAP"), row["name"]
        graph, evidence = read_model(folder / f"{name}.uai.gz", folder / f"{name}.uai.evid")
        must_fit(graph, "decode", evidence, quick)
        answer = mf.decode(graph, evidence=evidence, method="junction_tree")
        check_decoding(answer, graph, evidence, float(row["best_known_log10"]))

    @pytest.mark.slow
    @files("uai2014/MMAP", "*.uai.MMAP")
    def test_marginal_map(self, path: Path, record_property: Any):
        """The references are unverified: ours must be at least as good as their assignment."""
        name = path.name.removesuffix(".uai.MMAP")
        model = data_path("uai2014", "MAP", f"{name}.uai.gz")
        graph, evidence = read_model(model, path.with_suffix(".evid"))
        query = [int(t) for t in words(path.with_suffix(".query"))[1:]]
        theirs = dict(zip(query, states_of(path), strict=True))  # a query may name a variable twice
        must_fit(graph, "decode", evidence, quick=False)
        try:
            ours = mf.decode(graph, evidence=evidence, variables=list(theirs), method="junction_tree")
        except mf.MemoryLimitError as error:
            pytest.skip(f"constrained elimination is too wide: {error}")
        try:
            reference = float(mf.log_partition(graph, evidence=theirs | evidence, method="junction_tree"))
        except mf.ImpossibleEvidenceError:
            reference = -math.inf
        record_property("ours_log10", ours.score / LN10)
        record_property("reference_log10", reference / LN10)
        assert ours.score >= reference - 1e-6 * max(1.0, abs(reference))
        again = float(mf.log_partition(graph, evidence=ours.assignment | evidence, method="junction_tree"))
        assert ours.score == pytest.approx(again, rel=1e-9, abs=1e-9)


def check_decoding(answer: mf.Decoding, graph: mf.FactorGraph, evidence: dict, log10: float) -> None:
    assert answer.optimal
    close_log10(answer.score / LN10, log10, 1e-9, 1.5e-6)
    assert graph.score(answer.assignment) == pytest.approx(answer.score, rel=1e-12, abs=1e-9)
    assert all(answer.assignment[v] == state for v, state in evidence.items())


# log10 Z and log10 max with the evidence beside the model: INDEX.md section 2 (an independent elimination).
UAI_SMALL = {
    "ChestClinic": (-0.957464, -1.586140),
    "cancer": (-0.494850, -1.136915),
    "pedigree1": (-17.932053, -46.873731),
    "GEOM30a_3": (-38.396507, -44.0),
    "grid10x10.f2.wrap": (74.562961, 70.606964),
    "grid3x3": (22.827415, 22.823422),
    "grid4x4": (44.449544, 44.324972),
    "grid4x4_with_triplets": (47.159904, 47.157806),
    "paskin": (0.301030, -0.227604),
    "simple5": (4.977849, 4.769625),
    "smokers_10": (163.204030, 157.214601),
}


@pytest.mark.parametrize("name", UAI_SMALL)
@pytest.mark.parametrize("method", ["junction_tree", "variable_elimination", "auto"])
def test_small_models(name: str, method: str):
    path = data_path("uai_small", f"{name}.uai")
    graph, evidence = read_model(path, path.with_name(f"{name}.evid"))
    log10_sum, log10_max = UAI_SMALL[name]
    if method != "variable_elimination":  # which would eliminate once per variable
        answer = mf.marginals(graph, evidence=evidence, method=method)
        close_log10(answer.log_partition / LN10, log10_sum, 1e-9, 1.5e-6)
        for v in graph.variables:
            assert answer[v].sum() == pytest.approx(1.0, abs=1e-12)
    close_log10(float(mf.log_partition(graph, evidence=evidence, method=method)) / LN10, log10_sum, 1e-9, 1.5e-6)
    check_decoding(mf.decode(graph, evidence=evidence, method=method), graph, evidence, log10_max)


# log10 max and log10 Z of the side-chain models: INDEX.md section 11 (toulbar2, proven; elimination).
SIDE_CHAIN_MAX = {
    "1akg": -2.626815, "1etl": -2.919766, "1etm": -2.974621, "1etn": -5.946141, "1pen": -1.104835,
    "1xy2": 0.0, "1not": -8.850142, "1ajj": -28.278199, "1fna": -17.262835, "1fxd": -14.697368,
    "1hoe": -29.630346,
    "1noa": -31.003480, "1pef": -2.541145, "2erl": -21.134752, "2fdn": -21.368729, "2mcm": -16.867994,
    "1aho": -45.492654, "1b2v": -59.409058, "1hpi": -36.805805, "1hyp": -36.014464, "1iqz": -28.711920,
    "1j8e": -28.645274, "1mjc": -38.497947, "1ntn": -39.046117, "1plc": -51.643314, "1rb9": -18.637368,
    "2igd": -21.419108, "2ovo": -20.093240,
}  # fmt: skip
SIDE_CHAIN_SUM = {
    "1akg": -2.160408, "1etl": -2.585536, "1not": -7.589951, "1ajj": -25.709035, "1fna": -11.370000,
    "2fdn": -17.748115, "2mcm": -12.683834,
}  # fmt: skip


@files("protein_sidechain", "*.uai.gz")
def test_side_chains(path: Path, quick: bool):
    name = path.name.removeprefix("pdb").removesuffix(".uai.gz")
    graph = mf.io.read_uai(path)
    proven = float(graph.score(states_of(path.with_suffix("").with_suffix(".uai.MAP")))) / LN10
    if name in SIDE_CHAIN_MAX:
        close_log10(proven, SIDE_CHAIN_MAX[name], 1e-9, 1.5e-6)
    must_fit(graph, "decode", {}, quick)
    check_decoding(mf.decode(graph, method="junction_tree"), graph, {}, proven)
    log_partition = float(mf.log_partition(graph, method="junction_tree"))
    assert log_partition >= proven * LN10 - 1e-5
    if name in SIDE_CHAIN_SUM:
        close_log10(log_partition / LN10, SIDE_CHAIN_SUM[name], 1e-9, 1.5e-6)


@files("bif", "*.bif.gz")
def test_bayesian_networks(path: Path, quick: bool):
    """Without evidence every network sums to one, whichever way; with evidence two methods agree."""
    net = mf.io.read_bif(path)
    must_fit(net, "marginals", {}, quick)
    answer = mf.marginals(net, method="junction_tree")
    assert answer.log_partition == pytest.approx(0.0, abs=1e-9)
    assert float(mf.log_partition(net, method="variable_elimination")) == pytest.approx(0.0, abs=1e-9)
    for v in net.variables:
        assert answer[v].sum() == pytest.approx(1.0, abs=1e-9)
    # A root's marginal is its own table.
    roots = [v for v in net.variables if not net.parents(v)]
    for v in roots:
        np.testing.assert_allclose(answer[v], net.cpt(v), atol=1e-9)
    # Chain rule: P(x) read off the marginals is the probability of that evidence.
    rng = np.random.default_rng(0)
    variable = net.variables[int(rng.integers(len(net.variables)))]
    state = int(np.argmax(answer[variable]))
    names = net.compile().names
    position = names.position(variable)
    given = {variable: names.state_names(position, len(answer[variable]))[state]}
    for method in ("junction_tree", "variable_elimination"):
        log_probability = float(mf.log_partition(net, evidence=given, method=method))
        assert math.exp(log_probability) == pytest.approx(answer[variable][state], abs=1e-9)


class TestBayesianNetworks:
    """Two methods of our own, one with and one without a downward pass, on every network there is."""

    @files("bif", "*.bif.gz")
    def test_junction_tree_and_elimination_agree(self, path: Path, quick: bool):
        net = mf.io.read_bif(path)
        rng = np.random.default_rng(len(path.name))
        row = mf.sample(net, 1, method="ancestral", rng=1).states[0]
        observed = rng.choice(net.n_variables, max(1, net.n_variables // 10), replace=False).tolist()
        evidence = {net.variables[v]: net.states(net.variables[v])[row[v]] for v in observed}
        must_fit(net.compile(), "marginals", evidence, quick)
        answer = mf.marginals(net, evidence, method="junction_tree")
        asked = rng.permutation(net.n_variables)[: 10 if quick else 40].tolist()
        for v in asked:
            name = net.variables[v]
            found = mf.query(net, name, evidence, method="variable_elimination")
            np.testing.assert_allclose(found.values, answer[name], rtol=0, atol=1e-9, err_msg=str(name))
        pair = [net.variables[v] for v in asked[:2]]
        found = mf.query(net, pair, evidence, method="variable_elimination").values
        np.testing.assert_allclose(found.sum(axis=1), answer[pair[0]], rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=0), answer[pair[1]], rtol=0, atol=1e-9)
