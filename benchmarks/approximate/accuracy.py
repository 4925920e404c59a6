"""Approximate inference: how near, how tight, how often it settles, on the UAI-2014 instances with known answers.

Run as ``python -m benchmarks.approximate.accuracy``; ``--quick`` takes two instances of each family. References are our
own junction tree where it takes seconds, and the published marginals and log Z elsewhere. Results go to stdout
and, as JSON, to ``benchmarks/results/``. The last table is the one that ``method="auto"`` follows.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import Instance, uai_instances
from benchmarks.measure import Table, machine, save
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.registry import methods as registered
from markovfield.io import read_uai_result

__all__ = ["main"]

METHODS = ("belief_propagation", "tree_reweighted", "mean_field", "generalized_bp", "mini_bucket", "sandwich")
# A reference is worked out where both passes of the junction tree have at most so many operations: seconds.
REFERENCE_OPERATIONS = 3e9
QUICK_PER_FAMILY = 2
# Bounds may miss by rounding, relative to log Z, and by the digits of a published reference.
ROUNDING = 1e-7
PUBLISHED_DIGITS = 1e-5


@dataclass(frozen=True, eq=False)
class Reference:
    """What is known of an instance: marginals of the unobserved variables' states, log Z, and how well."""

    marginals: Any | None
    log_partition: float | None
    own: bool
    seconds: float


def main() -> None:
    """Ask every method every instance and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.approximate.accuracy", description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated, of: %(default)s")
    parser.add_argument("--only", help="comma-separated instances or families, such as Grids or Grids_11")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of a method on an instance")
    parser.add_argument("--quick", action="store_true", help="two instances of each family, at most 2 seconds each")
    given = parser.parse_args()
    seconds = min(given.seconds, 2.0) if given.quick else given.seconds
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, {about['time']}, load {about['load']}")
    chosen = _methods(given.methods.split(","), seconds)
    instances = _instances(given.only.split(",") if given.only else None, given.quick)
    if not instances:
        parser.error("there are no such instances")
    _warm_up(chosen)
    rows = _run(instances, chosen, seconds)
    summary = _summary(rows)
    best = _best(rows)
    arguments = {**vars(given), "seconds": seconds}
    results = {"machine": about, "arguments": arguments, "rows": rows, "summary": summary, "best": best}
    print(f"\nresults in {save('approximate_accuracy', results)}")


def _methods(names: Sequence[str], seconds: float) -> dict[str, Any]:
    """Method objects by name; those that are not registered are skipped with a line."""
    known = registered("marginals")
    chosen: dict[str, Any] = {}
    for name in names:
        if name not in known:
            print(f"skipped: {name} is not registered")
        elif name == "sandwich":
            # Without the junction tree: it would be exact wherever there is a reference.
            bounding = tuple(m for m in ("mean_field", "tree_reweighted", "mini_bucket") if m in known)
            if bounding:
                chosen[name] = known[name](time_limit=seconds, methods=bounding)
            else:
                print("skipped: sandwich has no bounding method to run")
        else:
            chosen[name] = known[name]()
    return chosen


def _family(name: str) -> str:
    return name.rsplit("_", 1)[0]


def _instances(only: list[str] | None, quick: bool) -> list[Instance]:
    found = [i for i in uai_instances() if only is None or i.name in only or _family(i.name) in only]
    if not quick:
        return found
    by_size = sorted(found, key=lambda i: (i.model.stat().st_size, i.name))
    taken: dict[str, list[Instance]] = {}
    for instance in by_size:
        taken.setdefault(_family(instance.name), []).append(instance)
    return [i for family in sorted(taken) for i in taken[family][:QUICK_PER_FAMILY]]


def _warm_up(chosen: dict[str, Any]) -> None:
    """Load or compile kernels outside the clock."""
    net = mf.MarkovNetwork(dict.fromkeys(range(9), 2))
    edges = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
    net.add_factors(edges, [[2.0, 1.0], [1.0, 2.0]])
    net.add_factor([0, 1, 3], np.arange(1.0, 9.0).reshape(2, 2, 2))
    mf.marginals(net, method="junction_tree")
    for method in chosen.values():
        _ask(method, net.compile(), {8: 0}, 60.0)


def _reference(instance: Instance, graph: mf.FactorGraph, evidence: dict[Any, int], free: Any) -> Reference:
    known = Evidence.parse(graph.structure, evidence)
    engine = mf.methods.JunctionTree()
    start = time.perf_counter()
    try:
        fits = engine.plan(engine.prepare(graph, known)).operations <= REFERENCE_OPERATIONS
    except MemoryError:
        fits = False
    if fits:
        answer = mf.marginals(graph, evidence, method=engine)
        return Reference(answer.values[free], answer.log_partition, True, time.perf_counter() - start)
    path = instance.model.with_name(f"{instance.name}.uai.MAR")
    values = np.concatenate(read_uai_result(path).marginals)[free] if path.exists() else None
    value = None if instance.log10_partition is None else instance.log10_partition * math.log(10)
    return Reference(values, value, False, time.perf_counter() - start)


def _ask(method: Any, graph: mf.FactorGraph, evidence: dict[Any, int], seconds: float) -> tuple[Any, str, float]:
    """An answer or None, why there is none, and the seconds it took."""
    extra: dict[str, Any] = {"rng": 0} if "rng" in method.abilities else {}
    start = time.perf_counter()
    answer, why = None, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = mf.marginals(graph, evidence, method=method, time_limit=seconds, **extra)
        except TimeoutError:
            why = "out of time"
        except MemoryError:
            why = "too large"
        except mf.ModelError as error:
            why = f"refused: {error}"
        except mf.ImpossibleEvidenceError:
            why = "called impossible"
    return answer, why, time.perf_counter() - start


def _run(instances: list[Instance], chosen: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
    table = Table(
        f"Marginals of the unobserved variables and log Z, at most {seconds:g} s each",
        ("instance", "method", "mean |dp|", "max |dp|", "d log Z", "lower", "upper", "settled", "seconds"),
        first=20,
        second=18,
        least=9,
    )
    rows = []
    for instance in instances:
        graph = mf.io.read_uai(instance.model)
        evidence = mf.io.read_uai_evidence(instance.evidence)
        free = np.ones(graph.n_variables, np.bool_)
        free[graph.names.positions(list(evidence))] = False
        states = np.repeat(free, graph.structure.cardinalities)
        reference = _reference(instance, graph, evidence, states)
        if reference.marginals is None and reference.log_partition is None:
            table.note(f"{instance.name}: nothing is known of it")
            continue
        for name, method in chosen.items():
            answer, why, spent = _ask(method, graph, evidence, seconds)
            row = {"instance": instance.name, "family": _family(instance.name), "method": name, "seconds": spent}
            row |= {"own reference": reference.own, "why": why}
            if answer is not None:
                row |= _compare(answer, reference, states)
            rows.append(row)
            _print(table, row)
    table.note("lower, upper: distance of the proven bounds from log Z, negative where one does not hold.")
    for row in rows:
        if row.get("violated"):
            table.note(f"{row['instance']}: a bound of {row['method']} does not hold")
    return rows


def _compare(answer: Any, reference: Reference, states: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"converged": bool(answer.converged), "guarantee": answer.guarantee}
    row["iterations"] = answer.iterations
    if reference.marginals is not None and len(reference.marginals):
        difference = np.abs(answer.values[states] - reference.marginals)
        row |= {"mean error": float(difference.mean()), "max error": float(difference.max())}
    low, high = answer.log_partition_bounds
    row["width"] = float(high - low)
    if reference.log_partition is not None:
        exact = reference.log_partition
        slack = (ROUNDING if reference.own else PUBLISHED_DIGITS) * max(1.0, abs(exact))
        row |= {
            "partition error": abs(float(answer.log_partition) - exact),
            "lower": exact - low,
            "upper": high - exact,
        }
        row["violated"] = bool(low > exact + slack or high < exact - slack)
    return row


def _print(table: Table, row: dict[str, Any]) -> None:
    if row["why"]:
        table.row(row["instance"], row["method"], row["why"].partition(":")[0])
        return
    gaps = [row.get(side) for side in ("lower", "upper")]
    table.row(
        row["instance"],
        row["method"],
        row.get("mean error"),
        row.get("max error"),
        row.get("partition error"),
        *(None if g is None or not math.isfinite(g) else f"{g:.3g}" for g in gaps),
        "yes" if row["converged"] else "no",
        row["seconds"],
    )


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = Table(
        "By family: errors of marginals (mean over an instance's states; median, worst and largest single one)",
        (
            "family", "method", "answers", "median", "worst", "largest", "dlogZ med.", "worst", "width", "settled",
            "seconds",
        ),
        first=16,
        second=18,
    )  # fmt: skip
    summary = []
    families = sorted({r["family"] for r in rows})
    for family in [*families, "all"]:
        for method in dict.fromkeys(r["method"] for r in rows):
            asked = [r for r in rows if r["method"] == method and family in (r["family"], "all")]
            answered = [r for r in asked if not r["why"]]
            means = [r["mean error"] for r in answered if "mean error" in r]
            partition = [r["partition error"] for r in answered if "partition error" in r]
            widths = [r["width"] for r in answered if math.isfinite(r["width"])]
            line = {
                "family": family,
                "method": method,
                "asked": len(asked),
                "answered": len(answered),
                "median error": _median(means),
                "worst error": max(means, default=None),
                "largest error": max((r["max error"] for r in answered if "max error" in r), default=None),
                "median partition error": _median(partition),
                "worst partition error": max(partition, default=None),
                "median width": _median(widths),
                "converged": sum(r["converged"] for r in answered) / len(asked) if asked else None,
                "median seconds": _median([r["seconds"] for r in asked]),
                "violated": sum(bool(r.get("violated")) for r in answered),
            }
            summary.append(line)
            share = f"{100 * (line['converged'] or 0.0):.0f} %"
            table.row(
                family, method, f"{len(answered)}/{len(asked)}", line["median error"], line["worst error"],
                line["largest error"], line["median partition error"], line["worst partition error"],
                line["median width"], share, line["median seconds"],
            )  # fmt: skip
    return summary


def _best(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The accuracy table: the method of lowest median marginal error; one without an answer counts as error one."""
    table = Table(
        "Lowest median error of marginals (an instance without an answer counts as 1)",
        ("family", "best method", "median", "next", "median"),
        first=16,
        second=18,
        least=18,
    )
    best: dict[str, str] = {}
    for family in [*sorted({r["family"] for r in rows}), "all"]:
        ranked = []
        for method in dict.fromkeys(r["method"] for r in rows):
            errors = [
                r.get("mean error", 1.0)
                for r in rows
                if r["method"] == method and family in (r["family"], "all") and ("mean error" in r or r["why"])
            ]
            if errors:
                ranked.append((statistics.median(errors), method))
        ranked.sort()
        if ranked:
            best[family] = ranked[0][1]
            table.row(family, ranked[0][1], ranked[0][0], *(ranked[1][::-1] if len(ranked) > 1 else ()))
    return best


if __name__ == "__main__":
    main()
