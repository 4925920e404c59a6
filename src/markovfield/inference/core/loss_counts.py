"""Expected counts weighted by a loss: ``(structure, tables, clamps, loss) -> log Z, E[loss], c, E[loss * c]``.

The loss of an assignment adds up over variables: so much for each state of each. What training for the expected loss
needs (Murphy 19.80) is the covariance of loss and counts, which is the derivative of the expected loss by the
log-potentials; ``E[loss * counts]`` less the product of both expectations, example by example. A method has them in one
of two ways:

* it is a `TiltingMethod`, which answers for the model tilted by the loss, ``p(y) * loss(y) / E[loss]``: the junction
  tree and enumeration do, exactly;
* its counts are the gradient of *its* log Z (messages): then with v the loss, ``(counts at t + e v - counts at t -
  e v) / 2e`` is the covariance (Domke 2010), to about nine digits where the method is exact.

What samples is refused: a difference of two sampled expectations is noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.component_counts import counts_by_component, set_apart
from markovfield.inference.core.counts import is_sampler
from markovfield.inference.core.evidence import Evidence, no_evidence
from markovfield.inference.core.method import InferenceMethod
from markovfield.inference.core.running import Running

__all__ = ["LossCounter", "LossCounts", "TiltingMethod"]

# How far log-potentials may be moved either way, and how far off counts are by rounding.
SHORTEST, LONGEST = 1e-5, 0.1
ROUNDING = 1e-16


class LossCounts(NamedTuple):
    """What `LossCounter.weigh` answers.

    Attributes
    ----------
    expected_loss
        ``float64[n_examples]``.
    weighted
        ``float64[cells]``: the expectation of the loss of an example times how often it reads the cell, summed over the
        examples.
    covariance
        ``float64[cells]``: the same less the product of both expectations: the derivative of the sum of expected losses
        by the log-potentials.
    """

    expected_loss: FloatArray
    weighted: FloatArray
    covariance: FloatArray


@runtime_checkable
class TiltingMethod(Protocol):
    """A method that answers for a model tilted by a loss."""

    def tilted(
        self, graph: FactorGraph, evidence: Evidence, losses: FloatArray, offsets: IntArray, *, running: Running
    ) -> FloatArray:
        """Expected counts of every cell, each example tilted by its own loss: ``losses[state of variable]``.

        No two examples share a cell; losses are at least zero, and an example in which all are stays as it is.
        """
        ...


class LossCounter:
    """Expected counts, and the same weighted by a loss, of one structure again and again.

    Parameters
    ----------
    method
        A method object of `marginals`.
    structure, variable_offsets
        A union of examples, ``int64[n_examples + 1]``, each with a loss of its own; ``[0, n]`` is one.
    differences
        Whether to take differences of two runs also where the method would tilt.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.registry import resolve
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [3.0, 4.0]])
    >>> graph = net.compile()
    >>> counter = LossCounter(resolve("junction_tree", "marginals"), graph.structure, [0, 2], running=Running())
    >>> counter.expect(graph.log_tables).round(3).tolist()
    [0.3, 0.7, 0.4, 0.6]
    >>> found = counter.weigh(np.array([0.0, 1.0, 0.0, 1.0]))  # how many of both are in their second states
    >>> found.expected_loss.round(3).tolist(), found.weighted.round(3).tolist()
    ([1.3], [0.0, 0.2, 0.3, 0.8])
    """

    def __init__(
        self,
        method: InferenceMethod,
        structure: Structure,
        variable_offsets: npt.ArrayLike,
        *,
        running: Running,
        rng: Any = None,
        differences: bool = False,
    ) -> None:
        if is_sampler(method):
            raise ModelError(
                f"{method.name} samples, and a difference of two sampled expectations is noise; "
                "use a method with messages, such as tree_reweighted"
            )
        self.method, self.running, self.rng = method, running, rng
        self.offsets = np.ascontiguousarray(variable_offsets, np.int64)
        self.n_cells, self.n_examples = structure.n_cells, len(self.offsets) - 1
        # Each example is moved by a step, or tilted by a loss, of its own, so that no two may share a cell.
        self.apart = set_apart(structure, self.offsets, np.arange(self.n_examples))
        self._structure = _with_marginals(self.apart.structure)
        example = np.repeat(np.arange(self.n_examples), np.diff(self.offsets))
        self._example = np.repeat(example, structure.cardinalities)
        self.tilts = isinstance(method, TiltingMethod) and not differences
        self.guarantee: Guarantee = "exact"
        self.converged, self.log_partition = True, 0.0
        self._evidence, self._last = no_evidence(structure), None

    @property
    def counts(self) -> FloatArray:
        """Expected counts at the last log-potentials, ``float64[cells]``, summed over the examples."""
        return self.apart.joined(self._counts, self.n_cells)

    def expect(self, log_tables: FloatArray, evidence: Evidence | None = None) -> FloatArray:
        """The marginals, ``float64[states of all variables]``, with these log-potentials."""
        if evidence is not None:
            self._evidence = evidence
        n = self.apart.structure.n_cells
        self._pool = np.concatenate([log_tables[self.apart.origin], np.zeros(len(self._example))])
        found, self._last, self.log_partition = self._run(self._pool, self._last)
        self._counts, self._marginals = found[:n], found[n:]
        return self._marginals

    def weigh(self, losses: FloatArray) -> LossCounts:
        """Counts weighted by ``losses[state of variable]``, at the last log-potentials."""
        expected = np.bincount(self._example, losses * self._marginals, self.n_examples).astype(np.float64)
        of_cell = self.apart.marks.astype(np.int64)
        if self.tilts:
            weighted, covariance = self._tilted(losses, of_cell)
        else:
            covariance = self._moved(losses, of_cell)
            weighted = covariance + expected[of_cell] * self._counts
        return LossCounts(expected, *(self.apart.joined(x, self.n_cells) for x in (weighted, covariance)))

    def _tilted(self, losses: FloatArray, of_cell: IntArray) -> tuple[FloatArray, FloatArray]:
        """By one more run; the least loss of each variable is taken off first, so that none is negative."""
        s = self.apart.structure
        least = np.minimum.reduceat(losses, s.value_offsets[:-1]) if s.n_variables else np.zeros(0)
        above = losses - np.repeat(least, s.cardinalities)
        example = np.repeat(np.arange(self.n_examples), np.diff(self.offsets))
        floor = np.bincount(example, least, self.n_examples)
        rest = np.bincount(self._example, above * self._marginals, self.n_examples)
        above[rest[self._example] <= 0.0] = 0.0
        graph = FactorGraph(s, self._pool[: s.n_cells], marks_hold=True)
        method = cast("TiltingMethod", self.method)
        counts = method.tilted(graph, self._evidence, above, self.offsets, running=self.running.quiet)
        graph.cache.clear()  # what was worked out for it refers to it
        weighted = rest[of_cell] * counts + floor[of_cell] * self._counts
        return weighted, rest[of_cell] * (counts - self._counts)

    def _moved(self, losses: FloatArray, of_cell: IntArray) -> FloatArray:
        """The covariance by moving the log-potentials along the loss, both ways."""
        n, steps = self.apart.structure.n_cells, self._steps(losses)
        pool, moved = self._pool.copy(), []
        for sign in (1.0, -1.0):
            pool[n:] = sign * steps[self._example] * losses
            moved.append(self._run(pool.copy(), self._last)[0][:n])
        return np.asarray((moved[0] - moved[1]) / (2.0 * steps[of_cell]))

    def _steps(self, losses: FloatArray) -> FloatArray:
        """How far each example is moved along its loss.

        A difference of counts is off by the square of how far log-potentials move, and by rounding over the step. Where
        a loss is large, it is that of a probability that is small and takes longer steps: the best is a cube root.
        """
        largest = np.zeros(self.n_examples)
        np.maximum.at(largest, self._example, np.abs(losses))
        blur = ROUNDING if self.guarantee == "exact" else max(ROUNDING, getattr(self.method, "tolerance", 0.0))
        moved = np.clip(np.cbrt(blur * np.maximum(1.0, largest)), SHORTEST, LONGEST)
        return np.divide(moved, largest, where=largest > 0, out=np.ones(len(largest)))

    def _run(self, pool: FloatArray, init: Any) -> tuple[FloatArray, Any, float]:
        """Expected counts, with the marginals behind them, the answer to start the next run from, and log Z."""
        s, running = self._structure, self.running.quiet
        graph = FactorGraph(s, pool, marks_hold=True)
        found = counts_by_component(
            self.method, graph, self._evidence, [0, s.n_variables], running=running, init=init, rng=self.rng
        )
        graph.cache.clear()  # what was worked out for it refers to it
        self.guarantee, self.converged = found.answer.guarantee, self.converged and found.answer.converged
        last = found.answer if "init" in self.method.abilities else None
        return found.counts, last, float(found.log_partition[0])


@remembered
def _with_marginals(s: Structure) -> Structure:
    """The structure with a factor more for each variable, whose counts are its marginals, behind the others' cells."""
    n, values = s.n_variables, s.value_offsets
    return Structure.from_arrays(
        s.cardinalities,
        np.concatenate([s.scope_offsets, s.scope_offsets[-1] + 1 + np.arange(n)]),
        np.concatenate([s.scopes, np.arange(n)]),
        np.concatenate([s.table_offsets, s.n_cells + values[:-1]]),
        np.concatenate([s.table_strides, np.ones(n, np.int64)]),
        n_cells=s.n_cells + int(values[-1]),
        kind=np.concatenate([s.kind, np.zeros(n, np.int8)]),
    )
