"""When Markov chains are believed: what must hold before an answer says that it has converged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, States
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.diagnostics import LEAST_STEPS, error_floor, summarise
from markovfield.inference.problem.problem import Problem
from markovfield.inference.problem.reduction import zeros_in_factors
from markovfield.inference.sampling.modes import scores_of
from markovfield.inference.sampling.seen_states import MOST_READ, SEEN_ROWS, missed_weight

__all__ = [
    "LEAST_EFFECTIVE",
    "R_HAT_LIMIT",
    "doubts_of",
    "frequencies_of",
    "leeway",
    "r_hat_limit",
    "rows_to_see",
    "swings",
    "warn_doubts",
]

# Above this split R-hat, and below this many effective draws, an estimate has not converged (Vehtari and others 2021).
R_HAT_LIMIT, LEAST_EFFECTIVE = 1.01, 400.0
# Of how many correct chains one may be called wrong by the largest R-hat of a state.
FALSE_ALARM = 1e-5
REMEDY = "more sweeps, larger moves (Gibbs(scan='trees'), ParallelTempering) or junction_tree may help"


def r_hat_limit(chains: int, half: int) -> float:
    """The largest split R-hat that half Markov chains of so many independent draws show by chance; at least 1.01.

    Examples
    --------
    >>> r_hat_limit(4, 10_000), round(r_hat_limit(4, 50), 2)
    (1.01, 1.04)
    """
    from scipy.special import chdtri

    spread = float(chdtri(2 * chains - 1, FALSE_ALARM)) / (2 * chains - 1)
    return max(R_HAT_LIMIT, float(np.sqrt(1.0 + max(0.0, spread - 1.0) / max(1, half))))


def rows_to_see(problem: Problem) -> int:
    """How many assignments of all Markov chains are kept to be looked at: none of problems too large for it."""
    rows = min(SEEN_ROWS, MOST_READ // max(1, len(problem.structure.scopes) + problem.structure.n_variables))
    return rows if rows >= SEEN_ROWS // 16 else 0


def swings(problem: Problem) -> FloatArray:
    """How far apart the log-potentials of each factor are, ``float64[factors]``; infinite with hard zeros."""
    s, pool = problem.structure, problem.potentials
    apart: FloatArray = np.log(2.0) * (pool.high - pool.low)
    # Ranges are those of potentials that survive outside of logs.
    apart[zeros_in_factors(s, pool.log_tables) | (not pool.safe)] = np.inf
    return apart


def leeway(problem: Problem) -> FloatArray:
    """How far the conditional probabilities of each variable's states can differ at most, over all states.

    By the swings of the factors that join a variable to others that are free: zero for one that stands alone, one
    where there are hard zeros. What was never seen can be wrong by so much only.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factor(["A", "B"], log_table=[[0.0, 0.01], [0.0, 0.0]])
    >>> graph = net.compile()
    >>> leeway(prepare(graph, Evidence.parse(graph.structure, None))).round(4).tolist()
    [0.0101, 0.0101, 0.0101, 0.0101, 0.0, 0.0]
    """
    s = problem.structure
    arity = np.diff(s.scope_offsets)
    owner = np.repeat(np.arange(s.n_factors), arity)
    free = np.bincount(owner[s.cardinalities[s.scopes] > 1], minlength=s.n_factors)
    joining = np.minimum(swings(problem), 1.0) * (free > 1)
    total = np.bincount(s.scopes, joining[owner], s.n_variables).astype(np.float64)
    return np.repeat(np.minimum(1.0, np.expm1(np.minimum(total, 1.0))), s.cardinalities)


def frequencies_of(problem: Problem, chains: Sequence[States]) -> tuple[FloatArray, FloatArray]:
    """How often each state of a problem came up in the rows of Markov chains, and the standard errors of that."""
    from markovfield.inference.core.autocovariance_kernel import summarise_indicators

    s = problem.structure
    steps = min(len(rows) for rows in chains)
    every = np.concatenate([rows[:steps] for rows in chains]).astype(np.int32)
    half = steps // 2
    begins = steps * np.arange(len(chains))
    starts = np.stack([begins, begins + steps - half], axis=1).ravel().astype(np.int64)
    out = np.empty((int(s.value_offsets[-1]), 3))
    summarise_indicators(np.ascontiguousarray(every.T), starts, half, s.cardinalities, float(len(every)), out)
    values = np.bincount((s.value_offsets[:-1] + every).ravel(), minlength=len(out)) / len(every)
    return values, np.maximum(np.sqrt(out[:, 2]), error_floor(float(np.nanmin(out[:, 0], initial=len(every)))))


def _ranks(x: FloatArray) -> FloatArray:
    """Numbers as ranks, equal ones alike: a few scores far below the others then count as much as they should."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2.0
    return np.asarray(middle[place.reshape(x.shape)])


def doubts_of(
    problem: Problem,
    chains: Sequence[States],
    values: FloatArray,
    errors: FloatArray,
    rng: np.random.Generator,
    even: npt.NDArray[np.int64] | None = None,
) -> list[str]:
    """Reasons not to believe estimates of a problem's marginals, by some of the assignments that Markov chains came to.

    Two things are looked at: whether the scores of the chains agree with each other and with themselves (split R-hat of
    their ranks), and whether likely assignments came up as often as they should (`missed_weight`).

    Parameters
    ----------
    chains
        Of each chain some of its assignments, ``int32[k, n]``, in order, as many of each.
    values, errors
        Estimates of all states of the problem, and their standard errors.
    even
        Which of the assignments are at even distances; all where None.
    """
    doubts: list[str] = []
    steps = min((len(rows) for rows in chains), default=0)
    if not steps:
        return doubts
    rows = np.concatenate([part[:steps] for part in chains])
    scores = scores_of(problem, rows).reshape(len(chains), steps)
    trace = scores if even is None else scores[:, even]
    if trace.shape[1] >= 4 * LEAST_STEPS and np.isfinite(trace).all() and np.ptp(trace) > 1e-9 * np.abs(trace).max():
        # Scores that differ by rounding alone are equal.
        unit = 1e-9 * float(np.abs(trace).max())
        r_hat = float(summarise(_ranks(np.round(trace / unit))[:, :, None])[0, 1])
        limit = r_hat_limit(len(chains), trace.shape[1] // 2)
        if r_hat > limit:
            doubts.append(f"the scores of the chains do not agree, with a split R-hat of {r_hat:.3g} above {limit:.3g}")
    if len(chains) > 1:
        group = np.repeat(np.arange(len(chains)), steps)
    else:
        group = (np.arange(steps) >= steps // 2).astype(np.int64)
    missed = missed_weight(problem, rows, group, values, errors, rng)
    return [*doubts, missed] if missed else doubts


def warn_doubts(method: str, doubts: Sequence[str], remedy: str = REMEDY) -> None:
    """Issue scikit-learn's ``ConvergenceWarning`` with the reasons."""
    warn_caller(f"{method} has not converged: {'; '.join(doubts)}; {remedy}")
