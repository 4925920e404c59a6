"""Exact log Z and marginals of Ising models on the plane or a torus in polynomial time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.graphs.planar import planar_rotation, torus_drawing
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.planar_ising.moments import PlanarSolution
from markovfield.inference.planar_ising.plan import PlanarPlan, lay_out
from markovfield.inference.planar_ising.solve import solve_plan
from markovfield.inference.problem.pairwise import pairwise
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.problem.spins import SpinModel, spin_model

__all__ = ["PlanarIsing", "is_planar_ising", "planar_model"]

_PLANS: Shelf[PlanarPlan | None] = Shelf(16)
NO_FIELD = 1e-13
"""Fields below this, relative to the largest potential, are rounding errors of potentials that cancel."""
SMALLEST = 1e-300
"""No state of a model with finite potentials is impossible, however small its probability comes out."""
JOINT = 12
"""The most variables of a joint distribution: it has 2^12 moments."""

NOT_SPINS = (
    "needs variables of two states and finite potentials of at most two variables; "
    "junction_tree, generalized_bp and mini_bucket take any model"
)
NOT_PLANAR = (
    "needs a graph that can be drawn without crossings, and the pairs of this model of {n} spins and {m} pairs cannot; "
    "take junction_tree where its width allows, or generalized_bp or mini_bucket"
)
FIELDS = (
    "needs potentials and evidence on single variables to lie around one face of the graph, and the {k} here do not; "
    "take junction_tree where its width allows, or generalized_bp or mini_bucket"
)
TORUS_FIELDS = (
    "takes no potentials on single variables of a lattice that is periodic both ways, nor evidence on more than one, "
    "and {k} spins here have some or are beside it; take junction_tree where its width allows, or generalized_bp or "
    "mini_bucket"
)


@dataclass(frozen=True, eq=False)
class PlanarModel:
    """A problem as an Ising model on the plane or a torus without fields.

    Fields become couplings to one more spin, the ghost, which is then vertex 0 of the plan; other vertices are the
    spins of ``spins`` in order, from 1 on with a ghost and from 0 on without.

    Attributes
    ----------
    first, second, coupling
        The pairs of vertices, as the plan has them, also those of coupling zero where they do not cross others.
    """

    spins: SpinModel
    plan: PlanarPlan
    ghost: bool
    first: IntArray
    second: IntArray
    coupling: FloatArray


def _all_pairs(spins: SpinModel) -> tuple[IntArray, IntArray, FloatArray]:
    """Every pair of spins that a factor joins, also where couplings are or add up to zero."""
    n = max(spins.n_spins, 1)
    label = np.full(spins.problem.structure.n_variables, -1, np.int64)
    label[spins.variables] = np.arange(spins.n_spins)
    first, second = (label[end] for end in pairwise(spins.problem.structure).joined)
    coupling = np.zeros(len(first))
    coupling[np.searchsorted(first * n + second, spins.first * n + spins.second)] = spins.coupling
    return first, second, coupling


def _fields(spins: SpinModel) -> FloatArray:
    pool = spins.problem.potentials.log_tables
    largest = max(np.abs(pool[np.isfinite(pool)]).max(initial=1.0), np.abs(spins.field).max(initial=0.0))
    return np.where(np.abs(spins.field) <= NO_FIELD * largest, 0.0, spins.field)


def _has_ghost(spins: SpinModel, ghosts: IntArray) -> bool:
    """Whether there is a ghost: where spins have fields, and where there is no spin at all and something must be."""
    return len(ghosts) > 0 or spins.n_spins == 0


def _drawn(spins: SpinModel, first: IntArray, second: IntArray, ghosts: IntArray) -> PlanarPlan | None:
    """The plan of the spins and, where there are any, of the ghost joined to ``ghosts``; None if there is none."""
    ghost = _has_ghost(spins, ghosts)
    torus = torus_drawing(spins.n_spins, first, second)
    # A torus is never planar, but may be once edges are missing; that is then less work.
    if torus is None or len(first) < len(torus.first):
        plan = _drawn_flat(spins, first, second, ghosts, ghost)
        if plan is not None:
            return plan
    if ghost:
        return _drawn_around(spins, first, second, ghosts) if torus is None else None
    return None if torus is None else lay_out(spins.n_spins, torus.first, torus.second, torus.around, torus.loops)


def _drawn_around(spins: SpinModel, first: IntArray, second: IntArray, ghosts: IntArray) -> PlanarPlan | None:
    """The plan of a torus of which one variable is observed: the ghost takes its place."""
    n = spins.problem.structure.n_variables
    if spins.n_spins != n - 1:
        return None
    hole = int(np.setdiff1d(np.arange(n), spins.variables)[0])
    names = spins.variables
    ends = np.concatenate([np.full(len(ghosts), hole), names[first]])
    others = np.concatenate([names[ghosts], names[second]])
    torus = torus_drawing(n, np.minimum(ends, others), np.maximum(ends, others))
    if torus is None:
        return None
    vertex = np.zeros(n, np.int64)
    vertex[names] = np.arange(1, n)
    # The ghost is the first end of its edges, whatever its place in the lattice.
    ahead, back = vertex[torus.first], vertex[torus.second]
    dart = np.arange(2 * len(ahead)) ^ np.repeat(ahead > back, 2)
    around = np.empty(len(dart), np.int64)
    around[dart] = dart[torus.around]
    return lay_out(n, np.minimum(ahead, back), np.maximum(ahead, back), around, torus.loops)


def _drawn_flat(
    spins: SpinModel, first: IntArray, second: IntArray, ghosts: IntArray, ghost: bool
) -> PlanarPlan | None:
    """The plan in the plane; None if the graph is not planar."""
    # A lattice is recognised by the positions of its variables.
    names = spins.variables + 1
    ends = np.concatenate([np.zeros(len(ghosts), np.int64), names[first]])
    others = np.concatenate([names[ghosts], names[second]])
    if not ghost:
        ends, others = ends - 1, others - 1
    around = planar_rotation(ends, others)
    if around is None:
        return None
    return lay_out(
        spins.n_spins + ghost,
        np.concatenate([np.zeros(len(ghosts), np.int64), first + ghost]),
        np.concatenate([ghosts + 1, second + ghost]),
        around,
    )


def _planned(spins: SpinModel) -> PlanarModel | str:
    """The planar model of a problem, or why there is none; plans are kept with the structure."""
    first, second, coupling = _all_pairs(spins)
    field = _fields(spins)
    ghosts = np.flatnonzero(field)
    s = spins.problem.structure
    whole_structure = spins.problem.as_tables.structure
    base = (s.cardinalities.tobytes(), s.scope_offsets.tobytes(), s.scopes.tobytes(), ghosts.tobytes())
    for pairs in (np.arange(len(first)), np.flatnonzero(coupling)):
        key = (*base, pairs.tobytes())
        make = partial(_drawn, spins, first[pairs], second[pairs], ghosts)
        plan = _PLANS.get(whole_structure, key, make)
        if plan:
            ghost = _has_ghost(spins, ghosts)
            weights = np.concatenate([field[ghosts], coupling[pairs]])
            ends = plan.tails[: 2 * len(weights)]
            return PlanarModel(spins, plan, ghost, ends[::2], ends[1::2], weights)
    nonzero = np.flatnonzero(coupling)
    first, second = spins.variables[first[nonzero]], spins.variables[second[nonzero]]
    torus = torus_drawing(s.n_variables, first, second) if len(ghosts) else None
    whole = torus is not None and len(torus.first) == len(first)
    if len(ghosts) and not whole and planar_rotation(first, second) is not None:
        return FIELDS.format(k=len(ghosts))
    return (NOT_PLANAR if torus is None else TORUS_FIELDS).format(n=spins.n_spins, m=len(nonzero), k=len(ghosts))


def planar_model(problem: Problem) -> PlanarModel | None:
    """Write a prepared problem as an Ising model on the plane or a torus without fields; None where it is not one.

    The cheap tests come first: two states and pairs, then lattices, the number of pairs, and whether it is planar.
    """
    spins = spin_model(problem)
    if spins is None:
        return None
    found = _planned(spins)
    return None if isinstance(found, str) else found


def is_planar_ising(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether `PlanarIsing` takes this model with this evidence.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> graph = net.compile()
    >>> is_planar_ising(graph, Evidence.parse(graph.structure, None))
    True
    """
    return planar_model(prepare(graph, evidence)) is not None


def _solved(model: PlanarModel, running: Running, *, keep: bool) -> PlanarSolution:
    coupling = np.zeros(model.plan.n_edges)
    coupling[: len(model.coupling)] = model.coupling
    return solve_plan(model.plan, coupling, running, keep=keep)


@dataclass(frozen=True)
class PlanarIsing:
    """Exact inference in Ising models on the plane or a torus, in time that grows like n^1.5 (Kasteleyn, Fisher).

    Variables have two states, factors join at most two, and the graph of the pairs can be drawn in the plane without
    crossings. Potentials and evidence on single variables are allowed where these lie around one face, such as the
    border of a lattice. log Z is the Pfaffian of a sparse matrix whose terms are the ways to cut the spins in two,
    all of one sign, which is why strong and frustrated couplings do little harm; every answer is checked against the
    inverse of that matrix, and an error raised should it have lost its digits.

    A square lattice that is periodic both ways, numbered row by row, is taken as well, whole or with edges missing: it
    is a quarter of a sum of four Pfaffians, at four times the cost and more. It must have no potentials on single
    variables, and evidence on one at most, from which marginals then are correlations. The four terms cancel where
    turning the couplings across a row or a column would raise log Z by more than about 9, such as in a strongly
    antiferromagnetic model of odd length; that is an error too.

    A lattice of 64 x 64 takes less than a tenth of a second, one of 256 x 256 a few, and a torus of 64 x 64 a third of
    one. With potentials on single variables, `marginals` also solves for every variable that has none, at a cost that
    grows like n^2. Joint distributions come from moments and are right to about 1e-16, absolutely: a possible state of
    less has some tiny positive probability there.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({name: 2 for name in "ABC"})
    >>> for pair in ("AB", "BC", "AC"):
    ...     _ = net.add_factor(list(pair), log_table=[[-1.0, 1.0], [1.0, -1.0]])
    >>> answer = mf.marginals(net, method=PlanarIsing())
    >>> round(answer.log_partition, 4), answer.joint(["A", "B"]).round(4).tolist()
    (2.7978, [[0.1687, 0.3313], [0.3313, 0.1687]])
    """

    name: ClassVar[str] = "planar"
    exact: ClassVar[bool] = True
    needs: ClassVar[str] = "planar"
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def _model(self, graph: FactorGraph, evidence: Evidence) -> PlanarModel:
        spins = spin_model(prepare(graph, evidence))
        found = NOT_SPINS if spins is None else _planned(spins)
        if spins is not None and spins.constant == -np.inf:
            raise spins.problem.impossible()
        if isinstance(found, str):
            raise ModelError(f"method 'planar' {found}")
        return found

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log Z, checked by the inverse."""
        model = self._model(graph, evidence)
        return LogPartition(
            log_partition=_log_partition(model, _solved(model, running, keep=False)),
            method=self.name,
            seconds=running.seconds,
        )

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Marginals:
        """All single marginals; joint distributions of up to 12 variables are computed when asked for."""
        model = self._model(graph, evidence)
        solution = _solved(model, running, keep=True)
        value = _log_partition(model, solution)
        up = _probabilities(model, solution, running)
        joint, counts = _deferred(model, solution, up)
        return Marginals(
            graph=graph,
            values=_values(model, up),
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=running.seconds,
            _joint=joint,
            _counts=counts,
        )


def _log_partition(model: PlanarModel, solution: PlanarSolution) -> float:
    """The ghost's two states count everything twice."""
    return model.spins.constant + solution.log_partition - (float(np.log(2.0)) if model.ghost else 0.0)


def _pair_probabilities(model: PlanarModel, solution: PlanarSolution) -> FloatArray:
    """``float64[edges, 2]``: the ends of each pair differ, or are alike, in the model's own spins."""
    m = len(model.coupling)
    both = np.stack([solution.differ[:m], solution.alike[:m]], axis=1)
    turned = solution.spins[model.first] * solution.spins[model.second] < 0
    both[turned] = both[turned][:, ::-1]
    both = np.where(both <= 0.0, SMALLEST, both)
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def _probabilities(model: PlanarModel, solution: PlanarSolution, running: Running) -> FloatArray:
    """``float64[spins, 2]``: each spin is down, or up."""
    n = model.spins.n_spins
    out = np.full((n, 2), 0.5)
    if not model.ghost:
        return out
    beside = model.first == 0
    known = model.second[beside] - 1
    out[known] = _pair_probabilities(model, solution)[beside]
    far = np.setdiff1d(_reached(model), np.append(known, -1)) + 1
    if len(far):
        up = (1.0 + solution.with_root(far, running)) / 2
        out[far - 1] = np.clip(np.stack([1.0 - up, up], axis=1), SMALLEST, 1.0)
    return out


def _reached(model: PlanarModel) -> IntArray:
    """Spins that couplings join to the ghost; the others are up as often as down."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    live, n = model.coupling != 0, model.plan.n_vertices
    links = coo_array((np.ones(int(live.sum()), np.int8), (model.first[live], model.second[live])), shape=(n, n))
    label = connected_components(links, directed=False)[1]
    return np.flatnonzero(label[1:] == label[0])


def _values(model: PlanarModel, up: FloatArray) -> FloatArray:
    """Marginals of all states of the user's graph."""
    problem = model.spins.problem
    offsets = problem.structure.value_offsets
    flat = np.ones(int(offsets[-1]))
    flat[offsets[model.spins.variables][:, None] + np.arange(2)] = up
    values = problem.expand(flat, 0.0)
    return values


def _deferred(
    model: PlanarModel, solution: PlanarSolution, up: FloatArray
) -> tuple[Callable[[tuple[int, ...]], FloatArray], Callable[[], FloatArray]]:
    """Joint tables and expected counts, computed when an answer is asked for them."""
    problem, ghost = model.spins.problem, int(model.ghost)
    label = np.full(problem.structure.n_variables, -1, np.int64)
    label[model.spins.variables] = np.arange(model.spins.n_spins)
    n = model.plan.n_vertices
    keys = np.minimum(model.first, model.second) * n + np.maximum(model.first, model.second)
    order = np.argsort(keys)

    def pairs(i: IntArray, j: IntArray) -> FloatArray:
        """``float64[pairs, 2, 2]`` for pairs of spins; those without an edge one by one."""
        wanted = np.minimum(i, j) * n + np.maximum(i, j) + ghost * (n + 1)
        at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1) if len(keys) else np.zeros(len(i), int)
        edge = order[at] if len(keys) else at
        there = keys[edge] == wanted if len(keys) else np.zeros(len(i), np.bool_)
        out = np.empty((len(i), 2, 2))
        out[there] = _pair_tables(up[i[there]], up[j[there]], _pair_probabilities(model, solution)[edge[there]])
        for k in np.flatnonzero(~there).tolist():
            out[k] = solution.joint([int(i[k]) + ghost, int(j[k]) + ghost], 0 if ghost else None)
        return out

    def joint(positions: tuple[int, ...]) -> FloatArray:
        cards = [int(problem.structure.cardinalities[v]) for v in positions]
        spins = [int(label[v]) for v in positions if label[v] >= 0]
        if len(spins) > JOINT:
            raise ModelError(
                f"method 'planar' gives joint distributions of up to {JOINT} variables, and {len(spins)} were asked "
                f"for; junction_tree has no such limit"
            )
        if len(spins) == 2:
            table = pairs(np.array(spins[:1]), np.array(spins[1:]))[0]
        elif len(spins) == 1:
            table = up[spins[0]]
        else:
            table = solution.joint([s + ghost for s in spins], 0 if ghost else None)
        return problem.expand_joint(table.reshape(cards), positions)

    def counts() -> FloatArray:
        s = problem.structure
        out = np.zeros(len(problem.potentials.log_tables))
        view = pairwise(s)
        np.add.at(out, s.table_offsets[view.constants], 1.0)
        axis = s.scope_offsets[view.unary]
        cells = s.table_offsets[view.unary][:, None] + s.table_strides[axis][:, None] * np.arange(2)
        np.add.at(out, cells, up[label[s.scopes[axis]]])
        axis = s.scope_offsets[view.pairs]
        rows = s.table_strides[axis][:, None] * np.arange(2)
        columns = s.table_strides[axis + 1][:, None] * np.arange(2)
        cells = s.table_offsets[view.pairs][:, None, None] + rows[:, :, None] + columns[:, None, :]
        np.add.at(out, cells, pairs(label[s.scopes[axis]], label[s.scopes[axis + 1]]))
        return problem.counts(out)

    return joint, counts


def _pair_tables(one: FloatArray, two: FloatArray, both: FloatArray) -> FloatArray:
    """``float64[pairs, 2, 2]`` from the marginals of two spins and the probabilities that they differ or are alike."""
    differ, alike = both[:, 0], both[:, 1]
    # Twice the probability of each state less that of the other: small ones do not come from differences of large ones.
    diagonal, across = (one - two[:, ::-1]) / 2, (one - two) / 2
    tables = np.empty((len(one), 2, 2))
    tables[:, 0, 0], tables[:, 1, 1] = alike / 2 + diagonal[:, 0], alike / 2 + diagonal[:, 1]
    tables[:, 0, 1], tables[:, 1, 0] = differ / 2 + across[:, 0], differ / 2 + across[:, 1]
    # Differences of moments are right to about 1e-16, and no state of an Ising model is impossible.
    return np.maximum(tables, SMALLEST)
