"""Maximum likelihood, directed and undirected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.directed.estimators import estimate_tables
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.likelihood_fit import fit_likelihood
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["MaximumLikelihood"]


@dataclass(frozen=True)
class MaximumLikelihood:
    """The parameters that make the data most likely.

    Tables of a Bayesian network are relative frequencies (Caetano, lecture 6: m(x, pa) / m(pa)), in time linear in the
    rows times the members of all families; a configuration of parents that never occurs gets a uniform row.

    Parameters of an undirected model are found by gradients, the features expected by the model less those of the data
    (Murphy 19.41): where they vanish, the moments match. Each step takes one inference in the model, whatever the
    number of rows; with missing values (19.48), one more for each distinct incomplete row. Minimised is
    ``-log-likelihood + l1 |w|_1 + (l2/2) |w|^2``, summed over rows.

    Parameters
    ----------
    fixed
        Variables of a Bayesian network whose tables are kept.
    inference
        Where expectations of an undirected model come from: ``"junction_tree"`` (exact), or any other method of
        `markovfield.marginals`: ``"tree_reweighted"`` gives a convex surrogate that bounds the likelihood from below,
        ``"belief_propagation"`` the Bethe approximation, ``"mean_field"`` a bound from above; the report says which.
    l2, l1, group_l1
        Penalties: on the squares of all parameters; on absolute values, and on the norms of tables, of parameters of
        factors with two variables or more.
    penalty
        A `Penalty` in their place, with a group, a scale and a prior mean for each parameter.
    solver
        ``"auto"``: L-BFGS, OWL-QN with ``l1``, proximal gradients with groups. Or a solver's name or object.
    checkpoint
        A file, or a `Checkpoint`: the solver's state is written to it now and then, and the same call goes on from it
        when it is there.
    n_samples
        Of each expectation, where ``inference`` samples.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"]})
    >>> fitted = mf.fit(net, {"rain": ["no", "no", "yes", "no"]}, method=mf.methods.MaximumLikelihood())
    >>> fitted.cpt("rain").tolist()
    [0.75, 0.25]
    >>> ring = mf.MarkovNetwork.from_edges(dict.fromkeys("ABCD", 2), ["AB", "BC", "CD", "DA"])
    >>> rows = [[0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]]
    >>> fitted = mf.fit(ring, rows, method=mf.methods.MaximumLikelihood(l2=0.1))
    >>> fitted.fit_report.converged, fitted.fit_report.notes
    (True, ('the likelihood is exact',))
    """

    fixed: tuple[VariableName, ...] = ()
    inference: Any = "junction_tree"
    l2: float = 0.0
    l1: float = 0.0
    group_l1: float = 0.0
    penalty: Penalty | None = None
    solver: Any = "auto"
    checkpoint: Any = None
    n_samples: int = 2000

    name: ClassVar[str] = "maximum_likelihood"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, least={"l2": 0, "l1": 0, "group_l1": 0, "n_samples": 1})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        if not isinstance(model, BayesianNetwork):
            if self.fixed:
                raise ModelError("fixed of MaximumLikelihood names tables of a Bayesian network")
            return fit_likelihood(self, model, table, rng=rng, running=running)
        if self.l2 or self.l1 or self.group_l1 or self.penalty is not None:
            raise ModelError("tables of a Bayesian network take no l1 or l2; a prior is DirichletEstimate's")
        return estimate_tables(self.name, model, table, None, 1.0, self.fixed, running)
