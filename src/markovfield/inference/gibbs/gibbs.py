"""Gibbs sampling on any factor graph: one variable, one colour or one tree at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.gains import gain_marginals, keeps_gains
from markovfield.inference.gibbs.single_site import ColouredSites, SingleSite, check_moves, prepare_chains
from markovfield.inference.gibbs.tree_blocks import TreeBlocks
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.chain_method import LEAST, ChainMethod
from markovfield.inference.sampling.markov_chains import (
    Begun,
    resumed_state,
)
from markovfield.inference.sampling.modes import dispersed_states

__all__ = ["Gibbs"]

SCANS = ("systematic", "random", "coloured", "trees")


@dataclass(frozen=True)
class Gibbs(ChainMethod):
    """Gibbs sampling: each variable in turn is drawn from its distribution given all others (Murphy 19.21).

    Variables with a small Markov blanket have these distributions in tables, so that a move is one look-up and one
    random number; a sweep is some tens of nanoseconds a variable. For others it costs their factors times their states.
    Structured factors of up to 2^16 cells are written out as tables. Where some are wider, or factors are many for each
    variable, and nothing is ruled out, marginals keep what every change would gain at hand instead: a variable that
    stays then costs no look at its factors.

    Neighbouring rows of samples are correlated: what they are worth is in ``answer.monte_carlo``. Marginals are
    averages of conditional distributions rather than of states (Rao-Blackwell), except with a random scan.

    Hard zeros may keep single-site moves from reaching every assignment. Markov chains start from assignments that a
    search finds; where it can be proven that moves do not join them, a `ModelError` says so (`check_moves` says when
    that is), and otherwise chains that stay apart show as an R-hat above one. The scan by trees goes further, but not
    everywhere.

    Parameters
    ----------
    scan
        ``"systematic"``: variables in order. ``"random"``: as many as there are, at random. ``"coloured"``: variables
        of a colour share no factor and move at the same time, on threads where there are few chains and many variables.
        ``"trees"``: variables are cut, anew for every sweep, into blocks without a cycle, each drawn as a whole (Hamze
        and de Freitas 2004); slower for each sweep, and far better where neighbours hold each other fast.
    n_chains
        Chains from different starts; they run on threads.
    burn_in
        Sweeps of each chain thrown away first; None is half as many as are kept, and at least 100.
    thinning
        Sweeps between rows that are kept.
    sweeps
        Sweeps of each chain that marginals average over.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> drawn = mf.sample(net, 1000, method=Gibbs(), rng=0)
    >>> drawn.n_chains, drawn.guarantee, bool(0.4 < drawn.frequencies("A")[0][0] < 0.6)
    (4, 'approximate', True)
    >>> answer = mf.marginals(net, {"B": 0}, method=Gibbs(sweeps=100), rng=0)
    >>> answer["A"].tolist()
    [0.75, 0.25]
    """

    scan: str = "systematic"
    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 10_000

    name: ClassVar[str] = "gibbs"

    def __post_init__(self) -> None:
        check_method(self, least=LEAST, choices={"scan": SCANS})

    def _transition(self, problem: Problem, running: Running) -> Any:
        if self.scan == "trees":
            return TreeBlocks.of(problem)
        if self.scan == "coloured":
            return ColouredSites.of(problem, running, self.n_chains)
        return SingleSite.of(problem, at_random=self.scan == "random")

    def _start(self, problem: Problem, rng: np.random.Generator, init: Any) -> Any:
        """Starts, or None where Markov chains go on from ``init``; in both cases single changes must reach the rest."""
        if init is not None:
            start = resumed_state(problem, init, self.n_chains, self.name).states
        else:
            start = dispersed_states(problem, self.n_chains, rng)
        if self.scan != "trees":
            check_moves(problem, start[:, : problem.structure.n_variables], self.name)
        return None if init is not None else start

    def marginals(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, rng: np.random.Generator, init: Any = None
    ) -> Marginals:
        """Averages over the Markov chains, with their standard errors."""
        if init is None and self.scan == "systematic" and keeps_gains(graph, evidence):
            return gain_marginals(self, graph, evidence, running=running, rng=rng)
        return super().marginals(graph, evidence, running=running, rng=rng, init=init)

    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """Starts that single changes lead away from, and the moves of the scan."""
        problem = prepare_chains(graph, evidence)
        return Begun(problem, self._transition(problem, running), self._start(problem, rng, init), self.burn_in)
