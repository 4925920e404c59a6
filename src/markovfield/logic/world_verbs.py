"""The verbs for ground networks: as for their factor graphs, but that contradictions are told in formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.inference import discrete
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import Question
from markovfield.logic.grounding.contradictions import contradiction
from markovfield.logic.world import GroundNetwork

__all__ = ["decode", "log_partition", "marginals", "sample"]


def marginals(world: GroundNetwork, question: Question, targets: Any) -> Marginals:
    """Of the factor graph."""
    return _told(world, question, lambda: discrete.marginals(world.compile(), question, targets))


def log_partition(world: GroundNetwork, question: Question) -> LogPartition:
    """Of the factor graph."""
    return _told(world, question, lambda: discrete.log_partition(world.compile(), question))


def sample(world: GroundNetwork, question: Question, size: int) -> Samples:
    """Of the factor graph."""
    return _told(world, question, lambda: discrete.sample(world.compile(), question, size))


def decode(world: GroundNetwork, question: Question, variables: Any, loss: Any, n_best: int) -> Decoding:
    """Of the factor graph."""
    return _told(world, question, lambda: discrete.decode(world.compile(), question, variables, loss, n_best))


def _told(world: GroundNetwork, question: Question, ask: Callable[[], Any]) -> Any:
    """The answer; where there is none, the ground clauses that contradict each other."""
    try:
        return ask()
    except ImpossibleEvidenceError as error:
        graph = world.compile()
        told = contradiction(world.assembled, graph, Evidence.parse(graph.structure, question.evidence))
        if not told:
            raise
        raise ImpossibleEvidenceError(told) from error
