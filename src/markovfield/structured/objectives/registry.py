"""Objectives by name."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike

__all__ = ["DIRECT", "MARGINS", "OBJECTIVES", "objective_of"]

OBJECTIVES = {
    "likelihood": "likelihood:ConditionalLikelihood",
    "pseudo_likelihood": "pseudo_likelihood:PseudoLikelihood",
    "piecewise": "piecewise:Piecewise",
    "expected_loss": "expected_loss:ExpectedLoss",
    "marginal_likelihood": "expected_loss:MarginalLikelihood",
    "softmax_margin": "softmax_margin:SoftmaxMargin",
}
# Objectives that are not convex and have kinks: the same solvers, from weights of another objective.
DIRECT = {"ramp": "ramp:Ramp", "direct_loss": "ramp:DirectLoss"}
# Objectives with kinks, which have solvers of their own.
MARGINS = {"hinge": "hinge:Hinge"}


def objective_of(objective: Any, inference: MethodLike = "auto") -> Any:
    """An objective by its name, or itself; ``inference`` is its method unless it has one of its own.

    Examples
    --------
    >>> objective_of("likelihood", "belief_propagation").inference
    'belief_propagation'
    """
    known = {**OBJECTIVES, **DIRECT, **MARGINS}
    if isinstance(objective, str) and objective in known:
        module, _, name = known[objective].partition(":")
        objective = getattr(import_module(f"markovfield.structured.objectives.{module}"), name)()
    if isinstance(objective, type) or not hasattr(objective, "on"):
        names = ", ".join(map(repr, known))
        raise ModelError(f"objective must be one of {names}, or such an object, got {objective!r}")
    infers = any(f.name == "inference" for f in fields(objective))
    if inference != "auto" and not infers:
        raise ModelError(f"objective {objective.name!r} takes no inference: leave it at 'auto'")
    if infers and inference != "auto" and objective.inference == "auto":
        return replace(objective, inference=inference)
    return objective
