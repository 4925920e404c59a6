"""MC-SAT: samples and marginals by slices through the potentials of formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import States
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.single_site import prepare_chains
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.chain_method import LEAST, ChainMethod
from markovfield.inference.sampling.markov_chains import Begun
from markovfield.inference.sampling.modes import dispersed_states
from markovfield.inference.sampling.starts import reduced_rows
from markovfield.inference.satisfiability.max_walk_sat import MaxWalkSAT
from markovfield.inference.satisfiability.slices import Slices

__all__ = ["MCSAT"]


@dataclass(frozen=True)
class MCSAT(ChainMethod):
    """Slice sampling of formulas (MC-SAT, Poon and Domingos 2006): some hold on to what they have, all else is drawn.

    Each factor of two variables or more is given a height, uniform below its present potential; the next assignment is
    drawn among all whose factors reach their heights. For a clause of weight w that holds, this means: it must go on
    holding, with probability 1 - exp(-w); one of negative weight that fails must go on failing with probability
    1 - exp(w); hard formulas always bind; of any other table the cells above the height are allowed. So formulas of
    large weight, between which single changes cannot move, are satisfied all at once.

    What follows from the constraints at once is taken (unit propagation), and each connected component of what is left
    in doubt is drawn exactly, by a search through its solutions, where those are no more than ``leaves`` (free
    variables count as one). Larger components are redrawn block by block within the slice. Both leave the distribution
    of the model as it is, so that errors are those of Monte Carlo alone; a random walk to some solution (SampleSAT)
    would add a bias that no error shows. Potentials of single variables are not sliced but sampled. On an Ising model
    this is the algorithm of Swendsen and Wang.

    Cost: a sweep is linear in the axes of factors where constraints leave little in doubt. Where components are wider
    than blocks, chains may be slow to mix or, with hard formulas, not reach everything: they start at different
    assignments, so that this shows as an R-hat above one. Where no assignment is found that satisfies all hard
    formulas, a `ModelError` says so.

    Parameters
    ----------
    leaves
        Solutions that a search through a component may find.
    n_chains, burn_in, thinning, sweeps
        As for `Gibbs`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> for pair in ("AB", "BC"):
    ...     _ = net.add_factor(list(pair), log_table=[[20.0, 0.0], [0.0, 20.0]])  # single changes would never be made
    >>> answer = mf.marginals(net, method=mf.methods.MCSAT(sweeps=1000), rng=0)
    >>> bool(abs(answer["A"][0] - 0.5) < 5 * answer.standard_error("A")[0]), answer.converged
    (True, True)
    """

    leaves: int = 512
    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 10_000

    name: ClassVar[str] = "mc_sat"

    def __post_init__(self) -> None:
        check_method(self, least={**LEAST, "leaves": 1})

    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """Starts that satisfy what is hard, and slices."""
        problem = prepare_chains(graph, evidence)
        start = None if init is not None else satisfying_states(problem, self.n_chains, rng, running)
        return Begun(problem, Slices.of(problem, self.leaves), start, self.burn_in)


def satisfying_states(problem: Problem, n: int, rng: np.random.Generator, running: Running) -> States:
    """Starts of Markov chains: scattered, where a search with steps back finds some; else by `MaxWalkSAT`."""
    try:
        return dispersed_states(problem, n, rng)
    except ImpossibleEvidenceError:
        raise
    except ModelError:
        pass
    rows = []
    tables = problem.as_tables
    known = np.full(tables.n_variables, -1, np.int32)
    known[: len(problem.evidence.states)] = problem.evidence.states
    for _ in range(n):
        try:
            found = MaxWalkSAT(shaken=0).decode(
                tables, Evidence(known, problem.evidence.likelihoods), running=running.quiet, rng=rng
            )
        except ImpossibleEvidenceError:
            raise problem.impossible() from None
        except ModelError as error:
            raise ModelError(
                f"mc_sat begins where all hard formulas hold, and found no such assignment: {error}"
            ) from None
        rows.append(found.states)
    return reduced_rows(problem, np.array(rows, np.int32))
