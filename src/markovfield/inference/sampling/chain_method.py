"""What all methods that run Markov chains share: `sample` and `marginals`, once their chains are set up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Marginals, Samples
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.sampling.averages import estimate
from markovfield.inference.sampling.draws import run_chains
from markovfield.inference.sampling.markov_chains import Begun

__all__ = ["LEAST", "ChainMethod"]

# The least values of the settings that all Markov chains share.
LEAST = {"n_chains": 1, "thinning": 1, "sweeps": 1, "burn_in": 0}


class ChainMethod(ABC):
    """A method of `sample` and `marginals` by Markov chains: a subclass has the settings and says how chains begin."""

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})
    # Whether averages can go on from earlier ones, and not only samples.
    resumes_averages: ClassVar[bool] = True

    n_chains: int
    burn_in: int | None
    thinning: int
    sweeps: int

    @abstractmethod
    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """Set up the Markov chains, of which ``kept`` sweeps will count."""

    def sample(
        self,
        graph: FactorGraph,
        size: int,
        evidence: Evidence,
        *,
        rng: np.random.Generator,
        running: Running,
        init: Samples | None = None,
    ) -> Samples:
        """States of the Markov chains, ``thinning`` sweeps apart."""
        kept = -(-size // self.n_chains) * self.thinning
        begun = self.begin(graph, evidence, rng, running, init, kept)
        return run_chains(begun, size, self.name, self.n_chains, self.thinning, rng=rng, running=running, init=init)

    def marginals(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, rng: np.random.Generator, init: Any = None
    ) -> Marginals:
        """Averages over the Markov chains, with their standard errors."""
        if init is not None and not self.resumes_averages:
            raise ModelError(f"{self.name} resumes samples only, so marginals take no init")
        begun = self.begin(graph, evidence, rng, running, init, self.sweeps)
        return estimate(begun, self.sweeps, self.name, self.n_chains, rng=rng, running=running, init=init)
