"""Draws from the posterior of any hierarchical log-linear model: Bayesian iterative proportional fitting.

Under the conjugate prior of Diaconis and Ylvisaker, a margin of the table given all interactions outside it has
independent gamma distributions. So a step of Gibbs sampling is a step of proportional fitting, to a margin that is
drawn: its cells are gamma variates with the observed and the prior counts as their shapes (Gelman and others 1995;
Schafer 1997; Piccioni 2000). For decomposable models the posterior is the hyper-Dirichlet one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.diagnostics import effective_sample_size, split_r_hat
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.verbs import log_partition, marginals
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.tables.fitting import Scaling, own_axes, sorted_axes
from markovfield.learning.tables.hull import Hull
from markovfield.learning.tables.model_tables import ModelTables
from markovfield.learning.tables.proportional import TableDetails
from markovfield.learning.tables.scaling_kernel import BLOCK
from markovfield.models import MarkovNetwork

__all__ = ["BayesianProportionalFitting", "TableDraws"]

# R-hat above this says that the Markov chains disagree.
MOST_R_HAT = 1.05


@dataclass(frozen=True, eq=False)
class TableDraws:
    """Fitted tables drawn from a posterior distribution.

    Attributes
    ----------
    log_factors
        ``float64[chains, draws, cells]``: the generators' factors, one after the other, such that the table sums to
        one.
    log_likelihoods
        ``float64[chains, draws]``: of the data under each draw.
    """

    tables: ModelTables = field(repr=False)
    hull: Hull = field(repr=False)
    log_factors: FloatArray = field(repr=False)
    log_likelihoods: FloatArray = field(repr=False)

    @property
    def r_hat(self) -> float:
        """Split R-hat of the log-likelihood: near one where the Markov chains agree."""
        return float(split_r_hat(self.log_likelihoods))

    @property
    def effective_sample_size(self) -> float:
        """How many independent draws the log-likelihood's mean is worth."""
        return float(effective_sample_size(self.log_likelihoods))

    def __len__(self) -> int:
        return int(np.prod(self.log_factors.shape[:2]))

    def network(self, which: int) -> MarkovNetwork:
        """One of the draws as a network."""
        return self.tables.fitted(self._factors(self.log_factors.reshape(len(self), -1)[which]))

    def mean_network(self) -> MarkovNetwork:
        """The network with the posterior means of the log-linear parameters, normalised."""
        flat = self.log_factors.mean(axis=(0, 1))
        log_z = float(log_partition(self.tables.fitted(self._factors(flat)), method="junction_tree").log_partition)
        flat[: self.hull.factor_at[1]] -= log_z - self.tables.log_free_states
        return self.tables.fitted(self._factors(flat))

    def _factors(self, flat: FloatArray) -> list[FloatArray | None]:
        at = self.hull.factor_at
        return [
            own_axes(flat[at[i] : at[i + 1]], s, self.tables.cardinalities) for i, s in enumerate(self.tables.scopes)
        ]

    def joint(self) -> FloatArray:
        """``float64[draws, ...]``: the joint table of every draw; for tables of few cells."""
        cards = self.tables.cardinalities
        if len(self) * math.prod(cards) > 2**26:
            raise ModelError("the joint tables of all draws have more than 2^26 cells; look at single networks")
        total = np.zeros((len(self), *cards))
        at = self.hull.factor_at
        flat = self.log_factors.reshape(len(self), -1)
        for i, generator in enumerate(self.hull.generators):
            shape = [cards[v] if v in generator else 1 for v in range(len(cards))]
            total += flat[:, at[i] : at[i + 1]].reshape(-1, *shape)
        joint: FloatArray = np.exp(total)
        return joint / joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True)


@dataclass(frozen=True)
class BayesianProportionalFitting:
    """Posterior draws of a hierarchical log-linear model by proportional fitting to drawn margins.

    The model that is given back has the posterior means of the log-linear parameters; the draws are in
    ``fit_report.details.posterior``.

    Parameters
    ----------
    prior
        Equivalent sample size of the conjugate prior, spread evenly over the joint table (less structural zeros).
    draws
        Kept in each Markov chain.
    burn_in
        Sweeps before the first.
    thinning
        Sweeps for each draw.
    chains
        How many Markov chains.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork.from_generators({"sex": 2, "hand": 2}, "sex/hand")
    >>> data = {"sex": [0, 0, 1, 1], "hand": [0, 1, 0, 1], "n": [43, 9, 44, 4]}
    >>> method = mf.methods.BayesianProportionalFitting(prior=4.0)
    >>> posterior = mf.fit(net, data, method, weights="n", rng=0).fit_report.details.posterior
    >>> abs(posterior.joint().sum(axis=2).mean(axis=0)[0] - 54 / 104) < 0.01
    np.True_
    """

    prior: float = 1.0
    draws: int = 500
    burn_in: int = 100
    thinning: int = 1
    chains: int = 4

    name: ClassVar[str] = "bayesian_proportional_fitting"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, above={"prior": 0}, least={"draws": 4, "burn_in": 0, "thinning": 1, "chains": 1})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """The network of posterior means, with the draws in its report."""
        tables = ModelTables(model, self.name)
        if tables.base:
            raise ModelError(f"method {self.name!r} has no prior for models with a base measure")
        margins = tables.counts(table, self.name, running)
        hull = tables.hull
        cards = tables.cardinalities
        zeros = [
            None if z is None else sorted_axes(z, s, cards) for z, s in zip(tables.zeros, tables.scopes, strict=True)
        ]
        counts = np.concatenate([sorted_axes(m, s, cards).ravel() for m, s in zip(margins, tables.scopes, strict=True)])
        shapes = counts + self._prior_margins(hull, zeros)
        chains = rng.spawn(self.chains)
        found: list[FloatArray] = []
        stopped = None
        try:
            for generator in chains:
                found.append(self._chain(hull, zeros, shapes, generator, running))
        except STOPS as stop:
            if not found:
                raise
            stopped = str(stop) or type(stop).__name__
            running.remember(stop)
        log_factors = np.array(found)
        seen = counts > 0
        likelihoods = log_factors[..., seen] @ counts[seen]
        posterior = TableDraws(tables, hull, log_factors, likelihoods)
        made: Any = posterior.mean_network()
        details = TableDetails(tables, made.compile().log_tables, table, hull, posterior=posterior)
        agree = posterior.r_hat < MOST_R_HAT
        made.fit_report = FitReport(
            method=self.name,
            log_likelihood=details.goodness_of_fit.log_likelihood,
            n_rows=table.n_rows,
            total_weight=table.total_weight,
            n_parameters=tables.n_parameters,
            converged=stopped is None and agree,
            iterations=len(found) * (self.burn_in + self.draws * self.thinning),
            message=f"stopped: {stopped}" if stopped else f"R-hat of the log-likelihood {posterior.r_hat:.3f}",
            seconds=running.seconds,
            guarantee="approximate",
            notes=(
                f"posterior means of log-linear parameters from {len(posterior)} draws, worth "
                f"{posterior.effective_sample_size:.0f} independent ones; a prior worth {self.prior:g} rows",
            ),
            details=details,
        )
        return made

    def _prior_margins(self, hull: Hull, zeros: list[Any]) -> FloatArray:
        """Margins of a table of equal pseudo-counts wherever there is no structural zero."""
        at = hull.factor_at
        flat = np.empty(int(at[-1]))
        if all(z is None for z in zeros):
            for g in range(len(hull.generators)):
                flat[at[g] : at[g + 1]] = self.prior / (at[g + 1] - at[g])
            return flat
        # The uniform table on the support: what fitting starts from.
        scaling = Scaling(hull, zeros)
        if not scaling.possible:
            raise ModelError("the model's structural zeros leave no cell of the table")
        net = MarkovNetwork(dict(enumerate(hull.cardinalities.tolist())))
        for scope, allowed in zip(hull.generators, zeros, strict=True):
            net.add_factor(scope, np.ones(hull.cardinalities[list(scope)]) if allowed is None else allowed)
        answer = marginals(net, targets=[s for s in hull.generators if s], method="junction_tree")
        for g, scope in enumerate(hull.generators):
            flat[at[g] : at[g + 1]] = self.prior * (answer.joint(scope).ravel() if scope else 1.0)
        return flat

    def _chain(
        self, hull: Hull, zeros: list[Any], shapes: FloatArray, rng: np.random.Generator, running: Running
    ) -> FloatArray:
        """Draws of one Markov chain, ``float64[draws, cells]``."""
        scaling = Scaling(hull, zeros)
        # Each margin once in a sweep: a margin that was drawn may not be fitted again on the way back.
        blocks = np.flatnonzero(hull.program[:, 0] == BLOCK)
        _, first = np.unique(hull.program[blocks, 4], return_index=True)
        kept_steps = np.ones(len(hull.program), bool)
        kept_steps[np.delete(blocks, first)] = False
        program = np.ascontiguousarray(hull.program[kept_steps])
        kept = np.empty((self.draws, len(shapes)))
        for i in range(-1, self.draws):
            sweeps = self.burn_in if i < 0 else self.thinning
            targets = rng.standard_gamma(shapes, (sweeps, len(shapes))) if sweeps else np.zeros((0, 0))
            done = 0
            while done < sweeps:
                done += len(scaling.sweep(targets[done:], sweeps - done, -1.0, program))
                running.check()
            if i >= 0:
                kept[i] = scaling.normalised(0)
        return kept
