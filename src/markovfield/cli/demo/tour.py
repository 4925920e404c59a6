"""The tour: a diagnosis, a noisy image, a junction tree; pictures and a page to keep."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import markovfield as mf
from markovfield.cli.demo import steps
from markovfield.cli.demo.page import Chapter, Picture, page
from markovfield.extras import check_installed
from markovfield.plot._style import pyplot
from markovfield.progress import ProgressLine
from markovfield.text_files import write_text

__all__ = ["tour"]

DPI = 144
QUICK_TEXT, QUICK_HEIGHT = "FIELD", 10


def tour(folder: Path, out: Console, err: Console, *, quick: bool = False) -> None:
    """Run the three chapters, say what was asked and answered, write pictures and ``index.html``."""
    started = time.perf_counter()
    check_installed("the demo", "matplotlib")
    pyplot().switch_backend("agg")
    folder.mkdir(parents=True, exist_ok=True)
    out.print(Text("Markovfield", style="bold").append(": a tour in three chapters", style="default"))
    chapters = [_diagnosis(folder, out), _image(folder, out, err, quick), _tree(folder, out, err)]
    seconds = time.perf_counter() - started
    target = folder / "index.html"
    write_text(target, [page(chapters, f"Written by markovfield {mf.__version__} in {seconds:.1f} s.")])
    out.print()
    line = Text(f"Done in {seconds:.1f} s: open ").append(str(target), style="bold green")
    out.print(line, soft_wrap=True)


def _chapter(out: Console, number: int, title: str, lead: str) -> None:
    out.print()
    out.rule(Text(f"{number}  {title}", style="bold blue"), align="left", style="blue")
    out.print(Padding(Text(lead), (0, 0, 1, 2)))


def _say(out: Console, facts: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, text in facts:
        table.add_row(Text(label), Text(text))
    out.print(Padding(table, (0, 0, 0, 2)))


def _save(out: Console, folder: Path, figure: Any, name: str) -> None:
    figure.savefig(folder / name, dpi=DPI)
    pyplot().close(figure)
    out.print(Padding(Text(f"wrote {folder / name}", style="dim"), (0, 0, 0, 2)), soft_wrap=True)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _diagnosis(folder: Path, out: Console) -> Chapter:
    title = "What is wrong with the heat pump?"
    lead = (
        "The room is cold and the heat pump rattles; then a warning light comes on. A Bayesian network of twelve "
        "variables says which part is to blame, and how the light explains the rattling away."
    )
    _chapter(out, 1, title, lead)
    found = steps.diagnose()

    def worn(answer: Any) -> str:
        return _percent(answer.probability_of("compressor", "worn"))

    def low(answer: Any) -> str:
        return _percent(answer.probability_of("refrigerant", "low"))

    facts = [
        ("compressor worn", f"{worn(found.before)} before, {worn(found.complaint)} cold and rattling, "
                            f"{worn(found.light)} with the light on"),
        ("refrigerant low", f"{low(found.before)} before, {low(found.complaint)} cold and rattling, "
                            f"{low(found.light)} with the light on"),
    ]  # fmt: skip
    for rank, solution in enumerate(found.explanations.n_best, 1):
        fault = [f"{part} {state}" for part, state in solution.assignment.items() if _broken(part, state)]
        probability = _percent(math.exp(solution.score - found.light.log_partition))
        facts.append((f"explanation {rank}", f"{' and '.join(fault) or 'nothing broken'} ({probability})"))
    facts.append(("guarantee", f"{found.light.guarantee}, by {found.light.method}"))
    _say(out, facts)
    _save(out, folder, found.network_picture, "network.png")
    _save(out, folder, found.bars_picture, "diagnosis.png")
    pictures = [
        Picture("network.png", "The network: causes above what they bring about; observed variables in orange."),
        Picture(
            "diagnosis.png", "Left: after the complaint, against the prior. Right: with the light, against the left."
        ),
    ]
    return Chapter(title, lead, steps.shown_code(steps.diagnose), facts, pictures)


def _broken(part: str, state: str) -> bool:
    """The first state of each part is the healthy one."""
    structure = mf.datasets.diagnosis_network().compile().structure
    position = structure.names.position(part)
    return structure.names.state(position, state, int(structure.cardinalities[position])) > 0


def _image(folder: Path, out: Console, err: Console, quick: bool) -> Chapter:
    title = "A noisy image, restored exactly"
    lead = (
        "Every pixel is a variable, neighbours want to be equal, and grey values pull towards black or white: an Ising "
        "model. The image is long but low, so its junction tree is narrow and nothing has to be approximated."
    )
    _chapter(out, 2, title, lead)
    with ProgressLine("restoring the image", err, delay=0.3):
        found = steps.restore(QUICK_TEXT, QUICK_HEIGHT) if quick else steps.restore()
    answer, best = found.answer, found.best
    digits = int(found.image.clean.size * math.log10(2))
    facts = [
        ("asked", f"the posterior of {found.image.clean.size} pixels: a sum over 10^{digits} images"),
        ("log Z", f"{answer.log_partition:.6f}, {answer.guarantee}, by {answer.method} of width {answer.width}"),
        (
            "seconds",
            f"{answer.seconds:.2f} (the first call, which compiles and plans, took {found.first.seconds:.1f})",
        ),
        ("wrong pixels", ", ".join(f"{_percent(rate)} {name}" for name, rate in found.errors.items())),
        ("guarantee", f"marginals {answer.guarantee}; best image {'proven optimal' if best.optimal else 'not proven'}"),
    ]
    _say(out, facts)
    _save(out, folder, found.picture, "image.png")
    pictures = [Picture("image.png", "From above: the truth, what was seen, what exact inference makes of it.")]
    return Chapter(title, lead, steps.shown_code(steps.restore), facts, pictures)


def _tree(folder: Path, out: Console, err: Console) -> Chapter:
    title = "The junction tree behind it"
    lead = (
        "Exact inference passes messages over a tree of cliques. Its width, the largest clique less one, is what it "
        "costs; explain tells before anything is computed. Evidence cuts the tree down."
    )
    _chapter(out, 3, title, lead)
    with ProgressLine("planning", err, delay=0.3):
        found = steps.draw_tree()
    facts = [("explain", f"marginals would take {found.explanation.method}: {found.explanation.reason}")]
    facts += [
        ("structure", found.explanation.structure),
        ("junction tree", f"width {found.answer.width} with the evidence, {found.answer.seconds:.2g} s"),
        ("cross-check", f"its marginals differ from those of enumeration by at most {found.difference:.1e}"),
        ("guarantee", found.answer.guarantee),
    ]
    _say(out, facts)
    _save(out, folder, found.picture, "junction-tree.png")
    _save(out, folder, found.absorbed_picture, "junction-tree-evidence.png")
    pictures = [
        Picture("junction-tree.png", "Cliques of the diagnosis network; what two of them share is on their edge."),
        Picture("junction-tree-evidence.png", "With three variables observed, less of the tree is left."),
    ]
    return Chapter(title, lead, steps.shown_code(steps.draw_tree), facts, pictures)
