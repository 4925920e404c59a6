"""The Metropolis algorithm on any factor graph: propose another state for one variable, and accept it or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.single_site import SingleSite, check_moves, prepare_chains
from markovfield.inference.gibbs.single_site_kernel import CONDITIONAL, UNIFORM
from markovfield.inference.sampling.chain_method import LEAST, ChainMethod
from markovfield.inference.sampling.markov_chains import Begun
from markovfield.inference.sampling.modes import dispersed_states

__all__ = ["Metropolis"]

PROPOSALS = {"uniform": UNIFORM, "conditional": CONDITIONAL}


@dataclass(frozen=True)
class Metropolis(ChainMethod):
    """The Metropolis algorithm, one variable at a time: a state other than the present one is proposed.

    It leaves the present state more often than `Gibbs` does, so that averages over variables of two states have smaller
    errors. Cost, hard zeros and structured factors are as for `Gibbs`.

    Probabilities of acceptance are 15/16 of the usual ones. Were moves that cost nothing always made, variables scanned
    in order could turn in step with each other for ever; as it is, every variable may stay or move in every sweep.

    Parameters
    ----------
    proposal
        ``"uniform"``: any other state is as likely. ``"conditional"``: other states as likely as they are given all
        other variables (Liu 1996), which moves more often than Gibbs sampling between all
        states that have probabilities of at least 1/16. With two states both are the same.
    scan
        ``"systematic"``: variables in order; ``"random"``: as many as there are, at random.
    n_chains, burn_in, thinning, sweeps
        As for `Gibbs`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 3})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0, 1.0], [1.0, 3.0, 1.0]])
    >>> answer = mf.marginals(net, method=Metropolis(sweeps=2000), rng=0)
    >>> bool(np.abs(answer["B"] - [0.4, 0.4, 0.2]).max() < 0.03), answer.guarantee
    (True, 'approximate')
    """

    proposal: str = "uniform"
    scan: str = "systematic"
    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 10_000

    name: ClassVar[str] = "metropolis"

    def __post_init__(self) -> None:
        check_method(self, least=LEAST, choices={"proposal": tuple(PROPOSALS), "scan": ("systematic", "random")})

    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """Moves of single variables, and starts where no earlier answer gives them."""
        problem = prepare_chains(graph, evidence)
        start = None
        if init is None:
            start = dispersed_states(problem, self.n_chains, rng)
            check_moves(problem, start, self.name)
        moves = SingleSite.of(problem, PROPOSALS[self.proposal], self.scan == "random")
        return Begun(problem, moves, start, self.burn_in)
