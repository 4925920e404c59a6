"""Settings of training that many estimators share, said once; `StructuredClassifier` and `GraphSSVM` describe them.

An estimator is a dataclass whose fields are its settings: its own, and those that it inherits from one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markovfield.inference.core.method import MethodLike

__all__ = ["GraphSettings", "LikelihoodSettings", "MarginSettings", "TrainingSettings"]


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingSettings:
    """What finds the weights."""

    solver: Any = "auto"
    batch_size: int | None = None
    rng: Any = None
    n_jobs: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class LikelihoodSettings(TrainingSettings):
    """An objective with penalties, as conditional random fields have."""

    objective: Any = "likelihood"
    l2: float | Mapping[str, float] = 1.0
    l1: float | Mapping[str, float] = 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class GraphSettings(LikelihoodSettings):
    """The same for outputs that are factor graphs, and what infers there."""

    inference: MethodLike = "auto"
    decoding: MethodLike = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class MarginSettings(TrainingSettings):
    """Hinges and what they cost, as structural support vector machines have."""

    C: float = field(default=1.0, kw_only=False)
    loss: Any = "hamming"
    rescaling: str = "margin"
    early_stopping: int | None = None
