"""Solvers of hinges by name, and those that take marginals on problems of planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.dual_extragradient import DualExtragradient
from markovfield.learning.max_margin.excessive_gap import ExcessiveGap
from markovfield.learning.max_margin.exponentiated_gradient import ExponentiatedGradient
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.max_margin_network import MaxMarginMarkovNetwork
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.problem import MarginMinimum
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.structured.marginals.shards import MarginalShards

__all__ = ["MARGIN_SOLVERS", "margin_solver"]

MARGIN_SOLVERS: dict[str, Any] = {
    "block_frank_wolfe": BlockFrankWolfe,
    "bcfw": BlockFrankWolfe,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "subgradient": Subgradient,
    "perceptron": StructuredPerceptron,
    "exponentiated_gradient": ExponentiatedGradient,
    "dual_extragradient": DualExtragradient,
    "excessive_gap": ExcessiveGap,
    "max_margin_network": MaxMarginMarkovNetwork,
}
# Those that take marginals of outputs.
BY_MARGINALS = (ExponentiatedGradient, DualExtragradient, ExcessiveGap, MaxMarginMarkovNetwork)
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
        solver = found()
    if not hasattr(solver, "run") or solver.name not in MARGIN_SOLVERS:
        raise ModelError(f"{type(solver).__name__} does not minimise a hinge; take solver='block_frank_wolfe'")
    return _ByMarginals(solver) if isinstance(solver, BY_MARGINALS) else solver


@dataclass(frozen=True)
class _ByMarginals:
    """A solver that takes marginals, on problems of planes."""

    solver: Any

    @property
    def name(self) -> str:
        return str(self.solver.name)

    def run(self, problem: Any, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        found: MarginMinimum = self.solver.run(MarginalShards(problem, running, self.name), rng=rng, running=running)
        return found
