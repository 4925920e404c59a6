"""The page of discrete networks: evidence by clicks, posteriors, structure and explanations."""

from __future__ import annotations

from typing import Any

from markovfield.exceptions import ModelError
from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject
from markovfield.factors.factor_graph import FactorGraph

__all__ = ["PAGE", "graph_of"]


def graph_of(subject: Subject) -> FactorGraph | None:
    """The compiled model where it is a discrete one, or None."""

    def compiled() -> FactorGraph | None:
        model = subject.model
        if isinstance(model, FactorGraph):
            return model
        if not hasattr(model, "compile"):
            return None
        try:
            found = model.compile()
        except ModelError:
            return None
        return found if isinstance(found, FactorGraph) else None

    return subject.kept("graph", compiled)


def _offered(subject: Subject) -> bool:
    return graph_of(subject) is not None


def _variables(subject: Subject, asked: dict[str, Any]) -> Any:
    graph = graph_of(subject)
    assert graph is not None
    return {"variables": [str(name) for name in graph.variables]}


PAGE = Page("network", "Network", _offered, {"variables": _variables})
