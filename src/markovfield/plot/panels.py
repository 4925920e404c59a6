"""Posterior probabilities on the graph itself: every node is a small panel of bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Marginals
from markovfield.inference.verbs import graph_of
from markovfield.inference.verbs import marginals as ask
from markovfield.names import VariableName
from markovfield.plot import _style as style
from markovfield.plot._sketch import Layout, Placed, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["posteriors"]

MOST_PANELS = 150
NAME_FONT = style.FONT_SIZE - 0.5
STATE_FONT = style.FONT_SIZE - 2.5
LINE_HEIGHT = 11.5
HEADER = 16.0
BAR = 44.0
INSET = 5.0


@dataclass(frozen=True)
class _Panel:
    """One node: its name, and its states from the top down with their probabilities; None for "and more" lines."""

    name: str
    states: list[str]
    values: list[float | None]
    before: list[float | None]
    seen: bool

    @property
    def label_width(self) -> float:
        return max(style.text_size(s, STATE_FONT)[0] for s in self.states)

    @property
    def size(self) -> tuple[float, float]:
        number = style.text_size("100%", STATE_FONT)[0]
        wide = self.label_width + BAR + number + 4 * INSET
        title = style.text_size(self.name, NAME_FONT, bold=True)[0] + 2 * INSET + 2.0
        return max(wide, title), HEADER + LINE_HEIGHT * len(self.states) + 4.0


def posteriors(
    model: Any,
    given: Marginals | Mapping[Any, Any] | None = None,
    *,
    evidence: Mapping[Any, Any] | None = None,
    prior: Marginals | None = None,
    variables: Sequence[VariableName] | None = None,
    max_states: int = 6,
    layout: Layout = "auto",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a model with the probabilities of every variable's states as bars inside its node.

    Parameters
    ----------
    model
        Anything that compiles to a factor graph: a Bayesian network is drawn in rows with its arcs, other models with
        an edge wherever two variables share a factor.
    given
        Either an answer of `mf.marginals` for this model, or evidence, for which it is then asked; None for no
        evidence.
    evidence
        Observed variables when ``given`` is an answer; drawn in orange.
    prior
        Another answer for the same model, marked by a line across each bar for comparison.
    variables
        Which variables to draw, with the edges among them; all when None, which can be 150 at most.
    max_states
        Variables with more states show their likeliest ones, in state order.
    layout
        As for `plot.graph`.
    title
        Replaces the title, which otherwise says how far the numbers can be trusted.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        In points, y upwards; one rectangle for each bar.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.diagnosis_network()
    >>> ax = mf.plot.posteriors(net, {"room": "cold", "noise": "rattling"})
    >>> "cold" in [text.get_text() for text in ax.texts]
    True
    """
    style.check_matplotlib()
    compiled = graph_of(model)
    if max_states < 1:
        raise ModelError(f"plot.posteriors(max_states=...) must be at least 1, got {max_states}")
    if given is not None and not isinstance(given, Marginals):
        if evidence is not None:
            raise ModelError("plot.posteriors takes evidence once: as its second argument or by evidence=...")
        evidence = given
    answer = given if isinstance(given, Marginals) else ask(compiled, evidence)
    names = compiled.names
    for other, what in ((answer, "given"), (prior, "prior=...")):
        if other is not None and not _same(other.graph, compiled):
            raise ModelError(f"plot.posteriors({what}) must be an answer for the model that is drawn")
    shown = names.positions(list(compiled.variables if variables is None else variables))
    if not 0 < len(shown) <= MOST_PANELS:
        raise ModelError(
            f"plot.posteriors draws 1 to {MOST_PANELS} variables, got {len(shown)}; choose some by variables=[...]"
        )
    seen = set(names.positions(list(evidence or {})))
    panels = [_panel(compiled, v, answer, prior, max_states, v in seen) for v in shown]
    edges, arrows = _edges(compiled, shown)
    placed = place([p.size for p in panels], edges, [arrows] * len(edges), layout, gap=16.0, row_gap=30.0)
    heading = title if title is not None else _heading(answer, len(seen), prior is not None)
    return _draw(panels, placed, arrows, heading, ax)


def _heading(answer: Marginals, n_seen: int, compared: bool) -> str:
    known = f"Posterior given {n_seen} observed variable{'s' * (n_seen != 1)}" if n_seen else "Marginals"
    return f"{known} ({answer.guarantee}{'; upright lines: prior' * compared})"


def _same(one: FactorGraph, other: FactorGraph) -> bool:
    if one.structure is other.structure:
        return True
    same = np.array_equal(one.structure.cardinalities, other.structure.cardinalities)
    return same and list(one.variables) == list(other.variables)


def _panel(graph: FactorGraph, v: int, answer: Marginals, prior: Marginals | None, most: int, seen: bool) -> _Panel:
    s = graph.structure
    name = s.names.variables[v]
    states = s.names.state_names(v, int(s.cardinalities[v]))
    values = answer[name]
    before = None if prior is None else prior[name]
    kept = sorted(np.argsort(-values, kind="stable")[: most if len(states) <= most else max(most - 1, 1)].tolist())
    labels = [_short(str(states[i])) for i in kept]
    rows: list[float | None] = [float(values[i]) for i in kept]
    old: list[float | None] = [None if before is None else float(before[i]) for i in kept]
    if len(kept) < len(states):
        labels.append(f"{len(states) - len(kept)} more")
        rows.append(None)
        old.append(None)
    return _Panel(str(name), labels, rows, old, seen)


def _short(text: str, most: int = 18) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _edges(graph: FactorGraph, shown: list[int]) -> tuple[list[tuple[int, int]], str]:
    """Arcs among the variables drawn if the model is directed, else pairs that share a factor."""
    s = graph.structure
    at = {v: i for i, v in enumerate(shown)}
    directed = bool(s.n_factors) and sorted(s.child.tolist()) == list(range(s.n_variables))
    edges: dict[tuple[int, int], None] = {}
    for f, child in enumerate(s.child.tolist()):
        scope = [v for v in s.scope(f).tolist() if v in at]
        if directed:
            if child in at:
                edges.update({(at[v], at[child]): None for v in scope if v != child})
        else:
            edges.update({(at[a], at[b]): None for i, b in enumerate(scope) for a in scope[:i]})
    return list(edges), "->" if directed else "--"


def _draw(panels: list[_Panel], placed: Placed, arrows: str, heading: str, ax: Axes | None) -> Axes:
    from matplotlib.patches import Rectangle

    canvas = style.Canvas.open(ax, placed.width, placed.height, heading)
    for points in placed.curves:
        canvas.bezier(points, arrows=arrows)
    for panel, (x, y) in zip(panels, placed.centres, strict=True):
        width, height = panel.size
        dark, pale = (style.ORANGE, style.ORANGE_PALE) if panel.seen else (style.BLUE, style.BLUE_PALE)
        canvas.box(x, y, width, height, fill="white", edge=dark, rounding=4.0)
        left, top = x - width / 2, y + height / 2
        canvas.box(x, top - HEADER / 2, width, HEADER, fill=pale, edge=dark, rounding=4.0)
        canvas.text(x, top - HEADER / 2 - 0.5, panel.name, size=NAME_FONT, fontweight="bold")
        start = left + panel.label_width + 2 * INSET
        room = width - (start - left) - 2 * INSET - style.text_size("100%", STATE_FONT)[0]
        for i, (state, value) in enumerate(zip(panel.states, panel.values, strict=True)):
            middle = top - HEADER - 2.0 - LINE_HEIGHT * (i + 0.5)
            colour = style.INK if value is not None else style.MUTED
            canvas.text(start - INSET, middle, state, size=STATE_FONT, ha="right", color=colour)
            if value is None:
                continue
            track = Rectangle((start, middle - 3.6), room, 7.2, facecolor=style.PALE, edgecolor="none", zorder=3.5)
            bar = Rectangle((start, middle - 3.6), room * value, 7.2, facecolor=dark, edgecolor="none", zorder=3.6)
            bar.set_gid("bar")
            canvas.ax.add_patch(track)
            canvas.ax.add_patch(bar)
            was = panel.before[i]
            if was is not None:
                at = start + room * was
                ends = ([at, at], [middle - 5.0, middle + 5.0])
                canvas.ax.plot(*ends, color=style.INK, linewidth=1.1 * canvas.scale, zorder=3.8)
            canvas.text(left + width - INSET, middle, _percent(value), size=STATE_FONT, ha="right", color=style.MUTED)
    return canvas.ax


def _percent(value: float) -> str:
    """Whole percents, but never a false 0% or 100%."""
    if 0 < value < 0.005:
        return "<1%"
    if 0.995 <= value < 1:
        return ">99%"
    return f"{100 * value:.0f}%"
