"""Pairwise models along a path of penalties: the steps, and what is shown of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.core.running import STOPS
from markovfield.learning.core.penalties import GraphPath, entering
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.regressions import Regressions
from markovfield.names import VariableName

__all__ = [
    "PenaltyPath",
    "Step",
    "follow",
    "noise_level",
    "path_of",
    "tables_of",
]

RELAXED = 0.01
"""Penalty of relaxed fits, in units of the square root of the rows' weight: hardly any, but enough for an optimum."""


class Step(NamedTuple):
    """The minimum for one penalty: couplings above the diagonal, or all of them where they are not tied."""

    penalty: float
    own: FloatArray
    coupling: Any
    pairs: npt.NDArray[np.intp]
    norms: FloatArray
    objective: float
    log_likelihood: float
    relaxed: float
    converged: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PenaltyPath(GraphPath):
    """Graphs from the empty one to a dense one, and which was chosen: ``details`` of what `GroupLasso` learns.

    Attributes
    ----------
    penalties
        ``float64[P]``, falling.
    edges
        Every edge of any of the graphs, in the order in which they come in.
    strengths
        ``float64[P, m]``: what the penalty weighs of each edge; of two states its coupling, with its sign: positive
        where both tend to be in the same of their (ordered) states.
    n_edges, objectives, log_likelihoods, df, ebic
        ``[P]``: edges; what was minimised; log-pseudo-likelihood; parameters of all full conditionals, an edge's in two
        of them; and the extended Bayesian information criterion, to be maximised.
    held_out, held_out_error
        ``float64[P]``: log-pseudo-likelihood of held-out rows, by their weight, and its standard error over folds; None
        without cross-validation.
    frequencies
        ``float64[m]``: share of subsamples in which an edge was found at the chosen penalty or a larger one; None
        without stability selection. ``expected_false`` bounds the number of false edges among those taken, under the
        conditions of Meinshausen and Buehlmann (2010): exchangeable false edges, found no worse than by guessing.
    chosen
        Which penalty was chosen.
    fields, couplings
        Log-potentials at the chosen penalty, of each variable and of each edge; centred, -inf for states never seen.
    """

    edges: tuple[tuple[VariableName, VariableName], ...]
    strengths: FloatArray
    objectives: FloatArray
    held_out_error: FloatArray | None = None
    frequencies: FloatArray | None = None
    expected_false: float | None = None
    fields: Mapping[VariableName, FloatArray] = field(repr=False)
    couplings: Mapping[tuple[VariableName, VariableName], FloatArray] = field(repr=False)


def noise_level(total: float, n_variables: int) -> float:
    """The penalty at which independent fair spins would have about one edge for each of them.

    The gradient of such a pair is normal with a standard deviation of 2 sqrt(rows), which is the least this gives.
    """
    from scipy.special import ndtri

    return 2 * math.sqrt(total) * max(1.0, -float(ndtri(1 / max(n_variables - 1, 2))))


def follow(
    fit: Regressions, penalties: FloatArray, max_edges: int | None = None, *, relax: bool = False
) -> tuple[list[Step], BaseException | None]:
    """Minima for falling penalties, each from the one before; what stopped them, if anything did after the first.

    A graph of more than ``max_edges`` edges ends the path and is left out. ``relax`` also asks for the likelihood of
    each graph with hardly any penalty; it is nan otherwise.
    """
    from scipy import sparse

    steps: list[Step] = []
    before: float | None = None
    known: dict[bytes, float] = {}
    try:
        for penalty in penalties:
            ok = fit.minimise(float(penalty), before)
            before = float(penalty)
            norms = np.triu(fit.norms) if fit.tied else fit.norms
            pairs = np.argwhere(norms)
            if max_edges is not None and steps and len(pairs) > max_edges:
                break
            coupling = sparse.csr_array(np.triu(fit.coupling) if fit.tied else fit.coupling)
            found = fit.own.copy(), coupling, pairs, norms[*pairs.T], fit.penalised, -fit.loss
            relaxed = _relaxed(fit, known) if relax else np.nan
            steps.append(Step(before, *found, relaxed, ok))
    except (*STOPS, MemoryLimitError) as stop:
        if not steps:
            raise
        return steps, stop
    return steps, None


def _relaxed(fit: Regressions, known: dict[bytes, float]) -> float:
    """Log-pseudo-likelihood with hardly any penalty on the edges that are there; ``known`` remembers those of
    graphs."""
    inside = fit.norms > 0
    key = inside.tobytes()
    if key not in known:
        kept = fit.coupling.copy(), fit.own.copy(), fit.tolerance, fit.converged
        fit.tolerance = max(1e-7, fit.tolerance)
        fit.minimise_within(inside, RELAXED * float(np.sqrt(fit.total)))
        known[key] = -fit.loss
        fit.coupling, fit.own, fit.tolerance, fit.converged = kept
    return known[key]


def _table(rows: CodedRows, s: int, t: int, block: FloatArray) -> FloatArray:
    """Log-potentials of a block over all states; zero where a state was never seen."""
    a, b = rows.kept[s], rows.kept[t]
    found = np.zeros((int(rows.table.cardinalities[a]), int(rows.table.cardinalities[b])))
    found[np.ix_(rows.seen[s], rows.seen[t])] = rows.contrasts[s] @ block @ rows.contrasts[t].T
    return found


def tables_of(
    rows: CodedRows, own: FloatArray, coupling: Any, of_pairs: npt.NDArray[np.intp]
) -> tuple[dict[Any, FloatArray], dict[Any, FloatArray]]:
    """Log-potentials of variables and of pairs by name: of s and t as ``coupling[s, t]`` has them."""
    names, cards, offsets = rows.table.variables, rows.table.cardinalities, rows.offsets
    full = coupling.toarray() if hasattr(coupling, "toarray") else coupling
    fields = {}
    for v, name in enumerate(names):
        fields[name] = np.full(int(cards[v]), -np.inf)
        if v not in rows.kept:
            fields[name][np.unique(rows.table.codes[v])] = 0.0
    for s, v in enumerate(rows.kept):
        fields[names[v]][rows.seen[s]] = rows.contrasts[s] @ own[offsets[s] : offsets[s + 1]]
    pairs = {}
    for s, t in of_pairs.tolist():
        block = full[offsets[s] : offsets[s + 1], offsets[t] : offsets[t + 1]]
        pairs[names[rows.kept[s]], names[rows.kept[t]]] = _table(rows, s, t, block)
    return fields, pairs


def path_of(rows: CodedRows, steps: list[Step], ebic: FloatArray, df: Any, chosen: int, **more: Any) -> PenaltyPath:
    """What a path shows; ``frequencies`` in ``more`` are ``float64[p, p]``."""
    names, kept, offsets, p = rows.table.variables, rows.kept, rows.offsets, len(rows.kept)
    keys = [step.pairs @ np.array([p, 1]) for step in steps]
    every, strengths = entering(keys, [step.norms for step in steps])
    ever = np.column_stack(np.divmod(every, p)) if p else np.zeros((0, 2), np.intp)
    spins = np.flatnonzero((rows.widths[ever] == 1).all(axis=1))
    first, second = offsets[:-1][ever[spins]].T
    for step, line in zip(steps, strengths, strict=True):
        line[spins] *= np.sign(step.coupling.toarray()[first, second])
    if more.get("frequencies") is not None:
        more["frequencies"] = more["frequencies"][ever[:, 0], ever[:, 1]]
    last = steps[chosen]
    fields, couplings = tables_of(rows, last.own, last.coupling, last.pairs)
    return PenaltyPath(
        penalties=np.array([step.penalty for step in steps]),
        edges=tuple((names[kept[s]], names[kept[t]]) for s, t in ever.tolist()),
        strengths=strengths,
        n_edges=np.array([len(step.pairs) for step in steps]),
        objectives=np.array([step.objective for step in steps]),
        log_likelihoods=np.array([step.log_likelihood for step in steps]),
        df=df,
        ebic=ebic,
        chosen=chosen,
        fields=fields,
        couplings=couplings,
        **more,
    )
