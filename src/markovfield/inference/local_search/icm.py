"""Iterated conditional modes: each variable takes its best state given the others, until none changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search import (
    LocalSearch,
    searched,
)

__all__ = ["ICM"]


@dataclass(frozen=True)
class ICM:
    """Iterated conditional modes: each variable takes its best state given the others, until none changes.

    The answer is a local optimum: no change of a single variable scores higher (Besag 1986; Murphy 19.4.2). It is
    fast, time for a change growing with the variable's neighbours times their states, and poor when potentials are
    strong; restarts help.

    Parameters
    ----------
    restarts
        Further climbs from random assignments; the best local optimum is the answer.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, 0.0], [0.0, 3.0]])
    >>> mf.decode(net, method=mf.methods.ICM(restarts=5), rng=0).assignment
    {'A': 1, 'B': 1}
    """

    restarts: int = 0

    name: ClassVar[str] = "icm"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"restarts": 0})

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Climb, from where ``init`` says and then from random assignments."""

        def search(found: LocalSearch) -> int:
            cards = graph.structure.cardinalities
            everyone = np.arange(len(cards))
            found.climb(everyone, running)
            for _ in range(self.restarts):
                running.check(found.best_score)
                found.move_to((rng.random(len(cards)) * cards).astype(np.int64))
                found.climb(rng.permutation(everyone), running)
            return 1 + self.restarts

        return searched(self, graph, evidence, running, init, rng, search)
