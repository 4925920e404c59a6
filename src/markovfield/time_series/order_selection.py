"""How many lags: information criteria of vector autoregressions on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.time_series.regression import lagged, maximum_likelihood
from markovfield.time_series.series import read_series

__all__ = ["OrderSelection", "select_order"]

CRITERIA = ("aic", "bic", "hqic", "fpe")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OrderSelection(Frozen, Tabular):
    """Criteria of orders 0, 1, ...: ``float64[max_order + 1]`` each, per row; the smallest is best."""

    aic: FloatArray
    bic: FloatArray
    hqic: FloatArray
    fpe: FloatArray

    def best(self, criterion: str = "bic") -> int:
        """The order that a criterion chooses."""
        if criterion not in CRITERIA:
            raise ModelError(f"criterion is one of {', '.join(CRITERIA)}, got {criterion!r}")
        return int(np.argmin(getattr(self, criterion)))

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"order": list(range(len(self.aic)))[:limit], **{c: getattr(self, c)[:limit] for c in CRITERIA}}

    def __repr__(self) -> str:
        return f"OrderSelection({', '.join(f'{c} {self.best(c)}' for c in CRITERIA)})"


def select_order(data: Any, max_order: int, intercept: bool) -> OrderSelection:
    """Criteria of Luetkepohl (2005), section 4.3."""
    most = whole_number(max_order, "max_order", 0)
    names, values = read_series(data, "select_order(data)")
    n, k = len(values) - most, len(names)
    if n <= most * k + 1:
        raise ModelError(f"select_order needs more than {most * k + most + 1} rows for order {most}, got {len(values)}")
    found = np.empty((4, most + 1))
    for p in range(most + 1):
        x, y = lagged(values[most - p :], p, intercept) if p else (np.ones((n, int(intercept))), values[most:])
        m = x.shape[1]
        if m:
            free, joined = np.ones((k, m), np.bool_), np.ones((k, k), np.bool_)
            logdet = np.linalg.slogdet(maximum_likelihood(x, y, free, joined).covariance)[1]
        else:
            logdet = np.linalg.slogdet(y.T @ y / n)[1]
        parameters = p * k * k + k * intercept
        found[:, p] = (
            logdet + 2.0 / n * parameters,
            logdet + np.log(n) / n * parameters,
            logdet + 2.0 * np.log(np.log(n)) / n * parameters,
            ((n + m) / (n - m)) ** k * np.exp(logdet),
        )
    return OrderSelection(aic=found[0], bic=found[1], hqic=found[2], fpe=found[3])
