"""Annealed importance sampling: an estimate of log Z, and samples with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.annealed_importance.paths import AnnealedChains, Base
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.diagnostics import MonteCarlo
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["AnnealedImportance"]


@dataclass(frozen=True)
class AnnealedImportance:
    """log Z with its standard error, and weighted samples (Neal 2001).

    Every Markov chain starts with an exact draw from a spanning forest of the factors, the strongest ones, whose log Z
    is known. The other factors are then raised from power 0 to 1 in steps, with a sweep of single-variable Gibbs
    moves after each; hard zeros among them are penalties that grow to infinity. What a chain's score gains by the
    steps adds up to the log of its weight. The mean weight, times the Z of the forest, is an unbiased estimate of Z
    whether or not the chains have mixed; how much the weights scatter tells how good it is. Weighted samples and
    marginals follow from the same chains.

    The standard error is that of the log of a mean, with an allowance for weights that were not seen. It is honest as
    long as the weights have been seen to scatter: where a few chains carry all the weight there is a warning, and the
    answer says ``converged=False``. So it does where assignments, those of the chains and some that a quick search
    finds, add up to more than the estimate, to much less though they have nearly all the weight, or ask for other
    marginals. That is how strong factors that contradict each other show, of which the forest obeys some from the
    start; other modes that neither chains nor search have found cannot be noticed.

    Time is that of ``n_chains * n_temperatures`` Gibbs sweeps, memory that of the chains' states.

    Parameters
    ----------
    n_chains
        Independent chains for `log_partition` and `marginals`; `sample` takes one for each sample.
    n_temperatures
        Steps from the forest to the model; twice as many about halve the variance of the log-weights.
    schedule
        ``"linear"``: equal steps; or the powers themselves, rising from 0 to 1 (then ``n_temperatures`` is not used).
    final_sweeps
        Sweeps of each chain at the model itself, over which marginals are averaged.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.log_partition(net, method=AnnealedImportance(), rng=0)
    >>> bool(abs(float(answer) - float(mf.log_partition(net))) < 4 * answer.standard_error)
    True
    """

    n_chains: int = 128
    n_temperatures: int = 500
    schedule: str | Sequence[float] = "linear"
    final_sweeps: int = 100

    name: ClassVar[str] = "annealed_importance"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"log_partition", "marginals", "sample"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"n_chains": 2, "n_temperatures": 1, "final_sweeps": 1})
        if isinstance(self.schedule, str):
            if self.schedule != "linear":
                raise ModelError(f"schedule of AnnealedImportance must be 'linear' or powers, got {self.schedule!r}")
            return
        try:
            powers = np.asarray(self.schedule, np.float64)
        except (TypeError, ValueError):
            powers = np.zeros(0)
        if powers.ndim != 1 or len(powers) < 2 or powers[0] != 0 or powers[-1] != 1 or not (np.diff(powers) > 0).all():
            raise ModelError(
                f"schedule of AnnealedImportance must be 'linear' or powers, which must rise from 0 to 1, "
                f"got {self.schedule!r}"
            )

    def log_partition(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, rng: np.random.Generator
    ) -> LogPartition:
        """The estimate and its standard error."""
        run = self._run(prepare(graph, evidence, drop_barren=True), self.n_chains, rng, running)
        run.check()
        return LogPartition(
            log_partition=run.log_partition,
            standard_error=run.log_partition_error,
            guarantee="approximate",
            method=self.name,
            converged=run.converged,
            iterations=run.sweeps,
            seconds=running.seconds,
        )

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Independent samples with weights; ``effective_sample_size`` says what they are worth."""
        run = self._run(prepare(graph, evidence), size, rng, running)
        if size:
            run.check()
        states = run.base.problem.states(run.states)
        for array in (states, run.log_weights):
            array.flags.writeable = False
        answer = Samples(
            graph=graph,
            states=states,
            log_weights=run.log_weights,
            guarantee="approximate",
            method=self.name,
            converged=run.converged,
            iterations=run.sweeps,
            seconds=running.seconds,
            log_partition=run.log_partition if size else np.nan,
            log_partition_error=run.log_partition_error if size else np.nan,
        )
        answer._cache["doubts"] = run.doubts
        return answer

    def marginals(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, rng: np.random.Generator
    ) -> Marginals:
        """Weighted averages of conditional probabilities, and log Z."""
        problem = prepare(graph, evidence)
        run = self._run(problem, self.n_chains, rng, running)
        if np.isneginf(run.log_weights).all():
            run.check()
        values, errors = run.averages(self.final_sweeps, running)
        run.check(values, errors)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(errors > 0, values * (1 - values) / errors**2, float(len(run.log_weights)))
        expanded = [problem.expand(*pair) for pair in ((values, 0.0), (errors, 0.0), (sizes, np.nan))]
        expanded[2] = np.where(np.isnan(expanded[2]), float(len(run.log_weights)), expanded[2])
        expanded.append(np.full(len(expanded[0]), np.nan))
        for array in expanded:
            array.flags.writeable = False
        return Marginals(
            graph=graph,
            values=expanded[0],
            log_partition=run.log_partition,
            log_partition_error=run.log_partition_error,
            guarantee="approximate",
            method=self.name,
            converged=run.converged,
            iterations=run.sweeps + self.final_sweeps,
            seconds=running.seconds,
            monte_carlo=MonteCarlo(expanded[1], expanded[2], expanded[3], len(run.log_weights), 0, run.doubts),
        )

    def _run(self, problem: Problem, size: int, rng: np.random.Generator, running: Running) -> AnnealedChains:
        base = Base.of(problem)
        if not isinstance(self.schedule, str):
            betas = np.asarray(self.schedule, np.float64)
        elif base.graph.tempered.any():
            betas = np.linspace(0.0, 1.0, self.n_temperatures + 1)
        else:
            betas = np.array([0.0, 1.0])  # the forest is all there is
        run = AnnealedChains(base, betas)
        run.go(size, rng, running)
        return run
