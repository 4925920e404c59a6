"""What a method is: settings in a frozen dataclass, and a function for each verb that it answers.

One protocol a verb. A method is registered once (`registry`), for one form of model; verbs hand it the compiled model
and evidence by position, and never look at its class. ``abilities`` says what else it takes: ``"init"`` an earlier
answer to start from, ``"rng"`` a generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from markovfield.factors.factor_graph import FactorGraph
    from markovfield.inference.core.answers import LogPartition, Marginals, Samples
    from markovfield.inference.core.decodings import Decoding
    from markovfield.inference.core.evidence import Evidence
    from markovfield.inference.core.running import Running

__all__ = [
    "DecodeMethod",
    "LogPartitionMethod",
    "MarginalsMethod",
    "Method",
    "MethodLike",
    "SampleMethod",
]


@runtime_checkable
class Method(Protocol):
    """What every method says of itself, whatever it answers."""

    name: ClassVar[str]
    verbs: ClassVar[frozenset[str]]


class InferenceMethod(Method, Protocol):
    """A method of `marginals`, `log_partition`, `decode` or `sample`.

    Attributes
    ----------
    exact
        Whether its answers, where it gives any, are exact.
    abilities
        What it takes beyond the graph and the evidence: ``"init"``, ``"rng"``.
    """

    exact: ClassVar[bool]
    abilities: ClassVar[frozenset[str]]


class MarginalsMethod(InferenceMethod, Protocol):
    """Answers `marginals`."""

    def marginals(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        targets: Sequence[Sequence[int]] = (),
        running: Running,
        **extra: Any,
    ) -> Marginals:
        """Marginals of all variables, those of each of the ``targets`` kept together."""
        ...


class LogPartitionMethod(InferenceMethod, Protocol):
    """Answers `log_partition`."""

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running, **extra: Any) -> LogPartition:
        """log Z, or bounds on it."""
        ...


class DecodeMethod(InferenceMethod, Protocol):
    """Answers `decode`."""

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
        **extra: Any,
    ) -> Decoding:
        """The best assignment, or the best states of some variables with the others summed out."""
        ...


class SampleMethod(InferenceMethod, Protocol):
    """Answers `sample`."""

    def sample(
        self,
        graph: FactorGraph,
        size: int,
        evidence: Evidence,
        *,
        rng: np.random.Generator,
        running: Running,
        **extra: Any,
    ) -> Samples:
        """So many assignments."""
        ...


# What a user may give: a name, a class with its defaults, or an object with settings.
MethodLike: TypeAlias = str | Method | type[Method]
