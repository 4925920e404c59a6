"""Expected counts: the seam that all learning stands on, ``(structure, tables, clamps) -> log Z, counts``.

The expected count of a cell is how often it is read in expectation, which is the derivative of log Z by that cell
(Murphy 19.40; Andres 6.24 to 6.28); with some variables clamped it is the same for what is left (19.47, 19.48). Any
method can offer them:

* a method with a ``counts`` function of its own answers many rows of clamps in one call (`CountsMethod`; the junction
  tree does, with rows as the fastest axis);
* a method that tells connected components apart, and says which rows do not disturb each other (`JoiningMethod`:
  belief propagation, tree-reweighted, mean field), is asked about many copies of the graph at once;
* any other method of `marginals` whose answers have ``expected_counts`` (mini-buckets, generalised belief propagation,
  ...) is asked row by row: its counts are the gradient of *its* log Z;
* a method that only samples is asked for ``n_samples`` of each row, and the counts have standard errors.

`markovfield.inference.core.row_counts` asks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import cell_reader
from markovfield.inference.core.answers import ByComponent, Guarantee, Marginals, Samples
from markovfield.inference.core.diagnostics import error_floor
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import InferenceMethod, MarginalsMethod, MethodLike, SampleMethod
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running

__all__ = [
    "Counts",
    "CountsMethod",
    "JoiningMethod",
    "Rows",
    "counts_of_samples",
    "is_sampler",
    "resolve_counts",
    "row_by_row",
    "together",
]

Rows = npt.NDArray[np.int32]
# Batches of consecutive draws whose averages say how far the average of all may be off.
BATCHES = 32
# The worst of several guarantees is that of their sum; an upper and a lower bound together bound nothing.
_RANK: dict[Guarantee, int] = {"exact": 0, "upper": 1, "lower": 2, "approximate": 3}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Counts(ByComponent):
    """log Z and expected counts; ``log_partition, counts = answer`` unpacks it.

    Attributes
    ----------
    log_partition
        One number, or ``float64[rows]`` where many rows of clamps were given: -inf for a row of probability zero, nan
        from methods that do not estimate it.
    counts
        ``float64[cells]``: the expected count of each cell, summed over the rows with their weights.
    standard_errors
        ``float64[cells]`` where the counts are averages over samples, otherwise None.
    components
        Of one row of clamps: the connected components with their log Z, where the method tells them apart.
    """

    log_partition: Any
    counts: FloatArray
    standard_errors: FloatArray | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.log_partition, self.counts))

    def __getitem__(self, index: int) -> Any:
        return (self.log_partition, self.counts)[index]

    def __len__(self) -> int:
        return 2

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns: dict[Any, Any] = {"cell": np.arange(len(self.counts))[:limit], "count": self.counts[:limit]}
        return columns if self.standard_errors is None else columns | {"standard_error": self.standard_errors[:limit]}

    def __repr__(self) -> str:
        rows = np.size(self.log_partition)
        value = f"log Z = {float(self.log_partition):.6g}" if np.ndim(self.log_partition) == 0 else f"{rows} rows"
        return f"Counts of {len(self.counts)} cells: {value} ({self.guarantee}), {self.method}, {self.seconds:.3g} s"


@runtime_checkable
class CountsMethod(Protocol):
    """A method that answers many rows of clamps in one call."""

    def counts(self, graph: FactorGraph, clamps: Rows, weights: FloatArray, *, running: Running) -> Counts:
        """log Z of each row, and the weighted sum of their expected counts."""
        ...


@runtime_checkable
class JoiningMethod(Protocol):
    """A method for which many rows of clamps may be components of one graph."""

    def rows_that_join(self, graph: FactorGraph, clamps: Rows) -> npt.NDArray[np.int64] | None:
        """``int64[rows]``: rows of the same number may be asked about together; None where none may."""
        ...


def resolve_counts(method: MethodLike) -> Any:
    """The method behind a name, of those that answer `marginals`, and otherwise of those that sample."""
    try:
        return resolve(method, "marginals")
    except ModelError as refusal:
        try:
            return resolve(method, "sample")
        except ModelError:
            raise refusal from None


def row_by_row(
    method: InferenceMethod,
    graph: FactorGraph,
    clamps: Rows,
    weights: FloatArray,
    n_samples: int,
    rng: Any,
    running: Running,
) -> Counts:
    """One question for each row, answered by messages, by enumeration or by samples."""
    total = np.zeros(graph.structure.n_cells)
    variance: FloatArray | None = None
    values = np.full(len(clamps), -np.inf)
    guarantee: Guarantee = "exact"
    converged, iterations = True, 0
    parts: Any = None
    samples = is_sampler(method)
    sampling, summing = cast("SampleMethod", method), cast("MarginalsMethod", method)
    extra: dict[str, Any] = {"rng": rng} if samples or "rng" in method.abilities else {}
    for i, row in enumerate(clamps):
        found: Marginals | Samples
        try:
            if samples:
                found = drawn = sampling.sample(graph, n_samples, Evidence(row), running=running, **extra)
                counts, errors = counts_of_samples(drawn)
                variance = np.zeros(len(total)) if variance is None else variance
                variance += np.square(weights[i] * errors)
            else:
                found = answer = summing.marginals(graph, Evidence(row), running=running, **extra)
                counts = answer.expected_counts
                parts = answer._components if len(clamps) == 1 else None
        except ImpossibleEvidenceError:
            continue
        values[i] = found.log_partition
        total += weights[i] * counts
        converged, iterations = converged and found.converged, max(iterations, found.iterations)
        guarantee = together(guarantee, found.guarantee if not samples else "approximate")
    return Counts(
        log_partition=values,
        counts=total,
        standard_errors=None if variance is None else np.sqrt(variance),
        _components=parts,
        method=method.name,
        guarantee=guarantee,
        converged=converged,
        iterations=iterations,
    )


def is_sampler(method: InferenceMethod) -> bool:
    """Whether counts are averages over samples: those over Markov chains are taken from the chains' samples."""
    return "sample" in method.verbs and ("marginals" not in method.verbs or "rng" in method.abilities)


def together(one: Guarantee, other: Guarantee) -> Guarantee:
    """What holds of a sum of two numbers."""
    if {one, other} == {"upper", "lower"}:
        return "approximate"
    return max(one, other, key=_RANK.__getitem__)


def counts_of_samples(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Average counts of every cell over samples, and standard errors from averages of batches of consecutive rows.

    A cell that never came up has the error that so many draws leave open, not zero.
    """
    graph = samples.graph
    s = graph.structure
    if s.has_latent:
        raise ModelError("samples do not show what a noisy-max sums over; ask junction_tree for its expected counts")
    if not len(samples):
        raise ModelError("there are no samples to take expected counts from")
    read = cell_reader(s)
    weight = samples.weights
    n_batches = min(BATCHES, len(samples))
    edges = np.linspace(0, len(samples), n_batches + 1).astype(np.int64)
    sums, masses = np.zeros((n_batches, s.n_cells)), np.zeros(n_batches)
    for b in range(n_batches):
        for row in range(edges[b], edges[b + 1]):
            np.add.at(sums[b], read(samples.states[row].astype(np.int64)), weight[row])
            masses[b] += weight[row]
    mass = masses.sum()
    counts = sums.sum(axis=0) / mass
    apart = sums - np.outer(masses, counts)
    errors = np.sqrt(np.square(apart).sum(axis=0) * n_batches / max(1, n_batches - 1)) / mass
    # Factors that share a cell read it several times: the floor is for each of them.
    reads = np.maximum(1.0, np.bincount(read(samples.states[0].astype(np.int64)), minlength=s.n_cells))
    return counts, np.maximum(errors, error_floor(1.0 / float(np.square(weight).sum())) * np.sqrt(reads))
