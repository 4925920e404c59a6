"""Wolff: Markov chains that grow and move one cluster at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, States
from markovfield.inference.cluster_sampling.cluster_moves_kernel import swendsen_wang, wolff
from markovfield.inference.cluster_sampling.swendsen_wang import (
    ClusterMethod,
    ClusterModel,
    ClusterTransition,
)
from markovfield.inference.core.running import Running
from markovfield.inference.sampling.chain_method import LEAST
from markovfield.kernels.random import streams

__all__ = ["Wolff"]

Stream = npt.NDArray[np.uint64]
# Sweeps of all clusters that equilibrate a start; then so many visits of every variable to see how large clusters are.
SETTLING, PILOT_VISITS = 50, 4
_NO_ROWS, _NO_SUMS = np.zeros((0, 0), np.int32), np.zeros(0)


@dataclass(frozen=True)
class Wolff(ClusterMethod):
    """Markov chains of Wolff (1989) for Ising and Potts models on any graph.

    A cluster grows from a variable drawn at random, by the bonds of `SwendsenWang`, and is moved as one. Fields do not
    enter the bonds: the moved cluster is accepted by how its members' unary potentials change (Metropolis; with more
    than two states, Liu's Metropolised heat bath over all of them). The usual alternative, a ghost variable that the
    fields bond to, stops every cluster that touches it, though fields of both signs inside a cluster may cancel.
    It takes the models that `SwendsenWang` takes. Variables are drawn evenly, so large clusters are moved more often:
    at the critical coupling of a square lattice a sweep forgets about four times as much as one of `SwendsenWang`,
    and takes about four times as long.

    A sweep is a fixed number of clusters, or one more by a coin. The number must not depend on what the chain
    meets, or the states it is left in would be biased. Chains start from random states after some sweeps of
    `SwendsenWang`, since the clusters of a random state are small.

    Parameters
    ----------
    clusters
        Clusters in a sweep; None is as many as visit every variable about once, counted in a short pilot run that is
        the same for every seed.
    n_chains, burn_in, thinning, sweeps, local_sweeps
        As for `SwendsenWang`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> drawn = mf.sample(net, 4000, {"A": 1}, method=Wolff(), rng=0)
    >>> bool(abs(drawn.frequencies("B")[0][1] - mf.marginals(net, {"A": 1})["B"][1]) < 0.05)
    True
    """

    clusters: int | None = None
    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 5000
    local_sweeps: int | None = None

    name: ClassVar[str] = "wolff"

    def __post_init__(self) -> None:
        check_method(self, least=LEAST | {"local_sweeps": 0, "clusters": 1})

    def transition(self, model: ClusterModel) -> ClusterTransition:
        """A sweep as a transition of Markov chains."""
        local = self._local(model)
        clusters = _clusters_in_a_sweep(model, local) if self.clusters is None else self.clusters

        def move(sweeps: int, states: States, stream: Stream, rows: States, sums: FloatArray) -> None:
            wolff(model.graph, clusters, local, sweeps, states, stream, rows, sums)

        # A cluster may hold everything: where there are few in a sweep, each may cost a sweep of all pairs.
        worst = 1 if self.clusters is None else min(self.clusters, 8)
        return ClusterTransition(model, move, max(1, model.sweeps_at_once(local) // (4 * worst)))

    def starts(self, model: ClusterModel, rng: np.random.Generator, running: Running) -> States:
        """First states of the Markov chains: random ones, each after some sweeps of all clusters."""
        states, own = model.starts(self.n_chains, rng), streams(rng, self.n_chains)
        columns = model.graph.columns
        if len(columns):
            for row, stream in zip(states, own, strict=True):
                running.check()
                free = row[columns]
                _settle(model, self._local(model), free, stream)
                row[columns] = free
        return states

    def _local(self, model: ClusterModel) -> int:
        return int(model.has_fields) if self.local_sweeps is None else self.local_sweeps


def _settle(model: ClusterModel, local: int, states: States, stream: Stream) -> None:
    """Equilibrate a start, in place: the clusters of a random state are so small that `Wolff` would take long to."""
    swendsen_wang(model.graph, local, SETTLING, states, stream, _NO_ROWS, _NO_SUMS)


def _clusters_in_a_sweep(model: ClusterModel, local: int) -> int:
    """How many clusters visit as many variables as there are, on average.

    The pilot has a seed of its own, so that Markov chains which are resumed go on with the same number.
    """
    columns = model.graph.columns
    n = len(columns)
    if not n:
        return 1
    rng = np.random.default_rng(0)
    states, stream = model.starts(1, rng)[0][columns], streams(rng, 1)[0]
    _settle(model, local, states, stream)
    visited, grown = 0, 0.0
    while visited < PILOT_VISITS * n:
        visited += wolff(model.graph, 8, 0, 1, states, stream, _NO_ROWS, _NO_SUMS)
        grown += 8.5  # half of the time it is one more
    return max(1, round(n * grown / visited))
