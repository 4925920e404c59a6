"""Layouts by graphviz's ``dot`` program, where it is installed: plain text in, plain text out. Sizes in points."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence

from markovfield.exceptions import ModelError

__all__ = ["find_dot", "graphviz"]

Point = tuple[float, float]

POINTS_PER_INCH = 72.0
TIME_LIMIT = 20.0


def find_dot() -> str | None:
    """Path of the ``dot`` program, or None."""
    return shutil.which("dot")


def graphviz(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    layers: bool,
    gap: float = 20.0,
    row_gap: float = 36.0,
    time_limit: float = TIME_LIMIT,
) -> tuple[list[Point], list[list[Point]], float, float]:
    """Centres of boxes, Bezier control points of edges in the order and direction given, width and height.

    ``layers`` asks for rows with edges pointing down, otherwise the undirected layout (neato) is taken.
    """
    program = find_dot()
    if program is None:
        raise ModelError("layout='graphviz' needs the program dot of graphviz, which is not on the path")
    lines = ["digraph G {", f"graph [nodesep={gap / POINTS_PER_INCH:.4f} ranksep={row_gap / POINTS_PER_INCH:.4f}"]
    lines[-1] += " overlap=false splines=true];"
    # Without heads, which we draw, the curves go up to the boxes.
    lines += ['node [shape=box fixedsize=true label=""];', "edge [dir=none];"]
    for i, (width, height) in enumerate(sizes):
        lines.append(f"n{i} [width={width / POINTS_PER_INCH:.4f} height={height / POINTS_PER_INCH:.4f}];")
    lines += [f"n{a} -> n{b};" for a, b in edges]
    lines.append("}")
    command = [program, "-Kdot" if layers else "-Kneato", "-Tplain"]
    try:
        done = subprocess.run(
            command, input="\n".join(lines), capture_output=True, text=True, timeout=time_limit, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"graphviz did not finish a layout of {len(sizes)} nodes in {time_limit:g} s") from error
    except OSError as error:
        raise ModelError(f"graphviz could not be run: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ModelError(f"graphviz failed with code {done.returncode}: {said[0] if said else 'it did not say why'}")
    try:
        return _read(done.stdout, len(sizes), edges)
    except (ValueError, IndexError, KeyError) as error:
        raise ModelError(f"graphviz wrote a layout that cannot be read: {error!r}") from error


def _read(text: str, n: int, edges: Sequence[tuple[int, int]]) -> tuple[list[Point], list[list[Point]], float, float]:
    """Graphviz's plain format: ``graph``, ``node`` and ``edge`` lines, lengths in inches, y upwards."""
    width = height = 0.0
    centres: dict[int, Point] = {}
    curves: dict[tuple[int, int], list[list[Point]]] = {}
    for line in text.replace("\\\n", "").splitlines():
        words = shlex.split(line)
        if not words:
            continue
        if words[0] == "graph":
            width, height = float(words[2]) * POINTS_PER_INCH, float(words[3]) * POINTS_PER_INCH
        elif words[0] == "node":
            centres[int(words[1][1:])] = (float(words[2]) * POINTS_PER_INCH, float(words[3]) * POINTS_PER_INCH)
        elif words[0] == "edge":
            count = int(words[3])
            numbers = [float(w) * POINTS_PER_INCH for w in words[4 : 4 + 2 * count]]
            points = list(zip(numbers[::2], numbers[1::2], strict=True))
            if len(points) != count or count % 3 != 1:
                raise ValueError(f"an edge has {len(points)} points")
            curves.setdefault((int(words[1][1:]), int(words[2][1:])), []).append(points)
    return [centres[i] for i in range(n)], [curves[edge].pop(0) for edge in edges], width, height
