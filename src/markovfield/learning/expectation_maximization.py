"""Expectation maximisation, directed and undirected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.directed.expectation_maximization import fit_tables
from markovfield.learning.undirected.hidden import fit_hidden
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["ExpectationMaximization"]


@dataclass(frozen=True)
class ExpectationMaximization:
    """Coordinate ascent on the bound of the observed data's likelihood (Caetano, lecture 6).

    The E step takes expected counts by a batched junction tree, once for every distinct row; the M step normalises
    them. The likelihood never falls, and ends in a local maximum: with hidden variables, restart. Tables that do not
    tell the states of a hidden variable apart, such as uniform ones, are a saddle it does not leave: give such
    variables no tables (`BayesianNetwork.set_parents`), and they start at random.

    For an undirected model the M step has no closed form: it takes a few steps of a solver on the completed likelihood
    (generalised EM; Murphy 19.5.2), and the likelihood still never falls.

    Parameters
    ----------
    max_iterations
        The most M steps of one run.
    tolerance
        A run has converged when an iteration gains less than this fraction of the objective.
    restarts
        Runs in all. The first starts from the network's own tables (random ones where it has none), the others from
        random tables; the best is kept.
    prior, equivalent_sample_size
        Pseudo-counts added in every M step, as in `DirichletEstimate`; None adds none. With them EM climbs to a mode
        of the posterior.
    fixed
        Variables whose tables are kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"A": 2, "B": 2})
    >>> net.set_parents("B", ["A"])
    >>> data = {"A": [0, 0, 1, 1, 1, -1], "B": [0, 0, 1, 1, -1, 1]}
    >>> fitted = mf.fit(net, data, method=mf.methods.ExpectationMaximization(), rng=0)
    >>> fitted.cpt("A").round(2).tolist(), fitted.fit_report.converged
    ([0.33, 0.67], True)
    """

    max_iterations: int = 200
    tolerance: float = 1e-7
    restarts: int = 1
    prior: Any = None
    equivalent_sample_size: float = 10.0
    fixed: tuple[VariableName, ...] = ()

    name: ClassVar[str] = "expectation_maximization"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        least = {"max_iterations": 1, "restarts": 1, "tolerance": 0}
        check_method(self, least=least, above={"equivalent_sample_size": 0})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the parameters of the best run; when stopped early, with what there was."""
        if isinstance(model, BayesianNetwork):
            return fit_tables(self, model, table, rng=rng, running=running)
        return fit_hidden(self, model, table, rng=rng, running=running)
