"""What can be taken along: the evidence as code, and a picture as PDF."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.networks.network import Network
from markovfield.explorer.networks.posteriors import chosen_method, marginals

__all__ = ["code", "picture"]

MOST_DRAWN = 150


def _literal(value: Any) -> str:
    """As Python reads it again; in ASCII, so that nothing in a name reorders or hides code."""
    return ascii(value.item() if isinstance(value, np.generic) else value)


def _written(pairs: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{_literal(k)}: {_literal(x)}" for k, x in pairs.items()) + "}"


def code(subject: Subject, network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """Lines of Python that ask the same."""
    known = network.known(asked)
    path = None if subject.path is None else str(subject.path)
    lines = ["import markovfield as mf", ""]
    lines.append(f"model = mf.read({path!r})" if path is not None else "model = ...  # the model that is explored")
    if known.do:
        set_to = {network.names[v]: network.states(v)[x] for v, x in known.do.items()}
        lines.append(f"model = model.do({_written(set_to)})")
    method = chosen_method(asked)
    extra = "" if method == "auto" else f", method={method!r}"
    lines += [f"evidence = {_written(network.named(known))}", f"answer = mf.marginals(model, evidence{extra})"]
    if (target := asked.get("target")) is not None:
        lines.append(f"print(answer[{_literal(network.names[network.position(target)])}])")
    else:
        lines.append("print(answer)")
    return {"code": "\n".join(lines) + "\n"}


def picture(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """The network with its posteriors as a PDF, in base 64; names alone where it is large."""
    from matplotlib.figure import Figure

    known = network.known(asked)
    world = network.after(known.do)
    if network.n > MOST_DRAWN * 10:
        raise ModelError(f"a picture has at most {MOST_DRAWN * 10} variables, the model has {network.n}")
    side = min(60.0, 6.0 + 2.2 * math.sqrt(network.n))
    figure = Figure(figsize=(1.4 * side, side))
    ax = figure.add_axes((0.0, 0.0, 1.0, 0.95))
    if network.n <= MOST_DRAWN:
        mf.plot.posteriors(
            world.graph,
            marginals(network, known, chosen_method(asked)),
            evidence=world.named(known),
            layout="layered",
            ax=ax,
        )
    else:
        seen = {v: x for v, x in world.named(known).items() if not isinstance(x, list)}
        mf.plot.graph(world.graph, evidence=seen, layout="layered", ax=ax)
    stream = io.BytesIO()
    figure.savefig(stream, format="pdf", bbox_inches="tight")
    return {"pdf": base64.b64encode(stream.getvalue()).decode()}
