"""Counting belief propagation: messages between colours of variables and factors (Kersting et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.convergence import DAMPING, warn_not_converged
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.lifted.colours import Colours, refined

__all__ = ["LiftedBeliefPropagation"]

# Factors of more variables are written in small tables first.
MOST_AXES = 12


@dataclass(frozen=True)
class LiftedBeliefPropagation:
    """Sum-product messages between colours (counting belief propagation; Kersting, Ahmadi and Natarajan 2009).

    Variables that messages cannot tell apart, by their factors, those of their neighbours and so on, have one colour
    (colour refinement); so have factors. A message is sent once for each pair of colours and counts as often as it
    stands for. That gives the messages of `BeliefPropagation` ``("synchronous")`` on the whole graph, at a cost that
    does not grow with the number of individuals that are alike.

    Parameters
    ----------
    damping
        Share of the old message that is kept, from 0 to below 1.
    max_iterations
        Most sweeps.
    tolerance
        Converged is when no log of a message, undamped, would change by more than this.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(50), 2))
    >>> _ = net.add_factors([(i, (i + 1) % 50) for i in range(50)], [[3.0, 1.0], [1.0, 2.0]])
    >>> answer = mf.marginals(net, method=mf.methods.LiftedBeliefPropagation())
    >>> answer[17].round(4).tolist(), answer.n_colours
    ([0.7236, 0.2764], (1, 1))
    """

    damping: float = 0.0
    max_iterations: int = 1000
    tolerance: float = 1e-8

    name: ClassVar[str] = "lifted_belief_propagation"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        limits = {"damping": 0, "max_iterations": 1}
        check_method(self, least=limits, above={"tolerance": 0}, below={"damping": 1})

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """The Bethe value."""
        quotient = self._run(graph, evidence, running)
        return LogPartition(log_partition=quotient.bethe(), guarantee="approximate", **self._about(quotient, running))

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LiftedMarginals:
        """Marginals of all variables."""
        quotient = self._run(graph, evidence, running)
        return LiftedMarginals(
            graph=graph,
            values=quotient.values(graph.n_variables),
            log_partition=quotient.bethe(),
            guarantee="approximate",
            n_colours=(quotient.colours.n_variables, quotient.colours.n_factors),
            **self._about(quotient, running),
        )

    def _run(self, graph: FactorGraph, evidence: Evidence, running: Running) -> _Quotient:
        s = graph.structure
        if s.has_latent or int(np.diff(s.scope_offsets).max(initial=0)) > MOST_AXES:
            graph = graph.to_tables()
            more = graph.n_variables - len(evidence.states)
            states = np.concatenate([evidence.states, np.full(more, -1, np.int32)])
            evidence = Evidence(states, evidence.likelihoods)
        quotient = _Quotient(graph, evidence, refined(graph.structure, evidence))
        while quotient.residual > self.tolerance * (1.0 - self.damping) and quotient.iterations < self.max_iterations:
            quotient.sweep(self.damping)
            running.check()
        quotient.converged = quotient.residual <= self.tolerance * (1.0 - self.damping)
        if not quotient.possible:
            raise evidence.impossible(s)
        if not quotient.converged:
            warn_not_converged(self.name, quotient.iterations, quotient.residual, self.tolerance, DAMPING)
        return quotient

    def _about(self, quotient: _Quotient, running: Running) -> dict[str, Any]:
        return {
            "method": self.name,
            "converged": quotient.converged,
            "iterations": quotient.iterations,
            "residuals": tuple(quotient.residuals),
            "seconds": running.seconds,
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LiftedMarginals(Marginals):
    """Marginals of `LiftedBeliefPropagation`.

    Attributes
    ----------
    n_colours
        How many colours the variables have, and the factors.
    """

    n_colours: tuple[int, int] = (0, 0)


@dataclass
class _Shape:
    """Colours of factors whose tables have the same shape.

    ``tables[i]`` and, for each axis, ``edges[axis][i]`` (the number of the edge between colours) and ``to[axis][i]``
    (the colour of the variable).
    """

    cards: tuple[int, ...]
    members: IntArray
    tables: FloatArray
    edges: IntArray
    to: IntArray


class _Quotient:
    """The graph of colours: one factor and one variable of each, and how often they stand for each other."""

    def __init__(self, graph: FactorGraph, evidence: Evidence, colours: Colours) -> None:
        self.graph, self.colours = graph, colours
        s = graph.structure
        n, m = colours.n_variables, colours.n_factors
        representative = np.zeros(n, np.int64)
        representative[colours.variables[::-1]] = np.arange(s.n_variables)[::-1]
        chosen = np.zeros(m, np.int64)
        chosen[colours.factors[::-1]] = np.arange(s.n_factors)[::-1]
        self.size = np.bincount(colours.variables, minlength=n).astype(float)
        self.factor_size = np.bincount(colours.factors, minlength=m).astype(float)
        self.cards = s.cardinalities[representative].astype(np.int64)
        self.width = int(self.cards.max(initial=1))
        self.unary = np.full((n, self.width), -np.inf)
        for colour, v in enumerate(representative.tolist()):
            self.unary[colour, : self.cards[colour]] = 0.0
            if evidence.states[v] >= 0:
                self.unary[colour] = -np.inf
                self.unary[colour, evidence.states[v]] = 0.0
        vectors = dict[int, FloatArray]()
        for v, vector in evidence.likelihoods:
            vectors[v] = vectors.get(v, 0.0) + vector
        for colour, v in enumerate(representative.tolist()):
            if v in vectors:
                self.unary[colour, : self.cards[colour]] += vectors[v]
        self.shapes: list[_Shape] = []
        edge, to = 0, []
        by_shape: dict[tuple[int, ...], list[tuple[int, FloatArray, list[int], list[int]]]] = {}
        self.constant = 0.0
        for colour, f in enumerate(chosen.tolist()):
            scope = s.scope(f)
            table = graph.table(f)
            if not len(scope):
                self.constant += float(table) * self.factor_size[colour]
                continue
            mine = colours.variables[scope].tolist()
            numbers = list(range(edge, edge + len(scope)))
            edge += len(scope)
            to += mine
            by_shape.setdefault(table.shape, []).append((colour, table, numbers, mine))
        for cards, found in by_shape.items():
            members, tables, places, ends = zip(*found, strict=True)
            self.shapes.append(_Shape(cards, np.array(members), np.array(tables), np.array(places), np.array(ends)))
        self.to = np.array(to, np.int64)
        owner = np.concatenate(
            [np.repeat(np.zeros(0, np.int64), 0), *(np.repeat(x.members, len(x.cards)) for x in self.shapes)]
        )
        place = np.concatenate([np.zeros(0, np.int64), *(x.edges.ravel() for x in self.shapes)]).astype(np.int64)
        of_factor = np.zeros(edge, np.int64)
        of_factor[place] = owner
        # Each factor of the colour meets one variable by this axis; they are shared among the colour's variables.
        self.count = self.factor_size[of_factor] / self.size[self.to] if edge else np.zeros(0)
        self.incoming = np.zeros((edge, self.width))
        self.residuals: list[float] = []
        self.residual, self.iterations, self.converged = np.inf if edge else 0.0, 0, False

    @property
    def possible(self) -> bool:
        """Whether no variable is left without a state."""
        logs = np.array([_log_sum(row[None, :])[0] for row in self.belief_logs()]) if len(self.size) else np.zeros(0)
        return bool(np.isfinite(logs).all() and self.constant > -np.inf)

    def belief_logs(self) -> FloatArray:
        """Logs of beliefs, not normalised: ``[colours, states]``, -inf beyond a variable's states."""
        total, zeros = self._gathered()
        return np.where(zeros > 0, -np.inf, self.unary + total)

    def _gathered(self) -> tuple[FloatArray, FloatArray]:
        """What factors say of each colour: finite logs, and how many said that a state is impossible."""
        finite = np.isfinite(self.incoming)
        total, zeros = np.zeros_like(self.unary), np.zeros_like(self.unary)
        np.add.at(total, self.to, np.where(finite, self.incoming, 0.0) * self.count[:, None])
        np.add.at(zeros, self.to, ~finite * self.count[:, None])
        return total, zeros

    def outgoing(self) -> FloatArray:
        """Messages from variables to factors: what all others say."""
        total, zeros = self._gathered()
        finite = np.isfinite(self.incoming)
        rest = total[self.to] - np.where(finite, self.incoming, 0.0)
        none = zeros[self.to] - ~finite
        return _normalised(np.where(none > 0.5, -np.inf, self.unary[self.to] + rest))

    def sweep(self, damping: float) -> None:
        """All factors send to all variables."""
        out, new = self.outgoing(), np.full_like(self.incoming, 0.0)
        for shape in self.shapes:
            for axis, card in enumerate(shape.cards):
                logs = _without(shape, out, axis)
                new[shape.edges[:, axis], :card] = _normalised(logs)
        with np.errstate(invalid="ignore"):
            moved = np.abs(new - self.incoming)
        moved[np.isneginf(new) & np.isneginf(self.incoming)] = 0.0
        self.residual = float(moved.max(initial=0.0))
        if damping:
            old = np.where(np.isfinite(self.incoming), self.incoming, new)
            new = np.where(np.isfinite(new), (1.0 - damping) * new + damping * old, new)
        self.incoming = new
        self.residuals.append(self.residual)
        self.iterations += 1

    def values(self, n_variables: int) -> FloatArray:
        """Probabilities of all states of the first variables."""
        logs = self.belief_logs()
        p = np.exp(_normalised(logs)) if len(logs) else logs
        of = self.colours.variables[:n_variables]
        cards = self.graph.structure.cardinalities[:n_variables]
        inside = np.arange(self.width)[None, :] < cards[:, None]
        return np.asarray(p[of][inside], np.float64)

    def bethe(self) -> float:
        """The Bethe approximation of log Z: energies and entropies of colours, as often as they stand for."""
        out, logs = self.outgoing(), self.belief_logs()
        value = self.constant
        degree = np.bincount(self.to, self.count, len(self.size))
        p = np.exp(_normalised(logs)) if len(logs) else logs
        single = -_times_log(p, p).sum(axis=-1) if len(logs) else np.zeros(0)
        given = np.where(p > 0, p * np.where(np.isfinite(self.unary), self.unary, 0.0), 0.0).sum(axis=-1)
        value += float(self.size @ (given + (1.0 - degree) * single)) if len(logs) else 0.0
        for shape in self.shapes:
            logs = shape.tables + _spread(shape, out)
            k = len(shape.members)
            flat = logs.reshape(k, -1)
            joint = np.exp(flat - _log_sum(flat)[:, None])
            tables = shape.tables.reshape(k, -1)
            energy = np.where(joint > 0, joint * np.where(np.isfinite(tables), tables, 0.0), 0.0).sum(axis=1)
            value += float(self.factor_size[shape.members] @ (energy - _times_log(joint, joint).sum(axis=1)))
        return value


def _spread(shape: _Shape, out: FloatArray, skip: int = -1) -> FloatArray:
    """Sum of messages to a table, laid along its axes, but for one."""
    k, n_axes = len(shape.members), len(shape.cards)
    total = np.zeros((k, *([1] * n_axes)))
    for axis, card in enumerate(shape.cards):
        if axis != skip:
            along = [k, *([1] * n_axes)]
            along[axis + 1] = card
            total = total + out[shape.edges[:, axis], :card].reshape(along)
    return total


def _without(shape: _Shape, out: FloatArray, axis: int) -> FloatArray:
    """Logs of what factors say of the variable on one axis, given the messages on the others."""
    logs = np.moveaxis(shape.tables + _spread(shape, out, axis), axis + 1, 1)
    return _log_sum(logs.reshape(len(logs), shape.cards[axis], -1))


def _log_sum(logs: FloatArray) -> FloatArray:
    """log of the sum of exponentials over the last axis; -inf where all are."""
    top = logs.max(axis=-1, initial=-np.inf)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1)), np.float64)


def _normalised(logs: FloatArray) -> FloatArray:
    """Logs that sum to one over the last axis; as they are where all are -inf."""
    total = _log_sum(logs)
    return np.asarray(logs - np.where(np.isfinite(total), total, 0.0)[..., None], np.float64)


def _times_log(p: FloatArray, q: FloatArray) -> FloatArray:
    """p log q, zero where p is."""
    return np.asarray(p * np.log(np.where(p > 0, q, 1.0)), np.float64)
