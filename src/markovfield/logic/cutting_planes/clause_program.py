"""The best world of ground formulas by an integer program: a variable for each atom, one for each formula's loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.inference.core.running import Running
from markovfield.inference.linear_programming.highs import INFEASIBLE, Highs
from markovfield.inference.linear_programming.linear_program import SOLVER_TOLERANCE
from markovfield.logic.cutting_planes.active import Restricted
from markovfield.logic.grounding.cubes import cubes_of
from markovfield.logic.grounding.ground import Block
from markovfield.logic.grounding.rules import HARD

__all__ = ["solved_program"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass
class _Rows:
    """Rows of equations as they come: at least one literal of each holds, or its formula's loss is paid.

    A row is ``literals + loss - k * slack = 1`` with a slack from 0 to 1, where k is how much more than one the left
    side can be.
    """

    n_columns: int
    costs: list[FloatArray] = field(default_factory=list)
    rows: list[IntArray] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)
    right: list[FloatArray] = field(default_factory=list)
    n_rows: int = 0

    def new_columns(self, costs: FloatArray) -> IntArray:
        """Columns with these costs."""
        at = self.n_columns + np.arange(len(costs))
        self.n_columns += len(costs)
        self.costs.append(costs)
        return at

    def add(self, owner: IntArray, atoms: IntArray, positive: npt.NDArray[np.bool_], loss: IntArray) -> None:
        """Rows of literals; ``loss`` is the column of each row's loss, -1 where the row is hard."""
        n = len(loss)
        paid = loss >= 0
        size = np.bincount(owner, minlength=n)
        slack = size + paid - 1
        loose = slack > 0
        numbers = self.n_rows + np.arange(n)
        extra = self.new_columns(np.zeros(int(loose.sum())))
        self.rows += [numbers[owner], numbers[paid], numbers[loose]]
        self.columns += [atoms, loss[paid], extra]
        self.values += [np.where(positive, 1.0, -1.0), np.ones(int(paid.sum())), -slack[loose].astype(np.float64)]
        self.right.append(np.asarray(1.0 - np.bincount(owner, ~positive, n), np.float64))
        self.n_rows += n

    def sum_to_one(self, owner: IntArray, atoms: IntArray, n: int, exactly: bool) -> None:
        """Rows of atoms exactly, or at most, one of which is true."""
        numbers = self.n_rows + np.arange(n)
        self.rows.append(numbers[owner])
        self.columns.append(atoms)
        self.values.append(np.ones(len(atoms)))
        if not exactly:
            self.rows.append(numbers)
            self.columns.append(self.new_columns(np.zeros(n)))
            self.values.append(np.ones(n))
        self.right.append(np.ones(n))
        self.n_rows += n

    def equations(self) -> tuple[Any, FloatArray]:
        """The rows as a matrix, and their right side."""
        from scipy.sparse import csr_array

        joined = [np.concatenate([np.zeros(0), *parts]) for parts in (self.values, self.rows, self.columns)]
        place = (joined[1].astype(np.int64), joined[2].astype(np.int64))
        matrix = csr_array((joined[0], place), shape=(self.n_rows, self.n_columns))
        return matrix, np.concatenate([np.zeros(0), *self.right])


def solved_program(
    found: Restricted, weights: FloatArray, soft: tuple[IntArray, FloatArray], running: Running
) -> tuple[IntArray | None, float, float, BaseException | None]:
    """The best states (None without any), a bound on the best score, its tolerance, and what stopped the search."""
    n = len(found.atoms)
    program = _Rows(n)
    own = np.zeros(n)
    at = np.searchsorted(found.atoms, soft[0])
    own[at] = np.log1p(-soft[1]) - np.log(soft[1])
    program.costs.append(own)
    constant = float(np.log1p(-soft[1]).sum())
    for block in found.blocks:
        atoms, single = np.searchsorted(found.atoms, block.atoms), _single(block)
        if single.any():
            # No variable of its own for what a single atom loses.
            false, true = _own_losses(block.rows(single), weights)
            alone = atoms[block.offsets[:-1][single]]
            constant -= float(false.sum())
            np.add.at(own, alone, true - false)
        if not single.all():
            _add_block(program, block.rows(~single), atoms[np.repeat(~single, np.diff(block.offsets))], weights)
    for group in found.determined:
        owner = np.repeat(np.arange(len(group)), np.diff(group.offsets))
        program.sum_to_one(owner, np.searchsorted(found.atoms, group.atoms), len(group), group.exactly)
    costs = np.concatenate(program.costs)
    whole = np.zeros(program.n_columns)
    whole[:n] = 1.0
    largest = float(np.abs(costs).max(initial=0.0))
    scale = largest if largest > 0 else 1.0
    answer = Highs(running).solve(costs / scale, program.equations(), whole=whole)
    if answer.status == INFEASIBLE:
        raise ImpossibleEvidenceError("the hard formulas contradict each other, or the evidence")
    bound = constant - scale * answer.bound
    margin = SOLVER_TOLERANCE * scale * max(1.0, abs(answer.bound)) if np.isfinite(bound) else 0.0
    states = None if answer.point is None else (answer.point[:n] > 0.5).astype(np.int64)
    return states, bound + margin, 2.01 * margin, answer.stop


def _single(block: Block) -> npt.NDArray[np.bool_]:
    """Which soft formulas speak of one atom only."""
    return (np.diff(block.offsets) == 1) & (block.weight != HARD)


def _own_losses(block: Block, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What formulas of one atom lose where it is false, and where it is true."""
    signed = weights[block.weight] * block.count
    # A table of one atom is a clause.
    assert block.positive is not None
    holds_true = block.positive != block.flipped
    # Of a formula that loses where the atom is true, and of one that loses where it is false.
    loses_true = holds_true == (signed < 0)
    return np.where(loses_true, 0.0, np.abs(signed)), np.where(loses_true, np.abs(signed), 0.0)


def _add_block(program: _Rows, block: Block, atoms: IntArray, weights: FloatArray) -> None:
    """What has to hold, or be paid for, of the formulas of a block."""
    n, size = len(block), np.diff(block.offsets)
    soft = block.weight != HARD
    signed = np.ones(n)
    signed[soft] = weights[block.weight[soft]]
    loss = np.full(n, -1, np.int64)
    loss[soft] = program.new_columns(np.abs(signed[soft]) * block.count[soft])
    owner = np.repeat(np.arange(n), size)
    if block.positive is not None:
        # A clause loses where it is false, or, of a negative weight, where it is true.
        loses_false = (signed > 0) != block.flipped
        inside = loses_false[owner]
        number = np.cumsum(loses_false) - 1
        program.add(number[owner[inside]], atoms[inside], block.positive[inside], loss[loses_false])
        single = np.arange(int((~inside).sum()))
        program.add(single, atoms[~inside], ~block.positive[~inside], loss[owner[~inside]])
        return
    assert block.truth is not None
    k = int(size[0])
    table = block.truth.reshape((2,) * k)
    for sign in (True, False):
        rows = np.flatnonzero((signed > 0) == sign)
        for cube in cubes_of(table != sign) if len(rows) else ():
            # Some atom is not as in this cube, in which the formula loses.
            chosen = atoms.reshape(n, k)[rows][:, list(cube)]
            positive = np.tile(np.array(list(cube.values())) == 0, len(rows))
            program.add(np.repeat(np.arange(len(rows)), len(cube)), chosen.ravel(), positive, loss[rows])
