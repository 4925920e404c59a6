"""The tree that fits best: a maximum spanning tree of mutual informations (Chow and Liu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_structure import LearnedStructure, Move, graph_of
from markovfield.learning.structures.local_scores import LocalScores
from markovfield.names import Names, VariableName

__all__ = ["ChowLiu", "information_of", "mutual_informations"]

ROUNDING = 1e-12
"""Information (nats) below this is zero with rounding."""


def mutual_informations(table: DataTable, given: int | None = None, *, running: Running | None = None) -> FloatArray:
    """Mutual information of every pair of variables, in nats.

    Parameters
    ----------
    table
        The data; where values are missing, a pair is counted over the rows that have both.
    given
        Position of a variable to condition on; its own row and column are zero.

    Returns
    -------
    ndarray
        ``float64[n, n]``, symmetric with zeros on the diagonal. Costs n^2 / 2 passes over the rows with missing values,
        a fraction of that without.

    Examples
    --------
    >>> from markovfield.learning.core.data import encode
    >>> mutual_informations(encode({"A": [0, 0, 1, 1], "B": [0, 0, 1, 1], "C": [0, 1, 0, 1]})).round(4).tolist()
    [[0.0, 0.6931, 0.0], [0.6931, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    running = Running() if running is None else running
    n = table.n_variables
    result = np.zeros((n, n))
    others = [v for v in range(n) if v != given]
    above = [] if given is None else [given]
    if not table.has_missing:
        scores = LocalScores(table, "log_likelihood", running=running)
        for v in others:
            running.check()
            result[v] = (scores.additions(v, above) - scores.local(v, above)) / max(table.total_weight, 1e-300)
            result[v, [v, *above]] = 0.0
        # Either direction gives the same number up to rounding: keep one of them.
        result = np.triu(result, 1)
    else:
        pairs = [(u, v) for i, u in enumerate(others) for v in others[i + 1 :]]
        for (u, v), counts in zip(
            pairs, family_counts(table, [[*above, u, v] for u, v in pairs], running=running), strict=True
        ):
            result[u, v] = information_of(counts.reshape(-1, *counts.shape[-2:]))
    result = np.where(result > ROUNDING, result, 0.0)
    both: FloatArray = result + result.T
    return both


def information_of(counts: FloatArray) -> float:
    """Mutual information of the last two axes given the first."""
    from scipy.special import xlogy

    total = counts.sum()
    if not total:
        return 0.0
    terms = [xlogy(c, c).sum() for c in (counts, counts.sum(axis=(1, 2)), counts.sum(axis=1), counts.sum(axis=2))]
    return float(terms[0] + terms[1] - terms[2] - terms[3]) / float(total)


@dataclass(frozen=True)
class ChowLiu:
    """The tree with the largest likelihood, its arcs directed away from the root.

    Parameters
    ----------
    root
        The variable that has no parent; None is the first. Any root gives an equivalent structure.
    class_variable
        Makes a tree-augmented naive Bayes classifier: this variable is a parent of all others, and the tree is that of
        mutual informations given it.
    min_information
        Leave out arcs of no more mutual information than this (nats); what remains may be several trees.

    Examples
    --------
    >>> from markovfield.learning.structure import learn_structure
    >>> data = {"A": [0, 0, 1, 1, 0, 1], "B": [0, 0, 1, 1, 0, 0], "C": [0, 1, 1, 1, 0, 0]}
    >>> learn_structure(data, ChowLiu(root="B")).arcs
    (('B', 'A'), ('B', 'C'))
    """

    name: ClassVar[str] = "chow_liu"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    root: VariableName | None = None
    class_variable: VariableName | None = None
    min_information: float = 0.0

    def __post_init__(self) -> None:
        check_method(self, least={"min_information": 0})

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedStructure:
        """Weigh all pairs, then grow the tree from the root (Prim)."""
        names = Names(table.variables)
        given = None if self.class_variable is None else names.position(self.class_variable)
        members = [v for v in range(table.n_variables) if v != given]
        root = None if self.root is None else names.position(self.root)
        if root is not None and root == given:
            raise ModelError(f"root and class_variable of ChowLiu are both {self.root!r}")
        information = mutual_informations(table, given, running=running)
        tree = _grow(information, members, root, self.min_information)
        arcs = [(p, c) for p, c in tree]
        if given is not None:
            arcs += [(given, v) for v in members]
        score = None
        if not table.has_missing:
            scores = LocalScores(table, "log_likelihood", running=running)
            score = scores.total([[p for p, c in arcs if c == v] for v in range(table.n_variables)])
        gain = table.total_weight
        return LearnedStructure(
            variables=table.variables,
            states=table.states,
            dag=graph_of(table, arcs),
            method=self.name,
            score=score,
            score_name=None if score is None else "log_likelihood",
            history=tuple(
                Move("add", table.variables[p], table.variables[c], gain * float(information[p, c])) for p, c in tree
            ),
            iterations=len(tree),
        )


def _grow(weights: FloatArray, members: list[int], root: int | None, least: float) -> list[tuple[int, int]]:
    """Arcs (parent, child) of a maximum spanning forest, in the order they are added."""
    waiting = np.zeros(len(weights), np.bool_)
    waiting[members] = True
    strongest = np.full(len(weights), -np.inf)
    parent = np.full(len(weights), -1)
    arcs = []
    while waiting.any():
        candidates = np.where(waiting, strongest, -np.inf)
        v = int(np.argmax(candidates))
        if candidates[v] > least:
            arcs.append((int(parent[v]), v))
        else:  # nothing is tied to what has been reached: a new tree
            v = root if root is not None and waiting[root] else int(np.argmax(waiting))
        waiting[v] = False
        better = waiting & (weights[v] > strongest)
        strongest[better] = weights[v][better]
        parent[better] = v
    return arcs
