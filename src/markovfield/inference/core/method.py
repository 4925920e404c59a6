"""What a method is: settings in a frozen dataclass, and a function for each verb that it answers.

One protocol a verb. A method is registered once (`registry`), for one form of model; verbs hand it the compiled model
and evidence by position, and never look at its class. ``abilities`` says what else it takes: ``"init"`` an earlier
answer to start from, ``"rng"`` a generator, ``"targets"`` variables to keep together, ``"n_best"`` the number of
assignments, ``"marginal_map"`` the variables to decode with the others summed out; and ``"components"``, that its
answers tell connected components apart. A method is handed only what it takes, and what it cannot answer is refused in
the same words for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from markovfield.exceptions import ModelError

if TYPE_CHECKING:
    import numpy as np

    from markovfield.factors.factor_graph import FactorGraph
    from markovfield.inference.core.answers import LogPartition, Marginals, Samples
    from markovfield.inference.core.decodings import Decoding
    from markovfield.inference.core.evidence import Evidence
    from markovfield.inference.core.running import Running

__all__ = [
    "DecodeMethod",
    "InferenceMethod",
    "LogPartitionMethod",
    "MarginalsMethod",
    "Method",
    "MethodLike",
    "Question",
    "SampleMethod",
    "check_decodes",
    "taken",
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
        What it takes beyond the graph and the evidence: ``"init"``, ``"rng"``, ``"targets"``, ``"n_best"``,
        ``"marginal_map"``; and whether it tells ``"components"`` apart.
    """

    exact: ClassVar[bool]
    abilities: ClassVar[frozenset[str]]


class MarginalsMethod(InferenceMethod, Protocol):
    """Answers `marginals`."""

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running, **extra: Any) -> Marginals:
        """Marginals of all variables."""
        ...


class LogPartitionMethod(InferenceMethod, Protocol):
    """Answers `log_partition`."""

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running, **extra: Any) -> LogPartition:
        """log Z, or bounds on it."""
        ...


class DecodeMethod(InferenceMethod, Protocol):
    """Answers `decode`."""

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running, **extra: Any) -> Decoding:
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


@dataclass(frozen=True, eq=False)
class Question:
    """What a user asks beside the verb's own words: given what, by which method, from where, and run how."""

    evidence: Any
    method: MethodLike
    init: Any
    rng: Any
    running: Running
    # The variance with which evidence was seen, of real-valued variables.
    noise: Any = None


# What a user may give: a name, a class with its defaults, or an object with settings.
MethodLike: TypeAlias = str | Method | type[Method]


def taken(method: InferenceMethod, **asked: Any) -> dict[str, Any]:
    """Of what is asked for, the part that a method takes."""
    return {word: value for word, value in asked.items() if word in method.abilities}


def check_decodes(method: InferenceMethod, graph: FactorGraph, variables: Sequence[int] | None, n_best: int) -> None:
    """Raise where more than one assignment, marginal MAP or a noisy-max is asked of a method that cannot answer."""
    name = method.name
    if n_best > 1 and "n_best" not in method.abilities:
        raise ModelError(f"{name} finds one assignment, not the {n_best} best: use junction_tree")
    if "marginal_map" in method.abilities:
        return
    if variables is not None and len(set(variables)) < graph.n_variables:
        raise ModelError(
            f"{name} decodes all {graph.n_variables} variables, not {len(set(variables))} of them with the others "
            "summed out: use junction_tree, or marginal_search"
        )
    if graph.structure.has_latent:
        raise ModelError(
            f"{name} would maximise the contributions of a noisy-max, which must be summed: use junction_tree"
        )
