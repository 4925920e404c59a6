"""Sums without the constants of a model: marginals of a view whose tables are less their best, log Z of the model.

At log-potentials around 10^9 a float knows seven digits after the point, and probabilities are differences of such
numbers. A constant in a table changes no probability, so whoever sums is given a view without (see `centring`, which
does this for decoders), and its answer is told in terms of the model again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.inference.constants.decoding import LARGE_CONSTANT, Centred, factor_constants, taken_out
from markovfield.inference.core.answers import Components, LogPartition, Marginals, Samples
from markovfield.inference.core.running import Running

__all__ = ["CentredSums", "centre_sums"]

Answer = TypeVar("Answer", LogPartition, Marginals)


@dataclass(frozen=True, eq=False)
class CentredSums:
    """A graph and the view of it that is summed over.

    Attributes
    ----------
    view
        The graph with ``constants`` (one for each factor) taken out of its tables; itself where there are none to
        speak of. Structure and plans are the same.
    constant
        What all assignments score less there.
    """

    graph: FactorGraph
    view: FactorGraph
    constant: float
    constants: npt.NDArray[np.float64]

    def running(self, running: Running) -> Running:
        """For whoever sums over the view: the callback is told numbers of the graph."""
        return Centred(self.graph, self.view, self.constant).running(running)

    def log_partition(self, found: LogPartition) -> LogPartition:
        """log Z of the view as that of the graph."""
        if self.view is self.graph:
            return found
        bounds = None if found.bounds is None else self._moved(found.bounds)
        return replace(found, log_partition=found.log_partition + self.constant, bounds=bounds, **self._steps(found))

    def marginals(self, found: Marginals) -> Marginals:
        """Marginals of the view, which are those of the graph, with log Z and max-marginals of the graph."""
        if self.view is self.graph:
            return found
        maxima = found._max_marginals
        return replace(
            found,
            graph=self.graph,
            log_partition=found.log_partition + self.constant,
            log_partition_bounds=self._moved(found.log_partition_bounds),
            _components=None if found._components is None else partial(self._components, found),
            _max_marginals=None if maxima is None else lambda: maxima() + self.constant,
            **self._steps(found),
        )

    def samples(self, found: Samples) -> Samples:
        """Samples of the view as those of the graph."""
        if self.view is self.graph:
            return found
        return replace(found, graph=self.graph, log_partition=found.log_partition + self.constant)

    def _moved(self, bounds: tuple[float, float]) -> tuple[float, float]:
        return bounds[0] + self.constant, bounds[1] + self.constant

    def _steps(self, found: LogPartition | Marginals) -> dict[str, Any]:
        """The runs that an answer lists, each with bounds."""
        steps = getattr(found, "details", None)
        if steps is None:
            return {}
        return {
            "details": tuple(replace(x, bounds=self._moved(x.bounds), best=self._moved(x.best)) for x in steps),
        }

    def _components(self, found: Marginals) -> Components:
        """Components of the graph with the constants of their factors."""
        s, parts = self.graph.structure, found.components
        assert parts is not None
        some = np.diff(s.scope_offsets) > 0
        component = parts.component[s.scopes[s.scope_offsets[:-1][some]]]
        more = np.bincount(component, self.constants[some], len(parts))
        return replace(parts, log_partition=parts.log_partition + more)


@remembered
def centre_sums(graph: FactorGraph) -> CentredSums:
    """Take large constants out of a graph's tables; looked for once per graph.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], log_table=[1e9, 1e9 + 2.0])
    >>> found = centre_sums(net.compile())
    >>> found.view.log_tables.tolist(), found.constant
    ([-2.0, 0.0], 1000000002.0)
    """
    found = CentredSums(graph, graph, 0.0, np.zeros(0))
    top = float(graph.log_tables.max(initial=0.0))
    low = float(graph.log_tables.min(initial=0.0, where=graph.log_tables > -np.inf))
    if max(top, -low) >= LARGE_CONSTANT and np.isfinite(top):
        constants = factor_constants(graph)
        constants = np.where(np.isfinite(constants), constants, 0.0)
        taken = taken_out(graph, constants)
        if taken is None:
            # Factors share cells and differ in their best: small constants may stay.
            constants = np.where(np.abs(constants) >= LARGE_CONSTANT, constants, 0.0)
            taken = taken_out(graph, constants)
        if taken is not None:
            found = CentredSums(graph, *taken, constants)
    return found
