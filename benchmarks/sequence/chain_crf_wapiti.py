"""Linear-chain CRFs against Wapiti: an iteration with all features, and the objective both end at.

``MARKOVFIELD_WAPITI=path python -m benchmarks.sequence.chain_crf_wapiti [--quick]``, where the path is that of the
``wapiti`` program (its sources build with ``make``). Both get CoNLL-2000 with the attributes of
`benchmarks.sequence.chain_crf`, a weight for every attribute with every label, the same l2 penalty, L-BFGS and two
threads. Wapiti's iterations are timed by the lines it prints, the first one left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save
from benchmarks.sequence.chain_crf import our_job, run
from markovfield.sequence.text.entities import entity_report

sys.path.insert(0, str(Path(__file__).parent))
from chain_crf_worker import corpus  # type: ignore[import-not-found]


def write(path: Path, X: list[Any], y: list[Any]) -> None:
    """Sentences as Wapiti reads them without patterns: a name in u is an attribute, b alone joins labels."""
    with path.open("w", encoding="utf-8") as file:
        for tokens, labels in zip(X, y, strict=True):
            for attributes, label in zip(tokens, labels, strict=True):
                file.write(" ".join("u" + a for a in attributes) + f" b {label}\n")
            file.write("\n")


def wapiti(program: str, share: float, iterations: int) -> dict[str, Any]:
    """Train and tag; seconds of an iteration, the last objective, F1."""
    X, y, X_test, y_test = corpus({"folder": str(data_folder()), "share": share})
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as name:
        folder = Path(name)
        write(folder / "train", X, y)
        write(folder / "test", X_test, y_test)
        settings = ["-a", "l-bfgs", "-t", "2", "-1", "0", "-2", "2", "-i", str(iterations), "-w", "0"]
        command = [program, "train", *settings, str(folder / "train"), str(folder / "model")]
        marks, objective, features = [], float("nan"), 0
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                said = re.search(r"\[\s*\d+\] obj=([\d.]+)\s+act=(\d+)", line)
                if said:
                    marks.append(time.perf_counter())
                    objective, features = float(said[1]), int(said[2])
        command = [program, "label", "-c", "-m", str(folder / "model"), str(folder / "test"), str(folder / "out")]
        subprocess.run(command, check=True, capture_output=True)
        blocks = (folder / "out").read_text(encoding="utf-8").split("\n\n")
    found = [[line.split()[-1] for line in block.strip().split("\n")] for block in blocks if block.strip()]
    return {
        "each": (marks[-1] - marks[0]) / (len(marks) - 1),
        "iterations": len(marks),
        "objective": objective,
        "features": features,
        "f1": 100 * entity_report(y_test, found).f1,
    }


def main() -> None:
    """Both programs: a few iterations on all sentences, many on an eighth of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the sentences only")
    quick = parser.parse_args().quick
    program = os.environ.get("MARKOVFIELD_WAPITI")
    if program is None:
        print("MARKOVFIELD_WAPITI names no program: nothing to compare with")
        return
    results: dict[str, Any] = {"machine": machine()}
    headers = ["", "iterations", "ms each", "objective", "F1", "features"]
    for share, iterations in [(0.125, 500)] if quick else [(0.125, 500), (1.0, 10)]:
        table = Table(f"CoNLL-2000, {share:g} of the sentences, l2 = 2", headers, first=22)
        more = {"l2": 2.0, "max_iterations": iterations}
        found = {
            "ours, all features": run(
                our_job({**more, "all_possible_states": True, "all_possible_transitions": True}, share=share)
            ),
            "Wapiti, all features": wapiti(program, share, iterations),
            "ours, observed": run(our_job(more, share=share)),
        }
        for name, row in found.items():
            if row is not None:
                each = 1e3 * row["each"]
                table.row(name, row["iterations"], each, f"{row['objective']:.2f}", f"{row['f1']:.2f}", row["features"])
        mine, theirs = found["ours, all features"], found["Wapiti, all features"]
        if mine is not None and theirs is not None:
            table.note(f"an iteration is {theirs['each'] / mine['each']:.1f} times as fast with the same features")
        results[str(share)] = found
    print(f"\nsaved to {save('chain_crf_wapiti', results)}")


if __name__ == "__main__":
    main()
