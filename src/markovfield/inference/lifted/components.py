"""Connected components that are the same but for the names of their variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure, frozen
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.lifted.colours import refined
from markovfield.inference.problem.problem import Problem, component_labels
from markovfield.names import Names

__all__ = ["Kinds", "kinds_of"]


@dataclass(frozen=True, eq=False)
class Kinds:
    """One component of each kind, as a graph, and what all others are to it.

    Attributes
    ----------
    graph, evidence
        The representatives, and the virtual evidence on them.
    kind
        The kind of each component.
    variable
        For each variable of the problem the variable of the representative that it corresponds to.
    """

    graph: FactorGraph
    evidence: Evidence
    kind: IntArray
    variable: IntArray

    @property
    def n_kinds(self) -> int:
        """Number of kinds."""
        return int(self.kind.max(initial=-1)) + 1


def kinds_of(problem: Problem) -> Kinds:
    """Components of a prepared problem by kind.

    Components are written down with their variables by colour and then by position, and so their factors; those with
    the same description are the same. Components that are alike in another order of their variables may be missed,
    which costs time and nothing else.
    """
    s = problem.structure
    labels, n = component_labels(s)
    label = labels.astype(np.int64)
    likelihoods = [
        (int(v), problem.likelihood[s.value_offsets[v] : s.value_offsets[v + 1]])
        for v in np.flatnonzero(problem.active)
    ]
    colours = refined(s, Evidence(np.full(s.n_variables, -1, np.int32), tuple(likelihoods)))
    # Variables by component, in it by colour.
    variables = np.lexsort((np.arange(s.n_variables), colours.variables, label))
    first = np.searchsorted(label[variables], np.arange(n + 1))
    place = np.empty(s.n_variables, np.int64)
    place[variables] = np.arange(s.n_variables) - first[label[variables]]
    size = np.diff(s.scope_offsets)
    some = np.flatnonzero(size > 0)
    home = label[s.scopes[s.scope_offsets[:-1][some]]]
    starts = s.scope_offsets[:-1][some]
    # Factors by component, in it by colour, then by the places of their first two variables.
    second = place[s.scopes[np.minimum(starts + 1, s.scope_offsets[1:][some] - 1)]]
    factors = some[np.lexsort((some, second, place[s.scopes[starts]], colours.factors[some], home))]
    first_factor = np.searchsorted(np.sort(home), np.arange(n + 1))
    axes, bounds = _axes(s, factors)
    told = np.stack([place[s.scopes[axes]], s.table_strides[axes]], axis=1)
    about = np.stack([s.table_offsets[factors], s.kind[factors].astype(np.int64), size[factors]], axis=1)
    vector = {v: i for i, (v, _) in enumerate(likelihoods)}
    unique = {data.tobytes(): i for i, (_, data) in reversed(list(enumerate(likelihoods)))}
    given = np.full(s.n_variables, -1, np.int64)
    for v, i in vector.items():
        given[v] = unique[likelihoods[i][1].tobytes()]
    of_variables = np.stack([s.cardinalities[variables].astype(np.int64), given[variables]], axis=1)
    known: dict[tuple[bytes, bytes, bytes], int] = {}
    kind = np.empty(n, np.int64)
    chosen: list[int] = []
    for c in range(n):
        u, last_u, f, last = first[c], first[c + 1], first_factor[c], first_factor[c + 1]
        key = (of_variables[u:last_u].tobytes(), about[f:last].tobytes(), told[bounds[f] : bounds[last]].tobytes())
        kind[c] = known.setdefault(key, len(known))
        if kind[c] == len(chosen):
            chosen.append(c)
    return _built(problem, label, kind, np.array(chosen, np.int64), place, factors, home, dict(likelihoods))


def _axes(s: Structure, factors: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the axes of some factors one behind the other, and where each factor's begin."""
    size = np.diff(s.scope_offsets)[factors]
    bounds = np.zeros(len(factors) + 1, np.int64)
    np.cumsum(size, out=bounds[1:])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], size)
    return np.repeat(s.scope_offsets[:-1][factors], size) + within, bounds


def _built(
    problem: Problem,
    label: IntArray,
    kind: IntArray,
    chosen: IntArray,
    place: IntArray,
    factors: IntArray,
    home: IntArray,
    likelihoods: dict[int, FloatArray],
) -> Kinds:
    """The representatives as a graph of their own."""
    s = problem.structure
    is_chosen = np.zeros(len(kind), np.bool_)
    is_chosen[chosen] = True
    kept = np.flatnonzero(is_chosen[label])
    start = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(np.bincount(kind[label[kept]], minlength=len(chosen)), out=start[1:])
    variable = start[:-1][kind[label]] + place
    order = np.empty(len(kept), np.int64)
    order[variable[kept]] = kept
    components = np.sort(home)
    own = factors[is_chosen[components]]
    axes, bounds = _axes(s, own)
    structure = Structure(
        frozen(s.cardinalities[order], np.int32),
        frozen(bounds, np.int64),
        frozen(variable[s.scopes[axes]].astype(np.int32), np.int32),
        frozen(s.table_offsets[own], np.int64),
        frozen(s.table_strides[axes], np.int64),
        s.n_cells,
        frozen(np.full(len(own), -1, np.int32), np.int32),
        frozen(s.kind[own], np.int8),
        Names(range(len(order)), {}),
    )
    graph = FactorGraph(structure, problem.potentials.log_tables, marks_hold=True)
    vectors = tuple((v, likelihoods[u]) for v, u in enumerate(order.tolist()) if u in likelihoods)
    evidence = Evidence(np.full(len(order), -1, np.int32), vectors)
    return Kinds(graph, evidence, kind, variable)
