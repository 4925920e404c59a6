"""Predictions for the rows of a table: what each row says of the variables it does not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.columns import named_columns
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import to_frame
from markovfield.inference.automatic import choose
from markovfield.inference.core.batches import prediction_columns
from markovfield.inference.core.evidence import Evidence, no_evidence, rows
from markovfield.inference.core.method import InferenceMethod, MethodLike
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback, graph_of, marginals
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["predict"]

Rows = npt.NDArray[np.int32]

# Rows run together before the clock is looked at.
CHUNK = 2**14
# Up to so many different rows, a model small enough to be enumerated is: nothing is compiled for them.
FEW_ROWS = 256


@shows_progress
def predict(
    model: Any,
    data: Any,
    targets: VariableName | Sequence[VariableName] | None = None,
    method: MethodLike = "auto",
    *,
    impossible: str = "raise",
    backend: str | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Any:
    """The likeliest state and the probabilities of some variables, for each row of a table.

    Parameters
    ----------
    data
        A pandas or polars frame, or a dict of columns, with states by name: NaN, None, pandas.NA and variables without
        a column are not known. A column that is no variable is an error. Or ``int[rows, n_variables]`` state indices,
        -1 for missing.
    targets
        A variable or several. Their own columns, where the table has them, are not looked at. None is every variable
        that some row does not show; where a row shows it, it has what the row says.
    method
        ``"auto"`` is exact, by one junction tree for all rows. A method that is not, such as
        ``"belief_propagation"``, answers when it is named.
    impossible
        ``"raise"``, or ``"nan"`` for rows of probability zero: they have no state and probabilities of nan.
    backend
        ``"pandas"`` or ``"polars"``; None is the library of the data, pandas where it has none.
    n_jobs, time_limit, callback, progress
        See `Running`.

    Returns
    -------
    frame
        For each target X a column ``X`` of likeliest states, each by itself, and columns ``P(X=state)``; rows (and
        pandas's index) as in the data.

    Notes
    -----
    Rows that show the same are answered once.

    Examples
    --------
    >>> import markovfield as mf
    >>> import pandas as pd
    >>> seen = pd.DataFrame({"wet_grass": ["yes", "no", None], "sprinkler": ["off", "on", "on"]})
    >>> mf.predict(mf.datasets.sprinkler(), seen, "rain").round(3)
      rain  P(rain=no)  P(rain=yes)
    0  yes       0.000        1.000
    1   no       0.959        0.041
    2   no       0.700        0.300
    """
    if impossible not in ("raise", "nan"):
        raise ModelError(f"impossible must be 'raise' or 'nan', got {impossible!r}")
    graph = graph_of(model)
    running = Running(n_jobs, time_limit, callback)
    given = rows(graph.structure, data)
    names, given = _asked(graph, given, targets)
    first, same = _distinct(graph, given)
    parts: list[list[FloatArray]] = [[] for _ in names]
    done = 0
    for batch in _batches(graph, given[first], method, running):
        for part, name in zip(parts, names, strict=True):
            part.append(batch[name])
        dead = np.flatnonzero(np.isnan(parts[0][-1]).any(axis=1))
        if len(dead) and impossible == "raise":
            row = int(np.flatnonzero(same == done + dead[0])[0])
            seen = Evidence(given[row]).describe(graph.structure)
            raise ImpossibleEvidenceError(f"the model gives probability zero to the evidence of row {row}: {seen}")
        done += len(parts[0][-1])
    columns: dict[Any, Any] = {}
    for part, name in zip(parts, names, strict=True):
        card = int(graph.structure.cardinalities[graph.names.position(name)])
        columns |= prediction_columns(graph, name, np.concatenate([np.empty((0, card)), *part])[same])
    library = type(data).__module__.partition(".")[0]
    if backend is None:
        backend = "polars" if library == "polars" else "pandas"
    index = data.index if library == "pandas" and backend == "pandas" and named_columns(data) is not None else None
    return to_frame(columns, backend, index)


def _asked(graph: FactorGraph, given: Rows, targets: Any) -> tuple[list[VariableName], Rows]:
    """The targets, and the rows without what they say of targets that were named."""
    if targets is None:
        unseen = np.flatnonzero((given < 0).any(axis=0)) if len(given) else range(graph.n_variables)
        if not len(unseen):
            raise ModelError("every row shows every variable, so there is nothing to predict: name targets")
        return [graph.variables[int(v)] for v in unseen], given
    names: list[Any] = [targets] if isinstance(targets, (str, int, np.integer)) else list(targets)
    if not names:
        raise ModelError("predict(targets=...) needs at least one variable")
    given = given.copy()
    given[:, graph.names.positions(names)] = -1
    return names, given


def _distinct(graph: FactorGraph, given: Rows) -> tuple[Any, Any]:
    """Positions of rows that differ from those before them, and for each row which of these it is."""
    seen = np.flatnonzero((given >= 0).any(axis=0))
    sizes = graph.structure.cardinalities[seen].astype(np.int64) + 1
    if np.log2(sizes).sum() > 62:
        return np.arange(len(given)), np.arange(len(given))
    key = np.zeros(len(given), np.int64)
    for v, size in zip(seen.tolist(), sizes.tolist(), strict=True):
        key = key * size + given[:, v] + 1
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    return first, same


def _batches(graph: FactorGraph, given: Rows, method: MethodLike, running: Running) -> Iterator[Any]:
    """Marginals of all variables for runs of rows, nan for rows that are impossible."""
    chosen = choose("auto", "marginals", graph, no_evidence(graph.structure)) if method == "auto" else None
    if chosen is None:
        chosen = resolve(method, "marginals")
    elif chosen.name != "enumeration" or len(given) > FEW_ROWS:
        chosen = resolve("junction_tree", "marginals")
    compiled = chosen.compile(graph) if hasattr(chosen, "compile") else None
    for start in range(0, len(given), CHUNK if compiled is not None else 1):
        running.check()
        if compiled is not None:
            yield compiled.run_batch(given[start : start + CHUNK], impossible="nan", n_jobs=running.n_jobs)
        else:
            yield _one(graph, Evidence(given[start]), chosen, running)


def _one(
    graph: FactorGraph, evidence: Evidence, method: InferenceMethod, running: Running
) -> dict[VariableName, FloatArray]:
    try:
        answer = marginals(graph, evidence, method=method, n_jobs=running.n_jobs)  # type: ignore[arg-type]
    except ImpossibleEvidenceError:
        cards = zip(graph.variables, graph.structure.cardinalities.tolist(), strict=True)
        return {name: np.full((1, card), np.nan) for name, card in cards}
    return {name: p[None] for name, p in answer.items()}
