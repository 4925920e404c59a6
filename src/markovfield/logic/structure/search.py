"""Beam search of clauses: one is added after the other, each the best that a beam of growing clauses finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from markovfield.inference.core.running import Running
from markovfield.logic.language.program import Predicate
from markovfield.logic.structure.clauses import Conjunction, Part, canonical, extensions, hangs_together, singles
from markovfield.logic.structure.counts import Changes, Counts, TooManyGroundingsError
from markovfield.logic.structure.objective import Cases, Fit, maximise

__all__ = ["Limits", "Search", "Tried"]

# Gains that differ by less, relatively, are of clauses that say the same.
ALIKE = 1e-6
# Less than this, in natural-log units, is no reason to prefer one clause to a plainer one.
AS_GOOD = 0.05


@dataclass(frozen=True)
class Limits:
    """How far the search goes; see `ClauseSearch`."""

    max_length: int
    max_variables: int
    beam_width: int
    penalty: float
    l2: float
    refits: int


@dataclass(frozen=True)
class Tried:
    """A clause that could be added: the conjunction that it denies, what it gains, and the refitted weights."""

    parts: Conjunction
    gain: float
    net: float
    fit: Fit


class Search:
    """The clauses so far, with their weights, and what has been counted.

    Attributes
    ----------
    found
        Conjunctions that the learned clauses deny, in the order of their columns behind those of the program.
    tried, skipped
        How many clauses were looked at, and how many were not, as they may have too many groundings.
    """

    def __init__(
        self,
        counts: Counts,
        cases: Cases,
        start: npt.NDArray[np.float64],
        predicates: Mapping[str, Predicate],
        usable: Sequence[Predicate],
        constants: Mapping[str, Sequence[str]],
        limits: Limits,
        running: Running,
    ) -> None:
        self.counts, self.cases, self.limits, self.running = counts, cases, limits, running
        self.predicates, self.usable, self.constants = predicates, usable, constants
        self.n_given = cases.n_columns
        self.fit = maximise(cases, limits.l2, start)
        self.found: list[Conjunction] = []
        self._changes: dict[Conjunction, Changes | None] = {}
        self.units = {(Part(name, tuple(range(len(predicates[name].types)))),) for name in counts.query}

    @property
    def tried(self) -> int:
        """How many clauses were looked at."""
        return len(self._changes)

    @property
    def skipped(self) -> int:
        """How many were not counted, as a join may have more rows than were allowed."""
        return sum(known is None for known in self._changes.values())

    def best(self) -> Tried | None:
        """The clause of the largest gain, less the penalty of its literals; None where none gains."""
        # The atoms of the query with different variables are in the program already; with equal ones, or constants,
        # they are clauses to try. Longer ones grow from all.
        beam = [one for name in self.counts.query for one in singles(self.predicates[name], self.constants)]
        seen = set(beam) | set(self.found)
        level = self._judged([parts for parts in beam if parts not in self.units and parts not in self.found])
        best = level[0] if level else None
        for _ in range(1, self.limits.max_length):
            grown: list[Conjunction] = []
            for parts in beam:
                for longer in self._extensions(parts):
                    form = canonical(longer)
                    if form in seen:
                        continue
                    seen.add(form)
                    if hangs_together(form, self.counts.query):
                        grown.append(form)
            level = self._judged(grown)
            if not level:
                break
            if best is None or level[0].net > best.net:
                best = level[0]
            beam = _different(level, self.limits.beam_width)
        return self._readable(best) if best is not None and best.net > 0.0 else None

    def _readable(self, best: Tried) -> Tried:
        """Of the signs that gain as much, those that read best: one conclusion, and a weight that is for it."""
        choices = [best]
        for signs in product((True, False), repeat=len(best.parts)):
            parts = canonical(part._replace(positive=sign) for part, sign in zip(best.parts, signs, strict=True))
            if parts == best.parts or parts in self.found or not hangs_together(parts, self.counts.query):
                continue
            changes = self._changed(parts)
            if changes is not None and len(changes[0]):
                one = self._refitted(parts)
                if one.net >= best.net - AS_GOOD:
                    choices.append(one)
        return min(
            choices,
            key=lambda one: (one.fit.weights[-1] < 0, abs(sum(not p.positive for p in one.parts) - 1), -one.net),
        )

    def _extensions(self, parts: Conjunction) -> list[Conjunction]:
        return list(
            extensions(
                parts, self.usable, self.constants, max_variables=self.limits.max_variables, known=self.predicates
            )
        )

    def _judged(self, grown: Sequence[Conjunction]) -> list[Tried]:
        """The most promising clauses with their gains, the best first."""
        screened = []
        for parts in grown:
            self.running.check(self.fit.value)
            changes = self._changed(parts)
            if changes is None or not len(changes[0]):
                continue
            screened.append((self.fit.screen(self.cases, *changes, self.limits.l2), parts))
        # What says the same has the same promise: one of each is refitted.
        screened.sort(key=lambda pair: (-pair[0], len(pair[1])))
        chosen: list[tuple[float, Conjunction]] = []
        for promise, parts in screened:
            same = [p for q, p in chosen[-8:] if abs(q - promise) <= ALIKE * max(1.0, promise)]
            if not any(_unsigned(p) == _unsigned(parts) for p in same):
                chosen.append((promise, parts))
            if len(chosen) == self.limits.refits:
                break
        tried = []
        for _, parts in chosen:
            self.running.check(self.fit.value)
            tried.append(self._refitted(parts))
        tried.sort(key=lambda one: -one.net)
        return tried

    def _refitted(self, parts: Conjunction) -> Tried:
        changes = self._changed(parts)
        assert changes is not None
        cases = self.cases.with_column(changes[0], -changes[1])
        fit = maximise(cases, self.limits.l2, np.append(self.fit.weights, 0.0))
        gain = fit.value - self.fit.value
        return Tried(parts, gain, gain - self.limits.penalty * len(parts), fit)

    def _changed(self, parts: Conjunction) -> Changes | None:
        if parts not in self._changes:
            try:
                self._changes[parts] = self.counts.changes(parts)
            except TooManyGroundingsError:
                self._changes[parts] = None
        return self._changes[parts]

    def add(self, one: Tried) -> None:
        """Take a clause into the program."""
        changes = self._changed(one.parts)
        assert changes is not None
        self.cases = self.cases.with_column(changes[0], -changes[1])
        self.found.append(one.parts)
        self.fit = one.fit

    def drop(self) -> tuple[Conjunction, float] | None:
        """Take out the learned clause that others have made worth less than its literals; it, and what was gained."""
        choices = []
        for i, parts in enumerate(self.found):
            self.running.check(self.fit.value)
            column = self.n_given + i
            cases = self.cases.without_column(column)
            fit = maximise(cases, self.limits.l2, np.delete(self.fit.weights, column))
            gain = fit.value - self.fit.value
            choices.append((gain + self.limits.penalty * len(parts), -i, gain, cases, fit))
        if not choices:
            return None
        net, index, gain, cases, fit = max(choices, key=lambda one: one[:2])
        if net <= 0.0:
            return None
        parts = self.found.pop(-index)
        self.cases, self.fit = cases, fit
        return parts, gain


def _unsigned(parts: Conjunction) -> Conjunction:
    return canonical(part._replace(positive=True) for part in parts)


def _different(level: Sequence[Tried], width: int) -> list[Conjunction]:
    """The best clauses that do not say the same."""
    chosen: list[Tried] = []
    for one in level:
        same = [c for c in chosen if abs(c.gain - one.gain) <= ALIKE * max(1.0, one.gain)]
        if not any(_unsigned(c.parts) == _unsigned(one.parts) for c in same):
            chosen.append(one)
        if len(chosen) == width:
            break
    return [one.parts for one in chosen]
