"""The verbs for networks that are not grounded: decoding grounds what it needs, all else grounds everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ModelError
from markovfield.inference import discrete
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.method import Question
from markovfield.inference.core.registry import resolve
from markovfield.logic.cutting_planes.cutting_plane_inference import CuttingPlaneInference
from markovfield.logic.lazy_network import LazyNetwork

__all__ = ["decode", "log_partition", "marginals", "sample"]


def marginals(network: LazyNetwork, question: Question, targets: Any) -> Marginals:
    """Of the ground network."""
    return discrete.marginals(network.compile(), question, targets)


def log_partition(network: LazyNetwork, question: Question) -> LogPartition:
    """Of the ground network."""
    return discrete.log_partition(network.compile(), question)


def sample(network: LazyNetwork, question: Question, size: int) -> Samples:
    """Of the ground network."""
    return discrete.sample(network.compile(), question, size)


def decode(network: LazyNetwork, question: Question, variables: Any, loss: Any, n_best: int) -> Decoding:
    """The likeliest world by cutting planes; of the ground network, where another method or question is asked."""
    method = question.method
    if method == "auto":
        method = CuttingPlaneInference() if variables is None and loss is None and n_best == 1 else "auto"
    elif isinstance(method, str) and method in _names():
        method = resolve(method, "decode", "LazyNetwork")
    elif isinstance(method, type) and issubclass(method, CuttingPlaneInference):
        method = method()
    if not isinstance(method, CuttingPlaneInference):
        return discrete.decode(network.compile(), question, variables, loss, n_best)
    if whole_number(n_best, "n_best", 1) > 1 or loss is not None or variables is not None:
        what = "n_best" if n_best > 1 else "loss" if loss is not None else "variables"
        raise ModelError(
            f"cutting_plane_inference finds one likeliest world and takes no {what}: ground() gives the network that "
            "other methods take"
        )
    if question.init is not None:
        raise ModelError("cutting_plane_inference takes no init")
    if question.evidence is not None and not isinstance(question.evidence, Mapping):
        raise ModelError(f"evidence must be a mapping from ground atoms to true or false, got {question.evidence!r}")
    rng = generator_of(question.rng)
    return method.decode(network.given(question.evidence), running=question.running, rng=rng)


def _names() -> tuple[str, ...]:
    return ("cutting_plane_inference", "cutting_planes", "cpi")
