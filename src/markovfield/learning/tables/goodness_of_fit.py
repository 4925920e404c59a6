"""How well a table of counts is described by a model: deviance, Pearson's statistic, degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import log_partition
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable, encode
from markovfield.learning.tables.model_tables import ModelTables

__all__ = ["GoodnessOfFit", "fitted_table", "goodness_of_fit"]

# Cells of a joint table that is looked at one by one, and entries of the design whose rank is taken.
MOST_CELLS, MOST_ENTRIES = 2**16, 2**24


@dataclass(frozen=True, kw_only=True)
class GoodnessOfFit(Tabular):
    """A model against the saturated one, which fits every cell.

    Attributes
    ----------
    deviance, pearson
        G2 = 2 sum n log(n / m) and X2 = sum (n - m)^2 / m, with n observed and m expected counts.
    degrees_of_freedom
        Cells that the model and the margins leave possible, less the rank of the design on them. None where the table
        has more than 2^16 cells.
    plain_degrees_of_freedom
        Cells less parameters, whether margins are empty or not: what R's ``loglin`` gives.
    p_value, pearson_p_value
        Probabilities of a larger statistic under the chi-squared distribution with `degrees_of_freedom` (the plain
        ones where those are None).
    log_likelihood, n_parameters, total
        Of the rows as they came; free parameters; the number of observations.
    """

    deviance: float
    pearson: float
    degrees_of_freedom: int | None
    plain_degrees_of_freedom: int
    log_likelihood: float
    n_parameters: int
    total: float

    def _survival(self, statistic: float) -> float:
        from scipy.special import chdtrc

        freedom = self.plain_degrees_of_freedom if self.degrees_of_freedom is None else self.degrees_of_freedom
        return 1.0 if freedom <= 0 else float(chdtrc(freedom, max(statistic, 0.0)))

    @property
    def p_value(self) -> float:
        """Of the deviance."""
        return self._survival(self.deviance)

    @property
    def pearson_p_value(self) -> float:
        """Of Pearson's statistic."""
        return self._survival(self.pearson)

    @property
    def aic(self) -> float:
        """Akaike's criterion, as a score to maximise: log-likelihood less the number of parameters."""
        return self.log_likelihood - self.n_parameters

    @property
    def bic(self) -> float:
        """Bayesian information criterion, as a score to maximise."""
        return self.log_likelihood - 0.5 * self.n_parameters * math.log(max(self.total, 1.0))

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = ("deviance", "pearson", "degrees_of_freedom", "plain_degrees_of_freedom", "p_value", "aic", "bic")
        return {name: [getattr(self, name)] for name in names}


def goodness_of_fit(model: Any, data: Any, *, weights: Any = None) -> GoodnessOfFit:
    """Deviance, Pearson's statistic and degrees of freedom of a fitted network of tables.

    Parameters
    ----------
    model
        A `MarkovNetwork` or `FactorGraph` of plain tables, fitted by any method.
    data, weights
        As for `markovfield.fit`; for a table of counts, one row a cell and ``weights`` its column of counts.

    Returns
    -------
    GoodnessOfFit
        Both statistics are sums over the distinct rows, so the joint table may be of any size.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = {"sex": [0, 0, 1, 1], "hand": [0, 1, 0, 1], "n": [43, 9, 44, 4]}
    >>> net = mf.MarkovNetwork.from_generators({"sex": 2, "hand": 2}, "sex/hand")
    >>> fitted = mf.fit(net, data, "ipf", weights="n")
    >>> fit = mf.learning.goodness_of_fit(fitted, data, weights="n")
    >>> round(fit.deviance, 4), round(fit.pearson, 4), fit.degrees_of_freedom
    (1.825, 1.7774, 1)
    """
    table = encode(data, model, weights=weights)
    if table.has_missing:
        raise ModelError("goodness_of_fit needs complete data")
    tables = ModelTables(model, "goodness_of_fit")
    return fit_of_tables(tables, tables.graph.log_tables, float(log_partition(model).log_partition), table)


def fit_of_tables(tables: ModelTables, log_tables: FloatArray, log_z: float, table: DataTable) -> GoodnessOfFit:
    """The same for a pool of log-potentials whose partition function is known."""
    rows = table.distinct()
    counts = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    rows, counts = rows.rows(counts > 0), counts[counts > 0]
    total = float(counts.sum())
    s = tables.graph.structure
    log_p = np.full(len(counts), -log_z)
    codes = rows.codes.astype(np.int64)
    for f in range(s.n_factors):
        at = np.full(len(counts), s.table_offsets[f])
        for v, stride in zip(s.scope(f).tolist(), s.strides(f).tolist(), strict=True):
            at += stride * codes[v]
        log_p += log_tables[at]
    log_likelihood = float(counts @ log_p)
    with np.errstate(over="ignore"):
        pearson = float((counts**2 * np.exp(-log_p)).sum() / total - total)
    cells = math.prod(tables.cardinalities)
    margins = family_counts(rows if rows.weights is not None else table, tables.scopes, running=Running())
    return GoodnessOfFit(
        deviance=2.0 * (float(counts @ np.log(counts / total)) - log_likelihood),
        pearson=max(pearson, 0.0),
        degrees_of_freedom=_degrees_on_support(tables, margins, cells),
        plain_degrees_of_freedom=cells - tables.n_parameters - 1,
        log_likelihood=log_likelihood,
        n_parameters=tables.n_parameters,
        total=total,
    )


def _degrees_on_support(tables: ModelTables, margins: Sequence[FloatArray], cells: int) -> int | None:
    """Cells in no empty margin and no structural zero, less the rank of the indicators of the margins on them."""
    allowed = [m > 0 if z is None else (m > 0) & (z > 0) for m, z in zip(margins, tables.zeros, strict=True)]
    base = [(scope, log_table > -np.inf) for scope, log_table in tables.base]
    if all(a.all() for a in allowed) and all(a.all() for _, a in base):
        return cells - tables.n_parameters - 1
    if cells > MOST_CELLS:
        return None
    states = np.indices(tables.cardinalities, dtype=np.int32).reshape(len(tables.cardinalities), -1)
    place, support = [], np.ones(cells, bool)
    for scope, inside in zip(tables.scopes, allowed, strict=True):
        at = np.ravel_multi_index(tuple(states[v] for v in scope), inside.shape)
        place.append(at)
        support &= inside.ravel()[at]
    for scope, inside in base:
        support &= inside.ravel()[np.ravel_multi_index(tuple(states[v] for v in scope), inside.shape)]
    n = int(support.sum())
    widths = [a.size for a in allowed]
    if n * sum(widths) > MOST_ENTRIES:
        return None
    design = np.zeros((n, sum(widths)))
    start = 0
    for at, width in zip(place, widths, strict=True):
        design[np.arange(n), start + at[support]] = 1.0
        start += width
    return n - int(np.linalg.matrix_rank(design))


def fitted_table(model: Any, total: float = 1.0) -> FloatArray:
    """Expected counts of every cell of the joint table, axes in the order of the variables; at most 2^20 cells.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork.from_generators({"A": 2, "B": 2}, "A/B")
    >>> fitted_table(net, total=8).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    from markovfield.graphs.joint_table import JointTable

    probabilities: FloatArray = JointTable.of(model).probabilities
    return total * probabilities
