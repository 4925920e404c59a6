"""The page of discrete networks: evidence by clicks, posteriors, structure and explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.networks import exports, messages, posteriors, separation, structure, studies
from markovfield.explorer.networks.network import Network, compiled, network_of

__all__ = ["PAGE"]


def _offered(subject: Subject) -> bool:
    return compiled(subject) is not None


def _of_network(ask: Callable[[Network, dict[str, Any]], Any]) -> Callable[[Subject, dict[str, Any]], Any]:
    """A call about the network alone."""
    return lambda subject, asked: ask(network_of(subject), asked)


def _describe(subject: Subject, asked: dict[str, Any]) -> Any:
    return structure.describe(network_of(subject), posteriors.known_methods())


PAGE = Page(
    "network",
    "Network",
    _offered,
    {
        "describe": _describe,
        "drawing": _of_network(structure.drawing),
        "code": lambda subject, asked: exports.code(subject, network_of(subject), asked),
        "posteriors": _of_network(posteriors.posteriors),
        "contributions": _of_network(posteriors.contributions),
        "blanket": _of_network(structure.blanket),
        "neighbourhood": _of_network(structure.neighbourhood),
        "junction_tree": _of_network(structure.junction_tree),
        "elimination": _of_network(structure.elimination),
        "separation": _of_network(separation.separation),
        "best": _of_network(studies.best),
        "observe_next": _of_network(studies.observe_next),
        "tornado": _of_network(studies.tornado),
        "plan": _of_network(studies.plan),
        "messages": _of_network(messages.messages),
        "residuals": _of_network(messages.residuals),
        "picture": _of_network(exports.picture),
    },
)
