"""The verb ``learn_structure``: read the data, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from markovfield._validation import generator_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Progress, Running
from markovfield.kernels.compilations import clock
from markovfield.learning.core.data import encode
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.core.learned_structure import LearnedStructure
from markovfield.learning.gaussian.moments import GaussianMoments
from markovfield.learning.registry import registered, resolve
from markovfield.progress import shows_progress

__all__ = ["learn_structure"]


@shows_progress
def learn_structure(
    data: Any,
    method: Any = "auto",
    *,
    network: Any = None,
    weights: Any = None,
    drop_missing: bool = False,
    databases: Any = None,
    query: str | Sequence[str] | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: bool = False,
) -> Any:
    """Learn which variables depend on which.

    Parameters
    ----------
    data
        A dict of columns, a pandas or polars frame, a structured array or `Samples`: see
        `markovfield.learning.core.data.encode`. Or a `MarkovLogic` program, which declares predicates, and to which
        clauses are added that ``databases`` show.
    method
        ``"hill_climbing"`` (the best score found by adding, deleting and reversing arcs), ``"chow_liu"`` (the best
        tree), ``"pc"`` (tests of independence), or a method object such as ``HillClimbing(score="bdeu")``; ``"auto"``
        is the first. Undirected structures: ``"group_lasso"`` (sparse pairwise models by penalised pseudo-likelihood),
        ``"nodewise"`` (a logistic regression for each variable), ``"dependency_network"``. Of real-valued variables:
        ``"graphical_lasso"`` (a sparse precision), ``"neighbourhood_selection"`` (a lasso for each variable),
        ``"decomposable_search"`` (marginal likelihoods of chordal graphs); these take `GaussianMoments` as well. Of
        Markov logic: ``"clause_search"``.
    network
        A model that names the variables and their states, in their order; its arcs are not used.
    weights
        How often each row counts, or the name of the column that holds that.
    drop_missing
        Leave out rows in which anything is missing. Otherwise a missing value is an error for methods with a score;
        PC and Chow-Liu count, for each set of variables, the rows that have them all.
    databases, query
        Of a `MarkovLogic` program: one world or a list of them, in which all that is not named is false, and the
        predicates to learn clauses of, the others being given (all where None).
    rng
        Seed or generator of random restarts.
    n_jobs, time_limit, callback, progress
        As for `markovfield.marginals`. Hill climbing and the search of clauses that are stopped answer with the best
        structure so far, and say so; the other methods raise.

    Returns
    -------
    LearnedStructure, LearnedGraph or MarkovLogic
        The second from methods of undirected structures, the last, a new program with weights and a ``fit_report``, for
        a program; a method always answers with the same one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=500)
    >>> b, c = a ^ (rng.random(500) < 0.1), rng.integers(2, size=500)
    >>> learned = learn_structure({"A": a, "B": b, "C": c})
    >>> learned.cpdag
    MixedGraph(A -- B, C)
    >>> learned.to_network()
    BayesianNetwork(3 variables, 1 arc)
    """
    running = Running(n_jobs, time_limit, callback)
    if getattr(data, "fits_databases", False):
        if network is not None or weights is not None or drop_missing:
            raise ModelError(
                "network, weights and drop_missing of learn_structure are for rows of data, not for databases"
            )
        if databases is None:
            raise ModelError("learn_structure of a Markov logic program needs databases=...")
        chosen = resolve("clause_search" if method == "auto" else method, "learn_structure", "MarkovLogic")
        if getattr(chosen, "form", "") != "MarkovLogic":
            raise ModelError(f"method {chosen.name!r} learns from rows of data, not clauses of a Markov logic program")
        return chosen.learn(data, databases, query, running=running)
    if databases is not None or query is not None:
        raise ModelError(
            f"databases and query of learn_structure are for Markov logic programs, not for {type(data).__name__}"
        )
    if method == "auto":
        method = "graphical_lasso" if isinstance(data, GaussianMoments) else "hill_climbing"
    form = _form(method)
    chosen = resolve(method, "learn_structure", form)
    if form != "DataTable":
        if network is not None or drop_missing:
            raise ModelError(f"network and drop_missing of learn_structure are not for method {chosen.name!r}")
        started = clock()
        gaussian: LearnedGraph = chosen.learn(data, weights=weights, running=running, rng=generator_of(rng))
        return replace(gaussian, seconds=clock() - started)
    table = encode(data, network, weights=weights)
    if drop_missing:
        table = table.complete_rows()
    if not table.n_rows:
        raise ModelError("a structure cannot be learned from no rows" + (" that are complete" if drop_missing else ""))
    started = clock()
    learned: LearnedStructure | LearnedGraph = chosen.learn(table, running=running, rng=generator_of(rng))
    return replace(learned, seconds=clock() - started)


def _form(method: Any) -> str:
    """What a method reads: tables of states, or real-valued variables."""
    if isinstance(method, str):
        entries = [e for e in registered() if "learn_structure" in e.verbs]
        return next((e.form for e in entries if method == e.name or method in e.aliases), "DataTable")
    return str(getattr(method, "form", "DataTable"))
