"""Handing a model to toulbar2, where its Python package is installed: exact decoding with a proof."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from markovfield import extras
from markovfield._validation import check_method
from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.extras import check_installed
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.branch_and_bound.costs import CostScale, cost_scale
from markovfield.inference.core._end_with_parent import command
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.incumbent import ScoreUnits
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["Toulbar2"]


# toulbar2 takes costs as doubles and multiplies some: sums stay well inside what both hold exactly.
MOST_BITS = 50
_POLL, _GRACE = 0.05, 0.3
_WORKER = Path(__file__).with_name("_toulbar2_worker.py")


def installed() -> bool:
    """Whether pytoulbar2 is there to hand a model to."""
    return extras.installed("pytoulbar2")


@dataclass(frozen=True)
class Toulbar2:
    """The best assignment with a proof, by toulbar2 (Hurley et al. 2016), in a process of its own.

    Log-potentials are handed over as integer costs: as they are where all are multiples of a decimal unit, else
    rounded down to a unit so fine that all factors together are off by less than ``tolerance`` (and not finer than
    2^-50 of the sum of the largest); `Decoding.tolerance` states what was reached, and the answer is optimal within it.

    Stopped by ``time_limit``, by the callback or by Ctrl-C, the answer is the best assignment so far with toulbar2's
    own bound; where it does not answer within 0.3 s, the best assignment that it had written, with no bound.

    Needs the extra: ``pip install "markovfield[exact]"``.

    Parameters
    ----------
    tolerance
        How far the score may be from the best, for log-potentials that have no common decimal unit; relative to the
        largest where all are below one.
    vac
        Depth to which virtual arc consistency is maintained; 1 is in preprocessing only, 0 is never.
    max_factor_cells
        The most cells of one factor.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([["A", "B"], ["B", "C"], ["C", "A"]], log_table=[[-1, 0], [0, -1]])
    >>> mf.decode(net, method=Toulbar2()).score  # doctest: +SKIP
    -1.0
    """

    tolerance: float = 1e-9
    vac: int = 0
    max_factor_cells: int = 2**20

    name: ClassVar[str] = "toulbar2"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"vac": 0, "max_factor_cells": 1}, above={"tolerance": 0})

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Decoding:
        """The best assignment, or the best so far with its gap."""
        check_installed("method 'toulbar2'", "pytoulbar2", instead="use branch_and_bound")
        work = Toulbar2Process(self, prepare(graph, evidence))
        with work:
            stop = work.wait(running)
            return work.answer(stop, running)


class Toulbar2Process:
    """toulbar2 at work on one problem in a process of its own, which can be held, let go on, and asked what it has.

    With ``score``, the score of an assignment that is known, it looks for none that is worse. Use it as a context: at
    the end the process is ended and its folder removed.
    """

    def __init__(self, method: Toulbar2, problem: Problem, score: float = -np.inf) -> None:
        self.method, self.problem = method, problem
        self.handed = _HandedOver.of(method, problem)
        self.top, self.known = self.handed.top(score), score > -np.inf
        self.process: subprocess.Popen[bytes] | None = None
        self.holder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Toulbar2Process:
        self.holder = tempfile.TemporaryDirectory()
        self.folder = Path(self.holder.name)
        if self.handed.scopes:
            self.handed.save(self.folder / "problem.npz", self.method.vac, self.top)
            with open(self.folder / "messages", "wb") as messages:
                # A session of its own: Ctrl-C is for this process to handle.
                self.process = subprocess.Popen(
                    command(_WORKER, self.folder),
                    stdout=subprocess.DEVNULL,
                    stderr=messages,
                    start_new_session=True,
                )
            # Held, it would outlast a program that ends without having ended it.
            self.guard = weakref.finalize(self, self.process.kill)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self.holder is not None:
            self.holder.cleanup()

    @property
    def done(self) -> bool:
        """Whether it has ended by itself."""
        return self.process is None or self.process.poll() is not None

    def hold(self) -> None:
        """Let it rest, where the system can."""
        if not self.done and hasattr(signal, "SIGSTOP"):
            assert self.process is not None
            self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        if not self.done and hasattr(signal, "SIGCONT"):
            assert self.process is not None
            self.process.send_signal(signal.SIGCONT)

    def wait(self, running: Running) -> BaseException | None:
        """Let it work to its end, or to the first wish to stop, which is handed back."""
        try:
            while not self.done:
                running.check()
                self.rest(_POLL)
        except STOPS as stop:
            self.ask(_GRACE)
            return stop
        return None

    def rest(self, seconds: float) -> None:
        """Sleep until it has ended, or that long."""
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)

    def ask(self, seconds: float) -> None:
        """Ask it to stop and to say what it has, and wait that long for it."""
        if not self.done:
            assert self.process is not None
            # toulbar2 takes its own timer's signal as the wish to stop. Before it has set that timer, the signal ends
            # it.
            self.go_on()
            self.process.send_signal(signal.SIGVTALRM)
            self.rest(seconds)

    def so_far(self, running: Running) -> Decoding | None:
        """The best assignment that it has written, with no bound, while it is at work."""
        if self.process is None or _solution(self.folder, self.problem.structure.n_variables) is None:
            return None
        return self.answer(TimeoutError(), running)

    def answer(self, stop: BaseException | None, running: Running) -> Decoding:
        """What it found, as a decoding; without ``stop`` it has worked to its end."""
        return self.handed.answer(self.folder, stop, running, self.method.name, self.known)


@dataclass(frozen=True, eq=False)
class _HandedOver:
    """A prepared problem in integer costs, as the other process reads it."""

    problem: Problem
    scale: CostScale
    scopes: list[IntArray]
    tables: list[IntArray]
    constant: float
    shift: int
    rounding: float

    @classmethod
    def of(cls, method: Toulbar2, problem: Problem) -> _HandedOver:
        s, pool = problem.structure, problem.potentials.log_tables
        arity = np.diff(s.scope_offsets)
        constants = pool[s.table_offsets[arity == 0]]
        if np.isneginf(constants).any():
            raise problem.impossible()
        factors = int((arity > 0).sum() + problem.active.sum())
        exact = cost_scale(np.concatenate([pool, problem.likelihood]), factors, most_bits=MOST_BITS)
        scale = _coarser(exact, method.tolerance * ScoreUnits.of(problem).unit, factors)
        scopes: list[IntArray] = []
        tables: list[IntArray] = []
        for f in np.flatnonzero(arity > 0).tolist():
            scope = s.scope(f).astype(np.int64)
            cells = float(np.prod(s.cardinalities[scope].astype(float)))
            if cells > method.max_factor_cells:
                raise ModelError(
                    f"a factor of {len(scope)} variables has {cells:.3g} cells, and toulbar2 is handed at most "
                    f"{method.max_factor_cells}: raise max_factor_cells"
                )
            index = np.full((1,), s.table_offsets[f])
            for v, stride in zip(scope.tolist(), s.strides(f).tolist(), strict=True):
                index = (index[:, None] + stride * np.arange(s.cardinalities[v])[None, :]).ravel()
            scopes.append(scope)
            tables.append(scale.costs(pool[index]) // scale.parts)
        for v in np.flatnonzero(problem.active).tolist():
            scopes.append(np.array([v]))
            own = problem.likelihood[s.value_offsets[v] : s.value_offsets[v + 1]]
            tables.append(scale.costs(own) // scale.parts)
        hard = scale.costs(np.array([-np.inf]))[0] // scale.parts
        shift = 0
        for k, table in enumerate(tables):
            if (table >= hard).all():
                raise problem.impossible()
            least = int(table[table < hard].min())
            shift += least
            tables[k] = np.where(table >= hard, -1, table - least)
        rounded = 0.0 if scale.exact else factors * scale.unit
        return cls(problem, scale, scopes, tables, float(constants.sum()), shift, rounded)

    def top(self, score: float) -> int:
        """A cost that no assignment of that score, nor any better one, reaches."""
        top = 1 + sum(int(table.max()) for table in self.tables)
        if score == -np.inf:
            return top
        # Costs are rounded down, so the sum of an assignment's is at most this, but for the rounding of these sums.
        ulps = 4.0 * np.finfo(float).eps * (len(self.tables) + 1) * (abs(score) + abs(self.constant))
        cost = (self.constant - score + ulps) / self.scale.unit - self.shift
        return min(top, int(np.ceil(cost)) + 1) if cost >= 0 else top

    def save(self, path: Path, vac: int, top: int) -> None:
        np.savez(
            path,
            cards=self.problem.structure.cardinalities,
            arity=np.array([len(scope) for scope in self.scopes], np.int64),
            scopes=np.concatenate([np.zeros(0, np.int64), *self.scopes]),
            costs=np.concatenate([np.zeros(0, np.int64), *self.tables]),
            settings=np.array([top, vac], np.int64),
        )

    def answer(
        self,
        folder: Path,
        stop: BaseException | None,
        running: Running,
        name: str,
        known: bool = False,
    ) -> Decoding:
        """What the other process found, as a decoding; ``known`` says that it was told of an assignment's score."""
        result = _result(folder)
        if not self.scopes:
            nothing = [0] * self.problem.structure.n_variables
            result = {"status": "found", "states": nothing, "bound": 0, "cost": 0, "nodes": 0}
        if stop is None and result is None:
            said = (folder / "messages").read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"toulbar2 ended without an answer: {said[-1] if said else 'it said nothing'}")
        if result is not None and result["status"] == "none":
            if known:
                raise RuntimeError("toulbar2 did not find what is known to be there")
            raise self.problem.impossible()
        states = None if result is None else result["states"]
        if states is None:
            states = _solution(folder, self.problem.structure.n_variables)
        if states is None:
            feasible = Feasible.of(self.problem)
            found = feasible.assignment(np.zeros(int(self.problem.structure.value_offsets[-1])))
            if found is None:
                raise stop or TimeoutError(f"no answer within the time limit of {running.time_limit} s")
            states = feasible.climbed(found)
        reduced = self.problem.states(np.asarray(states, np.int64))
        score = float(self.problem.graph.score(reduced))
        score += self.problem.evidence.log_likelihood(reduced)
        gap = tolerance = 0.0
        ulps = 4.0 * np.finfo(float).eps * (len(self.tables) + 1)
        if result is None:
            gap = np.inf
        else:
            # Where it ended by itself its best is the best there is; the bound that it states then may be an old one.
            cost = result["bound"] if stop is not None else max(result["bound"], result["cost"])
            bound = self.constant - (cost + self.shift) * self.scale.unit
            slack = self.rounding + ulps * (abs(score) + abs(bound) + abs(self.constant))
            tolerance = 0.0 if self.scale.exact and self.scale.unit == 1.0 else 2.0 * slack
            gap = max(0.0, bound - score + (slack if tolerance else 0.0))
        return decoding_of_states(
            self.problem.graph,
            [(reduced, score)],
            gap=float(gap),
            tolerance=float(tolerance),
            guarantee="exact" if gap <= tolerance else "lower",
            method=name,
            converged=gap <= tolerance,
            iterations=1 if result is None else int(result["nodes"]),
            seconds=running.seconds,
        )


def _coarser(scale: CostScale, tolerance: float, factors: int) -> CostScale:
    """The same scale with no parts; where costs are rounded anyway, in the coarsest unit that the tolerance allows."""
    if scale.exact:
        return CostScale(scale.unit, 1, True)
    # A unit of the scale fits sums into 2^MOST_BITS of them.
    wanted = tolerance / (4.0 * max(factors, 1))
    return CostScale(max(scale.unit, float(2.0 ** np.floor(np.log2(wanted)))), 1, False)


def _result(folder: Path) -> dict[str, Any] | None:
    path = folder / "result.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _solution(folder: Path, n: int) -> list[int] | None:
    """The best assignment that toulbar2 had written when it was ended."""
    path = folder / "solution"
    if not path.exists():
        return None
    try:
        states = [int(word) for word in path.read_text().splitlines()[-1].split()]
    except (ValueError, IndexError):
        return None
    return states if len(states) == n else None
