"""Structure from tests of independence: the PC algorithm, stable under reordering of the variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_structure import LearnedStructure
from markovfield.names import VariableName

__all__ = ["PC", "IndependenceTest", "independence_test"]


MOST_CELLS = 2**24
"""A test over more joint states than this is not made: no table of data has the rows to speak on it."""


class IndependenceTest(NamedTuple):
    """Outcome of a test: the statistic, its degrees of freedom, and the probability of one as large by chance."""

    statistic: float
    degrees: int
    p_value: float


def independence_test(counts: npt.ArrayLike, test: str = "g2") -> IndependenceTest:
    """Test whether two variables are independent given others, from their joint counts.

    Parameters
    ----------
    counts
        ``float[..., states of x, states of y]``: how often each joint state occurs; leading axes are those given.
    test
        ``"g2"``, twice the log of the likelihood ratio, or ``"chi2"``, Pearson's statistic.

    Returns
    -------
    IndependenceTest
        In each configuration of the given variables, states of x or y that do not occur there are left out of the
        degrees of freedom. Without any degree of freedom the p-value is one.

    Examples
    --------
    >>> outcome = independence_test([[30, 10], [10, 30]])
    >>> round(outcome.statistic, 3), outcome.degrees, round(outcome.p_value, 8)
    (20.93, 1, 4.76e-06)
    """
    from scipy.special import chdtrc, xlogy

    table = np.asarray(counts, np.float64)
    if table.ndim < 2 or not ((table >= 0) & (table < np.inf)).all():
        raise ModelError(f"independence_test needs counts [..., x, y], none negative, got shape {table.shape}")
    if test not in ("g2", "chi2"):
        raise ModelError(f"test of independence_test must be 'g2' or 'chi2', got {test!r}")
    table = table.reshape(-1, *table.shape[-2:])
    n_x, n_y, n = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    degrees = int((np.maximum((n_x > 0).sum(axis=1) - 1, 0) * np.maximum((n_y > 0).sum(axis=1) - 1, 0)).sum())
    if test == "g2":
        fit = xlogy(table, table).sum() + xlogy(n, n).sum() - xlogy(n_x, n_x).sum() - xlogy(n_y, n_y).sum()
        statistic = max(2.0 * float(fit), 0.0)
    else:
        expected = n_x[:, :, None] * n_y[:, None, :] / np.where(n > 0, n, 1.0)[:, None, None]
        occurs = expected > 0
        statistic = float(((table[occurs] - expected[occurs]) ** 2 / expected[occurs]).sum())
    return IndependenceTest(statistic, degrees, float(chdtrc(degrees, statistic)) if degrees else 1.0)


@dataclass(frozen=True)
class PC:
    """Begin with all pairs tied; cut those that some set of neighbours makes independent; direct what that compels.

    Sets grow one variable at a time, and the neighbours are those at the beginning of each size (PC-stable), so that
    the order of the variables does not matter to the adjacencies. A clock or callback that stops it raises, since half
    the tests tell nothing.

    Parameters
    ----------
    alpha
        A pair is cut when a test's p-value is larger than this.
    max_given
        Most variables to condition on; None is no limit.
    test
        ``"g2"`` or ``"chi2"``; see `independence_test`.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.learning.structure import learn_structure
    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.integers(2, size=(2, 2000))
    >>> c = np.where(rng.random(2000) < 0.1, 1 - (a | b), a | b)
    >>> learn_structure({"A": a, "B": b, "C": c}, PC(alpha=0.01)).cpdag
    MixedGraph(A -> C, B -> C)
    """

    name: ClassVar[str] = "pc"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    alpha: float = 0.05
    max_given: int | None = None
    test: Literal["g2", "chi2"] = "g2"

    def __post_init__(self) -> None:
        check_method(
            self, least={"max_given": 0}, above={"alpha": 0}, below={"alpha": 1}, choices={"test": ("g2", "chi2")}
        )

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedStructure:
        """Find the adjacencies, then the directions."""
        import networkx as nx

        from markovfield.graphs.equivalence import dag_of_cpdag, orient

        adjacent, separators, tests = self._skeleton(table, running)
        names = table.variables
        skeleton = nx.Graph()
        skeleton.add_nodes_from(names)
        skeleton.add_edges_from((names[u], names[v]) for u, v in np.argwhere(np.triu(adjacent)).tolist())
        sets: dict[Any, frozenset[VariableName]] = {
            frozenset((names[u], names[v])): frozenset(names[w] for w in given) for (u, v), given in separators.items()
        }
        found = orient(skeleton, sets)
        dag = nx.DiGraph()
        for v, states in zip(names, table.states, strict=True):
            dag.add_node(v, states=states)
        dag.add_edges_from(dag_of_cpdag(found, strict=False).edges())
        return LearnedStructure(
            variables=names,
            states=table.states,
            dag=dag,
            method=self.name,
            separating_sets=sets,
            iterations=tests,
            _cpdag=found,
        )

    def _skeleton(
        self, table: DataTable, running: Running
    ) -> tuple[npt.NDArray[np.bool_], dict[tuple[int, int], tuple[int, ...]], int]:
        """Which pairs stay adjacent, the set that cut each other pair, and the number of tests."""
        n = table.n_variables
        adjacent = ~np.eye(n, dtype=np.bool_)
        separators: dict[tuple[int, int], tuple[int, ...]] = {}
        tests, size = 0, 0
        while self.max_given is None or size <= self.max_given:
            sets = {}
            for u, v in np.argwhere(np.triu(adjacent)).tolist():
                around = [np.flatnonzero(adjacent[x]).tolist() for x in (u, v)]
                if max(len(a) for a in around) > size:
                    sets[u, v] = _subsets(u, v, around, size)
            if not sets:
                break
            # One set for every pair still tied, all counted together, until each is cut or has no sets left.
            while sets:
                running.check()
                batch = {pair: given for pair, each in sets.items() if (given := next(each, None)) is not None}
                sets = {pair: sets[pair] for pair in batch}
                for pair, given in self._independent(table, batch, running):
                    adjacent[pair] = adjacent[pair[::-1]] = False
                    separators[pair] = given
                    del sets[pair]
                tests += len(batch)
            size += 1
        return adjacent, separators, tests

    def _independent(
        self, table: DataTable, batch: dict[tuple[int, int], tuple[int, ...]], running: Running
    ) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
        """Pairs of a batch that their set makes independent."""
        cards = table.cardinalities.tolist()
        waiting: list[Any] = []
        cells = 0
        found = []
        items = list(batch.items())
        for i, (pair, given) in enumerate(items):
            size = math.prod(cards[x] for x in (*given, *pair))
            if size <= MOST_CELLS:
                waiting.append((pair, given))
                cells += size
            if waiting and (cells > MOST_CELLS or i == len(items) - 1):
                counts = family_counts(table, [[*s, *p] for p, s in waiting], running=running)
                found += [
                    done
                    for done, c in zip(waiting, counts, strict=True)
                    if independence_test(c, self.test).p_value > self.alpha
                ]
                waiting, cells = [], 0
        return iter(found)


def _subsets(u: int, v: int, around: list[list[int]], size: int) -> Iterator[tuple[int, ...]]:
    """Sets of a size among the neighbours of u, then those among the neighbours of v that are new."""
    first = [w for w in around[0] if w != v]
    second = [w for w in around[1] if w != u]
    yield from combinations(first, size)
    known = set(first)
    for chosen in combinations(second, size):
        if not known.issuperset(chosen):
            yield chosen
