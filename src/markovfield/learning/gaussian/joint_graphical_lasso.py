"""Graphs of several classes, or times, that are learned together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.columns import named_columns
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.gaussian.joint_solver import minimise_jointly
from markovfield.learning.gaussian.learned import field_of, learned_graph
from markovfield.learning.gaussian.moments import GaussianMoments, guard_dense, read_moments, read_numbers
from markovfield.learning.structures.regressions import one_blas_thread
from markovfield.names import VariableName, check_name

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["JointGraphicalLasso", "JointGraphs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class JointGraphs(Tabular):
    """Fields of several classes, learned together: ``details`` of what `JointGraphicalLasso` learns.

    Attributes
    ----------
    fields
        A `GaussianField` for each class.
    objective, gap
        What was minimised, and how far above the least value that can be, a proven bound.
    """

    fields: Mapping[Any, GaussianField] = field(repr=False)
    objective: float
    gap: float

    @property
    def graphs(self) -> dict[Any, nx.Graph]:
        """The graph of each class."""
        return {name: each.markov_graph() for name, each in self.fields.items()}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        graphs = list(self.graphs.items())[:limit]
        return {"class": [name for name, _ in graphs], "edges": [g.number_of_edges() for _, g in graphs]}

    def __repr__(self) -> str:
        edges = ", ".join(f"{name}: {g.number_of_edges()} edges" for name, g in self.graphs.items())
        return f"JointGraphs({edges})"


@dataclass(frozen=True)
class JointGraphicalLasso:
    """Sparse precisions of several classes or times, with a penalty that lets edges come in all of them together.

    The group penalty of Danaher, Wang and Witten (2014): minimised is the sum over classes k, by their share of the
    rows (one on average), of ``-log det X_k + tr(S_k X_k)``, plus over pairs i != j ``penalty sum_k |X_k,ij| +
    group_penalty sqrt(sum_k X_k,ij^2)``, for correlation matrices S_k. Without a group penalty they are graphical
    lassos by themselves. The answer's graph has the edges of any class; ``details.fields`` and ``details.graphs`` are
    by class.

    Parameters
    ----------
    penalty, group_penalty
        At least 0, and not both 0.
    by
        The name of the column that says the class of a row; None: the data are a list of tables, or a dict from classes
        to tables or `GaussianMoments`.
    tolerance
        The duality gap at which the minimum is reached.
    max_iterations
        Newton steps.
    memory_limit
        For dense matrices: about eight for each class.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x = np.random.default_rng(0).standard_normal((500, 5))
    >>> for v in range(1, 5):
    ...     x[:, v] += 0.5 * x[:, v - 1]
    >>> rows = dict(zip("abcde", x.T)) | {"year": np.repeat([2001, 2002], 250)}
    >>> learned = mf.learn_structure(rows, method=mf.methods.JointGraphicalLasso(0.05, 0.2, by="year"))
    >>> learned.details
    JointGraphs(2001: 4 edges, 2002: 4 edges)
    """

    name: ClassVar[str] = "joint_graphical_lasso"
    form: ClassVar[str] = "GaussianMoments"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float = 0.05
    group_penalty: float = 0.1
    by: VariableName | None = None
    tolerance: float = 1e-8
    max_iterations: int = 200
    memory_limit: str | float | None = None

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"penalty": 0, "group_penalty": 0, "max_iterations": 1},
            above={"tolerance": 0},
            below={"penalty": math.inf, "group_penalty": math.inf},
        )
        if self.penalty == 0 and self.group_penalty == 0:
            raise ModelError("penalty and group_penalty of JointGraphicalLasso must not both be 0")
        memory_limit_bytes(self.memory_limit)
        if self.by is not None:
            check_name(self.by)

    def learn(self, data: Any, *, weights: Any, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """All classes together."""
        by_class = self._classes(data, weights)
        first = next(iter(by_class.values()))
        n = first.n_variables
        guard_dense(n, "JointGraphicalLasso", 8 * len(by_class), self.memory_limit)
        each = [m.among(first.variables) for m in by_class.values()]
        s = np.stack([m.correlation for m in each])
        rows = np.array([m.n_rows for m in each])
        with small(CELL * s.size * 50), one_blas_thread():
            found = minimise_jointly(
                s,
                rows / rows.mean(),
                float(self.penalty),
                float(self.group_penalty),
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
                running=running,
            )
        x = found.precisions
        fields = {
            name: field_of(m, part / (m.deviations[:, None] * m.deviations))
            for (name, m), part in zip(zip(by_class, each, strict=True), x, strict=True)
        }
        roots = np.sqrt(np.einsum("kii->ki", x))
        partial = -x / (roots[:, :, None] * roots[:, None, :])
        pairs = np.argwhere(np.triu((x != 0).any(axis=0), 1)).tolist()
        names = first.variables
        return learned_graph(
            each[0],
            None,
            [(names[a], names[b]) for a, b in pairs],
            [float(partial[:, a, b].mean()) for a, b in pairs],
            method=self.name,
            score=-found.objective,
            score_name="minus the objective",
            iterations=found.iterations,
            converged=found.converged,
            stopped=None if found.converged else "max_iterations",
            details=JointGraphs(fields=fields, objective=found.objective, gap=found.gap),
        )

    def _classes(self, data: Any, weights: Any) -> dict[Any, GaussianMoments]:
        """Moments of each class."""
        if self.by is None:
            if weights is not None:
                raise ModelError("weights of joint_graphical_lasso are a column's name or an array, with by=...")
            parts = dict(data) if isinstance(data, Mapping) else dict(enumerate(data)) if isinstance(data, list) else {}
            if len(parts) < 2:
                raise ModelError("joint_graphical_lasso needs by=..., or a list or dict of at least two tables")
            return {name: read_moments(part, what=f"class {name!r}") for name, part in parts.items()}
        columns = named_columns(data)
        if columns is None or self.by not in columns:
            raise ModelError(f"the data has no column {self.by!r} to tell classes by")
        labels = np.asarray(columns.pop(self.by))
        table = read_numbers(columns, weights=weights, what=self.name)
        if len(labels) != table.n_rows:
            raise ModelError(f"column {self.by!r} has {len(labels)} rows, where the others have {table.n_rows}")
        kinds = np.unique(labels).tolist()
        if len(kinds) < 2:
            raise ModelError(f"joint_graphical_lasso needs at least two classes, and column {self.by!r} has one")
        return {kind: table.rows(labels == kind).moments(f"class {kind!r}") for kind in kinds}
