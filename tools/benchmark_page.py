"""Write docs/benchmarks.md, the page of measurements, from what ``make bench`` has stored.

``python -m tools.benchmark_page`` takes the results in ``benchmarks/results/`` that are newer than what the page has,
keeps the others, and writes a small summary, ``docs/benchmarks.json``, and the page made of it. Both are committed;
the results are not. ``--check`` says whether the page is that of the summary, which a test asks too.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SUMMARY, PAGE = ROOT / "docs" / "benchmarks.json", ROOT / "docs" / "benchmarks.md"
# The order of the page; what is not named comes last, by its name.
TOPICS = {
    "Exact inference": ("exact_inference", "bayesian_networks", "first_call"),
    "Approximate inference and simulation": (
        "belief_propagation",
        "approximate_accuracy",
        "sampling",
        "lattice",
        "lattice_errors",
    ),
    "Decoding": ("graph_cuts", "pictures", "relaxations", "proofs", "decode"),
    "Gaussian models and time series": ("gaussian",),
    "Learning": (
        "undirected",
        "learning_tables",
        "undirected_structures",
        "boltzmann",
        "solvers",
        "feature_induction",
        "early_stopping",
    ),
    "Sequences": ("chain_crf", "chain_crf_wapiti", "hidden_markov", "segments"),
    "Structured prediction": ("structured_models", "structures", "max_margin", "parsing", "alignment"),
    "Markov logic": ("logic",),
    "The explorer": ("explorer",),
}
# Where the name of the file says too little.
NAMES = {
    "exact_inference": "Marginals and log Z",
    "bayesian_networks": "Bayesian networks",
    "hidden_markov": "Hidden Markov models",
    "chain_crf": "Linear-chain CRFs",
    "chain_crf_wapiti": "Linear-chain CRFs beside Wapiti",
    "gaussian": "Gaussian fields and time series",
    "learning_tables": "Contingency tables",
    "undirected": "Undirected models",
    "lattice": "Lattice simulation",
    "lattice_errors": "Errors of lattice simulations",
    "explorer": "Clicks in the explorer",
    "logic": "Programs of Markov logic",
    "structures": "Structures with dynamic programs",
}
MOST_ROWS = 40
# What a column with verdicts on targets is called, and what it says where one is missed.
VERDICT, MISSED = "met", re.compile("no|missed", re.IGNORECASE)
# `make bench` gives no options: with any but --quick, instances, peers or limits are others.
OPTIONS = re.compile(r" --(?!quick\b)\w")
RATIO = re.compile(r"\bratio\b|^x$|faster|/ ours|times ours", re.IGNORECASE)
KEPT = ("command", "measured", "processor", "cores", "python", "load", "tables")


WARNINGS = {
    "quick": "* **A quick run** (`--quick`): fewer and smaller instances, few repetitions. It shows that the benchmark "
    "works; what it says of ratios and targets is no measurement.",
    "options": "* **With options**, as above: instances, peers or limits are not those of `make bench`.",
}


def rows_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Tables out of results that printed none: every list of records with plain values, by its name."""
    found = []
    for name, value in results.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value) and name != "tables":
            plain = [k for k, v in value[0].items() if isinstance(v, str | int | float | None)]
            rows = [[shown(row.get(k)) for k in plain] for row in value]
            found.append({"title": name.replace("_", " "), "headers": plain, "rows": rows, "notes": []})
    return found


def shown(value: Any) -> str:
    """A value as it stands on the page."""
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return text if math.isfinite(value) else "-"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def summary_of(results: dict[str, Any]) -> dict[str, Any] | None:
    """What the page wants of one file of results; None of a file that has no tables."""
    about = results.get("machine", {})
    tables = results.get("tables") or rows_of(results)
    tables = [t for t in tables if t["rows"]]
    if not tables or not about:
        return None
    for table in tables:
        dropped = len(table["rows"]) - MOST_ROWS
        if dropped > 0:
            table["notes"] = [*table["notes"], f"and {dropped} more rows"]
            table["rows"] = table["rows"][:MOST_ROWS]
    return {
        "command": results.get("command", ""),
        "measured": about["time"],
        "processor": about["processor"],
        "cores": about["cores"],
        "python": about["python"],
        "load": round(float(about["load"][0]), 1),
        "tables": tables,
    }


def collected(old: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The old summary with everything that the folder has measured since."""
    found = dict(old)
    for path in sorted(folder.glob("*.json")):
        new = summary_of(json.loads(path.read_text(encoding="utf-8")))
        if new is not None and new["measured"] >= found.get(path.stem, new)["measured"]:
            found[path.stem] = new
    return dict(sorted(found.items()))


def ratios(table: dict[str, Any]) -> list[tuple[str, list[float]]]:
    """Columns of ratios by their headers and what stands before them, with the numbers in them."""
    found = []
    for k, header in enumerate(table["headers"]):
        before = [h for h in table["headers"][:k] if not (RATIO.search(h) or h.startswith("+") or h in {"MB", "MiB"})]
        if RATIO.search(header):
            texts = [row[k].replace(",", "").rstrip("x") for row in table["rows"]]
            values = [float(t) for t in texts if re.fullmatch(r"\d+(\.\d+)?(e[+-]?\d+)?", t) and float(t) > 0]
            if values:
                twice = table["headers"].count(header) > 1 and before
                found.append((f"{header} ({before[-1]})" if twice else header, values))
    return found


def cell(text: str) -> str:
    """Text for a cell of a table in Markdown, where nothing in it means anything."""
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return re.sub(r"([*_\[\]])", r"\\\1", text) or " "


def grid(headers: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    width = len(headers)
    lines = [headers, ["---"] * width, *[(row + [""] * width)[:width] for row in rows]]
    return [f"| {' | '.join(cell(t) for t in line)} |" for line in lines]


def plain(headers: list[str], rows: list[list[str]]) -> list[str]:
    """A table as text, as the benchmark printed it: many columns stay in line, and the block scrolls."""
    width = len(headers)
    lines = [headers, *[(row + [""] * width)[:width] for row in rows]]
    widths = [max(len(line[k]) for line in lines) for k in range(width)]
    texts = [
        "  ".join(t.ljust(w) if k == 0 else t.rjust(w) for k, (t, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    return ["```text", *[text.rstrip() for text in texts], "```"]


def named(name: str) -> str:
    """The name of a benchmark as the page writes it."""
    return NAMES.get(name) or name.replace("_", " ").capitalize()


def extent(found: dict[str, Any]) -> str:
    """How much of its benchmark a run was: ``full``, ``quick``, ``options`` or ``quick, options``."""
    said = [" --quick" in found["command"], OPTIONS.search(found["command"]) is not None]
    return ", ".join(word for word, yes in zip(WARNINGS, said, strict=True) if yes) or "full"


def section(name: str, found: dict[str, Any]) -> list[str]:
    """The measurements of one benchmark."""
    load = f"load {found['load']}" + f" on {found['cores']} cores: a busy machine" * (found["load"] > found["cores"])
    text = [
        f"### {named(name)}",
        "",
        "```sh",
        found["command"],
        "```",
        "",
        f"* Measured {found['measured']}, {load}.",
        f"* {found['processor']}, {found['cores']} cores, Python {found['python']}.",
        *(WARNINGS[word] for word in extent(found).split(", ") if word in WARNINGS),
        "",
    ]
    for table in found["tables"]:
        text += [f"**{cell(table['title'])}**", "", *plain(table["headers"], table["rows"]), ""]
        if table["notes"]:
            text += [*(f"* {cell(note.strip())}" for note in table["notes"]), ""]
    return text


def runs(summary: dict[str, Any]) -> list[str]:
    """Every benchmark in the order of the page: when it ran, on what, how busy that was, and how much of it ran."""
    rows = [
        [
            named(name),
            found["measured"],
            f"{found['processor']}, {found['cores']} cores",
            str(found["load"]),
            extent(found),
        ]
        for name, found in summary.items()
    ]
    return grid(["benchmark", "measured", "machine", "load", "run"], rows)


def targets(summary: dict[str, Any]) -> list[str]:
    """Tables that judge by a target: how many rows met it, and which did not."""
    rows = []
    for name, found in summary.items():
        for table in found["tables"]:
            at = next((k for k, header in enumerate(table["headers"]) if header == VERDICT), None)
            said = [] if at is None else [row for row in table["rows"] if row[at] not in ("", "-")]
            if said:
                missed = [row[0] for row in said if MISSED.fullmatch(row[at])]
                met = f"{len(said) - len(missed)} of {len(said)}"
                rows.append([f"{named(name)}: {table['title']}", extent(found), met, "; ".join(missed) or "-"])
    return grid(["benchmark and table", "run", "met", "missed"], rows) if rows else ["No targets were measured yet."]


def overview(summary: dict[str, Any]) -> list[str]:
    """All columns of ratios in one table: how many, the least, the mean, the largest."""
    rows = []
    for name, found in summary.items():
        for table in found["tables"]:
            for header, values in ratios(table):
                mean = math.exp(sum(map(math.log, values)) / len(values))
                numbers = [shown(float(f"{v:.3g}")) for v in (min(values), mean, max(values))]
                rows.append([f"{named(name)}: {table['title']}", header, extent(found), str(len(values)), *numbers])
    headers = ["benchmark and table", "column", "run", "rows", "least", "mean", "most"]
    return grid(headers, rows) if rows else ["No peer was measured yet."]


def page(summary: dict[str, Any]) -> str:
    """The whole page."""
    known = {name for names in TOPICS.values() for name in names}
    topics = {**TOPICS, "Others": tuple(sorted(set(summary) - known))}
    summary = {name: summary[name] for names in topics.values() for name in names if name in summary}
    missing = sorted(known - set(summary))
    text = [
        "# Benchmarks",
        "",
        "Measured, not remembered: every table below was printed by the command above it, ours and the peers in the",
        "same run, on the machine and at the time that stand beside it. `make bench` measures everything again (hours,",
        "most of it the peers), `python -m tools.benchmark_page` makes this page of what was stored. Shared machines",
        "are never quiet: compare ratios, which are of one run, rather than seconds of two.",
        "",
        "## Runs",
        "",
        "A **quick** run (`--quick`) has fewer and smaller instances and few repetitions: it shows that a benchmark",
        "works; its ratios and targets are no measurement. **Options**: instances, peers or limits were chosen. The",
        "load is of the last minute, the benchmark's own included; above the number of cores, others were at work.",
        "",
        *runs(summary),
        "",
        *([f"Not measured yet: {', '.join(map(named, missing))}.", ""] if missing else []),
        "## Ratios",
        "",
        "The peer's time over ours, unless the table says otherwise; above one, we are faster. The mean is geometric.",
        "",
        *overview(summary),
        "",
        "## Targets",
        "",
        "What was aimed at before it was measured, and how many rows of a table got there.",
        "",
        *targets(summary),
        "",
    ]
    for topic, names in topics.items():
        had = [name for name in names if name in summary]
        if had:
            text += [f"## {topic}", ""]
        for name in had:
            text += section(name, summary[name])
    return "\n".join(text).rstrip() + "\n"


def stored() -> dict[str, Any]:
    """The summary that is committed."""
    return json.loads(SUMMARY.read_text(encoding="utf-8")) if SUMMARY.exists() else {}  # type: ignore[no-any-return]


def main() -> int:
    """Write summary and page, or say whether the page is up to date."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is not the summary's")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are (%(default)s)")
    given = parser.parse_args()
    if given.check:
        fresh = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page(stored())
        if not fresh:
            sys.stderr.write("run python -m tools.benchmark_page: docs/benchmarks.md is not that of its summary\n")
        return int(not fresh)
    summary = collected(stored(), given.results)
    SUMMARY.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(summary), encoding="utf-8")
    sys.stdout.write(f"{len(summary)} benchmarks on {PAGE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
