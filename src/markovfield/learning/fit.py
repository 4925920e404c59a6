"""The verb ``fit``: read the data, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from markovfield._validation import generator_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback
from markovfield.learning.automatic import choose
from markovfield.learning.core.data import encode
from markovfield.learning.core.missing import missing_cells, warn_of_missing
from markovfield.learning.core.rows import as_rows, hidden_units
from markovfield.learning.directed.parameters import template
from markovfield.learning.mixed.columns import MixedTable
from markovfield.learning.registry import registered, resolve
from markovfield.models import BayesianNetwork, LinearGaussianNetwork, LogLinear, MarkovNetwork
from markovfield.models.log_linear import with_parameters
from markovfield.models.mixed.conditional_gaussian import ConditionalGaussianNetwork
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["fit"]


@shows_progress
def fit(
    model: Any,
    data: Any,
    method: Any = "auto",
    *,
    weights: Any = None,
    hidden: Sequence[VariableName] = (),
    init: Any = None,
    query: str | Sequence[str] | None = None,
    closed: Sequence[str] | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Any:
    """Estimate a model's parameters from data; the model given stays as it is.

    Parameters
    ----------
    model
        A `BayesianNetwork`, whose tables need not be there yet (`BayesianNetwork.set_parents` gives the structure), a
        `LinearGaussianNetwork`, a `GaussianMarkovField` (a graph, whose data may be `GaussianMoments`), or an
        undirected model: a `MarkovNetwork` (`MarkovNetwork.from_edges` gives the structure), a `FactorGraph`, or
        anything else with a ``log_linear()``; or a `MarkovLogic` program, whose data are databases.
    data
        A dict of columns, a pandas or polars frame, a structured array, `Samples`, or state indices
        ``int[rows, variables]``. Columns are found by name and others ignored; a variable without a column is hidden.
        None, NaN and (where states are plain indices) -1 are missing values; ``fit_report.missing`` counts them. Models
        of lattices and machines take arrays in their own shape: images, visible units, and spins -1 and +1 where an
        array has no 0.
    method
        ``"auto"``: for a Bayesian network counting where the data are complete, `ExpectationMaximization` otherwise;
        for an undirected model `ClosedForm` where it is decomposable, `MaximumLikelihood` where a junction tree is
        cheap, else `PseudoLikelihood` where the data are complete, else `StochasticMaximumLikelihood`;
        ``fit_report.notes`` says which and why. For a `GaussianMarkovField` `CovarianceSelection`.
    weights
        One weight for each row, or the name of the column that holds them.
    hidden
        Variables that are meant to have no values in the data. Others without any are warned of, and so is a state that
        never comes up in a column with holes (`MissingDataWarning`): a text such as "None" may have been read as one.
    init
        Warm start: a model of the same kind whose parameters it begins with, an earlier answer for one.
    query, closed
        Of a `MarkovLogic` program: the predicates to predict, all others being given, and those of which databases name
        all that is true; see `MarkovLogic.fit`.
    rng
        Seed or generator of random starts.
    n_jobs, time_limit, callback, progress
        As for `markovfield.marginals`. EM that is stopped gives what it has, and its report says so.

    Returns
    -------
    model
        A new one of the same kind with ``fit_report``.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.set_parents("wet", ["rain"])
    >>> data = {"rain": ["no", "no", "yes", "yes"], "wet": ["no", "no", "yes", "no"]}
    >>> fitted = mf.fit(net, data)
    >>> fitted.cpt("wet").tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    >>> fitted.fit_report.method, fitted.fit_report.n_rows
    ('maximum_likelihood', 4)
    """
    if getattr(model, "fits_databases", False):
        if weights is not None:
            raise ModelError("weights of fit are of rows, and a Markov logic program learns from databases")
        running_as: Any = {"rng": rng, "n_jobs": n_jobs, "time_limit": time_limit, "callback": callback}
        return model.fit(data, query, method, hidden=hidden, closed=closed, init=init, **running_as)
    if query is not None or closed is not None:
        raise ModelError(f"query and closed of fit are for Markov logic programs, not for {type(model).__name__}")
    running = Running(n_jobs, time_limit, callback)
    generator = generator_of(rng)
    if isinstance(model, LinearGaussianNetwork):
        chosen = resolve("least_squares" if method == "auto" else method, "fit", "LinearGaussianNetwork")
        return chosen.fit(model, data, weights=weights, running=running)
    if isinstance(model, ConditionalGaussianNetwork):
        return _fit_mixed(model, data, method, weights, generator, running)
    if hasattr(model, "with_precision"):
        chosen = resolve("covariance_selection" if method == "auto" else method, "fit", "GaussianMarkovField")
        return chosen.fit(model, data, weights=weights, running=running)
    directed = isinstance(model, BayesianNetwork)
    if not directed and not (isinstance(model, FactorGraph | MarkovNetwork) or hasattr(model, "log_linear")):
        raise ModelError(
            "fit(model, data) takes a BayesianNetwork, a LinearGaussianNetwork, a MarkovNetwork, a FactorGraph or a "
            f"model with a log_linear(), got {type(model).__name__}"
        )
    if init is not None and directed:
        model = _started_from(model, init)
    table = encode(as_rows(model, data), model, weights=weights)
    if not table.n_rows:
        raise ModelError("fit(model, data) needs at least one row of data, got none")
    form = "BayesianNetwork" if directed else "LogLinear"
    if method == "auto" and directed:
        simple = not table.has_missing and template(model)[0].compile().structure.is_plain
        method = "maximum_likelihood" if simple else "expectation_maximization"
    why = ""
    if method == "auto" and not directed:
        method, reason = choose(model, table, running)
        why = f"auto took {method}: {reason}"
    chosen = _checked(resolve(method, "fit", form), form)
    warn_of_missing(table, hidden_units(model, hidden))
    if init is not None and not directed:
        model = _warm(model, init)
    made = chosen.fit(model, table, rng=generator, running=running)
    report = made.fit_report
    notes = (why, *report.notes) if why else report.notes
    made.fit_report = replace(report, missing=missing_cells(table), notes=notes)
    return made


def _fit_mixed(
    model: ConditionalGaussianNetwork, data: Any, method: Any, weights: Any, rng: np.random.Generator, running: Running
) -> ConditionalGaussianNetwork:
    """Counts and regressions where the data are complete, EM otherwise."""
    if method == "auto":
        known = {v: model.states(v) if model.cardinality(v) else None for v in model.variables}
        table = MixedTable.of(data, "fit(model, data)", weights, known)
        gaps = any((c < 0).any() for c in table.codes.values()) or any(
            np.isnan(c).any() for c in table.numbers.values()
        )
        method = "conditional_gaussian_em" if gaps else "conditional_gaussian_ml"
    chosen = resolve(method, "fit", "ConditionalGaussianNetwork")
    fitted: ConditionalGaussianNetwork = chosen.fit(model, data, weights=weights, rng=rng, running=running)
    return fitted


def _checked(method: Any, form: str) -> Any:
    """The method, when it is for this form of model."""
    forms = [e.form for e in registered() if "fit" in e.verbs and e.name == method.name]
    if forms and form not in forms:
        undirected = "an undirected model" if form == "LogLinear" else "a Bayesian network"
        known = ", ".join(e.name for e in registered() if "fit" in e.verbs and e.form == form)
        raise ModelError(f"method {method.name!r} does not fit {undirected}: choose from {known}")
    return method


def _warm(model: Any, init: Any) -> Any:
    """The model with the parameters of an earlier one of the same kind."""
    own, other = LogLinear.of(model), LogLinear.of(init)
    if own.parameters.shape != other.parameters.shape or list(own.variables) != list(other.variables):
        raise ModelError("init of fit must be a model with the variables and parameters of the one to fit")
    return with_parameters(model, other.parameters)


def _started_from(model: BayesianNetwork, init: Any) -> BayesianNetwork:
    """The earlier network, when it has the same variables and arcs."""
    if not isinstance(init, BayesianNetwork):
        raise ModelError(f"init of fit must be a BayesianNetwork, got {type(init).__name__}")
    same = init.variables == model.variables and all(
        init.states(v) == model.states(v) and init.parents(v) == model.parents(v) for v in model.variables
    )
    if not same:
        raise ModelError("init of fit must have the variables, states and parents of the model")
    return init
