"""A structure under search: the gain of every move from it, and which moves keep it acyclic."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray
from markovfield.learning.structures.local_scores import LocalScores

__all__ = ["Climber", "Step"]


class Step(NamedTuple):
    """A move by position; the gain is what it adds to the score."""

    kind: str
    parent: int
    child: int
    gain: float


class Climber:
    """A structure with the gain of every move from it, kept up to date as moves are made.

    ``add[p, c]`` is the gain of the arc p -> c (-inf where it is there already or not allowed), ``delete[p, c]`` that
    of its loss; reversing p -> c is ``delete[p, c] + add[c, p]``, since it changes two families. ``reach[a, b]`` tells
    whether a path leads from a to b, so that acyclicity is one lookup.
    """

    def __init__(self, scores: LocalScores, allowed: BoolArray, fixed: BoolArray, max_parents: int) -> None:
        n = scores.table.n_variables
        self.scores, self.allowed, self.fixed, self.max_parents = scores, allowed, fixed, max_parents
        self.adjacent = np.zeros((n, n), np.bool_)
        self.reach = np.zeros((n, n), np.bool_)
        self.add = np.full((n, n), -np.inf)
        self.delete = np.full((n, n), -np.inf)
        self.local = np.zeros(n)
        # A random number for each arc; the structure's own is their exclusive or, so that a move changes it in O(1).
        keys = np.random.default_rng(0).integers(1, 2**63, size=(n, n))
        self.keys: list[list[int]] = keys.tolist()
        self.signature = 0

    @property
    def score(self) -> float:
        """Score of the whole structure."""
        return float(self.local.sum())

    def place(self, adjacent: BoolArray) -> None:
        """Go to a structure without computing gains; `refresh` does."""
        self.adjacent = adjacent.copy()
        self.signature = 0
        for p, c in np.argwhere(adjacent).tolist():
            self.signature ^= self.keys[p][c]
        self._find_paths()
        for v in range(len(self.local)):
            self.local[v] = self.scores.local(v, np.flatnonzero(self.adjacent[:, v]).tolist())

    def refresh(self, v: int) -> None:
        """Gains of all moves that change the parents of one variable."""
        parents = np.flatnonzero(self.adjacent[:, v]).tolist()
        here = self.local[v] = self.scores.local(v, parents)
        self.add[:, v] = -np.inf
        self.delete[:, v] = -np.inf
        if len(parents) < self.max_parents:
            gains = self.scores.additions(v, parents) - here
            self.add[:, v] = np.where(self.allowed[:, v] & ~self.adjacent[:, v], gains, -np.inf)
            self.add[v, v] = -np.inf
        if parents:
            self.delete[parents, v] = self.scores.deletions(v, parents) - here

    def _find_paths(self) -> None:
        """Which variables reach which, from scratch: children before parents."""
        waiting = self.adjacent.sum(axis=1)
        ready = np.flatnonzero(waiting == 0).tolist()
        self.reach[:] = False
        while ready:
            v = ready.pop()
            for p in np.flatnonzero(self.adjacent[:, v]).tolist():
                self.reach[p] |= self.reach[v]
                self.reach[p, v] = True
                waiting[p] -= 1
                if not waiting[p]:
                    ready.append(p)

    def moves(self) -> tuple[FloatArray, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Gains of all moves (-inf where not allowed), and the arcs of those that change one.

        The order is fixed: additions by child within parent, then the deletions of all arcs, then their reversals.
        """
        additions = np.where(self.reach.T, -np.inf, self.add)
        parents, children = np.nonzero(self.adjacent & ~self.fixed)
        deletions = self.delete[parents, children]
        # Reversing closes a cycle when another path leads from the parent to the child.
        detour = (self.adjacent[parents] & self.reach[:, children].T).any(axis=1)
        reversals = np.where(detour, -np.inf, deletions + self.add[children, parents])
        return np.concatenate([additions.ravel(), deletions, reversals]), parents, children

    def step(self, at: int, gain: float, parents: npt.NDArray[np.intp], children: npt.NDArray[np.intp]) -> Step:
        """The move at a position of `moves`."""
        n = len(self.local)
        if at < n * n:
            return Step("add", at // n, at % n, gain)
        kind = "delete" if at < n * n + len(parents) else "reverse"
        arc = (at - n * n) % len(parents)
        return Step(kind, int(parents[arc]), int(children[arc]), gain)

    def parent_step(self, v: int) -> Step | None:
        """The allowed addition of a parent to one variable with the largest gain."""
        gains = np.where(self.reach[v], -np.inf, self.add[:, v])
        p = int(np.argmax(gains))
        return None if gains[p] == -np.inf else Step("add", p, v, float(gains[p]))

    def deletion_steps(self, v: int) -> list[tuple[int, int]]:
        """The arcs into and out of one variable that may be deleted."""
        into = [(p, v) for p in np.flatnonzero(self.adjacent[:, v]).tolist()]
        out = [(v, c) for c in np.flatnonzero(self.adjacent[v]).tolist()]
        return [arc for arc in into + out if not self.fixed[arc]]

    def best_step(self, visited: Collection[int]) -> Step | None:
        """The allowed move with the largest gain that does not lead to a structure of ``visited``."""
        gains, parents, children = self.moves()
        while True:
            at = int(np.argmax(gains))
            if gains[at] == -np.inf:
                return None
            step = self.step(at, float(gains[at]), parents, children)
            if self.signature_after(step) not in visited:
                return step
            gains[at] = -np.inf

    def random_step(self, rng: np.random.Generator) -> Step | None:
        """Any allowed move."""
        gains, parents, children = self.moves()
        allowed = np.flatnonzero(gains > -np.inf)
        if not len(allowed):
            return None
        at = int(rng.choice(allowed))
        return self.step(at, float(gains[at]), parents, children)

    def signature_after(self, step: Step) -> int:
        """Signature of the structure a move leads to."""
        result = self.signature ^ self.keys[step.parent][step.child]
        return result ^ self.keys[step.child][step.parent] if step.kind == "reverse" else result

    def make(self, step: Step) -> None:
        """Make a move and refresh the gains it changes."""
        p, c = step.parent, step.child
        self.signature = self.signature_after(step)
        if step.kind == "add":
            self.adjacent[p, c] = True
            above = self.reach[:, p].copy()
            above[p] = True
            below = self.reach[c].copy()
            below[c] = True
            self.reach |= above[:, None] & below
        else:
            self.adjacent[p, c] = False
            if step.kind == "reverse":
                self.adjacent[c, p] = True
            self._find_paths()
        self.refresh(c)
        if step.kind == "reverse":
            self.refresh(p)

    def snapshot(self) -> tuple[Any, ...]:
        """Everything that a move changes, for `restore`."""
        arrays = (self.adjacent, self.reach, self.add, self.delete, self.local)
        return (*(a.copy() for a in arrays), self.signature)

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go back to where a `snapshot` was taken."""
        for own, kept in zip((self.adjacent, self.reach, self.add, self.delete, self.local), saved[:-1], strict=True):
            own[...] = kept
        self.signature = saved[-1]
