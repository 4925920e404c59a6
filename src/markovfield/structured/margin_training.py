"""Solvers of hinges by name, and those that take marginals on problems of planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import vstack

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.dual_extragradient import DualExtragradient
from markovfield.learning.max_margin.dual_loss import DualLossPrimalWeights
from markovfield.learning.max_margin.excessive_gap import ExcessiveGap
from markovfield.learning.max_margin.exponentiated_gradient import ExponentiatedGradient
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.kernel_frank_wolfe import KernelFrankWolfe
from markovfield.learning.max_margin.max_margin_network import MaxMarginMarkovNetwork
from markovfield.learning.max_margin.multiclass import ClassAscent, Classes
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.problem import MarginMinimum
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.operators import TensorProduct
from markovfield.structured.marginals.dual_losses import DualLosses
from markovfield.structured.marginals.shards import MarginalShards
from markovfield.structured.oracles.oracles import AdditiveOracle

__all__ = ["MARGIN_SOLVERS", "margin_solver", "multiclass_data"]

MARGIN_SOLVERS: dict[str, Any] = {
    "block_frank_wolfe": BlockFrankWolfe,
    "bcfw": BlockFrankWolfe,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "subgradient": Subgradient,
    "perceptron": StructuredPerceptron,
    "exponentiated_gradient": ExponentiatedGradient,
    "dual_extragradient": DualExtragradient,
    "dual_loss": DualLossPrimalWeights,
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
        found = Automatic if solver == "auto" else MARGIN_SOLVERS.get(solver)
        if found is None:
            names = ", ".join(map(repr, MARGIN_SOLVERS))
            raise ModelError(f"solver of a hinge must be one of {names}, or such an object, got {solver!r}")
        solver = found()
    if isinstance(solver, KernelFrankWolfe):
        raise ModelError("KernelFrankWolfe is for estimators with a kernel: pass kernel='rbf' or another as well")
    if not hasattr(solver, "run") or solver.name not in MARGIN_SOLVERS:
        raise ModelError(f"{type(solver).__name__} does not minimise a hinge; take solver='block_frank_wolfe'")
    if isinstance(solver, DualLossPrimalWeights):
        return _ByMessages(solver)
    return _ByMarginals(solver) if isinstance(solver, BY_MARGINALS) else solver


@dataclass(frozen=True)
class Automatic:
    """Block-coordinate Frank-Wolfe; where every example is one label of a linear model, ascent by classes."""

    name: ClassVar[str] = "block_frank_wolfe"

    def run(self, problem: Any, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise by what suits the problem."""
        data = multiclass_data(problem)
        if data is None:
            return BlockFrankWolfe().run(problem, rng=rng, running=running)
        return ClassAscent().run(*data, rng=rng, running=running)


def multiclass_data(problem: Any) -> tuple[Any, Classes] | None:
    """Inputs and labels of a problem with a label for each example and a weight for each feature and label, or None."""
    oracles = getattr(problem, "oracles", None)
    if not oracles or problem.restraint or any(type(oracle) is not AdditiveOracle for oracle in oracles):
        return None
    inputs, labels, tables = [], [], []
    for oracle in oracles:
        batch = getattr(oracle.decoder, "batch", None)
        if not isinstance(batch, Batch) or len(batch.factors) != 1 or batch.base is not None:
            return None
        kind = batch.factors[0]
        made: Any = kind.operator
        n, cards = batch.structure.n_variables, batch.structure.cardinalities
        plain = isinstance(made, TensorProduct) and made.features is not None and made.states is None
        single = batch.n_examples == n and kind.scopes.shape == (n, 1) and kind.table is None
        if not plain or not single or (kind.scopes[:, 0] != np.arange(n)).any() or (cards != cards[0]).any():
            return None
        inputs.append(made.features)
        labels.append(batch.labels.astype(np.int64))
        tables.append(oracle.costs.reshape(n, -1))
    joined, costs = np.concatenate(labels), np.concatenate(tables)
    # What a label costs must be the same wherever it is the truth.
    table = np.zeros((costs.shape[1], costs.shape[1]))
    table[joined] = costs
    if (table[joined] != costs).any():
        return None
    if isinstance(inputs[0], np.ndarray):
        X: Any = np.ascontiguousarray(np.concatenate(inputs), np.float64)
    else:
        X = vstack(inputs, format="csr").astype(np.float64)
    return X, Classes(joined, table, problem.costs)


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


@dataclass(frozen=True)
class _ByMessages:
    """A solver that takes bounds by messages, on problems of planes."""

    solver: DualLossPrimalWeights
    name: ClassVar[str] = DualLossPrimalWeights.name

    def run(self, problem: Any, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        return self.solver.run(DualLosses(problem, running.quiet), rng=rng, running=running)
