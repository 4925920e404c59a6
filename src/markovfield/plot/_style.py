"""Colours, the size of text, and axes measured in points: what all pictures share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markovfield.extras import check_installed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Canvas", "check_matplotlib", "new_axes", "pyplot", "text_size"]

INK = "#1f2a36"
MUTED = "#6b7885"
LINE = "#9aa7b3"
PALE = "#e9eef3"
BLUE = "#2b6cb0"
BLUE_PALE = "#dbe9f6"
ORANGE = "#dd7a3b"
ORANGE_PALE = "#fbe6d6"
GREEN = "#3c8d6b"

_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]")

FONT_SIZE = 10.0
TITLE_SIZE = 12.5
POINTS_PER_INCH = 72.0
# What is larger is drawn smaller: files of pixels and windows end somewhere.
MOST_INCHES = 40.0


def check_matplotlib() -> None:
    """One sentence on how to get matplotlib, where it is not: what every function that draws says first."""
    check_installed("a picture", "matplotlib")


def pyplot() -> Any:
    """matplotlib.pyplot, or that sentence."""
    check_matplotlib()
    import matplotlib.pyplot as plt

    return plt


@lru_cache(maxsize=4096)
def text_size(text: str, size: float = FONT_SIZE, bold: bool = False) -> tuple[float, float]:
    """Width and height of one or several lines in points; no renderer needed, so it works before a figure exists."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    properties = FontProperties(size=size, weight="bold" if bold else "normal")
    lines = _printable(text).split("\n")
    width = 0.0
    for line in lines:
        if line.strip():
            # A dollar sign would open mathematics.
            width = max(width, float(TextPath((0, 0), line.replace("$", "S"), prop=properties).get_extents().width))
    return width, 1.32 * size * len(lines)


def new_axes(ax: Axes | None, width: float, height: float, heading: str = "") -> Axes:
    """The axes given, or new ones in a figure of their own of so many inches, at least as wide as its title."""
    if ax is not None:
        return ax
    if heading:
        width = max(width, text_size(heading, TITLE_SIZE, bold=True)[0] / POINTS_PER_INCH + 0.4)
    _, made = pyplot().subplots(figsize=(width, height), layout="constrained")
    return made  # type: ignore[no-any-return]


def _printable(text: str) -> str:
    """Without what no font can draw: control characters, and halves of surrogate pairs, which raise errors."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def plain(label: object) -> str:
    """A label that matplotlib will not read as mathematics."""
    return _printable(str(label)).replace("$", r"\$")


def title(ax: Axes, text: str, scale: float = 1.0) -> None:
    """A title in the common style, at the left."""
    ax.set_title(text, loc="left", fontsize=TITLE_SIZE * scale, fontweight="bold", color=INK, pad=10 * scale)


@dataclass(frozen=True)
class Canvas:
    """Axes whose unit is a point at ``scale`` 1; in axes smaller than the drawing, everything shrinks together."""

    ax: Axes
    scale: float

    @classmethod
    def open(cls, ax: Axes | None, width: float, height: float, heading: str, margin: float = 14.0) -> Canvas:
        """Axes for a drawing that spans ``0..width`` and ``0..height`` points, under a title."""
        heading_width = text_size(heading, TITLE_SIZE, bold=True)[0] if heading else 0.0
        slack = max(0.0, heading_width + 4.0 - width) / 2
        full_width, full_height = width + 2 * (margin + slack), height + 2 * margin
        above = 2.2 * TITLE_SIZE if heading else 0.0
        if ax is None:
            scale = min(1.0, (MOST_INCHES * POINTS_PER_INCH - above) / max(full_width, full_height))
            tall = scale * full_height + above
            wide = max(scale * full_width, heading_width + 2 * margin if scale < 1.0 else 0.0)
            figure = pyplot().figure(figsize=(wide / POINTS_PER_INCH, tall / POINTS_PER_INCH))
            ax = figure.add_axes((0.0, 0.0, 1.0, scale * full_height / tall))
        else:
            box = ax.get_window_extent()
            per_point = ax.figure.dpi / POINTS_PER_INCH
            scale = min(box.width / per_point / full_width, box.height / per_point / full_height)
        ax.set_xlim(-margin - slack, width + margin + slack)
        ax.set_ylim(-margin, height + margin)
        ax.set_aspect("equal", adjustable="box")
        ax.set_axis_off()
        if heading:
            size = TITLE_SIZE * min(1.0, max(scale, 0.7))
            at = margin / full_width
            ax.set_title(heading, loc="left", x=at, fontsize=size, fontweight="bold", color=INK)
        return cls(ax, scale)

    def text(self, x: float, y: float, label: str, *, size: float = FONT_SIZE, **style: Any) -> None:
        """Centred text at a point of the drawing."""
        common: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "linespacing": 1.2, "color": INK}
        self.ax.text(x, y, plain(label), fontsize=size * self.scale, **(common | style))

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str, edge: str, rounding: float = 5.0
    ) -> None:
        """A rounded box centred at a point."""
        from matplotlib.patches import FancyBboxPatch

        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={rounding}",
                facecolor=fill,
                edgecolor=edge,
                linewidth=1.1 * self.scale,
                zorder=3,
            )
        )

    def ellipse(self, x: float, y: float, width: float, height: float, *, fill: str, edge: str) -> None:
        """An ellipse centred at a point."""
        from matplotlib.patches import Ellipse

        self.ax.add_patch(
            Ellipse((x, y), width, height, facecolor=fill, edgecolor=edge, linewidth=1.2 * self.scale, zorder=3)
        )

    def curve(self, points: list[tuple[float, float]], *, vertical: bool) -> None:
        """A smooth line through points that leaves and enters them along one axis."""
        vertices = [points[0]]
        for (x0, y0), (x1, y1) in pairwise(points):
            if vertical:
                bend = (y1 - y0) * 0.45
                vertices += [(x0, y0 + bend), (x1, y1 - bend), (x1, y1)]
            else:
                bend = (x1 - x0) * 0.45
                vertices += [(x0 + bend, y0), (x1 - bend, y1), (x1, y1)]
        self.bezier(vertices, arrows="--")

    def bezier(
        self, points: list[tuple[float, float]], *, arrows: str = "->", colour: str = LINE, width: float = 1.2
    ) -> None:
        """A curve by its control points (one, then three for each piece), with heads as in ``->``, ``<->``, ``--``."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        heads = {"->": "-|>,head_length=3.2,head_width=1.8", "<->": "<|-|>,head_length=3.2,head_width=1.8", "--": "-"}
        self.ax.add_patch(
            FancyArrowPatch(
                path=Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1)),
                arrowstyle=heads[arrows],
                mutation_scale=1.6 * self.scale * min(1.0, width),
                linewidth=width * self.scale,
                color=colour,
                zorder=2,
                shrinkA=0,
                shrinkB=0,
            )
        )
