"""Max-margin training: the hinge on shards of examples, and a solver of planes."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.problem import MarginMinimum
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.structured.objectives.hinge import Hinge, MarginProblem

__all__ = ["MARGIN_SOLVERS", "margin_solver", "train_margin"]

MARGIN_SOLVERS: dict[str, Any] = {
    "block_frank_wolfe": BlockFrankWolfe,
    "bcfw": BlockFrankWolfe,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "subgradient": Subgradient,
    "perceptron": StructuredPerceptron,
}
# Shards of a pass, where nobody says: enough for the dual to rise within a pass, few enough for large batches.
SHARDS = 8


def margin_solver(solver: Any) -> Any:
    """A solver by its name, or itself.

    Examples
    --------
    >>> margin_solver("auto").name
    'block_frank_wolfe'
    """
    if isinstance(solver, str):
        found = BlockFrankWolfe if solver == "auto" else MARGIN_SOLVERS.get(solver)
        if found is None:
            names = ", ".join(map(repr, MARGIN_SOLVERS))
            raise ModelError(f"solver of a hinge must be one of {names}, or such an object, got {solver!r}")
        return found()
    if not hasattr(solver, "run") or solver.name not in MARGIN_SOLVERS:
        raise ModelError(f"{type(solver).__name__} does not minimise a hinge; take solver='block_frank_wolfe'")
    return solver


def train_margin(
    objective: Hinge, batches: list[Any], costs: Any, solver: Any, *, rng: np.random.Generator, running: Running
) -> MarginMinimum:
    """Weights of least ``1/2 |w|^2 + sum_i costs_i hinge_i``; batches are shards."""
    oracles = [objective.on(batch, running=running, rng=rng) for batch in batches]
    problem = MarginProblem(oracles, np.asarray(costs, np.float64), batches[0].n_weights)
    found: MarginMinimum = margin_solver(solver).run(problem, rng=rng, running=running)
    return found
