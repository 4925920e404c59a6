"""Loopy belief propagation: messages until they converge, on the user's graph as it is.

The residual schedule: of all messages, the one that would move most goes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.edges_kernel import factor_sizes
from markovfield.inference.belief_propagation.layout import loopy_graph, numbers, unary_of
from markovfield.inference.belief_propagation.residual_kernel import residual_steps
from markovfield.inference.belief_propagation.sweeps_kernel import (
    factors_to_variables,
    sweep_variables,
    variables_to_factors,
)
from markovfield.inference.belief_propagation.tables_kernel import CONTRADICTION, LOW
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running

__all__ = ["LoopyMessages", "LoopyState", "Settings", "run_residual", "start_of"]


# Zeros of another run's messages may not be zeros under other evidence.
LEAST_START = 1e-30
# Cells of tables of a block of components, half a megabyte; and sweeps of it between two looks at the clock.
BLOCK, ROUND = 2**16, 8


@dataclass(frozen=True)
class Settings:
    """How to send messages, as `BeliefPropagation` documents it."""

    schedule: str
    damping: float
    max_iterations: int
    tolerance: float


@dataclass(frozen=True, eq=False)
class LoopyState:
    """Messages for a warm start of another run."""

    structure: Structure
    maximise: bool
    factor_to_variable: FloatArray
    in_logs: BoolArray


@remembered
def sweep_blocks(structure: Structure) -> tuple[IntArray, list[tuple[int, int]]]:
    """Variables by component, and where that order is cut: whole components with about `BLOCK` cells of tables."""
    s, g = structure, loopy_graph(structure)
    order = np.argsort(g.component, kind="stable").astype(np.int64)
    if not s.is_plain or g.n_components < 2:
        return order, [(0, len(order))]
    cells = factor_sizes(s.cardinalities, s.scope_offsets, s.scopes)
    some = np.diff(s.scope_offsets) > 0
    component = g.component[s.scopes[s.scope_offsets[:-1][some]]]
    work = np.cumsum(np.bincount(component, cells[some], g.n_components))
    ends = np.cumsum(np.bincount(g.component, minlength=g.n_components))
    last = np.unique(np.searchsorted(work, np.arange(BLOCK, work[-1] + BLOCK, BLOCK)).clip(max=g.n_components - 1))
    borders = [0, *ends[last].tolist()]
    borders[-1] = len(order)
    return order, [(a, b) for a, b in pairwise(borders) if b > a]


class LoopyMessages:
    """The messages of one graph under some evidence, in sums or in maxima.

    Attributes
    ----------
    variable_to_factor, factor_to_variable
        Flat over the edges of the layout. In components of the graph with ``in_logs`` they are logs, else they sum to
        one.
    converged, iterations
        By connected component.
    residuals
        The largest change of a message in each iteration.
    """

    def __init__(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        settings: Settings,
        *,
        maximise: bool = False,
        start: LoopyState | None = None,
    ) -> None:
        self.graph, self.evidence, self.settings = graph, evidence, settings
        self.maximise = np.bool_(maximise)
        self.known = numbers(graph)
        self.g = loopy_graph(graph.structure)
        self.unary = unary_of(graph, evidence)
        self.in_logs = self.unary.log_components(self.g, self.known)
        n_values = int(self.g.layout.message_offsets[-1])
        self.factor_to_variable = np.empty(n_values)
        self.variable_to_factor = np.empty(n_values)
        self.converged = np.zeros(self.g.n_components, np.bool_)
        self.iterations = np.zeros(self.g.n_components, np.int64)
        self.residuals: list[float] = []
        self._begin(start)

    def _begin(self, start: LoopyState | None) -> None:
        """Uniform messages, or those of an earlier run."""
        g, m = self.g, self.factor_to_variable
        if start is not None and start.maximise == bool(self.maximise):
            np.copyto(m, start.factor_to_variable)
            if start.in_logs.any():
                logs = g.by_component(start.in_logs)
                m[logs] = np.exp(m[logs])
            np.maximum(m, LEAST_START, out=m)
        else:
            counts = np.diff(g.layout.message_offsets)
            if len(counts) and (counts == counts[0]).all():
                m[:] = 1.0 / counts[0]
            else:
                m[:] = np.repeat(1.0 / counts, counts)
        if self.in_logs.any():
            logs = g.by_component(self.in_logs)
            m[logs] = np.log(m[logs])

    def _to_logs(self, components: BoolArray) -> None:
        """Run some components of the graph in log space from now on, from the start."""
        self.in_logs |= components
        self.factor_to_variable[self.g.by_component(components)] = 0.0
        self.iterations[components] = 0

    def _flagged(self, flags: npt.NDArray[np.uint8]) -> bool:
        """After a pass: move what got too small to log space (then true); raise where nothing is possible."""
        found = np.bitwise_or.reduce(flags, axis=0) if flags.ndim > 1 else flags
        if not found.any():
            return False
        low = ((found & LOW) > 0) & ~self.in_logs
        if ((found & CONTRADICTION) > 0)[~low].any():
            raise self.evidence.impossible(self.graph.structure)
        if low.any():
            self._to_logs(low)
        return bool(low.any())

    def _masks(self, active: BoolArray) -> list[tuple[bool, BoolArray]]:
        """The active components in linear space and those in log space, where there are any."""
        return [(logs, mask) for logs in (False, True) if (mask := active & (self.in_logs == logs)).any()]

    # ---- passes --------------------------------------------------------------------------------------------

    def send_to_factors(self, active: BoolArray, running: Running) -> bool:
        """All messages from variables; whether a component had to change to log space."""
        tasks: list[Callable[[], int]] = []
        flags = np.zeros((len(self.g.variable_tasks), self.g.n_components), np.uint8)
        messages = (self.variable_to_factor, self.factor_to_variable, self.g.component)
        for logs, mask in self._masks(active):
            for i, piece in enumerate(self.g.variable_tasks):
                if logs:
                    from markovfield.inference.belief_propagation.logs_kernel import log_variables_to_factors

                    arguments: tuple[Any, ...] = (self.unary.log, *messages, mask, flags[i])
                    tasks.append(partial(_run, log_variables_to_factors, self.g.layout, *piece, *arguments))
                else:
                    arguments = (self.unary.linear, *messages, mask, self.known.floor, flags[i])
                    tasks.append(partial(_run, variables_to_factors, self.g.layout, *piece, *arguments))
        running.side_by_side(tasks)
        return self._flagged(flags)

    def send_to_variables(self, active: BoolArray, running: Running, residuals: FloatArray) -> bool:
        """All messages from factors, and how far they moved by component; whether one had to change to log space."""
        g, damping = self.g, self.settings.damping
        rows = len(g.table_tasks) + len(g.structured_tasks)
        flags, moved = np.zeros((rows, g.n_components), np.uint8), np.zeros((rows, g.n_components))
        messages = (self.variable_to_factor, self.factor_to_variable, g.component)
        tasks: list[Callable[[], int]] = []
        for logs, mask in self._masks(active):
            for i, piece in enumerate(g.table_tasks):
                if logs:
                    from markovfield.inference.belief_propagation.logs_kernel import log_factors_to_variables

                    tasks.append(
                        partial(
                            _run, log_factors_to_variables, g.layout, *piece, self.graph.log_tables, *messages, mask,
                            damping, self.maximise, moved[i], flags[i],
                        )
                    )  # fmt: skip
                else:
                    tasks.append(
                        partial(
                            _run, factors_to_variables, g.layout, *piece, self.known.linear, *messages, mask, damping,
                            self.maximise, self.known.floor, moved[i], flags[i],
                        )
                    )  # fmt: skip
        for i, (a, b) in enumerate(g.structured_tasks, len(g.table_tasks)):
            from markovfield.inference.belief_propagation.structured_kernel import structured_to_variables

            tasks.append(
                partial(
                    _run, structured_to_variables, g.layout, g.n_tables + a, g.n_tables + b, g.kind,
                    self.graph.log_tables, *messages, active, self.in_logs, damping, self.maximise, self.known.floor,
                    moved[i], flags[i],
                )
            )  # fmt: skip
        running.side_by_side(tasks)
        if rows:
            np.max(moved, axis=0, out=residuals)
        return self._flagged(flags) if rows else False

    # ---- schedules -----------------------------------------------------------------------------------------

    def run(self, running: Running) -> None:
        """Send messages until they converge, ``max_iterations`` are done, or time is up."""
        everything = np.ones(self.g.n_components, np.bool_)
        try:
            while self.send_to_factors(everything, running):
                pass
            if self.settings.schedule == "residual":
                from markovfield.inference.belief_propagation.loopy import run_residual

                run_residual(self, running)
            elif not self._on_lattice(running):
                self._iterate(running)
        except (TimeoutError, StoppedError):
            # What there is, is an answer, though not a converged one.
            pass
        except KeyboardInterrupt:
            # Decoding answers with the best so far; sums may be part of a fit, which must hear of it.
            if not self.maximise:
                raise
        quiet = Running(n_jobs=running.n_jobs)
        while self.send_to_factors(everything, quiet):
            self.converged &= ~self.in_logs

    def _iterate(self, running: Running) -> None:
        sequential = self.settings.schedule == "sequential"
        if sequential and len(sweep_blocks(self.graph.structure)[1]) > 1:
            self._iterate_blocks(running)
            return
        active = np.ones(self.g.n_components, np.bool_)
        for iteration in range(self.settings.max_iterations):
            residuals = np.zeros(self.g.n_components)
            if sequential:
                again = self._sweep(active, running, residuals, bool(iteration % 2))
            else:
                again = iteration > 0 and self.send_to_factors(active, running)
                again = again or self.send_to_variables(active, running, residuals)
            if again:
                while self.send_to_factors(active, running):
                    pass
                self.residuals.append(np.inf)
                continue
            self.iterations[active] += 1
            self.residuals.append(float(residuals[active].max(initial=0.0)))
            converged = active & (residuals <= self.settings.tolerance)
            self.converged |= converged
            active &= ~converged
            if not active.any():
                return

    def _iterate_blocks(self, running: Running) -> None:
        """The same sweeps of a union of many components, some of them at a time until they converge, on all threads.

        Components do not hear of each other, so that each sees the sweeps that it would see alone; but the messages of
        a block stay in the cache from one sweep to the next.
        """
        order, cuts = sweep_blocks(self.graph.structure)
        g, most = self.g, self.settings.max_iterations
        active, residuals = np.ones(g.n_components, np.bool_), np.zeros(g.n_components)
        flags = np.zeros(g.n_components, np.uint8)
        blocks = [(both := (order[a:b], order[a:b][::-1].copy()), np.unique(g.component[both[0]])) for a, b in cuts]

        def settle(orders: tuple[Any, Any], own: Any, first: int, last: int) -> list[float]:
            moved: list[float] = []
            for iteration in range(first, last):
                mine = own[active[own]]
                if not len(mine):
                    break
                residuals[mine] = 0.0
                self._sweep_some(orders[iteration % 2], active, residuals, flags)
                if flags[mine].any():
                    break
                self.iterations[mine] += 1
                moved.append(float(residuals[mine].max()))
                done = mine[residuals[mine] <= self.settings.tolerance]
                self.converged[done] = True
                active[done] = False
            return moved

        for first in range(0, most, ROUND):
            found: list[list[float]] = [[] for _ in blocks]

            def task(i: int, first: int = first, found: list[list[float]] = found) -> int:
                found[i] = settle(*blocks[i], first, min(first + ROUND, most))
                return 0

            running.check()
            waiting = [i for i, (_, own) in enumerate(blocks) if active[own].any()]
            running.side_by_side([partial(task, i) for i in waiting])
            for k in range(max(map(len, found), default=0)):
                self.residuals.append(max(moved[k] for moved in found if len(moved) > k))
            if self._flagged(flags):
                while self.send_to_factors(active, running):
                    pass
                self.residuals.append(np.inf)
            flags[:] = 0
            if not active.any():
                return

    def _sweep_some(self, order: Any, active: BoolArray, residuals: FloatArray, flags: npt.NDArray[np.uint8]) -> None:
        """Some variables, one after the other."""
        g = self.g
        messages = (self.variable_to_factor, self.factor_to_variable, g.component)
        logs = self.in_logs.any()
        linear = active & ~self.in_logs if logs else active
        sweep_variables(
            g.layout, order, 0, len(order), self.unary.linear, self.known.linear, *messages, linear,
            self.settings.damping, self.maximise, self.known.floor, residuals, flags,
        )  # fmt: skip
        if logs:
            from markovfield.inference.belief_propagation.logs_kernel import log_sweep_variables

            log_sweep_variables(
                g.layout, order, 0, len(order), self.unary.log, self.graph.log_tables, *messages,
                active & self.in_logs, self.settings.damping, self.maximise, residuals, flags,
            )  # fmt: skip

    def _on_lattice(self, running: Running) -> bool:
        """Messages in planes, where the graph is a lattice and its numbers allow that; whether they did."""
        if self.in_logs.any() or self.g.n_components > 1:
            return False
        from markovfield.inference.belief_propagation.lattice import Planes, find_lattice, fits

        lattice = find_lattice(self.graph.structure)
        if lattice is None or not fits(self.known, self.unary):
            return False
        planes = Planes(lattice, self.g, self.known, self.unary)
        planes.read(self.factor_to_variable)
        try:
            for i in range(self.settings.max_iterations):
                if self.settings.schedule == "sequential":
                    moved = planes.sweep_rows(bool(i % 2), self.settings.damping, self.maximise, running)
                else:
                    moved = planes.sweep(self.settings.damping, self.maximise, running)
                self.residuals.append(moved)
                self.iterations += 1
                if self.residuals[-1] <= self.settings.tolerance:
                    self.converged[:] = True
                    break
        finally:
            planes.write(self.factor_to_variable)
        return True

    def _sweep(self, active: BoolArray, running: Running, residuals: FloatArray, backwards: bool) -> bool:
        """Variable after variable, forwards or backwards."""
        flags = np.zeros(self.g.n_components, np.uint8)
        order = np.arange(self.graph.n_variables)
        for first, last in reversed(self.g.variable_tasks) if backwards else self.g.variable_tasks:
            running.check()
            piece = order[first:last]
            self._sweep_some(piece[::-1].copy() if backwards else piece, active, residuals, flags)
        return self._flagged(flags)

    def state(self) -> LoopyState:
        """What a warm start of another run needs."""
        return LoopyState(self.graph.structure, bool(self.maximise), self.factor_to_variable, self.in_logs)


def _run(task: Callable[..., Any], *arguments: Any) -> int:
    """Run a kernel as `Running` wants its tasks."""
    task(*arguments)
    return 0


def start_of(init: Any, graph: FactorGraph) -> LoopyState | None:
    """The messages of an earlier answer; None where that was exact and has none for a warm start."""
    if init is None:
        return None
    if not hasattr(init, "_state") or getattr(init, "method", "") != "belief_propagation":
        raise ModelError(
            f"init of belief_propagation must be Marginals it answered before, got {type(init).__name__}"
            f"{' of ' + init.method if hasattr(init, 'method') else ''}"
        )
    state: LoopyState | None = init._state
    if state is None:
        return None
    structures = (graph.structure, graph.to_tables().structure)
    if not any(state.structure is s for s in structures):
        raise ModelError("init of belief_propagation is an answer about another structure")
    return state


# Messages in one kernel call, between which the time limit is looked at.
STEPS = 2**16


def run_residual(messages: LoopyMessages, running: Running) -> None:
    """Send the message that moves most until none moves by more than the tolerance; fills convergence by component.

    An iteration is as many messages as there are edges. Components in linear and in log space have a queue each.
    """
    g = messages.g
    n_edges = len(g.layout.edge_variable)
    pending = np.empty(len(messages.factor_to_variable))
    keys = np.zeros(n_edges)
    component = g.edge_component
    everything = np.ones(g.n_components, np.bool_)
    for logs in (False, True):
        budget = messages.settings.max_iterations * n_edges
        heap, place = np.arange(n_edges), np.arange(n_edges)
        sent, fresh = 0, True
        while True:
            mask = messages.in_logs == logs
            if not mask.any() or not n_edges:
                messages.converged |= mask
                break
            running.check()
            flags = np.zeros(g.n_components, np.uint8)
            unary, tables = (
                (messages.unary.log, messages.graph.log_tables)
                if logs
                else (messages.unary.linear, messages.known.linear)
            )
            steps = 0 if fresh else min(STEPS, budget - sent, n_edges - sent % n_edges)
            done = residual_steps(
                g.layout, steps, messages.settings.tolerance, unary, tables, messages.variable_to_factor,
                messages.factor_to_variable, pending, keys, heap, place, g.component, mask, messages.settings.damping,
                messages.maximise, messages.known.floor, np.bool_(logs), flags,
            )  # fmt: skip
            if messages._flagged(flags):
                while messages.send_to_factors(everything, running):
                    pass
                fresh = True
                continue
            if fresh:
                heap[:] = np.argsort(-keys, kind="stable")
                place[heap] = np.arange(n_edges)
                fresh = False
                continue
            sent += done
            ended = done < steps or sent >= budget
            if ended or sent % n_edges == 0:
                messages.residuals.append(float(keys[heap[0]]))
            if ended:
                break
        worst = np.zeros(g.n_components)
        np.maximum.at(worst, component, keys)
        chosen = messages.in_logs == logs
        messages.converged[chosen] = worst[chosen] <= messages.settings.tolerance
        messages.iterations[chosen] = -(-sent // max(n_edges, 1))
